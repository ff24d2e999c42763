"""Attribute access to instances as Python defines it: data descriptors of the class, the instance's
own dictionary, other class attributes, `__getattr__`; and modules' registries."""

import functools
import threading
import types
from collections import OrderedDict, defaultdict
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from ..package.reference import Import
from ..package.replaced import is_foreign
from ..package.source import Attribute, Bound, Item, OwnDict, Source, instance_item
from .invoke import allocate
from .live_dicts import dict_item
from .members import (
    C_CALLABLES,
    MISSING,
    function_of,
    is_data_descriptor,
    is_own_dict,
    is_property,
    lookup,
    member,
    member_raw,
    no_attribute,
    takes_stores,
)
from .operation import apply, call, call_method
from .rules.table import rule
from .signals import GraphBreak, Raised
from .variables import (
    DELETED,
    Constant,
    DictVariable,
    ExceptionVariable,
    InstanceDict,
    Known,
    MethodVariable,
    ObjectVariable,
    TensorVariable,
    ValueObject,
    Variable,
)

REGISTRIES = ("_parameters", "_buffers", "_modules")


# -- instances ------------------------------------------------------------


@rule(getattr, ObjectVariable)
def object_getattr(t, self, name, default=None):
    key = t.constant(name)
    try:
        return find_attribute(t, self, key)
    except Raised as raised:
        if not issubclass(raised.value.type, AttributeError):
            raise
        if default is not None:
            return default
        _tell_access(raised.value, self, key)
        raise


def _tell_access(error: Variable, self: ObjectVariable, name: str) -> None:
    """An AttributeError that an access ends in says which one, unless it has said so."""
    if not isinstance(error, ExceptionVariable) or error.source is not None:
        return
    held = (error.attributes.get(each) for each in ("name", "obj"))
    if all(each is None or isinstance(each, Constant) and each.value is None for each in held):
        error.attributes.update(name=Constant(name), obj=self)


def find_attribute(t, self: ObjectVariable, name: str) -> Variable:
    """`self.name`. Raises Raised(AttributeError) where there is none."""
    cls = self.cls
    getter = cls.__getattribute__
    if isinstance(getter, types.FunctionType):
        try:
            return call(t, member(t, cls, "__getattribute__", getter), [self, Constant(name)])
        except Raised as raised:
            if _is_final(t, self, raised):
                raise
        return _missing(t, self, name)
    if not isinstance(getter, types.WrapperDescriptorType):
        raise GraphBreak("attribute", f"{cls.__qualname__}.__getattribute__")
    return generic_getattr(t, self, name)


def _is_final(t, self: ObjectVariable, raised: Raised) -> bool:
    """Whether an error from within a lookup is what the lookup comes to: after an AttributeError
    the class' `__getattr__` has the last word."""
    fallback, _ = lookup(t, self.cls, "__getattr__")
    return fallback is MISSING or not issubclass(raised.value.type, AttributeError)


def generic_getattr(t, self: ObjectVariable, name: str) -> Variable:
    """`object.__getattribute__`, followed by the class' `__getattr__`."""
    cls = self.cls
    if name == "__class__":
        if lookup(t, cls, name)[1] is not object:
            # Read from the class it would be the metaclass.
            raise GraphBreak("attribute", f"{cls.__qualname__}.__class__")
        return Known(cls, Bound(t.references.to(cls)))
    value, owner = lookup(t, cls, name)
    if name == "__dict__" and has_own_dict(cls) and _is_asked_for(value, cls):
        if self.live is not None:
            _claim(t, self, own_dict_of(self), own_dict_source(self))
        return t.new(InstanceDict(self))
    if value is not MISSING and is_data_descriptor(value):
        try:
            return _data_descriptor(t, self, name, value, owner)
        except Raised as raised:
            if _is_final(t, self, raised):
                raise
        return _missing(t, self, name)
    own = own_attribute(t, self, name)
    if own is not None:
        return own
    if value is not MISSING:
        return bind_member(t, self, name, value, owner)
    return _missing(t, self, name)


