"""Backends of the JIT: what turns a recorded graph into a callable over its inputs."""

from collections.abc import Callable

from ..package.compilers.fx import graph_module
from ..package.errors import AotdynError
from ..package.graph import Graph, python_source
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from . import recorder
from .eager_text import link_text


def compile_graph(settings, graph: Graph, inputs: tuple) -> Callable[..., tuple]:
    """The callable for a new graph. inputs: those of the call at hand."""
    name = _name(settings)
    if name == "eager":
        return eager_graph(graph)
    if name == "inductor":
        # Compilers are only imported to compile.
        from .inductor import inductor_graph

        return inductor_graph(graph) or eager_graph(graph)
    compiled = settings.backend(graph_module(graph), list(inputs))
    if not callable(compiled):
        raise AotdynError(f"the backend returned {type(compiled).__name__}, not a callable")
    return compiled


def _name(settings) -> str:
    """While recording, graphs run eagerly whatever the program asked for."""
    backend = settings.backend
    if recorder.active() and not callable(backend):
        return "eager"
    if callable(backend):
        return "callable"
    if backend in (None, "inductor"):
        return "inductor"
    if backend in ("eager", "aot_eager"):
        return "eager"
    raise AotdynError(f"unknown backend {backend!r}: eager, inductor, or a callable")


def eager_graph(graph: Graph) -> Callable[..., tuple]:
    """The graph as the Python function that the target `eager` ships."""
    text, names = python_source(graph)
    return link_text(text, "graph", names)
