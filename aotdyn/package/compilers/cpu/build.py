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
from ...plan import NEW, plan_to_bytes
from ...providers import named_provider
from .. import Built, Job, Progress, described
from ..cache import Cache, digest
from ..forks import ForkServer
from ..isa import ISAS, runnable_here
from ..lowering.lowered import Lowered, PartCode
from ..lowering.settings import check_settings, without_effect
from ..options import Options
from ..refusal import Refused
from ..toolchain import CONTAINER_FOLDER, Source, Toolchain, needs
from ..worker import WorkerDied, Workers
from .code import table
from .gate import check_artifacts
from .jobs import job_key, job_to_bytes, result_from_bytes

TARGET = "cpu"
WORKER = "aotdyn.package.compilers.cpu.worker"

@dataclass(frozen=True)
class _Try:
    """A graph and the ways that are left for it. reasons: why those before were not open to it."""

    job: Job
    ways: tuple[str, ...]
    reasons: tuple[str, ...] = ()

    @property
    def way(self) -> str:
        return self.ways[0]

    @property
    def why(self) -> str:
        """Why it is not compiled in the first way, "" if it is."""
        return "; ".join(dict.fromkeys(self.reasons))

    def next(self, reason: str) -> "_Try":
        """The graph in the next way. Raises Refused with all reasons if there is none."""
        reasons = (*self.reasons, reason)
        if len(self.ways) == 1:
            raise Refused("; ".join(dict.fromkeys(reasons)))
        return _Try(self.job, self.ways[1:], reasons)

    def after(self, reason: str, built: Built) -> list["_Try"]:
        """What is to be tried next, if anything; else the graph is among the refusals."""
        try:
            return [self.next(reason)]
        except Refused as error:
            built.refusals[self.job.graph.id] = str(error)
            return []


@dataclass
class _Compiled:
    """A graph whose parts are object files: for each part that of the wrapper, if it is C++, and by
    ISA that of the kernels."""

    attempt: _Try
    lowered: Lowered
    wrappers: list[Path | None]
    kernels: list[dict[str, Path]]

    @property
    def job(self) -> Job:
        return self.attempt.job


@dataclass
class _Started:
    """A graph that the compiler is at work on."""

    attempt: _Try
    lowered: Lowered
    wrappers: list[Future | None]
    kernels: list[dict[str, Future]]

    def wait(self) -> _Compiled:
        """Raises Refused if the compiler did not take one of the texts."""
        return _Compiled(
            self.attempt,
            self.lowered,
            [future and future.result() for future in self.wrappers],
            [{isa: future.result() for isa, future in part.items()} for part in self.kernels],
        )


def build_graphs(
    jobs: Sequence[Job], options: dict[str, Any], progress: Progress | None = None
) -> Built:
    """Compiles the graphs of a package. Raises NoCompiler, and AotdynError for wrong options."""
    with Builder(Options.of(options)) as builder:
        return builder.build(jobs, progress)


