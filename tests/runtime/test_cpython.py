"""Frames started, resumed and replaced: every instruction of a collection of programs is an entry.

The driver runs a program under `sys.settrace`, copies the real frame out of the interpreter before
an instruction, lets `native` take over from there in a thread of its own (where no exception is
being handled) and compares result, exception, its lines and the events with an undisturbed run.
"""

import contextlib
import ctypes
import dataclasses
import dis
import functools
import inspect
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import types
import unittest.case
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aotdyn.package.point import RESUME, Point
from aotdyn.runtime import cpython
from aotdyn.runtime.cpython import (
    native,
    released,
    replaces,
    resume_code,
    start_code,
    trampoline_code,
)

EVENTS = []


def note(value):
    EVENTS.append(value)
    return value


class Context:
    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        note(("enter", self.name))
        return self

    def __exit__(self, kind, error, trace):
        note(("exit", self.name, kind, str(error)))
        return self.swallow


# The collection: each program is a function without side effects on its arguments, or its maker.

PROGRAMS = {}


def program(*args, make=False, **kwargs):
    """Adds the function (with `make` what the function returns, made anew for each run)."""

    def add(function):
        made = function if make else lambda: function
        PROGRAMS[function.__name__] = made, args, kwargs
        return function

    return add


@program(4)
def loops(n):
    total = 0
    for i in range(n):
        for j in range(i):
            if j == 2:
                continue
            total += note(i * j) + 1
        else:
            total -= 1
        if total > 6:
            break
    while n:
        n -= 1
        total += n
    return total, i, j


@program(2)
def contexts(n):
    out = []
    for i in range(n):
        with Context(i) as c, Context("in", swallow=True):
            out.append(c.name)
            if i:
                raise KeyError(i)
            out.append("end")
        note(out)
    return out


@program(0)
def raising_context(n):
    with Context("a"):
        with Context("b"):
            note(n)
            return 1 // n


@program("x")
def handlers(key):
    out = []
    try:
        try:
            out.append({}[note(key)])
        except (TypeError, ValueError):
            out.append("wrong")
        except KeyError as error:
            out.append(str(error))
            try:
                raise ValueError("inner") from error
            except ValueError as inner:
                out.append((str(inner), str(inner.__cause__), str(sys.exc_info()[1])))
            out.append(str(sys.exc_info()[1]))
            raise
        else:
            out.append("else")
        finally:
            note(("finally", str(sys.exc_info()[1])))
    except LookupError:
        out.append(repr(sys.exc_info()[1]))
    out.append(sys.exc_info()[0])
    return out


@program()
def reraising():
    try:
        note("try")
        raise KeyError("first")
    except KeyError:
        try:
            note("handler")
            raise ValueError("second")
        finally:
            note("finally")


@program()
def returning_finally():
    for i in range(3):
        try:
            if i == 1:
                continue
            note(i)
            1 / 0
        except ZeroDivisionError:
            if i == 2:
                return note("returned")
        finally:
            note(("finally", i))


@program()
def exception_groups():
    out = []
    try:
        raise ExceptionGroup("all", [KeyError(1), ValueError(2), TypeError(3)])
    except* KeyError as group:
        out.append(repr(group.exceptions))
    except* ValueError as group:
        out.append(repr(group.exceptions))
        raise
    finally:
        note(out)


@program()
def failing_assertion():
    value = [1, 2]
    assert len(value) == 3, f"{value!r:>8} has {len(value)}"


@program(1, 2)
def shared_cells(a, b):
    total = a

    def add(n):
        nonlocal total, b
        total += n
        b += 1
        return total

    x = add(10) + add(b)
    del a
    return [add(i) for i in range(2)], total, b, x, (lambda: b)()


@program(3)
def cell_first(a):
    get = lambda: a
    a = note(get()) + 1
    return get(), a


@program()
def cells_only():
    x = note(1)
    return (lambda: x)() + note(x)


@program()
def deleted_cell():
    x = 1
    f = lambda: x  # noqa: F821
    del x
    try:
        f()
    except NameError as error:
        return str(error)


@program(1, 2, 3, 4, k=5, z=6)
def all_kinds(a, /, b, *rest, k, d=7, **more):
    c = note(a + b)
    return a, b, rest, k, d, more, c


@program()
def nothing():
    return max(note(1), min(note(2), note(3)))


@program(make=True)
def free_only():
    x, y = 1, 2

    def inner():
        return max(note(x), min(note(y), x + y), *[note(y)], key=int)

    return inner


@program(make=True)
def free_assigned():
    x, y = 1, 2

    def inner():
        nonlocal x
        x = note(max(x, y)) + 1
        return max(x, note(y)), (lambda: x)()

    return inner


@program(make=True)
def free_and_own_cells():
    x = 1

    def inner(a, *rest):
        nonlocal x
        y = a
        f = lambda: (x, y, rest)
        x += note(y)
        y += 1
        return f(), f()

    return functools.partial(inner, 2, 3)


