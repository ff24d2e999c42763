"""Packing: recordings in, one package file and a report out. Called by `aotdyn.pack`."""

import ast
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from .archive import Artifact, PackageContents, is_same_file, write_package
from .compilers import BUILDERS, Built, Job, Progress, Unavailable, check_targets, compile_graph
from .covers import needed
from .errors import AotdynError
from .graph import Graph
from .printer import break_place_and_reason, sized
from .recording import Obstacle, Recording, counted, merge, read_recording
from .reference import Live
from .variant import Variant
from .weights import Weight

JobWeights = tuple[tuple[str, Weight], ...]

ALWAYS = "eager"  # the target that every package has, because it runs anywhere


@dataclass(frozen=True)
class PackReport:
    """What went into a package, what did not, and where the program breaks its graphs.

    breaks: (where, why, hint, in how many variants) of each graph break, the user's
    `file:line in function` first. left_out: recorded, but not packable. not_recorded: what the
    recording could not hold in the first place. truncated: a recording was cut off. compiled: for
    each compiled target how many graphs; ways: (target, way, how many) of these. fallbacks: what a
    target has no compiled graph for, and why; remarks: where a compiled graph is not the whole
    truth.
    """

    path: Path
    size: int
    entries: int
    variants: int
    graphs: int
    targets: tuple[str, ...]
    breaks: tuple[tuple[str, str, str, int], ...] = ()
    left_out: tuple[Obstacle, ...] = ()
    not_recorded: tuple[Obstacle, ...] = ()
    truncated: bool = False
    compiled: tuple[tuple[str, int], ...] = ()
    fallbacks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    ways: tuple[tuple[str, str, int], ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.path}: {counted(self.entries, 'entry', 'entries')}, "
            f"{counted(self.variants, 'variant')}, {counted(self.graphs, 'graph')} "
            f"for {', '.join(self.targets)}; {sized(self.size)}"
        ]
        if self.truncated:
            lines.append("the recording was cut off; its last record is lost")
        for target, count in self.compiled:
            ways = ", ".join(f"{n} as {way}" for of, way, n in self.ways if of == target)
            found = f"{target}: {count} of {counted(self.graphs, 'graph')} compiled"
            lines.append(f"{found} ({ways})" if ways else found)
        lines.extend(f"  {line}" for line in (*self.fallbacks, *self.remarks))
        if self.breaks:
            lines.append(f"{counted(len(self.breaks), 'graph break')}:")
        for where, why, hint, count in self.breaks:
            lines.append(f"  {where}: {why}{f' ({count} variants)' if count > 1 else ''}")
            if hint:
                lines.append(f"    hint: {hint}")
        for title, obstacles in (
            ("left out", self.left_out),
            ("not recorded", self.not_recorded),
        ):
            if obstacles:
                lines.append(f"{title}: {len(obstacles)}")
            lines.extend(f"  {obstacle}" for obstacle in obstacles)
        return "\n".join(lines)


def pack(
    recordings: Sequence[str | os.PathLike],
    path: str | os.PathLike,
    targets: Sequence[str] = (ALWAYS,),
    options: dict[str, Any] | None = None,
    progress: Progress | None = None,
    freeze: bool = False,
) -> PackReport:
    """Packs one or more recordings.

    options: for the compilers. progress: called as graphs are compiled. freeze: with the recorded
    weights as constants where no gradients are wanted.
    The target `eager` is always among the targets. A variant that needs an object of the process
    that recorded it is left out and reported. Raises AotdynError when there is nothing to pack,
    for an unknown target, and when the package cannot be written; PackageError for recordings
    that are damaged or do not go together.
    """
    targets = tuple(dict.fromkeys((ALWAYS, *targets)))
    check_targets(targets)
    _check_paths(recordings, path)
    names = ", ".join(map(str, recordings))
    recording = merge([read_recording(recording) for recording in recordings])
    if recording.empty:
        raise AotdynError(f"the recording {names} has nothing in it")
    contents, left_out = _contents(recording, tuple(t for t in targets if t not in BUILDERS))
    if not contents.variants:
        raise AotdynError(f"nothing of the recording {names} can be packed; {left_out[0]}")
    weights = frozen_weights(recording, targets) if freeze else {}
    compiled = _Compiling(contents, options or {}, progress, weights)
    contents = compiled.add([target for target in targets if target in BUILDERS])
    return PackReport(
        Path(path),
        write_package(path, contents),
        len({variant.entry for variant in contents.variants}),
        len(contents.variants),
        len(contents.graphs),
        tuple(contents.targets),
        _breaks(contents.variants),
        tuple(left_out),
        recording.obstacles,
        recording.truncated,
        tuple(compiled.counts),
        tuple(compiled.fallbacks),
        tuple(compiled.remarks),
        tuple(compiled.ways),
    )


