"""A graph -> Inductor's Python wrapper, whatever its kernels are, and a plan. Runs in a worker
process."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import torch.fx
from torch._inductor import compile_fx
from torch._inductor import config as inductor_config
from torch._inductor.graph import GraphLowering
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..refusal import Refused
from .lower import Lowering, flags_of, output_strides, replaced
from .tensors_only import Interface, expression, readable_symbols, text


@dataclass
class Wrapper:
    """The generated text of one part, for one vector ISA or architecture, and the tensors that it
    holds."""

    text: str
    constants: dict[str, torch.Tensor]
    strides: list[tuple | None]


class PythonLowering(Lowering):
    """As for the C++ wrapper; but this one takes and gives ints and None itself."""

    def settings(self) -> dict[str, Any]:
        # One function and nothing else, without a state.
        return {**super().settings(), "graph_partition": False, "memory_planning": False}

    def compile_part(self, module: torch.fx.GraphModule, examples: list, **kwargs: Any) -> Any:
        name = self.part_name(kwargs)
        self.freeze(module, examples, kwargs)
        interface = self._interface(name, examples, module)
        found = self.wrappers(module, examples, flags_of(kwargs))
        first = next(iter(found.values()))
        if any(wrapper.strides != first.strides for wrapper in found.values()):
            raise Refused("the layouts of the outputs differ between what they are for")
        self._keep_constants(interface, found)
        texts = {isa: wrapper.text for isa, wrapper in found.items()}
        # The constants of all parts are in one list.
        start = sum(len(each.constants) for each in self.interfaces.values())
        places = {name: start + index for index, name in enumerate(first.constants)}
        self.take_code(name, texts, places, len(interface.outputs))
        self.interfaces[name] = interface
        return self.part_done(name, examples, first.strides)

    def wrappers(
        self, module: torch.fx.GraphModule, examples: list, flags: dict[str, Any]
    ) -> dict[str, Wrapper]:
        """The wrapper of one aten graph, by what its code is for: they are called in one way."""
        raise NotImplementedError

    def take_code(
        self, name: str, texts: dict[str, str], places: dict[str, int], count: int
    ) -> None:
        """Reads the wrappers of a part. places: of its constants in the list of all. count: of the
        outputs."""
        raise NotImplementedError

    def _interface(self, name: str, examples: list, module: torch.fx.GraphModule) -> Interface:
        arity = len(self.graph.inputs) if name == "forward" else len(examples)
        interface = Interface(arity)
        readable_symbols(examples, interface)
        for index, example in enumerate(examples):
            if index < arity:
                interface.inputs.append(("input", index))
            else:
                interface.inputs.append(("int", text(expression(example))))
        output = next(node for node in module.graph.nodes if node.op == "output")
        count = len(output.args[0]) if name == "forward" else len(self.graph.inputs)
        interface.outputs.extend(("tensor", index) for index in range(count))
        return interface

    def _keep_constants(self, interface: Interface, found: dict[str, Wrapper]) -> None:
        first = next(iter(found.values())).constants
        for wrapper in found.values():
            with unset_fake_temporarily():
                same = wrapper.constants.keys() == first.keys() and all(
                    torch.equal(value, first[name]) for name, value in wrapper.constants.items()
                )
            if not same:
                raise Refused("the constants differ between what they are for")
        for value in first.values():
            if type(value) is not torch.Tensor or value.layout != torch.strided:
                raise Refused(f"Inductor made a constant that is a {type(value).__name__}")
            with unset_fake_temporarily():
                interface.constants.append(value.detach())


def generate(
    module: torch.fx.GraphModule, examples: list[Any], flags: dict[str, Any]
) -> Wrapper:
    """The wrapper of one aten graph."""
    if not any(node.op == "call_function" for node in module.graph.nodes):
        return _wired(module)  # Inductor makes no code where there is nothing to compute
    found: list[Wrapper] = []

    def keep(graph: GraphLowering) -> Any:
        code, _ = graph.codegen()
        if graph.torchbind_constants or graph.opaque_value_type_classes:
            raise Refused("the graph holds objects")
        strides = [output_strides(output) for output in graph.graph_outputs]
        found.append(Wrapper(code.value, dict(graph.constants), strides))
        graph.cache_key, graph.cache_path, graph.cache_linemap = "", "", []
        return SimpleNamespace(call=lambda args: None, runner=None, __file__="")

    with (
        inductor_config.patch({"cpp_wrapper": False}),
        replaced(GraphLowering, {"compile_to_module": keep}),
    ):
        compile_fx.compile_fx_inner(module, examples, **flags)
    if len(found) != 1:
        raise Refused("Inductor made no code")
    return found[0]


def _wired(module: torch.fx.GraphModule) -> Wrapper:
    """A wrapper that hands inputs on. Raises Refused where a constant comes out."""
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    output = next(node for node in module.graph.nodes if node.op == "output")
    wanted = list(map(str, output.args[0]))
    if set(wanted) - set(names) - {"None"}:
        raise Refused("Inductor made no code")
    lines = ["def call(args):"]
    if names:
        lines.append(f"    {''.join(f'{name}, ' for name in names)} = args")
    lines.append(f"    return ({''.join(f'{name}, ' for name in wanted)})")
    strides = [
        tuple(map(expression, node.meta["val"].stride()))
        if isinstance(node, torch.fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)
        else None
        for node in output.args[0]
    ]
    return Wrapper("\n".join(lines), {}, strides)
