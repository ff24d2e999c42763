"""Generators that came into the frame from a body that has made them where they wait: they are run
on as those that the frame makes, and are as far afterwards."""

import types
from typing import Any

from ...package.reference import Import
from ...package.source import Attribute, Item, Source, WaitsAt
from ...package.waiting import waits_at
from ..frame import Frame
from ..invoke import rely_on_function
from ..signals import GraphBreak
from ..variables import (
    CellVariable,
    FunctionVariable,
    GeneratorVariable,
    Null,
    Variable,
)
from ..wrap import opaque, wraps


@wraps(types.GeneratorType)
def wrap_generator(t, value: Any, source: Source) -> Variable:
    try:
        state = waits_at(value)
    except TypeError:
        return opaque(t, value, source)
    t.guard("TYPE", source, Import("types", "GeneratorType"))
    held = WaitsAt(source)
    function = t.realize(t.lazy(state.function, Attribute(held, "function")))
    if not isinstance(function, FunctionVariable):
        # Another one in each call: a variant for each would serve nobody.
        return opaque(t, value, source)
    t.guard("EQUALS", Attribute(held, "place"), state.place)
    made = GeneratorVariable(_frame(t, function, state, Attribute(held, "values")), function, None)
    made.source, made.started = source, True
    t.generators.append((made, False))
    t.remember(value, made)
    return made


def _frame(t, function: FunctionVariable, state: Any, values: Source) -> Frame:
    """The generator's frame, as it stands."""
    code = function.code
    frame = Frame(code, function.globals, rely_on_function(t, function), function, t.frame)
    given = iter(
        t.lazy(value, Item(values, index)) for index, value in enumerate(state.values)
    )
    offset, stack, unbound = state.place
    boxed = {*code.co_cellvars, *code.co_freevars}
    for name in code.co_varnames:
        value = next(given)
        if name not in boxed and name not in unbound:
            frame.locals[name] = value
    for name in (*code.co_cellvars, *code.co_freevars):
        cell = t.realize(next(given))
        if not isinstance(cell, CellVariable):
            raise GraphBreak("generator", code.co_qualname)
        frame.cells[name] = cell
    frame.stack = [next(given) if there else Null() for there in stack]
    frame.index = frame.decoded.at[offset] + 1
    return frame
