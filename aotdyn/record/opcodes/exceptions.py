"""Exceptions and `with`. Unwinding itself is in `interpreter.py`."""

from ..members import lookup
from ..operation import apply, call, special_method
from ..polyfills import groups
from ..signals import GraphBreak, Raised
from ..variables import (
    Constant,
    ExceptionVariable,
    HandledVariable,
    Known,
    Opaque,
    TupleVariable,
)
from .table import opcode


@opcode
def RAISE_VARARGS(t, frame, ins):
    if ins.arg == 0:
        if t.handled is None:
            # A caller of the entry may be handling one.
            raise GraphBreak("exception", "a bare raise")
        raise Raised(t.handled)
    cause = t.realize(frame.pop()) if ins.arg == 2 else None
    value = _exception(t, frame.pop(), "exceptions")
    if cause is not None and not (isinstance(cause, Constant) and cause.value is None):
        cause = _exception(t, cause, "exception causes")
    chain(t, value, cause)
    if ins.arg == 2:
        value.suppressed = True
    raise Raised(value)


def chain(t, value: ExceptionVariable, cause) -> None:
    """Sets what an exception that is raised comes from."""
    if value.source is not None:
        # Its traceback and context change where it is really raised.
        if cause is not None or t.handled is not value:
            raise GraphBreak("exception", "an exception made before this point is raised")
        return
    if cause is not None:
        value.cause = cause
    if t.handled is None or t.handled is value:
        return
    outer, seen = t.handled, []
    # A program may have tied the chain into a ring before.
    while outer.context is not None and not any(outer is each for each in seen):
        if outer.context is value:
            # The chain must end.
            outer.context = None
            break
        seen.append(outer)
        outer = outer.context
    value.context = t.handled


def _exception(t, value, role: str) -> ExceptionVariable:
    """An exception from what stands behind `raise`, or its `from`: an instance or a class."""
    value = t.realize(value)
    if isinstance(value, Known) and isinstance(value.value, type):
        value = call(t, value, [])
    if isinstance(value, Constant):
        t.raise_exception(TypeError, f"{role} must derive from BaseException")
    if not isinstance(value, ExceptionVariable):
        raise GraphBreak("exception", value.describe())
    return value


@opcode
def PUSH_EXC_INFO(t, frame, ins):
    value = t.realize(frame.pop())
    frame.push(HandledVariable(value, t.handled, frame.raised_at))
    frame.push(value)
    t.handled = value


@opcode
def POP_EXCEPT(t, frame, ins):
    ended = frame.pop()
    ended.active = False
    t.handled = ended.previous


@opcode
def CHECK_EXC_MATCH(t, frame, ins):
    kind = t.realize(frame.pop())
    raised = t.realize(frame.stack[-1])
    kinds = kind.items if isinstance(kind, TupleVariable) else [kind]
    classes = tuple(t.constant(k) for k in kinds)
    if not all(isinstance(c, type) and BaseException in c.__mro__ for c in classes):
        t.raise_exception(
            TypeError, "catching classes that do not inherit from BaseException is not allowed"
        )
    # Not `issubclass`: handlers do not ask the metaclass.
    frame.push(Constant(any(cls in raised.type.__mro__ for cls in classes)))


@opcode
def CHECK_EG_MATCH(t, frame, ins):
    """[exception, classes] -> [what is left, what matches], each None where there is nothing."""
    kind = t.realize(frame.pop())
    kinds = [t.constant(k) for k in (kind.items if isinstance(kind, TupleVariable) else [kind])]
    if not all(isinstance(c, type) and issubclass(c, BaseException) for c in kinds):
        t.raise_exception(
            TypeError, "catching classes that do not inherit from BaseException is not allowed"
        )
    if any(issubclass(c, BaseExceptionGroup) for c in kinds):
        t.raise_exception(
            TypeError,
            "catching ExceptionGroup with except* is not allowed. Use except instead.",
        )
    found = t.inline_live(groups.match, [frame.pop(), kind], {})
    matched, rest = (t.realize(part) for part in t.realize(found).items)
    frame.push(rest)
    frame.push(matched)
    if isinstance(matched, ExceptionVariable):
        t.handled = matched
        handler = [v for v in frame.stack if isinstance(v, HandledVariable) and v.active][-1]
        handler.exception = matched
        if frame.caller is None:
            # A part of the group that exists in the trace only is made by this instruction.
            handler.step = t.step


@opcode
def PREP_RERAISE_STAR(t, frame, ins):
    """[exception, what the clauses have raised] -> [what is to be raised, or None]."""
    frame.push(t.inline_live(groups.prepare_reraise, frame.pop_many(2), {}))


@opcode
def RERAISE(t, frame, ins):
    raise Raised(t.realize(frame.pop()))


def _require_context(t, cls: type) -> None:
    """`cls` has what a context manager needs."""
    for name, problem in (("__enter__", ""), ("__exit__", " (missed __exit__ method)")):
        if lookup(t, cls, name)[1] is None:
            t.raise_exception(TypeError, f"{cls.__name__!r} object does not support the context "
                                         f"manager protocol{problem}")  # fmt: skip


@opcode
def BEFORE_WITH(t, frame, ins):
    manager = t.realize(frame.pop())
    if isinstance(manager, Opaque):
        raise GraphBreak("unknown_type", manager.describe())
    _require_context(t, manager.type)
    enter = special_method(t, manager, "__enter__")
    frame.push(special_method(t, manager, "__exit__"))
    frame.push(call(t, enter, []))


@opcode
def WITH_EXCEPT_START(t, frame, ins):
    """[exit, lasti, previous, exception] -> the same and the answer of exit(…)."""
    exit_, value = frame.stack[-4], t.realize(frame.stack[-1])
    if value.source is not None:
        traceback = apply(t, getattr, [value, Constant("__traceback__")])
    else:
        # Tracebacks are not modelled; an __exit__ that looks at one breaks.
        traceback = t.unmodelled("traceback")
    frame.push(call(t, exit_, [Known(value.type), value, traceback]))
