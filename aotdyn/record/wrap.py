"""Live value -> Variable, by exact type; adds the guards that what is now known still holds."""

import enum
import re
import threading
import types
import typing
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..package.reference import Import, Made, Reference
from ..package.source import Attribute, Bound, Called, Contents, Item, Source
from ..package.values import contents
from ..package.variant import code_hash
from .references import importable, is_bound_enum_member, is_of_typing
from .signals import GraphBreak
from .variables import (
    Alias,
    CellVariable,
    Constant,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    GroupVariable,
    HolderVariable,
    InstanceDict,
    Known,
    LiveListVariable,
    MappingObject,
    MethodVariable,
    ObjectVariable,
    Opaque,
    RangeVariable,
    SliceVariable,
    SuperVariable,
    TensorVariable,
    TupleVariable,
    Variable,
    Varying,
    is_dense,
)

WRAPPERS: dict[type, Callable] = {}

PLAIN = (type(None), bool, float, complex, str, bytes, type(Ellipsis), type(NotImplemented),
         torch.dtype, torch.device, torch.layout, torch.memory_format)  # fmt: skip

TENSORS = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def wraps(*types_: type) -> Callable[[Callable], Callable]:
    """Registers how values of exactly these types are wrapped: f(t, value, source)."""

    def register(function: Callable) -> Callable:
        for each in types_:
            WRAPPERS[each] = function
        return function

    return register


def wrap(t, value: Any, source: Source) -> Variable:
    """The variable for a live value reached by `source`, with its guards."""
    if _is_of_odd_class(value):
        return opaque(t, value, source)
    if not isinstance(source, Bound) and varies(t, value, source):
        t.guard("TYPE", source, t.references.to(type(value)))
        return Varying(value, source)
    wrapper = WRAPPERS.get(type(value))
    if wrapper is not None:
        return wrapper(t, value, source)
    for predicate, wrapper in _PREDICATES:
        if predicate(value):
            return wrapper(t, value, source)
    return opaque(t, value, source)


def _is_of_odd_class(value: Any) -> bool:
    """Whether a value is a class without a hash, which tables and comparisons here do not tell
    apart, or one that the program names by code of its own, or an object of one; or a class that
    is still being made."""
    kind = type(value)
    if issubclass(kind, type) and (_is_odd(kind) or value.__mro__ is None):
        return True
    return _is_odd(type(kind))


def _is_odd(metaclass: type) -> bool:
    if metaclass is type:
        return False
    computed = any(
        isinstance(base.__dict__.get(name), property)
        for base in metaclass.__mro__ for name in ("__module__", "__qualname__", "__name__")
    )  # fmt: skip
    return computed or metaclass.__hash__ is None


def varies(t, value: Any, source: Source) -> bool:
    """Whether a value that would be guarded to be the very one has differed between calls, and the
    entry has no room for a variant for each."""
    kind = type(value)
    if kind in (set, frozenset):
        seen: Any = frozenset(each if type(each) in (int, *PLAIN) else id(each) for each in value)
    elif kind is tuple:
        seen = (tuple, len(value))
    elif kind is types.BuiltinFunctionType and _method_of_c(value) is not None:
        return False
    elif kind in _SINGLE and (kind is not int or abs(value) >= 2**62):
        # The entry must not keep a function, and all that it holds.
        seen = weakref.ref(value) if kind is types.FunctionType else value
    else:
        return False
    return t.shapes.history.differs(source, seen) and t.shapes.crowded


def refuse_varying(t, source: Source, seen: Any, what: str) -> None:
    """Raises GraphBreak for what differs, as `varies` tells."""
    if t.shapes.history.differs(source, seen) and t.shapes.crowded:
        raise GraphBreak("varies", what)


# Types of which each value would need a variant.
_SINGLE = {
    str, bytes, complex, int, range, torch.dtype, torch.device, types.FunctionType,
    types.BuiltinFunctionType,
}  # fmt: skip


