"""Classes that the frame makes: class statements, `type(name, bases, namespace)`, dataclasses.

While tracing, a class with the same bases and members stands in for the real one, so that the
order of lookup, slots and abstract methods are Python's own. Members that have no Python value yet
have a stand-in each, which leads back to the variable. The body makes the real class where it is
needed after the graph.
"""

import _abc
import abc
import builtins
import collections
import contextlib
import dataclasses
import enum
import functools
import types
import typing
from typing import Any, NoReturn

import torch

from ...package.made_classes import made_class
from ...package.reference import Import
from ...package.replaced import BUILTINS
from ...package.source import Attribute, Bound, Item
from ..body import BodyWriter, rebuilds
from ..folding import plain
from ..invoke import new_frame, run_inlined
from ..members import is_from, lookup, static_lookup
from ..operation import apply, call, call_method
from ..references import Body
from ..signals import GraphBreak, NotConstant, SkipFrame
from ..stand_ins import stand_in_for
from ..variables import (
    DELETED,
    CellVariable,
    ClassVariable,
    Constant,
    DictVariable,
    FunctionVariable,
    Known,
    ObjectVariable,
    SuperVariable,
    TupleVariable,
    Variable,
)
from .builtin_attributes import known_getattr
from .enum_classes import EnumNames, make_enum, rebuild_enum, set_on_member
from .proxies import require_unread_namespaces
from .table import rule

NONE = Constant(None)

# Metaclasses that run no code of the program.
_OF_AUTOGRAD = type(torch.autograd.Function)
_OF_TYPED_DICTS = type(typing._TypedDict)  # type: ignore[attr-defined]
_METACLASSES = (type, abc.ABCMeta, typing.NamedTupleMeta, _OF_AUTOGRAD, _OF_TYPED_DICTS)


# -- making a class ------------------------------------------------------------


@rule(builtins.__build_class__)
def build_class(t, body, name, /, *bases, metaclass=None, **kwargs):
    """What a class statement does: runs its body, then calls the metaclass."""
    if not isinstance(body, FunctionVariable) or body.code_reference is None:
        _refuse(t.constant(name))
    if not set(body.code.co_cellvars).isdisjoint(body.code.co_freevars):
        # `nonlocal __class__`: two variables of one name.
        _refuse(t.constant(name))
    given = [t.realize(base) for base in bases]
    resolved = _bases(t, given)
    meta = _metaclass(t, type if metaclass is None else t.constant(metaclass), resolved)
    frame = new_frame(t, body, [], {})
    is_enum = meta is enum.EnumMeta
    frame.names = EnumNames(t, t.constant(name), resolved) if is_enum else {}
    cell = t.realize(run_inlined(t, frame).value)
    names = frame.names
    if resolved != tuple(map(_value, given)):
        names["__orig_bases__"] = t.new(TupleVariable(given))
    if is_enum:
        return make_enum(t, t.constant(name), resolved, names, kwargs)
    if meta in _METACLASSES:
        return finish_class(t, meta, t.constant(name), resolved, names, kwargs)
    items = {key: (Constant(key), value) for key, value in names.items()}
    args = [name, t.new(TupleVariable(map(Known, resolved))), t.new(DictVariable(items))]
    made = _by_metaclass(t, meta, args, kwargs)
    if isinstance(cell, CellVariable) and isinstance(made, Known) and not _holds(t, cell, made):
        # Python refuses a metaclass that has lost or misused the cell.
        _refuse(t.constant(name))
    return made


def _holds(t, cell: CellVariable, made: Known) -> bool:
    """Whether methods find a class in the cell by which they know theirs."""
    held = t.realize(cell.content) if cell.content is not None else None
    return isinstance(held, Known) and held.value is made.value


