"""Running generators that the frame itself made: to the next yield, or with an exception thrown
in; and closing them."""

import builtins

from .invoke import run_inlined
from .opcodes.control import Return
from .opcodes.exceptions import chain
from .operation import apply, call
from .signals import GraphBreak, Raised, SkipFrame
from .variables import (
    Constant,
    ExceptionVariable,
    GeneratorVariable,
    ObjectVariable,
    TupleVariable,
    Variable,
)

NONE = Constant(None)
# The operand of RESUME behind the yield of a `yield from`.
_YIELD_FROM = 2


def step_generator(t, generator: GeneratorVariable, sent: Variable) -> Variable | None:
    """Runs a generator to its next yield. Returns what it yields, None when it has returned;
    its return value is then in `generator.result`."""
    _check_idle(t, generator)
    if generator.finished:
        generator.result = NONE
        return None
    _touch(t, generator)
    if generator.started:
        generator.frame.push(sent)
    return _run(t, generator, None)


def throw_into(t, generator: GeneratorVariable, raised: ExceptionVariable) -> Variable | None:
    """As `step_generator`, with an exception raised where the generator waits."""
    _check_idle(t, generator)
    if generator.finished or not generator.started:
        generator.started = generator.finished = True
        raise Raised(raised)
    _touch(t, generator)
    frame = generator.frame
    if _waits_for_another(frame):
        return _throw_on(t, generator, raised)
    frame.index -= 1
    return _run(t, generator, Raised(raised))


def close_generator(t, generator: GeneratorVariable) -> None:
    """Ends a generator by GeneratorExit."""
    _check_idle(t, generator)
    if generator.finished or not generator.started:
        generator.started = generator.finished = True
        return
    try:
        yielded = throw_into(t, generator, t.exception(GeneratorExit))
    except Raised as raised:
        if issubclass(raised.value.type, GeneratorExit | StopIteration):
            return
        raise
    if yielded is not None:
        t.raise_exception(RuntimeError, "generator ignored GeneratorExit")


def require_ended(t, writer) -> None:
    """No generator that the body does not make anew waits where its end would run code of the
    program: when Python drops it, its `finally` and `with` blocks are left.

    Raises SkipFrame for one that the root frame made: it knows best when it drops it. Raises
    GraphBreak for one made in a call below, to break at that call.
    """
    for generator, by_root in t.generators:
        frame = generator.frame
        waits = generator.started and not generator.finished and generator.source is None
        if not waits or writer.makes(generator):
            continue
        if not _ends_quietly(frame) or _closes_another(t, frame):
            detail = f"{frame.code.co_name} is left half way"
            if by_root:
                raise SkipFrame("generator", detail)
            raise GraphBreak("generator", detail, generator.origin)


def _ends_quietly(frame) -> bool:
    """Whether GeneratorExit, raised where a generator waits, runs no code of the program: around it
    are no handlers but `except` clauses for other exceptions."""
    decoded = frame.decoded
    entry = decoded.handler(frame.instruction.offset)
    while entry is not None:
        last = _last_if_not_caught(frame, decoded.at[entry.target])
        if last is None:
            return False
        entry = decoded.handler(decoded.instructions[last].offset)
    return True


def _closes_another(t, frame) -> bool:
    """Whether a generator waits in `yield from` for an iterator that may have to be closed, by code
    of the program; other generators are looked at by themselves."""
    if not _waits_for_another(frame):
        return False
    inner = t.realize(frame.stack[-1])
    if isinstance(inner, GeneratorVariable):
        return False
    return isinstance(inner, ObjectVariable) or hasattr(inner.type, "close")


def _waits_for_another(frame) -> bool:
    return frame.instruction.opname == "RESUME" and frame.instruction.arg == _YIELD_FROM


def _last_if_not_caught(frame, index: int) -> int | None:
    """The index of the RERAISE at which GeneratorExit leaves the handler that begins at an index;
    None if the handler is, or may be, one for it."""
    decoded = frame.decoded
    names = [ins.opname for ins in decoded.instructions[index : index + 3]]
    if names == ["COPY", "POP_EXCEPT", "RERAISE"]:
        return index + 2
    if names[0] != "PUSH_EXC_INFO":
        return None
    index += 1
    while (ins := decoded.instructions[index]).opname == "LOAD_GLOBAL":
        kind = frame.globals.get(ins.argval, getattr(builtins, ins.argval, None))
        check, jump = decoded.instructions[index + 1 : index + 3]
        if check.opname != "CHECK_EXC_MATCH" or not isinstance(kind, type):
            return None
        if issubclass(GeneratorExit, kind):
            return None
        index = decoded.at[jump.argval]
    return index if ins.opname == "RERAISE" else None


