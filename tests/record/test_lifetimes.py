"""When objects end that the program sees go: in the middle of a frame, with it, never later."""

import contextlib
import functools
import gc

import torch

import aotdyn
from tests.record.programs import Programs, note

program = Programs()


class Ending:
    """An object that notes its end."""

    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(("end", self.name))


@aotdyn.disable
def ending(log, name="a"):
    return Ending(log, name)


@aotdyn.disable
def ending_if(log, wanted):
    return Ending(log, "wanted") if wanted else None


@aotdyn.disable
def last_name(log, held):
    log.append(held.name)


def steps(log, count=3):
    try:
        for i in range(count):
            log.append(i)
            yield i
    finally:
        log.append("left")


def through(log):
    """Has no block itself, but runs one that has."""
    yield from steps(log)


class EndingDict(dict):
    def __del__(self):
        self["log"].append(("end", self["name"]))


class EndingList(list):
    def __del__(self):
        self[0].append(("end", self[1]))


@aotdyn.disable
def ending_containers(log):
    return EndingDict(log=log, name="dict"), EndingList([log, "list"])


@program(breaks=None)
def p_containers_of_classes_that_were_looked_at(x):
    log = []
    d, items = ending_containers(log)
    x = x + len(d["name"]) + len(items[1])
    note(log, "note")
    x = x + len(d) + len(items)
    note(log, "looked at again")
    del d
    note(log, "after one")
    del items
    log.append("after the other")
    return x, log


@program(breaks=None)
def p_result_that_nobody_keeps(x):
    log = []
    x = x + 1
    ending(log)
    log.append("next")
    x = x * 2
    note(log, "note")
    return x, log


@program(breaks=None)
def p_result_that_nobody_keeps_later(x):
    log = []
    for turn in range(4):
        x = x + turn
        ending_if(log, turn == 2)
        log.append(turn)
    return x, log


@program(breaks=None)
def p_variable_of_many_kinds(x):
    log = []
    for turn in range(4):
        held = ending_if(log, turn % 2)
        x = x + turn
        note(log, turn)
        held = None
        log.append(("turn", turn))
        x = x + 1
    return x, log, held


@program(breaks=None)
def p_last_use_before_a_break(x):
    log = []
    held = ending(log)
    x = x + 1
    last_name(log, held)
    note(log, "after")
    log.append("end of frame")
    return x * 2, log


@program(breaks=None)
def p_several_that_end_with_the_frame(x):
    log = []

    def run():
        a = ending(log, "a")
        b = ending(log, "b")
        c = ending(log, "c")
        note(log, "note")
        return x + len(a.name + b.name + c.name)

    return run(), log


@program(breaks=None)
def p_several_that_end_as_an_exception_leaves(x):
    log = []

    def run():
        a = ending(log, "a")
        b = ending(log, "b")
        note(log, "note")
        if x.sum() > 0:
            raise ValueError(a.name + b.name)

    try:
        run()
    except ValueError as error:
        log.append(str(error))
    return x + 1, log


@program(breaks=None)
def p_variable_in_a_cell(x):
    log = []
    held = ending(log)

    def name():
        return held.name

    note(log, name())
    x = x + 1
    held = None
    log.append("dropped")
    return x, log


@program(breaks=None)
def p_generator_that_has_not_begun(x):
    log = []
    generator = steps(log)
    note(log, "between")
    log.append(next(generator))
    note(log, "between")
    x = x + 1
    generator = None
    log.append("dropped")
    return x, log


@program(breaks=None)
def p_generator_without_a_block_of_its_own(x):
    log = []
    generator = through(log)
    log.append(next(generator))
    note(log, "between")
    x = x + 1
    generator = None
    log.append("dropped")
    return x, log


@program(breaks=None)
def p_generator_begun_in_the_frame_and_not_used_again(x):
    log = []
    generator = steps(log)
    x = x + next(generator)
    note(log, generator is None)
    log.append("end of frame")
    return x, log


@program(breaks=None)
def p_loop_that_an_exception_leaves(x):
    log = []
    try:
        for i in steps(log):
            x = x + i
            note(log, "turn")
            if i:
                raise ValueError("out")
    except ValueError as error:
        log.append(str(error))
    return x, log


@program(breaks=None)
def p_rest_that_runs_as_plain_python(x):
    log = []
    held = ending(log)
    note(log, "note")
    x = x + 1
    del held
    log.append("deleted")
    if x.sum() < 0:
        raise ValueError
    return x, log


@program(breaks=None)
def p_frame_whose_graph_raises(x):
    log = []
    held = ending(log)
    note(log, held.name)
    y = x * 2
    held = None
    log.append("dropped")
    with contextlib.suppress(RuntimeError):
        y = y.view(2) if y.sum() > 0 else y
    return y, log


