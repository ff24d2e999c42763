"""`aotdyn.explain`: what a call is traced into, as an object that prints well."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..package.break_sites import BreakSite, break_sites
from ..package.graph import Graph, python_source
from ..package.guard import Guard
from ..package.variant import Break, Variant
from . import recorder
from .compiled import compiled
from .explain import describe_guard
from .settings import Settings


@dataclass
class Explanation:
    """graphs, variants: in the order in which they were traced. skipped: entry -> reason.
    hits: variant id -> how often it was used."""

    graphs: list[Graph] = field(default_factory=list)
    variants: list[Variant] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def op_count(self) -> int:
        return sum(len(graph.nodes) for graph in self.graphs)

    @property
    def breaks(self) -> list[Break]:
        return [variant.breaks for variant in self.variants if variant.breaks is not None]

    @property
    def break_sites(self) -> list[BreakSite]:
        """The places at which graphs break, each once."""
        graphs = {graph.id: graph for graph in self.graphs}
        return break_sites(self.variants, graphs, self.hits)

    @property
    def guards(self) -> list[Guard]:
        return [guard for variant in self.variants for guard in variant.guards]

    def __str__(self) -> str:
        lines = [
            f"{self.graph_count} graphs with {self.op_count} operations, "
            f"{len(self.breaks)} graph breaks, {len(self.guards)} guards"
        ]
        for site in self.break_sites:
            lines += site.lines()
        for name, reason in self.skipped.items():
            lines.append(f"not traced: {name}: {reason}")
        for variant in self.variants:
            lines.append(f"guards of {variant.entry}:")
            lines += [f"  {guard.kind}: {describe_guard(guard)}" for guard in variant.guards]
        for graph in self.graphs:
            lines += [f"graph {graph.id}:", python_source(graph)[0]]
        return "\n".join(lines)


class _Collector:
    """Takes the place of a recording."""

    def __init__(self) -> None:
        self.found = Explanation()

    def graph(self, graph: Graph) -> None:
        self.found.graphs.append(graph)

    def example(self, graph: str, symbols: dict[str, int]) -> None:
        """Sizes are in the graphs."""

    def variant(self, variant: Variant) -> None:
        self.found.variants.append(variant)

    def hits(self, variant: str, count: int) -> None:
        self.found.hits[variant] = count

    def obstacle(self, obstacle: Any) -> None:
        self.found.skipped[obstacle.what] = obstacle.reason


def explain_call(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Explanation:
    """Calls a fresh compiled form of a callable once and collects what was traced."""
    collector = _Collector()
    recorder.start(collector)
    try:
        compiled(function, Settings("eager"))(*args, **kwargs)
    finally:
        recorder.stop(collector)
    return collector.found
