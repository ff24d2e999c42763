"""Makes torch's own markers and `torch.compile` mean ours, in a program that knows nothing of
aotdyn. Used by `aotdyn record` and `aotdyn run`. Imports nothing of torch._dynamo."""

import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import Module

from .. import markers
from .compiled import ModuleCall, compiled
from .hook import active
from .settings import Settings


def torch_compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    **unknown: Any,
) -> Any:
    """`torch.compile`, by us."""
    wanted = {"mode": mode, **(options or {})} if mode or options else None
    settings = Settings(backend, fullgraph, dynamic, wanted)

    def decorate(target: Any) -> Any:
        _patched.compiles += 1
        return target if disable else compiled(target, settings)

    return decorate if model is None else decorate(model)


def torch_disable(fn: Any = None, recursive: bool = True, **unknown: Any) -> Any:
    """`torch.compiler.disable`, by us."""
    if fn is None:
        return lambda target: torch_disable(target, recursive)
    return markers.disable(fn)


def _is_compiling() -> bool:
    return False


class _State:
    """compiles: how often the program has called `torch.compile`. depth: of module calls."""

    def __init__(self) -> None:
        self.compiles = 0
        self.depth = 0


_patched = _State()


def _root_call(original: Callable) -> Callable:
    """`Module.__call__` for programs that compile nothing: the outermost call is an entry."""
    serve = ModuleCall(Settings("eager"))

    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        if _patched.compiles or _patched.depth or active():
            return original(self, *args, **kwargs)
        _patched.depth += 1
        try:
            return serve(self, *args, **kwargs)
        finally:
            _patched.depth -= 1

    return call


class _DynamoStandIn(types.ModuleType):
    """`torch._dynamo` for a program that only uses its markers: the real one is not imported."""

    mark_dynamic = staticmethod(markers.mark_dynamic)
    maybe_mark_dynamic = staticmethod(markers.maybe_mark_dynamic)
    mark_static = staticmethod(markers.mark_static)
    graph_break = staticmethod(markers.graph_break)
    disable = staticmethod(torch_disable)
    is_compiling = staticmethod(_is_compiling)


def _replacements() -> list[tuple[Any, str, Any]]:
    rows: list[tuple[Any, str, Any]] = [
        (torch, "compile", torch_compile),
        (torch.compiler, "compile", torch_compile),
        (torch.compiler, "disable", torch_disable),
    ]
    return rows


_MISSING = object()


@contextlib.contextmanager
def patched(roots: bool = False) -> Iterator[None]:
    """Inside, torch's compiler API is ours. roots: record outermost module calls of programs that
    compile nothing."""
    rows = _replacements()
    if roots:
        rows.append((Module, "__call__", _root_call(Module.__call__)))
    before = [(owner, name, vars(owner).get(name, _MISSING)) for owner, name, _ in rows]
    stand_in = None
    if "torch._dynamo" not in sys.modules:
        stand_in = _DynamoStandIn("torch._dynamo")
    for owner, name, value in rows:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        del stand_in
