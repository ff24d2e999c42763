"""`id()` and weak references."""

import weakref

from ...package.reference import Import
from ...package.source import Referent
from ..body import BodyWriter, rebuilds
from ..signals import GraphBreak
from ..variables import (
    Constant,
    IdentityVariable,
    Lazy,
    Variable,
)
from ..wrap import wraps
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
