"""Operators on what is known by identity, where a class of the program says what they do: on
classes their metaclass, on members of an enum the enum."""

import enum
import functools
import operator
from types import FunctionType
from typing import Any

from ..package.source import Attribute, Bound
from .members import lookup, member, static_lookup
from .references import importable
from .special_methods import INPLACE_METHODS, methods_of
from .variables import Known, MethodVariable, ObjectVariable, Opaque, TensorVariable, Variable

# Modules whose classes do what the rules say.
UNDERSTOOD = {"enum", "abc", "_py_abc", "typing", "types", "numpy", "torch.nn.parameter"}

# Besides the methods that operators are named after, in this order.
_SUBSTITUTES = {
    bool: ("__bool__", "__len__"), operator.truth: ("__bool__", "__len__"),
    str: ("__str__", "__repr__"),
}  # fmt: skip


def own_method(t, names: tuple[str, ...], self: Known) -> MethodVariable | None:
    """The first of these special methods that the class of an object has from Python; None where
    C comes first, or where it has none."""
    kind = type(self.value)
    for name in names:
        held, owner = static_lookup(kind, name)
        if isinstance(held, FunctionType) or can_be_asked(self.value):
            held, owner = lookup(t, kind, name)
        if owner is None or owner is object or owner is type:
            continue
        if not isinstance(held, FunctionType) or owner.__module__ in UNDERSTOOD:
            return None
        if issubclass(kind, enum.Enum) and held.__globals__ is vars(enum):
            # A class of flags has methods of `enum` for its own.
            return None
        return MethodVariable(self, member(t, kind, name, held))
    return None


@functools.cache
def has_name(kind: type) -> bool:
    """Whether a class is found by its name in any process."""
    return importable(kind) is not None


def can_be_asked(value: Any) -> bool:
    """Whether checks can tell what the class of an object lacks: C has classes without a name,
    which would bind a variant to this process, as objects without one do anyway."""
    return has_name(type(value)) or importable(value) is None


def may_compare(t, value: Variable) -> bool:
    """Whether a value may have an `__eq__` of its own, which then has a say in what it equals."""
    if isinstance(value, Known):
        return own_method(t, ("__eq__",), value) is not None
    return type(value) is Variable or isinstance(value, Opaque | ObjectVariable | TensorVariable)


def names_for(operation: Any) -> tuple[str, ...]:
    """The special methods that an operator asks its first operand for, the first one first."""
    return _SUBSTITUTES.get(operation) or (methods_of(operation) or ())[:1]


def rely_on_members(t, operation: Any, values: list[Any]) -> None:
    """Members of enums have operators of Python's, which the program can replace; they look at the
    member's name and value, which it can change."""
    names = methods_of(operation) or INPLACE_METHODS.get(operation, ())[:1]
    if operation is format:
        # That of enums asks for the text.
        names = (*names, "__str__")
    members = [value for value in values if isinstance(value, enum.Enum)]
    for kind, name in {(type(value), name): None for value in members for name in names}:
        method = getattr(kind, name, None)
        if isinstance(method, FunctionType):
            t.classes.lookup(kind, name)
            source = t.references.member_source(kind, name)
            t.guard("IS", source, t.references.to(method))
            for each in members:
                if type(each) is kind:
                    _rely_on_member(t, each)


def _rely_on_member(t, value: enum.Enum) -> None:
    source = Bound(t.references.to(value))
    for name in ("_name_", "_value_"):
        held = getattr(value, name)
        if held is None or type(held) in (int, str, bytes, float, bool):
            t.guard("EQUALS", Attribute(source, name), held)