class _Compiling:
    """Adds the targets to a package whose graphs are compiled together. What one of them cannot
    have is shipped as the eager graph, which is also its artifact then, with the reason."""

    def __init__(
        self,
        contents: PackageContents,
        options: dict[str, Any],
        progress: Progress | None,
        weights: dict[str, JobWeights],
    ):
        self.contents = contents
        self.options = options
        self.progress = progress
        self.weights = weights
        self.counts: list[tuple[str, int]] = []
        self.ways: list[tuple[str, str, int]] = []
        self.fallbacks: list[str] = []
        self.remarks: list[str] = []

    def add(self, targets: Sequence[str]) -> PackageContents:
        """The contents with these targets. One that this machine cannot compile for is left out."""
        artifacts = {id: dict(of_graph) for id, of_graph in self.contents.artifacts.items()}
        needs = dict(self.contents.targets)
        for target in targets:
            jobs, refusals = _jobs(self.contents, self.weights)
            try:
                built = BUILDERS[target](jobs, self.options, self.progress)
            except Unavailable as reason:
                self.fallbacks.append(f"no graph for {target}: {reason}")
                continue
            built.refusals.update(refusals)
            self._report(target, built)
            needs[target] = built.needs
            for id, of_graph in artifacts.items():
                of_graph[target] = built.artifacts.get(id) or replace(
                    of_graph[ALWAYS],
                    target=target,
                    notes={"way": ALWAYS, "why": built.refusals.get(id, "")},
                )
        return replace(self.contents, artifacts=artifacts, targets=needs)

    def _report(self, target: str, built: Built) -> None:
        self.counts.append((target, len(built.artifacts)))
        ways = Counter(artifact.notes.get("way", "") for artifact in built.artifacts.values())
        self.ways.extend((target, way, count) for way, count in ways.items() if way)
        self.remarks.extend(built.remarks)
        for id, graph in self.contents.graphs.items():
            if id in built.refusals:
                self.fallbacks.append(f"{graph_title(graph)} runs eagerly: {built.refusals[id]}")
            for note in built.notes.get(id, ()):
                self.remarks.append(f"{graph_title(graph)} is compiled {note}")


def _jobs(
    contents: PackageContents, weights: dict[str, JobWeights]
) -> tuple[list[Job], dict[str, str]]:
    """What is to be compiled, and what cannot be: without the state of the process it is not known
    what the operations compute."""
    jobs, refusals = [], {}
    for id, graph in contents.graphs.items():
        if graph.state:
            jobs.append(Job(graph, weights.get(id, ())))
        else:
            refusals[id] = "it was recorded without the state of the process; record it again"
    return jobs, refusals


