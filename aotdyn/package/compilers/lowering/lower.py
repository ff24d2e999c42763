"""A graph -> aten graphs and a plan: AOTAutograd, and the passes of Inductor. What code is made of
an aten graph is the business of the ways. Runs in a worker process; changes nothing that outlives
the call."""

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import sympy
import torch
import torch.fx
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo import config as dynamo_config
from torch._dynamo.exc import TensorifyScalarRestartAnalysis
from torch._dynamo.symbolic_convert import TensorifyState
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import graph_compile
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx
from torch._inductor import config as inductor_config
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.node import has_side_effect

from ...graph import torch_names
from ...plan import Constant, Plan
from ...providers import NotRegistered, load_providers
from ...state import process_state, process_state_is
from ...weights import FrozenInput, tensor_of
from .. import Job
from ..fx import graph_module
from ..options import Options
from ..refusal import Refused
from .adapter import adapter_text
from .conditions import use_conditions
from .decompositions import decompositions
from .fakes import Fakes, fake_inputs, float_symbol
from .freezing import freeze
from .lowered import Lowered, PartCode
from .plans import plan_of
from .rnn import rnn_layers
from .saved_values import keep_saved_values
from .settings import settings_of
from .tensors_only import Interface, expression, text

PARTS = ("forward", "backward")

# Nodes that change the process' state have no result that anything uses; torch.fx must not take
# them for dead.
for _name in (
    "set_autocast_enabled", "set_autocast_dtype", "set_autocast_cache_enabled",
    "autocast_increment_nesting", "autocast_decrement_nesting", "clear_autocast_cache",
    "set_autocast_cpu_enabled", "set_autocast_cpu_dtype",
):  # fmt: skip
    has_side_effect(getattr(torch, _name))


def lower_by(
    lowering: Callable[[Job, Options], "Lowering"],
    job: Job,
    options: Options,
    devices: frozenset[str] = frozenset(("", "cpu")),
) -> Lowered:
    """Lowers a graph in one of the ways. devices: those that inputs may be on. Raises Refused."""
    graph = job.graph
    if any(item.device not in devices for item in graph.inputs):
        raise Refused("it takes tensors of another device")
    TensorifyState.clear()  # what another graph's floats have come to
    try:
        load_providers(graph.providers, torch_names(graph))
        with process_state_is(graph.state):
            try:
                return lowering(job, options).run()
            except _NeedsConstants:
                TensorifyState.clear()
                return lowering(job, options, unknown_floats=True).run()
    except Refused as error:
        # torch.fx adds where in the graph it was.
        raise Refused(str(error).splitlines()[0]) from error
    except NotRegistered as error:
        raise Refused(str(error)) from None
    except Exception as error:
        # The text of Triton's errors begins with the place and the source.
        told = getattr(error, "error_message", None) or error
        first = (str(told).strip() or type(error).__name__).splitlines()[0]
        raise Refused(f"{type(error).__name__}: {first[:200]}") from error


class _NeedsConstants(Refused):
    """The code would be for the recorded floats only."""


class _NotRun:
    """What stands for compiled code that is never run here."""

    _boxed_call = True

    def __call__(self, args: list) -> Any:
        raise AssertionError("compiled code does not run where it is made")


