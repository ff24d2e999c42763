"""Dicts that came in: their items are looked at one by one, when they are asked for."""

import math
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import torch

from ..package.arrays import SCALARS
from ..package.reference import Literal
from ..package.source import Bound, Item, Listed, ReferredItem, Source
from .keys import is_hashed_by_program, key_of
from .signals import GraphBreak
from .variables import (
    Constant,
    DictVariable,
    Known,
    RangeVariable,
    SetVariable,
    TupleVariable,
    Variable,
)
from .wrap import PLAIN, compared_by_program, refuse_varying, require_few


def dict_value(t, variable: DictVariable, key: Any) -> Variable | None:
    """The item of a dict that existed before, looked up on demand; None if it is not there.

    Guards the presence or absence of the key.
    """
    live, source = variable.live, variable.source
    if variable.by_program is None:
        variable.by_program = compared_by_program(live) is not None
    asked, key = key, _as_tuples(key)
    if variable.by_program or not is_named(t, key):
        complete_dict(t, variable)
        return variable.items[asked][1] if asked in variable.items else None
    if key not in live:
        t.guard("LACKS", source, _key_expected(t, key))
        variable.absent.add(key)
        return None
    t.guard("HAS", source, _key_expected(t, key))
    value = t.lazy(live[key], _key_source(t, source, key))
    variable.items[key] = (key_variable(t, asked), value)
    return value


def _as_tuples(key: Any) -> Any:
    """The plain tuple that a named tuple equals, as a key: it is looked up in its place."""
    if not isinstance(key, tuple):
        return key
    kind = type(key)
    if kind not in _TUPLES and (kind.__hash__, kind.__eq__) != (tuple.__hash__, tuple.__eq__):
        return key
    parts = tuple(map(_as_tuples, key))
    return key if kind in _TUPLES and parts == key else parts


_TUPLES = (tuple, torch.Size)


def dict_item(t, mapping: DictVariable, key: Any) -> Variable | None:
    """A dict's item, or None if the dict does not have it."""
    if key in mapping.items:
        return mapping.items[key][1]
    if mapping.complete or key in mapping.absent:
        return None
    return dict_value(t, mapping, key)


def complete_dict(t, variable: DictVariable) -> None:
    """Makes all keys of a dict known, in order; guards them."""
    if variable.complete:
        return
    live, source = variable.live, variable.source
    require_few(len(live))
    keys = _keys_in_order(live)
    known = variable.items
    if {*map(type, keys)} <= _WRITTEN or all(is_named(t, key) for key in keys):
        refuse_varying(t, source, (dict, *keys), "the keys of a dict")
        for key in keys:
            if type(key) is int:
                t.numbers_as_keys.known(key)
        expected = tuple(key if is_plain_key(key) else t.references.to(key) for key in keys)
        t.guard("KEYS", source, expected)
        items = {key: (key_variable(t, key), _value_at(t, variable, key)) for key in keys}
    else:
        items = _items_by_objects(t, variable, keys)
    variable.items = {
        key: (held, known[key][1] if key in known else value)
        for key, (held, value) in items.items()
    }
    _replay(variable, known)
    variable.complete = True


def _value_at(t, variable: DictVariable, key: Any) -> Variable:
    return t.lazy(variable.live[key], _key_source(t, variable.source, key))


def _items_by_objects(t, variable: DictVariable, keys: list) -> dict:
    """The items of a dict with keys that nothing names in other processes: each key is looked at as
    any object is, at its place in the dict's order."""
    live, source = variable.live, variable.source
    if isinstance(type(live).values, FunctionType):
        raise GraphBreak("subclass", type(live).__qualname__)
    t.guard("LENGTH", source, len(keys))
    items: dict = {}
    values = [*live.values()]
    for index, (token, held) in enumerate(wrapped_keys(t, source, live, keys)):
        at_key = is_named(t, keys[index])
        value = _value_at(t, variable, keys[index]) if at_key else t.lazy(
            values[index], Item(Listed(source, values=True), index)
        )
        items[token] = held, value
    return items


# More keys that are looked at one by one would make every call of the frame slow.
_MOST_OBJECTS = 1000