def frozen_weights(recording: Recording, targets: Sequence[str]) -> dict[str, JobWeights]:
    """The weights of each graph whose recorded calls agree in them.

    Raises AotdynError when there is nothing to freeze, or no target that can be frozen.
    """
    if not set(targets) & BUILDERS.keys():
        raise AotdynError(f"only graphs for {', '.join(BUILDERS)} can be frozen; name it as target")
    if not recording.graph_weights:
        raise AotdynError(
            "there are no weights in the recording to freeze: record with --weights, a program "
            "that calls its model without gradients"
        )
    found: dict[str, JobWeights] = {}
    counts = Counter(each.graph for each in recording.graph_weights)
    for each in recording.graph_weights:
        if counts[each.graph] == 1:
            found[each.graph] = tuple((n, recording.weights[d]) for n, d in each.inputs)
    return found


def graph_title(graph: Graph) -> str:
    """A graph for people: its id, and where the program asked for it."""
    place = next((node.user for node in graph.nodes if node.user), "")
    return f"graph {graph.id[:8]} ({place})" if place else f"graph {graph.id[:8]}"


def _check_paths(recordings: Sequence[str | os.PathLike], path: str | os.PathLike) -> None:
    if not recordings:
        raise AotdynError("there is no recording to pack")
    for recording in recordings:
        if is_same_file(path, recording):
            raise AotdynError(f"the package would overwrite the recording {recording}")


def _contents(
    recording: Recording, targets: tuple[str, ...]
) -> tuple[PackageContents, list[Obstacle]]:
    """What can be packed, and what cannot."""
    artifacts: dict[str, dict[str, Artifact]] = {}
    refusals: dict[str, str] = {}
    for id, graph in recording.graphs.items():
        try:
            artifacts[id] = _artifacts(graph, targets)
        except AotdynError as error:
            refusals[id] = str(error)
    kept, left_out = [], []
    for variant in recording.variants:
        reason = _refusal(variant)
        if not reason and variant.graph is not None and variant.graph not in artifacts:
            reason = refusals.get(variant.graph, f"its graph {variant.graph} was not recorded")
        if reason:
            what = f"variant of {variant.entry}"
            left_out.append(Obstacle(what, reason, variant.file, variant.line))
        else:
            kept.append(variant)
    kept = needed(kept)
    used = {variant.graph for variant in kept}
    head = recording.header
    return PackageContents(
        head.python,
        head.torch,
        head.device,
        head.script,
        tuple(kept),
        {id: graph for id, graph in recording.graphs.items() if id in used},
        {id: of_graph for id, of_graph in artifacts.items() if id in used},
        {target: {"torch": head.torch} for target in targets},
    ), left_out


def _artifacts(graph: Graph, targets: tuple[str, ...]) -> dict[str, Artifact]:
    """Raises AotdynError when there is none for some target."""
    live = next(live_objects(graph), None)
    if live is not None:
        raise AotdynError(f"its graph needs an object of the recording process: {live.what}")
    return {target: compile_graph(graph, target) for target in targets}


def _refusal(variant: Variant) -> str:
    """Why a variant cannot be packed, or nothing."""
    if variant.obstacles:
        return "; ".join(variant.obstacles)
    live = next(live_objects(variant), None)
    if live is not None:
        return f"it needs an object of the recording process: {live.what}"
    try:
        ast.parse(variant.check)
        ast.parse(variant.body)
    except (SyntaxError, ValueError) as error:
        return f"its generated source is no Python: {error}"
    return ""


def live_objects(value: Any) -> Iterator[Live]:
    """The objects of the recording process that a record names, at any depth."""
    if type(value) is Live:
        yield value
    elif isinstance(value, tuple | list | set | frozenset):
        for part in value:
            yield from live_objects(part)
    elif isinstance(value, dict):
        for item in value.items():
            yield from live_objects(item)
    elif isinstance(value, slice):
        yield from live_objects((value.start, value.stop, value.step))
    elif is_dataclass(value):
        for field in fields(value):
            yield from live_objects(getattr(value, field.name))


def _breaks(variants: Sequence[Variant]) -> tuple[tuple[str, str, str, int], ...]:
    counts = Counter(
        (*break_place_and_reason(variant), variant.breaks.hint)
        for variant in variants
        if variant.breaks is not None
    )
    return tuple((*found, count) for found, count in counts.items())
