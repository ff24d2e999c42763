"""Enum classes that the frame makes: `enum` itself makes a stand-in while tracing, of plain values
and of stand-ins for methods, and the real class in the body."""

import enum
from types import FunctionType
from typing import Any

from ...package.reference import Import
from ..body import BodyWriter
from ..folding import plain, plain_arguments
from ..members import static_lookup
from ..operation import apply, call
from ..references import enum_reference
from ..signals import GraphBreak, NotConstant
from ..stand_ins import stand_in_for
from ..variables import CellVariable, ClassVariable, Constant, Known, ObjectVariable, Variable

# Code of the program under one of these names would run while a class is made.
_HOOKS = ("__new__", "__init_subclass__", "_generate_next_value_", "__set_name__", "__eq__",
          "__hash__")  # fmt: skip


class EnumNames(dict):
    """The namespace of an enum's body: name -> variable. `enum` sees each name as it is bound, and
    says what `auto()` is then."""

    def __init__(self, t, name: str, bases: tuple):
        super().__init__()
        self.t = t
        try:
            self.prepared = enum.EnumMeta.__prepare__(name, bases)
        except TypeError as error:
            t.raise_exception(TypeError, *error.args)
        # Bound to two names, one `auto()` is one member.
        self.numbered: dict[Variable, enum.auto] = {}

    def __setitem__(self, name: str, value: Variable) -> None:
        if name == "__classcell__":
            super().__setitem__(name, value)
            return
        value = self.t.realize(value)
        given = self._value(value)
        try:
            self.prepared[name] = given
        except (TypeError, ValueError) as error:
            self.t.raise_exception(type(error), *error.args)
        held = self.prepared.get(name)
        is_auto = isinstance(given, enum.auto)
        super().__setitem__(name, self.t.wrap_result(held) if is_auto else value)

    def _value(self, value: Variable) -> Any:
        if isinstance(value, ObjectVariable) and value.cls is enum.auto and value.live is None:
            return self.numbered.setdefault(value, enum.auto())
        try:
            return plain(self.t.deep(value))
        except (GraphBreak, NotConstant):
            return stand_in_for(self.t, value)

    def pop(self, name: str, default: Any = None) -> Any:
        if name in self.prepared:
            raise GraphBreak("class_body", f"a name deleted in an enum: {name}")
        return super().pop(name, default)


def make_enum(t, name: str, bases: tuple, names: EnumNames, kwargs: dict) -> ClassVariable:
    """The variable of an enum class, with its stand-in."""
    cell = names.pop("__classcell__")
    prepared = names.prepared
    for member in prepared._member_names:
        try:
            plain(t.deep(names[member]))
        except NotConstant:
            raise GraphBreak("class_body", f"{name}.{member}, an enum's member") from None
    _require_no_hooks(name, bases, names)
    options = {key: t.realize(value) for key, value in kwargs.items()}
    initializer = names.get("__init__")
    if initializer is not None:
        # It is traced for each member.
        prepared["__init__"] = _nothing
    elif isinstance(_held(bases, "__init__"), FunctionType):
        raise GraphBreak("class_body", f"{name}, an enum with an inherited __init__")
    try:
        given = {key: t.constant(value) for key, value in options.items()}
        value = enum.EnumMeta(name, bases, prepared, **given)
    except (AttributeError, TypeError, ValueError) as error:
        t.raise_exception(type(error), *error.args)
    made = t.new(ClassVariable(value, [Known(base) for base in bases], dict(names)))
    made.options = options
    t.references.made.append(value)
    t.remember(value, made)
    if cell is not None:
        cell = t.realize(cell)
        assert isinstance(cell, CellVariable)
        t.effects.set_cell(cell, made)
    if initializer is not None:
        _initialize(t, value, initializer)
    return made


def _held(bases: tuple, name: str) -> Any:
    """What the program's own classes among the bases have under a name."""
    for base in bases:
        held, owner = static_lookup(base, name)
        if owner is not None and owner.__module__ not in ("enum", "builtins"):
            return held
    return None


def _require_no_hooks(name: str, bases: tuple, names: dict) -> None:
    for hook in _HOOKS:
        if hook in names or _held(bases, hook) is not None:
            raise GraphBreak("class_body", f"{name}, an enum with {hook}")


def _nothing(self, *args: Any) -> None:
    """Takes the place of an enum's `__init__`."""


def _initialize(t, cls: Any, initializer: Variable) -> None:
    """Calls `__init__` of each member. The body lets `enum` call it, so that it may change nothing
    but the members."""
    type.__setattr__(cls, "__init__", stand_in_for(t, initializer))
    for member in cls.__members__.values():
        given = member._value_ if isinstance(member._value_, tuple) else (member._value_,)
        self = Known(member, enum_reference(t.references, member))
        with t.effects.only_own():
            call(t, initializer, [self, *map(t.wrap_result, given)])


def set_on_member(t, member: enum.Enum, name: str, value: Variable) -> None:
    """An attribute that `__init__` of an enum of the frame gives to a member."""
    if not t.effects.only_own_changes or hasattr(type(member), name):
        raise GraphBreak("mutation", f"{name!r} of {Known(member).describe()}")
    object.__setattr__(member, name, stand_in_for(t, value))


def make_by_names(t, cls: Any, args: list[Variable], kwargs: dict) -> ClassVariable | None:
    """`Enum("Color", "RED GREEN")`. None where a part of that is not plain."""
    called = t.namespaces.module_name(t.frame.globals)
    if called is None:
        return None
    try:
        values, named = plain_arguments(t, args, kwargs)
    except NotConstant:
        return None
    named = {**dict(zip(("value", "names"), values, strict=False)), **named}
    if len(values) > 2 or "names" not in named or type(named["value"]) is not str:
        return None
    named.setdefault("module", t.constant(called))
    try:
        value = cls(**named)
    except (TypeError, ValueError) as error:
        t.raise_exception(type(error), *error.args)
    made = t.new(ClassVariable(value, [Known(cls)], {}))
    made.named, made.maker = named, t.references.to(cls)
    t.references.made.append(value)
    t.remember(value, made)
    return made


def found_by_program(t, cls: Any, key: Variable) -> Known | None:
    """The member that an enum's own `_missing_` gives for a value that is none of its members'."""
    missing = apply(t, getattr, [Known(cls, None), Constant("_missing_")])
    found = t.realize(call(t, missing, [key]))
    if isinstance(found, Known) and isinstance(found.value, cls):
        return found
    if isinstance(found, Constant) and found.value is None:
        return None
    raise GraphBreak("unknown_call", f"{cls.__qualname__}._missing_")


def rebuild_enum(w: BodyWriter, v: ClassVariable) -> str:
    """The text that makes the real class."""
    bases = "".join(f"{w.value(base)}, " for base in v.bases)
    members = ", ".join(f"{name!r}: {w.value(item)}" for name, item in v.namespace.items())
    meta = w.ref(Import("enum", "EnumMeta"))
    options = "".join(f", {name}={w.value(value)}" for name, value in v.options.items())
    given = f"{v.value.__name__!r}, ({bases}), {{{members}}}{options}"
    return w.bind(v.value.__name__, f"{w.runtime('made_enum')}({meta}, {given})")