def _data_descriptor(t, self: ObjectVariable, name: str, value: Any, owner: type) -> Variable:
    if is_property(value):
        if value.fget is None:
            _no_accessor(t, self, name, "getter")
        return call(t, function_of(t, value, owner, self.cls, name, "fget"), [self])
    if isinstance(self, ValueObject) and owner is self.contents.type:
        return t.wrap_result(getattr(self.contents.value, name))
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
        held = _slot(t, self, value, name)
        if held is None:
            no_attribute(t, self, name)
        return held
    if isinstance(value, types.GetSetDescriptorType):
        raise GraphBreak("attribute", f"{self.cls.__qualname__}.{name}")
    if not isinstance(type(value).__get__, types.FunctionType):
        return apply(t, type(value).__get__, [Known(value), self])
    descriptor = member_raw(t, self.cls, owner, name, value)
    return call_method(t, descriptor, "__get__", [self, Known(self.cls)], on_class=True)


def _slot(t, self: ObjectVariable, descriptor: Any, name: str) -> Variable | None:
    """What a slot of an object that existed before holds, None if that is nothing. Guarded in
    either case, as the value may never be looked at."""
    try:
        held = t.lazy(descriptor.__get__(self.live, self.cls), Attribute(self.source, name))
    except AttributeError:
        held = None
    if is_plainly_read(t, self.cls):
        t.guard("EMPTY_SLOT" if held is None else "SLOT", self.source, name)
    elif held is None:
        # A guard cannot ask without running code of the program.
        raise GraphBreak("missing_attribute", name)
    return held


def is_plainly_read(t, cls: type) -> bool:
    """Whether reading attributes runs no method of the class."""
    plain = lookup(t, cls, "__getattribute__")[1] is object
    return plain and lookup(t, cls, "__getattr__")[0] is MISSING


def own_attribute(t, self: ObjectVariable, name: str) -> Variable | None:
    """The attribute in the instance's own dictionary; None, guarded, if it is not there."""
    held = self.attributes.get(name)
    if held is DELETED:
        return None
    if held is not None:
        return held
    if self.live is None:
        return None
    if not has_own_dict(self.cls):
        return None
    own = own_dict_of(self)
    source = own_dict_source(self)
    _claim(t, self, own, source)
    if name in own:
        # Its value may never be looked at.
        t.guard("HAS", source, name)
        return t.lazy(own[name], Item(source, name))
    t.guard("LACKS", source, name)
    return None


def _claim(t, self: ObjectVariable, own: dict, source: Source) -> None:
    """Notes whose attributes a dictionary holds, for where it is reached as a dict.

    Raises GraphBreak where it has been: the two would not know of each other's changes.
    """
    if id(own) in t.own_dicts:
        return
    known = t.remembered_as(own)
    if known is not None and known.source != source:
        raise GraphBreak("mutation", f"{self.cls.__qualname__}.__dict__, known as a dict before")
    t.own_dicts[id(own)] = self, source


def has_own_dict(cls: type) -> bool:
    """Whether instances of a class have a dictionary of attributes; each thread has its own one
    of a thread-local object."""
    return bool(cls.__dictoffset__) or issubclass(cls, threading.local)


def _is_asked_for(value: Any, cls: type) -> bool:
    """Whether what a class has under the name `__dict__` gives the object's own dictionary."""
    return is_own_dict(value) or value is MISSING and issubclass(cls, threading.local)


