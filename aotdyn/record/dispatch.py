"""`functools.singledispatch`: which implementation is called for a class."""

import functools

from .variables import FunctionVariable, Variable

_DISPATCH = functools.singledispatch(lambda arg: arg).dispatch.__code__


def dispatch(t, function: FunctionVariable, kind: Variable) -> Variable:
    """`singledispatch(…).dispatch(cls)`: the implementation for a class."""
    cells = dict(zip(function.code.co_freevars, function.closure, strict=True))
    registry = t.realize(t.realize(cells["registry"]).content)
    t.complete(registry)
    cls = t.constant(kind)
    found = functools._find_impl(cls, {key: key for key in registry.items})
    return registry.items[found][1]


def is_dispatch(function: FunctionVariable) -> bool:
    """Whether a function chooses an implementation of a single-dispatch function."""
    return function.code is _DISPATCH
