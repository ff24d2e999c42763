"""Constant folding: which Python callables are pure, and what counts as a plain constant."""

import keyword
import math
import operator
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from ..package.reference import Import
from ..package.source import Attribute, Bound, Called
from .array_functions import ARRAY_FUNCTIONS
from .signals import GraphBreak, NotConstant
from .variables import (
    Constant,
    DictVariable,
    Known,
    Lazy,
    ListVariable,
    RangeVariable,
    Sequence,
    SetVariable,
    TupleVariable,
    Variable,
)
from .variables.mirrors import MirrorVariable

_BUILTINS = (
    abs, ascii, bin, bool, bytes, chr, complex, divmod, float, format, hex, int, len, max, min,
    oct, ord, pow, range, repr, round, slice, str, sum,
)  # fmt: skip

# Types whose methods neither change the object nor depend on anything but their arguments.
_PURE_TYPES = (bool, bytes, complex, float, int, range, slice, str, tuple)

_OPERATORS = (
    "abs", "add", "and_", "concat", "contains", "countOf", "eq", "floordiv", "ge", "getitem",
    "gt", "index", "indexOf", "invert", "le", "lshift", "lt", "mod", "mul", "ne", "neg", "not_",
    "or_", "pos", "pow", "rshift", "sub", "truediv", "truth", "xor", "iadd", "iand", "ifloordiv",
    "ilshift", "imod", "imul", "ior", "ipow", "irshift", "isub", "itruediv", "ixor",
)  # fmt: skip


def _foldable() -> set[Any]:
    found: set[Any] = set(_BUILTINS)
    found |= {getattr(operator, name) for name in _OPERATORS}
    found |= {f for f in vars(math).values() if callable(f)}
    found |= {str.maketrans, bytes.fromhex, float.fromhex, int.from_bytes, bytes.maketrans}
    found |= {getattr(os.path, "_path_normpath", None), keyword.iskeyword, keyword.issoftkeyword}
    for kind in _PURE_TYPES:
        for name, member in vars(kind).items():
            if callable(member) and name not in _IMPURE_METHODS:
                found.add(member)
    return found


# `__init__` and friends have no value; hash() of a string differs between processes.
_IMPURE_METHODS = {
    "__init__", "__new__", "__init_subclass__", "__class_getitem__", "__getattribute__",
}  # fmt: skip

FOLDABLE: set[Any] = _foldable() - {hash, str.__hash__, bytes.__hash__, tuple.__hash__}
FOLDABLE |= ARRAY_FUNCTIONS


# Whether a member of an enum counts as a plain constant: whatever is done with it, or to an
# operator that looks for these special methods.
ENUM_MEMBERS: list[Callable[[Any, tuple[str, ...] | None], bool]] = []


def plain(value: Variable, within: tuple[Variable, ...] = ()) -> Any:
    """The Python value of a variable that is made of plain constants all through.

    Raises NotConstant otherwise: also for objects known by identity, whose text and hash may
    differ between processes, and for what contains itself. within: the containers around it.
    """
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Known) and any(is_value(value.value, None) for is_value in ENUM_MEMBERS):
        return value.value
    if isinstance(value, RangeVariable | MirrorVariable):
        return value.value
    if any(value is each for each in within):
        raise NotConstant("a container that contains itself")
    inside = (*within, value)
    if isinstance(value, Sequence):
        for item in value.items:
            plain(item, inside)
        return value.constant()
    if isinstance(value, DictVariable) and value.complete:
        return {key: plain(item, inside) for key, (_, item) in value.items.items()}
    if isinstance(value, SetVariable):
        for item in value.items.values():
            plain(item, inside)
        return value.constant()
    raise NotConstant(value.describe())


def plain_arguments(t, args, kwargs: dict[str, Variable]) -> tuple[list, dict[str, Any]]:
    """The Python values of what a function is called with. Raises NotConstant as `plain` does."""
    values = [plain(t.deep(arg)) for arg in args]
    return values, {name: plain(t.deep(arg)) for name, arg in kwargs.items()}


def operand(value: Variable, methods: tuple[str, ...] | None) -> Any:
    """`plain`, for an operator that looks for these special methods; None for any other."""
    is_member = methods is not None and isinstance(value, Known)
    if is_member and any(is_value(value.value, methods) for is_value in ENUM_MEMBERS):
        return value.value
    return plain(value)


# Types whose values are compared by C alone, and give the same answer whichever object holds them.
_COMPARED_BY_C = frozenset((int, bool, str, bytes, float))


def rely_on_settings(t, operation: Any, values: list[Any]) -> None:
    """Guards what the process decides about numbers as texts: how long they may be.

    Raises GraphBreak for those that are written as the locale has it.
    """
    if any(_is_long(value, operation) for value in values):
        limit = Called(Attribute(Bound(Import("sys")), "get_int_max_str_digits"))
        t.guard("EQUALS", limit, sys.get_int_max_str_digits())
    if _follows_locale(operation, values):
        raise GraphBreak("builtin_call", "a number is formatted as the locale has it")


def _follows_locale(operation: Any, values: list[Any]) -> bool:
    """Whether a number is formatted as `n`; in a text with fields some `n` may be for a number."""
    texts = [each for each in values if type(each) is str]
    if operation in (str.format, str.format_map):
        return any(map(_FIELD_OF_LOCALE.search, texts[:1]))
    is_number = bool(values) and isinstance(values[0], int | float | complex)
    return operation in _FORMATS and is_number and any(each.endswith("n") for each in texts)


def _is_long(value: Any, operation: Any) -> bool:
    """Whether a number, or the text of one, has more digits than Python converts at the least."""
    if type(value) is int:
        return value.bit_length() > 3 * _LEAST_DIGITS
    return operation is int and isinstance(value, str | bytes) and len(value) > _LEAST_DIGITS


_LEAST_DIGITS = sys.int_info.str_digits_check_threshold
_FORMATS = (format, int.__format__, float.__format__, complex.__format__)
_FIELD_OF_LOCALE = re.compile(r"\{[^{}]*:[^{}]*n\}")


def comparable(value: Variable) -> Any:
    """The Python value of a plain number or text, or of a list or tuple made of them that has
    been looked at, as far as comparing it with others of the kind tells the same.

    Raises NotConstant for any other. It spares an `apply` for each pair of items.
    """
    if type(value) is Lazy and value.known is not None:
        value = value.known
    if type(value) is Constant:
        found = value.value
        # A NaN equals itself only where it is the same object.
        if type(found) in _COMPARED_BY_C and found == found:
            return found
    elif isinstance(value, ListVariable | TupleVariable) and value.type in (list, tuple):
        return value.type(map(comparable, value.items))
    raise NotConstant(value.describe())
