"""Functions inside the graph: what is recorded into one, and which values may cross its border.

The values of a function exist while it runs. What comes out goes through its result; a value that
got out in another way (on an object, in a list) breaks the graph where it is used.
"""

from typing import Any

from ..package.graph import Function, Node, Value, values_in


class Scope:
    """The nodes of a function that is being recorded, or has been.

    reads: other functions, already recorded, whose values it may use: they are handed over.
    backward: it may be differentiated itself, though gradients are off while it is traced.
    """

    def __init__(self, reads: tuple["Scope", ...] = (), backward: bool = False):
        self.reads = reads
        self.backward = backward
        self.nodes: list[Node] = []
        self.params: list[str] = []

    def free(self, result: Any) -> list[str]:
        """The names that it uses and does not define, in order of their first use."""
        defined = {node.name for node in self.nodes} | set(self.params)
        used = [name for node in self.nodes for name in values_in((node.args, dict(node.kwargs)))]
        return [n for n in dict.fromkeys([*used, *values_in(result)]) if n not in defined]

    def function(self, params: list[str], result: Any) -> Function:
        """The function that returns `result`."""
        return Function(tuple(params), tuple(self.nodes), result)


def values(names: list[str]) -> tuple[Value, ...]:
    """Uses of values."""
    return tuple(map(Value, names))
