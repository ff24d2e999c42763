"""Making functions, returning, and generators."""

from ..iteration import advance
from ..operation import call_method
from ..signals import GraphBreak, Raised
from ..variables import (
    Constant,
    FunctionVariable,
    GeneratorVariable,
    IteratorVariable,
    ObjectVariable,
)
from .control import Return, Yield
from .table import opcode


@opcode
def RETURN_VALUE(t, frame, ins):
    return Return(frame.pop())


@opcode
def MAKE_FUNCTION(t, frame, ins):
    code = frame.pop().constant()
    closure = tuple(t.realize(frame.pop()).items) if ins.arg & 8 else ()
    annotations = frame.pop() if ins.arg & 4 else None
    kwdefaults = frame.pop() if ins.arg & 2 else None
    defaults = frame.pop() if ins.arg & 1 else None
    function = FunctionVariable(
        code,
        frame.globals,
        code.co_name,
        code.co_qualname,
        closure,
        defaults,
        kwdefaults,
        code_reference=t.nested_code(frame, code),
    )
    function.annotations = annotations
    frame.push(t.new(function))


@opcode
def RETURN_GENERATOR(t, frame, ins):
    """Met only in a frame that is not stepped as a generator: the entry's own."""
    raise GraphBreak("generator", frame.code.co_name)


@opcode
def YIELD_VALUE(t, frame, ins):
    return Yield(frame.pop())


@opcode
def SEND(t, frame, ins):
    """[receiver, value] -> [receiver, yielded], or jump with [result] when it is finished."""
    value = frame.pop()
    receiver = t.realize(frame.stack[-1])
    if not isinstance(receiver, IteratorVariable | ObjectVariable):
        raise GraphBreak("live_iterator", receiver.describe())
    try:
        yielded = _send(t, receiver, value)
    except Raised as raised:
        if not issubclass(raised.value.type, StopIteration):
            raise
        args = t.realize(raised.value.args).items
        result = args[0] if args else Constant(None)
    else:
        if yielded is not None:
            frame.push(yielded)
            return None
        result = Constant(None)
    frame.pop()
    frame.push(result)
    return ins.argval


def _send(t, receiver, value):
    """What the receiver yields; None at the end of an iterator that has no result."""
    value = t.realize(value)
    if not (isinstance(value, Constant) and value.value is None):
        return call_method(t, receiver, "send", [value])
    if isinstance(receiver, GeneratorVariable | ObjectVariable):
        return call_method(t, receiver, "__next__", on_class=True)
    return advance(t, receiver)
