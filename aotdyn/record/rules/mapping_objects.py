"""Methods of dict, OrderedDict and defaultdict on instances of their subclasses: what the C
implementation does, overridden methods of Python included where C calls them."""

import collections
import functools
import operator
from collections.abc import Callable
from types import NoneType

from ..invoke import allocate
from ..iteration import iterate
from ..keys import key_of
from ..live_dicts import dict_item
from ..members import C_CALLABLES, MISSING, static_lookup
from ..operation import apply, call, call_method, refuse_arguments, truth
from ..signals import GraphBreak
from ..variables import (
    Constant,
    DictVariable,
    Known,
    MappingObject,
    TupleVariable,
    Variable,
)
from .mappings import pairs_of, unpack_pair
from .table import rule

NONE = Constant(None)
_BASES = (dict, collections.OrderedDict, collections.defaultdict)


def methods(name: str) -> tuple:
    """The C methods of that name of dict and its subclasses in C."""
    return tuple({vars(base)[name]: None for base in _BASES if name in vars(base)})


def _rule_of(name: str) -> Callable[[Callable], Callable]:
    """Registers a rule for the C methods of that name."""

    def register(function: Callable) -> Callable:
        own, plain = vars(collections.OrderedDict).get(name), getattr(dict, name)
        if own is None:
            return rule(methods(name), MappingObject)(function)
        rule(tuple(each for each in methods(name) if each is not plain), MappingObject)(function)

        @rule(plain, MappingObject)
        @functools.wraps(function)
        def of_dict(t, self, /, *args, **kwargs):
            refuse_below_order(self, name)
            return function(t, self, *args, **kwargs)

        return function

    return register


def refuse_below_order(self: MappingObject, name: str) -> None:
    """A method of dict neither reads nor changes the order that an OrderedDict keeps besides."""
    if issubclass(self.cls, collections.OrderedDict):
        raise GraphBreak("subclass", f"dict.{name} of an OrderedDict")


def overrides(cls: type, *names: str) -> bool:
    """Whether a class has methods of the program in place of these methods of C; descriptors are
    not asked for what they give, which runs their code."""
    held = (static_lookup(cls, name)[0] for name in names)
    return any(not isinstance(each, C_CALLABLES) and each not in (MISSING, None) for each in held)


def _delegate(name: str) -> None:
    """C's method does the same to the contents, whatever the class overrides."""
    plain = getattr(dict, name)

    @_rule_of(name)
    def delegated(t, self, /, *args, **kwargs):
        return apply(t, plain, [self.contents, *args], kwargs)


for _name in ("__setitem__", "__delitem__", "__contains__", "__len__", "get", "clear", "keys",
              "values", "items", "__iter__"):  # fmt: skip
    _delegate(_name)


def _delegate_unless_overridden(name: str) -> None:
    """C's method of OrderedDict calls the overridden item methods."""
    plain = getattr(dict, name)

    @_rule_of(name)
    def delegated(t, self, /, *args, **kwargs):
        if issubclass(self.cls, collections.OrderedDict) and overrides(
            self.cls, "__getitem__", "__setitem__", "__delitem__", "__contains__"
        ):
            raise GraphBreak("subclass", f"{self.cls.__qualname__}.{name}")
        return apply(t, plain, [self.contents, *args], kwargs)


for _name in ("pop", "setdefault"):
    _delegate_unless_overridden(_name)


@_rule_of("__getitem__")
def getitem(t, self, key):
    found = _item(t, self, key)
    if found is not None:
        return found
    t.classes.lookup(self.cls, "__missing__")
    if static_lookup(self.cls, "__missing__")[0] not in (MISSING, None):
        return call_method(t, self, "__missing__", [key], on_class=True)
    return apply(t, operator.getitem, [self.contents, key])


def _item(t, self: MappingObject, key: Variable) -> Variable | None:
    if apply(t, operator.contains, [self.contents, key]).constant():
        return apply(t, operator.getitem, [self.contents, key])
    return None


@rule(collections.defaultdict.__missing__, MappingObject)
def missing(t, self, key):
    factory = t.realize(apply(t, getattr, [self, Constant("default_factory")]))
    if isinstance(factory, Constant) and factory.value is None:
        t.raise_exception(KeyError, t.realize(key))
    value = call(t, factory, [])
    apply(t, operator.setitem, [self, key, value])
    return value


@rule((dict.update, dict.__init__), MappingObject)
def update(t, self, /, *others, **kwargs):
    refuse_below_order(self, "update")
    return apply(t, dict.update, [self.contents, *others], kwargs)