def own_dict_of(self: ObjectVariable) -> dict:
    """The own dictionary of an object that existed before."""
    if isinstance(self.live, threading.local):
        return self.live.__dict__
    return object.__getattribute__(self.live, "__dict__")


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
        return function_of(t, value, owner, cls, name, "__func__")
    if isinstance(value, classmethod):
        function = function_of(t, value, owner, cls, name, "__func__")
        return MethodVariable(Known(cls, Bound(t.references.to(cls))), function)
    if isinstance(value, types.ClassMethodDescriptorType) and owner is not cls:
        known = Known(value, Bound(t.references.to(value)))
        return MethodVariable(Known(cls, Bound(t.references.to(cls))), known)
    if isinstance(value, types.ClassMethodDescriptorType):
        return Known(getattr(cls, name), Attribute(Bound(t.references.to(cls)), name))
    if isinstance(value, C_CALLABLES) and not isinstance(value, types.BuiltinFunctionType):
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
    function = function_of(t, value, owner, self.cls, name, "func")
    t.guard("EQUALS", Attribute(t.references.member_source(self.cls, name), "attrname"),
            value.attrname)  # fmt: skip
    if value.attrname is None:
        told = "Cannot use cached_property instance without calling __set_name__ on it."
        t.raise_exception(TypeError, told)
    if value.attrname != name:
        # Two properties of one name: what was found under that of the other is this one's, too.
        found = own_attribute(t, self, value.attrname)
        if found is not None:
            return found
    result = call(t, function, [self])
    set_own(t, self, value.attrname, result)
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


def _no_accessor(t, self: Variable, name: str, what: str) -> None:
    part = Attribute(t.references.member_source(self.type, name), _ACCESSORS[what])
    t.guard("EQUALS", part, None)
    t.raise_exception(
        AttributeError, f"property {name!r} of {self.type.__qualname__!r} object has no {what}"
    )


_ACCESSORS = {"getter": "fget", "setter": "fset", "deleter": "fdel"}


def module_registry(t, self: ObjectVariable, name: str) -> DictVariable:
    """`_parameters`, `_buffers` or `_modules` of a module."""
    held = self.attributes.get(name)
    if held is None and name in vars(self.live):
        held = t.lazy(vars(self.live)[name], instance_item(self.source, name))
    found = None if held is None else t.realize(held)
    if not isinstance(found, DictVariable):
        raise GraphBreak("attribute", f"{self.cls.__qualname__}.{name}")
    return found


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
    if isinstance(setter, types.WrapperDescriptorType) and setter.__name__ == "__setattr__":
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
    if held is not MISSING and takes_stores(held):
        if is_property(held):
            if held.fset is None:
                _no_accessor(t, self, name, "setter")
            call(t, function_of(t, held, owner, self.cls, name, "fset"), [self, value])
            return
        if not isinstance(held, types.MemberDescriptorType):
            descriptor = member_raw(t, self.cls, owner, name, held)
            call_method(t, descriptor, "__set__", [self, value], on_class=True)
            return
    elif not has_own_dict(self.cls):
        problem = f"object has no attribute {name!r}"
        if held is not MISSING:
            problem = f"object attribute {name!r} is read-only"
        t.raise_exception(AttributeError, f"{self.cls.__name__!r} {problem}")
    set_own(t, self, name, value)


def set_own(t, self: ObjectVariable, name: str, value: Variable) -> None:
    """Sets an attribute in the object's own dictionary or slot."""
    if self.live is not None and has_own_dict(self.cls):
        _claim(t, self, own_dict_of(self), own_dict_source(self))
    t.effects.set_attribute(self, name, value)


# Called wherever a module gets a part, were it the one that it has.
_REGISTRATION_HOOKS = (
    "_global_buffer_registration_hooks", "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
)  # fmt: skip


