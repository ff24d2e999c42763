"""From jobs to artifacts: lowering in worker processes, C++ in compiler processes, one library for
each vector ISA, and the gate. Everything that takes time is looked up in the cache first."""

import json
import os
import platform
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ...archive import Artifact
from ...graph import Graph
from ...plan import NEW, Output, plan_to_bytes
from .. import Built, Job, Progress
from ..cache import Cache, digest
from ..worker import WorkerDied, Workers
from .code import PartCode, table
from .gate import check_artifacts
from .isa import ISAS, runnable_here
from .jobs import (
    Lowered,
    Options,
    job_key,
    job_to_bytes,
    result_from_bytes,
)
from .refusal import Refused
from .toolchain import HERE, Source, Toolchain, needs

TARGET = "cpu"
OWN = "container"

@dataclass
class _Compiled:
    """A graph whose parts are object files: for each part that of the wrapper, and by ISA that of
    the kernels."""

    job: Job
    lowered: Lowered
    wrappers: list[Path]
    kernels: list[dict[str, Path]]


def build_graphs(
    jobs: Sequence[Job], options: dict[str, Any], progress: Progress | None = None
) -> Built:
    """Compiles the graphs of a package. Raises NoCompiler, and AotdynError for wrong options."""
    with Builder(Options.of(options)) as builder:
        return builder.build(jobs, progress)


class Builder:
    """Builds graphs with one compiler, one cache and one pool of workers. For a with block."""

    def __init__(self, options: Options, cache: Cache | None = None, workers: int | None = None):
        """Raises NoCompiler."""
        self.options = options
        self.cache = cache or Cache()
        self.toolchain = Toolchain.find(self.cache)
        self.count = workers or os.cpu_count() or 1
        self.workers = Workers("aotdyn.package.compilers.cpu.worker")

    def __enter__(self) -> "Builder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.workers.close()

    def build(self, jobs: Sequence[Job], progress: Progress | None = None) -> Built:
        """Compiles graphs; what cannot be compiled is in `refusals`."""
        built = Built()
        compiled = self._compile_all(jobs, built, progress or (lambda *_: None))
        while compiled:
            artifacts = self._link(compiled)
            failed = check_artifacts(artifacts, self.options.isas, self.cache)
            if not failed:
                for entry in compiled:
                    id = entry.job.graph.id
                    built.artifacts[id] = artifacts[id][1]
                    built.notes[id] = _notes(entry.lowered)
                built.needs = _needs(built.artifacts.values())
                here = runnable_here()
                unseen = [isa for isa in self.options.isas if isa not in here]
                if unseen:
                    built.remarks.append(
                        f"code for {', '.join(unseen)} was not tried: this machine cannot run it"
                    )
                break
            compiled = [entry for entry in compiled if _mended(entry, failed, built)]
        self.cache.trim()
        return built

    # -- graphs -> object files ----------------------------------------------------------------

    def _compile_all(
        self, jobs: Sequence[Job], built: Built, progress: Progress
    ) -> list[_Compiled]:
        found: list[_Compiled] = []
        with (
            ThreadPoolExecutor(self.count) as lowering,
            ThreadPoolExecutor(self.count) as compiling,
        ):
            pending = [
                (job, lowering.submit(self._compile_graph, job, compiling)) for job in jobs
            ]
            try:
                for done, (job, future) in enumerate(pending):
                    progress(done, len(jobs), described(job.graph))
                    try:
                        found.append(_finished(*future.result()))
                    except (Refused, WorkerDied) as error:
                        built.refusals[job.graph.id] = str(error)
            except BaseException:
                for _, future in pending:
                    future.cancel()
                self.workers.close()
                raise
        progress(len(jobs), len(jobs), "")
        return found

    def _compile_graph(
        self, job: Job, compiling: ThreadPoolExecutor
    ) -> tuple[Job, Lowered, list[Future], list[dict[str, Future]]]:
        """Lowers a graph and starts the compiler on its parts."""
        lowered = self._lower(job)
        wrappers, kernels = [], []
        for part in lowered.parts:
            wrappers.append(compiling.submit(self.toolchain.compile, Source(part.wrapper)))
            kernels.append(
                {
                    isa: compiling.submit(self.toolchain.compile, Source(text, ISAS[isa]))
                    for isa, text in part.kernels.items()
                    if text
                }
            )
        return job, lowered, wrappers, kernels

    def _lower(self, job: Job) -> Lowered:
        key = job_key(job, self.options)
        found = self.cache.get("lowered", key)
        if found is None:
            found = self.workers.run(job_to_bytes(job, self.options))
            self.cache.put("lowered", key, found)
        return result_from_bytes(found)

    # -- object files -> libraries -------------------------------------------------------------

    def _link(self, compiled: list[_Compiled]) -> dict[str, tuple[Job, Artifact]]:
        """An artifact for each graph, all with the same libraries."""
        parts: dict[str, int] = {}
        external: list[str] = []
        moved: dict[str, PartCode] = {}
        for entry in compiled:
            for part in entry.lowered.parts:
                if part.name not in parts:
                    parts[part.name] = len(parts)
                    moved[part.name] = part.with_external(len(external))
                    external += part.external
        libraries = {
            f"{isa}.so": self._link_isa(isa, compiled, list(parts), moved)
            for isa in self.options.isas
        }
        described = json.dumps({"nodes": [json.loads(text) for text in external]}).encode()
        name = digest(*libraries.values(), described)[:32]
        artifacts = {}
        for entry in compiled:
            lowered = entry.lowered
            numbers = [parts[part.name] for part in lowered.parts]
            plan = replace(
                lowered.plan,
                library=name,
                forward=numbers[0],
                backward=numbers[1] if len(numbers) > 1 else -1,
            )
            files = {"plan": plan_to_bytes(plan), **lowered.files, **libraries}
            if plan.external:
                files["external.json"] = described
            artifact = Artifact(TARGET, lowered.text, {}, files, {"way": OWN})
            artifacts[entry.job.graph.id] = (entry.job, artifact)
        return artifacts

    def _link_isa(
        self, isa: str, compiled: list[_Compiled], names: list[str], moved: dict[str, PartCode]
    ) -> bytes:
        objects: dict[Path, None] = {}
        for entry in compiled:
            for part, wrapper, kernels in zip(
                entry.lowered.parts, entry.wrappers, entry.kernels
            ):
                if moved[part.name].wrapper != part.wrapper:
                    wrapper = self.toolchain.compile(Source(moved[part.name].wrapper))
                objects[wrapper] = None
                if isa in kernels:
                    objects[kernels[isa]] = None
        container = (HERE / "container.cpp").read_text()
        objects[self.toolchain.compile(Source(table(names) + container))] = None
        # Objects are named by what they are made of.
        return self.toolchain.link(list(objects), digest(*map(str, objects)))