@program(5)
def comprehensions(n):
    a = [note(i) + n for i in range(2)]
    b = {i: j for i, j in zip("ab", a, strict=True)}
    c = sum(i * j for i in a for j in {1, 2})
    return a, b, c, [last := i for i in a if i], last


@program({"k": [1, 2, 3], "p": (4, 5)})
def matching(value):
    match value:
        case {"k": [1, *rest], "p": (x, y), **others} if note(x) > y:
            return rest, others
        case {"k": [first, second, third], "p": p} if note(second):
            return first, third, p
        case _:
            return None


@program([3, 1, 2])
def displays(items):
    first, *middle, last = items
    items[0:2] = [note(9), *middle]
    d = {"a": 1, **{"b": note(2)}, "c": 3}
    del d["a"], middle[0]
    text = f"{first:>{last + 3}}|{d!r}|{items[-1]}"
    ok = 0 < note(last) < 5 != first
    s = {*items, 4}
    return text, ok, s, not ok, -first, items[1:], first if ok else last, d.get("x", note("y"))


@program([1, 2])
def calls(a):
    kw = {"sep": "-", "end": ""}
    x = "{}{k}".format(note(a[0]), k=note("k"))
    y = dict(*[], **kw, extra=note(1))
    z = a.index(note(2), 0, *(2,))
    return x, y, z, print(end=note(""), *[], **{"sep": ""}), int(note("5"), base=8)


@program(1)
def nested_definitions(n):
    class Local:
        """doc"""

        k = note(n)

        def m(self, default=n):
            return __class__.k, default

    def f(a: int, *, b: str = note("b")) -> None:
        return a, b

    return Local().m(), f(1), f.__annotations__, Local.__doc__


class Base:
    def method(self, x):
        return note(x) + 1


class Derived(Base):
    def method(self, x):
        f = lambda: self
        y = super().method(x)
        return y + super().method(note(y)) + (f() is self)

    def plain(self, x):
        return note(super().method(x))


@program(make=True)
def super_in_cell():
    return functools.partial(Derived.method, Derived(), 1)


@program(make=True)
def super_plain():
    return functools.partial(Derived.plain, Derived(), 1)


@program(1)
def seen_locals(a):
    if a > 5:
        b = 1
    before = sorted(locals())
    b = [a]
    return before, sorted(locals()), eval("b"), "b" in dir()


@program()
def seen_no_locals():
    return sorted(note(locals())), max(locals(), default=0)


@program(2)
def unbound(n):
    for i in range(n):
        if i:
            late = i
        try:
            note(late)
        except UnboundLocalError as error:
            note(str(error))
    del i
    return late, i  # noqa: F821


@program(2)
def imports(n):
    import math
    from os.path import join as j

    global EVENTS_SEEN
    EVENTS_SEEN = n
    return math.floor(2.5), j("a", "b"), EVENTS_SEEN


def _wide_source(locals_, constants):
    lines = ["def wide(n):"]
    lines += [f"    v{i} = n + {i + 1000}" for i in range(locals_)]
    lines += [f"    f = lambda: (v{locals_ - 1}, v3)"]
    lines += ["    for a in range(2):"]
    lines += ["        with Context(a):"]
    lines += [f"            v{locals_ - 2} += note({constants + 1000} + len(str(v1))) "]
    lines += [f"    return [f(), {', '.join(f'v{i}' for i in range(locals_))}]"]
    return "\n".join(lines)


def _long_source(statements):
    body = "\n".join("            x = x + n" for _ in range(statements))
    return f"""
def long(n):
    x = 0
    for i in range(2):
        try:
{body}
            with Context(i):
                note(x)
                if i: raise KeyError(x)
        except KeyError as error:
            note(str(error))
    return max(x, note(i))
"""


def _compiled(source, name):
    scope = dict(globals())
    exec(compile(source, __file__, "exec"), scope)
    return scope[name]


WIDE = _compiled(_wide_source(320, 300), "wide")


# The driver


class Frame:
    """A stopped frame, read out of the interpreter's memory: values by slot, then the stack."""

    _FRAME_OF_OBJECT, _STACKTOP, _SLOTS = 24, 64, 72

    def __init__(self, frame):
        code, self.offset = frame.f_code, frame.f_lasti
        inner = ctypes.c_void_p.from_address(id(frame) + self._FRAME_OF_OBJECT).value
        top = ctypes.c_int.from_address(inner + self._STACKTOP).value
        slots = [self._object(inner + self._SLOTS + 8 * i) for i in range(top)]
        names = [*code.co_varnames, *(n for n in code.co_cellvars if n not in code.co_varnames)]
        bare = len(names) + len(code.co_freevars)
        by_name = dict(zip([*names, *code.co_freevars], slots, strict=False))
        self.point = Point(
            self.offset,
            tuple(slot is not None for slot in slots[bare:]),
            tuple(n for n in code.co_varnames if by_name[n] is None),
        )
        self.values = (
            *(None if n in code.co_cellvars else self._bare(by_name[n]) for n in code.co_varnames),
            *(self._bare(by_name[n]) for n in (*code.co_cellvars, *code.co_freevars)),
            *(slot[0] for slot in slots[bare:] if slot is not None),
        )

    @staticmethod
    def _object(address):
        if not ctypes.c_void_p.from_address(address).value:
            return None
        return (ctypes.py_object.from_address(address).value,)

    @staticmethod
    def _bare(slot):
        return None if slot is None else slot[0]


