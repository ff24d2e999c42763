"""Calls. CPython 3.11 lays out [NULL, callable, arguments…]; the tracer always does."""

from ..iteration import iterate
from ..operation import apply, call
from ..variables import DictVariable, Null
from .table import opcode


@opcode
def KW_NAMES(t, frame, ins):
    frame.kw_names = frame.code.co_consts[ins.arg]


@opcode
def CALL(t, frame, ins):
    names, frame.kw_names = frame.kw_names, ()
    values = frame.pop_many(ins.arg)
    function = frame.pop()
    below = frame.pop()
    if type(below) is not Null:
        # A method that was loaded before a break: [method, self, arguments…].
        function, values = below, [function, *values]
    count = len(values) - len(names)
    kwargs = dict(zip(names, values[count:], strict=True))
    frame.push(call(t, function, values[:count], kwargs))


@opcode
def CALL_FUNCTION_EX(t, frame, ins):
    kwargs = {}
    if ins.arg & 1:
        mapping = t.realize(frame.pop())
        kwargs = keyword_arguments(t, mapping)
    args = iterate(t, frame.pop())
    function = frame.pop()
    frame.pop()
    frame.push(call(t, function, args, kwargs))


def keyword_arguments(t, mapping) -> dict:
    """The contents of a dict as keyword arguments."""
    if not isinstance(mapping, DictVariable):
        mapping = apply(t, dict, [mapping])
    t.complete(mapping)
    if not all(type(key) is str for key in mapping.items):
        t.raise_exception(TypeError, "keywords must be strings")
    return {key: value for key, (_, value) in mapping.items.items()}
