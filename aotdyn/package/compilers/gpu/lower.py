"""A graph -> Inductor's Python wrapper with machine code of Triton's kernels, and a plan, for one
architecture. Runs in a worker process that needs no GPU."""

from dataclasses import replace
from typing import Any

import torch
import torch.fx

from ...plan import Plan
from .. import Job
from ..lowering.lower import lower_by
from ..lowering.lower_python import PythonLowering, Wrapper, generate
from ..lowering.lowered import PartCode
from ..lowering.settings import wants_captures
from ..options import Options
from ..refusal import Refused
from .architectures import Architecture
from .attention import use_flash_attention
from .capturing import against_capture, static_inputs
from .jobs import GpuLowered
from .kernels import Compiled
from .launches import Launches
from .pretend import pretended
from .wrapper import gpu_code

DEVICE = "cuda:0"  # the name in torch, for AMD's as well


def lower_gpu(job: Job, architecture: Architecture, options: Options) -> GpuLowered:
    """Raises Refused when there is no code for the graph."""
    if all(item.device != DEVICE for item in job.graph.inputs):
        raise Refused("it takes no tensor of a GPU")
    kernels: list[Compiled] = []

    def lowering(job: Job, options: Options) -> _GpuLowering:
        return _GpuLowering(job, options, architecture, kernels)

    with pretended(architecture):
        lowered = lower_by(lowering, job, options, frozenset(("", "cpu", DEVICE)))
    return GpuLowered(
        lowered.plan, lowered.text, tuple(kernels), lowered.files, lowered.conditions
    )


class _GpuLowering(PythonLowering):
    """As for C++ kernels; but the kernels are Triton's, and there is one architecture only."""

    def __init__(
        self,
        job: Job,
        options: Options,
        architecture: Architecture,
        kernels: list[Compiled],
    ):
        super().__init__(job, options)
        self.architecture = architecture
        self.kernels = kernels
        self.texts: list[str] = []
        self.uncapturable = ""
        self.launch = Launches(job.graph.kernels).add

    def prepare(self, module: torch.fx.GraphModule) -> None:
        super().prepare(module)
        use_flash_attention(module)

    def settings(self) -> dict[str, Any]:
        return {
            **super().settings(),
            # One configuration for each kernel, chosen without timing, the same each time; or those
            # that Inductor would time.
            "deterministic": not self.options.tune,
            "triton.autotune_pointwise": self.options.tune,
            **({"max_autotune_pointwise": True} if self.options.tune else {}),
            "use_static_triton_launcher": False,
            # These compute or measure on the device.
            "joint_graph_constant_folding": False,
            "shape_padding": False,
            # Triton passes floats to a user's kernel as fp32.
            **({"_use_fp64_for_unbacked_floats": False} if self.graph.kernels else {}),
        }

    def compile_part(self, module: torch.fx.GraphModule, examples: list, **kwargs: Any) -> Any:
        self.uncapturable = self.uncapturable or against_capture(module)
        return super().compile_part(module, examples, **kwargs)

    def wrappers(
        self, module: torch.fx.GraphModule, examples: list, flags: dict[str, Any]
    ) -> dict[str, Wrapper]:
        return {self.architecture.name: generate(module, list(examples), flags)}

    def take_code(
        self, name: str, texts: dict[str, str], places: dict[str, int], count: int
    ) -> None:
        (written,) = texts.values()
        text, kernels = gpu_code(name, written, places, count, self.architecture)
        self.texts.append(text)
        self.kernels.extend(kernels)

    def finish(self, plan: Plan, adapter: str) -> tuple[Plan, str, tuple[PartCode, ...]]:
        plan = replace(
            plan,
            python=True,
            static=static_inputs(self.graph, DEVICE),
            captured=wants_captures(self.options.inductor, self.graph),
            uncapturable=self.uncapturable,
        )
        return plan, "\n".join([*self.texts, adapter]), ()