class Builder:
    """Builds graphs with one compiler, one cache and one pool of workers. For a with block."""

    def __init__(self, options: Options, cache: Cache | None = None, workers: int | None = None):
        """Raises NoCompiler, and AotdynError for settings that Inductor does not have."""
        check_settings(options.inductor.items(), "the caller")
        self.options = options
        self.cache = cache or Cache()
        self.toolchain = Toolchain.find(self.cache)
        self.count = workers or len(os.sched_getaffinity(0))
        # The gate's processes must not have imported a compiler, so there are two servers.
        self.torch = ForkServer()
        self.inductor = ForkServer(WORKER, self.torch)
        self.workers = Workers(WORKER, server=self.inductor)

    def __enter__(self) -> "Builder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends its processes."""
        self.workers.close()
        self.inductor.close()
        self.torch.close()

    def build(self, jobs: Sequence[Job], progress: Progress | None = None) -> Built:
        """Compiles graphs, each in the first of the ways that takes it and passes the gate; what
        cannot be compiled is in `refusals`. Raises AotdynError for a program's settings that
        Inductor does not have."""
        for job in jobs:
            check_settings(job.graph.options, f"the program for graph {described(job.graph)}")
        built = Built()
        tries = [_Try(self._with_imports(job), self.options.ways) for job in jobs]
        compiled = self._compile_all(tries, built, progress or (lambda *_: None))
        while compiled:
            artifacts = self._link(compiled)
            failed = check_artifacts(artifacts, self.options.isas, self.cache, self.torch)
            if not failed:
                self._finish(compiled, artifacts, built)
                break
            kept, again = _sorted(compiled, failed, built)
            compiled = kept + self._compile_all(again, built, lambda *_: None)
        self.cache.trim()
        return built

    def _with_imports(self, job: Job) -> Job:
        """What the user names comes before what has been found out."""
        graph = job.graph
        if not (graph.providers and self.options.imports):
            return job
        named = tuple(map(named_provider, self.options.imports))
        return replace(job, graph=replace(graph, providers=named + graph.providers))

    def _finish(
        self, compiled: list[_Compiled], artifacts: dict[str, tuple[Job, Artifact]], built: Built
    ) -> None:
        for entry in compiled:
            id = entry.job.graph.id
            built.artifacts[id] = artifacts[id][1]
            built.notes[id] = _notes(entry)
        built.needs = _needs(built.artifacts.values())
        here = runnable_here()
        unseen = [isa for isa in self.options.isas if isa not in here]
        if unseen:
            built.remarks.append(
                f"code for {', '.join(unseen)} was not tried: this machine cannot run it"
            )

    # -- graphs -> object files ----------------------------------------------------------------

    def _compile_all(
        self, tries: list[_Try], built: Built, progress: Progress
    ) -> list[_Compiled]:
        """Compiles graphs; one whose code the compiler does not take is tried again."""
        found: list[_Compiled] = []
        while tries:
            tries = self._compile_round(tries, found, built, progress)
        return found

    def _compile_round(
        self, tries: list[_Try], found: list[_Compiled], built: Built, progress: Progress
    ) -> list[_Try]:
        again: list[_Try] = []
        with (
            ThreadPoolExecutor(self.count) as lowering,
            ThreadPoolExecutor(self.count) as compiling,
        ):
            pending = [
                (each.job, lowering.submit(self._compile_graph, each, compiling)) for each in tries
            ]
            try:
                for done, (job, future) in enumerate(pending):
                    progress(done, len(tries), described(job.graph))
                    try:
                        started = future.result()
                    except Refused as error:
                        built.refusals[job.graph.id] = str(error)
                        continue
                    try:
                        found.append(started.wait())
                    except Refused as error:
                        again += started.attempt.after(str(error), built)
            except BaseException:
                for _, future in pending:
                    future.cancel()
                self.workers.close()
                raise
        progress(len(tries), len(tries), "")
        return again

    def _compile_graph(self, attempt: _Try, compiling: ThreadPoolExecutor) -> _Started:
        """Lowers a graph in the first way that takes it, and starts the compiler on its parts.
        Raises Refused if none does."""
        while True:
            try:
                lowered = self._lower(attempt)
                break
            except (Refused, WorkerDied) as error:
                attempt = attempt.next(str(error))
        wrappers, kernels = [], []
        for part in lowered.parts:
            if part.wrapper:
                wrappers.append(compiling.submit(self.toolchain.compile, Source(part.wrapper)))
            else:
                wrappers.append(None)
            kernels.append(
                {
                    isa: compiling.submit(self.toolchain.compile, Source(text, ISAS[isa]))
                    for isa, text in part.kernels.items()
                    if text
                }
            )
        return _Started(attempt, lowered, wrappers, kernels)

    def _lower(self, attempt: _Try) -> Lowered:
        """Raises Refused, WorkerDied."""
        job, way = attempt.job, attempt.way
        if job.graph.providers:  # what these do, and their gradients, may change without a trace
            return result_from_bytes(self.workers.run(job_to_bytes(job, self.options, way)))
        key = job_key(job, self.options, way)
        found = self.cache.get("lowered", key)
        if found is None:
            found = self.workers.run(job_to_bytes(job, self.options, way))
            self.cache.put("lowered", key, found)
        return result_from_bytes(found)

    # -- object files -> libraries -------------------------------------------------------------

    def _link(self, compiled: list[_Compiled]) -> dict[str, tuple[Job, Artifact]]:
        """An artifact for each graph, all with the same libraries."""
        parts: dict[str, int] = {}
        for entry in compiled:
            for part in entry.lowered.parts:
                if part.wrapper:
                    parts.setdefault(part.name, len(parts))
        libraries = {
            f"{isa}.so": self._link_isa(isa, compiled, list(parts)) for isa in self.options.isas
        }
        name = digest(*libraries.values())[:32]
        artifacts = {}
        for entry in compiled:
            lowered = entry.lowered
            plan = replace(lowered.plan, library=name)
            numbers = [parts[part.name] for part in lowered.parts if part.wrapper]
            if numbers:
                backward = numbers[1] if len(numbers) > 1 else -1
                plan = replace(plan, forward=numbers[0], backward=backward)
            files = {"plan": plan_to_bytes(plan), **lowered.files, **libraries}
            if plan.external:
                files["external.json"] = _external(lowered.parts)
            attempt = entry.attempt
            notes = {"way": attempt.way} | ({"why": attempt.why} if attempt.why else {})
            notes |= _frozen_note(entry)
            artifact = Artifact(TARGET, lowered.text, {}, files, notes)
            artifacts[entry.job.graph.id] = (entry.job, artifact)
        return artifacts

    def _link_isa(self, isa: str, compiled: list[_Compiled], names: list[str]) -> bytes:
        objects: dict[Path, None] = {}
        for entry in compiled:
            for wrapper, kernels in zip(entry.wrappers, entry.kernels):
                if wrapper is not None:
                    objects[wrapper] = None
                if isa in kernels:
                    objects[kernels[isa]] = None
        container = (CONTAINER_FOLDER / "container.cpp").read_text()
        objects[self.toolchain.compile(Source(table(names) + container))] = None
        # Objects are named by what they are made of.
        return self.toolchain.link(list(objects), digest(*map(str, objects)))


