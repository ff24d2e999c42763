"""`hash()`, and objects with a hash of their own as keys."""

import operator

from ..operation import HASHED_KEYS, apply, call_method, key_of, truth
from ..signals import GraphBreak
from ..variables import Constant, ObjectVariable, Symbolic, TupleVariable, Variable
from .table import rule

# Their hash is the same in every process.
_STABLE = (int, float, bool, complex)


class HashedKey:
    """Stands for an object whose class defines `__hash__` and `__eq__` as a key of a dict or set:
    compared as Python does, by the traced program's own methods."""

    __slots__ = ("t", "variable", "value")

    def __init__(self, t, variable: ObjectVariable, value: int):
        self.t = t
        self.variable = variable
        self.value = value

    def __hash__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HashedKey):
            if self.variable is other.variable:
                return True
            right: Variable = other.variable
        elif isinstance(other, Variable) or type(other) is tuple:
            return False
        else:
            right = Constant(other)
        return truth(self.t, apply(self.t, operator.eq, [self.variable, right]))


def hashed_key(t, value: ObjectVariable) -> HashedKey:
    """The key for an object with a hash of its own."""
    if value.type.__hash__ is None:
        t.raise_exception(TypeError, f"unhashable type: {value.type.__name__!r}")
    t.hashing += 1
    try:
        found = t.realize(call_method(t, value, "__hash__", on_class=True))
    finally:
        t.hashing -= 1
    return HashedKey(t, value, hash(t.constant(found)))


HASHED_KEYS.append(hashed_key)


@rule(hash, Constant, Symbolic, TupleVariable)
def hash_plain(t, self):
    """Text hashes differently in each process: usable only as long as nobody sees the number."""
    key = key_of(t, self)
    if not t.hashing and type(key) not in _STABLE:
        raise GraphBreak("hash", self.describe())
    return Constant(hash(key))
