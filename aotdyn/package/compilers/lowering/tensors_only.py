"""Makes an aten graph take and give tensors only, because AOTInductor's code knows nothing else.

Ints that come in are read from the size of some tensor, if need be of one that is passed for the
purpose; ints that go out are computed by the caller; constants become inputs.
"""

import operator
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.utils._sympy.printers import PythonPrinter

from ..refusal import Refused

_aten = torch.ops.aten

_ADDED = 1 << 40

UNREAD = "aotdyn_unread"  # marks an input, in a node's `meta`, that the code does without


@dataclass
class Interface:
    """How a part's own inputs and outputs relate to the tensors of its code.

    inputs: of each tensor the code takes ("input", index), ("constant", index), ("float", index):
    a tensor of that float, ("number", text): one of an int, or ("size", text): one of that size;
    ("int", text) where the code takes ints. outputs: ("tensor", index), ("item", index), ("none",)
    or ("int", text), which may be a float or bool as well.
    symbols: for each symbol of the texts an expression over `a`, the list of inputs.
    constants: the tensors that the code takes, by index. ranges: lower bounds of the ints.
    """

    arity: int
    inputs: list[tuple] = field(default_factory=list)
    outputs: list[tuple] = field(default_factory=list)
    symbols: dict[str, str] = field(default_factory=dict)
    constants: list[torch.Tensor] = field(default_factory=list)
    ranges: list[Any] = field(default_factory=list)


def expression(value: Any) -> Any:
    """The sympy expression of a number, symbolic or not."""
    return value.node.expr if _is_symbolic(value) else sympy.sympify(value)


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def text(expr: Any) -> str:
    """An expression as Python."""
    return _Printer().doprint(expr)


class _Printer(PythonPrinter):
    """Floats with all their digits."""

    def _print_Float(self, expr: sympy.Float) -> str:
        return repr(float(expr))

    def _print_ToFloat(self, expr: sympy.Expr) -> str:
        return f"float({self._print(expr.args[0])})"


def readable_symbols(
    examples: list[Any], interface: Interface
) -> dict[Any, tuple[int, str, int]]:
    """Where each symbol can be read from a tensor: (index, "size" or "stride", dimension). Fills in
    the interface's symbols."""
    sources: dict[Any, tuple[int, str, int]] = {}
    for index, value in enumerate(examples):
        if not isinstance(value, torch.Tensor):
            continue
        for name, parts in (("size", value.size()), ("stride", value.stride())):
            for dim, part in enumerate(parts):
                expr = expression(part)
                if isinstance(expr, sympy.Symbol):
                    sources.setdefault(expr, (index, name, dim))
                    interface.symbols.setdefault(str(expr), f"a[{index}].{name}({dim})")
    for index, value in enumerate(examples[: interface.arity]):
        if isinstance(value, torch.SymInt):
            expr = expression(value)
            if isinstance(expr, sympy.Symbol):
                interface.symbols.setdefault(str(expr), f"a[{index}]")
    return sources


def tensors_only(
    module: torch.fx.GraphModule,
    examples: list[Any],
    mode: FakeTensorMode,
    arity: int,
    floats: Collection[int] = (),
) -> tuple[torch.fx.GraphModule, list[torch.Tensor], Interface]:
    """The graph changed in place, the examples of its inputs, and what the caller has to do.

    arity: how many inputs the caller gives; those that follow must not be needed. floats: which of
    them are floats to the caller. Raises Refused for an input or output that cannot be expressed.
    """
    work = _Rewriting(module, examples, mode, arity, floats)
    work.rewrite_inputs()
    work.lift_constants()
    work.rewrite_outputs()
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    return module, work.tensors, work.interface


