"""Exceptions and `with`. Unwinding itself is in `interpreter.py`."""

from ..operation import call, call_method, special_method
from ..signals import GraphBreak, Raised
from ..variables import Constant, ExceptionVariable, Known, Opaque, TupleVariable
from .table import opcode


@opcode
def RAISE_VARARGS(t, frame, ins):
    if ins.arg == 0:
        if t.handled is None:
            t.raise_exception(RuntimeError, "No active exception to reraise")
        raise Raised(t.handled)
    cause = frame.pop() if ins.arg == 2 else None
    value = _exception(t, frame.pop())
    if cause is not None:
        if not (isinstance(cause, Constant) and cause.value is None):
            cause = _exception(t, cause)
        value.cause = cause
    if value.context is None and t.handled is not value:
        value.context = t.handled
    raise Raised(value)


def _exception(t, value) -> ExceptionVariable:
    """An exception from what stands behind `raise`: an instance or a class."""
    value = t.realize(value)
    if isinstance(value, Known) and isinstance(value.value, type):
        value = call(t, value, [])
    if not isinstance(value, ExceptionVariable):
        raise GraphBreak("exception", value.describe())
    return value


@opcode
def PUSH_EXC_INFO(t, frame, ins):
    value = frame.pop()
    frame.push(t.handled if t.handled is not None else Constant(None))
    frame.push(value)
    t.handled = value


@opcode
def POP_EXCEPT(t, frame, ins):
    previous = frame.pop()
    t.handled = previous if isinstance(previous, ExceptionVariable) else None


@opcode
def CHECK_EXC_MATCH(t, frame, ins):
    kind = t.realize(frame.pop())
    raised = frame.stack[-1]
    kinds = kind.items if isinstance(kind, TupleVariable) else [kind]
    classes = tuple(t.realize(k).constant() for k in kinds)
    frame.push(Constant(issubclass(raised.type, classes)))


@opcode
def RERAISE(t, frame, ins):
    raise Raised(frame.pop())


@opcode
def BEFORE_WITH(t, frame, ins):
    manager = t.realize(frame.pop())
    if isinstance(manager, Opaque):
        raise GraphBreak("unknown_type", manager.describe())
    exit_ = special_method(t, manager, "__exit__")
    if frame.caller is None:
        t.contexts[id(exit_)] = (exit_, t.step)
    frame.push(exit_)
    frame.push(call_method(t, manager, "__enter__"))


@opcode
def WITH_EXCEPT_START(t, frame, ins):
    """[exit, lasti, previous, exception] -> the same and the answer of exit(…)."""
    exit_, value = frame.stack[-4], frame.stack[-1]
    # Tracebacks are not modelled; an __exit__ that looks at one breaks.
    traceback = t.unmodelled("traceback")
    frame.push(call(t, exit_, [Known(value.type), value, traceback]))
