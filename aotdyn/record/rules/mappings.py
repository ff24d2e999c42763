"""Dicts, their views, and sets."""

import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from types import NoneType
from typing import Any

from ..iteration import chunks, each, iterate
from ..keys import key_of
from ..live_dicts import dict_item
from ..operation import apply, call, call_method, truth
from ..own_operators import may_compare
from ..set_tables import filling, given, known_table
from ..signals import Raised
from ..variables import (
    Constant,
    DictVariable,
    InstanceDict,
    Known,
    MappingObject,
    ObjectVariable,
    ProxyVariable,
    Sequence,
    SetVariable,
    Symbolic,
    TextVariable,
    TupleVariable,
    Variable,
    ViewVariable,
)
from .sequences import same_or_equal
from .table import rule

NONE = Constant(None)


# -- dicts ------------------------------------------------------------


@rule((operator.getitem, dict.__getitem__), DictVariable)
def getitem(t, self, key):
    found = dict_item(t, self, _looked_for(t, self, key))
    if found is None:
        t.raise_exception(KeyError, t.realize(key))
    return found


_NO_KEY = object()


def _looked_for(t, self: DictVariable, key: Variable) -> Any:
    """The token that a dict looks for: none for a symbolic number that differs from all its keys,
    if they are few. Any other is fixed, as one that is to be a key is."""
    key = t.realize(key)
    if not isinstance(key, Symbolic):
        return key_of(t, key)
    if not all(map(_may_be_compared, (self.items, () if self.complete else self.live))):
        return key_of(t, key)
    t.complete(self)
    return key_of(t, key) if _is_one_of(t, key, self.items) else _NO_KEY


@rule(dict.get, DictVariable)
def get(t, self, key, default=NONE):
    found = dict_item(t, self, _looked_for(t, self, key))
    return default if found is None else found


@rule((operator.setitem, dict.__setitem__), DictVariable)
def setitem(t, self, key, value):
    token = key_of(t, key)
    # Whether the key was there decides its place in the order: `complete` finds out if asked.
    t.effects.set_item(self, token, _key_variable(t, key), value)
    return NONE


def _key_variable(t, key: Variable) -> Variable:
    key = t.realize(key)
    return t.specialize(key) if isinstance(key, Symbolic | TextVariable) else key


@rule((operator.delitem, dict.__delitem__), DictVariable)
def delitem(t, self, key):
    token = key_of(t, key)
    if dict_item(t, self, token) is None:
        t.raise_exception(KeyError, t.realize(key))
    t.effects.delete_item(self, token)
    return NONE


@rule((operator.contains, dict.__contains__), DictVariable)
def contains(t, self, key):
    return Constant(dict_item(t, self, _looked_for(t, self, key)) is not None)


@rule((len, dict.__len__), DictVariable)
def length(t, self):
    t.complete(self)
    return Constant(len(self.items))


@rule((bool, operator.truth), DictVariable)
def truth_(t, self):
    if not self.complete and not self.items and not self.changes and self.source is not None:
        # An empty dict (a module's hooks) is checked without its keys.
        if not self.live:
            t.guard("EMPTY", self.source)
            self.complete = True
            return Constant(False)
        t.guard("NONEMPTY", self.source)
        return Constant(True)
    t.complete(self)
    return Constant(len(self.items) > 0)


@rule(dict.pop, DictVariable)
def pop(t, self, key, default=None):
    token = key_of(t, key)
    found = dict_item(t, self, token)
    if found is None:
        if default is None:
            t.raise_exception(KeyError, t.realize(key))
        return default
    t.effects.delete_item(self, token)
    return found


@rule(dict.popitem, DictVariable)
def popitem(t, self):
    t.complete(self)
    if not self.items:
        t.raise_exception(KeyError, "popitem(): dictionary is empty")
    token = next(reversed(self.items))
    key, value = self.items[token]
    t.effects.delete_item(self, token)
    return t.new(TupleVariable([key, value]))


@rule(dict.setdefault, DictVariable)
def setdefault(t, self, key, default=NONE):
    token = key_of(t, key)
    found = dict_item(t, self, token)
    if found is None:
        t.effects.set_item(self, token, _key_variable(t, key), default)
        return default
    return found


@rule(dict.clear, DictVariable)
def clear(t, self):
    t.effects.clear(self)
    return NONE


@rule(dict.copy, DictVariable)
def copy(t, self):
    t.complete(self)
    return t.new(DictVariable(dict(self.items)))


