"""`obj.__dict__` and `vars(obj)`: a dict whose items are the attributes of an object."""

import builtins
import operator
from collections.abc import Callable

from ..attributes import delete_own, own_attribute, own_dict_of, own_dict_source, set_own
from ..keys import key_of
from ..operation import apply
from ..signals import GraphBreak, Raised
from ..variables import (
    DELETED,
    Constant,
    DictVariable,
    InstanceDict,
    ObjectVariable,
    OwnItems,
    Variable,
)
from .mappings import pairs_of
from .table import rule

NONE = Constant(None)


def snapshot(t, self: InstanceDict) -> DictVariable:
    """All attributes of the moment, as a dict that the frame made."""
    owner = self.owner
    found: dict = {}
    if owner.live is not None and owner.source is not None:
        live = t.realize(t.lazy(own_dict_of(owner), own_dict_source(owner)))
        t.complete(live)
        found.update(live.items)
    for name, value in owner.attributes.items():
        if value is DELETED:
            found.pop(name, None)
        elif name not in found and _is_slot(owner.cls, name):
            continue
        else:
            if t.effects.is_renewed(owner, name):
                found.pop(name, None)
            found[name] = (Constant(name), value)
    return t.new(DictVariable(found))


def _is_slot(cls: type, name: str) -> bool:
    return any(name in vars(base).get("__slots__", ()) for base in cls.__mro__)


def _find(t, self: InstanceDict, key: Variable) -> Variable | None:
    name = key_of(t, key)
    if type(name) is not str:
        return None
    return own_attribute(t, self.owner, name)


@rule((operator.getitem, dict.__getitem__), InstanceDict)
def getitem(t, self, key):
    found = _find(t, self, key)
    if found is None:
        t.raise_exception(KeyError, t.realize(key))
    return found


@rule(dict.get, InstanceDict)
def get(t, self, key, default=NONE):
    found = _find(t, self, key)
    return default if found is None else found


@rule((operator.contains, dict.__contains__), InstanceDict)
def contains(t, self, key):
    return Constant(_find(t, self, key) is not None)


@rule((operator.setitem, dict.__setitem__), InstanceDict)
def setitem(t, self, key, value):
    name = t.constant(key)
    if type(name) is not str:
        raise GraphBreak("unknown_operation", f"an attribute whose name is a {type(name).__name__}")
    set_own(t, self.owner, name, value)
    return NONE


@rule((operator.delitem, dict.__delitem__), InstanceDict)
def delitem(t, self, key):
    getitem(t, self, key)
    delete_own(t, self.owner, t.constant(key))
    return NONE


@rule(dict.pop, InstanceDict)
def pop(t, self, key, default=None):
    found = _find(t, self, key)
    if found is not None:
        delete_own(t, self.owner, t.constant(key))
        return found
    if default is None:
        t.raise_exception(KeyError, t.realize(key))
    return default


@rule(dict.setdefault, InstanceDict)
def setdefault(t, self, key, default=NONE):
    found = _find(t, self, key)
    if found is None:
        setitem(t, self, key, default)
        return default
    return found


@rule(dict.update, InstanceDict)
def update(t, self, other=None, **kwargs):
    for key, value in () if other is None else pairs_of(t, t.realize(other)):
        setitem(t, self, key, value)
    for name, value in kwargs.items():
        setitem(t, self, Constant(name), value)
    return NONE


def own_items(t, self: InstanceDict) -> OwnItems:
    """The attributes as they are each time that they are looked at."""
    return t.new(OwnItems(self, lambda: snapshot(t, self).items))


def _on_items(operation, of: Callable) -> None:
    @rule(operation, InstanceDict)
    def delegated(t, self, *args):
        return apply(t, operation, [of(t, self), *args])


for _operation in (dict.copy, len, bool, operator.eq, operator.ne, operator.or_):
    _on_items(_operation, snapshot)
for _operation in (dict.keys, dict.values, dict.items, iter, reversed):
    _on_items(_operation, own_items)


@rule(builtins.vars, ObjectVariable)
def vars_(t, self):
    try:
        return apply(t, getattr, [self, Constant("__dict__")])
    except Raised as raised:
        if not issubclass(raised.value.type, AttributeError):
            raise
    t.raise_exception(TypeError, "vars() argument must have __dict__ attribute")
