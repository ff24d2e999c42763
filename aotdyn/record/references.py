"""Finds a reference for a live object: a name by which another process gets the same one."""

import _collections_abc
import _thread
import builtins
import collections.abc
import enum
import functools
import keyword
import math
import operator
import re
import sys
import types
import typing
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
import torch.nn.functional as F

from ..package import own_builtins
from ..package.errors import PackageError
from ..package.frozen import frozen
from ..package.reference import Import, Literal, Live, Made, Reference
from ..package.resolve import resolve_import
from ..package.source import Attribute, Bound, Item, Source
from ..package.user_kernels import (
    dtype_name,
    function_of,
    is_dtype,
    is_host_function,
    is_kernel,
    kernel_hash,
)
from ..package.variant import code_hash
from .array_functions import numpy_parts
from .polyfills import is_polyfill


@frozen
class Body:
    """The object that a body has made and bound to a name of its own; it is in no variant's names.

    index: its place among the classes that the trace has made. member: for a member of such an
    enum, its name; value: or the number of a combination of flags.
    """

    index: int
    member: str | None = None
    value: int | None = None


# Where objects that do not know their own module are looked for.
_PLACES = (
    torch, F, torch.linalg, torch.fft, torch.special, torch._C, torch._C._nn, torch._C._linalg,
    torch._C._fft, torch._C._special, builtins, operator, math, types, keyword,
    # the types of iterators, and of locks
    _collections_abc, _thread,
)  # fmt: skip


# Modules of C whose objects are known under a public name.
_PUBLIC = {"_operator": "operator", "_functools": "functools", "_collections": "collections"}


@functools.cache
def _homeless() -> dict[int, Import]:
    found: dict[int, Import] = {}
    for place in _PLACES:
        # It calls itself collections.abc, which lacks some of its names.
        module = "_collections_abc" if place is _collections_abc else place.__name__
        for name, value in list(vars(place).items()):
            if isinstance(value, BuiltinFunctionType | FunctionType | type):
                found.setdefault(id(value), Import(module, name))
    return found


# How the names of a module are reached, whatever its class makes of them.
_MODULE_DICT = vars(ModuleType)["__dict__"]


def importable(value: Any) -> Import | None:
    """The import that gives exactly this object, or None."""
    # Objects are not asked for their `__class__`, which may be code of the program.
    kind = type(value)
    if issubclass(kind, torch._ops._OpNamespace):
        return _checked(Import("torch", f"ops.{value.name}"), value)
    if issubclass(kind, ModuleType):
        # A module may call itself by another name than the one it is imported by.
        own = _MODULE_DICT.__get__(value) or {}
        names = (own.get("__name__"), getattr(own.get("__spec__"), "name", None))
        found = [name for name in names if name and sys.modules.get(name) is value]
        return Import(found[0]) if found else None
    if issubclass(kind, torch._ops.OpOverload):
        packet, overload = value._schema.name.replace("::", "."), value._overloadname
        return _checked(Import("torch", f"ops.{packet}.{overload}"), value)
    if issubclass(kind, torch._ops.OpOverloadPacket):
        return _checked(
            Import("torch", f"ops.{value._qualified_op_name.replace('::', '.')}"), value
        )
    module = _told(value, "__module__")
    qualname = _name_of(value)
    if isinstance(module, str) and isinstance(qualname, str) and "<" not in qualname:
        # Under the public name the program may have put another one.
        for place in dict.fromkeys((_PUBLIC.get(module, module), module)):
            for name in (qualname, f"_{qualname}"):
                found = _checked(Import(place, name), value)
                if found is not None:
                    return found
    if issubclass(kind, BuiltinFunctionType) and value.__self__ is None and qualname:
        # A static method of a class of C.
        found = _checked(Import("builtins", qualname), value)
        if found is not None:
            return found
    if issubclass(kind, BuiltinFunctionType) and isinstance(value.__self__, type):
        base = importable(value.__self__)
        if base is not None:
            return _checked(Import(base.module, f"{base.qualname}.{value.__name__}"), value)
    owner = getattr(value, "__objclass__", None)
    if isinstance(owner, type) and hasattr(value, "__name__"):
        base = importable(owner)
        if base is not None and isinstance(base, Import):
            return _checked(Import(base.module, f"{base.qualname}.{value.__name__}"), value)
    if is_kernel(value) or is_host_function(value):
        function = function_of(value)
        return _checked(Import(function.__module__, function.__qualname__), value)
    if is_dtype(value):
        return _checked(Import("triton.language", dtype_name(value)), value)
    return _at_home(value) or _part_of_torch(value) or _enum_member(value)