def _metaclass(t, meta: Any, bases: tuple) -> type:
    """The class of a class. Raises GraphBreak for one that does more than the tracer follows."""
    if not isinstance(meta, type):
        _refuse("a metaclass that is no class")
    kinds = (meta, *map(type, bases))
    found = next((k for k in kinds if all(issubclass(k, each) for each in kinds)), None)
    if found is None:
        told = ("metaclass conflict: the metaclass of a derived class must be a (non-strict) "
                "subclass of the metaclasses of all its bases")  # fmt: skip
        t.raise_exception(TypeError, told)
    if found in _METACLASSES or found is enum.EnumMeta:
        return found
    of_program = found.__flags__ & 1 << 9 and not is_from(found, "torch")
    traced = [name for name in ("__new__", "__init__")
              if isinstance(getattr(found, name), types.FunctionType)]  # fmt: skip
    names = {*_OF_TYPE, "__new__", "__init__"}.difference(traced)
    understood = all(static_lookup(found, name)[1] is type for name in names)
    if not of_program or not understood or type(found).__call__ is not type.__call__:
        _refuse(f"a class of the metaclass {found.__qualname__}")
    t.classes.lookup(found, "__prepare__")
    return found


# What a metaclass of the program must not do otherwise.
_OF_TYPE = ("__prepare__", "__getattribute__", "__setattr__", "mro")


def _by_metaclass(t, meta: type, args: list[Variable], kwargs: dict) -> Variable:
    """`meta(name, bases, namespace)`, where the metaclass is one of the program."""
    known = Known(meta, Bound(t.references.to(meta)))
    if isinstance(meta.__new__, types.FunctionType):
        new = t.lazy(meta.__new__, t.references.member_source(meta, "__new__"))
        made = t.realize(call(t, new, [known, *args], kwargs))
    else:
        made = type_new(t, known, *args, **kwargs)
    if isinstance(made, ClassVariable) and isinstance(meta.__init__, types.FunctionType):
        init = t.lazy(meta.__init__, t.references.member_source(meta, "__init__"))
        call(t, init, [made, *args], kwargs)
    return made


@rule(type.__new__, Known)
def type_new(t, self, name, bases, namespace, /, **kwargs):
    """A class that the `__new__` of a metaclass makes."""
    members = t.realize(namespace)
    if not isinstance(self.value, type) or not isinstance(members, DictVariable):
        return NotImplemented
    t.complete(members)
    given = [t.realize(base) for base in t.realize(bases).items]
    resolved = _bases(t, given)
    meta = _metaclass(t, self.value, resolved)
    names = {key: value for key, (_, value) in members.items.items()}
    if resolved != tuple(map(_value, given)) or not all(type(n) is str for n in names):
        _refuse(t.constant(name))
    names.setdefault("__module__", _module(t))
    return finish_class(t, meta, t.constant(name), resolved, names, kwargs)


@rule(type.__prepare__)
def prepare(t, *args, **kwargs):
    """The namespace of a class that is made by calls."""
    return t.new(DictVariable())


@rule(type.__init__, Known)
def type_init(t, self, name, bases=None, namespace=None, /, **kwargs):
    return NONE


@rule(_abc._abc_init, Known)
def abc_init(t, self):
    """It has been done when the class was made."""
    return NotImplemented if _made(t, self) is None else NONE


def finish_class(
    t, meta: type, name: str, bases: tuple, names: dict[str, Variable], kwargs: dict
) -> ClassVariable:
    """What `type.__new__` does: makes the class, and tells its members and its bases."""
    cell = _class_cell(t, names)
    hook = _hook(bases)
    if meta is _OF_TYPED_DICTS:
        return make_class(t, meta, name, bases, names, options=kwargs)
    if kwargs and hook is None:
        called = t.constant(names.get("__qualname__", Constant(name)))
        told = f"{called}.__init_subclass__() takes no keyword arguments"
        t.raise_exception(TypeError, told)
    if meta is _OF_AUTOGRAD and hook is not None:
        # What makes the class without the hook does not do what the metaclass does.
        _refuse(name)
    made = make_class(t, meta, name, bases, names, quiet=hook is not None)
    if cell is not None:
        t.effects.set_cell(cell, made)
    for member in made.late:
        call_method(t, names[member], "__set_name__", [made, Constant(member)], on_class=True)
    if hook is not None:
        above = t.new(SuperVariable(made.value, made))
        call(t, apply(t, getattr, [above, Constant("__init_subclass__")]), [], kwargs)
    return made


