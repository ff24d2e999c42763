"""Graphs as Python text -> functions. Knows nothing of this Python's bytecode: graphs, unlike the
variants that call them, are the same for every Python."""

from collections.abc import Callable
from typing import Any

from ..package.errors import PackageError
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.reference import Import, Literal, Reference
from ..package.resolve import resolve_import


def link_text(text: str, name: str, names: dict[str, Reference]) -> Callable:
    """A function given as text whose free names are imports and literals: an eager graph."""
    scope: dict[str, Any] = {}
    for free, reference in names.items():
        if isinstance(reference, Import):
            scope[free] = resolve_import(reference)
        elif isinstance(reference, Literal):
            scope[free] = reference.value
        else:
            raise PackageError(f"a graph that needs a {type(reference).__name__}")
    exec(compile(text, f"<aotdyn {name}>", "exec"), scope)
    return scope[name]
