"""Numbers whose value is not fixed: what Python's builtins do with them stays symbolic."""

import math
import operator

import torch

from ..operation import apply
from ..variables import (
    Constant,
    Sequence,
    SliceVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from .table import rule


@rule(int, Symbolic)
def int_symbolic(t, self):
    if self.type is bool:
        return NotImplemented
    return self if self.type is int else t.graph.call(torch.sym_int, [self], {})


@rule(operator.index, Symbolic)
def index_symbolic(t, self):
    return self if self.type is int else NotImplemented


@rule(float, Symbolic)
def float_symbolic(t, self):
    return self if self.type is float else t.graph.call(torch.sym_float, [self], {})


@rule((math.floor, math.ceil, math.trunc), Symbolic)
def whole(t, self):
    return self if self.type is int else NotImplemented


@rule(round, Symbolic)
def round_symbolic(t, self, digits=None):
    if digits is not None:
        return NotImplemented
    return self if self.type is int else t.graph.call(round, [self], {})


@rule(divmod, Symbolic)
def divmod_symbolic(t, self, other):
    parts = [apply(t, each, [self, other]) for each in (operator.floordiv, operator.mod)]
    return t.new(TupleVariable(parts))


@rule(math.sqrt, Symbolic)
def sqrt(t, self):
    if self.type is bool or not t.shapes.holds(self.value >= 0):
        return NotImplemented
    return t.graph.call(torch._sym_sqrt, [self], {})


@rule(operator.pow, Symbolic)
def power(t, self, exponent):
    """A fixed exponent; of what may be negative only whole ones, which give real numbers."""
    exponent = t.realize(exponent)
    if not isinstance(exponent, Constant) or exponent.type not in (int, float):
        return NotImplemented
    if self.type is bool or not -_HIGHEST_POWER <= exponent.value <= _HIGHEST_POWER:
        return NotImplemented
    whole = exponent.type is int and exponent.value >= 0
    if not whole and not t.shapes.holds(self.value > 0):
        return NotImplemented
    if not whole and self.type is int:
        # A float, computed as Python does.
        self = apply(t, float, [self])
        exponent = Constant(float(exponent.value))
    return t.graph.call(operator.pow, [self, exponent], {})


_HIGHEST_POWER = 8


def extreme(t, operation, items: list[Variable]) -> Variable | None:
    """`max` or `min` of ints of which some are symbolic; None for anything else."""
    items = [t.realize(item) for item in items]
    if not any(isinstance(item, Symbolic) for item in items):
        return None
    if not all(isinstance(item, Symbolic | Constant) and item.type is int for item in items):
        return None
    function = torch.sym_max if operation is max else torch.sym_min
    result = items[0]
    for item in items[1:]:
        result = apply(t, function, [result, item])
    return result


# -- tensors indexed with symbolic ints --------------------------------------------------------


@rule(operator.getitem, TensorVariable)
def tensor_item(t, self, key):
    """`self[key]` with symbolic ints in the key: these are selected first, one by one, because
    torch's own indexing fixes them."""
    key = t.realize(key)
    items = [t.realize(item) for item in key.items] if isinstance(key, TupleVariable) else [key]
    if not any(_is_symbolic_int(item) for item in items) or not all(map(_is_basic, items)):
        return NotImplemented
    result: Variable = self
    rest: list[Variable] = []
    for place, item in reversed(list(enumerate(items))):
        if _is_symbolic_int(item):
            dim = Constant(_dimension(self, items, place))
            result = t.graph.call(torch.select, [result, dim, item], {})
        else:
            rest.insert(0, item)
    if not rest:
        return result
    return t.graph.call(operator.getitem, [result, t.new(TupleVariable(rest))], {})


def _is_symbolic_int(item: Variable) -> bool:
    return isinstance(item, Symbolic) and item.type is int


def _is_basic(item: Variable) -> bool:
    if isinstance(item, Constant):
        return item.type in (int, type(None), type(Ellipsis))
    return _is_symbolic_int(item) or isinstance(item, SliceVariable)


def _dimension(tensor: TensorVariable, items: list[Variable], place: int) -> int:
    """Which dimension of the tensor an item of a basic index is about."""
    ellipsis = any(_is(item, Ellipsis) for item in items[:place])
    counted = items[place:] if ellipsis else items[:place]
    count = sum(not _is(item, None) for item in counted)
    return tensor.fake.dim() - count if ellipsis else count


def _is(item: Variable, value: object) -> bool:
    return isinstance(item, Constant) and item.value is value


# -- numbers that depend on data ---------------------------------------------------------------


@rule(torch._check, Symbolic)
def check(t, self, message=None):
    """The program says what must hold: known from here on, and checked by the graph."""
    if t.unbacked.depends_on_data(self.value):
        t.shapes.assume(self.value)
        t.unbacked.checked(self)
        return Constant(None)
    return Constant(None) if t.shapes.decide(self) else NotImplemented


@rule(torch._check, Constant)
def check_known(t, self, message=None):
    return Constant(None) if self.value is True else NotImplemented


@rule((math.isnan, math.isinf), Symbolic)
def not_finite(t, self):
    """A float that came in is finite: no other is ever symbolic."""
    return Constant(False) if self.source is not None or self.type is int else NotImplemented


# -- tensors made of numbers ------------------------------------------------------------


@rule((torch.tensor, torch.as_tensor))
def tensor_of_numbers(t, data, **how):
    """A number, or a few of them in a row, not all of them fixed."""
    in_a_row = isinstance(data, Sequence)
    numbers = [t.realize(each) for each in (data.items if in_a_row else [data])]
    if not any(isinstance(each, Symbolic) for each in numbers) or len(numbers) > _MOST_NUMBERS:
        return NotImplemented
    if any(each.type not in (int, float, bool) for each in numbers):
        return NotImplemented
    dtype = _dtype_of(numbers) if (given := how.pop("dtype", None)) is None else t.constant(given)
    if (grad := how.pop("requires_grad", None)) is not None and t.constant(grad):
        return NotImplemented
    if dtype not in _EXACT or how.keys() - {"device"}:
        return NotImplemented
    kwargs = {"dtype": Constant(dtype), **how}
    made = [t.graph.call(torch.scalar_tensor, [each], kwargs) for each in numbers]
    return t.graph.call(torch.stack, [t.wrap_list(made)], {}) if in_a_row else made[0]


_MOST_NUMBERS = 8
# Types to which numbers are converted alike however the tensor is made.
_EXACT = {torch.int64, torch.float64, torch.float32}


def _dtype_of(numbers: list[Variable]) -> torch.dtype:
    kinds = {each.type for each in numbers}
    if float in kinds:
        return torch.get_default_dtype()
    return torch.int64 if int in kinds else torch.bool