def _mended(entry: _Compiled, failed: dict[str, str | int], built: Built) -> bool:
    """Whether a graph is to be tried again; if not, says why."""
    reason = failed.get(entry.job.graph.id)
    if reason is None:
        return True
    if isinstance(reason, str):
        built.refusals[entry.job.graph.id] = reason
        return False
    if _output(entry, reason).kind != NEW or _output(entry, reason).contiguous:
        built.refusals[entry.job.graph.id] = f"output {reason} is not contiguous"
        return False
    outputs = list(entry.lowered.plan.outputs)
    outputs[reason] = replace(outputs[reason], contiguous=True)
    plan = replace(entry.lowered.plan, outputs=tuple(outputs))
    entry.lowered = replace(entry.lowered, plan=plan)
    return True


def _output(entry: _Compiled, index: int) -> Output:
    return entry.lowered.plan.outputs[index]


def _finished(
    job: Job, lowered: Lowered, wrappers: list[Future], kernels: list[dict[str, Future]]
) -> _Compiled:
    """Waits for the compiler. Raises Refused if it did not take one of the texts."""
    return _Compiled(
        job,
        lowered,
        [future.result() for future in wrappers],
        [{isa: future.result() for isa, future in part.items()} for part in kernels],
    )


def described(graph: Graph) -> str:
    """A graph for people: its id, and where the program asked for it."""
    place = next((node.user for node in graph.nodes if node.user), "")
    return f"{graph.id[:8]} ({place})" if place else graph.id[:8]


def _notes(lowered: Lowered) -> list[str]:
    return [f"only where {condition}" for condition in lowered.conditions]


def _needs(artifacts: Iterable[Artifact]) -> dict[str, str]:
    found = {"torch": str(torch.__version__), "machine": platform.machine()}
    for artifact in artifacts:
        for name, data in artifact.files.items():
            if name.endswith(".so"):
                for what, version in needs(data).items():
                    found[what] = max(found.get(what, "0"), version, key=_numbers)
        break  # all have the same libraries
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))