@rule((collections.OrderedDict.update, collections.OrderedDict.__init__), MappingObject)
def update_ordered(t, self, other=None, /, **kwargs):
    """C goes through `self[key] = value`."""
    for key, value in () if other is None else pairs_of(t, t.realize(other), unpack_pair):
        apply(t, operator.setitem, [self, key, value])
    for name, value in kwargs.items():
        apply(t, operator.setitem, [self, Constant(name), value])
    return NONE


@rule(collections.defaultdict.__init__, MappingObject)
def init_default(t, self, factory=NONE, /, *others, **kwargs):
    made_by = t.realize(factory).type
    if made_by is not NoneType and static_lookup(made_by, "__call__")[1] is None:
        t.raise_exception(TypeError, "first argument must be callable or None")
    t.effects.set_attribute(self, "default_factory", t.realize(factory))
    return apply(t, dict.update, [self.contents, *others], kwargs)


@rule(collections.OrderedDict.move_to_end, MappingObject)
def move_to_end(t, self, key, last=None):
    apply(t, operator.getitem, [self.contents, key])
    to_end = last is None or truth(t, last)
    if not to_end:
        t.complete(self.contents)
    t.effects.move(self.contents, key_of(t, key), to_end)
    return NONE


@_rule_of("popitem")
def popitem(t, self, last=None):
    if overrides(self.cls, "__getitem__", "__delitem__"):
        raise GraphBreak("subclass", f"{self.cls.__qualname__}.popitem")
    contents = self.contents
    if not issubclass(self.cls, collections.OrderedDict):
        if last is not None:
            refuse_arguments(t, dict.popitem, [contents, last], {})
        return apply(t, dict.popitem, [contents])
    t.complete(contents)
    if not contents.items:
        t.raise_exception(KeyError, "dictionary is empty")
    token = next(iter(contents.items))
    if last is None or truth(t, last):
        token = next(reversed(contents.items))
    pair = contents.items[token]
    t.effects.delete_item(contents, token)
    return t.new(TupleVariable(pair))


@_rule_of("__or__")
def or_(t, self, other):
    """A new mapping of the class in C, or of a subclass of OrderedDict, with what both hold."""
    other = t.realize(other)
    if not isinstance(other, MappingObject | DictVariable):
        return Constant(NotImplemented)
    if self.cls not in (collections.OrderedDict, collections.defaultdict):
        if issubclass(self.cls, (collections.OrderedDict, collections.defaultdict)):
            raise GraphBreak("subclass", f"{self.cls.__qualname__} | …")
        made = apply(t, dict.copy, [self.contents])
        apply(t, dict.update, [made, other])
        return made
    made = copy(t, self)
    apply(t, dict.update, [made.contents, other])
    return made


@_rule_of("__ior__")
def ior(t, self, other):
    call_method(t, self, "update", [other])
    return self


@rule(collections.OrderedDict.fromkeys)
def fromkeys(t, iterable, value=NONE):
    made = t.new(MappingObject(collections.OrderedDict, DictVariable()))
    for key in iterate(t, iterable):
        apply(t, operator.setitem, [made.contents, key, value])
    return made


@_rule_of("__reversed__")
def backwards(t, self):
    return apply(t, reversed, [self.contents])


@_rule_of("copy")
def copy(t, self):
    contents = apply(t, dict.copy, [self.contents])
    if self.cls is collections.OrderedDict:
        return t.new(MappingObject(self.cls, contents))
    if self.cls is collections.defaultdict:
        made = t.new(MappingObject(self.cls, contents))
        factory = apply(t, getattr, [self, Constant("default_factory")])
        made.attributes["default_factory"] = factory
        return made
    if self.cls.copy is dict.copy:
        return contents
    raise GraphBreak("subclass", f"{self.cls.__qualname__}.copy")


def _equality(name: str, operation) -> None:
    @_rule_of(name)
    def equal(t, self, other):
        other = t.realize(other)
        if not isinstance(other, MappingObject | DictVariable):
            return Constant(NotImplemented)
        both = [self, other]
        ordered = all(issubclass(each.type, collections.OrderedDict) for each in both)
        left, right = (e.contents if isinstance(e, MappingObject) else e for e in both)
        if ordered:
            t.complete(left)
            t.complete(right)
            if list(left.items) != list(right.items):
                return Constant(operation is operator.ne)
        return apply(t, operation, [left, right])


_equality("__eq__", operator.eq)
_equality("__ne__", operator.ne)


@rule(dict.__new__, Known)
def new(t, self, *args, **kwargs):
    return allocate(t, self.value)


def known_item(t, self: MappingObject, key: str) -> Variable | None:
    """An item by its plain key, whatever the class overrides."""
    return dict_item(t, self.contents, key)
