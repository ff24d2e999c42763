"""A graph as a torch.fx GraphModule, for custom backends and Inductor."""

import itertools
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch
import torch.fx

from ..errors import AotdynError
from ..graph import Function, Graph, Node, Value
from ..reference import Import, Literal, Reference
from ..resolve import resolve_import

# Adds the node for a launch of a kernel, given its name (`module:qualname`), grid and arguments.
Launch = Callable[[torch.fx.Graph, str, tuple, tuple, dict], torch.fx.Node]

_START = Import("aotdyn.package.user_kernels", "start")


def graph_module(graph: Graph, launch: Launch | None = None) -> torch.fx.GraphModule:
    """The graph with a placeholder per input and one tuple as output. Functions of the graph are
    modules of the same kind inside of it, others are attributes.

    launch: what becomes of the user's kernels; without it they are those of this process."""
    params = [item.name for item in graph.inputs]
    return _module(params, graph.nodes, tuple(map(Value, graph.outputs)), launch)


def _module(
    params: Sequence[str], nodes: Sequence[Node], result: Any, launch: Launch | None
) -> torch.fx.GraphModule:
    made = torch.fx.Graph()
    root = torch.nn.Module()
    values = {name: made.placeholder(name) for name in params}
    numbers = itertools.count()

    def function(each: Any) -> torch.fx.Node:
        name = f"function_{next(numbers)}"
        if isinstance(each, Function):
            each = _module(each.params, each.nodes, each.result, launch)
        setattr(root, name, each)
        return made.get_attr(name)

    for node in nodes:
        if launch is not None and node.target == _START:
            kernel, *rest = node.args
            given = (_argument(arg, values, function) for arg in rest)
            values[node.name] = launch(made, f"{kernel.module}:{kernel.qualname}", *given)
            continue
        args = tuple(_argument(arg, values, function) for arg in node.args)
        kwargs = {key: _argument(arg, values, function) for key, arg in node.kwargs}
        if isinstance(node.target, str):
            values[node.name] = made.call_method(node.target, args, kwargs)
        else:
            target = _object(node.target)
            if target is operator.pow and repr(args[0]).startswith("-"):
                target = pow  # of the operator torch.fx makes `-2 ** x`, which is `-(2 ** x)`
            values[node.name] = made.call_function(target, args, kwargs)
    made.output(_argument(result, values, function))
    return torch.fx.GraphModule(root, made)


def _object(reference: Reference) -> Any:
    if isinstance(reference, Import):
        return resolve_import(reference)
    if isinstance(reference, Literal):
        return reference.value
    raise AotdynError(f"a graph cannot refer to a {type(reference).__name__}")


def _argument(arg: Any, values: dict[str, torch.fx.Node], function: Callable) -> Any:
    def convert(part: Any) -> Any:
        return _argument(part, values, function)

    if isinstance(arg, Value):
        return values[arg.name]
    if isinstance(arg, tuple):
        return tuple(map(convert, arg))
    if isinstance(arg, list):
        return list(map(convert, arg))
    if isinstance(arg, dict):
        return {key: convert(part) for key, part in arg.items()}
    if isinstance(arg, slice):
        return slice(*map(convert, (arg.start, arg.stop, arg.step)))
    if isinstance(arg, Function):
        return function(arg)
    if isinstance(arg, Reference):
        found = _object(arg)
        # The code that torch.fx writes has no name for a function that is an argument.
        return function(found) if isinstance(found, FunctionType) else found
    return arg
