"""What a graph does on the way that starting the frame over would do twice: it draws random
numbers, and changes tensors that existed before. `trace` says in the body how to undo that.

Seen where fakes are dispatched: composite operators have been taken apart there, and an argument's
storage tells what it is a view of.
"""

import functools
from typing import NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

# Operators that raise for nothing but what fakes show as well: sizes, dtypes, devices.
_SAFE = {
    "mm", "bmm", "addmm", "addmv", "mv", "dot", "baddbmm", "linear", "convolution",
    "_convolution", "cat", "stack", "clone", "copy", "copy_", "_to_copy", "fill", "fill_",
    "zero_", "zeros", "ones", "full", "empty", "empty_like", "zeros_like", "ones_like",
    "full_like", "arange", "new_zeros", "new_ones", "new_full", "new_empty", "scalar_tensor",
    "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update",
    "native_layer_norm", "native_group_norm", "_softmax", "_log_softmax", "native_dropout",
    "normal_", "randn", "rand", "rand_like", "randn_like", "randint", "sort", "topk", "cumsum",
    "tril", "triu", "max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d",
    "constant_pad_nd", "flip", "roll", "repeat", "_unsafe_view", "contiguous", "argmax",
    "argmin", "var_mean", "lstm", "gru", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
    "_fused_rms_norm",
}  # fmt: skip
_SAFE_TAGS = {torch.Tag.pointwise, torch.Tag.reduction}

# Copies of so many bytes are made at each call: less than what such a graph costs anyway.
COPIED_BYTES = 1 << 20


class _Effects(NamedTuple):
    """What an operator may do. written: the positions of arguments it changes, and their names."""

    draws: bool
    raises: bool
    written: tuple[tuple[int, str], ...]


@functools.cache
def _effects(operator) -> _Effects:
    tags = set(operator.tags)
    arguments = operator._schema.arguments
    written = tuple(
        (index, argument.name)
        for index, argument in enumerate(arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    name = operator._schema.name.partition("::")[2]
    safe = name in _SAFE or operator.is_view or not _SAFE_TAGS.isdisjoint(tags)
    return _Effects(torch.Tag.nondeterministic_seeded in tags, not safe, written)


class Hazards:
    """changed: the storages written to. raises_late: an operator whose success depends on data
    came after random numbers were drawn or a storage was written to. draws: numbers were drawn.
    raises_now: what has been run since this was reset may raise after a storage was written to.
    undone: the storages whose changes must be undone, since the program handles an exception."""

    def __init__(self) -> None:
        self.draws = False
        self.raises_late = False
        self.raises_now = False
        self.changed: set[int] = set()
        self.undone: set[int] = set()

    def note(self, operator, args, kwargs) -> None:
        """An operator is about to run on fakes."""
        effects = _effects(operator)
        self.raises_late |= effects.raises and (self.draws or bool(self.changed))
        self.raises_now |= effects.raises and bool(self.changed)
        self.draws |= effects.draws
        for index, name in effects.written:
            written = args[index] if index < len(args) else kwargs.get(name)
            for tensor in written if isinstance(written, list | tuple) else (written,):
                if isinstance(tensor, FakeTensor):
                    self.changed.add(storage_of(tensor))


def can_copy(variables: list) -> bool:
    """Whether tensors that came in are small enough to be copied at each call."""
    return sum(variable.live.nbytes for variable in variables) <= COPIED_BYTES


def recorded_by_autograd(variable) -> bool:
    """Whether changes of a tensor are more than its data: copying does not undo them."""
    return variable.fake.grad_fn is not None


def can_undo(variables: list) -> bool:
    """Whether the changes of tensors that came in can be undone, all of them."""
    return not any(map(recorded_by_autograd, variables)) and can_copy(variables)


def storage_of(tensor: torch.Tensor) -> int:
    """What tells whether two fakes share memory."""
    return tensor.untyped_storage()._cdata


class WatchedFakeMode(FakeTensorMode):
    """Fake tensors whose operators are noted."""

    def __init__(self, **options):
        super().__init__(**options)
        self.hazards = Hazards()

    def dispatch(self, func, types, args=(), kwargs=None):
        if isinstance(func, torch._ops.OpOverload):
            self.hazards.note(func, args, kwargs or {})
        return super().dispatch(func, types, args, kwargs or {})
