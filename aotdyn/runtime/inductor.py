"""The JIT's Inductor: the jobs, the cache and the loader of the target `cpu`, for one graph."""

import atexit
import os
from collections.abc import Callable
from functools import cache

from ..package.compilers import Job, Unavailable
from ..package.compilers.cpu.build import Builder
from ..package.compilers.options import Options
from ..package.errors import PackageError
from ..package.graph import Graph, python_source
from . import logs
from .artifacts import load_graph
from .artifacts.library import usable_isas
from .eager_text import link_text


def inductor_graph(graph: Graph) -> Callable | None:
    """The compiled callable of a graph; None if it has to run eagerly, which is logged."""
    if any(item.device not in ("", "cpu") for item in graph.inputs):
        return None
    try:
        built = _builder().build([Job(graph)])
        artifact = built.artifacts.get(graph.id)
        if artifact is not None:
            return load_graph(artifact, cache(lambda: _eager(graph)))
        reason = built.refusals.get(graph.id, "")
    except (Unavailable, PackageError, OSError) as error:  # OSError: no place for the cache
        reason = str(error)
    _say(f"a graph runs eagerly: {reason}")
    return None


@cache
def _say(line: str) -> None:
    """Each line once."""
    logs.warn(line)


def _eager(graph: Graph) -> Callable[..., tuple]:
    text, names = python_source(graph)
    return link_text(text, "graph", names)


@cache
def _builder() -> Builder:
    """Its workers stay for the next graph."""
    builder, owner = Builder(Options.of({"isas": usable_isas()[:1]})), os.getpid()
    atexit.register(lambda: builder.close() if os.getpid() == owner else None)
    return builder


# A process that the program forks must not talk to the workers of its parent.
os.register_at_fork(after_in_child=_builder.cache_clear)