@wraps(*(kind for kind in PLAIN if kind is not float))
def _plain(t, value: Any, source: Source) -> Variable:
    t.guard("EQUALS", source, value)
    return Constant(value, source)


@wraps(float)
def _float(t, value: float, source: Source) -> Variable:
    wrapped = t.shapes.float_value(value, source)
    if isinstance(wrapped, Constant):
        t.guard("EQUALS", source, value)
    else:
        t.guard("TYPE", source, Import("builtins", "float"))
    return wrapped


@wraps(int)
def _int(t, value: int, source: Source) -> Variable:
    wrapped = t.shapes.int_value(value, source, t.here)
    if isinstance(wrapped, Constant):
        t.guard("EQUALS", source, value)
    else:
        t.guard("TYPE", source, Import("builtins", "int"))
    return wrapped


@wraps(*TENSORS)
def _tensor(t, value: torch.Tensor, source: Source) -> Variable:
    if not is_dense(value):
        return opaque(t, value, source)
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return opaque(t, value, source)
    variable = TensorVariable(
        t.shapes.fake(value, source, t.here), None, source, value, type(value)
    )
    t.tensors.append(variable)
    return t.graph.register(variable)


def _is_parameter(value: Any) -> bool:
    """A parameter of a class of its own that does with it all that a plain one does."""
    cls = type(value)
    if not issubclass(cls, torch.Tensor) or not isinstance(value, torch.nn.Parameter):
        return False
    if importable(cls) is None:
        return False
    if cls.__torch_function__ is not torch._C._disabled_torch_function_impl:
        return False
    own = {name for base in cls.__mro__[: cls.__mro__.index(torch.nn.Parameter)]
           for name in vars(base)}  # fmt: skip
    return own.isdisjoint(_TENSOR_NAMES)


# Overriding one of these changes what operators do.
_TENSOR_NAMES = frozenset(dir(torch.Tensor)) - {
    "__new__", "__init__", "__module__", "__doc__", "__dict__", "__weakref__", "__repr__",
    "__str__", "__deepcopy__", "__reduce_ex__", "__slots__", "__annotations__",
}  # fmt: skip


@wraps(list)
def _list(t, value: list, source: Source) -> Variable:
    t.guard("TYPE", source, Import("builtins", "list"))

    def look() -> list[Variable]:
        refuse_varying(t, source, len(value), "the length of a list")
        t.guard("LENGTH", source, len(value))
        return items_of(t, value, source)

    variable = LiveListVariable(look, source)
    t.remember(value, variable)
    return variable


@wraps(tuple)
def _tuple(t, value: tuple, source: Source) -> Variable:
    t.guard("TYPE", source, Import("builtins", "tuple"))
    t.guard("LENGTH", source, len(value))
    return TupleVariable(items_of(t, value, source), source)


def items_of(t, value: Any, source: Source) -> list[Variable]:
    """The items: tensors and objects stay untouched until used, short plain data is looked at.

    Raises GraphBreak for more of them than are traced one by one.
    """
    require_few(len(value))
    items = [t.lazy(item, Item(source, index)) for index, item in enumerate(value)]
    if len(items) <= _EAGER_ITEMS:
        items = [t.realize(i) if type(i.value) in _EAGER_TYPES else i for i in items]
    return items


# A container with more items is not traced item by item.
MAXIMUM_ITEMS = 100_000


def require_few(count: int) -> None:
    """Raises GraphBreak for a container that is too large to be traced."""
    if count > MAXIMUM_ITEMS:
        raise GraphBreak("long_trace", f"{count} items")


# A short list of plain values is structure (names, flags); it is guarded whole.
_EAGER_ITEMS = 16
_EAGER_TYPES = (str, bool, type(None))