def wrapped_keys(
    t, source: Source, table: Any, keys: list, listed: Source | None = None
) -> list[tuple[Any, Variable]]:
    """What stands for each key of a dict, or member of a set, and its variable; guarded. listed:
    the tuple of them, if that is another than in the order of the table.

    Raises GraphBreak where a table does not find its own keys any more: their hashes have changed.
    """
    if len(keys) > _MOST_OBJECTS:
        raise GraphBreak("long_trace", f"{len(keys)} keys that have no name in other processes")
    found: dict = {}
    for index, key in enumerate(keys):
        held = t.realize(t.lazy(key, Item(listed or Listed(source), index)))
        token = key_of(t, held)
        if token in found:
            raise GraphBreak("hash", "keys that have become equal")
        found[token] = held
    if any(map(is_hashed_by_program, found)):
        if not all(key in table for key in keys):
            raise GraphBreak("hash", "a key whose hash has changed")
        if t.effects.is_seen and any(map(_has_moved, found, keys)):
            raise GraphBreak("hash", "a key whose hash the frame may have changed")
        t.guard("FOUND", source)
    return [*found.items()]


def _has_moved(token: Any, key: Any) -> bool:
    """Whether what stands for a key may have another hash than the key, as it came in."""
    return is_hashed_by_program(token) and hash(token) != hash(key)


def is_named(t, key: Any) -> bool:
    """Whether a key is plain or found by its name in other processes, and compared by C."""
    if is_plain_key(key):
        return True
    return compared_by_program((key,)) is None and t.references_to(key) is not None


def _keys_in_order(live: Mapping) -> list:
    """The keys of a mapping. Raises GraphBreak for an OrderedDict that was changed as a dict: the
    order that it keeps is of other keys than it holds."""
    try:
        keys = list(live)
    except KeyError:
        keys = []
    if len(keys) != len(live):
        raise GraphBreak("subclass", "an OrderedDict that was changed by methods of dict")
    return keys


def _replay(variable: DictVariable, known: dict) -> None:
    """Brings the keys that a dict had when it came in to its present state. known: its items
    as far as they had been looked at or set."""
    items = variable.items
    for change in variable.changes:
        if change[0] == "del":
            items.pop(change[1], None)
        elif change[0] == "first":
            variable.items = items = {change[1]: items.pop(change[1]), **items}
        elif change[0] == "last":
            if change[1] in items:
                items[change[1]] = items.pop(change[1])
        elif change[1] in known:
            # A key that is there stays the object that it is.
            key = items.get(change[1], known[change[1]])[0]
            items[change[1]] = (key, known[change[1]][1])


def is_plain_key(key: Any) -> bool:
    """Whether a key is stored as it is."""
    kind = type(key)
    if kind in (tuple, frozenset):
        return all(map(is_plain_key, key))
    return kind in _PLAIN_KEYS


def _is_written(key: Any) -> bool:
    """Whether the text of a plain key is Python for it."""
    if type(key) is tuple:
        return all(map(_is_written, key))
    return type(key) in _WRITTEN or type(key) is float and math.isfinite(key)


_WRITTEN = frozenset((str, int, bool, bytes, type(None)))
_PLAIN_KEYS = frozenset((*PLAIN, *_WRITTEN, torch.Size, range, *SCALARS))


def _key_expected(t, key: Any) -> Any:
    return key if is_plain_key(key) else t.references.to(key)


def _key_source(t, source: Source, key: Any) -> Source:
    if not is_plain_key(key):
        return ReferredItem(source, t.references.to(key))
    return Item(source, key) if _is_written(key) else ReferredItem(source, Literal(key))


def key_variable(t, key: Any) -> Variable:
    if isinstance(key, tuple):
        return TupleVariable([key_variable(t, part) for part in key], cls=type(key))
    if type(key) is frozenset:
        return SetVariable({part: key_variable(t, part) for part in key}, cls=frozenset)
    if type(key) is range:
        return RangeVariable(key)
    if is_plain_key(key):
        return Constant(key)
    return Known(key, Bound(t.references.to(key)))