def _at_home(value: Any) -> Import | None:
    """Where an object is that does not know its own module. A builtin that the program has put
    another one in place of is still in our own copy of them."""
    found = _homeless().get(id(value))
    if found is not None and _checked(found, value) is not None:
        return found
    name = getattr(value, "__name__", None)
    kept = isinstance(name, str) and own_builtins.BUILTINS.get(name) is value
    return Import(own_builtins.__name__, name) if kept else None


def _name_of(value: Any) -> Any:
    """What an object calls itself within its module."""
    of_typing = type(value).__module__ == "typing"
    for attribute in ("__qualname__", "__name__", *(("_name",) if of_typing else ())):
        name = _told(value, attribute)
        if name:
            return name
    return None


def _told(value: Any, attribute: str) -> Any:
    """What an object tells of itself; a class what C makes of it, whatever a metaclass of Python
    does: one of C has its way of telling, as its classes may have members under these names."""
    held = _descriptor(type(value), attribute) if isinstance(value, type) else None
    if held is None:
        return getattr(value, attribute, None)
    try:
        return held.__get__(value)
    except AttributeError:
        return None


def _descriptor(metaclass: type, attribute: str) -> Any:
    """How C reads an attribute of the classes of a metaclass."""
    held = (vars(base).get(attribute) for base in metaclass.__mro__)
    of_c = (each for each in held if isinstance(each, types.GetSetDescriptorType))
    return next(of_c, None)


# What `list[int]`, `int | None`, `Optional[int]` and the like are instances of.
ALIASES = (types.GenericAlias, types.UnionType, typing._BaseGenericAlias)  # type: ignore


# Where the classes of aliases are from; one of the program's has attributes of its own.
_TYPING = ("types", "typing", "typing_extensions", "collections.abc", "_collections_abc")


def is_of_typing(kind: type) -> bool:
    """Whether objects of a class are aliases, and nothing more."""
    return issubclass(kind, ALIASES) and kind.__module__ in _TYPING


def made_of(value: Any) -> Made | None:
    """How another process makes an object like this one out of things with names, or None."""
    if isinstance(value, type):
        return _named_by_instance(value)
    found = composition(value)
    if found is None:
        return None
    how, parts = found
    references = [_part(part) for part in parts]
    return None if None in references else Made(how, tuple(references))


def _named_by_instance(cls: type) -> Made | None:
    """A class of C whose name is that of its only instance: that of `sys.version_info`."""
    only = Import(_told(cls, "__module__"), _told(cls, "__qualname__"))
    try:
        found = type(resolve_import(only)) is cls and only.module in sys.builtin_module_names
    except PackageError:
        return None
    return Made("call", (Import("builtins", "type"), only)) if found else None


def composition(value: Any) -> tuple[str, tuple[Any, ...]] | None:
    """How an object like this one is made (a row of `resolve.MAKERS`), and of what; None for what
    is not made of parts."""
    kind = type(value)
    if type(value) is list:
        return "list", tuple(value)
    if issubclass(kind, enum.Flag) and "_value_" in vars(value):
        return "call", (type(value), value.value)
    if issubclass(kind, re.Pattern):
        # One of a scanner has no text; compiling with the last one shows what is compiled.
        told = isinstance(value.pattern, str | bytes) and not value.flags & re.DEBUG
        return ("call", (re.compile, value.pattern, value.flags)) if told else None
    if str(kind.__module__).partition(".")[0] == "numpy":
        return numpy_parts(value)
    if kind in (typing.ParamSpecArgs, typing.ParamSpecKwargs):
        return "call", (kind, value.__origin__)
    if not is_of_typing(kind) or not hasattr(value, "__args__"):
        return None
    if getattr(value, "__unpacked__", False):
        return None
    args = value.__args__
    if issubclass(kind, types.UnionType):
        return "union", args
    origin = value.__origin__
    if issubclass(kind, typing._BaseGenericAlias) and value._name not in (None, "Optional"):
        origin = getattr(typing, value._name)
    if hasattr(value, "__metadata__"):
        return "item", (typing.Annotated, origin, *value.__metadata__)
    if origin in (typing.Callable, collections.abc.Callable):
        given = args[0] if args[0] is Ellipsis else [*args[:-1]]
        return "item", (origin, given, args[-1])
    return "item", (origin, *args)


LITERALS = (int, str, bytes, bool, type(None), type(Ellipsis))


def _part(value: Any) -> Reference | None:
    if type(value) in LITERALS:
        return Literal(value)
    return importable(value) or made_of(value)


def _part_of_torch(value: Any) -> Import | None:
    """For the objects that torch's C extension keeps its functions in."""
    if type(value).__module__ != "torch._C":
        return None
    return next((Import("torch._C", name) for name, each in vars(torch._C).items()
                 if each is value), None)  # fmt: skip