@wraps(torch.Size)
def _size(t, value: torch.Size, source: Source) -> Variable:
    t.guard("TYPE", source, Import("torch", "Size"))
    t.guard("LENGTH", source, len(value))
    items = [t.lazy(item, Item(source, index)) for index, item in enumerate(value)]
    return TupleVariable(items, source, torch.Size)


@wraps(slice)
def _slice(t, value: slice, source: Source) -> Variable:
    t.guard("TYPE", source, Import("builtins", "slice"))
    parts = [t.lazy(getattr(value, n), Attribute(source, n)) for n in ("start", "stop", "step")]
    return SliceVariable(parts, source)


@wraps(range)
def _range(t, value: range, source: Source) -> Variable:
    t.guard("EQUALS", source, value)
    return RangeVariable(value, source)


@wraps(dict)
def _dict(t, value: dict, source: Source) -> Variable:
    owner, own = t.own_dicts.get(id(value), (None, source))
    if own != source:
        t.guard("SAME", source, own)
        return InstanceDict(owner)
    if t.effects.globals and any(key[0] == id(value) for key in t.effects.globals):
        raise GraphBreak("mutation", "the names of a module are looked at after one was set")
    t.guard("TYPE", source, Import("builtins", "dict"))
    variable = DictVariable({}, source, value)
    t.remember(value, variable)
    return variable


@wraps(types.CellType)
def _cell(t, value: types.CellType, source: Source) -> Variable:
    try:
        content = t.lazy(value.cell_contents, Attribute(source, "cell_contents"))
    except ValueError:
        t.guard("EMPTY_CELL", source)
        content = None
    variable = CellVariable(content, source, value)
    t.remember(value, variable)
    return variable


# -- what is known by identity ------------------------------------------------------------


@wraps(
    types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType, torch._ops.OpOverload, torch._ops.OpOverloadPacket,
    torch._ops._OpNamespace, torch._ops._Ops,
)  # fmt: skip
def known_by_identity(t, value: Any, source: Source) -> Variable:
    if type(value) is types.BuiltinFunctionType and t.references_to(value) is None:
        return _bound_to_object(t, value, source)
    return Known(value, identity(t, value, source))


def _bound_to_object(t, value: types.BuiltinFunctionType, source: Source) -> Variable:
    """A method of C that is bound to an object: `[].append` stored in a variable."""
    method = _method_of_c(value)
    if method is None:
        return opaque(t, value, source)
    t.guard("TYPE", source, Import("types", "BuiltinFunctionType"))
    t.guard("EQUALS", Attribute(source, "__name__"), value.__name__)
    self_ = t.lazy(value.__self__, Attribute(source, "__self__"))
    t.realize(self_)  # its type decides which method it is
    return MethodVariable(self_, Known(method, Bound(t.references.to(method))), source)


def _method_of_c(value: types.BuiltinFunctionType) -> types.MethodDescriptorType | None:
    """The method, unbound; None for what is no method of a class of C, or of a tensor."""
    kind = type(value.__self__)
    if issubclass(kind, type | types.ModuleType | types.NoneType):
        return None
    if kind.__flags__ & (1 << 9 | 1 << 8) == 1 << 9 and kind not in TENSORS:
        # What the class has under the name may be another one.
        return None
    found = getattr(kind, value.__name__, None)
    return found if isinstance(found, types.MethodDescriptorType) else None


def identity(t, value: Any, source: Source) -> Source:
    """Guards that the value is the very object; returns the short way to reach it from now on."""
    if isinstance(source, Bound):
        return source
    reference = t.references.to(value)
    t.guard("IS", source, reference)
    return Bound(reference)


@wraps(types.FunctionType)
def _function(t, value: types.FunctionType, source: Source) -> Variable:
    reference = t.references_to(value)
    if reference is not None:
        source = identity(t, value, source)
    else:
        t.guard("TYPE", source, Import("types", "FunctionType"))
        t.guard("CODE", source, code_hash(value.__code__))
    variable = live_function(t, value, source, reference)
    t.remember(value, variable)
    return variable


