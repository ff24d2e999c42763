"""Makes torch's own markers and `torch.compile` mean ours, in a program that knows nothing of
aotdyn. Used by `aotdyn record` and `aotdyn run`. Imports nothing of torch._dynamo."""

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import Module

from .. import markers
from ..package.modules import stand_in_for_call
from ..package.no_compiler import StandIn
from .compiled import ModuleCall, compiled, use
from .hook import active
from .settings import Settings, reset


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
    settings = Settings(backend, fullgraph, dynamic, options, mode)

    def decorate(target: Any) -> Any:
        return target if disable else compiled(target, settings)

    return decorate if model is None else decorate(model)


def torch_disable(fn: Any = None, recursive: bool = True, **unknown: Any) -> Any:
    """`torch.compiler.disable`, by us."""
    if fn is None:
        return lambda target: torch_disable(target, recursive)
    return markers.disable(fn)


class _RootCalls(threading.local):
    """depth: how many module calls that are entries this thread is inside of."""

    depth = 0


_inside = _RootCalls()


def _root_call(original: Callable) -> Callable:
    """`Module.__call__` for programs that compile nothing: the outermost call is an entry."""
    serve = ModuleCall(Settings("eager"))
    before = use.count

    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        if use.count != before or _inside.depth or active():
            return original(self, *args, **kwargs)
        _inside.depth += 1
        try:
            return serve(self, *args, **kwargs)
        finally:
            _inside.depth -= 1

    return stand_in_for_call(call)


class _Dynamo(StandIn):
    """Stands for `torch._dynamo` in a program that uses only its markers."""

    mark_dynamic = staticmethod(markers.mark_dynamic)
    maybe_mark_dynamic = staticmethod(markers.maybe_mark_dynamic)
    mark_static = staticmethod(markers.mark_static)
    graph_break = staticmethod(markers.graph_break)
    is_compiling = staticmethod(markers.is_compiling)
    disable = staticmethod(torch_disable)
    reset = staticmethod(reset)


def _replacements() -> list[tuple[Any, str, Any]]:
    rows: list[tuple[Any, str, Any]] = [
        (torch, "compile", torch_compile),
        (torch.compiler, "compile", torch_compile),
        (torch.compiler, "disable", torch_disable),
        (torch.compiler, "reset", reset),
    ]
    if "torch._dynamo" not in sys.modules:
        rows.append((torch, "_dynamo", _Dynamo()))
    return rows


_MISSING = object()


def _optimizer_rows() -> list[tuple[Any, str, Any]]:
    """Spares optimizers the import of torch._dynamo at their first step.

    They only call its `graph_break` and `disable`, so that torch.compile leaves them alone; here
    nothing traces them. See torch/optim/optimizer.py and torch/_compile.py.
    """
    rows: list[tuple[Any, str, Any]] = []
    for cls in vars(torch.optim).values():
        for name, member in vars(cls).items() if isinstance(cls, type) else ():
            function = getattr(member, "__wrapped__", None)
            code = getattr(member, "__code__", None)
            if function is None or code is None:
                continue
            if code.co_filename == torch._compile.__file__:
                rows.append((cls, name, function))
            elif code.co_name == "_use_grad":
                rows.append((cls, name, _with_grad_as_wanted(function)))
    return rows


def _with_grad_as_wanted(step: Callable) -> Callable:
    """An optimizer's step, with gradients enabled only for a differentiable optimizer."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(self.defaults["differentiable"])
        try:
            return step(self, *args, **kwargs)
        finally:
            torch._C._set_grad_enabled(before)

    return run


@contextlib.contextmanager
def patched(roots: bool = False) -> Iterator[None]:
    """Inside, torch's compiler API is ours. roots: the outermost module calls of a program that
    compiles nothing are entries."""
    rows = [*_replacements(), *_optimizer_rows()]
    if roots:
        rows.append((Module, "__call__", _root_call(Module.__call__)))
    before = [(owner, name, vars(owner).get(name, _MISSING)) for owner, name, _ in rows]
    for owner, name, value in rows:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            if name == "_dynamo" and not isinstance(vars(owner).get(name), _Dynamo):
                continue  # the real one was imported meanwhile
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
