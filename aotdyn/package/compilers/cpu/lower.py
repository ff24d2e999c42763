"""A graph -> C++ and a plan: AOTAutograd and Inductor, with all their passes, stopped short of the
C++ compiler. Runs in a worker process; changes nothing that outlives the call."""

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
import torch
import torch.fx
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import graph_compile
from torch._guards import TracingContext, tracing
from torch._inductor import codecache, compile_fx, cpu_vec_isa
from torch._inductor import config as inductor_config
from torch._inductor.virtualized import V

from ...graph import Graph
from ...plan import Constant, Plan
from ...state import process_state, process_state_is
from ..fx import graph_module
from .adapter import adapter_text
from .fakes import Fakes, fake_inputs
from .isa import ISAS
from .plans import plan_of
from .refusal import Refused
from .tensors_only import Interface, tensors_only, text

PARTS = ("forward", "backward")


@dataclass(frozen=True)
class Options:
    """How graphs are compiled. isas: the vector ISAs there is code for. fallback_random: random
    operators give eager's numbers. inductor: further settings of Inductor, by name."""

    isas: tuple[str, ...] = tuple(ISAS)
    fallback_random: bool = True
    inductor: tuple[tuple[str, Any], ...] = ()


@dataclass
class Part:
    """The generated code of one part. kernels: by ISA. external: JSON about operators that are
    called through the dispatcher."""

    wrapper: str
    kernels: dict[str, str]
    outputs: int
    external: str = ""


@dataclass
class Lowered:
    """A graph as code. text: the Python around the parts. files: the constants."""

    plan: Plan
    text: str
    parts: list[Part]
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def lower(graph: Graph, state: str, options: Options) -> Lowered:
    """Raises Refused when this way cannot take the graph."""
    try:
        with process_state_is(state):
            return _Lowering(graph, options).run()
    except Refused:
        raise
    except Exception as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise Refused(f"{type(error).__name__}: {first[:200]}") from error


class _NotRun:
    """What stands for compiled code that is never run here."""

    _boxed_call = True

    def __call__(self, args: list) -> Any:
        raise AssertionError("compiled code does not run where it is made")


