"""CPython 3.11's bytecode: code objects that start, resume and replace a frame.

With `code_tables` the one place of the runtime that knows the bytecode. Linking builds resume
functions and native fallbacks with it, the hook gets its trampolines from it. Original bytecode is
never rewritten: new instructions stand in front of it or instead of it (one exception:
`_moved_slots`).
"""

import sys
from collections.abc import Callable, Iterator
from opcode import EXTENDED_ARG, _inline_cache_entries, hasfree, opmap, opname
from types import CodeType, FunctionType, TracebackType
from typing import Any, TypeVar

from aotdyn.package.point import RAISE, STEP, Point

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from .code_tables import (
    Handled,
    covering,
    delta_line,
    exception_table,
    first_line,
    handles_exception,
    line_of,
    no_line,
    row_of,
    shifted,
)
from .tracebacks import without_ours

if sys.version_info[:2] != (3, 11) or sys.implementation.name != "cpython":
    raise ImportError("aotdyn needs CPython 3.11: resume functions are made of its bytecode")

_F = TypeVar("_F", bound=Callable)

_OPTIMIZED, _NEWLOCALS, _VARARGS, _VARKEYWORDS = 0x01, 0x02, 0x04, 0x08
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
_SUSPENDABLE = _GENERATOR | _COROUTINE | _ITERABLE_COROUTINE | _ASYNC_GENERATOR

_PRELUDE = frozenset((opmap["MAKE_CELL"], opmap["COPY_FREE_VARS"]))
_CELL_OPS = frozenset(hasfree)
_KW_NAMES, _CALL = opmap["KW_NAMES"], opmap["CALL"]
_CALL_PREFIX = frozenset((_KW_NAMES, opmap["PRECALL"]))
_RERAISE = opmap["RERAISE"]

# The parameter of a resume function whose original has no local variable; no source can name it.
_FRAME = ".frame"


# `warnings` and `logging`, when they look for a caller, pass over frames of files with such a name,
# which are the import system's: so must they do with all that stands between a program's frames.
_INTERNAL = "importlib._bootstrap"


def internal_name(what: str) -> str:
    """The file name of generated code that stands between a program's frames."""
    return f"<aotdyn {_INTERNAL} {what}>"


def internal(function: _F) -> _F:
    """Decorates a function of the runtime that stands between a program's frames."""
    code = function.__code__
    function.__code__ = code.replace(co_filename=f"{code.co_filename} [{_INTERNAL}]")
    return function


def is_internal(code: CodeType) -> bool:
    """Whether `warnings` and `logging` pass over the frames of a code."""
    return "importlib" in code.co_filename and "_bootstrap" in code.co_filename


def suspends(code: CodeType) -> bool:
    """Whether calling the code makes a generator, a coroutine or an async generator."""
    return bool(code.co_flags & _SUSPENDABLE)


def is_function(code: CodeType) -> bool:
    """Whether the code is that of a function: module and class bodies keep locals in a dict."""
    both = _OPTIMIZED | _NEWLOCALS
    return code.co_flags & both == both


def parameter_count(code: CodeType) -> int:
    """How many leading names of `co_varnames` are parameters, `*args` and `**kwargs` included."""
    stars = bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + stars


def start_code(code: CodeType) -> CodeType:
    """The same code taking every parameter by position, in the order of `co_varnames`.

    What were `*args` and `**kwargs` is handed over as one tuple and one dict.
    """
    _require_function(code)
    return code.replace(
        co_argcount=parameter_count(code),
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(_VARARGS | _VARKEYWORDS),
    )


