"""Attribute access as Python defines it: data descriptors of the class, the instance's own
dictionary, other class attributes, `__getattr__`; and modules' registries."""

import functools
import operator
import types
from collections import OrderedDict, defaultdict
from typing import Any

import torch

from ..package.reference import Import, Live
from ..package.replaced import is_foreign
from ..package.source import Attribute, Bound, Item, OwnDict, Source, instance_item
from ..package.variant import code_hash
from .invoke import allocate, dict_item
from .operation import apply, call, call_method
from .references import importable
from .rules.table import rule
from .signals import GraphBreak, Raised
from .stand_ins import stand_in_for
from .variables import (
    DELETED,
    Constant,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    InstanceDict,
    Known,
    MethodVariable,
    ObjectVariable,
    SuperVariable,
    TupleVariable,
    Variable,
)
from .wrap import live_function

MISSING = object()
REGISTRIES = ("_parameters", "_buffers", "_modules")
_C_CALLABLES = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType,
)  # fmt: skip
_C_MEMBERS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def static_lookup(cls: type, name: str) -> tuple[Any, type | None]:
    """What the classes of the MRO hold under a name, unbound, and which class holds it."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name], base
    return MISSING, None


def lookup(t, cls: type, name: str) -> tuple[Any, type | None]:
    """`static_lookup`, guarded: the name is still found there, as the same kind of value."""
    t.classes.lookup(cls, name)
    found = _present(t, cls, name)
    if found[1] is not None:
        # Whether it is a descriptor, and of which kind, is for its own class to say.
        for method in ("__get__", "__set__", "__delete__"):
            t.classes.lookup(type(found[0]), method)
    return found


def _present(t, cls: type, name: str) -> tuple[Any, type | None]:
    """`static_lookup`, after what the frame has set in classes."""
    for base in cls.__mro__ if t.effects.members else ():
        held = t.effects.members.get((base, name))
        if held is not None and held is not DELETED:
            return stand_in_for(t, held), base
        if held is None and name in base.__dict__:
            return base.__dict__[name], base
    return (MISSING, None) if t.effects.members else static_lookup(cls, name)


def member(t, cls: type, name: str, value: Any) -> Variable:
    """A class attribute that is its own value when read from the class; guarded."""
    stored = t.effects.member(cls, name)
    if stored is not None:
        return t.realize(stored)
    return t.realize(t.lazy(value, Attribute(Bound(t.references.to(cls)), name)))


def _function_of(t, holder: Any, owner: type, cls: type, name: str, part: str) -> FunctionVariable:
    """The function inside a property, classmethod or staticmethod of a class; guarded."""
    function = getattr(holder, part)
    made = t.made_as(function)
    if made is not None:
        return made
    base = importable(owner)
    source = Attribute(Bound(t.references.to(cls)), name)
    if isinstance(holder, staticmethod | classmethod):
        source = source if isinstance(holder, staticmethod) else Attribute(source, "__func__")
        return t.realize(t.lazy(function, source))
    if not isinstance(function, types.FunctionType):
        raise GraphBreak("attribute", f"{cls.__qualname__}.{name}")
    if base is None:
        return t.realize(t.lazy(function, Attribute(source, part)))
    reference = Import(base.module, f"{base.qualname}.{name}.{part}")
    t.guard("IS", Attribute(source, part), reference)
    return live_function(t, function, Bound(reference), reference)


# -- instances ------------------------------------------------------------


@rule(getattr, ObjectVariable)
def object_getattr(t, self, name, default=None):
    key = t.constant(name)
    try:
        return find_attribute(t, self, key)
    except Raised as raised:
        if default is None or not issubclass(raised.value.type, AttributeError):
            raise
        return default


def find_attribute(t, self: ObjectVariable, name: str) -> Variable:
    """`self.name`. Raises Raised(AttributeError) where there is none."""
    cls = self.cls
    if name == "__class__":
        return Known(cls, Bound(t.references.to(cls)))
    getter = cls.__getattribute__
    if isinstance(getter, types.FunctionType):
        try:
            return call(t, member(t, cls, "__getattribute__", getter), [self, Constant(name)])
        except Raised as raised:
            return _fall_back(t, self, name, raised)
    return generic_getattr(t, self, name)


def _fall_back(t, self: ObjectVariable, name: str, raised: Raised) -> Variable:
    """An AttributeError from within a lookup: the class' `__getattr__` has the last word."""
    fallback, _ = lookup(t, self.cls, "__getattr__")
    if fallback is MISSING or not issubclass(raised.value.type, AttributeError):
        raise raised
    return _missing(t, self, name)


