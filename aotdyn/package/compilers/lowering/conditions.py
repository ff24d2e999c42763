"""torch.cond and loops in graphs: as the operators that Inductor compiles."""

from typing import Any

import torch
import torch.fx

from ...operators import conditional, looped


def use_conditions(module: torch.fx.GraphModule) -> None:
    """Replaces our operators, which eager runs, by torch's, in a graph and its functions."""
    for inner in module.modules():
        if not isinstance(inner, torch.fx.GraphModule):
            continue
        for node in inner.graph.find_nodes(op="call_function", target=conditional):
            with inner.graph.inserting_before(node):
                truth = inner.graph.call_function(_truth, node.args[:1])
            node.target = torch.ops.higher_order.cond
            node.args = (truth, *node.args[1:])
        for node in inner.graph.find_nodes(op="call_function", target=looped):
            condition, body, carried, others = node.args
            with inner.graph.inserting_before(node):
                # No tensor may be passed twice.
                apart = [inner.graph.call_method("clone", (x,)) if x in others else x
                         for x in carried]  # fmt: skip
            node.target = torch.ops.higher_order.while_loop
            node.args = (condition, body, tuple(apart), others)
        inner.recompile()


def _truth(condition: Any) -> Any:
    """Compiled code takes the bytes of a tensor for a bool."""
    return condition.bool() if isinstance(condition, torch.Tensor) else condition
