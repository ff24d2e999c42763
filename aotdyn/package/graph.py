"""Graphs as data: a straight line of torch operators over tensors and symbolic ints.

An operator may take functions, which are straight lines of their own.

The tracer makes them, compilers take them, and `python_source` prints one as the Python function
that the `eager` target runs.
"""

import hashlib
import keyword
import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from .frozen import frozen, plain_text
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .reference import Import, Literal, Reference, int_text
from .user_kernels import UserKernel


@frozen
class Value:
    """A use of the value that an input or a node has defined, inside `args` and `kwargs`."""

    name: str


@frozen
class GraphInput:
    """An input: a tensor, or a Python number (`dtype` is then "int" or "symfloat", and `size` is
    empty).

    size, stride: ints, or texts of expressions over the graph's symbols; offset likewise.
    value: for an int, the text of its symbol; for a float, what it was while tracing.
    buffer: it was found among a module's buffers; not part of the graph's identity.
    """

    name: str
    dtype: str
    device: str = ""
    requires_grad: bool = False
    size: tuple[int | str, ...] = ()
    stride: tuple[int | str, ...] = ()
    offset: int | str = 0
    value: str = ""
    parameter: bool = False
    buffer: bool = field(default=False, repr=False)


@frozen
class Node:
    """One operation. target: a reference to the function, or the name of a Tensor method.

    args, kwargs: plain values, `Value`s and `Function`s in tuples, lists, dicts and slices, and
    `Reference`s. user: `file:line` of the program that asked for it. Not part of the graph's
    identity.
    """

    name: str
    target: Reference | str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    user: str = field(default="", repr=False)


@frozen
class Function:
    """A function that is an argument of a node. It sees nothing of the graph but its parameters.

    result: what it returns, built as an argument is. Names differ from all others of the graph,
    except that a parameter may have the name of the value that it stands for.
    """

    params: tuple[str, ...]
    nodes: tuple[Node, ...]
    result: Any


@frozen
class Symbol:
    """A symbolic int. hint: its value while tracing; lower, upper: bounds, None where open."""

    name: str
    hint: int
    lower: int | None
    upper: int | None


