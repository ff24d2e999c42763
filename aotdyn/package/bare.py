"""What an instance of a subclass of a builtin type holds, whatever its class does otherwise."""

from collections.abc import Callable
from typing import Any

from .own_builtins import BUILTINS as __builtins__  # noqa: F401

# Methods of C that give the plain value.
BARE: dict[type, Callable[[Any], Any]] = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: bytes.__bytes__,
}


def base_of(cls: type) -> type | None:
    """The builtin type that a class inherits from, None where that is none of these."""
    return next((base for base in cls.__mro__ if base in BARE), None)


def bare(value: Any) -> Any:
    """The plain value. Raises KeyError for an object that holds none."""
    return BARE[base_of(type(value))](value)
