"""Contexts of the process' state that leave nothing behind, and locks."""

import threading
import warnings

import numpy as np
import torch

import aotdyn
from tests.record.programs import Programs, note

LOCK, RLOCK = threading.Lock(), threading.RLock()

program = Programs()


class Service:
    def __init__(self):
        self.lock = threading.Lock()
        self.count = 0

    def step(self, x):
        with self.lock:
            self.count += 1
            y = x * self.count
        return y


SERVICE = Service()


def outcome(function):
    try:
        return function()
    except Warning as warning:
        return type(warning).__name__, str(warning)


@program()
def _warnings_are_ignored_or_raised(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("one", stacklevel=1)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="tw", category=UserWarning)
            found = [outcome(lambda: warnings.warn(text)) for text in ("two", "three")]  # noqa: B028
            found.append(outcome(lambda: warnings.warn(UserWarning("twice"))))  # noqa: B028
            found.append(outcome(lambda: warnings.warn("two", DeprecationWarning)))  # noqa: B028
        warnings.warn("two", stacklevel=1)
        y = x + 1
    return y, found


@program(breaks=None)
def _a_break_within(x):
    log = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        note(log, warnings.filters[0][0])
        warnings.warn("one", stacklevel=1)
    with np.errstate(divide="ignore"):
        note(log, np.geterr()["divide"])
    return x, log, np.geterr()["divide"]


@program()
def _errors_of_numpy_are_ignored(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = x * 2
        with np.errstate(all="ignore"):
            z = np.float64(1.0) / 2
    return y * float(z)


@program(breaks=2)
def _a_lock_is_left_with_the_frames_effects(x):
    SERVICE.count = 0
    y = SERVICE.step(x)
    return y, SERVICE.count


@program(breaks=3)
def _locks_in_loops_and_in_each_other(x):
    for i in range(2):
        with LOCK:
            x = x + i
    with RLOCK:
        y = x * 2
    return x, y


@program(breaks=None)
def _a_lock_and_an_exception(x):
    def fails():
        with LOCK:
            raise ValueError("within")

    try:
        fails()
    except ValueError as error:
        return x, str(error), LOCK.locked()


test_agrees = program.test()


def test_a_warning_that_is_not_caught_is_told_each_time():
    """Leaving `catch_warnings` makes Python forget what it has told once."""

    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.warn("told", stacklevel=1)
        return x + 1

    traced = aotdyn.compile(f, backend="eager")
    for call in (f, traced):
        told = []
        for _ in range(3):
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                warnings.showwarning = lambda message, *args, told=told: told.append(str(message))
                call(torch.ones(2))
        assert told == ["told"] * 3