def _hook(bases: tuple) -> type | None:
    """The base whose `__init_subclass__` is called, if that is code of the program. That of
    `typing` does nothing which would need to be traced, but to call the next one."""
    for base in bases:
        for each in base.__mro__:
            if "__init_subclass__" in vars(each) and each.__module__ not in ("typing", "builtins"):
                return each
    return None


def _class_cell(t, names: dict[str, Variable]) -> CellVariable | None:
    """The cell by which methods know their class, taken from the namespace."""
    cell = names.pop("__classcell__", None)
    if cell is None:
        return None
    cell = t.realize(cell)
    if not isinstance(cell, CellVariable):
        told = f"__classcell__ must be a nonlocal cell, not {cell.type!r}"
        t.raise_exception(TypeError, told)
    return cell


def _refuse(name: str) -> NoReturn:
    raise GraphBreak("class_body", name)


def _value(base: Variable) -> Any:
    """What a class statement is given as a base: a class, or the function that stands for one."""
    functions = typing.NamedTuple, typing.TypedDict
    if isinstance(base, FunctionVariable) and base.live in functions:
        return base.live
    if not isinstance(base, Known):
        _refuse("a base that is no class")
    return base.value


def _bases(t, given: list[Variable]) -> tuple[Any, ...]:
    """The classes that a class inherits from. Raises GraphBreak where code of the program runs
    when one is inherited from."""
    try:
        resolved = types.resolve_bases(tuple(map(_value, given)))
    except TypeError as error:
        t.raise_exception(TypeError, *error.args)
    for base in resolved:
        if not isinstance(base, type):
            _refuse("a base that is no class")
        lookup(t, base, "__init_subclass__")
    return resolved


# What a namespace tells its class, which has members of these names only as slots.
_TAKEN_OUT = frozenset({"__qualname__", "__classcell__"})


def make_class(
    t, meta: type, name: str, bases: tuple, names: dict[str, Variable], quiet: bool = False,
    options: dict[str, Variable] | None = None,
) -> ClassVariable:  # fmt: skip
    """The variable of a class, with its stand-in. quiet: its bases are not told. options: what
    `typing` itself takes from the class statement."""
    members = {member: stand_in_for(t, value) for member, value in names.items()}
    slots = members.get("__slots__", ())
    if not isinstance(slots, str | tuple | list) or not _TAKEN_OUT.isdisjoint(slots):
        _refuse(f"the slots of {name}")
    late = {
        member
        for member, value in names.items()
        if isinstance(t.realize(value), ObjectVariable) and hasattr(value.type, "__set_name__")
    }
    told = {member: value for member, value in members.items() if member not in late}
    try:
        if meta is typing.NamedTupleMeta or options is not None:
            given = {key: t.constant(option) for key, option in (options or {}).items()}
            value = meta(name, bases, told, **given)
        else:
            value = made_class(meta, name, bases, told, quiet)
    except (AttributeError, TypeError, ValueError) as error:
        if str(error).startswith("__bases__ assignment"):
            _refuse(f"{name}, a class of another layout than its bases")
        t.raise_exception(type(error), *error.args)
    for member in late:
        type.__setattr__(value, member, members[member])
    made = t.new(ClassVariable(value, [Known(base) for base in bases], names))
    made.late = late
    made.meta, made.quiet, made.options = meta, quiet, options
    t.references.made.append(value)
    t.remember(value, made)
    return made


@rule(collections.namedtuple)
def make_named_tuple(t, typename, field_names, *, rename=None, defaults=None, module=None):
    """A class of plain constants; `namedtuple` itself makes the stand-in, and the real one."""
    given = {"typename": typename, "field_names": field_names, "rename": rename,
             "defaults": defaults, "module": module}  # fmt: skip
    try:
        named = {name: plain(t.deep(each)) for name, each in given.items() if each is not None}
    except NotConstant:
        return NotImplemented
    if named.get("module") is None:
        called = t.namespaces.module_name(t.frame.globals)
        named["module"] = "__main__" if called is None else t.constant(called)
        if named["module"] is None:
            # Then the class is from where `namedtuple` itself is.
            return NotImplemented
    try:
        value = collections.namedtuple(**named)
    except (TypeError, ValueError) as error:
        t.raise_exception(type(error), *error.args)
    made = t.new(ClassVariable(value, [Known(tuple)], {}))
    made.named, made.maker = named, Import("collections", "namedtuple")
    t.references.made.append(value)
    t.remember(value, made)
    return made