@program(breaks=None)
def p_open_file(x):
    log = []
    with contextlib.closing(steps(log)) as generator:
        x = x + next(generator)
        note(log, "inside")
    log.append("closed")
    return x, log


class Holder:
    """Holds whatever it is told to."""


def _last(log, value):
    """A container of some kind around an object that ends, made anew at each call."""
    made, tensor, module = Holder(), torch.ones(1), torch.nn.Identity()
    made.value, tensor.value, module.value = (ending(log, name) for name in ("o", "t", "m"))
    held = [[ending(log, "list")], {"k": (ending(log, "dict"),)}, made, tensor, module,
            functools.partial(note, ending(log, "p")), iter([ending(log, "i")])]  # fmt: skip
    return held[value]


@program(*((torch.ones(2), index) for index in range(7)), breaks=None)
def p_containers_of_what_ends(x, index):
    log = []
    held = _last(log, index)
    note(log, "made")
    x = x + 1
    note(log, "kept")
    held = None
    log.append("dropped")
    note(log, "end")
    return x * 2, log, held


@program(breaks=None)
def p_container_in_a_loop(x):
    log = []
    for turn in range(3):
        held = [ending(log, turn)]
        x = x + len(held)
        note(log, turn)
    note(log, "end")
    return x, log


@program(breaks=None)
def p_container_that_outlives_a_handler(x):
    log = []
    try:
        held = [ending(log)]
        x = x + 1
        note(log, "in the block")
        raise ValueError("x")
    except ValueError:
        note(log, "handled")
        x = x + 1
    note(log, "after")
    del held
    note(log, "end")
    return x, log


@program(breaks=None)
def p_function_that_holds_what_ends(x):
    log = []

    def make():
        held = ending(log)
        return lambda: held

    made = make()
    note(log, "made")
    x = x + 1
    note(log, "kept")
    made = None
    note(log, "dropped")
    return x, log, made


@program(breaks=None)
def p_generator_that_eager_code_begins(x):
    log = []
    generator = steps(log)
    log.append(first_of(generator))
    note(log, "begun")
    x = x + 1
    generator = None
    log.append("dropped")
    return x, log


@aotdyn.disable
def first_of(generator):
    return next(generator)


def fails_with(log, given):
    held = ending(log, "held")
    raise ValueError(held.name)


@program(breaks=None)
def p_frames_that_an_exception_holds(x):
    log = []
    for name in ("in a handler with a break", "in one without"):
        try:
            fails_with(log, ending(log, "given"))
        except ValueError:
            if name.endswith("break"):
                note(log, "handled")
            log.append(name)
        log.append("after")
    note(log, "at the end")
    return x + 1, log


test_agrees = program.test()


def test_a_guard_tells_values_with_an_end_from_others():
    """A value that is dropped unseen may have an end in a later call."""

    def fn(x, log, wanted):
        held = ending_if(log, wanted)
        x = x + 1
        note(log, "one")
        held = 1
        log.append("dropped")
        return x * held

    compiled = aotdyn.compile(fn, backend="eager")
    for wanted in (False, True, False, True):
        plain, traced = [], []
        fn(torch.ones(2), plain, wanted)
        compiled(torch.ones(2), traced, wanted)
        assert traced == plain


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def test_what_the_frame_held_ends_with_the_traceback():
    """Of an exception that leaves it, and without the collector: nothing refers to itself."""

    def fn(x, log):
        with Manager():
            generator = steps(log)
            next(generator)
            if x > 0:  # more than one value has no truth
                log.append("not here")
        generator.close()
        return x

    compiled = aotdyn.compile(fn, backend="eager")
    gc.disable()
    try:
        for run in (fn, compiled, compiled):
            log = []
            try:
                run(torch.ones(2), log)
            except RuntimeError as error:
                assert log == [0], error
            assert log == [0, "left"]
    finally:
        gc.enable()


# -- what tracing itself keeps ------------------------------------------------------------


def caught_beside_a_generator(x, log, flag):
    def generate():
        try:
            yield 1
        finally:
            log.append("end")

    generator = generate()
    log.append(next(generator))
    try:
        1 in flag  # noqa: B015 - raises TypeError
    except TypeError:
        log.append("caught")
    try:
        Fallback().missing
    except AttributeError:
        log.append("none")
    log.append("more")
    return x + 1


class Fallback:
    @property
    def missing(self):
        return self.nothing


def test_errors_of_the_program_leave_no_cycles(monkeypatch):
    """Whatever ends with the frame ends then, not when the collector runs."""
    expected: list = []
    caught_beside_a_generator(torch.ones(1), expected, True)
    gc.disable()
    try:
        for every in range(1, 40, 3):
            monkeypatch.setenv("AOTDYN_BREAK_EVERY", str(every))
            log: list = []
            traced = aotdyn.compile(caught_beside_a_generator, backend="eager")
            traced(torch.ones(1), log, True)
            assert log == expected, every
    finally:
        gc.enable()
