"""Compilers: pure functions from graphs to artifacts for each target. For pack and the JIT."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..archive import Artifact
from ..errors import AotdynError
from ..graph import Graph
from ..weights import Weight
from . import eager
from .gpu.architectures import ARCHITECTURES


@dataclass(frozen=True)
class Job:
    """A graph to compile. weights: values that its inputs are frozen to, by the inputs' names."""

    graph: Graph
    weights: tuple[tuple[str, Weight], ...] = ()


def described(graph: Graph) -> str:
    """A graph for people: its id, and where the program asked for it."""
    place = next((node.user for node in graph.nodes if node.user), "")
    return f"{graph.id[:8]} ({place})" if place else graph.id[:8]


@dataclass
class Built:
    """artifacts, refusals (why there is none), notes (what is worth knowing): by graph id.

    remarks: about all of them. needs: what the artifacts ask of a machine.
    """

    artifacts: dict[str, Artifact] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    needs: dict[str, str] = field(default_factory=dict)


# done, of how many, what
Progress = Callable[[int, int, str], None]
Builder = Callable[[Sequence[Job], dict[str, Any], Progress | None], Built]


def _build_cpu(jobs: Sequence[Job], options: dict[str, Any], progress: Progress | None) -> Built:
    # Imported when it is asked for: the eager target needs none of it.
    from .cpu.build import build_graphs

    return build_graphs(jobs, options, progress)


def _build_gpu(target: str) -> Builder:
    def build(jobs: Sequence[Job], options: dict[str, Any], progress: Progress | None) -> Built:
        from .gpu.build import build_graphs

        return build_graphs(target, jobs, options, progress)

    return build


# Targets whose graphs are compiled one by one.
COMPILERS: dict[str, Callable[[Graph], Artifact]] = {
    "eager": eager.compile_graph,
}

# Targets whose graphs are compiled together. A builder raises `Unavailable`, and AotdynError for
# options that it does not know.
BUILDERS: dict[str, Builder] = {
    "cpu": _build_cpu,
    **{target: _build_gpu(target) for target in ARCHITECTURES},
}


class Unavailable(AotdynError):
    """This machine cannot compile for a target at all. The message is the reason."""


def check_targets(targets: Iterable[str]) -> None:
    """Raises AotdynError for a target that there is no compiler for."""
    for target in targets:
        if target not in COMPILERS and target not in BUILDERS:
            known = ", ".join((*COMPILERS, *BUILDERS))
            raise AotdynError(f"unknown target {target!r}; the known ones are: {known}")


def compile_graph(graph: Graph, target: str) -> Artifact:
    """The artifact of a graph. Raises AotdynError for a graph that the target cannot have."""
    check_targets([target])
    return COMPILERS[target](graph)
