"""A graph -> Inductor's Python wrapper with C++ kernels, and a plan: for graphs that have no C++
wrapper. Runs in a worker process."""

import copy
from dataclasses import replace
from typing import Any

import torch
import torch.fx
from torch._inductor import cpu_vec_isa
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ...plan import Plan
from .. import Job
from ..isa import ISAS
from ..lowering.lower import lower_by, replaced
from ..lowering.lower_python import PythonLowering, Wrapper, generate
from ..lowering.lowered import Lowered, PartCode
from ..options import Options
from .python_code import PythonCode, python_code


def lower_python(job: Job, options: Options) -> Lowered:
    """Raises Refused when this way cannot take the graph."""
    return lower_by(_CppLowering, job, options)


class _CppLowering(PythonLowering):
    """The kernels are C++, for each of the vector ISAs."""

    def __init__(self, job: Job, options: Options, unknown_floats: bool = False):
        super().__init__(job, options, unknown_floats)
        self.codes: dict[str, PythonCode] = {}

    def wrappers(
        self, module: torch.fx.GraphModule, examples: list, flags: dict[str, Any]
    ) -> dict[str, Wrapper]:
        """The wrapper of one aten graph, by ISA."""
        found: dict[str, Wrapper] = {}
        for isa in self.options.isas:
            with unset_fake_temporarily():  # constants are copied, too
                own = copy.deepcopy(module)
            vector = ISAS[isa].inductor()
            with replaced(cpu_vec_isa, {"pick_vec_isa": lambda vector=vector: vector}):
                found[isa] = generate(own, list(examples), flags)
        return found

    def take_code(
        self, name: str, texts: dict[str, str], places: dict[str, int], count: int
    ) -> None:
        """Reads the wrappers of a part; see `python_code`."""
        self.codes[name] = python_code(name, texts, places, count)

    def finish(self, plan: Plan, adapter: str) -> tuple[Plan, str, tuple[PartCode, ...]]:
        codes = list(self.codes.values())
        kernels = tuple(kernel for code in codes for kernel in code.kernels)
        plan = replace(plan, python=True, kernels=kernels)
        parts = tuple(PartCode(code.name, "", code.sources) for code in codes)
        return plan, "\n".join([*(code.text for code in codes), adapter]), parts