class Abandoned(BaseException):
    """Ends the original's run after the resumed one has told what it did."""


def outcome(call, codes):
    """What a run did: result or exception, the lines it was raised through, the events."""
    names = {(code.co_qualname, code.co_filename) for code in codes}
    try:
        ended = "returned", call()
    except Exception as error:
        lines, trace = [], error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if any((code.co_qualname, code.co_filename) == known for known in names):
                lines.append(trace.tb_lineno)
            trace = trace.tb_next
        ended = "raised", type(error), str(error), lines
    return ended, list(EVENTS)


def in_thread(call):
    """Runs it where no exception is being handled, and where none stays so.

    A trace function that raises at `POP_EXCEPT` leaves the handled exception behind.
    """
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


class Stopper:
    """A trace function that stops the first frame of a code before its n-th instruction."""

    def __init__(self, code, step, act):
        self.code, self.step, self.act, self.frame, self.steps = code, step, act, None, 0

    def __call__(self, frame, event, arg):
        if self.frame is not None or frame.f_code is not self.code:
            return None
        self.frame = frame
        frame.f_trace_opcodes = True
        return self.local

    def local(self, frame, event, arg):
        if event == "opcode":
            if self.steps == self.step:
                self.act(frame)
                raise Abandoned
            self.steps += 1
        return self.local

    def run(self, call):
        in_thread(lambda: self._run(call))
        return self.steps

    def _run(self, call):
        EVENTS.clear()
        sys.settrace(self)
        try:
            call()
        except (Abandoned, BaseExceptionGroup, Exception):  # except* wraps what it meets
            pass
        finally:
            sys.settrace(None)


def underlying(made):
    return made.func if isinstance(made, functools.partial) else made


def fresh_arguments(args):
    return [list(a) if isinstance(a, list) else a for a in args]


def refused_offsets(code):
    """Offsets where `resume_code` must refuse: cells not made yet, within one instruction or call.

    Found with `dis`, which the implementation does without.
    """
    refused, naming, wide = set(), False, False
    for instruction in dis.get_instructions(code):
        if wide or naming or instruction.opname in ("MAKE_CELL", "COPY_FREE_VARS"):
            refused.add(instruction.offset)
        wide = instruction.opname == "EXTENDED_ARG"
        if instruction.opname in ("KW_NAMES", "CALL"):
            naming = instruction.opname == "KW_NAMES"
    return refused


def resumed(code, globals_, stopped, step):
    """A call that runs a frame from where it was stopped, in one of the two ways, by turns."""
    if step % 2 or stopped.point.kind != RESUME:
        run = native(code, globals_, stopped.point)
        return lambda: run(*stopped.values)
    run = released(code, globals_, stopped.point, lambda made: None)
    values = [*stopped.values]

    def call():
        try:
            return run(values)
        finally:
            assert not values

    return call


def check_everywhere(make, args, kwargs, steps=None):
    """Resumes the program before each of its steps (or the given ones); returns how many."""
    code = underlying(make()).__code__
    refused, done = refused_offsets(code), 0
    EVENTS.clear()
    made = make()
    expected = in_thread(lambda: outcome(lambda: made(*fresh_arguments(args), **kwargs), (code,)))

    def count(frame):
        raise AssertionError("not reached")

    made = make()
    total = Stopper(code, -1, count).run(lambda: made(*fresh_arguments(args), **kwargs))
    for step in range(total) if steps is None else steps(total):
        made = make()
        seen = []

        def act(frame, made=made, seen=seen):
            stopped = Frame(frame)
            seen.append(stopped)
            if sys.exc_info()[1] is not None:
                refused.add(stopped.offset)
            if stopped.offset not in refused:
                run = resumed(code, underlying(made).__globals__, stopped, step)
                seen.append(in_thread(lambda: outcome(run, (code,))))

        Stopper(code, step, act).run(lambda made=made: made(*fresh_arguments(args), **kwargs))
        stopped, *actual = seen
        if stopped.offset in refused:
            with pytest.raises(ValueError, match="cannot be entered at offset"):
                resume_code(code, stopped.point)
        else:
            done += 1
            assert actual == [expected], (step, stopped.point)
    return done


@pytest.mark.parametrize("name", PROGRAMS)
def test_resuming_anywhere_is_the_original(name):
    made, args, kwargs = PROGRAMS[name]
    assert check_everywhere(made, args, kwargs) > 3