@rule(dict.update, DictVariable)
def update(t, self, other=None, /, **kwargs):
    if other is not None:
        for key, value in pairs_of(t, t.realize(other)):
            setitem(t, self, key, value)
    for name, value in kwargs.items():
        setitem(t, self, Constant(name), value)
    return NONE


Pair = tuple[Variable, Variable]


def _unpack_for_dict(t, pair: Variable, index: int) -> Pair:
    what = f"dictionary update sequence element #{index}"
    try:
        items = iterate(t, pair)
    except Raised as raised:
        if not issubclass(raised.value.type, TypeError):
            raise
        t.raise_exception(TypeError, f"cannot convert {what} to a sequence")
    if len(items) != 2:
        t.raise_exception(ValueError, f"{what} has length {len(items)}; 2 is required")
    return items[0], items[1]


def unpack_pair(t, pair: Variable, index: int) -> Pair:
    """As OrderedDict does it, and not a dict."""
    items = iterate(t, pair, limit=3)
    if len(items) < 2:
        found = f"{len(items)} value{'s' * (not items)}"
        t.raise_exception(ValueError, f"need more than {found} to unpack")
    if len(items) > 2:
        t.raise_exception(ValueError, "too many values to unpack (expected 2)")
    return items[0], items[1]


def pairs_of(
    t, other: Variable, unpack: Callable[..., Pair] = _unpack_for_dict
) -> Iterator[Pair]:
    """What a dict is updated from, a mapping or pairs; each is taken only when it is asked for.
    unpack: makes two of a pair."""
    if isinstance(other, DictVariable):
        t.complete(other)
        yield from list(other.items.values())
    elif isinstance(other, InstanceDict):
        yield from iterate_pairs(t, other)
    elif isinstance(other, MappingObject) and other.cls.__iter__ is dict.__iter__:
        yield from pairs_of(t, other.contents, unpack)
    elif isinstance(other, ProxyVariable):
        yield from pairs_of(t, other.of, unpack)
    else:
        yield from _pairs_of_others(t, other, unpack)


def _pairs_of_others(t, other: Variable, unpack: Callable[..., Pair]) -> Iterator[Pair]:
    if isinstance(other, ObjectVariable) and truth(t, apply(t, hasattr, [other, Constant("keys")])):
        for key in each(t, call_method(t, other, "keys")):
            yield key, apply(t, operator.getitem, [other, key])
        return
    for index, pair in enumerate(each(t, other)):
        yield unpack(t, pair, index)


def iterate_pairs(t, other: Variable) -> list[tuple[Variable, Variable]]:
    """The items of a mapping by its `items()`."""
    pairs = iterate(t, apply(t, dict.items, [other]))
    return [(pair.items[0], pair.items[1]) for pair in pairs]


@rule(operator.ior, DictVariable)
def ior(t, self, other):
    update(t, self, other)
    return self


@rule(operator.or_, DictVariable)
def or_(t, self, other):
    other = t.realize(other)
    if not isinstance(other, DictVariable):
        return NotImplemented
    result = copy(t, self)
    update(t, result, other)
    return result


@rule(dict)
def make_dict(t, self=None, /, **kwargs):
    result = t.new(DictVariable())
    update(t, result, self, **kwargs)
    return result


@rule(dict.fromkeys)
def fromkeys(t, self, value=NONE):
    result = t.new(DictVariable())
    for key in iterate(t, self):
        setitem(t, result, key, value)
    return result


@rule(vars(dict)["fromkeys"], Known)
def fromkeys_of_class(t, self, iterable, value=NONE):
    """`fromkeys` of a subclass: what calling it gives is filled item by item."""
    made = call(t, self, [])
    for key in each(t, iterable):
        apply(t, operator.setitem, [made, key, value])
    return made


def _equality(operation, wanted: bool):
    @rule(operation, DictVariable)
    def equal(t, self, other):
        other = t.realize(other)
        if isinstance(other, InstanceDict | ProxyVariable):
            return apply(t, operation, [other, self])
        if not isinstance(other, DictVariable):
            return Constant(not wanted) if isinstance(other, _CONTAINERS) else NotImplemented
        t.complete(self)
        t.complete(other)
        same = self.items.keys() == other.items.keys() and all(
            same_or_equal(t, value, other.items[key][1])
            for key, (_, value) in self.items.items()
        )
        return Constant(same is wanted)

    @rule(operation, SetVariable)
    def equal_set(t, self, other):
        other = t.realize(other)
        if isinstance(other, ViewVariable):
            return apply(t, operation, [other, self])
        if not isinstance(other, SetVariable):
            return NotImplemented if may_compare(t, other) else Constant(not wanted)
        return Constant((self.items.keys() == other.items.keys()) is wanted)