class Lowering:
    """One run of AOTAutograd and Inductor, and what is picked up on the way."""

    def __init__(self, job: Job, options: Options, unknown_floats: bool = False):
        self.graph = graph = job.graph
        self.weights = dict(job.weights)
        self.frozen: list[FrozenInput] = []
        self.options = options
        self.interfaces: dict[str, Interface] = {}
        self.found: dict[str, Any] = {}
        self.strides: list[tuple | None] = []
        self.backward_examples: list[Any] = []
        self.fakes: Fakes = fake_inputs(graph, unknown_floats)
        self.floats = [i for i, item in enumerate(graph.inputs) if item.dtype == "symfloat"]

    def run(self) -> Lowered:
        module = graph_module(self.graph, self.launch)
        _check_places(module)
        self.prepare(module)
        _ask_for_floats(module, self.floats)
        self._check_effects(module)
        examples = [*self.fakes.inputs, *self._add_symbols(module)]
        with (
            tracing(TracingContext(self.fakes.mode)),
            functorch_config.patch(
                force_non_lazy_backward_lowering=True,
                enable_autograd_cache=False,
                donated_buffer=False,
            ),
            dynamo_config.patch(capture_scalar_outputs=True, specialize_float=False),
            inductor_config.patch(self.settings()),
            self._results_picked_up(),
            replaced(torch._decomp.decompositions, rnn_layers()),
            torch.set_grad_enabled(self.graph.grad and torch.is_grad_enabled()),
        ):
            try:
                compile_fx.compile_fx(
                    module, examples, inner_compile=self._inner_compile,
                    decompositions=decompositions(),
                )  # fmt: skip
            except TensorifyScalarRestartAnalysis as error:
                raise _NeedsConstants("an operator takes a float as a constant only") from error
        return self._result()

    def prepare(self, module: torch.fx.GraphModule) -> None:
        """Operations that the way has others for are replaced."""
        use_conditions(module)

    def launch(self, graph: torch.fx.Graph, name: str, *arguments: Any) -> torch.fx.Node:
        """The node for a launch of a user's kernel. Raises Refused."""
        raise Refused(f"it starts the kernel {name.partition(':')[2]}, which is for GPUs")

    def _add_symbols(self, module: torch.fx.GraphModule) -> list[torch.SymInt]:
        """Makes each symbol that is only the size of something an input as well, the last ones:
        some of torch's passes find symbols there only. `tensors_only` takes them away again."""
        given = {item.value for item in self.graph.inputs if item.dtype == "int"}
        first = next(node for node in module.graph.nodes if node.op != "placeholder")
        added = []
        for name, symbol in self.fakes.symbols.items():
            if name not in given:
                with module.graph.inserting_before(first):
                    module.graph.placeholder(f"size_{name}")
                hint = int(self.fakes.env.backed_var_to_val[symbol])
                added.append(self.fakes.env.create_symintnode(symbol, hint=hint))
        module.recompile()
        return added

    def _check_effects(self, module: torch.fx.GraphModule) -> None:
        """A run on fakes: what it leaves changed in the process cannot be compiled, except the
        gradient mode, which AOTAutograd takes care of; nor results that are not mere tensors."""
        before = process_state()
        grad = torch.is_grad_enabled()
        trial = fake_inputs(self.graph)
        # As in the tracer: C++'s own composite operators do not know symbolic sizes.
        with trial.mode, enable_python_dispatcher():
            results = module(*trial.inputs)
        torch._C._set_grad_enabled(grad)
        given = {id(each) for each in trial.inputs}
        made = [r for r in results if isinstance(r, torch.Tensor) and id(r) not in given]
        if any(isinstance(each, torch.nn.Parameter | torch.nn.Buffer) for each in made):
            raise Refused("it makes parameters")
        if any(each.is_inference() for each in made):
            raise Refused("it gives inference tensors beside others")
        if process_state() != before:
            raise Refused("the graph leaves autocast or another mode changed")

    def settings(self) -> dict[str, Any]:
        return settings_of(self.options.inductor, self.graph, self.options.threads)

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

    def _inner_compile(self, module: torch.fx.GraphModule, examples: list, **kwargs: Any) -> Any:
        if kwargs.get("is_backward"):
            self.found["reaching"] = reaching(module.graph)[: len(self.graph.inputs)]
        elif not kwargs.get("is_inference"):
            metadata = TracingContext.get().fw_metadata
            keep_saved_values(module, metadata.num_forward_returns)
        return self.compile_part(module, examples, **kwargs)

    def compile_part(self, module: torch.fx.GraphModule, examples: list, **kwargs: Any) -> Any:
        """In place of Inductor's `compile_fx_inner`, for each of the aten graphs."""
        raise NotImplementedError

    def freeze(self, module: torch.fx.GraphModule, examples: list, kwargs: dict) -> None:
        """Folds the weights into the graph, if it needs no gradients."""
        if not self.weights or not kwargs.get("is_inference"):
            return
        places = {item.name: index for index, item in enumerate(self.graph.inputs)}
        with unset_fake_temporarily():
            wanted = {places[name]: tensor_of(weight) for name, weight in self.weights.items()}
        metadata = TracingContext.get().fw_metadata
        digests = {places[name]: weight.digest for name, weight in self.weights.items()}
        found = freeze(module, examples, wanted, metadata)
        self.frozen = [FrozenInput(index, digests[index]) for index in found]

    def part_name(self, kwargs: dict[str, Any]) -> str:
        """Which part Inductor is asked for."""
        name = "backward" if kwargs.get("is_backward") else "forward"
        if name in self.interfaces:
            raise Refused("AOTAutograd made more than one graph")
        return name

    def part_done(self, name: str, examples: list, strides: list[tuple | None]) -> _NotRun:
        """A part has its interface; strides: of the code's outputs."""
        if name == "forward":
            self._report_strides(self.interfaces[name], strides)
        else:
            self.backward_examples = list(examples)
        return _NotRun()

    def _report_strides(self, interface: Interface, strides: list[tuple | None]) -> None:
        """The backward part is compiled for the strides that the forward part's outputs have.

        AOTAutograd takes numbers only, those of the hints; see `_check_saved`.
        """
        self.strides = [strides[h[1]] if h[0] == "tensor" else None for h in interface.outputs]
        context = TracingContext.try_get()
        if context is not None and context.output_strides is not None:
            del context.output_strides[:]  # Inductor may have said so in its own order
            hints = self.fakes.env.backed_var_to_val
            for found in self.strides:
                numbers = found and tuple(sympy.sympify(s).xreplace(hints) for s in found)
                known = numbers and all(number.is_number for number in numbers)
                context.output_strides.append(tuple(map(int, numbers)) if known else None)

    def _check_saved(self, plan: Plan) -> None:
        """What the backward part believes of saved tensors is so for all sizes, not for the hints
        only. Raises Refused."""
        first = len(plan.updated) + len(plan.outputs) + plan.bases
        saved = self.strides[first : len(self.strides) - plan.ints]
        for actual, example in zip(saved, self.backward_examples[plan.ints :]):
            if actual is None or not isinstance(example, torch.Tensor):
                continue
            for size, mine, found in zip(example.shape, example.stride(), actual, strict=True):
                difference = expression(mine) - sympy.sympify(found)
                if expression(size) != 1 and self.fakes.env.simplify(difference) != 0:
                    raise Refused("the layout of what is saved for backward depends on the sizes")

    def _result(self) -> Lowered:
        if "metadata" not in self.found:
            raise Refused("AOTAutograd gave no metadata")
        constants, files, first = [], {}, {}
        for name in self.interfaces:
            interface = self.interfaces[name]
            first[name] = len(constants)
            for tensor in interface.constants:
                assert type(tensor) is torch.Tensor  # a fake one has no numbers
                file = f"constant{len(constants)}"
                dtype = str(tensor.dtype).removeprefix("torch.")
                stride = () if tensor.is_contiguous() else tensor.stride()
                constants.append(Constant(file, dtype, tuple(tensor.shape), stride))
                with unset_fake_temporarily():
                    files[file] = _bytes(tensor.contiguous())
        self._note_floats(self.interfaces["forward"])
        plan = replace(plan_of(self.graph, self.found, constants), frozen=tuple(self.frozen))
        self._check_saved(plan)
        conditions, ranges = self._conditions()
        self._check_constants(conditions)
        written = adapter_text(self.interfaces, first, [*conditions, *ranges])
        plan = replace(plan, forward=0, backward=1 if "backward" in self.interfaces else -1)
        plan, written, code = self.finish(plan, written)
        return Lowered(plan, written, code, files, tuple(map(text, conditions)))

    def finish(self, plan: Plan, adapter: str) -> tuple[Plan, str, tuple[PartCode, ...]]:
        """The plan, the Python text and the C++ of this way."""
        raise NotImplementedError

    def _note_floats(self, interface: Interface) -> None:
        """The caller has numbers where the code takes tensors."""
        for index in self.floats:
            symbol = float_symbol(self.fakes.inputs[index])
            if symbol is not None:
                interface.symbols[symbol] = f"a[{index}]"
        interface.inputs = [
            ("float", index) if kind == "input" and index in self.floats else (kind, index)
            for kind, index in interface.inputs
        ]

    def _check_constants(self, conditions: list[Any]) -> None:
        """Raises _NeedsConstants where a float that may differ has become a constant."""
        symbols = {float_symbol(self.fakes.inputs[index]) for index in self.floats}
        for condition in conditions:
            names = {str(symbol) for symbol in condition.free_symbols}
            if isinstance(condition, sympy.Eq) and names & symbols:
                raise _NeedsConstants(f"it is compiled for {condition} only")

    def _conditions(self) -> tuple[list[Any], list[Any]]:
        """What the code relies on beyond the guards, checked at each call; and apart from that how
        small ints may be for tensors to be of their size."""
        ranges = dict.fromkeys(
            each for interface in self.interfaces.values() for each in interface.ranges
        )
        implied = {sympy.true, *(sympy.Ge(each.lhs - each.rhs + 1, 0) for each in ranges)}
        found = dict.fromkeys(self.fakes.added())
        return [expr for expr in found if expr not in implied], list(ranges)


