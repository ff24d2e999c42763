"""`contextvars` and `threading.local`: state that belongs to a context or a thread."""

import contextlib
import contextvars
import threading

import pytest
import torch

import aotdyn
from tests.record.programs import Programs, note

program = Programs()

SCALE = contextvars.ContextVar("scale", default=5)
UNSET = contextvars.ContextVar("unset")
HELD = contextvars.ContextVar("held")
HELD.set([1])


@contextlib.contextmanager
def scaled(value):
    token = SCALE.set(value)
    try:
        yield value
    finally:
        SCALE.reset(token)


class Depth(threading.local):
    step = 3

    def __init__(self):
        self.stack = []


LOCAL = threading.local()
LOCAL.depth = 0
DEPTH = Depth()


# -- contextvars ------------------------------------------------------------


@program()
def p_get(x):
    return SCALE.get() * x, UNSET.get(None), UNSET.get(7), SCALE.get(9), HELD.get(3), SCALE.name


@program()
def p_unset(x):
    try:
        return UNSET.get()
    except LookupError as e:
        return e.args[0] is UNSET, x


@program()
def p_set_and_reset(x):
    token = SCALE.set(9)
    try:
        y = x + SCALE.get()
    finally:
        SCALE.reset(token)
    return y, SCALE.get()


@program()
def p_nested(x):
    a = SCALE.set(1)
    b = SCALE.set(x)
    inner = SCALE.get()
    SCALE.reset(b)
    outer = SCALE.get()
    SCALE.reset(a)
    return inner is x, outer, SCALE.get(), b.old_value, a.var is SCALE


@program()
def p_old_value(x):
    a, b = UNSET.set(1), UNSET.set(2)
    found = b.old_value, UNSET.get()
    UNSET.reset(b)
    UNSET.reset(a)
    return found, UNSET.get("none"), x


@program()
def p_context_manager(x):
    with scaled(3) as s, scaled(s + 1):
        y = x * SCALE.get()
    return y, SCALE.get()


@program()
def p_reset_as_an_exception_passes(x):
    try:
        with scaled(x):
            raise ValueError(SCALE.get())
    except ValueError as e:
        return e.args[0] is x, SCALE.get()


@program()
def p_contents_are_changed(x):
    held = HELD.get()
    held.append(x)
    y = len(HELD.get())
    held.pop()
    return y, x


@program(breaks=None)
def p_break_between(x):
    log = []
    with scaled(x.shape[0]):
        note(log, SCALE.get())
        y = x * SCALE.get()
    return y, SCALE.get(), log


@program(breaks=None)
def p_break_between_two(x):
    log = []
    a, b = SCALE.set(1), SCALE.set(2)
    note(log, SCALE.get())
    SCALE.reset(b)
    log.append(SCALE.get())
    SCALE.reset(a)
    return x, SCALE.get(), log


@program(breaks=None)
def p_used_twice(x):
    token = SCALE.set(1)
    SCALE.reset(token)
    try:
        SCALE.reset(token)
    except RuntimeError as e:
        return x, type(e)


def test_what_is_set_stays_and_is_guarded():
    def program(x, value):
        y = x * SCALE.get()
        SCALE.set(value)
        return y

    def run():
        compiled = aotdyn.compile(program, backend="eager")
        found = [compiled(torch.ones(2), value)[0].item() for value in (2, 3, 2)]
        return found, SCALE.get()

    assert contextvars.copy_context().run(run) == ([5.0, 2.0, 3.0], 2)
    assert SCALE.get() == 5


# -- threading.local ------------------------------------------------------------


@program()
def p_local(x):
    LOCAL.depth += 1
    try:
        return x + LOCAL.depth
    finally:
        LOCAL.depth -= 1


