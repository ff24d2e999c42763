"""What comes from outside while a frame is traced or its graph runs: time limits, Ctrl-C."""

import functools
import signal

import pytest
import torch

import aotdyn
from aotdyn.package.interruptions import is_interruption


class Late(Exception):
    pass


class Impatience(KeyboardInterrupt):
    pass


class Limit:
    """Raises in a handler of a signal, when the operator runs that counts its runs."""

    def __init__(self):
        self.error = Late
        self.when_run = self.when_traced = self.runs = 0

    def at_run(self):
        self.runs += 1
        if self.when_run:
            self.when_run -= 1
            signal.raise_signal(signal.SIGUSR1)

    def at_trace(self):
        if self.when_traced:
            self.when_traced -= 1
            signal.raise_signal(signal.SIGUSR1)

    def __call__(self, number, frame):
        raise self.error("late")


LIMIT = Limit()


@torch.library.custom_op("interrupted::slow", mutates_args=())
def slow(x: torch.Tensor) -> torch.Tensor:
    LIMIT.at_run()
    return x * 2


@slow.register_fake
def _(x):
    LIMIT.at_trace()
    return torch.empty_like(x)


@pytest.fixture(params=[Late, Impatience], autouse=True)
def _error(request):
    LIMIT.error = request.param
    before = signal.signal(signal.SIGUSR1, LIMIT)
    yield
    signal.signal(signal.SIGUSR1, before)


def straight(x, log):
    y = slow(x) + 1
    log.append(1)
    return y


def handled(x, log):
    try:
        aotdyn.graph_break()
        y = slow(x) + 1
        log.append(1)
    except (Late, Impatience) as error:
        log.append(str(error))
        y = x
    return y


def in_a_loop(x, log):
    for i in range(2):
        try:
            with torch.no_grad():
                aotdyn.graph_break()
                y = slow(x) + i
                log.append(i)
        except (Late, Impatience) as error:
            log.append(str(error))
            y = x
        finally:
            log.append("finally")
    return y


def cleaned_up(x, log):
    try:
        aotdyn.graph_break()
        x = slow(x)
    finally:
        log.append("left")
    return x


PROGRAMS = [straight, handled, in_a_loop, cleaned_up]


def outcome(function):
    """What a call gives or raises, does to its log, and how often the operator has run."""
    LIMIT.runs, log = 0, []
    try:
        result = function(torch.ones(2), log).tolist()
    except (Late, Impatience) as error:
        result = type(error)
    return result, log, LIMIT.runs, torch.is_grad_enabled()


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_interrupted_graph_does_not_run_again(program):
    compiled = aotdyn.compile(program, backend="eager")
    assert outcome(compiled) == outcome(program)
    for count in (1, 2, 1):
        LIMIT.when_run = count
        expected = outcome(program)
        LIMIT.when_run = count
        found = outcome(compiled)
        LIMIT.when_run = 0
        assert found == expected
    assert outcome(compiled) == outcome(program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_interrupted_trace_is_no_fault_of_the_tracer(program, monkeypatch):
    monkeypatch.delenv("AOTDYN_STRICT", raising=False)
    compiled = aotdyn.compile(program, backend="eager")
    LIMIT.when_run = 1
    expected = outcome(program)
    LIMIT.when_run, LIMIT.when_traced = 0, 1
    found = outcome(compiled)
    # The operator itself had not begun.
    assert found == (*expected[:2], expected[2] - 1, expected[3])
    assert outcome(compiled) == outcome(program)
    assert aotdyn.explain(program, torch.ones(2), []).graphs


@pytest.mark.parametrize(("kind", "place", "outside"), [
    (Late, torch.__file__, True), (Late, __file__, False), (ValueError, torch.__file__, False),
])  # fmt: skip
def test_what_torch_cannot_raise_is_put_in_by_another_thread(kind, place, outside):
    with pytest.raises(kind) as told:
        exec(compile("raise kind('x')", place, "exec"), {"kind": kind})
    assert is_interruption(told.value) is outside


def test_handlers_of_all_kinds_are_known():
    def handler(number, frame, *more):
        raise ValueError

    class Handlers:
        method = handler

        def __call__(self, number, frame):
            raise ValueError

    for each in (handler, functools.partial(handler), Handlers().method, Handlers()):
        signal.signal(signal.SIGUSR1, each)
        with pytest.raises(ValueError) as told:
            signal.raise_signal(signal.SIGUSR1)
        assert is_interruption(told.value)
    with pytest.raises(ValueError) as told:
        handler.__get__(1)(2)
        torch.ones(2).view(3)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    assert not is_interruption(told.value)


def test_errors_of_operators_are_none():
    with pytest.raises(RuntimeError) as told:
        torch.ones(2).view(3)
    assert not is_interruption(told.value)
