"""Attributes of what is no instance of a user's class: `super()`, modules, classes, values of
builtin types."""

import functools
import types
import typing
from typing import Any

from ...package.bare import BARE
from ...package.reference import Import
from ...package.source import Attribute, Bound, Called, Item
from ..attributes import bind_member
from ..members import (
    C_CALLABLES,
    C_MEMBERS,
    MISSING,
    function_of,
    is_data_descriptor,
    is_property,
    lookup,
    member,
    member_raw,
    no_attribute,
    static_lookup,
)
from ..operation import apply, call, call_method, is_none
from ..own_operators import UNDERSTOOD, can_be_asked, own_method
from ..references import is_bound_enum_member
from ..signals import GraphBreak, Raised
from ..variables import (
    DELETED,
    Alias,
    Constant,
    HolderVariable,
    Known,
    MethodVariable,
    ObjectVariable,
    Opaque,
    SliceVariable,
    SuperVariable,
    TupleVariable,
    Variable,
)
from .table import rule

# -- super() ------------------------------------------------------------


@rule(getattr, SuperVariable)
def super_getattr(t, self, name):
    key = t.constant(name)
    receiver = self.self_
    if key == "__class__":
        return Known(super, Bound(t.references.to(super)))
    is_class = isinstance(receiver, Known)
    start = receiver.value if is_class else receiver.type
    if is_class and not (isinstance(start, type) and issubclass(start, self.cls)):
        # In a method of a metaclass the class is the instance.
        is_class, start = False, receiver.type
    mro = start.__mro__
    above = mro.index(self.cls) + 1
    t.classes.lookup(start, key, above)
    for base in mro[above:]:
        if key not in base.__dict__:
            continue
        return _above(t, self, start, is_class, base, key)
    if key in ("__self__", "__thisclass__", "__self_class__"):
        held = {"__self__": receiver, "__thisclass__": self.cls, "__self_class__": start}[key]
        return Known(held, Bound(t.references.to(held))) if isinstance(held, type) else held
    no_attribute(t, self, key)


def _above(t, self: SuperVariable, start: type, is_class: bool, base: type, name: str) -> Variable:
    """What a class holds that `super()` has come to, bound as by an instance of the class at which
    the lookup started, or by that class itself."""
    receiver = self.self_
    cls = Known(start, Bound(t.references.to(start)))
    value = base.__dict__[name]
    if isinstance(value, types.FunctionType):
        function = member(t, base, name, value)
        return function if is_class else MethodVariable(receiver, function)
    if isinstance(value, staticmethod):
        return function_of(t, value, base, base, name, "__func__")
    if isinstance(value, classmethod):
        return MethodVariable(cls, function_of(t, value, base, base, name, "__func__"))
    if isinstance(value, types.ClassMethodDescriptorType):
        return MethodVariable(cls, Known(value, Bound(t.references.to(value))))
    if is_property(value) and not is_class:
        return call(t, function_of(t, value, base, base, name, "fget"), [receiver])
    if isinstance(value, C_CALLABLES) and not isinstance(value, types.BuiltinFunctionType):
        held = Known(value, Bound(t.references.to(value)))
        return held if is_class else MethodVariable(receiver, held)
    if isinstance(value, C_MEMBERS) and not is_class:
        raise GraphBreak("attribute", f"super().{name}")
    if isinstance(getattr(type(value), "__get__", None), types.FunctionType):
        descriptor = member_raw(t, base, base, name, value)
        args = [Constant(None) if is_class else receiver, cls]
        return call_method(t, descriptor, "__get__", args, on_class=True)
    return member(t, base, name, value)


# -- modules and classes ------------------------------------------------------------


@rule(getattr, Known)
def known_getattr(t, self, name, default=None):
    key = t.constant(name)
    try:
        found = _by_code(t, self, key)
    except Raised as raised:
        if default is None or not issubclass(raised.value.type, AttributeError):
            raise
        return default
    return found if found is not None else _by_c(t, self, key, default)


