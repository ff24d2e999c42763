"""Graphs moved to another device: recorded with tensors of one, compiled for another."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from .graph import Graph
from .reference import Literal

Devices = Mapping[str, str]  # from a device's name to that of the device it stands for


def moved_graph(graph: Graph, devices: Devices) -> Graph:
    """The graph as if its inputs, and the devices that it names, had been on other devices."""
    inputs = tuple(
        replace(item, device=devices.get(item.device, item.device)) for item in graph.inputs
    )
    nodes = tuple(
        replace(
            node,
            args=_moved(node.args, devices),
            kwargs=tuple((name, _moved(value, devices)) for name, value in node.kwargs),
        )
        for node in graph.nodes
    )
    return replace(graph, inputs=inputs, nodes=nodes)


def _moved(value: Any, devices: Devices) -> Any:
    """An argument of a node. A text is taken for a device where it is the whole name of one."""
    if isinstance(value, tuple):
        return tuple(_moved(part, devices) for part in value)
    if isinstance(value, list):
        return [_moved(part, devices) for part in value]
    if isinstance(value, dict):
        return {key: _moved(part, devices) for key, part in value.items()}
    if isinstance(value, Literal):
        return Literal(_moved(value.value, devices))
    if isinstance(value, torch.device):
        return torch.device(devices.get(str(value), value))
    if isinstance(value, str):
        return devices.get(value, value)
    return value
