"""What stands for a value as a key of a dict or a set while tracing."""

from collections.abc import Callable
from typing import Any

import torch

from .members import lookup
from .signals import GraphBreak, NotConstant
from .variables import (
    DictVariable,
    FunctionVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    Symbolic,
    TensorVariable,
    TextVariable,
    TupleVariable,
    ValueObject,
    Variable,
)
from .variables.containers import HashedToken

A_NAN = "a nan, which hashes by where it is"


def key_of(t, value: Variable) -> Any:
    """What stands for a value as a key of a dict or set.

    Constants and objects known by identity stand for themselves, objects with the default hash
    are their variable. Raises GraphBreak("hash") where the hash is not known.
    """
    value = t.realize(value)
    if isinstance(value, Symbolic | TextVariable):
        value = t.specialize(value)
    if isinstance(value, TupleVariable):
        parts = tuple(key_of(t, item) for item in value.items)
        # A size has the hash of a tuple, and equals it.
        is_plain = value.cls in (tuple, torch.Size)
        return parts if is_plain else tuple.__new__(value.cls, parts)
    if isinstance(value, ValueObject) and hashes_by_value(t, value):
        if value.contents.value != value.contents.value:
            raise GraphBreak("hash", A_NAN)
        return key_of(t, value.contents)
    if isinstance(value, ObjectVariable):
        if not _hashes_by_identity(value.type):
            return HASHED_KEYS[0](t, value)
        t.hashed(value)
        return value
    if isinstance(value, ListVariable | DictVariable | SetVariable) and value.type in (
        list, dict, set
    ):  # fmt: skip
        t.raise_exception(TypeError, f"unhashable type: {value.type.__name__!r}")
    if isinstance(value, FunctionVariable):
        t.hashed(value)
        return value.live if value.live is not None else value
    if isinstance(value, TensorVariable):
        return value
    special = SPECIAL_KEYS.get(type(value))
    if special is not None:
        return special(t, value)
    if hasattr(value, "key"):
        # The result of id() or hash().
        t.numbers_as_keys.unknown(value)
        return value.key
    try:
        key = value.constant()
        hash(key)
    except (NotConstant, TypeError):
        raise GraphBreak("hash", value.describe()) from None
    if type(key) is int:
        t.numbers_as_keys.known(key)
    if key != key and value.source is not None:
        raise GraphBreak("hash", A_NAN)
    return key


class NumbersAsKeys:
    """Which numbers have been keys so far: what stands for an unknown one, an id() or a hash(),
    equals no number, though the program may have got the same one from a text."""

    # Nothing lies below in a process' memory (Linux: /proc/sys/vm/mmap_min_addr).
    _LEAST = 65536

    __slots__ = ("large", "of_objects")

    def __init__(self):
        self.large = False
        self.of_objects = False

    def known(self, number: int) -> None:
        """Raises GraphBreak where an unknown number that has been a key may be this one."""
        if abs(number) >= self._LEAST:
            self.large = True
            self._require_apart("a number")

    def unknown(self, value: Variable) -> None:
        """Raises GraphBreak where a number that has been a key may be this unknown one."""
        self.of_objects = True
        self._require_apart(value.describe())

    def _require_apart(self, what: str) -> None:
        if self.large and self.of_objects:
            raise GraphBreak("hash", f"{what}, beside both numbers and the id() of objects as keys")


def hashes_by_value(t, value: ValueObject) -> bool:
    """Whether an object is the key that its plain value is."""
    base = value.contents.type
    return all(
        lookup(t, value.cls, name)[0] is vars(base).get(name) for name in ("__hash__", "__eq__")
    )


# kind of variable -> what makes a key of one: (t, variable) -> key.
SPECIAL_KEYS: dict[type, Callable] = {}


def is_hashed_by_program(key: Any) -> bool:
    """Whether code of the program computes the hash of what stands for a key."""
    if type(key) in (tuple, frozenset):
        return any(map(is_hashed_by_program, key))
    return isinstance(key, HashedToken)


# How an object with a hash of its own becomes a key: (t, object) -> key.
HASHED_KEYS: list[Callable] = []


def _hashes_by_identity(cls: type) -> bool:
    return (
        getattr(cls, "__hash__", None) is object.__hash__
        and getattr(cls, "__eq__", None) is object.__eq__
    )
