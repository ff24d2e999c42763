"""What bodies call at a graph break: operations run while an exception is being handled, generators
made anew where they wait. Offered to generated text by `support.py`."""

from collections.abc import Callable, Generator
from types import FunctionType
from typing import Any

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.point import Point
from ..package.waiting import Waiting, waits_at
from .cpython import internal, native
from .hook import hookless


@hookless
def handling(error: BaseException, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Calls a function while an exception is being handled."""
    context, trace = error.__context__, error.__traceback__
    try:
        raise error
    except BaseException:
        error.__context__, error.__traceback__ = context, trace
        return function(*args, **kwargs)


# (code, place, id of the globals) -> what takes a generator there; it keeps all three alive.
_places: dict[tuple, Callable] = {}


@hookless
def waiting(function: FunctionType, place: tuple, *values: Any) -> Generator:
    """A generator of a function that waits at a `yield`, as if it had run there.

    place: the offset of the `yield`, the shape of the stack below what it yields, the unbound
    names. values: the frame's values there (see `Point`), without what it yields.
    """
    generator = _around(Waiting(_standing, function, place, values))
    generator.__name__, generator.__qualname__ = function.__name__, function.__qualname__
    next(generator)
    return generator


@internal
def _around(state: Waiting) -> Generator:
    """The generator that the program has."""
    return (yield from state)


@hookless
def _standing(function: FunctionType, place: tuple, values: tuple) -> Generator:
    """A generator whose frame stands at a `yield`."""
    code, key = function.__code__, (function.__code__, place, id(function.__globals__))
    make = _places.get(key)
    if make is None:
        offset, stack, unbound = place
        point = Point(offset, (*stack, True), unbound)
        make = _places[key] = native(code, function.__globals__, point)
    generator = make(*values, None)
    generator.__name__, generator.__qualname__ = function.__name__, function.__qualname__
    next(generator)
    return generator


def wait_on(generator: Generator, place: tuple, *values: Any) -> None:
    """A generator that waited has run to another `yield`."""
    waits_at(generator).move(place, values)


@hookless
def ended(generator: Generator) -> None:
    """A generator that waited has run to its end."""
    waits_at(generator).end()
    for _ in generator:
        raise AssertionError("a generator gives more after its end")