def flags_of(kwargs: dict[str, Any]) -> dict[str, Any]:
    """What `inner_compile` was given that `compile_fx_inner` has to know."""
    names = ("is_inference", "is_backward", "graph_id", "get_decomp_fn")
    return {name: kwargs[name] for name in names if name in kwargs}


_PLACED = frozenset(("as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter"))


def _check_places(module: torch.fx.GraphModule) -> None:
    """Where a view is placed is counted from the start of the memory, and code knows of an input
    only where it begins. Raises Refused."""
    for node in module.graph.nodes:
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        if name not in _PLACED:
            continue
        given = node.args[4:5] if name == "as_strided_scatter" else node.args[3:4]
        offset = node.kwargs.get("storage_offset", given[0] if given else None)
        viewed = node
        while viewed.op != "placeholder" and viewed.all_input_nodes:
            viewed = viewed.all_input_nodes[0]
        if offset is not None and viewed.op == "placeholder":
            raise Refused(f"{name} counts from the start of an input's memory")


def _ask_for_floats(module: torch.fx.GraphModule, indices: list[int]) -> None:
    """The floats among the inputs come as tensors; torch's passes make tensor arithmetic of what
    is done to their items."""
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    with module.graph.inserting_after(inputs[-1] if inputs else None):
        for index in indices:
            item = module.graph.call_method("item", (inputs[index],))
            inputs[index].replace_all_uses_with(item, lambda user, item=item: user is not item)
    module.recompile()


def reaching(graph: torch.fx.Graph) -> list[set[int] | None]:
    """For each output the inputs that it follows from, as indices from the end; None for an output
    that is no value."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    sources = {node: {index - len(inputs)} for index, node in enumerate(inputs)}
    for node in graph.nodes:
        if node.op != "placeholder":
            sources[node] = set().union(*(sources[used] for used in node.all_input_nodes))
    (outputs,) = next(node for node in graph.nodes if node.op == "output").args
    return [sources.get(o) if isinstance(o, torch.fx.Node) else None for o in outputs]


def _bytes(tensor: torch.Tensor) -> bytes:
    """The contents of a contiguous tensor."""
    size = tensor.numel() * tensor.element_size()
    return ctypes.string_at(tensor.data_ptr(), size) if size else b""


def output_strides(output: Any) -> tuple | None:
    """The strides that an output of a lowered graph has, where it is a tensor."""
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
