"""The packages that are open in this process, and what to do on a miss."""

from typing import Any

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401

ON_MISS = ("jit", "eager", "error")

_packages: list[Any] = []
_generation = 0


def generation() -> int:
    """A number that changes when packages are opened or closed."""
    return _generation


def packages() -> tuple[Any, ...]:
    """The open packages, in the order in which they were opened."""
    return tuple(_packages)


def on_miss() -> str:
    """The policy of the package opened last; the JIT where there is none."""
    return _packages[-1].on_miss if _packages else "jit"


def add(package: Any) -> None:
    """Entries take variants from this package from now on."""
    global _generation
    _packages.append(package)
    _generation += 1


def remove(package: Any) -> None:
    """Entries take no further variants from this package; what is linked stays."""
    global _generation
    if package in _packages:
        _packages.remove(package)
        _generation += 1
