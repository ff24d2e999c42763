"""What an operator that fails on tensors without data raises in the program.

Sizes and dtypes decide that; so it is asked once, on zeros, and the program's own handlers get it.
Where nobody would catch it, the graph breaks instead and the operator raises by itself.
"""

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map

from ..package.interruptions import require_own
from .bytecode.decode import ExceptionEntry
from .frame import Frame
from .members import is_from
from .signals import NotConstant
from .variables import MethodVariable

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
# Zeros of so many bytes are made to learn what an operator says.
_MOST_BYTES = 1 << 26


def is_caught(frame: Frame | None) -> bool:
    """Whether the program may catch what the present instruction raises."""
    while frame is not None:
        if frame.decoded.handler(frame.instruction.offset) is not None:
            return True
        frame = frame.caller
    return False


def is_answered(t) -> bool:
    """Whether code of the program runs where the present instruction raises: an `except` or
    `finally`, or the exit of a `with`. Those of torch's contexts only put a state back."""
    frame = t.frame
    while frame is not None:
        entry = frame.decoded.handler(frame.instruction.offset)
        while entry is not None:
            if not _only_puts_back(t, frame, entry):
                return True
            entry = frame.decoded.handler(entry.target)
        frame = frame.caller
    return False


def _only_puts_back(t, frame: Frame, entry: ExceptionEntry) -> bool:
    """Whether a handler runs no code of the program."""
    index = frame.decoded.at[entry.target]
    names = [ins.opname for ins in frame.decoded.instructions[index : index + 3]]
    if names == ["COPY", "POP_EXCEPT", "RERAISE"]:
        return True
    if names[:2] != ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
        return False
    leave = t.realize(frame.stack[entry.depth - 1])
    manager = t.realize(leave.self_) if isinstance(leave, MethodVariable) else leave
    return is_from(manager.type, "torch")


def raised_by(operation: Any, args: list, kwargs: dict) -> Exception | None:
    """The exception that an operator raises on zeros like these fakes, None if it raises none.

    Raises NotConstant where zeros cannot be made, or would not tell.
    """
    leaves = tree_leaves((args, kwargs))
    if any(isinstance(leaf, _SYMBOLS) for leaf in leaves):
        # It may be the algebra that fails, at a NaN for one; and the text would tell of symbols.
        raise NotConstant("numbers that differ between calls")
    fakes = [leaf for leaf in leaves if isinstance(leaf, FakeTensor)]
    if any(not _is_fixed(fake) for fake in fakes):
        raise NotConstant("sizes that differ between calls")
    if sum(fake.untyped_storage().nbytes() for fake in fakes) > _MOST_BYTES:
        raise NotConstant("tensors too large to try")
    made: dict[int, torch.Tensor] = {}

    def like(leaf: Any) -> Any:
        if not isinstance(leaf, FakeTensor):
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = _zeros(leaf)
        return made[id(leaf)]

    real_args, real_kwargs = tree_map(like, (args, kwargs))
    try:
        operation(*real_args, **real_kwargs)
    except Exception as error:
        require_own(error)
        return error
    return None


def _is_fixed(fake: FakeTensor) -> bool:
    return all(type(part) is int for part in (*fake.shape, *fake.stride()))


def _zeros(fake: FakeTensor) -> torch.Tensor:
    """A tensor with data of the same sizes, dtype and standing with autograd."""
    made = torch.empty_strided(fake.shape, fake.stride(), dtype=fake.dtype, device=fake.device)
    made.zero_()
    if not fake.requires_grad:
        return made
    made.requires_grad_()
    if fake.is_leaf:
        return torch.nn.Parameter(made) if isinstance(fake, torch.nn.Parameter) else made
    with torch.enable_grad():
        return made.view_as(made)
