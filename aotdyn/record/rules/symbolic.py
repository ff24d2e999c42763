"""Numbers whose value is not fixed: what Python's builtins do with them stays symbolic."""

import math
import operator
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.utils._sympy.functions import (
    OpaqueUnaryFn_cos,
    OpaqueUnaryFn_exp,
    OpaqueUnaryFn_log,
    OpaqueUnaryFn_log2,
    OpaqueUnaryFn_sin,
    OpaqueUnaryFn_tanh,
)

from ..invoke import CONSTRUCTORS
from ..operation import apply
from ..polyfills.checks import check_tensor_all
from ..signals import GraphBreak
from ..unbacked import size_variable
from ..variables import (
    Constant,
    ListVariable,
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


@rule(operator.invert, Symbolic)
def invert(t, self):
    if self.type is not int:
        return NotImplemented
    return apply(t, operator.sub, [apply(t, operator.neg, [self]), Constant(1)])


# function of math -> (how it is written in guards, what must hold for it to give a number, the
# function of torch that means it in a graph, where there is one)
_OF_REALS: dict = {
    math.log2: (OpaqueUnaryFn_log2, lambda value: value > 0, torch._sym_log2),
    math.log: (OpaqueUnaryFn_log, lambda value: value > 0, None),
    math.exp: (OpaqueUnaryFn_exp, lambda value: value < _LARGEST_EXPONENT, None),
    math.sin: (OpaqueUnaryFn_sin, lambda value: True, torch._sym_sin),
    math.cos: (OpaqueUnaryFn_cos, lambda value: True, torch._sym_cos),
    math.tanh: (OpaqueUnaryFn_tanh, lambda value: True, torch._sym_tanh),
}
_LARGEST_EXPONENT = 700


def _of_reals(function) -> None:
    written, is_defined, in_graph = _OF_REALS[function]

    @rule(function, Symbolic)
    def of_real(t, self, base=None):
        if self.type is bool or not t.shapes.holds(is_defined(self.value)):
            return NotImplemented
        if base is not None:
            return apply(t, operator.truediv, [apply(t, function, [each]) for each in (self, base)])
        real = apply(t, float, [self])
        return t.graph.call(
            in_graph or function, [real], {}, lambda value: t.shapes.function_of(value, written)
        )


for _function in _OF_REALS:
    _of_reals(_function)


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
    """`self[key]` of symbolic sizes, or with symbolic ints in the key: these are selected first,
    one by one, because torch's own indexing fixes them."""
    key = t.realize(key)
    items = [t.realize(item) for item in key.items] if isinstance(key, TupleVariable) else [key]
    if not all(map(_is_basic, items)):
        return NotImplemented
    clamped = [_clamped(t, self, items, place) for place in range(len(items))]
    if not any(_is_symbolic_int(item) for item in items):
        if all(new is item for new, item in zip(clamped, items, strict=True)):
            return NotImplemented
        whole = t.new(TupleVariable(clamped)) if isinstance(key, TupleVariable) else clamped[0]
        return t.graph.call(operator.getitem, [self, whole], {})
    items = clamped
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


def _clamped(t, self: TensorVariable, items: list[Variable], place: int) -> Variable:
    """An item of a basic index; of a slice of a symbolic size with bounds that may lie outside, one
    that says where they end up, for which no size needs a variant of its own."""
    item = items[place]
    dim = _dimension(self, items, place)
    if not isinstance(item, SliceVariable) or not 0 <= dim < self.fake.dim():
        return item
    size = self.fake.shape[dim]
    if not isinstance(size, torch.SymInt) or t.unbacked.depends_on_data(size):
        return item
    start, stop, step = map(t.realize, item.items)
    bounds = [_bound(t, self, dim, each) for each in (start, stop)]
    if bounds == [start, stop]:
        return item
    return t.new(SliceVariable([*bounds, step]))


def _bound(t, self: TensorVariable, dim: int, bound: Variable) -> Variable:
    """Where a bound of a slice ends up; the bound itself where it is plain that it lies inside."""
    if not isinstance(bound, Constant) or bound.type is not int:
        return bound
    inside = self.fake.shape[dim] >= abs(bound.value)
    if isinstance(inside, bool) or statically_known_true(inside):
        return bound
    size = size_variable(t, self, dim)
    if bound.value >= 0:
        return apply(t, torch.sym_min, [size, bound])
    return apply(t, torch.sym_max, [apply(t, operator.add, [size, bound]), Constant(0)])


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


@rule(torch._check_with)
def check(t, error, cond, message):
    """The program says what must hold: known from here on, and checked by the graph. All of
    `torch._check`, `_check_value` and the like come here."""
    cond = t.realize(cond)
    if not isinstance(cond, Symbolic):
        return Constant(None) if _is(cond, True) else NotImplemented
    if t.unbacked.depends_on_data(cond.value):
        t.shapes.assume(cond.value)
        t.unbacked.checked(cond)
        return Constant(None)
    return Constant(None) if t.shapes.decide(cond) else NotImplemented


@rule(torch._check_tensor_all_with)
def check_tensor(t, error, cond, message=None):
    """By a branch, which may be an assumption: where it is wrong, the program runs again without
    this."""
    cond = t.realize(cond)
    if not isinstance(cond, TensorVariable) or cond.fake.dtype is not torch.bool:
        return NotImplemented
    return t.inline_live(check_tensor_all, [error, cond, message or Constant(None)], {})


@rule((math.isnan, math.isinf), Symbolic)
def not_finite(t, self):
    """A float that came in is finite: no other is ever symbolic."""
    return Constant(False) if self.source is not None or self.type is int else NotImplemented


# -- tensors made of numbers ------------------------------------------------------------


@rule(torch.Tensor.new_tensor, TensorVariable)
def new_tensor(t, self, data, **how):
    """As `torch.tensor`, of the type and on the device of a tensor."""
    own = {"dtype": Constant(self.fake.dtype), "device": Constant(self.fake.device)}
    return tensor_of_numbers(t, data, **{**own, **how})


def _make_legacy(t, cls, args, kwargs) -> Variable:
    """`torch.FloatTensor(…)` and `torch.Tensor(…)`: sizes, or data in a list or tuple."""
    dtype = torch.get_default_dtype() if cls is torch.Tensor else cls.dtype
    how = {"dtype": Constant(dtype), "device": Constant(torch.device("cpu"))}
    args = [t.realize(arg) for arg in args]
    first = args[0] if args else None
    if kwargs or torch.tensor(()).device.type != "cpu":
        raise GraphBreak("unknown_call", f"making a {cls.__name__}")
    if first is None or all(_is_size(arg) for arg in args):
        return t.graph.call(torch.empty, args or [Constant(0)], how)
    if len(args) == 1 and isinstance(first, TupleVariable) and first.cls is torch.Size:
        return t.graph.call(torch.empty, args, how)
    if len(args) == 1 and type(first) in (ListVariable, TupleVariable):
        return apply(t, torch.tensor, args, how)
    raise GraphBreak("unknown_call", f"making a {cls.__name__} of a {first.describe()}")


def _is_size(value: Variable) -> bool:
    return _is_symbolic_int(value) or isinstance(value, Constant) and value.type is int


def _legacy(cls: Any) -> None:
    @rule(cls)
    def make(t, *args, **kwargs):
        return _make_legacy(t, cls, args, kwargs)


CONSTRUCTORS[torch.Tensor] = _make_legacy
for _cls in (torch.FloatTensor, torch.DoubleTensor, torch.HalfTensor, torch.BFloat16Tensor,
             torch.ByteTensor, torch.CharTensor, torch.ShortTensor, torch.IntTensor,
             torch.LongTensor, torch.BoolTensor):  # fmt: skip
    _legacy(_cls)


# Functions of torch that take a length as an int of C++, and so fix it, with the names of their
# numbers; the length is the last of these.
_BY_LENGTH: dict[Any, tuple[str, ...]] = {
    torch.linspace: ("start", "end", "steps"),
    torch.logspace: ("start", "end", "steps"),
    **dict.fromkeys(
        (torch.hann_window, torch.hamming_window, torch.blackman_window, torch.bartlett_window,
         torch.kaiser_window), ("window_length",),
    ),
}  # fmt: skip
_PLAIN_HOW = {"dtype", "device", "layout"}


def _by_length(function, names: tuple[str, ...]) -> None:
    @rule(function)
    def of_length(t, *args, **kwargs):
        args = list(args)
        while len(args) < len(names) and names[len(args)] in kwargs:
            args.append(kwargs.pop(names[len(args)]))
        args = [t.realize(arg) for arg in args]
        numbers = all(isinstance(arg, Constant | Symbolic) for arg in args)
        if len(args) < len(names) or not numbers or kwargs.keys() - _PLAIN_HOW:
            return NotImplemented
        length = args[len(names) - 1]
        if not _is_symbolic_int(length) or not t.shapes.holds(length.value >= 0):
            return NotImplemented

        def on_fakes(*values, **how):
            # A row of two is like all others but for its length.
            known = [1 if isinstance(each, _SYMBOLIC) else each for each in values]
            known[len(names) - 1] = 2
            return function(*known, **how).new_empty(values[len(names) - 1])

        return t.graph.call(function, args, kwargs, on_fakes)


_SYMBOLIC = (torch.SymInt, torch.SymFloat)
for _function, _names in _BY_LENGTH.items():
    _by_length(_function, _names)


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
