"""An order of the members of a set that is the same in every process: by what they hold."""

import enum
from typing import Any

_PLAIN = (int, float, bool, str, bytes, type(None))
# Members that are told apart one by one.
MOST_ORDERED = 64


def in_order(members: set | frozenset) -> tuple:
    """The members in that order; no code of the program is run. Those that hold the same come in
    any order."""
    return tuple(sorted(members, key=_told)) if len(members) <= MOST_ORDERED else ()


def _told(value: Any) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return f"{kind.__name__} {value!r}"
    if issubclass(kind, enum.Enum):
        return f"{kind.__qualname__} {value._name_}"
    if issubclass(kind, tuple):
        return f"{kind.__qualname__} {[*map(_told, tuple.__iter__(value))]}"
    if kind is frozenset:
        return f"frozenset {sorted(map(_told, value))}"
    if isinstance(value, type):
        return f"type {value.__qualname__}"
    held = dict(object.__getattribute__(value, "__dict__")) if kind.__dictoffset__ else {}
    for name, slot in _slots(kind).items():
        try:
            held[name] = slot.__get__(value)
        except AttributeError:
            continue
    told = [f"{name}={_told(each)}" for name, each in sorted(held.items()) if _is_simple(each)]
    return f"{kind.__qualname__} {told}"


def _is_simple(value: Any) -> bool:
    return type(value) in _PLAIN or type(value) is tuple and all(map(_is_simple, value))


def _slots(kind: type) -> dict[str, Any]:
    return {
        name: held
        for base in kind.__mro__
        for name, held in vars(base).items()
        if type(held).__name__ == "member_descriptor"
    }