class _Forgotten:
    """What stand-ins inherit from when the trace has ended."""


def forget(stand_ins: list[type]) -> None:
    """Stand-ins are no subclasses of the program's classes any more. One with another layout than
    that of plain objects is one until it is collected."""
    for each in reversed(stand_ins):
        with contextlib.suppress(TypeError):
            each.__bases__ = (_Forgotten,)


def _module(t) -> Variable:
    """What a class notes as its module, unless it is told."""
    called = t.namespaces.module_name(t.frame.globals)
    if called is None:
        _refuse("type() in a module without a name")
    return called


def make_by_type(t, name: Variable, bases: Variable, namespace: Variable) -> Variable:
    """`type(name, bases, namespace)`."""
    members = t.realize(namespace)
    if not isinstance(members, DictVariable) or type(t.realize(bases)) is not TupleVariable:
        _refuse("type(name, bases, namespace)")
    t.complete(members)
    names = {key: value for key, (_, value) in members.items.items()}
    if not all(type(name) is str for name in names):
        _refuse("a name in the namespace of a class")
    names.setdefault("__module__", _module(t))
    given = [t.realize(base) for base in t.realize(bases).items]
    resolved = _bases(t, given)
    if resolved != tuple(map(_value, given)):
        t.raise_exception(TypeError, "type() doesn't support MRO entry resolution; "
                                     "use types.new_class()")  # fmt: skip
    meta = _metaclass(t, type, resolved)
    if meta not in _METACLASSES:
        _refuse(f"type() with a base of the metaclass {meta.__qualname__}")
    return finish_class(t, meta, t.constant(name), resolved, names, {})


@rule(vars(object)["__init_subclass__"], Known)
def init_subclass(t, self, **kwargs):
    """The end of a chain of `super().__init_subclass__()`."""
    if kwargs:
        name = self.value.__qualname__
        t.raise_exception(TypeError, f"{name}.__init_subclass__() takes no keyword arguments")
    return NONE


@rule(vars(object)["__subclasshook__"], Known)
def subclass_hook(t, self, cls):
    return Constant(NotImplemented)


@rule(getattr, ClassVariable)
def made_getattr(t, self, name, default=None):
    """What the metaclass of autograd's functions gives them their stand-ins do not have."""
    key = t.constant(name)
    if self.meta is _OF_AUTOGRAD and key in ("_backward_cls", "_autograd_function_id"):
        raise GraphBreak("attribute", f"{self.describe()}.{key}")
    return known_getattr(t, self, name, default)


# -- changing a class ------------------------------------------------------------


def _made(t, value: Known) -> ClassVariable | None:
    """The variable of a class that the frame has made; None for any other object."""
    reference = t.references.to(value.value) if isinstance(value.value, type) else None
    return t.made_class(reference) if isinstance(reference, Body) else None


def _changes(t, self: ClassVariable, name: str) -> None:
    if name.startswith("__") and name not in ("__doc__", "__module__", "__qualname__", "__name__"):
        raise GraphBreak("mutation", f"{self.value.__qualname__}.{name}")
    t.effects.count += 1
    _forget(t, self.value, name)


def _forget(t, cls: type, name: str) -> None:
    """What stood under a name in a class, and in those that inherit from it, has changed."""
    source = Bound(t.references.to(cls))
    t.forget(Item(Attribute(source, "__dict__"), name))
    t.forget_members(cls, name)


def _no_member(t, cls: type, name: str) -> NoReturn:
    try:
        delattr(type(cls.__name__, (), {}), name)
    except AttributeError as error:
        t.raise_exception(AttributeError, *error.args)
    raise AssertionError(name)


