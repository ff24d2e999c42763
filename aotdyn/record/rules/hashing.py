"""`hash()`, and objects with a hash of their own as keys."""

import operator
from typing import Any

from ...package.arrays import SCALARS
from ..body import BodyWriter, rebuilds
from ..keys import HASHED_KEYS, hashes_by_value, key_of
from ..operation import apply, call_method, truth
from ..signals import GraphBreak, Raised
from ..special_methods import has_special
from ..variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    IdentityVariable,
    Known,
    ListVariable,
    ObjectVariable,
    RangeVariable,
    SetVariable,
    SliceVariable,
    Symbolic,
    TupleVariable,
    ValueObject,
    Variable,
)
from ..variables.containers import HashedToken, is_steady
from ..variables.sequences import SequenceObject
from .table import rule

# Their hash is the same in every process.
_STEADY = frozenset((int, float, bool, complex, *SCALARS))


class HashedKey(HashedToken):
    """Stands for an object whose class defines `__hash__` and `__eq__` as a key of a dict or set:
    compared as Python does, by the traced program's own methods."""

    __slots__ = ("t", "variable", "value")

    def __init__(self, t, variable: ObjectVariable, value: int, steady: bool, exact: bool):
        self.t = t
        self.variable = variable
        self.value = value
        self.steady = steady
        self.exact = exact

    def __hash__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HashedKey) and self.variable is other.variable:
            return True
        if isinstance(other, Variable):
            return False
        right = _variable_of(other)
        # How often, and of what, a table asks this is its own business.
        with self.t.effects.only_own():
            return truth(self.t, apply(self.t, operator.eq, [self.variable, right]))

    def require_unchanged(self, origin: int) -> None:
        """Raises GraphBreak where the object has another hash by now: a table that is made again
        would be another one."""
        try:
            again = hashed_key(self.t, self.variable).value
        except (Raised, GraphBreak):
            again = None
        if again != self.value or id(self.variable) in self.t.effects.changed:
            raise GraphBreak("reconstruct", "a key whose hash has changed", origin)


def _variable_of(key: Any) -> Variable:
    """The variable that a key stands for."""
    if isinstance(key, HashedKey):
        return key.variable
    if type(key) is tuple:
        return TupleVariable([_variable_of(part) for part in key])
    return key if isinstance(key, Variable) else Constant(key)


def hashed_key(t, value: ObjectVariable) -> HashedKey:
    """The key for an object with a hash of its own."""
    if value.type.__hash__ is None:
        t.raise_exception(TypeError, f"unhashable type: {value.type.__name__!r}")
    unsteady, t.unsteady_hash = t.unsteady_hash, False
    t.hashing += 1
    try:
        with t.effects.only_own():
            found = t.realize(call_method(t, value, "__hash__", on_class=True))
        if isinstance(found, HashVariable | IdentityVariable):
            # The hash of another object, or its own address.
            return HashedKey(t, value, hash(found.key), steady=False, exact=False)
        # Python takes the number as it is, if it has the size of a hash; so does `HashedKey`.
        return HashedKey(t, value, t.constant(found), not t.unsteady_hash, exact=True)
    finally:
        t.hashing -= 1
        t.unsteady_hash = t.unsteady_hash or unsteady


HASHED_KEYS.append(hashed_key)


class HashVariable(Variable):
    """`hash(of)` where the number differs between processes: it can be passed on, compared with
    the hash of an equal object, and be a key. key: what stands for the object as a key."""

    __slots__ = ("of", "key")

    def __init__(self, of: Variable, key: Any):
        super().__init__()
        self.of = of
        self.key = (hash, key)

    @property
    def type(self) -> type:
        return int

    def describe(self) -> str:
        return "hash()"


@rebuilds(HashVariable)
def _rebuild(w: BodyWriter, v: HashVariable) -> str:
    return w.bind("hashed", f"hash({w.value(v.of)})")


def _compare(operation, wanted: bool) -> None:
    @rule(operation, HashVariable)
    def compare(t, self, other):
        other = t.realize(other)
        if not isinstance(other, HashVariable) or self.key != other.key:
            # Different objects may have the same hash.
            raise GraphBreak("hash", self.describe())
        return Constant(wanted)


_compare(operator.eq, True)
_compare(operator.ne, False)


@rule(hash, Constant, Symbolic, TupleVariable)
def hash_plain(t, self):
    """Text hashes differently in each process."""
    return _hashed(t, self, key_of(t, self))


def _hashed(t, value: Variable, key: Any) -> Variable:
    if is_steady(key, _STEADY):
        return Constant(hash(key))
    if t.hashing:
        t.unsteady_hash = True
        return Constant(hash(key))
    return t.new(HashVariable(value, key))


def _hash_by_name(cls: type) -> None:
    @rule(cls.__hash__, Constant)
    def hash_number(t, self):
        """Of a nan it is no constant."""
        is_nan = self.type is cls and self.value != self.value
        return hash_plain(t, self) if is_nan else NotImplemented


for _cls in (float, complex):
    _hash_by_name(_cls)


@rule((hash, float.__hash__, complex.__hash__), ValueObject)
def hash_value(t, self):
    """That of its plain value, but for a nan."""
    if hashes_by_value(t, self):
        key_of(t, self)
    return NotImplemented


@rule(hash, SetVariable)
def hash_set(t, self):
    if self.cls is set:
        t.raise_exception(TypeError, "unhashable type: 'set'")
    return _hashed(t, self, frozenset(self.items))


@rule(tuple.__hash__, SequenceObject)
def hash_contents(t, self):
    return _hashed(t, self, key_of(t, self.contents))


@rule(hash, Known, FunctionVariable)
def hash_identity(t, self):
    return _hashed(t, self, key_of(t, self))


@rule(hash, RangeVariable)
def hash_range(t, self):
    return Constant(hash(self.value))


@rule(hash, ListVariable, DictVariable, SliceVariable)
def hash_mutable(t, self):
    t.raise_exception(TypeError, f"unhashable type: {self.type.__name__!r}")


@rule(hash, ObjectVariable)
def hash_object(t, self):
    if has_special(t, self, "__hash__"):
        return NotImplemented
    return t.new(HashVariable(self, key_of(t, self)))