def live_function(
    t, value: types.FunctionType, source: Source, reference: Reference | None
) -> FunctionVariable:
    """The variable for a function; its defaults and cells are looked at when it is inlined."""
    defaults = kwdefaults = None
    if value.__defaults__ is not None:
        defaults = t.lazy(value.__defaults__, Attribute(source, "__defaults__"))
    if value.__kwdefaults__ is not None:
        kwdefaults = t.lazy(value.__kwdefaults__, Attribute(source, "__kwdefaults__"))
    closure = tuple(
        t.lazy(cell, Item(Attribute(source, "__closure__"), index))
        for index, cell in enumerate(value.__closure__ or ())
    )
    return FunctionVariable(
        value.__code__, value.__globals__, value.__name__, value.__qualname__, closure,
        defaults, kwdefaults, source, value,
        reference if isinstance(reference, Import) else None,
    )  # fmt: skip


@wraps(types.MethodType)
def _method(t, value: types.MethodType, source: Source) -> Variable:
    t.guard("TYPE", source, Import("types", "MethodType"))
    self_ = t.lazy(value.__self__, Attribute(source, "__self__"))
    function = t.lazy(value.__func__, Attribute(source, "__func__"))
    return MethodVariable(self_, function, source)


@wraps(property, staticmethod, classmethod)
def _holder(t, value: Any, source: Source) -> Variable:
    t.guard("TYPE", source, t.references.to(type(value)))
    parts = ("fget", "fset", "fdel") if type(value) is property else ("__func__",)
    functions = {part: t.lazy(getattr(value, part), Attribute(source, part)) for part in parts}
    variable = HolderVariable(type(value), functions, source, value)
    t.remember(value, variable)
    return variable


@wraps(super)
def _super(t, value: super, source: Source) -> Variable:
    cls, self_, start = (_SUPER[name].__get__(value) for name in _SUPER)
    # A class above that has such an attribute would be read in its place.
    order = () if start is None else start.__mro__ or ()
    hidden = any(name in vars(base) for base in order for name in _SUPER)
    # What it is bound to may claim another class than it has.
    if cls not in order or hidden or start not in (self_, type(self_)):
        return opaque(t, value, source)
    t.guard("TYPE", source, Import("builtins", "super"))
    known = t.realize(t.lazy(cls, Attribute(source, "__thisclass__")))
    variable = SuperVariable(
        known.value, t.realize(t.lazy(self_, Attribute(source, "__self__"))), source
    )
    t.remember(value, variable)
    return variable


_SUPER = {name: vars(super)[name] for name in ("__thisclass__", "__self__", "__self_class__")}


def _class(t, value: type, source: Source) -> Variable:
    return Known(value, identity(t, value, source))


def _enum(t, value: enum.Enum, source: Source) -> Variable:
    return Known(value, identity(t, value, source))


def member_of_enum(t, value: enum.Enum) -> Known:
    """A member that an operation has given. One that is combined of flags is what the class has
    for the number, and is made when it is first asked for."""
    cls, reference = type(value), t.references.to(value)
    if isinstance(value, enum.Flag):
        of_class = Bound(t.references.to(cls))
        made: Source = Called(of_class, (value.value,))
        if value.name in cls._member_map_:
            # What making one gives, without the call.
            t.classes.lookup(cls, "__new__")
            made = Item(Attribute(of_class, "_value2member_map_"), value.value)
        t.guard("IS", made, reference)
    return Known(value, Bound(reference))


@wraps(weakref.ProxyType, weakref.CallableProxyType)
def opaque(t, value: Any, source: Source) -> Variable:
    t.guard("TYPE", source, t.references.to(type(value)))
    return Opaque(value, source)


def _named_tuple(t, value: tuple, source: Source) -> Variable:
    t.guard("TYPE", source, t.references.to(type(value)))
    t.guard("LENGTH", source, len(value))
    return TupleVariable(items_of(t, value, source), source, type(value))