def _by_code(t, self: Known, name: str) -> Variable | None:
    """An attribute that code of the program, or what the frame has done, has a say in."""
    value = self.value
    if is_bound_enum_member(value):
        return None
    if isinstance(value, types.ModuleType):
        return t.namespaces.load_attribute(self, name)
    found = _ask(t, self, "__getattribute__", name)
    if found is not None:
        return found
    if isinstance(value, type):
        return _class_getattr(t, value, name)
    return _instance_getattr(t, self, name)


def _ask(t, self: Known, hook: str, name: str) -> Variable | None:
    """What `__getattribute__` or `__getattr__` says, where the program wrote it."""
    method = own_method(t, (hook,), self)
    return None if method is None else call(t, method, [Constant(name)])


def _instance_getattr(t, self: Known, name: str) -> Variable | None:
    """What the class of an object that is known by identity, a member of an enum for one, defines
    in Python; None where that is nothing."""
    is_own = name in getattr(self.value, "__dict__", ())
    found = _by_class(t, self, name, is_own)
    held = static_lookup(type(self.value), name)[0]
    if isinstance(held, _C_METHODS) and held.__objclass__ in BARE and not is_own:
        # Of the text or number that a member of an enum is as well.
        return MethodVariable(self, Known(held, Bound(t.references.to(held))))
    if found is not None or is_own or static_lookup(type(self.value), name)[1] is not None:
        return found
    return _ask(t, self, "__getattr__", name)


_C_METHODS = types.MethodDescriptorType | types.WrapperDescriptorType


def _by_class(t, self: Known, name: str, is_own: bool) -> Variable | None:
    """What the class of an object, or of a class, defines in Python under a name: a data
    descriptor, or anything where the object has nothing of its own."""
    kind = type(self.value)
    look = functools.partial(lookup, t) if can_be_asked(self.value) else static_lookup
    value, owner = look(kind, name)
    if owner is None or owner.__module__ in UNDERSTOOD or not owner.__flags__ & 1 << 9:
        return None
    if is_own and not is_data_descriptor(value):
        return None
    if is_property(value):
        return call(t, function_of(t, value, owner, kind, name, "fget"), [self])
    if isinstance(value, types.FunctionType):
        return MethodVariable(self, member(t, kind, name, value))
    if isinstance(getattr(type(value), "__get__", None), types.FunctionType):
        descriptor = member_raw(t, kind, owner, name, value)
        args = [self, Known(kind, Bound(t.references.to(kind)))]
        return call_method(t, descriptor, "__get__", args, on_class=True)
    return None


def _by_c(t, self: Known, key: str, default: Variable | None) -> Variable:
    """An attribute that is asked for as it is."""
    value = self.value
    source = self.source or Bound(t.references.to(value))
    if isinstance(value, type) and t.effects.members:
        found = _member_set(t, value, key, default)
        if found is not None:
            return found
    if _is_made_anew(value, key):
        if type(value) is typing.ParamSpec and key in ("args", "kwargs"):
            return Alias(getattr(value, key))
        raise GraphBreak("attribute", f"{self.describe()}.{key}")
    if not hasattr(value, key):
        if not isinstance(value, type) and type(getattr(value, "__dict__", None)) is dict:
            t.guard("LACKS", Attribute(source, "__dict__"), key)
            t.classes.lookup(type(value), key)
        if default is not None:
            return default
        try:
            getattr(value, key)
        except AttributeError as error:
            no_attribute(t, self, key, str(error))
    if _is_fact(value, key):
        return t.wrap_result(getattr(value, key))
    if key == "__subclasses__" and getattr(value, key) == type.__subclasses__.__get__(value):
        return MethodVariable(self, Known(type.__subclasses__, Bound(_SUBCLASSES)))
    # What a metaclass of C tells is the class' own, also where it is a metaclass itself.
    of_meta = isinstance(static_lookup(type(value), key)[0], C_MEMBERS)
    if isinstance(value, type) and t.references.is_made(value) and not of_meta:
        return t.lazy(getattr(value, key), t.references.member_source(value, key))
    return t.lazy(getattr(value, key), Attribute(source, key))


