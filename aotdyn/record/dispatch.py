"""Functions of the library that are known by their code: which implementation a single-dispatch
function calls for a class, and `__repr__` that tells of itself."""

import dataclasses
import functools
import reprlib
import weakref

from .members import rely_on_subclass
from .operation import call
from .variables import Constant, DictVariable, FunctionVariable, Variable

_DISPATCH = functools.singledispatch(lambda arg: arg).dispatch.__code__


def dispatch(t, function: FunctionVariable, kind: Variable) -> Variable:
    """`singledispatch(…).dispatch(cls)`: the implementation for a class."""
    registry = _content(t, function, "registry")
    t.complete(registry)
    cls = t.constant(kind)
    try:
        found = functools._find_impl(cls, {key: key for key in registry.items})
    except RuntimeError as ambiguous:
        t.raise_exception(RuntimeError, *ambiguous.args)
    for each in registry.items:
        if each not in cls.__mro__ and isinstance(each, type):
            rely_on_subclass(t, cls, each, issubclass(cls, each))
    return Constant(None) if found is None else registry.items[found][1]


def is_dispatch(t, function: FunctionVariable) -> bool:
    """Whether a function chooses an implementation of a single-dispatch function, by a plain table
    and with a cache that nobody else knows."""
    if function.code is not _DISPATCH:
        return False
    cache, registry = (_content(t, function, each) for each in ("dispatch_cache", "registry"))
    return cache.type is weakref.WeakKeyDictionary and type(registry) is DictVariable


def _content(t, function: FunctionVariable, name: str) -> Variable:
    """What a function's closure holds under a name."""
    cells = dict(zip(function.code.co_freevars, function.closure, strict=True))
    return t.realize(t.realize(cells[name]).content)


_RECURSIVE = {
    wrap(lambda self: "").__code__
    for wrap in (reprlib.recursive_repr(), dataclasses._recursive_repr)
}


def is_recursive_repr(function: FunctionVariable) -> bool:
    """Whether a function is what `reprlib.recursive_repr` makes of a `__repr__`."""
    return function.code in _RECURSIVE


def recursive_repr(t, function: FunctionVariable, self: Variable) -> Variable:
    """Calls the `__repr__` inside, unless it is at work on the same object."""
    cells = dict(zip(function.code.co_freevars, function.closure, strict=True))
    content = {name: t.realize(cell).content for name, cell in cells.items()}
    self = t.realize(self)
    if any(each is self for each in t.telling):
        return content.get("fillvalue", Constant("..."))
    t.telling.append(self)
    try:
        return call(t, content["user_function"], [self])
    finally:
        t.telling.pop()