def generic_getattr(t, self: ObjectVariable, name: str) -> Variable:
    """`object.__getattribute__`, followed by the class' `__getattr__`."""
    cls = self.cls
    value, owner = lookup(t, cls, name)
    if name == "__dict__" and cls.__dictoffset__ and _is_own_dict(value):
        return t.new(InstanceDict(self))
    if value is not MISSING and _is_data_descriptor(value):
        try:
            return _data_descriptor(t, self, name, value, owner)
        except Raised as raised:
            return _fall_back(t, self, name, raised)
    own = own_attribute(t, self, name)
    if own is not None:
        return own
    if value is not MISSING:
        return bind_member(t, self, name, value, owner)
    return _missing(t, self, name)


def is_property(value: Any) -> bool:
    """Whether a descriptor does what `property` does, and nothing of its own."""
    return isinstance(value, property) and type(value).__get__ is property.__get__


def _is_own_dict(value: Any) -> bool:
    return isinstance(value, types.GetSetDescriptorType) and value.__name__ == "__dict__"


def _is_data_descriptor(value: Any) -> bool:
    kind = type(value)
    return hasattr(kind, "__get__") and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))


def _data_descriptor(t, self: ObjectVariable, name: str, value: Any, owner: type) -> Variable:
    if is_property(value):
        if value.fget is None:
            _no_accessor(t, self, name, "getter")
        return call(t, _function_of(t, value, owner, self.cls, name, "fget"), [self])
    if isinstance(value, types.MemberDescriptorType):
        held = self.attributes.get(name)
        if held is DELETED:
            no_attribute(t, self, name)
        if held is not None:
            return held
        if self.live is None or self.source is None:
            if isinstance(self, ExceptionVariable):
                raise GraphBreak("attribute", f"{self.cls.__qualname__}.{name}")
            no_attribute(t, self, name)
        return t.lazy(_slot(t, self, value, name), Attribute(self.source, name))
    if isinstance(value, types.GetSetDescriptorType):
        raise GraphBreak("attribute", f"{self.cls.__qualname__}.{name}")
    if not isinstance(type(value).__get__, types.FunctionType):
        return apply(t, type(value).__get__, [Known(value), self])
    descriptor = member_raw(t, self.cls, owner, name, value)
    return call_method(t, descriptor, "__get__", [self, Known(self.cls)], on_class=True)


def _slot(t, self: ObjectVariable, descriptor: Any, name: str) -> Any:
    try:
        return descriptor.__get__(self.live, self.cls)
    except AttributeError:
        raise GraphBreak("missing_attribute", name) from None


def member_raw(t, cls: type, owner: type, name: str, value: Any) -> Variable:
    """A descriptor object that the class holds, as a variable."""
    base = t.references.to(owner)
    if isinstance(base, Live):
        raise GraphBreak("no_source", f"{cls.__qualname__}.{name}")
    source = Item(Attribute(Bound(base), "__dict__"), name)
    return t.realize(t.lazy(value, source))


def own_attribute(t, self: ObjectVariable, name: str) -> Variable | None:
    """The attribute in the instance's own dictionary; None, guarded, if it is not there."""
    held = self.attributes.get(name)
    if held is DELETED:
        return None
    if held is not None:
        return held
    if self.live is None:
        return None
    if not self.cls.__dictoffset__:
        return None
    own = object.__getattribute__(self.live, "__dict__")
    source = own_dict_source(self)
    if name in own:
        # Its value may never be looked at.
        t.guard("HAS", source, name)
        return t.lazy(own[name], Item(source, name))
    t.guard("LACKS", source, name)
    return None


def own_dict_source(self: ObjectVariable) -> Source:
    """How the own dictionary of an object that existed before is reached."""
    if isinstance(self.cls.__getattribute__, types.FunctionType):
        return OwnDict(self.source)
    return Attribute(self.source, "__dict__")


