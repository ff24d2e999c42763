"""What a program sees of frames where graphs break: the lines of tracebacks, the caller that
`warnings` and `logging` find, frames that are looked at.

PYTEST_DONT_REWRITE: line numbers and plain instructions.
"""

import inspect
import logging
import sys
import warnings

import pytest
import torch

import aotdyn
from aotdyn.runtime.suspended import SEEN


@aotdyn.disable
def note(*items):
    return items


@aotdyn.disable
def boom():
    raise ValueError("x")


@aotdyn.disable
def caller():
    frame = sys._getframe(1)
    return frame.f_code.co_qualname, frame.f_lineno


class Looks:
    """Tells in every method who has called it, and may raise there."""

    def __init__(self, log, wrong=""):
        self.log, self.wrong = log, wrong

    @aotdyn.disable
    def seen(self, name):
        frame = sys._getframe(2)
        self.log.append((name, frame.f_code.co_qualname, frame.f_lineno))
        if name == self.wrong:
            raise ValueError(name)

    @aotdyn.disable
    def __enter__(self):
        self.seen("enter")
        return self

    @aotdyn.disable
    def __exit__(self, *info):
        self.seen("exit")

    @aotdyn.disable
    def __iter__(self):
        self.seen("iter")
        return self

    @aotdyn.disable
    def __next__(self):
        self.seen("next")
        if len(self.log) > 5:
            raise StopIteration
        return len(self.log)

    @aotdyn.disable
    def __bool__(self):
        self.seen("bool")
        return True

    @aotdyn.disable
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        self.seen(name)
        return lambda: 3


def in_finally(x, log):
    y = x + 1
    try:
        y = y * 2
        boom()
        y = y * 3
    finally:
        y = y * 2
        note(1)
        y = y * 3
    return y


def bare_raise(x, log):
    y = x + 1
    try:
        boom()
    except ValueError:
        y = y * 2
        note(1)
        raise


def raise_from(x, log):
    try:
        boom()
    except ValueError as error:
        y = x * 2
        note(1)
        raise KeyError("k") from error


def other_error_in_finally(x, log):
    y = x + 1
    try:
        try:
            boom()
        finally:
            note(2)
            raise KeyError("other")
    finally:
        note(3)
        y = y * 2


def in_a_loop(x, log):
    for i in range(3):
        x = x + 1
        note(i)
        if i == 2:
            x.view(
                7,
            )
    return x


def inner(x):
    y = x * 2
    note(2)
    return y.view(7)


def in_a_callee(x, log):
    y = x + 1
    return inner(y)


def entering(x, log):
    y = x + 1
    with Looks(log, "enter"):
        y = y + 1
    return y


def leaving(x, log):
    y = x + 1
    with Looks(log, "exit"):
        y = y + 1
    return y


def looping(x, log):
    for i in Looks(log, "next"):
        x = x + i
    return x


def branching(x, log):
    y = x + 1
    return y if Looks(log, "bool") else x


def unpacking(x, log):
    y = x + 1
    a, b = Looks(log, "iter")
    return y


def getting(x, log):
    y = x + 1
    return y + Looks(log, "method").method()


FAILING = [in_finally, bare_raise, raise_from, other_error_in_finally, in_a_loop, in_a_callee,
           entering, leaving, looping, branching, unpacking, getting]  # fmt: skip


def lines(error):
    """The places that an exception and those it came from went through."""
    found = []
    for each in (error, error.__cause__, error.__context__):
        link = each.__traceback__ if each is not None else None
        while link is not None:
            code = link.tb_frame.f_code
            if code.co_name != "traceback_of":
                found.append((code.co_qualname, link.tb_lineno))
            link = link.tb_next
    return found


def traceback_of(run):
    log = []
    with pytest.raises((ValueError, KeyError, RuntimeError)) as caught:
        run(torch.ones(3), log)
    return lines(caught.value), log


@pytest.mark.parametrize("program", FAILING)
def test_tracebacks(program):
    served = aotdyn.compile(program, backend="eager")
    expected = traceback_of(program)
    for _ in range(3):
        assert traceback_of(served) == expected