def _require_plain(t, cls: Any, name: str) -> None:
    """Raises GraphBreak for what is no class, or where more than a lookup depends on the name."""
    if cls is builtins and name in BUILTINS:
        # What runs a part of the frame calls it as well.
        raise SkipFrame("builtins", name)
    if not isinstance(cls, type):
        raise GraphBreak("mutation", f"{name!r} of {Known(cls).describe()}")
    special = name.startswith("__") and name.endswith("__")
    if special or type(cls).__setattr__ is not type.__setattr__ or type(cls) is not type:
        raise GraphBreak("mutation", f"{cls.__qualname__}.{name}")
    if cls.__flags__ & (1 << 8) or t.references_to(cls) is None:
        raise GraphBreak("mutation", f"{cls.__qualname__}.{name}")
    require_unread_namespaces(t)
    held = vars(cls).get(name)
    if hasattr(type(held), "__set__") or isinstance(held, property):
        raise GraphBreak("mutation", f"the descriptor {cls.__qualname__}.{name}")


@rule(setattr, Known, after=True)
def set_member(t, self, name, value):
    key = t.constant(name)
    made = _made(t, self)
    if type(self.value) is types.ModuleType and self.value is not builtins:
        t.namespaces.store_attribute(self, key, t.realize(value))
        return NONE
    if isinstance(self.value, enum.Enum) and t.references.is_made(type(self.value)):
        set_on_member(t, self.value, key, value)
        return NONE
    if made is None:
        _require_plain(t, self.value, key)
        t.effects.set_member(self.value, key, t.realize(value))
        _forget(t, self.value, key)
        return NONE
    self = made
    _changes(t, self, key)
    try:
        setattr(self.value, key, stand_in_for(t, value))
    except (AttributeError, TypeError, ValueError) as error:
        t.raise_exception(type(error), *error.args)
    self.steps.append(("set", key, t.realize(value)))
    return NONE


@rule(delattr, Known, after=True)
def delete_member(t, self, name):
    key = t.constant(name)
    made = _made(t, self)
    if made is None:
        _require_plain(t, self.value, key)
        stored = t.effects.members.get((self.value, key))
        there = key in vars(self.value) if stored is None else stored is not DELETED
        if not there:
            _no_member(t, self.value, key)
        t.effects.set_member(self.value, key, DELETED)
        _forget(t, self.value, key)
        return NONE
    self = made
    _changes(t, self, key)
    try:
        delattr(self.value, key)
    except (AttributeError, TypeError) as error:
        t.raise_exception(type(error), *error.args)
    self.steps.append(("delete", key, None))
    return NONE


@rule(dataclasses._process_class, Known)
def make_dataclass(t, self, *flags):
    """What `@dataclass` does is done to the stand-in, and again to the real class."""
    self = _made(t, self)
    if self is None:
        return NotImplemented
    values = [t.constant(flag) for flag in flags]
    named = dict(zip(_FLAGS, values, strict=True))
    _refuse_told_by_fields(t, self)
    t.effects.count += 1
    try:
        value = dataclasses._process_class(self.value, *values)
    except (TypeError, ValueError) as error:
        t.raise_exception(type(error), *error.args)
    _tell_fields(t, self)
    if value is self.value:
        self.steps.append(("call", Import("dataclasses", "dataclass"), named))
        return self
    # A class with slots is another one.
    made = t.new(ClassVariable(value, self.bases, self.namespace))
    made.anew = self, named
    t.references.made.append(value)
    t.remember(value, made)
    return made


@rule(functools.total_ordering, Known)
def make_ordered(t, self):
    """As for a dataclass: the stand-in gets the methods that the real class does."""
    self = _made(t, self)
    if self is None:
        return NotImplemented
    t.effects.count += 1
    try:
        functools.total_ordering(self.value)
    except ValueError as error:
        t.raise_exception(ValueError, *error.args)
    self.steps.append(("call", Import("functools", "total_ordering"), {}))
    return self