_SUBCLASSES = Import("builtins", "type.__subclasses__")


@rule(type.__subclasses__, Known)
def subclasses(t, self):
    """The list is a new one at each call; what is in it is guarded one by one."""
    found = type.__subclasses__(self.value)
    if t.references.made:
        # They are not there yet.
        raise GraphBreak("class_body", f"the subclasses of {self.describe()}")
    source = Called(Attribute(Bound(t.references.to(self.value)), "__subclasses__"))
    t.guard("LENGTH", source, len(found))
    return t.wrap_list([t.lazy(cls, Item(source, index)) for index, cls in enumerate(found)])


def _is_made_anew(value: Any, name: str) -> bool:
    """Whether an attribute of what `typing` makes is computed, or another object each time."""
    if type(value).__module__ != "typing":
        return False
    if isinstance(type(value).__getattribute__, types.FunctionType):
        return True
    found = getattr(value, name, None)
    return type(found).__module__ == "typing" and getattr(value, name) is not found


def _is_fact(value, key: str) -> bool:
    """Whether an attribute can never be another one."""
    if isinstance(value, types.CodeType):
        return key in _CODE_FACTS
    if is_bound_enum_member(value):
        return key in ("name", "value")
    of_c = isinstance(value, type) and value.__flags__ & (1 << 8)
    return bool(of_c) and key in ("__name__", "__qualname__", "__module__", "__doc__")


# What the hash of a code object covers.
_CODE_FACTS = {
    "co_varnames", "co_names", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount",
    "co_flags", "co_freevars", "co_cellvars", "co_name", "co_nlocals",
}  # fmt: skip


def _member_set(t, cls: type, name: str, default: Variable | None) -> Variable | None:
    """A class attribute that the frame has set, or has deleted; None for any other."""
    stored = t.effects.member(cls, name)
    if stored is not None:
        return t.realize(stored)
    deleted = any(t.effects.members.get((base, name)) is DELETED for base in cls.__mro__)
    if not deleted or lookup(t, cls, name)[0] is not MISSING:
        return None
    if default is None:
        text = f"type object {cls.__name__!r} has no attribute {name!r}"
        no_attribute(t, Known(cls), name, text)
    return default


def _class_getattr(t, cls: type, name: str) -> Variable | None:
    """A class attribute read from the class itself; None where nothing special is to be done."""
    if name == "__dict__":
        if any(held is cls for held, _ in t.effects.members):
            raise GraphBreak("mutation", f"{cls.__qualname__}.__dict__, which was changed")
        return t.lazy(vars(cls), Attribute(Bound(t.references.to(cls)), "__dict__"))
    self = Known(cls, Bound(t.references.to(cls)))
    found = _by_class(t, self, name, static_lookup(cls, name)[0] is not MISSING)
    if found is not None:
        return found
    above = static_lookup(type(cls), name)[0]
    if isinstance(above, C_MEMBERS):
        return None
    value, owner = lookup(t, cls, name)
    if value is MISSING and above is MISSING:
        return _ask(t, self, "__getattr__", name)
    if isinstance(getattr(type(value), "__get__", None), types.FunctionType):
        descriptor = member_raw(t, cls, owner, name, value)
        return call_method(t, descriptor, "__get__", [Constant(None), Known(cls)], on_class=True)
    if isinstance(value, types.ClassMethodDescriptorType):
        if owner is not cls:
            return MethodVariable(self, Known(value, Bound(t.references.to(value))))
        bound = getattr(cls, name)
        return Known(bound, Bound(t.references.to(bound)))
    if isinstance(value, classmethod):
        function = function_of(t, value, owner, cls, name, "__func__")
        return MethodVariable(Known(cls, Bound(t.references.to(cls))), function)
    if isinstance(value, staticmethod):
        return function_of(t, value, owner, cls, name, "__func__")
    if isinstance(value, (*C_CALLABLES, *C_MEMBERS)):
        return Known(value, Bound(t.references.to(value)))
    return None