@frozen
class Graph:
    """inputs, nodes in order, and the names of what comes out.

    grad: whether gradients were enabled while it was recorded. relations: texts over the
    symbols that the guards make sure of. state: that of the process where the graph begins, as
    `process_state` gives it: under another one the same operations compute something else.
    options: what the program asks of the compiler; see `options.py`.
    providers: what registers the operators that are not torch's own; see `providers.py`. Not part
    of the graph's identity. kernels: of the program, that nodes start.
    """

    inputs: tuple[GraphInput, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    symbols: tuple[Symbol, ...] = ()
    relations: tuple[str, ...] = ()
    grad: bool = True
    state: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    providers: tuple[tuple[str, str], ...] = ()
    kernels: tuple[UserKernel, ...] = ()

    @property
    def id(self) -> str:
        """A hash of what the graph computes and for which inputs."""
        facts = (
            self.inputs,
            tuple((n.name, n.target, n.args, n.kwargs) for n in self.nodes),
            self.outputs,
            tuple((s.name, s.lower, s.upper) for s in self.symbols),
            self.relations,
            self.grad,
            self.state,
            *((self.options,) if self.options else ()),
            *((self.kernels,) if self.kernels else ()),
        )
        return hashlib.sha256(plain_text(facts).encode()).hexdigest()[:16]


def torch_names(graph: Graph) -> list[str]:
    """The names under torch that a graph's nodes call, at any depth."""
    found: list[str] = []
    todo: list[Any] = list(graph.nodes)
    while todo:
        part = todo.pop()
        if isinstance(part, Node):
            if isinstance(part.target, Import) and part.target.module == "torch":
                found.append(part.target.qualname)
            todo += (*part.args, *(value for _, value in part.kwargs))
        elif isinstance(part, Function):
            todo += part.nodes
        elif isinstance(part, list | tuple):
            todo += part
        elif isinstance(part, dict):
            todo += part.values()
    return found


INFIX = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<",
    "rshift": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


class SourcePrinter:
    """Prints one graph; `names` collects the references that the text uses."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.names: dict[str, Reference] = {}
        self._by_reference: dict[Reference, str] = {}
        self._taken = {i.name for i in graph.inputs} | set(_defined(graph.nodes))
        self._written: list[str] = []

    def name(self, reference: Reference) -> str:
        """The name that a reference is bound to in the text."""
        found = self._by_reference.get(reference)
        if found is None:
            wanted = "value"
            if isinstance(reference, Import):
                wanted = (reference.qualname or reference.module).rpartition(".")[2]
            if not wanted.isidentifier() or keyword.iskeyword(wanted):
                wanted = "value"
            found, count = wanted, 1
            while found in self._taken:
                found, count = f"{wanted}_{count}", count + 1
            self._taken.add(found)
            self._by_reference[reference] = found
            self.names[found] = reference
        return found

    def argument(self, arg: Any) -> str:
        """An argument as an expression."""
        kind = type(arg)
        if kind is Value:
            return arg.name
        if kind is tuple:
            return f"({', '.join(map(self.argument, arg))}{',' if len(arg) == 1 else ''})"
        if kind is list:
            return f"[{', '.join(map(self.argument, arg))}]"
        if kind is dict:
            return "{" + ", ".join(f"{k!r}: {self.argument(v)}" for k, v in arg.items()) + "}"
        if kind is slice:
            parts = map(self.argument, (arg.start, arg.stop, arg.step))
            return f"{self.name(Import('builtins', 'slice'))}({', '.join(parts)})"
        if kind is Function:
            return self._function(arg)
        if isinstance(arg, Reference):
            return self.name(arg)
        if kind is int:
            return int_text(arg)
        if arg is None or arg is Ellipsis or kind in (bool, str, bytes):
            return "..." if arg is Ellipsis else repr(arg)
        if kind is float and math.isfinite(arg):
            return repr(arg)
        return self.name(Literal(arg))

    def call(self, node: Node) -> str:
        """A node's right-hand side."""
        args = [self.argument(arg) for arg in node.args]
        plain = [(k, v) for k, v in node.kwargs if k.isidentifier() and not keyword.iskeyword(k)]
        args += [f"{key}={self.argument(arg)}" for key, arg in plain]
        if len(plain) < len(node.kwargs):  # such as `from` of `Tensor.random_`
            args.append(f"**{self.argument({k: v for k, v in node.kwargs if (k, v) not in plain})}")
        if isinstance(node.target, str):
            return f"{args[0]}.{node.target}({', '.join(args[1:])})"
        target = node.target
        infix = len(args) == 2 and not node.kwargs
        if infix and isinstance(target, Import) and target.module == "operator":
            if target.qualname in INFIX:
                if args[0].startswith("-"):  # `-2 ** x` is `-(2 ** x)`
                    args[0] = f"({args[0]})"
                return f"{args[0]} {INFIX[target.qualname]} {args[1]}"
            if target.qualname == "getitem":
                return f"{args[0]}[{args[1]}]"
        return f"{self.name(target)}({', '.join(args)})"

    def source(self) -> str:
        """The text of a function `graph` of the graph's inputs that returns a tuple."""
        graph = self.graph
        params = [item.name for item in graph.inputs]
        result = tuple(map(Value, graph.outputs))
        return "\n".join(self.define("graph", params, graph.nodes, result)) + "\n"

    def _function(self, function: Function) -> str:
        """The name of a function, whose definition is written before the line that uses it."""
        name, count = "function", 1
        while name in self._taken:
            name, count = f"function_{count}", count + 1
        self._taken.add(name)
        self._written += self.define(name, function.params, function.nodes, function.result)
        return name

    def define(
        self, name: str, params: Sequence[str], nodes: Sequence[Node], result: Any
    ) -> list[str]:
        """The lines of a definition. A value is dropped after its last use, so that memory is as
        in the original program."""
        last: dict[str, int] = {}
        for index, node in enumerate(nodes):
            for used in values_in((node.args, dict(node.kwargs))):
                last[used] = index
            last.setdefault(node.name, index)
        kept = set(values_in(result))
        outer, self._written = self._written, []
        lines = [f"def {name}({', '.join(params)}):"]
        for index, node in enumerate(nodes):
            line = f"    {node.name} = {self.call(node)}"
            dead = sorted(n for n, at in last.items() if at == index and n not in kept)
            if dead:
                line += f"; {' = '.join(dead)} = None"
            lines += [f"    {written}" for written in self._written]
            self._written.clear()
            lines.append(line)
        lines.append(f"    return {self.argument(result)}")
        self._written = outer
        return lines


def values_in(arg: Any) -> list[str]:
    """The names of all values used inside an argument, in order."""
    if isinstance(arg, Value):
        return [arg.name]
    if isinstance(arg, tuple | list):
        return [name for part in arg for name in values_in(part)]
    if isinstance(arg, dict):
        return [name for part in arg.values() for name in values_in(part)]
    if isinstance(arg, slice):
        return values_in((arg.start, arg.stop, arg.step))
    return []  # a function uses nothing but what the node passes to it


def functions_in(arg: Any) -> Iterator[Function]:
    """The functions inside an argument, without those inside them."""
    if isinstance(arg, Function):
        yield arg
    elif isinstance(arg, tuple | list):
        for part in arg:
            yield from functions_in(part)
    elif isinstance(arg, dict):
        for part in arg.values():
            yield from functions_in(part)


def _defined(nodes: Sequence[Node]) -> Iterator[str]:
    """The names of all nodes, and of all names inside functions."""
    for node in nodes:
        yield node.name
        for function in functions_in((node.args, dict(node.kwargs))):
            yield from function.params
            yield from _defined(function.nodes)


def python_source(graph: Graph) -> tuple[str, dict[str, Reference]]:
    """The Python text of a graph and the references it needs."""
    printer = SourcePrinter(graph)
    text = printer.source()
    return text, printer.names


def function_source(function: Function) -> tuple[str, dict[str, Reference]]:
    """The Python text of a function, under the name `function`, and the references it needs."""
    printer = SourcePrinter(Graph((), function.nodes, ()))
    lines = printer.define("function", function.params, function.nodes, function.result)
    return "\n".join(lines) + "\n", printer.names