def bind_member(t, self: Variable, name: str, value: Any, owner: type) -> Variable:
    """A class attribute that is no data descriptor, bound to an instance."""
    cls = self.type
    if isinstance(value, types.FunctionType):
        return MethodVariable(self, member(t, cls, name, value))
    if isinstance(value, staticmethod):
        return _function_of(t, value, owner, cls, name, "__func__")
    if isinstance(value, classmethod):
        function = _function_of(t, value, owner, cls, name, "__func__")
        return MethodVariable(Known(cls, Bound(t.references.to(cls))), function)
    if isinstance(value, _C_CALLABLES) and not isinstance(value, types.BuiltinFunctionType):
        reference = t.references_to(value)
        if reference is None:
            raise GraphBreak("attribute", f"{cls.__qualname__}.{name}")
        return MethodVariable(self, Known(value, Bound(reference)))
    if isinstance(value, functools.cached_property):
        return _cached_property(t, self, name, value, owner)
    if hasattr(type(value), "__get__") and not isinstance(value, type):
        descriptor = member_raw(t, cls, owner, name, value)
        return call_method(t, descriptor, "__get__", [self, Known(cls)], on_class=True)
    return member(t, cls, name, value)


def _cached_property(t, self: ObjectVariable, name: str, value: Any, owner: type) -> Variable:
    function = _function_of(t, value, owner, self.cls, name, "func")
    result = call(t, function, [self])
    t.effects.set_attribute(self, value.attrname or name, result)
    return result


def _missing(t, self: ObjectVariable, name: str) -> Variable:
    """The last resort: a module's registries, or the class' `__getattr__`."""
    cls = self.cls
    fallback, _ = lookup(t, cls, "__getattr__")
    if fallback is torch.nn.Module.__getattr__ and not is_foreign(fallback):
        for registry in REGISTRIES:
            found = dict_item(t, module_registry(t, self, registry), name)
            if found is not None:
                return found
    elif fallback is not MISSING:
        return call(t, MethodVariable(self, member(t, cls, "__getattr__", fallback)),
                    [Constant(name)])  # fmt: skip
    no_attribute(t, self, name)


def no_attribute(t, self: Variable, name: str, text: str = "") -> None:
    """Raises the AttributeError of a failed access, with what it says and carries."""
    error = t.exception(
        AttributeError, text or f"{self.type.__name__!r} object has no attribute {name!r}"
    )
    error.attributes.update(name=Constant(name), obj=self)
    raise Raised(error)


def _no_accessor(t, self: Variable, name: str, what: str) -> None:
    t.raise_exception(
        AttributeError, f"property {name!r} of {self.type.__qualname__!r} object has no {what}"
    )


def module_registry(t, self: ObjectVariable, name: str) -> DictVariable:
    """`_parameters`, `_buffers` or `_modules` of a module."""
    held = self.attributes.get(name)
    if held is not None:
        return t.realize(held)
    return t.realize(t.lazy(self.live.__dict__[name], instance_item(self.source, name)))


def class_attribute(t, self: ObjectVariable, name: str) -> Variable:
    """A special method, looked up on the type only and bound to the object."""
    value, owner = lookup(t, self.cls, name)
    if value is MISSING:
        t.raise_exception(AttributeError, name)
    return bind_member(t, self, name, value, owner)


# -- setting and deleting ------------------------------------------------------------


@rule(setattr, ObjectVariable)
def object_setattr(t, self, name, value):
    key = t.constant(name)
    setter = self.cls.__setattr__
    if isinstance(setter, types.WrapperDescriptorType):
        generic_setattr(t, self, key, value)
    elif setter is torch.nn.Module.__setattr__ and not is_foreign(setter):
        _module_setattr(t, self, key, value)
    else:
        call(t, t.class_attribute(self, "__setattr__"), [name, value])
    return Constant(None)


@rule(object.__setattr__, ObjectVariable)
def plain_object_setattr(t, self, name, value):
    generic_setattr(t, self, t.constant(name), value)
    return Constant(None)


def generic_setattr(t, self: ObjectVariable, name: str, value: Variable) -> None:
    """`object.__setattr__`."""
    if name in ("__class__", "__dict__"):
        raise GraphBreak("mutation", f"{self.cls.__qualname__}.{name}")
    held, owner = lookup(t, self.cls, name)
    if held is not MISSING and _is_data_descriptor(held):
        if is_property(held):
            if held.fset is None:
                _no_accessor(t, self, name, "setter")
            call(t, _function_of(t, held, owner, self.cls, name, "fset"), [self, value])
            return
        if not isinstance(held, types.MemberDescriptorType):
            descriptor = member_raw(t, self.cls, owner, name, held)
            call_method(t, descriptor, "__set__", [self, value], on_class=True)
            return
    elif not self.cls.__dictoffset__:
        problem = f"object has no attribute {name!r}"
        if held is not MISSING:
            problem = f"object attribute {name!r} is read-only"
        t.raise_exception(AttributeError, f"{self.cls.__name__!r} {problem}")
    t.effects.set_attribute(self, name, value)


