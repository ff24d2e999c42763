"""Compilers: a pure function from graph to artifact for each target. For pack and the JIT."""

from collections.abc import Callable, Iterable

from ..archive import Artifact
from ..errors import AotdynError
from ..graph import Graph
from . import eager

COMPILERS: dict[str, Callable[[Graph], Artifact]] = {
    "eager": eager.compile_graph,
}


def check_targets(targets: Iterable[str]) -> None:
    """Raises AotdynError for a target that there is no compiler for."""
    for target in targets:
        if target not in COMPILERS:
            known = ", ".join(COMPILERS)
            raise AotdynError(f"unknown target {target!r}; the known ones are: {known}")


def compile_graph(graph: Graph, target: str) -> Artifact:
    """The artifact of a graph. Raises AotdynError for a graph that the target cannot have."""
    check_targets([target])
    return COMPILERS[target](graph)