def resume_code(code: CodeType, point: Point) -> CodeType:
    """Code that sets up a frame as it is at `point` and runs the original from there.

    It takes every name of `co_varnames` by position (one argument where there is none) and has the
    free variables of `code`. The first argument is a tuple: that variable's own value, the cell
    objects of `co_cellvars`, the stack's values from bottom to top without the NULLs. Arguments of
    unbound variables, and of those kept in a cell, are ignored.

    The original's bytes follow a prefix unchanged, so tracebacks, `with` exits and exception
    handlers work as in the original. (With kind STEP nothing follows but the step.) Its name is the
    original's: programs look at their frames.

    A generator's code makes a generator, which gets to the point in its first step.

    ValueError: a coroutine's code, not a function's code, an unknown unbound name,
    a stack deeper than the code's, or an offset where no frame can be entered: not the start of an
    instruction, before its cells are made, between a call's keyword names and the call, or in an
    exception handler without saying what is handled there (`Point.handled`).
    """
    _require_function(code)
    _require_unsuspended(code, _SUSPENDABLE & ~_GENERATOR)
    _require_enterable(code, point)
    code = _with_a_local(code)
    if point.kind == STEP:
        return _step_code(code, point)
    prefix = _resume_prefix(code, point)
    return code.replace(
        co_argcount=code.co_nlocals,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(_VARARGS | _VARKEYWORDS),
        co_stacksize=max(code.co_stacksize, len(point.stack) + 5),
        co_consts=_prefix_consts(code, point),
        co_code=prefix + _raising(point) + code.co_code,
        co_linetable=_shifted_lines(code, point, prefix),
        co_exceptiontable=_shifted_handlers(code, point, prefix),
    )


class _End:
    """The answer of an exhausted iterator."""


END = _End()