def _module_setattr(t, self: ObjectVariable, name: str, value: Variable) -> None:
    """`nn.Module.__setattr__` for plain attributes and buffers; parameters and modules are not
    registered in a graph."""
    kind = t.realize(value).type
    registries = {registry: module_registry(t, self, registry) for registry in REGISTRIES}
    if self.live is None and issubclass(kind, torch.nn.Module):
        apply(t, operator.setitem, [registries["_modules"], Constant(name), value])
        return
    if issubclass(kind, torch.nn.Parameter | torch.nn.Module | torch.nn.Buffer):
        raise GraphBreak("mutation", f"a parameter or module is set as {name!r}")
    for registry, items in registries.items():
        if dict_item(t, items, name) is None:
            continue
        if registry != "_buffers" or not (kind is torch.Tensor or kind is type(None)):
            raise GraphBreak("mutation", f"the {registry[1:-1]} {name!r} is replaced")
        apply(t, dict.__setitem__, [items, Constant(name), value])
        return
    generic_setattr(t, self, name, value)


@rule(delattr, ObjectVariable)
def object_delattr(t, self, name):
    key = t.constant(name)
    deleter, _ = lookup(t, self.cls, "__delattr__")
    if isinstance(deleter, types.FunctionType) and not issubclass(self.cls, torch.nn.Module):
        call(t, class_attribute(t, self, "__delattr__"), [name])
    elif not isinstance(self.cls.__delattr__, types.WrapperDescriptorType):
        raise GraphBreak("mutation", f"del {self.cls.__qualname__}.{key}")
    else:
        generic_delattr(t, self, key)
    return Constant(None)


@rule(object.__delattr__, ObjectVariable)
def plain_object_delattr(t, self, name):
    generic_delattr(t, self, t.constant(name))
    return Constant(None)


def generic_delattr(t, self: ObjectVariable, name: str) -> None:
    """`object.__delattr__`."""
    held, owner = lookup(t, self.cls, name)
    if held is not MISSING and _is_data_descriptor(held):
        if is_property(held):
            if held.fdel is None:
                _no_accessor(t, self, name, "deleter")
            call(t, _function_of(t, held, owner, self.cls, name, "fdel"), [self])
            return
        if not isinstance(held, types.MemberDescriptorType):
            descriptor = member_raw(t, self.cls, owner, name, held)
            call_method(t, descriptor, "__delete__", [self], on_class=True)
            return
        _data_descriptor(t, self, name, held, owner)
    elif own_attribute(t, self, name) is None:
        no_attribute(t, self, name)
    delete_own(t, self, name)


def delete_own(t, self: ObjectVariable, name: str) -> None:
    """Deletes an attribute that is there from the object's own dictionary or slot."""
    came_in = self.live is not None and self.source is not None
    if came_in and self.cls.__dictoffset__ and name in self.attributes:
        # It was set without a look at what was there.
        source = own_dict_source(self)
        came_in = name in object.__getattribute__(self.live, "__dict__")
        t.guard("HAS" if came_in else "LACKS", source, name)
    elif came_in and name in self.attributes:
        _slot(t, self, getattr(self.cls, name), name)
    t.effects.delete_attribute(self, name, came_in)


# -- super() ------------------------------------------------------------


@rule(getattr, SuperVariable)
def super_getattr(t, self, name):
    key = t.constant(name)
    receiver = self.self_
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
        value = base.__dict__[key]
        if isinstance(value, types.FunctionType):
            function = member(t, base, key, value)
            return function if is_class else MethodVariable(receiver, function)
        if isinstance(value, classmethod):
            function = _function_of(t, value, base, base, key, "__func__")
            return MethodVariable(Known(start, Bound(t.references.to(start))), function)
        if is_property(value):
            return call(t, _function_of(t, value, base, base, key, "fget"), [receiver])
        if isinstance(value, _C_CALLABLES) and not isinstance(value, types.BuiltinFunctionType):
            return MethodVariable(receiver, Known(value, Bound(t.references.to(value))))
        if isinstance(value, staticmethod):
            return _function_of(t, value, base, base, key, "__func__")
        return member(t, base, key, value)
    no_attribute(t, self, key)