def _module_setattr(t, self: ObjectVariable, name: str, value: Variable) -> None:
    """`nn.Module.__setattr__`, short for plain attributes and buffers."""
    value = t.realize(value)
    kind = value.type
    registries = {registry: module_registry(t, self, registry) for registry in REGISTRIES}
    parts = torch.nn.Parameter | torch.nn.Module | torch.nn.Buffer
    if isinstance(value, TensorVariable) and isinstance(value.fake, parts) or (
        issubclass(kind, parts)
    ):
        held = [dict_item(t, registries[registry], name) for registry in REGISTRIES]
        there = any(each is not None and t.realize(each) is value for each in held)
        if there and not any(getattr(torch_module, hooks) for hooks in _REGISTRATION_HOOKS):
            for hooks in _REGISTRATION_HOOKS:
                t.guard("LENGTH", Attribute(Bound(Import(torch_module.__name__)), hooks), 0)
            return
        _register(t, self, name, value)
        return
    for registry, items in registries.items():
        if dict_item(t, items, name) is None:
            continue
        if registry != "_buffers" or not (kind is torch.Tensor or kind is type(None)):
            _register(t, self, name, value)
        else:
            apply(t, dict.__setitem__, [items, Constant(name), value])
        return
    generic_setattr(t, self, name, value)


def _register(t, self: ObjectVariable, name: str, value: Variable) -> None:
    """`nn.Module.__setattr__` by its own code."""
    t.inline_live(torch.nn.Module.__setattr__, [self, Constant(name), value], {})


@rule(delattr, ObjectVariable)
def object_delattr(t, self, name):
    key = t.constant(name)
    deleter, _ = lookup(t, self.cls, "__delattr__")
    if isinstance(deleter, types.FunctionType):
        call(t, class_attribute(t, self, "__delattr__"), [name])
    elif getattr(self.cls.__delattr__, "__name__", "") != "__delattr__":
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
    if held is not MISSING and takes_stores(held):
        if is_property(held):
            if held.fdel is None:
                _no_accessor(t, self, name, "deleter")
            call(t, function_of(t, held, owner, self.cls, name, "fdel"), [self])
            return
        if not isinstance(held, types.MemberDescriptorType):
            descriptor = member_raw(t, self.cls, owner, name, held)
            call_method(t, descriptor, "__delete__", [self], on_class=True)
            return
        try:
            _data_descriptor(t, self, name, held, owner)
        except Raised:
            # Of a slot that holds nothing.
            t.raise_exception(AttributeError, name)
    elif own_attribute(t, self, name) is None:
        no_attribute(t, self, name)
    delete_own(t, self, name)


def delete_own(t, self: ObjectVariable, name: str) -> None:
    """Deletes an attribute that is there from the object's own dictionary or slot."""
    came_in = self.live is not None and self.source is not None
    if came_in and has_own_dict(self.cls) and name in self.attributes:
        # It was set without a look at what was there.
        source = own_dict_source(self)
        came_in = name in own_dict_of(self)
        t.guard("HAS" if came_in else "LACKS", source, name)
    elif came_in and name in self.attributes:
        came_in = _slot(t, self, getattr(self.cls, name), name) is not None
    t.effects.delete_attribute(self, name, came_in)


# -- what `object` itself does ------------------------------------------------------------


@rule(object.__new__, Known)
def object_new(t, self, *args, **kwargs):
    cls = self.value
    if (args or kwargs) and isinstance(cls, type):
        if lookup(t, cls, "__new__")[1] is not object:
            told = "object.__new__() takes exactly one argument (the type to instantiate)"
            t.raise_exception(TypeError, told)
        if lookup(t, cls, "__init__")[1] is object:
            t.raise_exception(TypeError, f"{cls.__name__}() takes no arguments")
    return allocate(t, cls)


@rule(object.__init__, ObjectVariable)
def object_init(t, self, *args, **kwargs):
    if args or kwargs:
        told = "takes exactly one argument (the instance to initialize)"
        if lookup(t, self.type, "__init__")[1] is not object:
            t.raise_exception(TypeError, f"object.__init__() {told}")
        if lookup(t, self.type, "__new__")[1] is object:
            t.raise_exception(TypeError, f"{self.type.__name__}.__init__() {told}")
    return Constant(None)


@rule(tuple({cls.__getattribute__ for cls in (object, dict, OrderedDict, defaultdict)}),
      ObjectVariable)  # fmt: skip
def object_getattribute(t, self, name):
    return generic_getattr(t, self, t.constant(name))