@program()
def p_local_attributes(x):
    before = getattr(LOCAL, "nope", 3), hasattr(LOCAL, "depth"), "depth" in LOCAL.__dict__
    LOCAL.nope = x
    found = LOCAL.nope is x, sorted(vars(LOCAL))
    del LOCAL.nope
    try:
        return LOCAL.nope
    except AttributeError as e:
        return before, found, e.name


@program()
def p_local_subclass(x):
    DEPTH.stack.append(1)
    y = x + len(DEPTH.stack) + DEPTH.step
    DEPTH.stack.pop()
    return y


@program(breaks=None)
def p_local_made(x):
    made = threading.local()
    made.a = x
    return made.a + 1


@program(breaks=1)
def p_local_across_a_break(x):
    log = []
    LOCAL.depth = 5
    note(log, LOCAL.depth)
    LOCAL.depth -= 5
    return x + LOCAL.depth, log


@program()
def p_contexts(x):
    context = contextvars.copy_context()

    def run(value):
        SCALE.set(value)
        UNSET.set(value + 1)
        return SCALE.get()

    found = context.run(run, 7), SCALE.get(), context[SCALE], UNSET in context, UNSET.get(None)
    try:
        context.run(lambda: (SCALE.set(8), 1 / 0))
    except ZeroDivisionError:
        found += (context.get(SCALE), context.copy()[SCALE], SCALE in contextvars.copy_context())
    token = SCALE.set(3)
    later = contextvars.copy_context()
    SCALE.reset(token)
    return x * later.run(SCALE.get), found, SCALE.get(), contextvars.Context().run(SCALE.get)


@program(breaks=None)
def p_contexts_around_a_break(x):
    log = []
    context, other = contextvars.copy_context(), contextvars.copy_context()
    other.run(SCALE.set, 4)
    note(log, context.get(SCALE))
    return x * context.run(SCALE.get), log, other[SCALE], SCALE.get()


@program(breaks=None)
def p_token_after_breaks(x):
    log = []
    first = UNSET.set(1)
    note(log, UNSET.get())
    second = UNSET.set(2)
    found = UNSET.get()
    note(log, second.var is UNSET)
    found = found, second.old_value
    UNSET.reset(second)
    UNSET.reset(first)
    return found, UNSET.get("none"), log, x


@program(breaks=None)
def p_contents_of_a_variable_with_a_token(x):
    log = []
    first = UNSET.set({"a": [1]})
    note(log, 1)
    held = UNSET.get()
    second = UNSET.set({**held, "b": 2})
    note(log, held["a"])
    UNSET.reset(second)
    note(log, UNSET.get())
    UNSET.reset(first)
    return log, x


@program(breaks=None)
def p_tokens_of_other_contexts(x):
    told = []
    token = contextvars.Context().run(SCALE.set, 1)
    try:
        SCALE.reset(token)
    except ValueError as error:
        told.append(type(error))
    for refused in (lambda: contextvars.Context(1), lambda: contextvars.Context(a=1)):
        try:
            refused()
        except TypeError as error:
            told.append(str(error))
    return told, SCALE.get(), x


test_agrees = program.test()


def test_each_thread_has_its_own(agree):
    def program(x):
        DEPTH.stack.append(len(DEPTH.stack))
        return x * len(DEPTH.stack)

    compiled = aotdyn.compile(program, backend="eager")
    found = []

    def run():
        found.extend(compiled(torch.ones(1)).item() for _ in range(2))
        found.append(DEPTH.stack)

    for _ in range(2):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found == [1.0, 2.0, [0, 1]] * 2
    assert DEPTH.stack == []


class OwnReading(threading.local):
    def __getattribute__(self, name):
        return 7 if name == "a" else super().__getattribute__(name)


OWN = OwnReading()


@pytest.mark.parametrize("value", [1, 2])
def test_a_thread_local_that_reads_in_its_own_way(agree, value):
    def program(x):
        OWN.b = value
        return x * OWN.a + OWN.b

    agree(program, (torch.ones(2),), package=False)