_equality(operator.eq, True)
_equality(operator.ne, False)


# -- views ------------------------------------------------------------


def _view(method, kind: str) -> None:
    @rule(method, DictVariable)
    def view(t, self):
        t.complete(self)
        return t.new(ViewVariable(self, kind))


_view(dict.keys, "keys")
_view(dict.values, "values")
_view(dict.items, "items")


def view_items(t, view: ViewVariable) -> list[Variable]:
    """The values of a view, in order."""
    t.complete(view.of)
    rows = view.of.items.values()
    if view.kind == "keys":
        return [key for key, _ in rows]
    if view.kind == "values":
        return [value for _, value in rows]
    return [t.new(TupleVariable([key, value])) for key, value in rows]


@rule(len, ViewVariable)
def view_length(t, self):
    return length(t, self.of)


@rule((bool, operator.truth), ViewVariable)
def view_truth(t, self):
    return Constant(length(t, self.of).value > 0)


@rule(operator.contains, ViewVariable)
def view_contains(t, self, item):
    if self.kind == "keys":
        return contains(t, self.of, item)
    return apply(t, operator.contains, [t.wrap_list(view_items(t, self)), item])


@rule((type({}.keys()).isdisjoint, type({}.items()).isdisjoint), ViewVariable)
def view_is_disjoint(t, self, other):
    return Constant(_view_as_set(t, self).items.keys().isdisjoint(_tokens(t, other)))


def _view_as_set(t, view: ViewVariable) -> SetVariable:
    items = view_items(t, view)
    return SetVariable({key_of(t, item): item for item in items})


# -- sets ------------------------------------------------------------


@rule(set)
def make_set(t, self=None):
    return _make_set(t, self, set)


@rule(frozenset)
def make_frozenset(t, self=None):
    return _make_set(t, self, frozenset)


def _make_set(t, iterable: Variable | None, cls: type) -> SetVariable:
    if cls is frozenset and isinstance(iterable, SetVariable) and iterable.cls is frozenset:
        return iterable
    if iterable is None:
        return t.new(SetVariable({}, cls=cls))
    found = _tokens(t, iterable)
    held = given(t.realize(iterable), found)
    return t.new(SetVariable(found, cls=cls, table=None if held is None else cls(held)))


@rule((len, set.__len__, frozenset.__len__), SetVariable)
def set_length(t, self):
    return Constant(len(self.items))


@rule((operator.contains, set.__contains__, frozenset.__contains__), SetVariable)
def set_contains(t, self, item):
    item = t.realize(item)
    if isinstance(item, Symbolic) and _may_be_compared(self.items):
        return Constant(_is_one_of(t, item, self.items))
    return Constant(_member_of(t, item) in self.items)


def _member_of(t, item: Variable):
    """The token that a set looks for; for a set it looks for a frozen one that equals it."""
    item = t.realize(item)
    if isinstance(item, SetVariable) and not issubclass(item.type, frozenset):
        item = SetVariable(item.items, cls=frozenset)
    return key_of(t, item)


# With so many members of a set, or keys, a symbolic number is compared; among more it is fixed.
_COMPARED = 8


def _may_be_compared(keys: Collection) -> bool:
    plain = all(type(key) in (int, float, bool, str, NoneType) for key in keys)
    return plain and len(keys) <= _COMPARED


def _is_one_of(t, number: Symbolic, keys: Iterable) -> bool:
    """Whether a number equals a key: its hash, by which Python looks for it, is not known."""
    # Sorted: a set has another order in each process.
    numbers = sorted(key for key in keys if type(key) in (int, float, bool))
    return any(truth(t, apply(t, operator.eq, [number, Constant(each)])) for each in numbers)


@rule(set.add, SetVariable)
def add(t, self, item):
    token = key_of(t, item)
    if token not in self.items:
        t.effects.change_members(self, ("add", {token: t.realize(item)}))
    return NONE


@rule(set.discard, SetVariable)
def discard(t, self, item):
    token = _member_of(t, item)
    if token in self.items:
        t.effects.change_members(self, ("discard", {token: self.items[token]}))
    return NONE


@rule(set.remove, SetVariable)
def remove(t, self, item):
    if _member_of(t, item) not in self.items:
        t.raise_exception(KeyError, t.realize(item))
    return discard(t, self, item)


