"""Dicts that came in: their items are looked at one by one, when they are asked for."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from ..package.arrays import SCALARS
from ..package.reference import Literal
from ..package.source import Bound, Item, ReferredItem, Source
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
    _require_comparable(variable)
    asked, key = key, _as_tuples(key)
    if not _plain_key(key):
        reference = t.references_to(key)
        if reference is None:
            raise GraphBreak("hash", "a key that has no name in other processes")
    if key not in live:
        t.guard("LACKS", source, _key_expected(t, key))
        variable.absent.add(key)
        return None
    t.guard("HAS", source, _key_expected(t, key))
    value = t.lazy(live[key], _key_source(t, source, key))
    variable.items[key] = (_key_variable(t, asked), value)
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


def _require_comparable(variable: DictVariable) -> None:
    """Raises GraphBreak for a dict with keys that code of the program compares."""
    if variable.comparable:
        return
    kind = compared_by_program(variable.live)
    if kind is not None:
        raise GraphBreak("hash", f"a dict with keys of the type {kind.__qualname__}")
    variable.comparable = True


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
    _require_comparable(variable)
    keys = _keys_in_order(live)
    if not all(_plain_key(key) or t.references_to(key) is not None for key in keys):
        raise GraphBreak("hash", "a dict with keys that have no name in other processes")
    refuse_varying(t, source, (dict, *keys), "the keys of a dict")
    t.guard("KEYS", source, tuple(key if _plain_key(key) else t.references.to(key) for key in keys))
    known = variable.items
    variable.items = {
        key: (
            _key_variable(t, key),
            known[key][1] if key in known else t.lazy(live[key], _key_source(t, source, key)),
        )
        for key in keys
    }
    _replay(variable, known)
    variable.complete = True


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


def _plain_key(key: Any) -> bool:
    """Whether a key is stored as it is."""
    kind = type(key)
    if kind in (tuple, frozenset):
        return all(map(_plain_key, key))
    return kind in _PLAIN_KEYS


def _is_written(key: Any) -> bool:
    """Whether the text of a plain key is Python for it."""
    if type(key) is tuple:
        return all(map(_is_written, key))
    return type(key) in _WRITTEN or type(key) is float and math.isfinite(key)


_WRITTEN = frozenset((str, int, bool, bytes, type(None)))
_PLAIN_KEYS = frozenset((*PLAIN, *_WRITTEN, torch.Size, range, *SCALARS))


def _key_expected(t, key: Any) -> Any:
    return key if _plain_key(key) else t.references.to(key)


def _key_source(t, source: Source, key: Any) -> Source:
    if not _plain_key(key):
        return ReferredItem(source, t.references.to(key))
    return Item(source, key) if _is_written(key) else ReferredItem(source, Literal(key))


def _key_variable(t, key: Any) -> Variable:
    if isinstance(key, tuple):
        return TupleVariable([_key_variable(t, part) for part in key], cls=type(key))
    if type(key) is frozenset:
        return SetVariable({part: _key_variable(t, part) for part in key}, cls=frozenset)
    if type(key) is range:
        return RangeVariable(key)
    if _plain_key(key):
        return Constant(key)
    return Known(key, Bound(t.references.to(key)))
