"""Objects that hold functions for a class: `property`, `staticmethod`, `classmethod`."""

import functools
import types
from typing import Any

from ...package.source import Attribute, Bound, Item
from ..body import BodyWriter, rebuilds
from ..invoke import CONSTRUCTORS
from ..members import no_attribute
from ..operation import apply, call, truth
from ..signals import GraphBreak
from ..variables import (
    Constant,
    FunctionVariable,
    HolderVariable,
    Known,
    MethodVariable,
    Variable,
)
from .table import calls, rule

NONE = Constant(None)
_PARTS = ("fget", "fset", "fdel")


@rule(property)
def make_property(t, fget=NONE, fset=NONE, fdel=NONE, doc=None):
    functions = [t.realize(each) for each in (fget, fset, fdel)]
    if doc is not None or not isinstance(functions[0], FunctionVariable):
        return NotImplemented
    return t.new(HolderVariable(property, dict(zip(_PARTS, functions, strict=True))))


def _with(accessor: Any, part: str) -> None:
    @rule(accessor, HolderVariable)
    def changed(t, self, function):
        functions = {**self.functions, part: t.realize(function)}
        return t.new(HolderVariable(property, functions))


_with(property.getter, "fget")
_with(property.setter, "fset")
_with(property.deleter, "fdel")


def _method(kind: type) -> None:
    @rule(kind, FunctionVariable)
    def make(t, function):
        return t.new(HolderVariable(kind, {"__func__": function}))


_method(staticmethod)
_method(classmethod)


def _make_cached_property(t, cls, args, kwargs):
    """Its lock is nobody's who does not ask for it."""
    (function,) = [*args, *kwargs.values()]
    function = t.realize(function)
    if not isinstance(function, FunctionVariable):
        raise GraphBreak("unknown_call", "cached_property of what is no function")
    return t.new(HolderVariable(cls, {"func": function}))


CONSTRUCTORS[functools.cached_property] = _make_cached_property


@rule(getattr, HolderVariable)
def holder_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "__class__":
        return Known(self.cls, Bound(t.references.to(self.cls)))
    if key in self.functions:
        return self.functions[key]
    if key == "__isabstractmethod__":
        return Constant(any(_is_abstract(t, each) for each in self.functions.values()))
    held = getattr(self.cls, key, None)
    if isinstance(held, _METHODS):
        return MethodVariable(self, Known(held, Bound(t.references.to(held))))
    if key == "__doc__" and self.live is not None:
        return t.lazy(self.live.__doc__, Attribute(self.source, "__doc__"))
    if self.cls is not property and self.live is not None and key in vars(self.live):
        own = Attribute(self.source, "__dict__")
        return t.lazy(vars(self.live)[key], Item(own, key))
    function = next(iter(self.functions.values()))
    if self.live is None and (key == "__doc__" or self.cls is not property and key in _COPIED):
        return apply(t, getattr, [function, Constant(key)])
    if self.live is None and self.cls is not property and key == "__wrapped__":
        return function
    if hasattr(self.cls, key) or self.cls is not property:
        raise GraphBreak("attribute", f"{self.describe()}.{key}")
    if default is not None:
        return default
    no_attribute(t, self, key)


_METHODS = types.MethodDescriptorType | types.WrapperDescriptorType
# What class and static methods take over from their function.
_COPIED = ("__name__", "__qualname__", "__module__", "__annotations__")


def _is_abstract(t, function: Variable) -> bool:
    name = Constant("__isabstractmethod__")
    return truth(t, apply(t, getattr, [function, name, Constant(False)]))


@rule(staticmethod.__get__, HolderVariable)
def static_get(t, self, instance, owner=NONE):
    return self.functions["__func__"]


@rule(classmethod.__get__, HolderVariable)
def class_get(t, self, instance, owner=NONE):
    owner, function = t.realize(owner), t.realize(self.functions["__func__"])
    if owner.type is type(None):
        owner = apply(t, type, [instance])
    if not isinstance(function, FunctionVariable):
        raise GraphBreak("attribute", f"a class method around a {function.describe()}")
    return MethodVariable(owner, function)


@calls(HolderVariable)
def call_holder(t, self, args, kwargs):
    """A static method can be called within the body of its class."""
    if self.cls is not staticmethod:
        t.raise_exception(TypeError, f"{self.cls.__name__!r} object is not callable")
    return call(t, self.functions["__func__"], args, kwargs)


@rebuilds(HolderVariable)
def _rebuild_holder(w: BodyWriter, v: HolderVariable) -> str:
    functions = ", ".join(map(w.value, v.functions.values()))
    cls = v.cls.__name__ if v.cls.__module__ == "builtins" else w.ref(w.t.references.to(v.cls))
    return w.bind(v.cls.__name__, f"{cls}({functions})")