@rule(set.pop, SetVariable)
def pop_member(t, self):
    """Which one goes depends on hashes, unless there is only one."""
    if not self.items:
        t.raise_exception(KeyError, "pop from an empty set")
    if len(self.items) > 1:
        return NotImplemented
    token, item = next(iter(self.items.items()))
    t.effects.change_members(self, ("discard", {token: item}))
    return item


@rule(set.clear, SetVariable)
def clear_set(t, self):
    t.effects.replace_members(self, {}, set())
    return NONE


@rule((set.copy, frozenset.copy), SetVariable)
def copy_set(t, self):
    if self.cls is frozenset:
        return self
    table = known_table(self)
    table = None if table is None else table.copy()
    return t.new(SetVariable(dict(self.items), cls=self.cls, table=table))


@rule(set.update, SetVariable)
def update_set(t, self, *others):
    for other in map(t.realize, others):
        if type(other) in (SetVariable, DictVariable):
            t.effects.change_members(self, filling(other, _tokens(t, other)))
            continue
        for chunk in chunks(t, other):
            _add_all(t, self, chunk)
    return NONE


def _add_all(t, self: SetVariable, chunk: list[Variable]) -> None:
    """Adds items; those before one that has no hash stay."""
    added: dict = {}
    try:
        for item in chunk:
            added.setdefault(key_of(t, item), item)
    finally:
        t.effects.change_members(self, ("add", added))


def _tokens(t, other: Variable) -> dict:
    found: dict = {}
    for item in iterate(t, other):
        found.setdefault(key_of(t, item), item)
    return found


def _algebra(methods: tuple, operation, combine, of_others=None) -> None:
    """combine: what two sets give. of_others: what a set and the items of something else give, if
    that is another thing."""

    @rule(methods, SetVariable)
    def method(t, self, *others):
        if set.symmetric_difference in methods:
            _require_one(t, self, "symmetric_difference", others)
        items, table = dict(self.items), known_table(self)
        changes = []
        for other in map(t.realize, others):
            tokens = _tokens(t, other)
            is_set = of_others is None or isinstance(other, SetVariable)
            items = (combine if is_set else of_others)(items, tokens)
            table = _combined(table, methods[0].__name__, given(other, tokens))
            changes.append(filling(other, tokens))
        made = t.new(SetVariable(items, cls=self.cls, table=table))
        return _united(made, self, changes) if set.union in methods else made

    @rule(operation, SetVariable, ViewVariable)
    def operator_(t, self, other):
        other = t.realize(other)
        views = [each for each in (self, other) if isinstance(each, ViewVariable)]
        if any(view.kind == "values" for view in views):
            return NotImplemented
        if not views and not isinstance(other, SetVariable):
            return NotImplemented
        left = self if isinstance(self, SetVariable) else _view_as_set(t, self)
        # A view takes all that can be iterated over.
        right = _tokens(t, other)
        tables = (None, None) if views else (known_table(left), known_table(other))
        table = _combined(tables[0], methods[0].__name__, tables[1])
        made = t.new(SetVariable(combine(left.items, right), None, set if views else left.cls,
                                 table))  # fmt: skip
        united = set.union in methods and not views
        return _united(made, left, [filling(other, right)]) if united else made


def _require_one(t, self: SetVariable, name: str, others: tuple) -> None:
    """Raises TypeError where a method gets more than one argument, or none: of its signature C
    does not tell."""
    if len(others) != 1:
        told = f"takes exactly one argument ({len(others)} given)"
        t.raise_exception(TypeError, f"{self.cls.__name__}.{name}() {told}")


def _united(made: SetVariable, first: SetVariable, changes: list[tuple]) -> SetVariable:
    """A set that was made of the members of another one, and those of others."""
    made.base = {k: first.items[k] for k in known_table(first) or first.items}
    made.changes += changes
    return made


def _intersection(a: dict, b: dict) -> dict:
    """Python goes through the smaller one, and takes its objects; through the second one where
    both are of a size."""
    if len(b) > len(a):
        return _met(b, a)
    return _met(a, b)


def _met(a: dict, b: dict) -> dict:
    """An intersection with what is no set: that is gone through, whatever its size."""
    return {k: v for k, v in b.items() if k in a}


def _symmetric_difference(a: dict, b: dict) -> dict:
    return {k: v for k, v in a.items() if k not in b} | {k: v for k, v in b.items() if k not in a}


