"""Subscripted classes, unions, and what `typing` makes: plain data about types, computed while
tracing."""

import operator
import re
import types
import typing
from typing import Any

from ...package.source import Attribute, Bound
from ..members import MISSING, lookup
from ..operation import apply, call
from ..references import ALIASES
from ..signals import GraphBreak, NotConstant, Raised
from ..variables import Alias, Constant, Known, ListVariable, TupleVariable, Variable
from .builtin_attributes import builtin_getattr
from .table import calls, rule


def typed(t, value: Any) -> Variable:
    """A part of an alias as a variable."""
    if isinstance(value, ALIASES) and hasattr(value, "__args__"):
        return Alias(value)
    if isinstance(value, tuple):
        return t.new(TupleVariable([typed(t, part) for part in value]))
    if type(value) in (str, int, bool, bytes, type(None), type(Ellipsis)):
        return Constant(value)
    return Known(value)


def _plain(t, value: Variable) -> Any:
    """The Python value of what stands between the brackets."""
    value = t.realize(value)
    if isinstance(value, Constant | Known):
        return value.value
    if type(value) is TupleVariable or type(value) is ListVariable:
        return value.type(_plain(t, item) for item in value.items)
    raise NotConstant(value.describe())


def _compared_by_program(value: Any) -> bool:
    """Whether code of the program compares a class among parts of types, which `typing` and
    unions do."""
    if isinstance(value, tuple | list):
        return any(map(_compared_by_program, value))
    if isinstance(value, type):
        metaclass = type(value)
        return (metaclass.__eq__, metaclass.__hash__) != (type.__eq__, type.__hash__)
    return isinstance(value, ALIASES) and _compared_by_program(getattr(value, "__args__", ()))


# -- making them ------------------------------------------------------------


@rule(operator.getitem, Known, after=True)
def subscribe(t, self, key):
    """`list[int]`, `Gen[T]`, `Optional[int]`."""
    value = self.value
    if not _makes_alias(t, value):
        return _by_class_getitem(t, self, key)
    try:
        parts = _plain(t, key)
        if _compared_by_program(parts):
            raise NotConstant(key.describe())
        return typed(t, value[parts])
    except NotConstant:
        raise GraphBreak("unknown_operation", f"{self.describe()}[…]") from None
    except (TypeError, SyntaxError) as error:
        raise Raised(t.exception(type(error), *error.args)) from None


def _by_class_getitem(t, self: Known, key: Variable) -> Variable:
    """A class with a `__class_getitem__` of its own."""
    value = self.value
    if not isinstance(value, type) or hasattr(type(value), "__getitem__"):
        return NotImplemented
    found, _ = lookup(t, value, "__class_getitem__")
    if found is MISSING or not isinstance(found, classmethod):
        return NotImplemented
    return call(t, apply(t, getattr, [self, Constant("__class_getitem__")]), [key])


def _makes_alias(t, value: Any) -> bool:
    """Whether a subscript gives an alias and runs no code of the program."""
    if not isinstance(value, type):
        return type(value).__module__ == "typing" or isinstance(value, ALIASES)
    if hasattr(type(value), "__getitem__"):
        return False
    t.classes.lookup(value, "__class_getitem__")
    getter = getattr(value, "__class_getitem__", None)
    if isinstance(getter, types.BuiltinMethodType):
        return True
    held = getattr(getter, "__func__", getter)
    return getattr(held, "__module__", None) == "typing" or value is type


@rule(operator.or_, Known)
def union(t, self, other):
    """`int | str`."""
    other = t.realize(other)
    if not isinstance(other, Known | Constant) or not _is_typing(self.value):
        return NotImplemented
    return _union(t, self.value, other)


@rule(operator.or_, Constant)
def union_reversed(t, self, other):
    """`None | int`, `"Name" | List[int]`."""
    other = t.realize(other)
    if type(self.value) not in (type(None), str) or not isinstance(other, Known):
        return NotImplemented
    return _union(t, self.value, other) if _is_typing(other.value) else NotImplemented


def _union(t, left: Any, right: Variable) -> Variable:
    if _compared_by_program((left, right.constant())):
        raise GraphBreak("unknown_operation", f"{right.describe()} in a union")
    try:
        return typed(t, operator.or_(left, right.constant()))
    except TypeError as error:
        raise Raised(t.exception(TypeError, *error.args)) from None


def _is_typing(value: Any) -> bool:
    if isinstance(value, type):
        return type(value).__or__ is type.__or__
    return isinstance(value, ALIASES) or type(value).__module__ == "typing"


# -- using them ------------------------------------------------------------


@calls(Alias)
def make(t, self, args, kwargs):
    """`Gen[int](3)`: an instance of the class, which is told how it was made."""
    value = self.value
    if isinstance(value, typing.NewType):
        return args[0]
    if isinstance(value, types.UnionType):
        t.raise_exception(TypeError, "'types.UnionType' object is not callable")
    if not getattr(value, "_inst", True):
        name = value._name
        t.raise_exception(
            TypeError,
            f"Type {name} cannot be instantiated; use {value.__origin__.__name__}() instead",
        )
    if not isinstance(value.__origin__, type):
        raise GraphBreak("unknown_call", self.describe())
    made = t.realize(t.construct(value.__origin__, args, kwargs))
    try:
        apply(t, setattr, [made, Constant("__orig_class__"), self])
    except Raised as raised:
        if not issubclass(raised.value.type, AttributeError):
            raise
    except GraphBreak:
        # An object of C, which takes no attributes.
        if hasattr(made.type, "__dict__") and made.type.__dictoffset__:
            raise
    return made


@rule(getattr, Alias)
def alias_getattr(t, self, name, default=None):
    key = t.constant(name)
    value = self.value
    if isinstance(value, re.Pattern):
        if key in ("pattern", "flags", "groups"):
            return t.wrap_result(getattr(value, key))
        return builtin_getattr(t, self, name, default)
    if isinstance(value, typing.NewType) and key in vars(value):
        # An object like others, whose attributes may be set.
        source = self.source or Bound(t.references.to(value))
        return t.lazy(vars(value)[key], Attribute(source, key))
    if key in ("__args__", "__origin__", "__parameters__", "__metadata__", "_name", "_inst"):
        if hasattr(value, key):
            return typed(t, getattr(value, key))
    elif hasattr(value, "__origin__") and not (key.startswith("__") and key.endswith("__")):
        return apply(t, getattr, [typed(t, value.__origin__), *filter(None, (name, default))])
    elif hasattr(value, key) and isinstance(getattr(value, key), str | type):
        return typed(t, getattr(value, key))
    if hasattr(value, key):
        raise GraphBreak("attribute", f"{self.describe()}.{key}")
    if default is not None:
        return default
    t.raise_exception(AttributeError, f"{type(value).__name__!r} object has no attribute {key!r}")


@rule((repr, str), Alias)
def text(t, self):
    return Constant(repr(self.value))


@rule(format, Alias)
def formatted(t, self, spec):
    try:
        return Constant(format(self.value, t.constant(spec)))
    except TypeError as error:
        raise Raised(t.exception(TypeError, *error.args)) from None


@rule(typing.get_origin)
def get_origin(t, self):
    return typed(t, typing.get_origin(self.value)) if isinstance(self, Known) else Constant(None)


@rule(typing.get_args)
def get_args(t, self):
    return typed(t, typing.get_args(self.value) if isinstance(self, Known) else ())
