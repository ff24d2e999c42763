"""A graph -> C++ for our container, and a plan: Inductor is stopped short of the C++ compiler. Runs
in a worker process."""

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.fx
from torch._inductor import codecache, compile_fx, cpu_vec_isa
from torch._inductor import config as inductor_config
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ...plan import Plan
from .. import Job
from ..isa import ISAS
from ..lowering.lower import PARTS, Lowering, flags_of, lower_by, output_strides, replaced
from ..lowering.lowered import Lowered, PartCode
from ..lowering.tensors_only import tensors_only
from ..options import Options
from ..refusal import Refused
from .code import part_code


@dataclass
class _Part:
    """The generated code of one part. kernels: by ISA."""

    wrapper: str
    kernels: dict[str, str]
    external: str


def lower(job: Job, options: Options) -> Lowered:
    """Raises Refused when this way cannot take the graph."""
    return lower_by(ContainerLowering, job, options)


class ContainerLowering(Lowering):
    """The code takes and gives tensors only."""

    def __init__(self, job: Job, options: Options, unknown_floats: bool = False):
        super().__init__(job, options, unknown_floats)
        self.parts: dict[str, _Part] = {}

    def compile_part(self, module: torch.fx.GraphModule, examples: list, **kwargs: Any) -> Any:
        name = self.part_name(kwargs)
        self.freeze(module, examples, kwargs)
        arity = len(self.graph.inputs) if name == "forward" else len(examples)
        module, tensors, interface = tensors_only(
            module, list(examples), self.fakes.mode, arity,
            self.floats if name == "forward" else (),
        )  # fmt: skip
        flags = flags_of(kwargs)
        kernels, first = {}, None
        for isa in self.options.isas:
            with unset_fake_temporarily():  # constants are copied, too
                own = copy.deepcopy(module)
            code = _generate(own, tensors, isa, flags)
            if first is None:
                first = code
            elif (code.wrapper, code.external, code.strides) != (
                first.wrapper, first.external, first.strides,
            ):  # fmt: skip
                raise Refused(f"the code for {isa} is called in another way")
            kernels[isa] = code.kernels
        self.parts[name] = _Part(first.wrapper, kernels, first.external)
        if name == "backward":  # there is no gradient for what `_add_symbols` has added
            del interface.outputs[len(self.graph.inputs) :]
        self.interfaces[name] = interface
        return self.part_done(name, examples, first.strides)

    def finish(self, plan: Plan, adapter: str) -> tuple[Plan, str, tuple[PartCode, ...]]:
        plan = replace(plan, external=any(part.external for part in self.parts.values()))
        parts = [self.parts[name] for name in PARTS if name in self.parts]
        code: list[PartCode] = []
        first = 0
        for part in parts:
            code.append(part_code(part.wrapper, part.kernels, part.external, first))
            first += len(code[-1].external)
        return plan, adapter, tuple(code)


@dataclass
class _Code:
    wrapper: str
    kernels: str
    external: str
    strides: list[tuple | None]


def _generate(
    module: torch.fx.GraphModule, tensors: list[torch.Tensor], isa: str, flags: dict[str, Any]
) -> _Code:
    """The code of one aten graph for one ISA."""
    found: list[_Code] = []

    def keep(graph, wrapper, kernels, external, *, device_type, additional_files):
        if graph.constants:
            raise Refused(f"Inductor made constants: {', '.join(graph.constants)[:80]}")
        if additional_files:
            raise Refused("Inductor made further files")
        strides = [output_strides(output) for output in graph.graph_outputs]
        found.append(_Code(wrapper, kernels, external or "", strides))
        return ""

    vector = ISAS[isa].inductor()
    settings = {"cpp_wrapper": True, "aot_inductor.output_path": ""}
    with (
        V.set_aot_compilation(True),
        inductor_config.patch(settings),
        replaced(codecache.AotCodeCompiler, {"compile": keep}),
        replaced(cpu_vec_isa, {"pick_vec_isa": lambda: vector}),
    ):
        compile_fx.compile_fx_inner(module, tensors, cpp_wrapper=True, **flags)
    if len(found) != 1:
        raise Refused("Inductor made no code")
    return found[0]