# -- everything that is not an instance of a user's class -----------------------------------


@rule(getattr, Known)
def known_getattr(t, self, name, default=None):
    key = t.constant(name)
    value = self.value
    source = self.source or Bound(t.references.to(value))
    if isinstance(value, types.ModuleType) and key in vars(value):
        return t.lazy(vars(value)[key], Item(Attribute(source, "__dict__"), key))
    if isinstance(value, type):
        found = _class_getattr(t, value, key)
        if found is None and t.effects.members:
            found = _member_set(t, value, key, default)
        if found is not None:
            return found
    if not hasattr(value, key):
        if isinstance(value, types.ModuleType):
            t.guard("LACKS", Attribute(source, "__dict__"), key)
        if default is not None:
            return default
        try:
            getattr(value, key)
        except AttributeError as error:
            no_attribute(t, self, key, str(error))
    is_fact = key in ("__name__", "__qualname__", "__module__", "__doc__")
    if is_fact or isinstance(value, types.CodeType) and key in _CODE_FACTS:
        return t.wrap_result(getattr(value, key))
    return t.lazy(getattr(value, key), Attribute(source, key))


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


def _by_metaclass(t, cls: type, name: str) -> Variable | None:
    """What the class of a class defines under a name and its own namespaces do not, or a property
    there; None where that is nothing of Python's."""
    value, owner = static_lookup(type(cls), name)
    if not isinstance(value, types.FunctionType | property):
        return None
    receiver = Known(cls, Bound(t.references.to(cls)))
    if is_property(value):
        return call(t, _function_of(t, value, owner, type(cls), name, "fget"), [receiver])
    if static_lookup(cls, name)[0] is not MISSING:
        return None
    return MethodVariable(receiver, member(t, type(cls), name, value))


def _class_getattr(t, cls: type, name: str) -> Variable | None:
    """A class attribute read from the class itself; None where nothing special is to be done."""
    if name == "__dict__":
        if any(held is cls for held, _ in t.effects.members):
            raise GraphBreak("mutation", f"{cls.__qualname__}.__dict__, which was changed")
        return t.lazy(vars(cls), Attribute(Bound(t.references.to(cls)), "__dict__"))
    found = _by_metaclass(t, cls, name)
    if found is not None:
        return found
    value, owner = lookup(t, cls, name)
    if isinstance(getattr(type(value), "__get__", None), types.FunctionType):
        descriptor = member_raw(t, cls, owner, name, value)
        return call_method(t, descriptor, "__get__", [Constant(None), Known(cls)], on_class=True)
    if isinstance(value, types.ClassMethodDescriptorType):
        bound = getattr(cls, name)
        return Known(bound, Bound(t.references.to(bound)))
    if isinstance(value, classmethod):
        function = _function_of(t, value, owner, cls, name, "__func__")
        return MethodVariable(Known(cls, Bound(t.references.to(cls))), function)
    if isinstance(value, staticmethod):
        return _function_of(t, value, owner, cls, name, "__func__")
    if isinstance(value, (*_C_CALLABLES, *_C_MEMBERS)):
        return Known(value, Bound(t.references.to(value)))
    return None


@rule(getattr, FunctionVariable)
def function_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key in self.attributes:
        return self.attributes[key]
    if key in ("__name__", "__qualname__"):
        return Constant(self.name if key == "__name__" else self.qualname)
    if key == "__get__":
        return MethodVariable(self, Known(types.FunctionType.__get__))
    if key == "__code__":
        return _code_of(t, self)
    if self.live is None:
        return _made_function_getattr(t, self, key, default)
    if not hasattr(self.live, key):
        t.guard("LACKS", Attribute(self.source, "__dict__"), key)
        if default is not None:
            return default
        t.raise_exception(AttributeError, key)
    return t.lazy(getattr(self.live, key), Attribute(self.source, key))


def _code_of(t, self: FunctionVariable) -> Variable:
    """A function's code object: all that it says is fixed by its hash."""
    if self.live is None:
        raise GraphBreak("attribute", "the code of a function made in the frame")
    if isinstance(self.code_reference, Import):
        t.references.rely_on_code(self.live, self.code_reference)
    else:
        t.guard("CODE", self.source, code_hash(self.code))
    return Known(self.code, Attribute(self.source, "__code__"))


