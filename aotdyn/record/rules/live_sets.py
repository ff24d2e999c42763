"""Sets that came in: their members are looked at, and guarded, when one is looked at."""

import weakref
from typing import Any

import torch

from ...package.member_order import in_order
from ...package.reference import Import
from ...package.source import Ordered, Source
from ..keys import key_of
from ..live_dicts import is_named, is_plain_key, key_variable, wrapped_keys
from ..references import importable
from ..signals import GraphBreak
from ..variables import Constant, SetVariable, Variable
from ..variables.containers import is_of_contents, is_steady
from ..wrap import MAXIMUM_ITEMS, PLAIN, opaque, wraps

_PLAIN = frozenset((*PLAIN, int))


@wraps(set, frozenset)
def wrap_set(t, value: Any, source: Source) -> Variable:
    """Plain members and those that have a name are compared as a whole; others are known by their
    places in the order of the set."""
    if len(value) > MAXIMUM_ITEMS or len(value) > 1 and any(map(_is_placed_anywhere, value)):
        return opaque(t, value, source)
    kind = type(value)
    try:
        if {*map(type, value)} <= _PLAIN:
            t.guard("EQUALS", source, value if kind is frozenset else set(value))
            items = _items(t, [Constant(item) for item in value])
        else:
            t.guard("TYPE", source, Import("builtins", kind.__name__))
            items = _of_others(t, value, source)
    except GraphBreak:
        # One with a hash that cannot be followed.
        return opaque(t, value, source)
    variable = SetVariable(items, source, kind)
    by_places = any(item.source is not None for item in items.values())
    variable.placed = by_places and (len(items) < 2 or all(map(is_steady, items)))
    t.remember(value, variable)
    return variable


def _is_placed_anywhere(value: Any) -> bool:
    """Whether the hash of an object depends on where it, or what it refers to, is in memory, and
    it has no name by which it is known."""
    kind = type(value)
    if kind in (tuple, frozenset):
        return any(map(_is_placed_anywhere, value))
    if kind in _PLAIN or importable(value) is not None:
        return False
    return kind.__hash__ in (object.__hash__, weakref.ref.__hash__, torch.Tensor.__hash__)


def _of_others(t, value: Any, source: Source) -> dict[Any, Variable]:
    if not all(is_named(t, item) for item in value):
        t.guard("LENGTH", source, len(value))
        if len(value) > 1:
            # Where they are in the table may be another place in each process.
            ordered = in_order(value)
            found = dict(wrapped_keys(t, source, value, [*ordered], Ordered(source)))
            if not ordered or not all(map(is_of_contents, found)):
                raise GraphBreak("hash", "the order of a set")
            if not all(map(is_steady, found)):
                return found
        return dict(wrapped_keys(t, source, value, [*value]))
    expected = tuple(item if is_plain_key(item) else t.references.to(item) for item in value)
    t.guard("MEMBERS", source, expected)
    return _items(t, [key_variable(t, item) for item in value])


def _items(t, members: list[Variable]) -> dict[Any, Variable]:
    return {key_of(t, member): member for member in members}