def _is_struct_sequence(value: Any) -> bool:
    """A tuple of C with names for all its items: what torch returns, `sys.version_info`."""
    cls = type(value)
    if cls.__bases__ != (tuple,) or isinstance(cls.__dict__.get("__new__"), types.FunctionType):
        return False
    return getattr(cls, "n_fields", None) == getattr(cls, "n_sequence_fields", len(value) + 1)


def wrap_object(t, value: Any, source: Source) -> Variable:
    """An instance of a Python class: its type is guarded, its attributes when they are used."""
    if type(value).__dictoffset__:
        own = object.__getattribute__(value, "__dict__")
        if type(own) is dict and set(map(type, own)) - {str}:
            # Keys that are no plain names may be compared by code.
            return opaque(t, value, source)
    t.guard("TYPE", source, t.references.to(type(value)))
    variable = ObjectVariable(type(value), value, source)
    t.remember(value, variable)
    return variable


def _exception(t, value: BaseException, source: Source) -> Variable:
    """An exception that was raised or made before: its type is guarded, its message is not."""
    t.guard("TYPE", source, t.references.to(type(value)))
    args = t.lazy(value.args, Attribute(source, "args"))
    if isinstance(value, BaseExceptionGroup):
        variable = GroupVariable(type(value), args, value, source)
        variable.message = t.lazy(value.message, Attribute(source, "message"))
        variable.exceptions = t.lazy(value.exceptions, Attribute(source, "exceptions"))
    else:
        variable = ExceptionVariable(type(value), args, value, source)
    t.remember(value, variable)
    return variable


_C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)


def _held(cls: type, name: str) -> Any:
    """What a class has under a name that all such classes have; a descriptor is not asked what it
    gives, which runs its code."""
    return next(vars(base)[name] for base in cls.__mro__ if name in vars(base))


def _mapping(t, value: dict, source: Source) -> Variable:
    """An instance of a subclass of dict; what it holds is looked at item by item."""
    cls = type(value)
    read = value
    inner: Source = source
    if any(not isinstance(_held(cls, name), _C_METHODS) for name in _DICT_READS):
        if compared_by_program(value) is not None:
            return opaque(t, value, source)
        try:
            inner, read = Contents(source), contents(value)
        except KeyError:
            # An OrderedDict that was changed by methods of dict.
            return opaque(t, value, source)
    t.guard("TYPE", source, t.references.to(cls))
    variable = MappingObject(cls, DictVariable({}, inner, read), value, source)
    t.remember(value, variable)
    return variable


_DICT_READS = ("__getitem__", "__contains__", "__iter__", "__len__", "__getattribute__")


def _is_named_tuple(value: Any) -> bool:
    return is_named_tuple(type(value))


def is_named_tuple(cls: type) -> bool:
    """Whether a class is a named tuple whose special methods are those of tuples."""
    if not issubclass(cls, tuple) or cls.__bases__ != (tuple,) or not hasattr(cls, "_fields"):
        return False
    special = (held for name, held in vars(cls).items() if name.startswith("__"))
    return all(_is_generated(held) for held in special if isinstance(held, types.FunctionType))


def _is_generated(function: types.FunctionType) -> bool:
    """Whether a method is one that `namedtuple` gives to its classes."""
    module = str(function.__globals__.get("__name__"))
    return module == "collections" or module.startswith("namedtuple_")


_BUILTIN_BASES = (int, float, str, bytes, complex, list, tuple, dict, set, frozenset, type,
                  torch.Tensor, BaseException)  # fmt: skip


def _is_plain_object(value: Any) -> bool:
    """An instance of a class made by a class statement, without the layout of a builtin type."""
    cls = type(value)
    if not cls.__flags__ & 1 << 9 or issubclass(cls, _BUILTIN_BASES):
        return False
    return all(_is_understood(cls, name) for name in _ATTRIBUTE_HOOKS)