class _Rewriting:
    def __init__(
        self,
        module: torch.fx.GraphModule,
        examples: list[Any],
        mode: FakeTensorMode,
        arity: int,
        floats: Collection[int],
    ):
        self.floats = floats
        self.module = module
        self.graph = module.graph
        self.examples = examples
        self.mode = mode
        self.placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        if len(self.placeholders) != len(examples):
            raise Refused("the graph has inputs without examples")
        # What is added goes before the first node that computes; constants are going to be removed.
        nodes = list(self.graph.nodes)
        start = nodes.index(self.placeholders[-1]) + 1 if self.placeholders else 0
        self.first = next(node for node in nodes[start:] if node.op != "get_attr")
        self.tensors: list[torch.Tensor] = []
        self.interface = Interface(arity)
        self.sources = readable_symbols(examples, self.interface)
        self._read_items()

    def _read_items(self) -> None:
        """The numbers that the graph asks inputs of a single element for."""
        for index, node in enumerate(self.placeholders[: self.interface.arity]):
            for user in node.users:
                value = user.meta.get("val")
                if user.target is _aten._local_scalar_dense.default and _is_symbolic(value):
                    expr = expression(value)
                    if isinstance(expr, sympy.Symbol):
                        text = f"a[{index}]" if index in self.floats else f"a[{index}].item()"
                        self.interface.symbols.setdefault(str(expr), text)

    def rewrite_inputs(self) -> None:
        for index, (node, value) in enumerate(zip(self.placeholders, self.examples)):
            if isinstance(value, torch.Tensor):
                if node.meta.get(UNREAD):
                    self.graph.erase_node(node)
                    continue
                self.interface.inputs.append(("input", index))
                self.tensors.append(value)
                continue
            if node.users:
                if not isinstance(value, torch.SymInt):
                    raise Refused(f"an input that is a {type(value).__name__}")
                node.replace_all_uses_with(self._int_node(node, value))
            self.graph.erase_node(node)

    def _int_node(self, node: torch.fx.Node, value: torch.SymInt) -> torch.fx.Node:
        """A node that reads the int from a tensor."""
        expr = expression(value)
        source = self.sources.get(expr)
        if source is None and self._depends_on_data(expr):
            return self._number(node, value, expr)
        if source is None:
            return self._from_carrier(node, value, expr)
        index, name, dim = source
        function = _aten.sym_size.int if name == "size" else _aten.sym_stride.int
        return self._computed(function, (self.placeholders[index], dim), value)

    def _computed(self, function: Any, args: tuple, value: Any) -> torch.fx.Node:
        with self.graph.inserting_before(self.first):
            made = self.graph.call_function(function, args)
        made.meta["val"] = value
        return made

    def _depends_on_data(self, expr: Any) -> bool:
        """Whether it is a number that an earlier part has computed, of any sign."""
        env = self.mode.shape_env
        return (
            isinstance(expr, sympy.Symbol)
            and expr not in env.backed_var_to_val
            and not env.bound_sympy(expr).lower >= 0
        )

    def _number(self, node: torch.fx.Node, value: torch.SymInt, expr: Any) -> torch.fx.Node:
        """A further input, a tensor of the number, that the graph asks for its item."""
        with self.mode:
            example = torch.empty((), dtype=torch.int64)
        with self.graph.inserting_before(node):
            given = self.graph.placeholder(f"{node.name}_number")
        given.meta["val"] = example
        self.interface.inputs.append(("number", self._printed(expr)))
        self.tensors.append(example)
        with self.graph.inserting_before(self.first):
            made = self.graph.call_function(_aten._local_scalar_dense.default, (given,))
        made.meta["val"] = value
        made.meta["unbacked_bindings"] = {expr: ()}
        return made

    def _from_carrier(self, node: torch.fx.Node, value: torch.SymInt, expr: Any) -> torch.fx.Node:
        """A further input: a tensor of that size over a single byte. No size is negative, and of
        zero sizes torch knows too much: to an int that may be either something is added."""
        env = self.mode.shape_env
        lowest = env.bound_sympy(expr).lower
        added = 0 if lowest >= 1 else _ADDED
        if not lowest >= 1 - added:
            self.interface.ranges.append(sympy.Ge(expr, 1 - added))
        size = value + added
        with self.mode, env.suppress_guards():
            example = torch.empty_strided((size,), (0,), dtype=torch.uint8)
        with self.graph.inserting_before(node):
            carrier = self.graph.placeholder(f"{node.name}_carrier")
        carrier.meta["val"] = example
        self.interface.inputs.append(("size", self._printed(expr + added)))
        self.tensors.append(example)
        found = self._computed(_aten.sym_size.int, (carrier, 0), size)
        return self._computed(operator.sub, (found, added), value) if added else found

    def lift_constants(self) -> None:
        for node in [n for n in self.graph.nodes if n.op == "get_attr" and n.users]:
            value = _attribute(self.module, node.target)
            if isinstance(value, torch.fx.GraphModule):  # what a branch computes
                if any(map(_constants_of, value.modules())):
                    raise Refused("a branch holds a constant")
                continue
            if type(value) is not torch.Tensor or value.is_quantized or value.is_sparse:
                raise Refused(f"the graph holds a {type(value).__name__}")
            with unset_fake_temporarily():
                value = value.detach().contiguous()
            with self.mode:
                example = torch.empty(value.shape, dtype=value.dtype)
            with self.graph.inserting_before(self.first):
                made = self.graph.placeholder(f"{node.name}_constant")
            made.meta["val"] = example
            node.replace_all_uses_with(made)
            self.graph.erase_node(node)
            self.interface.inputs.append(("constant", len(self.interface.constants)))
            self.interface.constants.append(value)
            self.tensors.append(example)

    def rewrite_outputs(self) -> None:
        node = next(n for n in self.graph.nodes if n.op == "output")
        visible = set(node.meta.get("user_visible_output_idxs", ()))
        kept: list[torch.fx.Node] = []
        still_visible = []
        for index, value in enumerate(node.args[0]):
            how = self._output(value, len(kept))
            self.interface.outputs.append(how)
            if how[0] in ("tensor", "item"):
                if index in visible:
                    still_visible.append(len(kept))
                kept.append(value)
        node.args = (tuple(kept),)
        if "user_visible_output_idxs" in node.meta:
            node.meta["user_visible_output_idxs"] = still_visible
        original = node.meta.pop("original_output_strides", None)
        if original is not None:
            node.meta["original_output_strides"] = [
                strides
                for strides, how in zip(original, self.interface.outputs)
                if how[0] in ("tensor", "item")
            ]

    def _output(self, value: Any, index: int) -> tuple:
        if value is None:
            return ("none",)
        if isinstance(value, bool | int | float):
            return ("int", repr(value))
        if not isinstance(value, torch.fx.Node):
            raise Refused(f"an output that is a {type(value).__name__}")
        example = value.meta.get("val")
        if isinstance(example, torch.Tensor):
            return ("tensor", index)
        if not _is_symbolic(example):
            raise Refused(f"an output that is a {type(example).__name__}")
        expr = expression(example)
        if all(str(symbol) in self.interface.symbols for symbol in expr.free_symbols):
            return ("int", self._printed(expr))
        if not isinstance(example, torch.SymInt):
            raise Refused(f"an output that is a {type(example).__name__} of what is computed")
        return ("item", index)

    def _printed(self, expr: Any) -> str:
        for symbol in expr.free_symbols:
            if str(symbol) not in self.interface.symbols:
                raise Refused(f"the int {expr} does not follow from the inputs")
        return text(expr)


def _constants_of(module: torch.nn.Module) -> list[Any]:
    """What a graph's nodes take from it that is no graph."""
    if not isinstance(module, torch.fx.GraphModule):
        return []
    found = [_attribute(module, node.target) for node in module.graph.find_nodes(op="get_attr")]
    return [value for value in found if not isinstance(value, torch.fx.GraphModule)]


def _attribute(module: torch.nn.Module, path: str) -> Any:
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name)
    return found
