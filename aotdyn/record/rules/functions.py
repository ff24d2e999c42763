"""Functions that work on functions, the markers of aotdyn and torch, and text methods."""

import functools
import math
import operator
import warnings

import torch

from ... import markers
from ..operation import call, iterate
from ..signals import GraphBreak
from ..variables import Constant, Symbolic, Variable
from .table import rule

# -- markers ------------------------------------------------------------


@rule(markers.graph_break)
def graph_break(t, *args, **kwargs):
    raise GraphBreak("requested")


@rule(markers.is_compiling)
def is_compiling(t):
    return Constant(True)


@rule((markers.mark_dynamic, markers.maybe_mark_dynamic, markers.mark_static))
def mark(t, *args, **kwargs):
    raise GraphBreak("unknown_call", "a tensor is marked inside the frame")


# -- functools ------------------------------------------------------------


@rule(functools.reduce)
def reduce(t, function, iterable, initial=None):
    items = iterate(t, iterable)
    if initial is not None:
        items.insert(0, initial)
    if not items:
        t.raise_exception(TypeError, "reduce() of empty iterable with no initial value")
    result = items[0]
    for item in items[1:]:
        result = call(t, function, [result, item])
    return result


class PartialVariable(Variable):
    """`functools.partial` made in the frame."""

    __slots__ = ("function", "args", "kwargs")

    def __init__(self, function: Variable, args: list[Variable], kwargs: dict[str, Variable]):
        super().__init__()
        self.function = function
        self.args = args
        self.kwargs = kwargs

    @property
    def type(self) -> type:
        return functools.partial


@rule(functools.partial)
def partial(t, function, *args, **kwargs):
    return t.new(PartialVariable(t.realize(function), list(args), kwargs))


# -- numbers ------------------------------------------------------------


@rule(int, Symbolic)
def int_symbolic(t, self):
    return self if self.type is int else NotImplemented


@rule(operator.index, Symbolic)
def index_symbolic(t, self):
    return self if self.type is int else NotImplemented


@rule(float, Symbolic)
def float_symbolic(t, self):
    return t.graph.call(torch.sym_float, [self], {})


@rule((math.floor, math.ceil, math.trunc), Symbolic)
def round_symbolic(t, self):
    return self if self.type is int else NotImplemented


# -- text ------------------------------------------------------------


@rule(str.join, Constant)
def join(t, self, items):
    parts = [t.constant(item) for item in iterate(t, items)]
    return t.wrap_result(self.value.join(parts))


@rule(warnings.warn)
def warn(t, *args, **kwargs):
    raise GraphBreak("builtin_call", "warnings.warn")