def _refuse_told_by_fields(t, cls: ClassVariable) -> None:
    """Raises GraphBreak where a field is also an annotation: what it is told afterwards could not
    be kept apart from what the class is made of."""
    told = cls.namespace.get("__annotations__")
    told = t.realize(told) if told is not None else None
    values = [t.realize(value) for value in cls.namespace.values()]
    if isinstance(told, DictVariable):
        for _, annotation in told.items.values():
            held = t.realize(annotation)
            if isinstance(held, ObjectVariable) and any(held is value for value in values):
                raise GraphBreak("class_body", "a field that is an annotation as well")


def _tell_fields(t, cls: ClassVariable) -> None:
    """The fields that the class was given have been told their names and types. What the real
    class is made of is as it was before."""
    source = Attribute(Bound(t.references.to(cls.value)), "__dataclass_fields__")
    for name, field in cls.value.__dataclass_fields__.items():
        given = cls.namespace.get(name)
        variable = t.realize(given) if given is not None else None
        if not isinstance(variable, ObjectVariable) or variable.cls is not dataclasses.Field:
            continue
        before = t.new(ObjectVariable(variable.cls))
        before.attributes = dict(variable.attributes)
        cls.namespace[name] = before
        for told in ("name", "type", "kw_only", "_field_type"):
            at = Attribute(Item(source, name), told)
            variable.attributes[told] = t.lazy(getattr(field, told), at)


_FLAGS = ("init", "repr", "eq", "order", "unsafe_hash", "frozen", "match_args", "kw_only", "slots",
          "weakref_slot")  # fmt: skip


@rebuilds(ClassVariable)
def _rebuild(w: BodyWriter, v: ClassVariable) -> str:
    value = v.value
    if v.anew is not None:
        first, flags = v.anew
        given = "".join(f", {flag}={on!r}" for flag, on in flags.items())
        maker = w.ref(Import("dataclasses", "dataclass"))
        return _changed(w, v, w.bind(value.__name__, f"{maker}({w.value(first)}{given})"))
    if v.named:
        maker = w.ref(v.maker)
        given = ", ".join(f"{name}={_literal(w, each)}" for name, each in v.named.items())
        return _changed(w, v, w.bind(value.__name__, f"{maker}({given})"))
    if v.meta is enum.EnumMeta:
        return _changed(w, v, rebuild_enum(w, v))
    bases = "".join(f"{w.value(base)}, " for base in v.bases)
    told = {name: w.value(item) for name, item in v.namespace.items() if name not in v.late}
    members = ", ".join(f"{name!r}: {text}" for name, text in told.items())
    meta = w.ref(w.t.references.to(v.meta))
    given = f"{value.__name__!r}, ({bases}), {{{members}}}"
    if v.quiet or v.meta not in _METACLASSES:
        text = f"{w.runtime('made_class')}({meta}, {given}, {v.quiet})"
    else:
        options = "".join(f", {k}={w.value(each)}" for k, each in (v.options or {}).items())
        text = f"{meta}({given}{options})"
    made = w.bind(value.__name__, text)
    for name in sorted(v.late):
        w.lines.append(f"type.__setattr__({made}, {name!r}, {w.value(v.namespace[name])})")
    return _changed(w, v, made)


def _literal(w: BodyWriter, value: Any) -> str:
    """Constants and lists and tuples of them."""
    if type(value) in (list, tuple):
        parts = "".join(f"{_literal(w, each)}, " for each in value)
        return f"[{parts}]" if type(value) is list else f"({parts})"
    return w.literal(value)


def _changed(w: BodyWriter, v: ClassVariable, made: str) -> str:
    """What was done to a class since it was made is done again."""
    w.known(v, made)
    for kind, name, item in v.steps:
        if kind == "set":
            w.lines.append(f"setattr({made}, {name!r}, {w.value(item)})")
        elif kind == "delete":
            w.lines.append(f"delattr({made}, {name!r})")
        else:
            flags = "".join(f", {flag}={on!r}" for flag, on in item.items())
            w.lines.append(f"{w.ref(name)}({made}{flags})")
    return made
