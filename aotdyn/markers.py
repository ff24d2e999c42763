"""Marks that a program puts on tensors and functions for the tracer.

Tensors carry torch's own attribute names where it has them, so that programs written for
torch.compile mean the same here.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from .runtime.hook import switch_off

_RANGES = "__aotdyn_ranges__"
DISABLED = "__aotdyn_disabled__"
# torch.compiler.disable marks what it returns with this.
_TORCH_DISABLED = "_torchdynamo_disable"


def _dims(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...]) -> list[int]:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a tensor, got {type(tensor).__name__}")
    dims = [index] if isinstance(index, int) else list(index)
    for dim in dims:
        if not -tensor.dim() <= dim < tensor.dim():
            raise IndexError(f"dimension {dim} of a tensor with {tensor.dim()} dimensions")
    return [dim % tensor.dim() for dim in dims]


def _mark(tensor: torch.Tensor, index, attribute: str) -> None:
    marked = getattr(tensor, attribute, None) or set()
    setattr(tensor, attribute, {*marked, *_dims(tensor, index)})


def mark_dynamic(
    tensor: torch.Tensor,
    index: int | list[int] | tuple[int, ...],
    *,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """The size of `tensor` in these dimensions is symbolic from the first call on.

    Sizes 0 and 1 still get their own variants. `min` and `max` are the least and the largest size
    that the variant has to cover. A program that fixes the size is refused with Unsupported when
    it is traced. Raises IndexError for a dimension that is not there, ValueError for a size
    outside of the range.
    """
    _mark(tensor, index, "_dynamo_dynamic_indices")
    if min is None and max is None:
        return
    for dim in _dims(tensor, index):
        size = tensor.shape[dim]
        if min is not None and size < min or max is not None and size > max:
            raise ValueError(f"size {size} of dimension {dim} is not within {min} and {max}")
        setattr(tensor, _RANGES, {**dynamic_ranges(tensor), dim: (min, max)})


def dynamic_ranges(tensor: torch.Tensor) -> dict[int, tuple[int | None, int | None]]:
    """dimension -> least and largest size, None where open, of the dimensions that have them."""
    return getattr(tensor, _RANGES, {})


def strictly_dynamic(tensor: torch.Tensor) -> set[int]:
    """The dimensions whose sizes a program must not fix."""
    return getattr(tensor, "_dynamo_dynamic_indices", None) or set()


def maybe_mark_dynamic(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...]) -> None:
    """As `mark_dynamic`; a size that the program fixes becomes a constant without complaint."""
    _mark(tensor, index, "_dynamo_weak_dynamic_indices")


def mark_static(
    tensor: torch.Tensor, index: int | list[int] | tuple[int, ...] | None = None
) -> None:
    """The sizes in these dimensions (all, without `index`) stay constants."""
    _mark(tensor, range(tensor.dim()) if index is None else index, "_dynamo_static_indices")


def dynamic_marks(tensor: torch.Tensor) -> dict[int, bool]:
    """dimension -> whether it is marked dynamic (True) or static (False)."""
    marks: dict[int, bool] = {}
    for attribute, wanted in (
        ("_dynamo_weak_dynamic_indices", True),
        ("_dynamo_dynamic_indices", True),
        ("_dynamo_static_indices", False),
    ):
        for dim in getattr(tensor, attribute, None) or ():
            marks[dim] = wanted
    return marks


def graph_break() -> None:
    """Breaks the graph where it is called; does nothing outside of a traced function."""


def is_compiling() -> bool:
    """True while the tracer looks at the calling function, False when Python runs it."""
    return False


def disable(function: Callable | None = None) -> Any:
    """Marks a function or module class as not to be traced, nor anything it calls."""
    if function is None:
        return disable
    target = function.forward if isinstance(function, torch.nn.Module) else function
    target = getattr(target, "__func__", target)
    setattr(target, DISABLED, True)
    if isinstance(target, FunctionType):
        # Also where eager code calls it: neither its frames nor those below are offered.
        switch_off(target.__code__)
    return function


def is_disabled(function: Any) -> bool:
    """Whether a function is marked, by `disable` or by torch's own marker."""
    marks = getattr(function, "__dict__", {})
    return bool(marks.get(DISABLED) or marks.get(_TORCH_DISABLED))
