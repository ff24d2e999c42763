"""Instances of subclasses of list and tuple: what the methods of C do with what they hold."""

import collections
from typing import Any

from ..body import BodyWriter, rebuilds, set_attributes
from ..iteration import iterate
from ..operation import apply
from ..signals import GraphBreak
from ..special_methods import BINARY_METHODS, COMPARISONS, INPLACE_METHODS, UNARY_METHODS
from ..variables import (
    Constant,
    Known,
    ListVariable,
    TupleVariable,
    Variable,
)
from ..variables.sequences import HeldList, SequenceObject
from ..wrap import WRAPPERS, add_predicate, is_named_tuple, items_of
from ..write_back import EFFECTS, object_effect
from .table import find, rule

NONE = Constant(None)
# Methods that a class must leave to C for its live instances to be looked into.
_READS = ("__getitem__", "__len__", "__iter__", "__getattribute__", "__setitem__", "__bool__")
_OWN = {"__new__", "__init__", "__getattribute__", "__class_getitem__", "__hash__", "__repr__"}


def _operators() -> dict[str, Any]:
    """Special method -> the operation that means it."""
    found: dict[str, Any] = {}
    for operation, (name, _) in BINARY_METHODS.items():
        found[name] = operation
    for operation, (name, _) in INPLACE_METHODS.items():
        found[name] = operation
    for operation, name in UNARY_METHODS.items():
        found[name] = operation
    return found


def _plain(t, value: Variable) -> Variable:
    """The contents of an instance, as the methods of list and tuple see them; other values as they
    are."""
    value = t.realize(value)
    if isinstance(value, TupleVariable) and value.cls is not tuple:
        return t.new(TupleVariable(list(value.items)))
    return value.contents if isinstance(value, SequenceObject) else value


def _delegate(method: Any, operation: Any) -> None:
    @rule(method, SequenceObject)
    def delegated(t, self, *args, **kwargs):
        others = [_plain(t, arg) for arg in args]
        if operation in COMPARISONS and not _is_of_kind(self.contents, others):
            return Constant(NotImplemented)
        result = t.realize(apply(t, operation, [self.contents, *others], kwargs))
        if result is self.contents and isinstance(result, TupleVariable):
            # A tuple is its own whole part; an instance of a subclass gives a plain one.
            return t.new(TupleVariable(list(result.items)))
        return self if result is self.contents else result


def _spell(method: Any, operation: Any, kind: type) -> None:
    """`list.__add__` and the like on plain lists."""
    if find(method, kind([])) is not None:
        return

    @rule(method, kind)
    def spelled(t, self, *args):
        self, *others = (_plain(t, arg) for arg in (self, *args))
        if operation in COMPARISONS and not _is_of_kind(self, others):
            return Constant(NotImplemented)
        return apply(t, operation, [self, *others])


def _is_of_kind(value: Variable, others: list[Variable]) -> bool:
    """Whether the methods by which a list or a tuple is compared take the others."""
    return all(issubclass(other.type, value.type) for other in others)


_OPERATORS = _operators()
for _base, _kind in ((list, ListVariable), (tuple, TupleVariable)):
    for _name, _method in vars(_base).items():
        if _name in _OWN or not callable(_method):
            continue
        _operation = _OPERATORS.get(_name)
        if _operation is not None:
            _spell(_method, _operation, _kind)
        if _operation is not None or not _name.startswith("__"):
            _delegate(_method, _operation or _method)


# -- making ------------------------------------------------------------


def allocate(t, cls: type, items: list[Variable]) -> Variable:
    """`list.__new__(cls)` or `tuple.__new__(cls, items)`."""
    if issubclass(cls, list):
        return t.new(SequenceObject(cls, t.new(HeldList([]))))
    if is_named_tuple(cls):
        return t.new(TupleVariable(items, cls=cls))
    return t.new(SequenceObject(cls, t.new(TupleVariable(items))))


@rule(tuple.__new__, Known)
def tuple_new(t, self, items=None):
    if self.value is tuple:
        return apply(t, tuple, [] if items is None else [items])
    return allocate(t, self.value, [] if items is None else iterate(t, items, counted=True))


@rule(list.__new__, Known)
def list_new(t, self, *args, **kwargs):
    return apply(t, list, []) if self.value is list else allocate(t, self.value, [])


@rule(list.__init__, SequenceObject)
def list_init(t, self, items=None):
    t.effects.set_items(self.contents, [] if items is None else iterate(t, items, counted=True))
    return NONE


# -- live instances, and rebuilding ---------------------------------------------------------


def _is_sequence_object(value: Any) -> bool:
    cls = type(value)
    if not issubclass(cls, list | tuple):
        return False
    if any(hasattr(getattr(cls, name, None), "__code__") for name in _READS):
        return False
    return type(cls) is type and cls not in WRAPPERS and not hasattr(cls, "n_fields")


def _wrap(t, value: Any, source) -> Variable:
    cls = type(value)
    t.guard("TYPE", source, t.references.to(cls))
    t.guard("LENGTH", source, len(value))
    is_list = isinstance(value, list)
    contents = HeldList([], source) if is_list else TupleVariable([])
    variable = SequenceObject(cls, contents, value, source)
    t.remember(value, variable)
    contents.items = items_of(t, value, source)
    return variable


add_predicate(_is_sequence_object, _wrap)


@rebuilds(SequenceObject)
def _rebuild(w: BodyWriter, v: SequenceObject) -> str:
    cls = w.ref(w.t.references.to(v.cls))
    base = v.base.__name__
    if base == "tuple":
        items = "".join(f"{w.value(item)}, " for item in v.contents.items)
        name = w.bind("items", f"tuple.__new__({cls}, ({items}))")
        w.known(v, name)
    else:
        name = w.bind("items", f"list.__new__({cls})")
        w.known(v, name)
        w.lines.append(f"list.extend({name}, [{', '.join(map(w.value, v.contents.items))}])")
    set_attributes(w, v, name)
    return name


@rebuilds(HeldList)
def _rebuild_held(w: BodyWriter, v: HeldList) -> str:
    return w.value(v.owner)


def _held_effect(w: BodyWriter, v: HeldList, target: str) -> list[str]:
    items = ", ".join(map(w.value, v.items))
    return [f"list.__setitem__({target}, slice(None), [{items}])"]


EFFECTS[HeldList] = _held_effect
EFFECTS[SequenceObject] = object_effect

# -- fields of named tuples' subclasses -----------------------------------------------------

_GETTER = type(vars(collections.namedtuple("_Any", "field"))["field"])


@rule(_GETTER.__get__)
def get_field(t, self, instance, owner=None):
    instance = _plain(t, instance)
    if not isinstance(self, Known) or not isinstance(instance, TupleVariable):
        raise GraphBreak("attribute", "a field of a named tuple")
    return instance.items[self.value.__reduce__()[1][0]]


