"""`types.MappingProxyType`: the namespace of a class, the members of an enum, and those that a
program makes; `dir()`, which lists namespaces."""

import builtins
import operator
from collections import OrderedDict, defaultdict
from types import FunctionType, MappingProxyType, ModuleType

from ...package.iterators import over
from ...package.reference import Import
from ...package.source import Attribute, Bound, Over
from ..body import BodyWriter, rebuilds
from ..operation import apply, call_method
from ..signals import GraphBreak
from ..variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    InstanceDict,
    Known,
    MappingObject,
    MethodVariable,
    ObjectVariable,
    Opaque,
    ProxyVariable,
)
from ..wrap import opaque, wraps
from .instance_dicts import snapshot
from .table import rule

# Mappings that a proxy reads as C does.
_DICTS = (dict, OrderedDict, defaultdict)
_PROXY = Import("types", "MappingProxyType")


@wraps(MappingProxyType)
def _proxy(t, value: MappingProxyType, source):
    """One that came in: what it stands for may be reached on other paths as well."""
    of = over(value)
    if type(of) not in _DICTS:
        return opaque(t, value, source)
    is_namespace = "__module__" in of
    if is_namespace and t.effects.members:
        # That of a class changes with its attributes.
        return opaque(t, value, source)
    t.guard("TYPE", source, _PROXY)
    read = DictVariable({}, source, value) if is_namespace else t.lazy(of, Over(source))
    made = ProxyVariable(t.realize(read), source)
    t.remember(value, made)
    return made


def require_unread_namespaces(t) -> None:
    """Before an attribute of a class is set: no namespace was looked at, which would change.

    Raises GraphBreak.
    """
    proxies = [each for each in t.remembered() if isinstance(each, ProxyVariable)]
    if any(isinstance(getattr(each.of, "live", None), MappingProxyType) for each in proxies):
        raise GraphBreak("mutation", "a class whose namespace was looked at")


@rule(MappingProxyType)
def make_proxy(t, mapping):
    if isinstance(mapping, DictVariable | MappingObject | ObjectVariable):
        return t.new(ProxyVariable(mapping))
    if isinstance(mapping, Constant):
        kind = mapping.type.__name__
        t.raise_exception(TypeError, f"mappingproxy() argument must be a mapping, not {kind}")
    return NotImplemented


@rebuilds(ProxyVariable)
def _rebuild(w: BodyWriter, v: ProxyVariable) -> str:
    return w.bind("proxy", f"{w.ref(_PROXY)}({w.value(v.of)})")


def _delegate(operation, plain) -> None:
    @rule(operation, ProxyVariable)
    def delegated(t, self, *args):
        args = [t.realize(arg) for arg in args]
        return apply(t, plain, [self.of, *(_behind(arg) for arg in args)])


def _behind(value):
    return value.of if isinstance(value, ProxyVariable) else value


for _operation in (operator.getitem, operator.contains, len, iter, reversed, bool, operator.truth,
                   operator.eq, operator.ne, operator.or_):  # fmt: skip
    _delegate(_operation, _operation)


def _method(name: str) -> None:
    @rule(getattr(MappingProxyType, name), ProxyVariable)
    def method(t, self, *args):
        if isinstance(self.of, DictVariable):
            return apply(t, getattr(dict, name), [self.of, *args])
        return call_method(t, self.of, name, list(args))


for _name in ("keys", "values", "items", "get", "copy", "__getitem__", "__contains__", "__len__",
              "__iter__"):  # fmt: skip
    _method(_name)


@rule(operator.setitem, ProxyVariable)
def no_setitem(t, self, key, value):
    t.raise_exception(TypeError, "'mappingproxy' object does not support item assignment")


@rule(operator.delitem, ProxyVariable)
def no_delitem(t, self, key):
    t.raise_exception(TypeError, "'mappingproxy' object does not support item deletion")


# -- namespaces of classes ------------------------------------------------------------


def namespace(t, cls: type):
    """`cls.__dict__`."""
    if any(held is cls for held, _ in t.effects.members):
        raise GraphBreak("mutation", f"{cls.__qualname__}.__dict__, which was changed")
    source = Attribute(Bound(t.references.to(cls)), "__dict__")
    return t.realize(t.lazy(vars(cls), source))


@rule(builtins.vars, Known)
def vars_(t, self):
    if isinstance(self.value, ModuleType):
        return apply(t, getattr, [self, Constant("__dict__")])
    return namespace(t, self.value) if isinstance(self.value, type) else NotImplemented


@rule(dir)
def dir_(t, self=None):
    """The names in the namespaces that the lookup of an attribute goes through, sorted."""
    if self is None:
        listed = t.realize(apply(t, locals, []))
        return _sorted(t, set(listed.items))
    if isinstance(self, Known) and isinstance(self.value, type):
        if type(self.value).__dir__ is not type.__dir__:
            return NotImplemented
        return _sorted(t, _names(t, self.value))
    t.classes.lookup(self.type, "__dir__")
    if isinstance(self, Known | Opaque) or self.type.__dir__ is not object.__dir__:
        if isinstance(self, ObjectVariable) and isinstance(self.type.__dir__, FunctionType):
            listed = call_method(t, self, "__dir__", on_class=True)
            return apply(t, sorted, [listed])
        return NotImplemented
    if isinstance(self, FunctionVariable | MethodVariable):
        return NotImplemented  # a function has attributes of its own, a method has its function's
    if not isinstance(self, ObjectVariable):
        return _sorted(t, _names(t, self.type))
    told = t.realize(apply(t, getattr, [self, Constant("__class__")]))
    if not isinstance(told, Known):
        return NotImplemented
    return _sorted(t, _names(t, told.value) | _own_names(t, self))


def _own_names(t, self: ObjectVariable) -> set[str]:
    """The names in what an object says is its `__dict__`, if it has one."""
    own = t.realize(apply(t, getattr, [self, Constant("__dict__"), Constant(None)]))
    if isinstance(own, InstanceDict):
        return set(snapshot(t, own).items)
    if not isinstance(own, DictVariable):
        return set()
    t.complete(own)
    return set(own.items)


def _names(t, cls: type) -> set[str]:
    found: set[str] = set()
    for base in cls.__mro__:
        if base.__flags__ & (1 << 8):
            # A class of C.
            found |= set(vars(base))
            continue
        contents = namespace(t, base).of
        t.complete(contents)
        found |= set(contents.items)
    return found


def _sorted(t, names: set[str]):
    return t.wrap_list([Constant(name) for name in sorted(names)])