class _Lowering:
    """One run of AOTAutograd and Inductor, and what is picked up on the way."""

    def __init__(self, graph: Graph, options: Options):
        self.graph = graph
        self.options = options
        self.parts: dict[str, Part] = {}
        self.interfaces: dict[str, Interface] = {}
        self.found: dict[str, Any] = {}
        self.fakes: Fakes = fake_inputs(graph)

    def run(self) -> Lowered:
        module = graph_module(self.graph)
        self._check_effects(module)
        with (
            tracing(TracingContext(self.fakes.mode)),
            functorch_config.patch(
                force_non_lazy_backward_lowering=True,
                enable_autograd_cache=False,
                donated_buffer=False,
            ),
            inductor_config.patch(self._settings()),
            self._results_picked_up(),
            torch.set_grad_enabled(self.graph.grad and torch.is_grad_enabled()),
        ):
            compile_fx.compile_fx(
                copy.deepcopy(module), list(self.fakes.inputs), inner_compile=self._compile_part
            )
        return self._result()

    def _check_effects(self, module: torch.fx.GraphModule) -> None:
        """A run on fakes: what it leaves changed in the process cannot be compiled, except the
        gradient mode, which AOTAutograd takes care of."""
        before = process_state()
        grad = torch.is_grad_enabled()
        trial = fake_inputs(self.graph)
        with trial.mode:
            module(*trial.inputs)
        torch._C._set_grad_enabled(grad)
        if process_state() != before:
            raise Refused("the graph leaves autocast or another mode changed")

    def _settings(self) -> dict[str, Any]:
        return {
            "fx_graph_cache": False,
            "fallback_random": self.options.fallback_random,
            "cpp.dynamic_threads": True,
            "compile_threads": 1,
            **dict(self.options.inductor),
        }

    @contextlib.contextmanager
    def _results_picked_up(self) -> Iterator[None]:
        """AOTAutograd hands over its metadata where it would build its own wrappers."""

        def inference(config, metadata, forward, wrappers, entry):
            self.found.update(metadata=metadata, wrappers=wrappers, detached=[], ints=0)
            return _NotRun(), metadata

        def autograd(
            config, args, metadata, subclasses, wrappers, forward, backward, compiler, lazy, save,
            entry, detached, ints,
        ):  # fmt: skip
            self.found.update(
                metadata=metadata, wrappers=wrappers, detached=detached, ints=ints,
                subclasses=subclasses,
            )  # fmt: skip
            return _NotRun(), metadata

        names = {
            "_aot_stage2c_make_inference_function": inference,
            "_aot_stage2c_make_autograd_function": autograd,
        }
        with replaced(graph_compile, names):
            yield

    def _compile_part(self, module: torch.fx.GraphModule, examples: list, **kwargs: Any) -> Any:
        """In place of Inductor's `compile_fx_inner`, for each of the aten graphs."""
        name = "backward" if kwargs.get("is_backward") else "forward"
        if name in self.parts:
            raise Refused("AOTAutograd made more than one graph")
        module, tensors, interface = tensors_only(module, list(examples), self.fakes.mode)
        flags = {
            key: kwargs[key]
            for key in ("is_inference", "is_backward", "graph_id", "get_decomp_fn")
            if key in kwargs
        }
        kernels, first = {}, None
        for isa in self.options.isas:
            code = _generate(copy.deepcopy(module), tensors, isa, flags)
            if first is None:
                first = code
            elif (code.wrapper, code.external, code.strides) != (
                first.wrapper, first.external, first.strides,
            ):  # fmt: skip
                raise Refused(f"the code for {isa} is called in another way")
            kernels[isa] = code.kernels
        self.parts[name] = Part(first.wrapper, kernels, first.outputs, first.external)
        self.interfaces[name] = interface
        self._report_strides(interface, first.strides)
        return _NotRun()

    def _report_strides(self, interface: Interface, strides: list[tuple | None]) -> None:
        """The backward part is compiled for the strides that the forward part's outputs have."""
        context = TracingContext.try_get()
        if context is None or context.output_strides is None:
            return
        for how in interface.outputs:
            found = strides[how[1]] if how[0] == "tensor" else None
            context.output_strides.append(found and tuple(map(self._known_stride, found)))

    def _known_stride(self, stride: Any) -> Any:
        expr = sympy.sympify(stride)
        if expr.is_number:
            return int(expr)
        env = self.fakes.env
        return env.create_symintnode(expr, hint=int(expr.xreplace(env.backed_var_to_val)))

    def _result(self) -> Lowered:
        if "metadata" not in self.found:
            raise Refused("AOTAutograd gave no metadata")
        constants, files, first = [], {}, {}
        for name in self.parts:
            interface = self.interfaces[name]
            first[name] = len(constants)
            for tensor in interface.constants:
                file = f"constant{len(constants)}"
                dtype = str(tensor.dtype).removeprefix("torch.")
                constants.append(Constant(file, dtype, tuple(tensor.shape)))
                data = tensor.reshape(-1).view(torch.uint8) if tensor.numel() else tensor
                files[file] = data.numpy().tobytes()
        plan = plan_of(self.graph, self.found, constants)
        external = any(part.external for part in self.parts.values())
        conditions = self._conditions()
        written = adapter_text(self.interfaces, first, conditions)
        trains = "backward" in self.parts
        plan = replace(plan, external=external, forward=0, backward=1 if trains else -1)
        parts = [self.parts[name] for name in PARTS if name in self.parts]
        return Lowered(plan, written, parts, files, list(map(text, conditions)))

    def _conditions(self) -> list[Any]:
        """What the code relies on beyond the guards; checked at each call."""
        found = self.fakes.added()
        for interface in self.interfaces.values():
            found += interface.conditions
        return [expr for expr in dict.fromkeys(found) if expr is not sympy.true]


@dataclass
class _Code:
    wrapper: str
    kernels: str
    external: str
    outputs: int
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
        strides = [_strides(output) for output in graph.graph_outputs]
        found.append(_Code(wrapper, kernels, external or "", len(graph.graph_outputs), strides))
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


def _strides(output: Any) -> tuple | None:
    try:
        return tuple(output.get_layout().stride)
    except (AttributeError, NotImplementedError):
        return None


@contextlib.contextmanager
def replaced(owner: Any, values: dict[str, Any]) -> Iterator[None]:
    """Attributes of a module or class replaced for a time. What is not there is refused."""
    missing = [name for name in values if not hasattr(owner, name)]
    if missing:
        raise Refused(f"this torch has no {', '.join(missing)}")
    before = {name: vars(owner)[name] for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)