def _enum_member(value: Any) -> Import | None:
    name = getattr(value, "name", None)
    if isinstance(name, str) and hasattr(type(value), "__members__"):
        owner = importable(type(value))
        if owner is not None:
            return _checked(Import(owner.module, f"{owner.qualname}.{name}"), value)
    return None


def is_bound_enum_member(value: Any) -> bool:
    """Whether a value is a member of an enum that C++ defines, as its class has it."""
    cls = type(value)
    if type(cls).__name__ != "pybind11_type" or "__members__" not in vars(cls):
        return False
    return cls.__members__.get(value.name) is value


def _checked(reference: Import, value: Any) -> Import | None:
    """The reference, if it resolves to the very object."""
    if reference.module not in sys.modules:
        return None
    try:
        return reference if resolve_import(reference) is value else None
    except PackageError:
        return None


# What reading from a class gives is the class' own, not what its instances find.
_OF_TYPE = {
    name
    for name, held in vars(type).items()
    if isinstance(held, types.GetSetDescriptorType | types.MemberDescriptorType)
} - {"__doc__"}  # fmt: skip


class References:
    """The references of one variant; objects without a name become `Live`, an obstacle to
    packaging. `codes` lists the functions whose code the variant relies on, `kernels` those of
    Triton."""

    def __init__(self) -> None:
        self.live: list[Any] = []
        self._live_by_id: dict[int, Live] = {}
        self.codes: dict[Import, str] = {}
        self.kernels: dict[Import, str] = {}
        # Stand-ins of the classes that the trace has made, in order.
        self.made: list[type] = []

    def is_made(self, cls: type) -> bool:
        """Whether the trace has made a class."""
        return any(cls is made for made in self.made)

    def is_made_of(self, value: Any) -> bool:
        """Whether a class that the trace has made is among the parts of an object."""
        if not self.made or isinstance(value, type):
            return self.is_made(value)
        found = composition(value)
        return found is not None and any(map(self.is_made_of, found[1]))

    def to(self, value: Any) -> Reference:
        """A reference to an object."""
        if isinstance(value, type):
            for index, made in enumerate(self.made):
                if made is value:
                    return Body(index)
        elif self.made and isinstance(value, enum.Enum) and self.is_made(type(value)):
            return enum_reference(self, value).reference
        found = importable(value) or made_of(value)
        if found is not None:
            return found
        known = self._live_by_id.get(id(value))
        if known is None:
            what = getattr(value, "__qualname__", None) or type(value).__qualname__
            known = Live(str(what), len(self.live))
            self.live.append(value)
            self._live_by_id[id(value)] = known
        return known

    def member_source(self, cls: type, name: str) -> Source:
        """Where a class attribute is read to be guarded: on the class, or for one that the trace
        has made, which no guard can ask, on the base that has the attribute."""
        if self.is_made(cls):
            owner = next((base for base in cls.__mro__ if name in vars(base)), cls)
            cls = cls if self.is_made(owner) else owner
        if name in _OF_TYPE:
            owner = next((base for base in cls.__mro__ if name in vars(base)), cls)
            return Item(Attribute(Bound(self.to(owner)), "__dict__"), name)
        return Attribute(Bound(self.to(cls)), name)

    def rely_on_code(self, function: FunctionType | MethodType, reference: Import) -> None:
        """Notes that the function's code was inlined: it is verified when the variant is linked."""
        if reference not in self.codes and not is_polyfill(reference.module):
            self.codes[reference] = code_hash(function.__code__)

    def rely_on_kernel(self, kernel: Any, reference: Import) -> None:
        """Notes that a kernel is launched, as `rely_on_code` does for functions."""
        if reference not in self.kernels:
            self.kernels[reference] = kernel_hash(kernel)


def enum_reference(references: References, member: enum.Enum) -> Bound:
    """How a member of an enum that the trace has made is reached."""
    cls = type(member)
    index = next(i for i, made in enumerate(references.made) if made is cls)
    for name, held in cls._member_map_.items():
        if held is member:
            return Bound(Body(index, name))
    return Bound(Body(index, None, member._value_))


def is_made(source: Any) -> bool:
    """Whether a source, or what a guard expects, starts at a class that the trace has made: the
    trace itself decides what is there."""
    if isinstance(source, tuple):
        return any(map(is_made, source))
    if isinstance(source, Body):
        return True
    if not isinstance(source, Source):
        return False
    while source.base is not None:
        source = source.base
    return isinstance(source, Bound) and isinstance(source.reference, Body)
