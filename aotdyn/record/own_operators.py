"""Operators on what is known by identity, where a class of the program says what they do: on
classes their metaclass, on members of an enum the enum."""

import functools
import operator
from types import FunctionType
from typing import Any

from .members import lookup, member
from .special_methods import methods_of
from .variables import Known, MethodVariable, ObjectVariable, Opaque, TensorVariable, Variable

# Modules whose classes do what the rules say.
UNDERSTOOD = {"enum", "abc", "_py_abc", "typing", "types"}

# Besides the methods that operators are named after, in this order.
_SUBSTITUTES = {
    bool: ("__bool__", "__len__"), operator.truth: ("__bool__", "__len__"),
    str: ("__str__", "__repr__"),
}  # fmt: skip


def own_method(t, names: tuple[str, ...], self: Known) -> MethodVariable | None:
    """The first of these special methods that the class of an object has from Python; None where
    C comes first, or where it has none."""
    kind = type(self.value)
    if not _python_methods(kind):
        return None
    for name in names:
        held, owner = lookup(t, kind, name)
        if owner is None or owner is object or owner is type:
            continue
        if not isinstance(held, FunctionType) or owner.__module__ in UNDERSTOOD:
            return None
        return MethodVariable(self, member(t, kind, name, held))
    return None


def may_compare(t, value: Variable) -> bool:
    """Whether a value may have an `__eq__` of its own, which then has a say in what it equals."""
    if isinstance(value, Known):
        return own_method(t, ("__eq__",), value) is not None
    return type(value) is Variable or isinstance(value, Opaque | ObjectVariable | TensorVariable)


def names_for(operation: Any) -> tuple[str, ...]:
    """The special methods that an operator asks its first operand for, the first one first."""
    return _SUBSTITUTES.get(operation) or (methods_of(operation) or ())[:1]


@functools.cache
def _python_methods(kind: type) -> bool:
    """Whether anything of a class, special by its name, may come from the program."""
    return any(
        isinstance(held, FunctionType) and name.startswith("__")
        for base in kind.__mro__
        if base.__module__ not in UNDERSTOOD
        for name, held in vars(base).items()
    )