def _touch(t, generator: GeneratorVariable) -> None:
    """A generator that came in is about to be run on."""
    if generator.source is not None:
        if id(generator) not in t.effects.changed:
            generator.origin = t.step
        t.effects.touch(generator)


def _check_idle(t, generator: GeneratorVariable) -> None:
    if generator.running:
        t.raise_exception(ValueError, "generator already executing")


def _throw_on(t, generator: GeneratorVariable, raised: ExceptionVariable) -> Variable | None:
    """The generator waits in `yield from`: the inner iterator gets the exception first."""
    frame = generator.frame
    inner = t.realize(frame.stack[-1])
    try:
        if isinstance(inner, GeneratorVariable):
            if issubclass(raised.type, GeneratorExit):
                close_generator(t, inner)
                error: ExceptionVariable | None = raised
            else:
                yielded = throw_into(t, inner, raised)
                if yielded is not None:
                    return yielded
                error, result = None, inner.result
        else:
            error = raised
            name = "close" if issubclass(raised.type, GeneratorExit) else "throw"
            method = _method(t, inner, name)
            if method is not None and name == "throw":
                raise GraphBreak("generator", f"throw() into a {inner.describe()}")
            if method is not None:
                call(t, method, [])
    except Raised as other:
        error = other.value
        if issubclass(error.type, StopIteration):
            args = t.realize(error.args).items
            error, result = None, args[0] if args else NONE
    frame.index -= 1
    if error is not None:
        return _run(t, generator, Raised(error))
    # `yield from` is over: on behind its loop, with the value in place of the iterator.
    frame.pop()
    frame.push(result)
    send = frame.decoded.instructions[frame.index - 1]
    frame.index = frame.decoded.at[send.argval]
    return _run(t, generator, None)


def _method(t, inner: Variable, name: str) -> Variable | None:
    """The method of an iterator by which it learns of an exception, None if it has none."""
    try:
        return t.realize(apply(t, getattr, [inner, Constant(name)]))
    except Raised as raised:
        if issubclass(raised.value.type, AttributeError):
            return None
        if name == "close":
            raise GraphBreak("generator", "an error that Python only tells of") from None
        raise


def _run(t, generator: GeneratorVariable, raised: Raised | None) -> Variable | None:
    """Runs the frame on. What the generator is handling while it waits is its own: it comes and
    goes with it."""
    frame, outer = generator.frame, t.handled
    frame.caller = t.frame
    if not generator.started:
        generator.origin = t.step  # up to here it can be made again
    generator.started = generator.running = True
    if generator.handled is None:
        generator.outer = outer
    else:
        t.handled = generator.handled
        if raised is not None:
            chain(t, raised.value, None)
    try:
        outcome = run_inlined(t, frame, raised)
    except Raised as error:
        generator.finished = True
        if issubclass(error.value.type, StopIteration):
            if frame.is_polyfill:  # it takes the place of an iterator of C
                generator.result = NONE
                return None
            _refuse_stop(t, error.value)
        raise
    except BaseException:
        generator.finished = True
        raise
    finally:
        raised = None  # as in `run_inlined`
        generator.running = False
        generator.handled = t.handled if t.handled is not generator.outer else None
        t.handled = outer
    if type(outcome) is Return:
        generator.finished = True
        generator.result = t.realize(outcome.value)
        return None
    return outcome.value


def _refuse_stop(t, stop: ExceptionVariable) -> None:
    """PEP 479: a StopIteration that leaves a generator becomes a RuntimeError."""
    error = t.exception(RuntimeError, "generator raised StopIteration")
    error.cause = error.context = stop
    raise Raised(error) from None


def exception_to_throw(t, kind: Variable, value: Variable | None) -> ExceptionVariable:
    """The exception that `throw(kind, value)` raises."""
    kind = t.realize(kind)
    if not isinstance(kind, ExceptionVariable):
        args = [] if value is None else [t.realize(value)]
        if args and isinstance(args[0], ExceptionVariable):
            kind = args[0]
        elif args and isinstance(args[0], TupleVariable):
            kind = t.realize(call(t, kind, args[0].items))
        else:
            given = [arg for arg in args if not (isinstance(arg, Constant) and arg.value is None)]
            kind = t.realize(call(t, kind, given))
    if not isinstance(kind, ExceptionVariable):
        raise GraphBreak("exception", apply(t, type, [kind]).describe())
    return kind
