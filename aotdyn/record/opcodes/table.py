"""The table of instruction handlers. Every opcode of CPython 3.11 is in it or in `REFUSED`."""

import dis
from collections.abc import Callable

HANDLERS: dict[str, Callable] = {}


def opcode(handler: Callable) -> Callable:
    """Registers a handler under its own name, which must be an opcode without one."""
    return named(handler.__name__, handler)


def named(name: str, handler: Callable) -> Callable:
    """Registers a handler that a factory made."""
    if name not in dis.opmap:
        raise ValueError(f"{name} is no opcode")
    if name in HANDLERS:
        raise ValueError(f"{name} has two handlers")
    HANDLERS[name] = handler
    return handler
