"""Generators that a body has made where they wait: variants look into them and run them on, as long
as nothing else has."""

from collections.abc import Callable, Generator
from types import FunctionType, GeneratorType
from typing import Any

from .own_builtins import BUILTINS as __builtins__  # noqa: F401


class Waiting:
    """The state of a generator that waits at a `yield`, iterated by the generator that the program
    has. Its frame is only made when code of the program runs it on.

    make: (function, place, values) -> a generator that stands there. place, values: see
    `runtime.steps.waiting`; place is None once the state is that of a frame.
    """

    __slots__ = ("make", "function", "place", "values", "inner", "begun")

    def __init__(self, make: Callable, function: FunctionType, place: tuple, values: tuple):
        self.make = make
        self.function = function
        self.place: tuple | None = place
        self.values = values
        self.inner: Generator | None = None
        self.begun = False

    def __iter__(self) -> "Waiting":
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        if not self.begun:
            # The generator around it comes to wait.
            self.begun = True
            return None
        return self._frame().send(value)

    def throw(self, *error: Any) -> Any:
        return self._frame().throw(*error)

    def close(self) -> None:
        self._frame().close()

    def _frame(self) -> Generator:
        if self.inner is None:
            place, values = self.place, self.values
            self.place, self.values = None, ()
            self.inner = self.make(self.function, place, values)
        return self.inner

    def move(self, place: tuple, values: tuple) -> None:
        """It has come to wait elsewhere."""
        self.place, self.values = place, values

    def end(self) -> None:
        """It has ended."""
        self.place, self.values = None, ()
        self.inner = iter_nothing()


def iter_nothing() -> Generator:
    """A generator that gives nothing."""
    return
    yield


def waits_at(generator: Any) -> Waiting:
    """The state of a generator that a body has made. Raises TypeError for any other object, and
    where code of the program has run it on."""
    held = generator.gi_yieldfrom if type(generator) is GeneratorType else None
    if type(held) is not Waiting or held.place is None:
        raise TypeError("no generator of a body")
    return held
