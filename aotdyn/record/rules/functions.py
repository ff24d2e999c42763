"""Functions that work on functions, the markers of aotdyn and torch, and text methods."""

import functools

from ... import markers
from ..iteration import each, is_iterable, iterate
from ..operation import call
from ..signals import GraphBreak, Raised
from ..variables import Constant, TextVariable
from .late_texts import realized, separated
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
    result = initial
    for item in each(t, iterable):
        result = item if result is None else call(t, function, [result, item])
    if result is None:
        t.raise_exception(TypeError, "reduce() of empty iterable with no initial value")
    return result


# -- text ------------------------------------------------------------


@rule(str.join, Constant)
def join(t, self, items):
    if not is_iterable(t, items):
        t.raise_exception(TypeError, "can only join an iterable")
    found = [realized(t, item) for item in iterate(t, items)]
    texts = [isinstance(i, Constant | TextVariable) and i.type is str for i in (self, *found)]
    if all(texts) and any(isinstance(item, TextVariable) for item in found):
        return separated(t, self.value, found)
    parts = [t.constant(item) for item in found]
    try:
        return t.wrap_result(self.value.join(parts))
    except TypeError as error:
        raise Raised(t.exception(TypeError, *error.args)) from None