def _step_code(code: CodeType, point: Point) -> CodeType:
    """Code that runs one instruction of the original, in a frame that looks like the original's,
    and returns its outcome (see `Point`). A call's three instructions count as one."""
    end, op, arg = next(
        (end, op, arg) for start, end, op, arg in _instructions(code.co_code)
        if start >= point.offset and op not in _CALL_PREFIX
    )  # fmt: skip
    prefix, constants = _resume_prefix(code, point) + _making(code), _prefix_consts(code, point)
    end_of, step = len(constants), code.co_code[point.offset : end]
    change = _STEPS.get(opname[op])
    if change is not None:
        step = change(arg, end_of)
    step += _op("RETURN_VALUE")
    entry = len(_entry(code)) // 2
    line = delta_line(line_of(code, end - 2) - code.co_firstlineno, len(step) // 2)
    return code.replace(
        co_argcount=code.co_nlocals,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(_VARARGS | _VARKEYWORDS),
        co_stacksize=max(code.co_stacksize, len(point.stack) + 5),
        co_consts=(*constants, END, True, False),
        co_code=prefix + step,
        co_linetable=first_line(entry) + no_line(len(prefix) // 2 - entry) + line,
        co_exceptiontable=b"",
    )


def _making(code: CodeType) -> bytes:
    """Instructions that make the cells, jumped over: `locals()` looks for them before the present
    one to learn whether a slot holds a cell or a value that is one."""
    making = b"".join(_op("MAKE_CELL", slot) for slot in _cell_slots(code))
    return _op("JUMP_FORWARD", len(making) // 2) + making if making else b""


def _spread_step(name: str, count: Callable[[int], int]) -> Callable[[int, int], bytes]:
    """A step that gives all that the instruction pushes, from bottom to top."""
    return lambda arg, end: _op(name, arg) + _op("BUILD_TUPLE", count(arg))


def _choice(jump: str, stays: bytes, leaves: bytes) -> bytes:
    """Returns one of two values, as a jump decides; what follows returns the second."""
    stays += _op("RETURN_VALUE")
    return _op(jump, len(stays) // 2) + stays + leaves


def _truth_step(arg: int, end: int) -> bytes:
    constants = (_op("LOAD_CONST", end + 1), _op("LOAD_CONST", end + 2))
    return _choice("POP_JUMP_FORWARD_IF_FALSE", *constants)


# Instructions whose step is another one: f(argument, index of the constant END) -> bytes.
_STEPS: dict[str, Callable[[int, int], bytes]] = {
    "BEFORE_WITH": _spread_step("BEFORE_WITH", lambda arg: 2),
    "UNPACK_SEQUENCE": _spread_step("UNPACK_SEQUENCE", lambda arg: arg),
    "UNPACK_EX": _spread_step("UNPACK_EX", lambda arg: (arg & 255) + (arg >> 8) + 1),
    "LOAD_METHOD": lambda arg, end: _op("LOAD_ATTR", arg),
    "FOR_ITER": lambda arg, end: _choice("FOR_ITER", b"", _op("LOAD_CONST", end)),
    **dict.fromkeys(
        (name for name in opmap if "JUMP" in name and ("_IF_TRUE" in name or "_IF_FALSE" in name)),
        _truth_step,
    ),
}


@internal
def rethrow(error: BaseException) -> None:
    """Raises an exception as it is: what it came from stays what it came from."""
    context = error.__context__
    try:
        raise error
    finally:
        error.__context__ = context
        # The traceback leads here: it would keep itself.
        del error, context


@internal
def adopt(error: BaseException) -> None:
    """The frame that calls, which an exception is about to leave, takes the place of the step that
    has raised it in the traceback: it is what holds the variables."""
    frame, trace = sys._getframe(1), error.__traceback__
    if trace is not None and _is_step_of(trace.tb_frame.f_code, frame.f_code):
        # Where the frame is now has no line, and no columns either.
        error.__traceback__ = TracebackType(
            trace.tb_next, frame, frame.f_lasti, trace.tb_lineno
        )  # fmt: skip


def _is_step_of(code: CodeType, of: CodeType) -> bool:
    """Whether a code object is made by `_step_code` from the original of another one."""
    return (
        END in code.co_consts
        and code.co_filename == of.co_filename
        and code.co_qualname == of.co_qualname
        and code.co_firstlineno == of.co_firstlineno
    )


def native(
    code: CodeType,
    globals: dict,
    point: Point | None = None,
    made: Callable[[CodeType], None] = lambda code: None,
) -> Callable:
    """A callable that takes frame values (see `Point`) and runs the frame as plain Python.

    Bytecode is made here, once, and shown to `made`; a call makes at most a function object around
    its cells. Raises what `start_code` and `resume_code` raise.
    """
    if point is None:
        start = start_code(code)
        made(start)
        return _native_start(start, globals)
    resume = resume_code(code, point)
    made(resume)
    return _native_resume(code, resume, globals, sum(point.stack) + (point.kind == RAISE))


def released(
    code: CodeType, globals: dict, point: Point, made: Callable[[CodeType], None]
) -> Callable:
    """A callable that takes a list of frame values, empties it, and runs the frame as plain Python
    from a point: nothing but the frame holds the values then.

    Raises what `resume_code` raises.
    """
    resume = _released_code(code, point)
    made(resume)
    if not code.co_freevars:
        return FunctionType(resume, globals)
    first = len(code.co_varnames) + len(code.co_cellvars)
    last, name = first + len(code.co_freevars), code.co_name

    def frame(values: list) -> Any:
        return FunctionType(resume, globals, name, None, tuple(values[first:last]))(values)

    return internal(frame)


def _released_code(code: CodeType, point: Point) -> CodeType:
    """As `resume_code`, taking one argument: a list of the frame values."""
    _require_function(code)
    _require_unsuspended(code)
    _require_enterable(code, point)
    given = len(code.co_varnames)
    cells = given + len(code.co_cellvars)
    raises = point.kind == RAISE
    leaves = not raises and code.co_code[point.offset] == _RERAISE
    count = cells + len(code.co_freevars) + sum(point.stack) + raises
    called = (rethrow,) if raises else (adopt,) if leaves else ()
    code = _with_a_local(code)
    constants, slots = len(code.co_consts), _cell_slots(code)

    def value(index: int) -> bytes:
        load = _op("LOAD_FAST", 0) + _op("LOAD_CONST", constants + index)
        return load + _op("BINARY_SUBSCR")

    parts = [_entry(code)]
    index = cells + len(code.co_freevars)
    for position, present in enumerate(point.stack):
        parts.append(value(index) if present else _op("PUSH_NULL"))
        if position in point.handled:
            parts.append(_op("PUSH_EXC_INFO") + _op("POP_TOP"))
        index += present
    if raises:
        parts.append(_op("PUSH_NULL") + _op("LOAD_CONST", constants + count + 1) + value(index))
    # What a slot holds: the value of a local variable, or a cell.
    held = {slot: slot for slot, name in enumerate(code.co_varnames[:given])
            if name not in point.unbound and name not in _boxed(code)}  # fmt: skip
    held |= {slot: given + index for index, slot in enumerate(slots)}
    parts += [value(index) + _op("STORE_FAST", slot) for slot, index in held.items() if slot]
    parts.append(value(held[0]) if 0 in held else b"")
    whole = 2 * _op("LOAD_CONST", constants + count) + _op("BUILD_SLICE", 2)
    parts.append(_op("LOAD_FAST", 0) + whole + _op("DELETE_SUBSCR"))
    parts.append(_op("STORE_FAST" if 0 in held else "DELETE_FAST", 0))
    if leaves:
        parts.append(_op("PUSH_NULL") + _op("LOAD_CONST", constants + count + 1) + _op("COPY", 3))
        parts.append(_op("PRECALL", 1) + _op("CALL", 1) + _op("POP_TOP"))
    parts.append(_op("PRECALL", 1) if raises else _op("JUMP_FORWARD", point.offset // 2))
    prefix, raising = b"".join(parts), _raising(point)
    return code.replace(
        co_argcount=1,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(_VARARGS | _VARKEYWORDS),
        co_stacksize=max(code.co_stacksize, len(point.stack) + 6),
        co_consts=(*code.co_consts, *range(count), None, *called),
        co_code=prefix + raising + code.co_code,
        co_linetable=_shifted_lines(code, point, prefix),
        co_exceptiontable=_shifted_handlers(code, point, prefix),
    )


def trampoline_code(code: CodeType, target: Callable) -> CodeType:
    """Code in place of `code` whose body is `return target(*parameters, *free cells)`.

    Parameters come in the order of `co_varnames` with the values the caller gave: a parameter that
    the original keeps in a cell is handed over bare. Signature, flags, names of locals, cells and
    free variables are the original's, so it fits the original's functions and frames. `target` is
    a constant of it and should be hashable, as code objects are hashed with their constants; a
    target that holds the code's owner keeps both alive, since code objects are not collected. An
    exception leaves it as it would the original: nothing of the call is in its traceback, and what
    the call held has been let go of.

    ValueError: a generator's or coroutine's code, or not a function's code.
    """
    _require_function(code)
    _require_unsuspended(code)
    parameters, first_free = parameter_count(code), _first_free(code)
    loads = [_op("LOAD_FAST", slot) for slot in range(parameters)]
    loads += [_op("LOAD_CLOSURE", first_free + i) for i in range(len(code.co_freevars))]
    start = _entry(code) + _op("PUSH_NULL") + _op("LOAD_CONST", 1) + b"".join(loads)
    called = start + _op("PRECALL", len(loads)) + _op("CALL", len(loads))
    dropped = b"".join(_op("DELETE_FAST", slot) for slot in range(parameters))
    returning = called + _op("RETURN_VALUE")
    body = returning + dropped + _LEAVING
    handled = Handled(len(start) // 2, len(called) // 2, len(returning) // 2, 0, False)
    return code.replace(
        co_filename=internal_name(f"call of {code.co_qualname}"),
        co_code=body,
        co_consts=(_docstring(code), target, without_ours),
        co_names=(),
        co_stacksize=len(loads) + 4,
        co_linetable=first_line(len(body) // 2),
        co_exceptiontable=row_of(handled),
    )


def replaces(code: CodeType, replacement: CodeType) -> bool:
    """Whether frames of `code` can run `replacement`: the same signature, cells and free variables.

    Whoever copies a frame's slots goes by their index and checks nothing, so this must.
    """
    return _layout(code) == _layout(replacement)


def _layout(code: CodeType) -> tuple:
    kinds = _OPTIMIZED | _NEWLOCALS | _VARARGS | _VARKEYWORDS | _SUSPENDABLE
    return (
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags & kinds,
        code.co_varnames[: parameter_count(code)],
        code.co_cellvars,
        code.co_freevars,
    )


# What can be asked of a code object before any bytecode is made


def _require_function(code: CodeType) -> None:
    if not is_function(code):
        raise ValueError(f"{code.co_qualname} is not the code of a function")


def _require_unsuspended(code: CodeType, kinds: int = _SUSPENDABLE) -> None:
    if code.co_flags & kinds:
        raise ValueError(f"{code.co_qualname} is a generator or a coroutine")


def _require_enterable(code: CodeType, point: Point) -> None:
    """ValueError unless `point` describes a frame of `code` that can exist."""
    known = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    if unknown := [name for name in point.unbound if name not in known]:
        raise ValueError(f"{code.co_qualname} has no variable {', '.join(unknown)}")
    # A step that leaves nothing on the stack has a value below to return.
    if len(point.stack) > code.co_stacksize + (point.kind == STEP):
        raise ValueError(
            f"{code.co_qualname} never has {len(point.stack)} values on its stack, "
            f"at most {code.co_stacksize}"
        )
    if reason := _not_enterable(code, point):
        raise ValueError(f"{code.co_qualname} cannot be entered at offset {point.offset}: {reason}")


def _not_enterable(code: CodeType, point: Point) -> str | None:
    """Why no frame can be entered there; None if one can."""
    offset = point.offset
    start = op = None
    naming = False  # between KW_NAMES and CALL the names are in the interpreter, not in the frame
    for start, _, op, _ in _instructions(code.co_code):
        if start >= offset:
            break
        naming = op == _KW_NAMES or (naming and op != _CALL)
    if start != offset:
        return "no instruction starts there"
    if op in _PRELUDE:
        return "its cells are not made yet"
    if naming:
        return "the keyword names of a call are not part of the frame"
    if not point.handled and point.kind != STEP and handles_exception(code, offset):
        return "an exception is being handled there"
    return None


def _instructions(bytecode: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(start, end, opcode, argument), EXTENDED_ARGs and inline caches being within start..end."""
    offset = start = arg = 0
    while offset < len(bytecode):
        op, arg = bytecode[offset], arg << 8 | bytecode[offset + 1]
        offset += 2 + 2 * _inline_cache_entries[op]
        if op != EXTENDED_ARG:
            yield start, offset, op, arg
            start, arg = offset, 0


def _first_free(code: CodeType) -> int:
    """The slot of the first free variable: after locals and those cells that are not locals."""
    return code.co_nlocals + sum(name not in code.co_varnames for name in code.co_cellvars)


def _cell_slots(code: CodeType) -> list[int]:
    """The slot of each name of `co_cellvars`: a local's own one, else one after the locals."""
    slots, following = [], code.co_nlocals
    for name in code.co_cellvars:
        if name in code.co_varnames:
            slots.append(code.co_varnames.index(name))
        else:
            slots.append(following)
            following += 1
    return slots


def _docstring(code: CodeType) -> str | None:
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) else None


# Assembling


def _op(name: str, arg: int = 0) -> bytes:
    """One instruction with the EXTENDED_ARGs it needs before and its inline caches after it."""
    op = opmap[name]
    wide = [(EXTENDED_ARG, arg >> shift & 255) for shift in (24, 16, 8) if arg >> shift]
    caches = bytes(2 * _inline_cache_entries[op])
    return b"".join(map(bytes, wide)) + bytes((op, arg & 255)) + caches


# Calls the constant 2 with the exception on top of the stack, and raises that as it is then.
_LEAVING = b"".join((
    _op("PUSH_NULL"), _op("LOAD_CONST", 2), _op("COPY", 3), _op("PRECALL", 1), _op("CALL", 1),
    _op("POP_TOP"), _op("RERAISE", 0),
))  # fmt: skip


def _entry(code: CodeType) -> bytes:
    """What every function begins with, less the making of cells."""
    free = len(code.co_freevars)
    start = _op("COPY_FREE_VARS", free) if free else b""
    if code.co_flags & _GENERATOR:
        start += _op("RETURN_GENERATOR") + _op("POP_TOP")
    return start + _op("RESUME", 0)


def _packed_count(code: CodeType, point: Point) -> int:
    return 1 + len(code.co_cellvars) + sum(point.stack) + (point.kind == RAISE)


def _prefix_consts(code: CodeType, point: Point) -> tuple:
    """The original's constants, then the indices of what is packed, then `rethrow` if it is
    needed."""
    indices = tuple(range(_packed_count(code, point)))
    return code.co_consts + indices + ((rethrow,) if point.kind == RAISE else ())


def _resume_prefix(code: CodeType, point: Point) -> bytes:
    """Instructions that build the frame of `point` out of the arguments and jump into the original.

    Not the jump, but the call that raises, is missing where the frame goes on raising.

    The tuple stays in slot 0 until all else is in place. It is indexed, not unpacked, because
    NULLs lie between its values on the stack.
    """
    slots, constants = _cell_slots(code), len(code.co_consts)

    def packed(index: int) -> bytes:
        load = _op("LOAD_FAST", 0) + _op("LOAD_CONST", constants + index)
        return load + _op("BINARY_SUBSCR")

    parts = [_entry(code)]
    index = 1 + len(slots)
    for position, present in enumerate(point.stack):
        parts.append(packed(index) if present else _op("PUSH_NULL"))
        if position in point.handled:  # leaves what was handled before in its place
            parts.append(_op("PUSH_EXC_INFO") + _op("POP_TOP"))
        index += present
    if point.kind == RAISE:
        raiser = _op("LOAD_CONST", constants + _packed_count(code, point))
        parts.append(_op("PUSH_NULL") + raiser + packed(index))
    own = 0
    for index, slot in enumerate(slots, 1):
        if slot == 0:
            own = index  # slot 0 holds a cell: that is its own value
        else:
            parts += packed(index), _op("STORE_FAST", slot)
    unbound = {code.co_varnames.index(name) for name in point.unbound if name not in _boxed(code)}
    if code.co_varnames == (_FRAME,):
        unbound.add(0)  # not the original's: `locals()` must not see it
    if 0 not in unbound:
        parts += packed(own), _op("STORE_FAST", 0)
    parts += [_op("DELETE_FAST", slot) for slot in sorted(unbound)]
    if point.kind == RAISE:
        parts.append(_op("PRECALL", 1))
    elif point.kind != STEP:
        parts.append(_op("JUMP_FORWARD", point.offset // 2))
    return b"".join(parts)


def _boxed(code: CodeType) -> set[str]:
    """Names whose value is in a cell: an empty cell says that they are unbound."""
    return {*code.co_cellvars, *code.co_freevars}


def _with_a_local(code: CodeType) -> CodeType:
    """The same code with at least one local variable, into which the first argument goes."""
    if code.co_varnames:
        return code
    return code.replace(co_varnames=(_FRAME,), co_nlocals=1, co_code=_moved_slots(code))


def _moved_slots(code: CodeType) -> bytes:
    """The bytecode of a code without locals, with all slots one higher.

    ValueError where a slot's number needs one more byte: jumps would have to be rewritten.
    """
    moved = []
    for start, end, op, arg in _instructions(code.co_code):
        instruction = code.co_code[start:end]
        if op in _CELL_OPS:
            instruction = _op(opname[op], arg + 1)
            if len(instruction) != end - start:
                raise ValueError(f"{code.co_qualname} has no local and too many cells to get one")
        moved.append(instruction)
    return b"".join(moved)


# Lines and exception handlers


def _raising(point: Point) -> bytes:
    """The call behind a prefix that raises, and what it would return to."""
    return _op("CALL", 1) + _op("NOP") if point.kind == RAISE else b""


def _shifted_lines(code: CodeType, point: Point, prefix: bytes) -> bytes:
    """The line table of a code behind a prefix."""
    entry = len(_entry(code)) // 2
    lines = first_line(entry) + no_line(len(prefix) // 2 - entry)
    return lines + _raising_line(code, point) + code.co_linetable


def _shifted_handlers(code: CodeType, point: Point, prefix: bytes) -> bytes:
    """The exception table of a code behind a prefix."""
    units = len(prefix) // 2
    rest = shifted(code.co_exceptiontable, units + len(_raising(point)) // 2)
    return _raising_row(code, point, units) + rest


def _raising_line(code: CodeType, point: Point) -> bytes:
    """Line table entries for the call that raises and the NOP behind it."""
    if point.kind != RAISE:
        return b""
    delta = line_of(code, point.offset) - code.co_firstlineno
    return delta_line(delta, len(_op("CALL", 1)) // 2) + delta_line(-delta, 1)


def _raising_row(code: CodeType, point: Point, unit: int) -> bytes:
    """The row of the exception table for the call that raises, in code units of the new code."""
    if point.kind != RAISE:
        return b""
    size = len(_op("CALL", 1)) // 2
    row = covering(list(exception_table(code.co_exceptiontable)), point.offset // 2)
    if row is None:
        return b""
    return row_of(Handled(unit, unit + size, row.target + unit + size + 1, row.depth, row.lasti))


def raised_at(code: CodeType, point: Point) -> Point | None:
    """Where a frame stands that was to go on at a point, and an exception comes instead; None where
    it leaves the frame."""
    row = covering(list(exception_table(code.co_exceptiontable)), point.offset // 2)
    if row is None:
        return None
    handled = tuple(position for position in point.handled if position < row.depth)
    return Point(point.offset, point.stack[: row.depth], point.unbound, handled, RAISE)


# Running


def _native_start(start: CodeType, globals: dict) -> Callable:
    if not start.co_freevars:
        return FunctionType(start, globals)
    values = _names("v", start.co_argcount)
    free = _names("f", len(start.co_freevars))
    return _adapter(start, globals, [*values, *free], free, values)


def _native_resume(code: CodeType, resume: CodeType, globals: dict, stack: int) -> Callable:
    values, cells = _names("v", code.co_nlocals), _names("c", len(code.co_cellvars))
    free, stacked = _names("f", len(code.co_freevars)), _names("s", stack)
    packed = ", ".join([*(values[:1] or ["None"]), *cells, *stacked])
    return _adapter(
        resume, globals, [*values, *cells, *free, *stacked], free, [f"({packed},)", *values[1:]]
    )


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{i}" for i in range(count)]


def _adapter(
    code: CodeType, globals: dict, names: list[str], free: list[str], arguments: list[str]
) -> Callable:
    """A function of `names` that calls `code`, closed over the names in `free`, with `arguments`.

    Made from text: taking exactly these parameters it is four times as fast as one that takes
    `*values` and slices them.
    """
    if free:
        callee = f"FunctionType(code, globals, name, None, ({', '.join(free)},))"
        scope = {"FunctionType": FunctionType, "code": code, "globals": globals}
        scope["name"] = code.co_name
    else:
        callee, scope = "function", {"function": FunctionType(code, globals)}
    # An exception among the values may be raised, with a traceback that leads here.
    text = (
        f"def frame({', '.join(names)}):\n"
        f"    try: return {callee}({', '.join(arguments)})\n"
        f"    finally: {'del ' if names else 'pass'}{', '.join(names)}"
    )
    exec(compile(text, internal_name(f"frame of {code.co_name}"), "exec"), scope)
    return scope["frame"]