def _external(parts: Iterable[PartCode]) -> bytes:
    """The operators that a graph calls through the dispatcher, which torch looks up when it loads
    the graph: not those of others, which need not be there."""
    return json.dumps(
        {"nodes": [json.loads(text) for part in parts for text in part.external]}
    ).encode()


def _sorted(
    compiled: list[_Compiled], failed: dict[str, str | int], built: Built
) -> tuple[list[_Compiled], list[_Try]]:
    """After the gate: what is kept, mended where that is all it takes, and what is tried in the
    next way."""
    kept: list[_Compiled] = []
    again: list[_Try] = []
    for entry in compiled:
        reason = failed.get(entry.job.graph.id)
        if reason is None or (isinstance(reason, int) and _mended(entry, reason)):
            kept.append(entry)
        else:
            whose = f"output {reason} is no contiguous tensor of its own"
            said = whose if isinstance(reason, int) else reason
            again += entry.attempt.after(said, built)
    return kept, again


def _mended(entry: _Compiled, index: int) -> bool:
    """Whether an output can be made a contiguous copy; it is from now on."""
    outputs = list(entry.lowered.plan.outputs)
    if outputs[index].kind != NEW or outputs[index].contiguous:
        return False
    outputs[index] = replace(outputs[index], contiguous=True)
    plan = replace(entry.lowered.plan, outputs=tuple(outputs))
    entry.lowered = replace(entry.lowered, plan=plan)
    return True


def _frozen_note(entry: _Compiled) -> dict[str, str]:
    """How much of the model is part of the code."""
    frozen = entry.lowered.plan.frozen
    if not frozen:
        return {}
    size = sum(len(data) for name, data in entry.lowered.files.items())
    return {"frozen": f"{len(frozen)} weights are frozen into it ({size} bytes of constants)"}


def _notes(entry: _Compiled) -> list[str]:
    found = [f"only where {condition}" for condition in entry.lowered.conditions]
    if entry.attempt.why:
        found.insert(0, f"as {entry.attempt.way}: {entry.attempt.why}")
    if entry.lowered.plan.frozen:
        found.append(f"for the recorded weights: {_frozen_note(entry)['frozen']}")
    fixed = without_effect(entry.job.graph.options)
    if fixed:
        found.append(f"without the program's {', '.join(fixed)}, which this target does not have")
    return found


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

