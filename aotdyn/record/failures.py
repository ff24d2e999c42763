"""What an operator that fails on tensors without data raises in the program.

Sizes and dtypes decide that; so it is asked once, on zeros, and the program's own handlers get it.
Where nobody would catch it, the graph breaks instead and the operator raises by itself.
"""

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map

from .frame import Frame
from .signals import NotConstant

# Zeros of so many bytes are made to learn what an operator says.
_MOST_BYTES = 1 << 26


def is_caught(frame: Frame | None) -> bool:
    """Whether the program may catch what the present instruction raises."""
    while frame is not None:
        if frame.decoded.handler(frame.instruction.offset) is not None:
            return True
        frame = frame.caller
    return False


def raised_by(operation: Any, args: list, kwargs: dict) -> Exception | None:
    """The exception that an operator raises on zeros like these fakes, None if it raises none.

    Raises NotConstant where zeros cannot be made.
    """
    fakes = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor)]
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
