"""`id()`, weak references, and what `copy` asks an object for."""

import copyreg
import types
import weakref

from ...package.reference import Import
from ...package.source import Bound, Referent
from ..attributes import has_own_dict
from ..body import BodyWriter, rebuilds
from ..operation import apply, call_method
from ..signals import GraphBreak
from ..variables import (
    Constant,
    IdentityVariable,
    InstanceDict,
    Known,
    Lazy,
    MappingObject,
    ObjectVariable,
    TupleVariable,
    Variable,
)
from ..wrap import wraps
from .instance_dicts import snapshot
from .table import calls, rule

NONE = Constant(None)


# -- id() ------------------------------------------------------------


@rule(id)
def id_(t, self):
    return t.new(IdentityVariable(self))


@rebuilds(IdentityVariable)
def _identity(w: BodyWriter, v: IdentityVariable) -> str:
    if isinstance(v.of, Constant | Lazy):
        raise GraphBreak("reconstruct", "the id() of a constant", v.origin)
    return w.bind("identity", f"id({w.value(v.of)})")


# -- weak references ------------------------------------------------------------


class WeakReference(Variable):
    """A weak reference that came in."""

    __slots__ = ("live",)

    def __init__(self, live, source):
        super().__init__(source)
        self.live = live

    @property
    def type(self) -> type:
        return weakref.ref


@wraps(weakref.ref)
def _weak_reference(t, value: weakref.ref, source) -> Variable:
    t.guard("TYPE", source, Import("weakref", "ref"))
    variable = WeakReference(value, source)
    t.remember(value, variable)
    return variable


@calls(WeakReference)
def _dereference(t, self: WeakReference, args, kwargs) -> Variable:
    return t.lazy(self.live(), Referent(self.source))


@rule(bool, WeakReference)
def bool_weak_reference(t, self):
    return Constant(True)


# -- copying ------------------------------------------------------------


@rule(object.__reduce_ex__, ObjectVariable)
def reduce_ex(t, self, protocol):
    """How `copy` takes an object apart: class, attributes, items."""
    cls = self.cls
    for name in ("__reduce__", "__getnewargs_ex__", "__getnewargs__"):
        t.classes.lookup(cls, name)
    if isinstance(cls.__reduce__, types.FunctionType):
        return call_method(t, self, "__reduce__")
    if t.constant(protocol) < 2 or hasattr(cls, "__getnewargs_ex__") or hasattr(
        cls, "__getnewargs__"
    ):
        raise GraphBreak("unknown_operation", f"{cls.__qualname__}.__reduce_ex__")
    if issubclass(cls, dict) and not isinstance(self, MappingObject):
        raise GraphBreak("unknown_operation", f"{cls.__qualname__}.__reduce_ex__")
    make = copyreg.__newobj__
    items = NONE
    if isinstance(self, MappingObject):
        if self.cls.__reduce__ is not object.__reduce__:
            raise GraphBreak("unknown_operation", f"{cls.__qualname__}.__reduce__")
        items = apply(t, iter, [call_method(t, self, "items")])
    return t.new(TupleVariable([
        t.lazy(make, Bound(Import("copyreg", "__newobj__"))),
        t.new(TupleVariable([Known(cls, Bound(t.references.to(cls)))])),
        _state(t, self), NONE, items,
    ]))  # fmt: skip


def _state(t, self: ObjectVariable) -> Variable:
    cls = self.cls
    if isinstance(getattr(cls, "__getstate__", None), types.FunctionType):
        return call_method(t, self, "__getstate__")
    if any("__slots__" in vars(base) and vars(base)["__slots__"] for base in cls.__mro__):
        raise GraphBreak("unknown_operation", f"copying {cls.__qualname__} with slots")
    if not has_own_dict(cls):
        return NONE
    state = snapshot(t, InstanceDict(self))
    return state if state.items else NONE
