"""A graph as a torch.fx GraphModule, for custom backends and Inductor."""

from typing import Any

import torch
import torch.fx

from ..errors import AotdynError
from ..graph import Graph, Value
from ..reference import Import, Literal, Reference
from ..resolve import resolve_import


def graph_module(graph: Graph) -> torch.fx.GraphModule:
    """The graph with a placeholder per input and one tuple as output."""
    made = torch.fx.Graph()
    values: dict[str, torch.fx.Node] = {}
    for item in graph.inputs:
        values[item.name] = made.placeholder(item.name)
    for node in graph.nodes:
        args = tuple(_argument(arg, values) for arg in node.args)
        kwargs = {key: _argument(arg, values) for key, arg in node.kwargs}
        if isinstance(node.target, str):
            values[node.name] = made.call_method(node.target, args, kwargs)
        else:
            values[node.name] = made.call_function(_object(node.target), args, kwargs)
    made.output(tuple(values[name] for name in graph.outputs))
    return torch.fx.GraphModule(torch.nn.Module(), made)


def _object(reference: Reference) -> Any:
    if isinstance(reference, Import):
        return resolve_import(reference)
    if isinstance(reference, Literal):
        return reference.value
    raise AotdynError(f"a graph cannot refer to a {type(reference).__name__}")


def _argument(arg: Any, values: dict[str, torch.fx.Node]) -> Any:
    if isinstance(arg, Value):
        return values[arg.name]
    if isinstance(arg, tuple):
        return tuple(_argument(part, values) for part in arg)
    if isinstance(arg, list):
        return [_argument(part, values) for part in arg]
    if isinstance(arg, dict):
        return {key: _argument(part, values) for key, part in arg.items()}
    if isinstance(arg, slice):
        return slice(*(_argument(part, values) for part in (arg.start, arg.stop, arg.step)))
    if isinstance(arg, Reference):
        return _object(arg)
    return arg
