"""`Package.why`: whether a package covers a call; if not, what differs and what would cover it."""

from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any

from torch.nn import Module

from ..package.errors import PackageError
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from .compiled import ORIGINAL, CompiledModule
from .cpython import suspends, trampoline_code
from .entry import Entry
from .explain import Explainer, Failure
from .hook import hookless, switch_off
from .link import Linked, Linker
from .settings import Settings


@dataclass
class Why:
    """What `Package.why` found; it prints well.

    covered: whether a variant covers the call. variants: how many the package has for the
    function. failures: the guards that fail in the nearest of them. refused: why others cannot be
    used in this process.
    """

    function: str
    package: str
    covered: bool = False
    variants: int = 0
    failures: list[Failure] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if self.covered:
            return f"{self.function} is served from {self.package}"
        lines = [f"{self.function} is not covered by {self.package} ({self.variants} variants)"]
        lines += [f"  refused: {reason}" for reason in self.refused]
        lines += [f"  failed: {failure}" for failure in self.failures]
        cures = [failure.cure for failure in self.failures] or ["record this call"]
        lines += [f"  to cover it: {cure}" for cure in dict.fromkeys(cures)]
        lines.append("  then: aotdyn pack OLD.rec NEW.rec -o PACKAGE")
        return "\n".join(lines)


def explain_miss(package, target: Any, args: tuple, kwargs: dict[str, Any]) -> Why:
    """What an open package has for a call, which is not made.

    Raises TypeError where `target` cannot be called like this.
    """
    function, args = _function(target, args)
    values = _frame_values(function, args, kwargs)
    entry = Entry(function.__code__, function.__globals__, Settings("eager"), None, None)
    found = Why(entry.key.qualname, str(package.file.path))
    linked = list(_linked(package, entry, found))
    failing = [Explainer(each, values).failures() for each in linked]
    found.covered = not all(failing)
    if not found.covered:
        found.failures = min(failing, key=len, default=[])
    return found


def _linked(package, entry: Entry, found: Why):
    for index, variant in enumerate(package.variants(entry.key)):
        found.variants += 1
        try:
            linked: Linked = Linker(entry, variant).link()
        except PackageError as error:
            found.refused.append(str(error))
            continue
        linked.read_guards = lambda index=index: package.guards(entry.key, index)
        yield linked


def _function(target: Any, args: tuple) -> tuple[FunctionType, tuple]:
    """The function whose frame a call starts, and what it is called with."""
    target = getattr(target, ORIGINAL, target)
    if isinstance(target, CompiledModule):
        target = target._orig_mod
    if isinstance(target, Module):
        target = MethodType(type(target).forward, target)
    if isinstance(target, MethodType):
        return _function(target.__func__, (target.__self__, *args))
    if not isinstance(target, FunctionType):
        call = vars(type(target)).get("__call__")
        if not isinstance(call, FunctionType):
            raise TypeError(f"{target!r} has no frame that a package could serve")
        return call, (target, *args)
    return target, args


def _frame_values(function: FunctionType, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """The values with which the frame of a call starts, as Python itself binds them."""
    if suspends(function.__code__):
        raise TypeError(f"{function.__qualname__} is a generator or coroutine; it runs as it is")
    found: list[tuple] = []
    probe = FunctionType(
        trampoline_code(function.__code__, hookless(lambda *values: found.append(values))),
        function.__globals__, function.__name__, function.__defaults__, function.__closure__,
    )  # fmt: skip
    probe.__kwdefaults__ = function.__kwdefaults__
    switch_off(probe.__code__)
    probe(*args, **kwargs)
    return found[0]
