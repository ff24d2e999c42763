"""The special methods that operators look for, and whether a class has them."""

import math
import operator
from typing import Any

import torch

from .members import static_lookup
from .variables import ObjectVariable

# operator -> (special method, its reflection or None)
BINARY_METHODS: dict[Any, tuple[str, str | None]] = {
    getattr(operator, name.strip("_")): (f"__{name.strip('_')}__", f"__r{name.strip('_')}__")
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift",
                 "rshift", "xor")
} | {
    operator.and_: ("__and__", "__rand__"),
    operator.or_: ("__or__", "__ror__"),
    divmod: ("__divmod__", "__rdivmod__"),
    operator.eq: ("__eq__", "__eq__"),
    operator.ne: ("__ne__", "__ne__"),
    operator.lt: ("__lt__", "__gt__"),
    operator.gt: ("__gt__", "__lt__"),
    operator.le: ("__le__", "__ge__"),
    operator.ge: ("__ge__", "__le__"),
}  # fmt: skip

COMPARISONS = {operator.eq, operator.ne, operator.lt, operator.gt, operator.le, operator.ge}

INPLACE_METHODS: dict[Any, tuple[str, Any]] = {
    getattr(operator, f"i{name.strip('_')}"): (f"__i{name.strip('_')}__", getattr(operator, name))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift",
                 "rshift", "xor", "and_", "or_")
}  # fmt: skip

UNARY_METHODS: dict[Any, str] = {
    operator.neg: "__neg__", operator.pos: "__pos__", operator.invert: "__invert__",
    abs: "__abs__", len: "__len__", operator.getitem: "__getitem__", reversed: "__reversed__",
    operator.setitem: "__setitem__", operator.delitem: "__delitem__",
    operator.contains: "__contains__", iter: "__iter__", next: "__next__", format: "__format__",
    round: "__round__", operator.index: "__index__", int: "__int__", float: "__float__",
    complex: "__complex__", repr: "__repr__", str: "__str__", bytes: "__bytes__",
    hash: "__hash__", math.floor: "__floor__", math.ceil: "__ceil__", math.trunc: "__trunc__",
}  # fmt: skip

# What may be computed on symbolic numbers without fixing their value.
SYMBOLIC = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.neg, operator.pos, operator.eq, operator.ne, operator.lt, operator.le, operator.gt,
    operator.ge, abs, torch.sym_max, torch.sym_min, torch.sym_float, torch.sym_int,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, math.floor,
    math.ceil, math.trunc,
    torch.sym_not, torch.sym_ite, torch.sym_sum,
}  # fmt: skip


def methods_of(operation: Any) -> tuple[str, ...] | None:
    """The special methods that an operator looks for on its operands; None for what is no
    operator."""
    if operation in BINARY_METHODS:
        name, reflected = BINARY_METHODS[operation]
        return (name, reflected) if reflected else (name,)
    name = UNARY_METHODS.get(operation)
    return None if name is None else (name,)


def has_special(t, value: ObjectVariable, name: str) -> bool:
    """Whether the class of an object defines a special method itself (not `object`). One that is
    None counts: it is called, and cannot be, but for those in ABSENT_AS_NONE. Guarded."""
    t.classes.lookup(value.type, name)
    method, owner = static_lookup(value.type, name)
    if owner is None or owner is object:
        return False
    return not (method is None and name in ABSENT_AS_NONE)


# Special methods that CPython takes as not there where they are None.
ABSENT_AS_NONE = {"__hash__", "__iter__", "__contains__", "__reversed__"}


def is_refused(t, value: ObjectVariable, name: str) -> bool:
    """Whether the class of an object says of a special method that there is none. Guarded."""
    t.classes.lookup(value.type, name)
    return static_lookup(value.type, name)[0] is None
