"""Classes and members of `enum`, and classes whose metaclass makes their instances."""

import enum
import operator
from types import FunctionType
from typing import Any

from ...package.reference import Import
from ...package.source import Attribute, Bound, Item
from ..folding import ENUM_MEMBERS
from ..invoke import CONSTRUCTORS, construct_plainly
from ..operation import apply
from ..references import is_bound_enum_member
from ..signals import GraphBreak, Raised
from ..variables import Constant, Known, SequenceIterator, TupleVariable, Variable
from .enum_classes import found_by_program, make_by_names
from .table import rule


def member(t, value: enum.Enum) -> Known:
    """A member of an enum."""
    return Known(value, Bound(t.references.to(value)))


def is_value(value: Any, methods: tuple[str, ...] | None = None) -> bool:
    """Whether operations on an enum member may be computed while tracing: neither operators nor
    text are redefined in Python outside of `enum`. methods: only these special methods matter."""
    if not isinstance(value, enum.Enum):
        return False
    special = {
        name: held
        for base in type(value).__mro__
        for name, held in vars(base).items()
        if (_is_used(name) if methods is None else name in methods)
    }
    return not any(isinstance(held, FunctionType) and held.__module__ != "enum"
                   for held in special.values())  # fmt: skip


def _is_used(name: str) -> bool:
    return name.startswith("__") and name not in ("__new__", "__init__")


ENUM_MEMBERS.append(is_value)
ENUM_MEMBERS.append(lambda value, methods: is_bound_enum_member(value))


def _members(t, cls: Any) -> TupleVariable:
    names = cls._member_names_
    if not cls._member_map_.keys() >= {*names}:
        raise GraphBreak("unknown_call", f"{cls.__qualname__}, whose tables do not agree")
    if isinstance(t.references.to(cls), Import):
        source = Attribute(Bound(t.references.to(cls)), "_member_names_")
        t.deep(t.lazy(names, source))
    return TupleVariable([_by_name(t, cls, name) for name in names])


def _by_name(t, cls: Any, name: str) -> Known:
    """The member that a class has under a name; guarded."""
    return _held(t, cls, "_member_map_", name)


def _held(t, cls: Any, table: str, key: Any) -> Known:
    value, reference = getattr(cls, table)[key], t.references.to(cls)
    if isinstance(reference, Import):
        t.guard("IS", Item(Attribute(Bound(reference), table), key), t.references.to(value))
    return member(t, value)


def _construct(t, cls: Any, args: list[Variable], kwargs: dict) -> Variable:
    """`Color(1)`: the member with a value."""
    t.classes.lookup(cls, "__new__")
    if not cls._member_map_ and (len(args) > 1 or kwargs):
        made = make_by_names(t, cls, args, kwargs)
        if made is not None:
            return made
    if kwargs or len(args) != 1 or cls.__new__ is not enum.Enum.__new__:
        raise GraphBreak("unknown_call", cls.__qualname__)
    key = t.constant(args[0])
    table = cls._value2member_map_ if type(key) in (int, str) else None
    held = table.get(key) if type(table) is dict else None
    # What is combined of flags is made when it is first asked for.
    if isinstance(held, cls) and held.name in cls._member_map_:
        return _held(t, cls, "_value2member_map_", key)
    if cls._missing_.__func__.__module__ != "enum":
        return _missing(t, cls, key)
    try:
        value = cls(key)
    except ValueError as error:
        raise Raised(t.exception(ValueError, *error.args)) from None
    if not isinstance(value, cls):
        raise GraphBreak("unknown_call", f"{cls.__qualname__}({key!r}), which is none")
    return t.wrap_result(value)


CONSTRUCTORS[enum.Enum] = _construct


def _missing(t, cls: Any, key: Any) -> Variable:
    """What code of the program gives for a value that is none of the members'."""
    if type(key) not in (int, str) or any(m._value_ == key for m in cls._member_map_.values()):
        raise GraphBreak("unknown_call", cls.__qualname__)
    if isinstance(t.references.to(cls), Import):
        source = Bound(t.references.to(cls))
        table = t.realize(t.lazy(cls._value2member_map_, Attribute(source, "_value2member_map_")))
        apply(t, operator.contains, [table, Constant(key)])
    found = found_by_program(t, cls, Constant(key))
    if found is None:
        t.raise_exception(ValueError, f"{key!r} is not a valid {cls.__qualname__}")
    return found


def _on_class(operation, function) -> None:
    @rule(operation, Known)
    def on_class(t, self, *args):
        if not isinstance(self.value, enum.EnumMeta):
            return NotImplemented
        return function(t, self.value, *args)


def _getitem(t, cls: Any, name: Variable) -> Variable:
    key = t.constant(name)
    if key not in cls._member_map_:
        t.raise_exception(KeyError, key)
    return _by_name(t, cls, key)


def _contains(t, cls: Any, item: Variable) -> Variable:
    item = t.realize(item)
    if not isinstance(item, Known) or not isinstance(item.value, enum.Enum):
        raise GraphBreak("unknown_operation", f"in {cls.__qualname__}")
    return Constant(item.value in cls)


_on_class(operator.getitem, _getitem)
_on_class(operator.contains, _contains)
_on_class(iter, lambda t, cls: t.new(SequenceIterator(_members(t, cls))))
_on_class(reversed, lambda t, cls: t.new(
    SequenceIterator(TupleVariable(_members(t, cls).items[::-1]))))  # fmt: skip
_on_class(len, lambda t, cls: Constant(len(_members(t, cls).items)))


@rule(type.__call__, Known)
def call_type(t, self, *args, **kwargs):
    """Below a metaclass' own `__call__`."""
    if not isinstance(self.value, type):
        return NotImplemented
    return construct_plainly(t, self.value, list(args), kwargs)


@rule(iter, Known, after=True)
def iter_flags(t, self):
    """The members that a combination of flags has."""
    value = self.value
    if not isinstance(value, enum.Flag) or not is_value(value):
        return NotImplemented
    return t.new(SequenceIterator(TupleVariable([member(t, each) for each in value])))
