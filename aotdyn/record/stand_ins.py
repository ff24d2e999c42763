"""Plain values that stand in for variables: where only their types matter, to learn what Python
says when it refuses an operator or a call; and as members of classes, which lead back to them."""

import functools
import inspect
from types import CellType, CodeType, FunctionType
from typing import Any

import torch

from .signals import NotConstant
from .variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    GeneratorVariable,
    HolderVariable,
    Known,
    ListVariable,
    ObjectVariable,
    Opaque,
    RangeVariable,
    Sequence,
    SetVariable,
    Symbolic,
    TupleVariable,
    Variable,
)

_BUILTIN_BASES = (int, float, str, bytes, list, tuple, dict, set, frozenset, BaseException)


def stand_in(value: Variable, arithmetic: bool = False) -> Any:
    """A value of the same type name that does what the variable's type does with operators.

    arithmetic: only with those that look for methods of their own name. Raises NotConstant where
    there is none.
    """
    if isinstance(value, Constant | RangeVariable | Known):
        return value.value
    if isinstance(value, Symbolic):
        return value.type(2)
    if isinstance(value, Sequence) and value.type in (list, tuple, torch.Size):
        return value.type()
    if isinstance(value, DictVariable) and value.type is dict:
        return {}
    if isinstance(value, SetVariable):
        return value.type()
    if isinstance(value, FunctionVariable):
        return stand_in
    if isinstance(value, GeneratorVariable):
        return (_ for _ in ())
    if type(value) is ObjectVariable and not issubclass(value.type, _BUILTIN_BASES):
        like = _class_like(value.type, arithmetic)
        if like is not None:
            return like()
    raise NotConstant(value.describe())


@functools.cache
def _class_like(cls: type, arithmetic: bool) -> type | None:
    """A class of the same name whose binary operators are not understood. None for a class with
    other special methods: what Python does with it is not only a matter of its name."""
    names = {name for base in cls.__mro__ for name in vars(base)}
    if names & _PROTOCOLS and not arithmetic:
        return None
    binary = {f"__{prefix}{name}__" for name in _BINARY for prefix in ("", "r", "i")} & names
    return type(cls.__name__, (), dict.fromkeys(binary, _refuse))


_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "xor",
    "and", "or", "divmod", "eq", "lt", "le", "gt", "ge",
)  # fmt: skip
_PROTOCOLS = {
    f"__{name}__"
    for name in ("len", "iter", "next", "getitem", "setitem", "delitem", "contains", "index", "int",
                 "float", "complex", "trunc", "floor", "ceil", "round", "bool", "call", "reversed",
                 "abs", "neg", "pos", "invert", "bytes", "length_hint", "array", "buffer",
                 "torch_function", "missing")
}  # fmt: skip


def _refuse(*args: Any) -> Any:
    return NotImplemented


def argument_error(
    code: CodeType, qualname: str, defaults: int, keyword_defaults: list[str], count: int,
    keywords: list[str],
) -> TypeError | None:  # fmt: skip
    """The exception with which Python refuses `count` positional and some keyword arguments, None
    if it takes them. `defaults`: how many positional parameters have one."""
    stub = _nothing.__code__.replace(
        co_argcount=code.co_argcount, co_posonlyargcount=code.co_posonlyargcount,
        co_kwonlyargcount=code.co_kwonlyargcount, co_varnames=code.co_varnames,
        co_nlocals=len(code.co_varnames), co_name=code.co_name, co_qualname=qualname,
        co_flags=_nothing.__code__.co_flags | code.co_flags & 0x0C,
    )  # fmt: skip
    function = FunctionType(stub, {}, code.co_name, (None,) * defaults)
    function.__kwdefaults__ = dict.fromkeys(keyword_defaults)
    function.__qualname__ = qualname
    try:
        function(*(None,) * count, **dict.fromkeys(keywords))
    except TypeError as error:
        return error
    return None


# Functions of C that have no effect, whatever they get, and the classes of such methods.
_HARMLESS = ("builtins", "_operator", "math", "itertools", "_functools", "_collections")


# Those that have no signature to ask.
_WITHOUT_KEYWORDS = (getattr, filter, iter, next, vars, functools.reduce, dict.pop)


def native_argument_error(operation: Any, count: int, keywords: list[str]) -> TypeError | None:
    """The exception with which a function of C refuses so many positional arguments, its object
    included, and these keyword arguments. None if it takes them, or does not say what it takes."""
    if isinstance(operation, FunctionType):
        return None
    cls = getattr(operation, "__objclass__", None)
    if (cls or operation).__module__ not in _HARMLESS:
        return None
    args, kwargs = [None] * count, dict.fromkeys(keywords)
    try:
        inspect.signature(operation).bind(*args, **kwargs)
        return None
    except ValueError:
        if keywords and operation in _WITHOUT_KEYWORDS:
            return TypeError(f"{operation.__qualname__}() takes no keyword arguments")
        return None
    except TypeError:
        if cls is not None and args:
            args[0] = cls()
    try:
        operation(*args, **kwargs)
    except TypeError as error:
        return error
    return None


def _nothing() -> None:
    """Takes the place of a function's body."""


# -- members of classes ------------------------------------------------------------


class _StandIn:
    """Takes the place of a value of which nothing but its variable is known."""


def stand_in_for(t, value: Variable) -> Any:
    """A Python object that the attribute protocol treats as it would the value. Looking it up
    gives the variable again."""
    value = t.realize(value)
    if isinstance(value, Constant | Known):
        return value.value
    if getattr(value, "live", None) is not None:
        return value.live
    made = _stand_in(t, value)
    t.remember(made, value)
    return made


def _stand_in(t, value: Variable) -> Any:
    if isinstance(value, FunctionVariable):
        return _function(t, value)
    if isinstance(value, HolderVariable):
        return value.cls(*(stand_in_for(t, each) for each in value.functions.values()))
    if type(value) in (ListVariable, TupleVariable) and value.type in (list, tuple):
        return value.type(stand_in_for(t, item) for item in value.items)
    if type(value) is DictVariable and value.complete:
        return {key: stand_in_for(t, item) for key, (_, item) in value.items.items()}
    if type(value) is SetVariable:
        try:
            return value.constant()
        except NotConstant:
            return value.type()
    if isinstance(value, ListVariable | DictVariable) and value.type in (list, dict):
        # What is in one that came in is not known, and not asked here.
        return value.type()
    if isinstance(value, Opaque):
        return value.value
    if isinstance(value, ObjectVariable):
        base = next((base for base in (list, tuple, dict) if issubclass(value.cls, base)), object)
        if base is object and value.cls.__new__ is not object.__new__:
            return _StandIn()
        made = base.__new__(value.cls)
        for name, item in value.attributes.items():
            object.__setattr__(made, name, stand_in_for(t, item))
        return made
    return _StandIn()


def _function(t, value: FunctionVariable) -> FunctionType:
    cells = tuple(CellType() for _ in value.code.co_freevars)
    made = FunctionType(value.code, value.globals, value.name, None, cells)
    made.__qualname__ = value.qualname
    for name, item in value.attributes.items():
        setattr(made, name, stand_in_for(t, item))
    return made