def _combined(table: Any, method: str, other: Any) -> Any:
    """What a method gives on tables; None where one of them is not known."""
    return None if table is None or other is None else getattr(table, method)(other)


_algebra((set.union, frozenset.union), operator.or_, lambda a, b: a | {
    k: v for k, v in b.items() if k not in a})  # fmt: skip
_algebra((set.intersection, frozenset.intersection), operator.and_, _intersection, _met)
_algebra((set.difference, frozenset.difference), operator.sub, lambda a, b: {
    k: v for k, v in a.items() if k not in b})  # fmt: skip
_algebra(
    (set.symmetric_difference, frozenset.symmetric_difference), operator.xor, _symmetric_difference
)


def _compare_sets(operation, method) -> None:
    @rule(operation, SetVariable)
    def compare(t, self, other):
        other = t.realize(other)
        if isinstance(other, ViewVariable) and other.kind != "values":
            other = _view_as_set(t, other)
        if not isinstance(other, SetVariable):
            return NotImplemented
        return Constant(operation(self.items.keys(), other.items.keys()))

    if method is not None:

        @rule(method, SetVariable)
        def compare_method(t, self, other):
            return Constant(operation(self.items.keys(), _tokens(t, other).keys()))


_compare_sets(operator.le, (set.issubset, frozenset.issubset))
_compare_sets(operator.ge, (set.issuperset, frozenset.issuperset))
_compare_sets(operator.lt, None)
_compare_sets(operator.gt, None)


@rule(set.difference_update, SetVariable)
def difference_update(t, self, *others):
    for other in others:
        tokens = _tokens(t, other)
        removed = {k: item for k, item in self.items.items() if k in tokens}
        t.effects.change_members(self, ("difference", removed))
    return NONE


@rule(set.intersection_update, SetVariable)
def intersection_update(t, self, *others):
    others = tuple(map(t.realize, others))
    # All are read before the set changes.
    for other, tokens in [(other, _tokens(t, other)) for other in others]:
        combine = _intersection if isinstance(other, SetVariable) else _met
        _replace(t, self, set.intersection_update, combine(self.items, tokens), other, tokens)
    return NONE


@rule(set.symmetric_difference_update, SetVariable)
def symmetric_difference_update(t, self, *others):
    _require_one(t, self, "symmetric_difference_update", others)
    other = t.realize(others[0])
    tokens = _tokens(t, other)
    held = _symmetric_difference(self.items, tokens)
    _replace(t, self, set.symmetric_difference_update, held, other, tokens)
    return NONE


def _replace(t, self: SetVariable, method, held: dict, other: Variable, tokens: dict) -> None:
    """A set has other members; those that a method has left of its own and another's."""
    table, real = self.table, given(other, tokens)
    if table is not None and real is not None:
        method(table, real)
    t.effects.replace_members(self, held, table if real is not None else None)


def _in_place(operation, change, plain_operation) -> None:
    @rule(operation, SetVariable)
    def in_place(t, self, other):
        other = t.realize(other)
        if not isinstance(other, SetVariable | ViewVariable):
            return NotImplemented
        # A set does not know views; a view makes a new set.
        if self.cls is frozenset or isinstance(other, ViewVariable):
            return apply(t, plain_operation, [self, other])
        apply(t, change, [self, other])
        return self


_in_place(operator.ior, set.update, operator.or_)
_in_place(operator.iand, set.intersection_update, operator.and_)
_in_place(operator.isub, set.difference_update, operator.sub)
_in_place(operator.ixor, set.symmetric_difference_update, operator.xor)


# What a view without a comparison of its own is not equal to.
_CONTAINERS = (Constant, Sequence, DictVariable, SetVariable, ViewVariable)


def _compare_views(operation) -> None:
    @rule(operation, ViewVariable)
    def compare(t, self, other):
        other = t.realize(other)
        is_set = isinstance(other, SetVariable) or (
            isinstance(other, ViewVariable) and other.kind != "values"
        )
        if self.kind == "values" or not is_set:
            if operation in (operator.eq, operator.ne) and isinstance(other, _CONTAINERS):
                return Constant((self is other) is (operation is operator.eq))
            return NotImplemented
        if isinstance(other, ViewVariable):
            other = _view_as_set(t, other)
        return apply(t, operation, [_view_as_set(t, self), other])


for _operation in (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
):  # fmt: skip
    _compare_views(_operation)


@rule((set.isdisjoint, frozenset.isdisjoint), SetVariable)
def isdisjoint(t, self, other):
    return Constant(self.items.keys().isdisjoint(_tokens(t, other)))