def is_read_as_objects(cls: type, base: type) -> bool:
    """Whether attributes of the instances of a subclass of a builtin type are read, set and deleted
    by code of Python, or as those of any object."""
    held = {name: getattr(cls, name) for name in _ATTRIBUTE_HOOKS}
    return all(
        _is_understood(cls, name) or each is getattr(base, name) for name, each in held.items()
    )


def _is_understood(cls: type, name: str) -> bool:
    """Whether attributes are read, set or deleted by code of Python, or as the tracer does it: that
    of `object`, which that of a thread-local object is for the thread's own dictionary, and which
    a property has under a name of its own."""
    held = getattr(cls, name)
    if held is getattr(threading.local, name):
        hooks = (getattr(cls, each) for each in _ATTRIBUTE_HOOKS)
        return not any(isinstance(hook, types.FunctionType) for hook in hooks)
    if held is property.__getattribute__:
        return True
    return not isinstance(held, types.WrapperDescriptorType) or held is getattr(object, name)


_ATTRIBUTE_HOOKS = ("__getattribute__", "__setattr__", "__delattr__")


def _alias(t, value: Any, source: Source) -> Variable:
    """`list[int]` and the like, made anew each time."""
    reference = t.references.to(value)
    if isinstance(reference, Made):
        t.guard("EQUAL", source, reference)
        return Alias(value, Bound(reference) if isinstance(source, Bound) else source)
    return Alias(value, identity(t, value, source))


def _is_alias(value: Any) -> bool:
    kind = type(value)
    if issubclass(kind, typing.NewType | re.Pattern):
        return True
    if kind in (typing.ParamSpecArgs, typing.ParamSpecKwargs):
        return True
    return is_of_typing(kind) and hasattr(value, "__args__")


# Tried in this order for types that are not in WRAPPERS. Objects are not asked for their
# `__class__`, which may be code of the program: their type counts.
_PREDICATES: list[tuple[Callable[[Any], bool], Callable]] = [
    (lambda value: issubclass(type(value), type), _class),
    # What stands in sys.modules with a class of its own, such as torch._VF.
    (lambda value: issubclass(type(value), types.ModuleType) and importable(value),
     known_by_identity),
    (lambda value: issubclass(type(value), enum.Enum), _enum),
    (is_bound_enum_member, known_by_identity),
    (_is_alias, _alias),
    # Its other objects: `Any`, `List`, type variables.
    (lambda value: type(value).__module__ == "typing", known_by_identity),
    (_is_named_tuple, _named_tuple),
    (_is_struct_sequence, _named_tuple),
    (lambda value: issubclass(type(value), dict), _mapping),
    (lambda value: issubclass(type(value), BaseException), _exception),
    (_is_parameter, _tensor),
    (_is_plain_object, wrap_object),
]


def add_first_predicate(predicate: Callable[[Any], bool], wrapper: Callable) -> None:
    """Registers how values are wrapped, before all others look at them."""
    _PREDICATES.insert(0, (predicate, wrapper))


def add_predicate(predicate: Callable[[Any], bool], wrapper: Callable) -> None:
    """Registers how values are wrapped that nothing before has claimed."""
    _PREDICATES.append((predicate, wrapper))


# Functions of Python, and the hash of an object is the same each time.
_STEADY_HASHES = (enum.Enum.__hash__, torch.Tensor.__hash__)


def compared_by_program(mapping: Mapping) -> type | None:
    """A type of keys in a mapping that code of the program hashes or compares, if there is one."""
    # An OrderedDict's own iterator looks its keys up, which hashes them.
    keys = dict.__iter__(mapping) if isinstance(mapping, dict) else mapping
    for kind in {*map(type, keys)}:
        by_program = isinstance(kind.__hash__, types.FunctionType)
        if isinstance(kind.__eq__, types.FunctionType) or (
            by_program and kind.__hash__ not in _STEADY_HASHES
        ):
            return kind
    return None
