"""Making functions, returning, and generators."""

from ..operation import call_method
from ..signals import GraphBreak, Raised
from ..variables import Constant, FunctionVariable, GeneratorVariable, IteratorVariable, Lazy
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
    receiver = frame.stack[-1]
    if type(receiver) is Lazy or not isinstance(receiver, IteratorVariable):
        raise GraphBreak("live_iterator", receiver.describe())
    try:
        if isinstance(receiver, GeneratorVariable) and value.constant() is not None:
            yielded = call_method(t, receiver, "send", [value])
        else:
            yielded = call_method(t, receiver, "__next__")
    except Raised as raised:
        if not issubclass(raised.value.type, StopIteration):
            raise
        frame.pop()
        args = raised.value.args.items
        frame.push(args[0] if args else Constant(None))
        return ins.argval
    frame.push(yielded)
    return None
