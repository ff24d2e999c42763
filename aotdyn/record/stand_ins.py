"""Plain values that stand in for variables where only their types matter: what Python says when
it refuses an operator or a call."""

import functools
from types import CodeType, FunctionType
from typing import Any

from .signals import NotConstant
from .variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    GeneratorVariable,
    Known,
    ObjectVariable,
    RangeVariable,
    Sequence,
    SetVariable,
    Symbolic,
    Variable,
)

_BUILTIN_BASES = (int, float, str, bytes, list, tuple, dict, set, frozenset, BaseException)
_IMPLICIT = {*vars(object), "__dict__", "__weakref__", "__module__", "__slots__"}


def stand_in(value: Variable) -> Any:
    """A value of the same type name that does what the variable's type does with operators.

    Raises NotConstant where there is none.
    """
    if isinstance(value, Constant | RangeVariable | Known):
        return value.value
    if isinstance(value, Symbolic):
        return value.type(2)
    if isinstance(value, Sequence) and value.type in (list, tuple):
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
        return _class_like(value.type)()
    raise NotConstant(value.describe())


@functools.cache
def _class_like(cls: type) -> type:
    """A class of the same name whose special methods, where there are any, are not understood."""
    names = {name for base in cls.__mro__ for name in vars(base)} - _IMPLICIT
    members = {name: _refuse for name in names if name.startswith("__") and name.endswith("__")}
    for name in ("__new__", "__init__", "__init_subclass__", "__class_getitem__", "__set_name__",
                 "__call__", "__annotations__", "__match_args__", "__abstractmethods__",
                 "__parameters__", "__orig_bases__", "__dataclass_fields__",
                 "__dataclass_params__", "__del__"):  # fmt: skip
        members.pop(name, None)
    return type(cls.__name__, (), members)


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


def _nothing() -> None:
    """Takes the place of a function's body."""
