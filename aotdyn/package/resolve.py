"""References -> live objects of this process."""

import functools
import importlib
import operator
import re
import sys
import typing
from collections.abc import Callable
from types import CodeType
from typing import Any

from .errors import PackageError
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .reference import CodeOf, Import, Made
from .values import same_value


def resolve_import(reference: Import) -> Any:
    """The object that an import names. Raises PackageError where it is not there."""
    module = sys.modules.get(reference.module)
    try:
        found: Any = module if module is not None else importlib.import_module(reference.module)
        if reference.qualname:
            for part in reference.qualname.split("."):
                found = _part(found, part)
    except (ImportError, AttributeError) as error:
        name = f"{reference.module}:{reference.qualname}".rstrip(":")
        raise PackageError(f"{name} is not there: {error}") from error
    return found


def _part(holder: Any, name: str) -> Any:
    """An attribute; of a class what its namespaces hold, unbound, the function of a static
    method."""
    for base in holder.__mro__ if isinstance(holder, type) else ():
        if name in base.__dict__:
            held = base.__dict__[name]
            return held.__func__ if isinstance(held, staticmethod) else held
    return getattr(holder, name)


def resolve_code(reference: CodeOf, entry_code: CodeType) -> CodeType:
    """A code object: an entry's or a function's, or one among its constants."""
    code = entry_code
    if reference.function is not None:
        code = resolve_import(reference.function).__code__
    for index in reference.path:
        constants = code.co_consts
        if not 0 <= index < len(constants) or not isinstance(constants[index], CodeType):
            raise PackageError(f"{code.co_qualname} has no code among its constants at {index}")
        code = constants[index]
    return code


# How an object is made of its parts.
MAKERS: dict[str, Callable[..., Any]] = {
    "item": lambda origin, *args: origin[args[0] if len(args) == 1 else args],
    "union": lambda *members: functools.reduce(operator.or_, members),
    "list": lambda *items: [*items],
    "call": lambda function, *args: function(*args),
}


def resolve_made(reference: Made, resolve: Callable[[Any], Any]) -> Any:
    """What a `Made` stands for. resolve: gives the object of any other reference."""
    maker = MAKERS.get(reference.how)
    if maker is None:
        raise PackageError(f"there is no way {reference.how[:40]!r} to make objects")
    return maker(*map(resolve, reference.parts))


def made_alike(value: Any, expected: Any) -> bool:
    """Whether two objects are made of the same parts in the same order. `int | None` equals
    `None | int`, and `list[1]` equals `list[True]`, but programs can tell them apart.

    No code of the program runs: a class may compare as its metaclass likes.
    """
    if value is expected:
        return True
    kind = type(value)
    if kind is not type(expected) or isinstance(value, type):
        return False
    if not hasattr(expected, "__args__"):
        return value == expected if kind in _COMPARED else same_value(value, expected)
    parts, due = (
        (*(getattr(x, name, None) for name in _HEADS), *x.__args__, *getattr(x, "__metadata__", ()))
        for x in (value, expected)
    )
    return len(parts) == len(due) and all(map(made_alike, parts, due))


_COMPARED = (re.Pattern, typing.ParamSpecArgs, typing.ParamSpecKwargs)
_HEADS = ("__origin__", "_name", "__unpacked__")