def looked_at_everywhere(x, log):
    y = x + 1
    with Looks(log) as looks:
        for _ in looks:
            y = y * 2
        if looks and not looks:
            y = y - 1
        y = y + looks.method()
    return y, caller(), log


def own_frame(x, log):
    y = x + 1
    frame = sys._getframe()
    return y, frame.f_code.co_qualname, frame.f_lineno, sorted(frame.f_locals)


def from_a_function_of_the_frame(x, log):
    y = x + 1

    def looks(z):
        frame = sys._getframe(1)
        return z, frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals)

    return looks(y)


def inspected(x, log):
    y = x + 1
    return y, [each.function for each in inspect.stack()[:1]], inspect.currentframe().f_lineno


def looks_from_a_function_after_a_break(x, log):
    y = x + 1

    def looks(z):
        return z, sorted(sys._getframe(1).f_locals)

    note(log, "break")
    return looks(y)


@pytest.mark.parametrize(
    "program",
    [looked_at_everywhere, own_frame, from_a_function_of_the_frame, inspected,
     looks_from_a_function_after_a_break],
)  # fmt: skip
def test_frames(agree, program):
    agree(program, (torch.ones(3), []), (torch.ones(3), []))


def warns(x):
    warnings.warn("deprecated", DeprecationWarning, stacklevel=2)
    return x + 1


class Layer(torch.nn.Module):
    def forward(self, x):
        warnings.warn("layer", stacklevel=3)
        return x * 2


LAYER = Layer()


def warned_of(x):
    y = warns(x * 2)
    warnings.warn("own", stacklevel=1)
    warnings.warn("caller", stacklevel=2)
    return LAYER(y) + warns(y)


def calls_warned_of(x):
    return warned_of(x) + warns(x)


class Model(torch.nn.Module):
    def forward(self, x):
        warnings.warn("model", stacklevel=4)
        return calls_warned_of(x + 1)


def warnings_of(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(torch.ones(3))
    return [(each.filename, each.lineno, str(each.message)) for each in caught]


class Levels(torch.nn.Module):
    def forward(self, x):
        for level in range(1, 5):
            warnings.warn(f"level {level}", stacklevel=level)
        return x + 1


def with_a_hook():
    made = Levels()
    made.register_forward_hook(lambda *args: None)
    return made


@pytest.mark.parametrize("program", [warned_of, calls_warned_of, Model(), Levels(), with_a_hook()])
def test_warnings_name_the_line(program):
    served = aotdyn.compile(program, backend="eager")
    expected = warnings_of(program)
    for _ in range(12):
        assert warnings_of(served) == expected


LOGGER = logging.getLogger("aotdyn.tests.break_frames")


def logs(x):
    LOGGER.warning("own")
    LOGGER.warning("caller", stacklevel=2)
    return x + 1


def calls_logs(x):
    y = logs(x * 2)
    LOGGER.warning("outer")
    return logs(y)


def records_of(run, caplog):
    caplog.clear()
    run(torch.ones(3))
    return [(each.pathname, each.lineno, each.funcName) for each in caplog.records]


def test_logging_names_the_line(caplog):
    served = aotdyn.compile(calls_logs, backend="eager")
    expected = records_of(calls_logs, caplog)
    assert len(expected) == 5
    for _ in range(12):
        assert records_of(served, caplog) == expected


@aotdyn.disable
def callers_caller():
    frame = sys._getframe(2)
    return frame.f_code.co_name, frame.f_lineno


def asks(x):
    return x * 2, callers_caller()


def is_asked_for(x):
    return asks(x + 1)


def asks_by_links(x):
    return x * 2, of_the_link()


@aotdyn.disable
def of_the_link():
    frame = inspect.currentframe().f_back.f_back
    return frame.f_code.co_name, frame.f_lineno


def is_asked_for_by_links(x):
    return asks_by_links(x + 1)


@pytest.mark.parametrize("program", [is_asked_for, is_asked_for_by_links])
def test_the_callers_caller(agree, program):
    found = agree(program, (torch.ones(3),), package=False)
    assert [each.reason for each in found.obstacles] == [SEEN]