# -- properties of a class of their own ---------------------------------------------------


@rule(property.__get__, ObjectVariable, HolderVariable)
def property_get(t, self, instance, owner=None):
    if is_none(t, instance):
        return self
    return call(t, _accessor(t, self, "fget"), [instance])


@rule(property.__set__, ObjectVariable, HolderVariable)
def property_set(t, self, instance, value):
    call(t, _accessor(t, self, "fset"), [instance, value])
    return Constant(None)


@rule(property.__delete__, ObjectVariable, HolderVariable)
def property_delete(t, self, instance):
    call(t, _accessor(t, self, "fdel"), [instance])
    return Constant(None)


def _accessor(t, self: ObjectVariable, part: str) -> Variable:
    """The function that a property calls. Without one it raises, naming itself as only C knows."""
    function = apply(t, getattr, [self, Constant(part)])
    if is_none(t, function):
        raise GraphBreak("attribute", f"a {self.describe()} without {part}")
    return function


# -- values of builtin types ------------------------------------------------------------


@rule(getattr, Variable)
def builtin_getattr(t, self, name, default=None):
    """Attributes of values whose type is a builtin: methods of C, fields of named tuples."""
    key = t.constant(name)
    if key == "__class__":
        return Known(self.type, Bound(t.references.to(self.type)))
    if isinstance(self, SliceVariable) and key in ("start", "stop", "step"):
        return self.items[("start", "stop", "step").index(key)]
    value, owner = lookup(t, self.type, key)
    if _may_have_own(self, key, value):
        raise GraphBreak("unknown_type", f"{self.describe()}.{key}")
    if value is MISSING:
        if default is not None:
            return default
        no_attribute(t, self, key, _refused_text(self, key))
    if isinstance(value, C_CALLABLES):
        return MethodVariable(self, Known(value, Bound(t.references.to(value))))
    if isinstance(self, TupleVariable) and type(value).__name__ == "_tuplegetter":
        return self.items[value.__reduce__()[1][0]]
    if isinstance(self, TupleVariable) and hasattr(self.type, "n_fields"):
        names = [n for n in dir(self.type) if isinstance(vars(self.type).get(n), C_MEMBERS)]
        if key in names:
            return self.items[_field_index(self.type, key)]
    if isinstance(value, types.FunctionType | classmethod | staticmethod | property):
        if is_property(value):
            return call(t, function_of(t, value, owner, self.type, key, "fget"), [self])
        return bind_member(t, self, key, value, owner)
    if isinstance(value, types.ClassMethodDescriptorType):
        bound = getattr(self.type, key)
        return Known(bound, Bound(t.references.to(bound)))
    if isinstance(self, TupleVariable) and not hasattr(type(value), "__get__"):
        return member(t, self.type, key, value)
    return t.wrap_result(getattr(t.constant(self), key))


def _refused_text(self: Variable, name: str) -> str:
    """What the type of a constant says of an attribute that is not there."""
    if isinstance(self, Constant):
        try:
            getattr(self.value, name)
        except AttributeError as error:
            return str(error)
    return ""


def _may_have_own(self: Variable, name: str, held: Any) -> bool:
    """Whether an object that is not understood may have an attribute of its own of this name, or
    looks for attributes elsewhere than in its class."""
    if not isinstance(self, Opaque):
        return False
    if self.type.__getattribute__ is not object.__getattribute__:
        return True
    if not self.type.__dictoffset__:
        return False
    if held is MISSING:
        return True
    # A key of another class would be asked whether it is that name.
    own = getattr(self.value, "__dict__", ())
    return any(type(key) is not str or key == name for key in own)


def _field_index(cls: type, name: str) -> int:
    """The place of a field of one of torch's named results, or another tuple of C."""
    if cls.__new__ is tuple.__new__:
        # No other can be made; its class has the fields in their order.
        fields = (n for n, held in vars(cls).items() if type(held) is types.MemberDescriptorType)
        return list(fields).index(name)
    probe = cls(range(cls.n_sequence_fields))
    return getattr(probe, name)
