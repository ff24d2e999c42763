"""What the forward part hands to the backward part is what it was when it was computed.

AOTAutograd may choose to keep an input, or a view of one, whose new value the forward part itself
writes into it at the end: the backward part would read the new value.
"""

import operator

import torch
import torch.fx

_aten = torch.ops.aten
_WRITES = frozenset((_aten.copy_.default, _aten.set_.source_Tensor))


def keep_saved_values(module: torch.fx.GraphModule, first: int) -> None:
    """Changes a forward part: what it keeps of inputs that it writes to are copies. first: the
    index of the first output that is for the backward part."""
    graph = module.graph
    written = {
        node.args[0] for node in graph.nodes
        if node.op == "call_function" and node.target in _WRITES
    }  # fmt: skip
    if not written:
        return
    output = next(node for node in graph.nodes if node.op == "output")
    results = list(output.args[0])
    for index in range(first, len(results)):
        node = results[index]
        if isinstance(node, torch.fx.Node) and _viewed(node) in written:
            results[index] = _copied(graph, node)
    output.args = (tuple(results), *output.args[1:])
    module.recompile()


def _viewed(node: torch.fx.Node) -> torch.fx.Node:
    """What a chain of views begins with."""
    while node.op == "call_function" and (
        node.target is operator.getitem or getattr(node.target, "is_view", False)
    ):
        node = node.args[0]
    return node


def _copied(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    last = node
    while last.next.op == "placeholder":
        last = last.next
    with graph.inserting_after(last):
        made = graph.call_function(_aten.clone.default, (node,))
    made.meta["val"] = node.meta["val"].clone()
    return made
