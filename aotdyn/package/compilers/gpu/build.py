"""From jobs to artifacts for one GPU architecture: lowering in worker processes, and the kernels'
code beside the text. What takes time is looked up in the cache first."""

import importlib.util
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import torch

from ...archive import Artifact
from ...launch import ASSEMBLY, code_file
from ...plan import Plan, plan_to_bytes
from ...printer import sized
from ...recording import counted
from .. import Built, Job, Progress, Unavailable, described
from ..cache import Cache
from ..lowering.settings import check_settings
from ..options import Options
from ..refusal import Refused
from ..toolchain import Toolchain
from ..worker import WorkerDied, Workers
from .architectures import architecture_of
from .made_up import made_up_environment

WAY = "triton"


def build_graphs(
    target: str, jobs: Sequence[Job], options: dict[str, Any], progress: Progress | None = None
) -> Built:
    """Compiles the graphs of a package for one target. Raises Unavailable where there is no Triton
    or no C++ compiler, and AotdynError for wrong options."""
    if importlib.util.find_spec("triton") is None:
        raise Unavailable("Triton is not installed")
    with GpuBuilder(target, Options.of(options)) as builder:
        return builder.build(jobs, progress)


class GpuBuilder:
    """Builds graphs for one target with one cache and one pool of workers. For a with block."""

    def __init__(self, target: str, options: Options, cache: Cache | None = None):
        """Raises NoCompiler."""
        self.architecture = architecture_of(target)
        # What concerns code for CPUs only.
        self.options = replace(options, isas=("scalar",), threads=1)
        self.cache = cache or Cache()
        environment = made_up_environment(Toolchain.find(self.cache))
        self.workers = Workers("aotdyn.package.compilers.gpu.worker", environment)

    def __enter__(self) -> "GpuBuilder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.workers.close()

    def build(self, jobs: Sequence[Job], progress: Progress | None = None) -> Built:
        """Compiles graphs; what cannot be compiled is in `refusals`.

        Raises AotdynError for settings that Inductor does not have."""
        check_settings(self.options.inductor.items(), "the caller")
        for job in jobs:
            check_settings(job.graph.options, f"the program for graph {described(job.graph)}")
        built = Built()
        sizes: list[int] = []
        seconds: list[float] = []
        progress = progress or (lambda *_: None)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            pending = [(job, pool.submit(self._lower, job)) for job in jobs]
            try:
                for done, (job, future) in enumerate(pending):
                    progress(done, len(jobs), described(job.graph))
                    try:
                        lowered = future.result()
                    except (Refused, WorkerDied) as error:
                        built.refusals[job.graph.id] = str(error)
                        continue
                    built.artifacts[job.graph.id] = self._artifact(lowered)
                    sizes += [
                        len(each.code)
                        for kernel in lowered.kernels
                        for each in (kernel, *kernel.others)
                    ]
                    seconds.append(lowered.seconds)
                    notes = [f"only where {condition}" for condition in lowered.conditions]
                    if lowered.plan.captured and lowered.plan.uncapturable:
                        notes.append(f"so that its {_captures(lowered.plan)}")
                    built.notes[job.graph.id] = notes
            except BaseException:
                for _, future in pending:
                    future.cancel()
                self.workers.close()
                raise
        progress(len(jobs), len(jobs), "")
        # Packed by a build of torch for CPUs, run by one for GPUs: their operators are the same.
        built.needs = {"torch": str(torch.__version__).partition("+")[0]}
        if built.artifacts:
            built.remarks.append(
                f"code for {self.architecture.target} was not run: its kernels were read back only"
            )
            built.remarks.append(f"{self.architecture.target}: {_told(sizes, seconds)}")
        self.cache.trim()
        return built

    def _lower(self, job: Job):
        # Not at the top: it needs Triton.
        from .jobs import job_key, job_to_bytes, result_from_bytes

        target = self.architecture.target
        if job.graph.providers:  # what these do may change without a trace
            return result_from_bytes(self.workers.run(job_to_bytes(job, target, self.options)))
        key = job_key(job, target, self.options)
        found = self.cache.get("lowered", key)
        if found is None:
            found = self.workers.run(job_to_bytes(job, target, self.options))
            self.cache.put("lowered", key, found)
        return result_from_bytes(found)

    def _artifact(self, lowered) -> Artifact:
        files = {**lowered.files}
        compiled = [each for kernel in lowered.kernels for each in (kernel, *kernel.others)]
        for kernel in compiled:
            files[code_file(kernel.launch.name)] = kernel.code
            # Later devices can run the assembly of an architecture whose own features it lacks.
            if kernel.assembly and not self.architecture.exact:
                files[code_file(kernel.launch.name, ASSEMBLY)] = kernel.assembly
        launches = tuple(kernel.launch for kernel in compiled)
        files["plan"] = plan_to_bytes(replace(lowered.plan, launches=launches))
        target = self.architecture.target
        kernels = ", ".join(map(_kernel_told, lowered.kernels))
        notes = {"way": WAY, "kernels": kernels}
        if lowered.plan.captured or lowered.plan.uncapturable:
            notes["cudagraphs"] = _captures(lowered.plan)
        return Artifact(target, lowered.text, {}, files, notes)


def _kernel_told(kernel: Any) -> str:
    """A kernel in words."""
    sizes = [len(each.code) for each in (kernel, *kernel.others)]
    text = f"{kernel.launch.symbol} {sized(sum(sizes))}"
    return f"{text} in {len(sizes)} configurations" if kernel.others else text


def _captures(plan: Plan) -> str:
    """What becomes of its launches, in words."""
    if plan.uncapturable:
        return f"launches are not captured: {plan.uncapturable}"
    return "launches are captured for each shape"


def _told(sizes: list[int], seconds: list[float]) -> str:
    """The kernels' sizes and the time that graphs took, in words."""
    text = f"{counted(len(seconds), 'graph')}, {sum(seconds) / len(seconds):.1f} s each"
    if sizes:
        mean = sized(sum(sizes) // len(sizes))
        text += f"; {counted(len(sizes), 'kernel')} of {sized(min(sizes))} to {sized(max(sizes))}"
        text += f", {mean} on average"
    return text
