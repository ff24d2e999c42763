"""Sets that came in: their members are looked at, and guarded, when one is looked at."""

from typing import Any

from ...package.reference import Import
from ...package.source import Source
from ..keys import key_of
from ..live_dicts import is_named, is_plain_key, key_variable, wrapped_keys
from ..signals import GraphBreak
from ..variables import Constant, SetVariable, Variable
from ..wrap import MAXIMUM_ITEMS, PLAIN, opaque, wraps

_PLAIN = frozenset((*PLAIN, int))


@wraps(set, frozenset)
def wrap_set(t, value: Any, source: Source) -> Variable:
    """Plain members and those that have a name are compared as a whole; others are known by their
    places in the order of the set."""
    if len(value) > MAXIMUM_ITEMS:
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
    variable.placed = any(item.source is not None for item in items.values())
    t.remember(value, variable)
    return variable


def _of_others(t, value: Any, source: Source) -> dict[Any, Variable]:
    if not all(is_named(t, item) for item in value):
        t.guard("LENGTH", source, len(value))
        return dict(wrapped_keys(t, source, value, [*value]))
    expected = tuple(item if is_plain_key(item) else t.references.to(item) for item in value)
    t.guard("MEMBERS", source, expected)
    return _items(t, [key_variable(t, item) for item in value])


def _items(t, members: list[Variable]) -> dict[Any, Variable]:
    return {key_of(t, member): member for member in members}
