"""Instruction handlers, one module per family; a handler is named exactly like its opcode."""

from . import calls, containers, exceptions, functions, jumps, names, operators, stack
from .refused import REFUSED
from .table import HANDLERS

__all__ = [
    "HANDLERS",
    "REFUSED",
    "calls",
    "containers",
    "exceptions",
    "functions",
    "jumps",
    "names",
    "operators",
    "stack",
]
