"""aotdyn: compiled PyTorch programs without the cold start.

The names below are imported when they are first used: `aotdyn --help` needs no torch, and serving
a package needs neither the tracer nor a compiler.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import compile, explain, load, pack, record
    from .markers import (
        disable,
        graph_break,
        is_compiling,
        mark_dynamic,
        mark_static,
        maybe_mark_dynamic,
    )
    from .package.errors import AotdynError, Miss, PackageError, Unsupported
    from .runtime.package import Package
    from .runtime.settings import reset

__version__ = "0.1.0"

__all__ = [
    "AotdynError", "Miss", "Package", "PackageError", "Unsupported", "compile", "disable",
    "explain", "graph_break", "is_compiling", "load", "mark_dynamic", "mark_static",
    "maybe_mark_dynamic", "pack", "record", "reset",
]  # fmt: skip

_HOME = {
    **dict.fromkeys(("compile", "explain", "load", "pack", "record"), "api"),
    **dict.fromkeys(
        ("disable", "graph_break", "is_compiling", "mark_dynamic", "mark_static",
         "maybe_mark_dynamic"),
        "markers",
    ),
    **dict.fromkeys(("AotdynError", "Miss", "PackageError", "Unsupported"), "package.errors"),
    "Package": "runtime.package",
    "reset": "runtime.settings",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    if name != "record":
        # `record` is a package as well: see its docstring for how the two get along.
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