def test_many_locals_and_constants():
    code = WIDE.__code__
    assert code.co_nlocals > 256 and len(code.co_consts) > 256 and len(code.co_cellvars) == 2
    steps = check_everywhere(lambda: WIDE, (1,), {}, lambda n: range(0, n, 37))
    assert steps > 20


@pytest.mark.parametrize("statements", [3_000, 16_000])
def test_long_jumps(statements):
    function = _compiled(_long_source(statements), "long")
    assert len(function.__code__.co_code) // 2 > (65536 if statements > 10_000 else 10_000)
    first, second = (lambda n: [0, 3, 4, n // 3]), (lambda n: [n // 2 + 9, n - 90, n - 30, n - 2])
    assert check_everywhere(lambda: function, (1,), {}, lambda n: first(n) + second(n)) >= 5


def test_offset_of_a_resumed_frame_keeps_its_jump_distance():
    function = _compiled(_long_source(16_000), "long")
    code = function.__code__
    last = list(dis.get_instructions(code))[-1].offset
    resumed = resume_code(code, Point(last, (True,), ("x", "i", "error")))
    jump = [i for i in dis.get_instructions(resumed) if i.opname == "JUMP_FORWARD"][0]
    assert jump.arg == last // 2 > 65535
    assert native(code, function.__globals__, Point(last, (True,)))(1, 2, 3, 4, "top") == "top"


# Stacks by hand


def instruction(code, name, argval=None, nth=0):
    """The offset of the n-th such instruction, and that of the one after it."""
    all_ = [i for i in dis.get_instructions(code)]
    found = [k for k, i in enumerate(all_) if i.opname == name and argval in (None, i.argval)][nth]
    return all_[found].offset, all_[found + 1].offset


def test_null_under_a_call():
    def f(a, b):
        return divmod(a, len(b))

    # After the inner call: NULL, divmod, a, the inner call's result
    _, after = instruction(f.__code__, "CALL")
    point = Point(after, (False, True, True, True), ("a", "b"))
    assert native(f.__code__, globals(), point)(None, None, divmod, 17, 5) == (3, 2)
    point = Point(after, (False, True, True, True), ("b",))
    assert native(f.__code__, globals(), point)(0, None, divmod, 17, 5) == (3, 2)


def test_iterator_and_exit_on_the_stack():
    def f(n):
        out = []
        for i in range(n):
            with Context("w", swallow=True):
                out.append(10 // i)
        return out, i

    EVENTS.clear()
    context, out = Context("w", swallow=True), []
    _, after = instruction(f.__code__, "BINARY_OP")
    point = Point(after, (True, True, True, True, True))
    iterator = iter([0, 5])
    run = native(f.__code__, globals(), point)
    # append is a method already looked up: method, self, and the quotient below them the exit
    values = (9, out, 7, iterator, context.__exit__, list.append, out, "quotient")
    assert run(*values) == (["quotient", 2], 5)
    assert EVENTS == [
        ("exit", "w", None, "None"),
        ("enter", "w"),
        ("exit", "w", ZeroDivisionError, "integer division or modulo by zero"),
        ("enter", "w"),
        ("exit", "w", None, "None"),
    ]


def test_cells_stay_shared():
    def f():
        total = 0

        def add(n):
            nonlocal total
            total += n

        return (add(1), total, add)

    cell = types.CellType(40)
    add = types.FunctionType(f.__code__.co_consts[2], globals(), "add", None, (cell,))
    _, after = instruction(f.__code__, "STORE_FAST", "add")
    result = native(f.__code__, globals(), Point(after))(add, cell)
    assert result == (None, 41, add)
    result[2](1)
    assert cell.cell_contents == 42


def test_values_of_variables_in_cells_and_unbound_ones_are_ignored():
    def f(a, b):
        c = 1
        return (lambda: a)(), b, c

    junk = object()
    _, after = instruction(f.__code__, "RESUME")
    run = native(f.__code__, globals(), Point(after, (), ("c",)))
    assert run(junk, 2, junk, types.CellType(1)) == (1, 2, 1)


def test_convention_of_the_resume_function():
    def f(a, b):
        c = (lambda: b)()
        return [a, c]

    _, after = instruction(f.__code__, "STORE_FAST", "c")
    resumed = resume_code(f.__code__, Point(after))
    assert inspect.getargs(resumed).args == ["a", "b", "c"]
    assert resumed.co_cellvars == ("b",)
    function = types.FunctionType(resumed, globals())
    assert function(("own", types.CellType(0)), None, 3) == ["own", 3]
    assert (resumed.co_name, resumed.co_qualname) == ("f", f.__qualname__)
    assert resumed.co_code.endswith(f.__code__.co_code)


def test_argument_of_a_function_without_locals_is_gone():
    _, after = instruction(seen_no_locals.__code__, "RESUME")
    resumed = types.FunctionType(resume_code(seen_no_locals.__code__, Point(after)), globals())
    assert resumed((None,)) == ([], 0)


def test_too_many_free_variables_to_move():
    names = [f"v{i}" for i in range(300)]
    source = f"""
def outer():
    {"; ".join(f"{n} = {i}" for i, n in enumerate(names))}
    def f():
        return max({", ".join(names)})
    return f
"""
    f = _compiled(source, "outer")()
    _, after = instruction(f.__code__, "RESUME")
    with pytest.raises(ValueError, match="too many cells"):
        resume_code(f.__code__, Point(after))


# Tables


@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_and_handlers_of_the_original_are_kept(name):
    code = underlying(PROGRAMS[name][0]()).__code__
    offset = [i.offset for i in dis.get_instructions(code) if i.opname == "RESUME"][0]
    resumed = resume_code(code, Point(offset))
    shift = len(resumed.co_code) - len(code.co_code)
    positions = list(resumed.co_positions())
    assert positions[shift // 2 :] == list(code.co_positions())
    entry = (
        shift // 2 - len(resumed.co_code[:shift].partition(bytes((dis.opmap["RESUME"], 0)))[2]) // 2
    )
    first = code.co_firstlineno
    assert set(positions[:entry]) == {(first, first, None, None)}
    assert set(positions[entry : shift // 2]) == {(None, None, None, None)}
    rows = [
        row._replace(start=row.start + shift, end=row.end + shift, target=row.target + shift)
        for row in dis._parse_exception_table(code)
    ]
    assert dis._parse_exception_table(resumed) == rows


def test_a_resumed_frame_reports_call_line_and_return_events():
    def f(a):
        a += 1
        return a

    _, after = instruction(f.__code__, "STORE_FAST", "a")
    run = native(f.__code__, globals(), Point(after))
    seen = []

    def trace(frame, event, arg):
        if frame.f_code.co_name == "f":
            seen.append((event, frame.f_lineno - f.__code__.co_firstlineno, dict(frame.f_locals)))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert run(7) == 7
    finally:
        sys.settrace(before)
    assert [(event, line) for event, line, _ in seen] == [("call", 0), ("line", 2), ("return", 2)]
    assert seen[-1][2] == {"a": 7}


# What is refused


def handling(code):
    """How many exceptions are being handled at each reachable offset: a walk along all jumps.

    The implementation reads it off the exception table instead.
    """
    instructions = list(dis.get_instructions(code))
    position = {i.offset: k for k, i in enumerate(instructions)}
    rows = dis._parse_exception_table(code)
    counts, todo = {0: 0}, [0]

    def reach(offset, count):
        assert counts.setdefault(offset, count) == count
        if offset not in done:
            todo.append(offset)

    done = set()
    while todo:
        offset = todo.pop()
        if offset in done:
            continue
        done.add(offset)
        i, count = instructions[position[offset]], counts[offset]
        if i.opname not in NOT_RAISING:
            for row in [row for row in rows if row.start <= offset < row.end][:1]:
                reach(row.target, count)
        count += (i.opname == "PUSH_EXC_INFO") - (i.opname == "POP_EXCEPT")
        if i.opcode in (*dis.hasjrel, *dis.hasjabs):
            reach(i.argval, count)
        if i.opname not in NOT_FALLING_THROUGH:
            reach(instructions[position[offset] + 1].offset, count)
    return counts


NOT_RAISING = ("COPY", "POP_EXCEPT", "SWAP", "NOP", "POP_TOP", "PUSH_EXC_INFO", "LOAD_CONST")
NOT_RAISING += ("STORE_FAST", "JUMP_FORWARD")
NOT_FALLING_THROUGH = ("RETURN_VALUE", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD")
NOT_FALLING_THROUGH += ("JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")


def function_codes(code):
    if cpython.is_function(code) and not cpython.suspends(code):
        yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from function_codes(constant)


@pytest.mark.parametrize(
    "module", [contextlib, dataclasses, subprocess, tempfile, threading, socket, unittest.case]
)
def test_only_offsets_in_exception_handlers_are_refused(module):
    found = 0
    source = pathlib.Path(module.__file__).read_text(encoding="utf-8")
    for code in function_codes(compile(source, module.__file__, "exec")):
        refused = refused_offsets(code)
        for offset, count in handling(code).items():
            if offset in refused:
                continue
            found += bool(count)
            if count:
                with pytest.raises(ValueError, match="exception is being handled"):
                    resume_code(code, Point(offset))
            else:
                assert resume_code(code, Point(offset)).co_argcount == max(1, code.co_nlocals)
    assert found > 10


def generator():
    yield 1


async def coroutine():
    return 1


async def async_generator():
    yield 1


CLASS_BODY = compile("class C:\n  x = 1", "", "exec").co_consts[0]
NOT_FUNCTIONS = [CLASS_BODY, compile("x = 1", "", "exec")]


@pytest.mark.parametrize("function", [coroutine, async_generator])
def test_suspending_code_is_refused(function):
    for call in (
        lambda: resume_code(function.__code__, Point(4)),
        lambda: trampoline_code(function.__code__, print),
        lambda: native(function.__code__, globals(), Point(4)),
    ):
        with pytest.raises(ValueError, match="generator or a coroutine"):
            call()
    assert cpython.suspends(function.__code__)
    assert start_code(function.__code__).co_flags == function.__code__.co_flags


def counting(n, start=0):
    for i in range(start, n):
        try:
            got = yield i
        except KeyError as error:
            got = repr(error)
        yield n, got


def test_a_generator_begins_at_a_yield():
    with pytest.raises(ValueError, match="generator or a coroutine"):
        trampoline_code(counting.__code__, print)
    at, _ = instruction(counting.__code__, "YIELD_VALUE")
    unbound = ("got", "error")
    make = native(counting.__code__, globals(), Point(at, (True, True), unbound))

    def waiting():
        running = make(5, 0, 2, None, None, iter(range(3, 5)), "first")
        assert next(running) == "first"
        assert running.gi_frame.f_lineno == counting.__code__.co_firstlineno + 3
        return running

    assert waiting().send("sent") == (5, "sent")
    thrown = waiting()
    assert thrown.throw(KeyError("k")) == (5, "KeyError('k')")
    assert list(thrown) == [3, (5, None), 4, (5, None)]
    assert list(waiting()) == [(5, None), 3, (5, None), 4, (5, None)]
    with pytest.raises(IndexError):
        waiting().throw(IndexError)


@pytest.mark.parametrize("code", NOT_FUNCTIONS)
def test_bodies_of_modules_and_classes_are_refused(code):
    for call in (
        lambda: start_code(code),
        lambda: resume_code(code, Point(2)),
        lambda: trampoline_code(code, print),
    ):
        with pytest.raises(ValueError, match="not the code of a function"):
            call()


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (Point(1), "no instruction starts there"),
        (Point(-2), "no instruction starts there"),
        (Point(100_000), "no instruction starts there"),
        (Point(0), "cells are not made yet"),
        (Point(4, (), ("other",)), "no variable other"),
        (Point(4, (True,) * 50), "never has 50 values"),
    ],
)
def test_impossible_points_are_refused(point, message):
    with pytest.raises(ValueError, match=message):
        resume_code(shared_cells.__code__, point)


def test_the_end_of_the_code_is_not_a_point():
    with pytest.raises(ValueError, match="no instruction starts there"):
        resume_code(loops.__code__, Point(len(loops.__code__.co_code)))


def test_caches_are_not_points():
    offset, after = instruction(loops.__code__, "LOAD_GLOBAL")
    assert after - offset > 2
    with pytest.raises(ValueError, match="no instruction starts there"):
        resume_code(loops.__code__, Point(offset + 2))


# Starts and trampolines over random signatures


class Signature:
    """A random function: its text, and calls that fit it."""

    def __init__(self, positional, plain, keywords, star, kwargs, cells, free, defaults):
        self.args = [f"p{i}" for i in range(positional)]
        self.plain = [f"a{i}" for i in range(plain)]
        self.keywords = [f"k{i}" for i in range(keywords)]
        self.star, self.kwargs = star, kwargs
        self.names = [*self.args, *self.plain, *self.keywords]
        self.names += ["rest"] * star + ["more"] * kwargs
        self.cells = [n for n, chosen in zip(self.names, cells, strict=False) if chosen]
        self.free = [f"v{i}" for i in range(free)]
        self.defaults = dict(zip([*self.plain, *self.keywords], defaults, strict=False))

    def __repr__(self):
        return self.source()

    def source(self):
        optional = False
        parts = list(self.args) + ["/"] * bool(self.args)
        for name in self.plain:
            optional = optional or self.defaults.get(name, False)
            parts.append(f"{name}='default {name}'" if optional else name)
        parts += ["*rest"] if self.star else ["*"] * bool(self.keywords)
        parts += [f"{n}='d'" if self.defaults.get(n) else n for n in self.keywords]
        parts += ["**more"] * self.kwargs
        assigns = "; ".join(f"{v} = 'free {v}'" for v in self.free) or "pass"
        inner = f"(lambda: ({', '.join([*self.cells, *self.free, ''])}))" if self.names else "None"
        inner = inner if self.cells or self.free else "None"
        everything = ", ".join([*self.names, *self.free, "own", "extra()", "''"])
        return f"""
def outer():
    {assigns}
    def f({", ".join(parts)}):
        'the docstring'
        own = {inner}
        cell = 1
        extra = lambda: cell
        return ({everything.replace("own", "own and own()")})
    return f
"""

    def function(self):
        return _compiled(self.source(), "outer")()


signatures = st.builds(
    Signature,
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
    st.lists(st.booleans(), min_size=11, max_size=11),
    st.integers(0, 3),
    st.lists(st.booleans(), min_size=6, max_size=6),
)


def arguments_for(function, data):
    """A valid call's arguments and the values of the parameters in the order of `co_varnames`."""
    args, kwargs = [], {}
    parameters = inspect.signature(function).parameters.values()
    by_keyword = False
    for p in parameters:
        if p.kind == p.VAR_POSITIONAL:
            args += [] if by_keyword else data.draw(st.lists(st.integers(), max_size=2))
        elif p.kind == p.VAR_KEYWORD:
            kwargs |= data.draw(st.dictionaries(st.sampled_from("xyz"), st.integers()))
        else:
            by_keyword = by_keyword or p.kind == p.KEYWORD_ONLY
            if p.kind == p.POSITIONAL_OR_KEYWORD and not by_keyword:
                by_keyword = data.draw(st.booleans())
            if p.default is not p.empty and data.draw(st.booleans()):
                by_keyword = True
                continue
            value = data.draw(st.integers())
            if by_keyword and p.kind != p.POSITIONAL_ONLY:
                kwargs[p.name] = value
            else:
                args.append(value)
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    code = function.__code__
    ordered = [bound.arguments[n] for n in code.co_varnames[: cpython.parameter_count(code)]]
    return args, kwargs, ordered


@given(signatures, st.data())
@settings(max_examples=150, deadline=None)
def test_trampolines_hand_over_parameters_and_cells(signature, data):
    original = signature.function()
    args, kwargs, ordered = arguments_for(original, data)
    trampoline = trampoline_code(original.__code__, lambda *values: values)
    assert replaces(original.__code__, trampoline)
    function = types.FunctionType(
        trampoline,
        original.__globals__,
        original.__name__,
        original.__defaults__,
        original.__closure__,
    )
    function.__kwdefaults__ = original.__kwdefaults__
    given_values = function(*args, **kwargs)
    cells = original.__closure__ or ()
    assert given_values == (*ordered, *cells)
    assert all(a is b for a, b in zip(given_values[len(ordered) :], cells, strict=True))
    assert inspect.signature(function) == inspect.signature(original)
    assert function.__doc__ == original.__doc__
    for name in ("varnames", "cellvars", "freevars", "name", "qualname", "flags"):
        attribute = "co_" + name
        assert getattr(trampoline, attribute) == getattr(original.__code__, attribute)
    # The same code, entered with its values, is the function
    run = native(original.__code__, original.__globals__)
    assert run(*given_values) == original(*args, **kwargs)


@given(signatures, st.data())
@settings(max_examples=80, deadline=None)
def test_started_code_takes_everything_by_position(signature, data):
    original = signature.function()
    args, kwargs, ordered = arguments_for(original, data)
    started = start_code(original.__code__)
    assert started.co_argcount == len(ordered)
    assert not started.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    assert started.co_posonlyargcount == started.co_kwonlyargcount == 0
    function = types.FunctionType(
        started, original.__globals__, "started", None, original.__closure__
    )
    assert function(*ordered) == original(*args, **kwargs)


def test_a_trampoline_for_very_many_parameters_and_cells():
    names = [f"v{i}" for i in range(300)]
    free = [f"w{i}" for i in range(300)]
    source = f"""
def outer():
    {"; ".join(f"{n} = {i}" for i, n in enumerate(free))}
    def f({", ".join(names)}):
        return ({", ".join(names + free)}), lambda: ({", ".join(names)})
    return f
"""
    f = _compiled(source, "outer")()
    code = trampoline_code(f.__code__, lambda *values: values)
    g = types.FunctionType(code, globals(), "g", None, f.__closure__)
    values = g(*range(300))
    assert values == (*range(300), *f.__closure__)
    assert native(f.__code__, globals())(*values)[0] == (*range(300), *range(300))


def test_what_looks_for_its_caller_passes_over_trampolines_and_adapters():
    def f(a):
        warnings.warn("who calls?", stacklevel=2)
        return a

    run = native(f.__code__, globals())
    g = types.FunctionType(trampoline_code(f.__code__, run), globals())
    with pytest.warns(UserWarning) as caught:
        line = sys._getframe().f_lineno + 1
        assert g(1) == 1
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, line)]


def test_a_trampoline_can_be_swapped_in():
    def f(a, *, b=2):
        return a + b

    f.__code__ = trampoline_code(f.__code__, native(f.__code__, globals()))
    assert f(1) == 3 and f(1, b=5) == 6


def test_a_trampolines_frame_shows_bare_parameters():
    def f(a, b):
        own = 1
        return lambda: (a, own)

    def target(*values):
        return sys._getframe(1).f_locals, values

    g = types.FunctionType(trampoline_code(f.__code__, target), globals())
    assert g(1, types.CellType(2))[0] == {"a": 1, "b": types.CellType(2)}


def test_code_that_does_not_fit():
    def f(a, b):
        return a, lambda: b

    def same(a, b):
        c = [a]
        return c, lambda: b

    def other_cells(a, b):
        return b, lambda: a

    def other_kinds(a, *b):
        return lambda: b

    assert replaces(f.__code__, same.__code__)
    assert not replaces(f.__code__, other_cells.__code__)
    assert not replaces(f.__code__, other_kinds.__code__)
    assert replaces(f.__code__, start_code(other_kinds.__code__))


def test_native_makes_one_function_where_nothing_is_free():
    started = native(loops.__code__, globals())
    assert isinstance(started, types.FunctionType) and started.__code__.co_argcount == 1


@pytest.mark.parametrize("point", [None, Point(2)])
def test_native_shows_the_code_it_makes(point):
    made = []
    native(loops.__code__, globals(), point, made.append)
    expected = resume_code(loops.__code__, point) if point else start_code(loops.__code__)
    assert made == [expected]


def test_native_uses_the_cells_it_is_given_at_each_call():
    def outer(x):
        def f(a):
            nonlocal x
            x += a
            return x

        return f

    f = outer(0)
    run = native(f.__code__, globals())
    assert [run(1, c) for c in (types.CellType(10), types.CellType(20))] == [11, 21]
    _, after = instruction(f.__code__, "RESUME")
    run = native(f.__code__, globals(), Point(after))
    cell = types.CellType(10)
    assert [run(1, cell), run(2, cell), cell.cell_contents] == [11, 13, 13]


# Frames that go on raising, that handle an exception, and single steps


def careful(a, log):
    try:
        b = a + 1
        log.append(int(b))
    except ValueError as error:
        log.append((str(error), sys.exc_info()[1] is error))
        b = 0
    finally:
        log.append("finally")
    return b


def offset_of(function, opname, index=0):
    found = [ins.offset for ins in dis.get_instructions(function) if ins.opname == opname]
    return found[index]


def test_a_frame_goes_on_raising():
    point = Point(offset_of(careful, "BINARY_OP"), (), ("error",), kind="raise")
    run = native(careful.__code__, globals(), point)
    log, error = [], ValueError("given")
    error.__context__ = KeyError("before")
    assert run("a", log, None, None, error) == 0
    assert log == [("given", True), "finally"]
    assert sys.exc_info() == (None, None, None)
    assert repr(error.__context__) == "KeyError('before')"


def test_a_raise_without_handler_leaves_the_frame_at_its_line():
    def plain(a):
        b = a
        return b + 1

    point = Point(offset_of(plain, "BINARY_OP"), kind="raise")
    with pytest.raises(ValueError, match="given") as caught:
        native(plain.__code__, globals(), point)(1, 2, ValueError("given"))
    lines = [e.lineno for e in caught.traceback if "plain" in e.frame.code.name]
    assert [line + 1 for line in lines] == [plain.__code__.co_firstlineno + 2]


def test_a_handler_is_entered_with_its_exception():
    # On the stack: what was handled before.
    offset = offset_of(careful, "LOAD_GLOBAL", 2) - 2
    while careful.__code__.co_code[offset] != dis.opmap["LOAD_FAST"]:
        offset -= 2
    point = Point(offset, (True,), ("b",), (0,))
    log, error = [], ValueError("given")
    run = native(careful.__code__, globals(), point)
    try:
        raise KeyError("outer")
    except KeyError as outer:
        assert run(1, log, None, error, error) == 0
        assert sys.exc_info()[1] is outer
    assert log == [("given", True), "finally"]
    with pytest.raises(ValueError, match="an exception is being handled"):
        resume_code(careful.__code__, Point(offset, (True,), ("b",)))


def many_steps(a, b, c=1):
    return print(a, b, sep=c) or a[b] or [a, *b]


def test_a_step_runs_one_instruction():
    unbound = ("a", "b", "c")
    call = next(i.offset for i in dis.get_instructions(many_steps) if i.opname == "KW_NAMES")
    point = Point(call, (False, True, True, True, True), unbound, kind="step")
    seen = []

    def show(*args, **kwargs):
        frame = sys._getframe(1)
        seen.append((args, kwargs, frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals)))
        return "shown"

    run = native(many_steps.__code__, globals(), point)
    assert run(None, None, None, show, 1, 2, "x") == "shown"
    line = many_steps.__code__.co_firstlineno + 1
    assert seen == [((1, 2), {"sep": "x"}, "many_steps", line, {})]
    point = Point(offset_of(many_steps, "BINARY_SUBSCR"), (True, True), unbound, kind="step")
    run = native(many_steps.__code__, globals(), point)
    assert run(None, None, None, {"k": 5}, "k") == 5
    with pytest.raises(KeyError):
        run(None, None, None, {}, "k")


def test_a_step_without_result_returns_what_lies_below():
    def stores(a):
        a.x = 1

    point = Point(offset_of(stores, "STORE_ATTR"), (True, True, True), ("a",), kind="step")
    target = types.SimpleNamespace()
    assert native(stores.__code__, globals(), point)(None, None, 7, target) is None
    assert target.x == 7
