"""What of a graph stands against capturing its launches: a replay repeats what the GPU did, and
nothing of what the CPU did."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._pytree import tree_leaves

from ...graph import Graph, GraphInput


def static_inputs(graph: Graph, device: str) -> tuple[int, ...]:
    """Inputs that stay where they are from call to call, and have one size."""
    return tuple(
        index for index, item in enumerate(graph.inputs)
        if (item.parameter or item.buffer) and item.device == device and _has_one_size(item)
    )  # fmt: skip


def _has_one_size(item: GraphInput) -> bool:
    return all(type(each) is int for each in (*item.size, *item.stride))


def against_capture(module: torch.fx.GraphModule) -> str:
    """Why the launches of one part cannot be captured, or nothing. module: its aten graph."""
    for node in module.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            # A kernel of the program is a launch like any other.
            if "triton_kernel_wrapper" not in node.target.name():
                return f"it calls {node.target.name()}"
        elif node.op == "call_function" and not _is_torchs(node.target):
            return f"what {node.target} does on the CPU would not be repeated"
        for value in _values(node, module):
            if isinstance(value, torch.Tensor) and value.device.type == "cpu":
                what = "takes" if node.op == "placeholder" else "computes with"
                return f"it {what} a tensor of the CPU"
            if node.op != "placeholder" and _depends_on_data(value):
                return f"the outcome of {node.target} decides on the CPU"
    return ""


def _is_torchs(target: Any) -> bool:
    namespace = getattr(target, "namespace", "aten")
    return namespace in ("aten", "prims", "inductor", "_quantized", "quantized_decomposed")


def _values(node: torch.fx.Node, module: torch.fx.GraphModule) -> Iterator[Any]:
    if node.op == "get_attr":
        yield getattr(module, str(node.target), None)
    elif node.op != "output":
        yield from tree_leaves(node.meta.get("val"))


def _depends_on_data(value: Any) -> bool:
    return isinstance(value, torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool) and bool(
        free_unbacked_symbols(value)
    )
