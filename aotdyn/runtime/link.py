"""Linking: a variant's data -> its live `check` and `body`, for the JIT and packages alike."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..package.errors import PackageError
from ..package.guard import Guard
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.reference import (
    Classes,
    ClassLike,
    CodeOf,
    EntryAt,
    Globals,
    GraphOf,
    Import,
    Literal,
    Live,
    Made,
    Reference,
    Runtime,
    State,
    Tensors,
    Verified,
)
from ..package.resolve import resolve_code, resolve_import, resolve_made
from ..package.user_kernels import is_kernel, kernel_hash, layers
from ..package.variant import Variant, code_hash
from . import support
from .classes import class_check, class_like
from .cpython import internal_name
from .guards import state_check, tensor_check
from .hook import switch_off
from .verified import VerifiedDicts


class Linked:
    """A variant in this process.

    names: what the free names of its texts are bound to. read_guards: gives the guards of a
    variant that came without them; they are only needed to explain a miss.
    """

    __slots__ = ("variant", "check", "names", "body", "read_guards")

    def __init__(
        self, variant: Variant, check: Callable[..., tuple | None], names: dict[str, Any]
    ):
        self.variant = variant
        self.check = check
        self.names = names
        self.body: Callable[..., Any] | None = None
        self.read_guards: Callable[[], tuple[Guard, ...]] = tuple

    def guards(self) -> tuple[Guard, ...]:
        """The guards, for explaining misses."""
        return self.variant.guards or self.read_guards()


class Linker:
    """Resolves the references of one variant for one entry."""

    def __init__(self, entry, variant: Variant, live: list[Any] | None = None):
        self.entry = entry
        self.variant = variant
        self.live = live

    def link(self, graph: Callable[..., tuple] | None = None) -> Linked:
        """The linked variant, with `body` if the graph is given or there is none.

        Raises PackageError where something it needs is not there or is not the same.
        """
        self._verify_codes()
        names = {name: self._resolve(ref) for name, ref in self.variant.names.items()
                 if not isinstance(ref, GraphOf)}  # fmt: skip
        check = self._function(self.variant.check, "check", names)
        linked = Linked(self.variant, check, names)
        if graph is not None or self.variant.graph is None:
            self.link_body(linked, graph)
        return linked

    def link_body(self, linked: Linked, graph: Callable[..., tuple] | None) -> None:
        """Adds the body, whose graph is now there."""
        for name, reference in self.variant.names.items():
            if isinstance(reference, GraphOf):
                linked.names[name] = graph
        linked.body = self._function(self.variant.body, "body", linked.names)

    def _function(self, text: str, name: str, names: dict[str, Any]) -> Callable:
        key = self.variant.entry
        code = compile(text, internal_name(f"{name} of {key}"), "exec")
        scope = {"math": math, **names}
        exec(code, scope)
        return scope[name]

    def _verify_codes(self) -> None:
        """The code of every inlined function is the one that was recorded."""
        for reference, expected in self.variant.codes:
            function = resolve_import(reference)
            code = getattr(function, "__code__", None)
            found = code_hash(code) if code is not None else _hash_of_kernel(function)
            if found != expected:
                name = f"{reference.module}:{reference.qualname}"
                raise PackageError(f"the code of {name} has changed since it was recorded")

    def _resolve(self, reference: Reference) -> Any:
        return RESOLVERS[type(reference)](self, reference)

    def _state(self) -> State:
        for reference in self.variant.names.values():
            if isinstance(reference, State):
                return reference
        raise PackageError("a variant without the state it was recorded under")

    def _live(self, reference: Live) -> Any:
        if self.live is None:
            raise PackageError(f"{reference.what} was known to the recording process only")
        return self.live[reference.index]

    def _runtime(self, reference: Runtime) -> Any:
        if reference.name in ("eager", "run_plain"):
            return getattr(self.entry.settings, reference.name)
        if reference.name == "again":
            return partial(self.entry.settings.again, self.entry, self._state().json)
        if reference.name not in support.__all__:
            raise PackageError(f"the runtime has nothing called {reference.name!r}")
        return getattr(support, reference.name)


RESOLVERS: dict[type, Callable[[Linker, Any], Any]] = {
    Import: lambda linker, ref: resolve_import(ref),
    Literal: lambda linker, ref: ref.value,
    CodeOf: lambda linker, ref: resolve_code(ref, linker.entry.code),
    EntryAt: lambda linker, ref: linker.entry.at(ref.point),
    Globals: lambda linker, ref: linker.entry.globals,
    Live: Linker._live,
    Made: lambda linker, ref: resolve_made(ref, linker._resolve),
    Classes: lambda linker, ref: class_check(ref, linker._resolve),
    ClassLike: lambda linker, ref: class_like(ref, linker._resolve),
    Runtime: Linker._runtime,
    State: lambda linker, ref: state_check(ref),
    Tensors: lambda linker, ref: tensor_check(ref, linker._state()),
    Verified: lambda linker, ref: VerifiedDicts(),
}


def _hash_of_kernel(kernel: Any) -> str:
    """The hash of a kernel of Triton; "" for what is none. From now on what it runs is left alone:
    Triton's interpreter calls the program's function."""
    if not is_kernel(kernel):
        return ""
    for layer in layers(kernel):
        switch_off(type(layer).run.__code__)
    return kernel_hash(kernel)