def _made_function_getattr(
    t, self: FunctionVariable, key: str, default: Variable | None
) -> Variable:
    """An attribute of a function that the frame made."""
    if key == "__module__":
        return t.wrap_result(self.globals.get("__name__"))
    if key == "__doc__":
        consts = self.code.co_consts
        return Constant(consts[0] if consts and isinstance(consts[0], str) else None)
    if key in ("__defaults__", "__kwdefaults__"):
        return getattr(self, key.strip("_")) or Constant(None)
    if key == "__closure__":
        return t.new(TupleVariable(self.closure)) if self.closure else Constant(None)
    if key == "__annotations__":
        flat = t.realize(self.annotations).items if self.annotations is not None else []
        pairs = zip(flat[::2], flat[1::2], strict=True)
        made = {t.constant(name): (name, value) for name, value in pairs}
        self.attributes[key] = t.new(DictVariable(made))
        return self.attributes[key]
    if default is not None and not hasattr(types.FunctionType, key):
        return default
    if hasattr(types.FunctionType, key):
        raise GraphBreak("attribute", f"{key} of a function made in the frame")
    no_attribute(t, self, key)
    raise AssertionError


@rule(setattr, FunctionVariable)
def function_setattr(t, self, name, value):
    if self.live is not None:
        raise GraphBreak("mutation", f"an attribute of the function {self.qualname}")
    t.effects.set_function_attribute(self, t.constant(name), value)
    return Constant(None)


@rule(getattr, MethodVariable)
def method_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "__self__":
        return self.self_
    if key == "__func__":
        return self.function
    return apply(t, getattr, [self.function, name, *([] if default is None else [default])])


_CHAIN = ("__cause__", "__context__", "__traceback__", "__suppress_context__")


@rule(getattr, ExceptionVariable)
def exception_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "args":
        return self.args
    if key in _CHAIN and self.live is not None:
        return t.lazy(getattr(self.live, key), Attribute(self.source, key))
    if key == "__suppress_context__":
        return Constant(self.suppressed)
    if key == "__cause__":
        return self.cause or Constant(None)
    if key == "__context__":
        return self.context or Constant(None)
    if key == "value" and issubclass(self.cls, StopIteration):
        args = t.realize(self.args).items
        return args[0] if args else Constant(None)
    return object_getattr(t, self, name, default)


@rule(getattr, Variable)
def builtin_getattr(t, self, name, default=None):
    """Attributes of values whose type is a builtin: methods of C, fields of named tuples."""
    key = t.constant(name)
    if key == "__class__":
        return Known(self.type, Bound(t.references.to(self.type)))
    value, owner = lookup(t, self.type, key)
    if value is MISSING:
        if default is not None:
            return default
        no_attribute(t, self, key)
    if isinstance(value, _C_CALLABLES):
        return MethodVariable(self, Known(value, Bound(t.references.to(value))))
    if isinstance(self, TupleVariable) and type(value).__name__ == "_tuplegetter":
        return self.items[value.__reduce__()[1][0]]
    if isinstance(self, TupleVariable) and hasattr(self.type, "n_fields"):
        names = [n for n in dir(self.type) if isinstance(vars(self.type).get(n), _C_MEMBERS)]
        if key in names:
            return self.items[_field_index(self.type, key)]
    if isinstance(value, types.FunctionType | classmethod | staticmethod | property):
        if is_property(value):
            return call(t, _function_of(t, value, owner, self.type, key, "fget"), [self])
        return bind_member(t, self, key, value, owner)
    if isinstance(value, types.ClassMethodDescriptorType):
        bound = getattr(self.type, key)
        return Known(bound, Bound(t.references.to(bound)))
    return t.wrap_result(getattr(t.constant(self), key))


def _field_index(cls: type, name: str) -> int:
    """The place of a field of one of torch's named results."""
    probe = cls(range(cls.n_sequence_fields))
    return getattr(probe, name)


@rule(object.__new__, Known)
def object_new(t, self, *args, **kwargs):
    return allocate(t, self.value)


@rule(object.__init__, ObjectVariable)
def object_init(t, self, *args, **kwargs):
    return Constant(None)


@rule(tuple({cls.__getattribute__ for cls in (object, dict, OrderedDict, defaultdict)}),
      ObjectVariable)  # fmt: skip
def object_getattribute(t, self, name):
    return generic_getattr(t, self, t.constant(name))
