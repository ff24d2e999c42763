"""Tensors made of arrays and scalars of NumPy, and indexed by them."""

import operator
from typing import Any

import torch

from ...package.arrays import SCALARS
from ...package.source import FromArray
from ..arrays import require_layout
from ..folding import plain
from ..operation import apply, is_none
from ..signals import GraphBreak, NotConstant
from ..variables import Constant, ListVariable, TensorVariable, TupleVariable, Variable
from ..variables.arrays import ArrayVariable
from .table import rule


@rule(torch.from_numpy, ArrayVariable)
def from_numpy(t, self):
    """A tensor that shares the memory of an array."""
    if self.value is None:
        if self.shared:
            raise GraphBreak("torch_refused", "two tensors that share the memory of an array")
        self.shared = True
        return _input(t, self)
    value = t.arrays.look(t, self)
    if not value.flags.writeable:
        # One that tensors share already, too: each would have to show what is done to the other.
        raise GraphBreak("torch_refused", "a tensor that shares what cannot be written to")
    made = _filled(t, value)
    t.arrays.give_away(t, value, made)
    return made


@rule(torch.as_tensor, ArrayVariable)
def as_tensor(t, self, dtype=None, device=None):
    """As `from_numpy`, or a copy where type or device are others."""
    return _converted(t, from_numpy(t, self), dtype, device)


@rule(torch.tensor, ArrayVariable)
def tensor_of_array(t, self, *, dtype=None, device=None):
    """A tensor that holds what an array does."""
    if self.value is not None:
        return _converted(t, _filled(t, t.arrays.look(t, self)), dtype, device)
    if not self.live.flags.c_contiguous:
        return NotImplemented
    copied = t.graph.call(torch.Tensor.clone, [_input(t, self)], {})
    return _converted(t, copied, dtype, device)


def _input(t, self: ArrayVariable) -> Variable:
    """The memory of an array that came in as an input of the graph."""
    if not self.live.flags.writeable:
        # torch warns of it.
        raise GraphBreak("torch_refused", "a tensor that shares what cannot be written to")
    try:
        tensor = torch.from_numpy(self.live)
    except (TypeError, ValueError) as error:
        raise GraphBreak("torch_refused", str(error)) from None
    require_layout(t, self)
    return t.realize(t.lazy(tensor, FromArray(self.source)))


def _filled(t, value: Any) -> Variable:
    """A new tensor with what an array holds that the trace has computed."""
    if value.flags.f_contiguous and not value.flags.c_contiguous:
        order = [Constant(dim) for dim in reversed(range(value.ndim))]
        return t.graph.call(torch.Tensor.permute, [_filled(t, value.T), *order], {})
    if value.size > _MOST_ITEMS or not value.flags.c_contiguous:
        raise GraphBreak("torch_refused", f"an ndarray of {value.size} items in a graph")
    try:
        dtype = torch.from_numpy(value.copy()).dtype
    except TypeError as error:
        raise GraphBreak("torch_refused", str(error)) from None
    items = t.wrap_list([Constant(item) for item in value.ravel().tolist()])
    row = t.graph.call(torch.tensor, [items], {"dtype": Constant(dtype)})
    if value.ndim == 1:
        return row
    sizes = TupleVariable([Constant(size) for size in value.shape])
    return t.graph.call(torch.Tensor.reshape, [row, sizes], {})


# Of arrays that are written out in a graph.
_MOST_ITEMS = 4096


def _converted(t, tensor: Variable, dtype: Variable | None, device: Variable | None) -> Variable:
    how = {"dtype": dtype, "device": device}
    wanted = {name: value for name, value in how.items() if value and not is_none(t, value)}
    return t.graph.call(torch.Tensor.to, [tensor], wanted) if wanted else tensor


@rule((torch.tensor, torch.as_tensor), Variable, after=True)
def tensor_of_scalars(t, data, **how):
    """Of scalars of NumPy torch takes over the type."""
    given = how.get("dtype")
    if given is not None and not is_none(t, given) or not _has_scalars(t, data):
        return NotImplemented
    try:
        held = plain(t.deep(data))
        dtype = torch.tensor(held).dtype
    except (NotConstant, TypeError, ValueError, RuntimeError):
        return NotImplemented
    numbers = t.wrap_result(_plain_numbers(held))
    return t.graph.call(torch.tensor, [numbers], {**how, "dtype": Constant(dtype)})


def _plain_numbers(data: Any) -> Any:
    if isinstance(data, list | tuple):
        return [_plain_numbers(item) for item in data]
    return data.item() if type(data) in SCALARS else data


def _has_scalars(t, data: Variable) -> bool:
    data = t.realize(data)
    if isinstance(data, ListVariable | TupleVariable):
        return any(_has_scalars(t, item) for item in data.items)
    return isinstance(data, Constant) and type(data.value) in SCALARS


@rule(operator.getitem, TensorVariable, after=True)
def by_array(t, self, index):
    """An array among the indices of a tensor is one like it."""
    return _with_tensors(t, operator.getitem, self, index)


@rule(operator.setitem, TensorVariable, after=True)
def set_by_array(t, self, index, value):
    return _with_tensors(t, operator.setitem, self, index, value)


def _with_tensors(t, operation, self: Variable, index: Variable, *value: Variable):
    index = t.realize(index)
    several = type(index) is TupleVariable and index.type is tuple
    parts = [t.realize(part) for part in (index.items if several else [index])]
    if not any(isinstance(part, ArrayVariable) for part in parts):
        return NotImplemented
    _require_fit(t, self, parts)
    found = [index for part in parts for index in _indices(t, part)]
    several = several or len(found) > 1
    return apply(t, operation, [self, TupleVariable(found) if several else found[0], *value])


def _indices(t, part: Variable) -> list[Variable]:
    """An index as tensors, where it is an array: a mask as the places that it marks, in each
    dimension."""
    if not isinstance(part, ArrayVariable):
        return [part]
    if _mask_shape(part) is None:
        return [tensor_of_array(t, part)]
    return [_filled(t, places.copy()) for places in t.arrays.look(t, part).nonzero()]


def _mask_shape(part: Variable) -> tuple[int, ...] | None:
    """The shape of an index that is a mask; None for others."""
    if isinstance(part, TensorVariable):
        return tuple(part.fake.shape) if part.fake.dtype is torch.bool else None
    if not isinstance(part, ArrayVariable):
        return None
    held = part.live if part.value is None else part.value
    return held.shape if held.dtype == bool and held.ndim else None


def _require_fit(t, self: TensorVariable, parts: list[Variable]) -> None:
    """The masks have the sizes of the dimensions that they cover. Raises GraphBreak where they do
    not: the places that they mark might all be there."""
    sizes = self.fake.shape
    dim = 0
    for place, part in enumerate(parts):
        if isinstance(part, Constant) and part.value is Ellipsis:
            dim = len(sizes) - sum(map(_covered, parts[place + 1 :]))
            continue
        shape = _mask_shape(part)
        if isinstance(part, ArrayVariable) and shape is not None:
            with t.shapes.at(t.here):
                fits = all(a == b for a, b in zip(sizes[dim:], shape))
            if not fits or dim + len(shape) > len(sizes):
                raise GraphBreak("data_dependent", "a mask of another size")
        dim += _covered(part)


def _covered(part: Variable) -> int:
    """How many dimensions an index covers."""
    if isinstance(part, Constant) and (part.value is None or type(part.value) is bool):
        return 0
    shape = _mask_shape(part)
    return 1 if shape is None else len(shape)
