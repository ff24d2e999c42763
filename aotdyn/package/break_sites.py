"""Where a program breaks its graphs: the places, each with what it costs. `aotdyn inspect --breaks`
and `aotdyn.explain` print them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .graph import Graph
from .point import STEP
from .reference import EntryAt
from .variant import Break, EntryKey, Variant


@dataclass(frozen=True, slots=True)
class BreakSite:
    """A place and a reason. stack: `file:line in function` from the outermost frame inwards.

    variants: how many end there, those of callers included, which break where their callee does.
    hits: how often it was reached, None where nobody has counted. before, after: the operations in
    the largest graph that ends there, and in the largest that goes on from there.
    """

    stack: tuple[str, ...]
    reason: str
    detail: str
    hint: str
    variants: int
    hits: int | None
    before: int
    after: int

    def lines(self) -> Iterator[str]:
        """The site as people read it."""
        why = f"{self.reason}: {self.detail}" if self.detail else self.reason
        yield f"break at {self.stack[-1]}: {why}"
        yield from (f"  called at {place}" for place in reversed(self.stack[:-1]))
        if self.hint:
            yield f"  hint: {self.hint}"
        times = "" if self.hits is None else f"hit {_times(self.hits)}; "
        yield (f"  {times}variants that end here: {self.variants}; "
               f"operations before: {self.before}, after: {self.after}")  # fmt: skip


def break_sites(
    variants: Sequence[Variant],
    graphs: Mapping[str, Graph],
    hits: Mapping[str, int] | None = None,
) -> list[BreakSite]:
    """The places at which variants break, in the order in which they were met. hits: how often the
    variant with an id was used."""
    grouped: dict[tuple, list[tuple[Variant, Break]]] = {}
    by_entry: dict[EntryKey, list[Variant]] = {}
    for variant in variants:
        by_entry.setdefault(variant.entry, []).append(variant)
        found = variant.breaks
        if found is not None:
            place = found.stack[-1:] or (f"{variant.file}:{variant.line}",)
            key = (place, found.reason, found.detail)
            grouped.setdefault(key, []).append((variant, found))

    def size(variant: Variant) -> int:
        graph = graphs.get(variant.graph or "")
        return 0 if graph is None else len(graph.nodes)

    def site(key: tuple, ended: list[tuple[Variant, Break]]) -> BreakSite:
        place, reason, detail = key
        stack = max((found.stack for _, found in ended), key=len) or place
        # Of a break in a callee the callee tells how often it was reached.
        nearest = min(len(found.stack) for _, found in ended)
        own = [variant for variant, found in ended if len(found.stack) == nearest]
        entries = {entry for variant in own for entry in _continuations(variant)}
        following = [variant for entry in entries for variant in by_entry.get(entry, ())]
        return BreakSite(
            stack, reason, detail, ended[0][1].hint, len(ended),
            None if hits is None else sum(hits.get(variant.id, 0) for variant in own),
            max(map(size, own)), max(map(size, following), default=0),
        )  # fmt: skip

    return [site(key, ended) for key, ended in grouped.items()]


def _continuations(variant: Variant) -> list[EntryKey]:
    """The entries in which a frame may go on behind a variant."""
    return [
        replace(variant.entry, point=reference.point)
        for reference in variant.names.values()
        if isinstance(reference, EntryAt) and reference.point.kind != STEP
    ]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
