"""Generators, coroutines and async generators run as plain Python, which is reported: those that
the user compiled, and those that eager code starts. What the former call is served or traced."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from . import logs, recorder

SEEN = "a function that it calls looks at its caller; it runs as plain Python"
PLAIN = "a generator, coroutine or async frame runs as plain Python"


def driven(function: FunctionType, settings) -> FunctionType:
    """A function of the same kind, each of whose steps runs with the hook on."""
    if inspect.isasyncgenfunction(function):
        made: Any = _async_generator(function, settings)
    elif inspect.iscoroutinefunction(function):
        made = _coroutine(function, settings)
    else:
        made = _generator(function, settings)
    return functools.update_wrapper(made, function)


def report(code: CodeType, globals_: dict, settings, reason: str = PLAIN) -> None:
    """Tells whoever records or listens that frames of a code run as plain Python."""
    recorder.obstacle(settings.entry(code, globals_), reason)
    logs.log("graph_breaks", f"{code.co_qualname}: {reason}")


def _report(function: FunctionType, settings) -> None:
    report(function.__code__, function.__globals__, settings)


def _generator(function: FunctionType, settings) -> Callable[..., Iterator]:
    def made(*args: Any, **kwargs: Any) -> Iterator:
        _report(function, settings)
        return (yield from _steps(function(*args, **kwargs), settings.eager))

    return made


def _coroutine(function: FunctionType, settings) -> Callable[..., Any]:
    async def made(*args: Any, **kwargs: Any) -> Any:
        _report(function, settings)
        return await _Driven(function(*args, **kwargs), settings.eager)

    return made


def _async_generator(function: FunctionType, settings) -> Callable[..., AsyncIterator]:
    async def made(*args: Any, **kwargs: Any) -> AsyncIterator:
        _report(function, settings)
        inner, eager = function(*args, **kwargs), settings.eager
        step = inner.asend(None)
        while True:
            try:
                item = await _Driven(step, eager)
            except StopAsyncIteration:
                return
            try:
                step = inner.asend((yield item))
            except GeneratorExit:
                await _Driven(inner.aclose(), eager)
                raise
            except BaseException as error:
                step = inner.athrow(error)

    return made


class _Driven:
    """Something awaitable each of whose steps runs with the hook on."""

    def __init__(self, inner: Any, eager: Callable):
        self.inner, self.eager = inner, eager

    def __await__(self) -> Iterator:
        return _steps(self.inner, self.eager)


def _steps(inner: Any, eager: Callable) -> Iterator:
    """What `yield from inner` does, with every step of it called by `eager`."""
    step, value = inner.send, None
    while True:
        try:
            item = eager(step, value)
        except StopIteration as stop:
            return stop.value
        try:
            value = yield item
            step = inner.send
        except GeneratorExit:
            eager(inner.close)
            raise
        except BaseException as error:
            step, value = inner.throw, error
