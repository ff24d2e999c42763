"""A graph's inputs as fake tensors and symbolic ints, in a shape environment that knows what the
guards make sure of, and no more."""

from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch._guards import Source
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.utils._sympy import functions

from ...graph import Graph, GraphInput, Symbol
from ...symbolic_sums import mend_sums
from ..refusal import Refused

_FUNCTIONS = {name: getattr(functions, name) for name in functions.__all__} | {
    name: getattr(sympy, name)
    for name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge", "And", "Or", "Not", "Abs", "Mul", "Add", "Pow")
}
_FUNCTIONS |= {"true": sympy.true, "false": sympy.false}


@dataclass(frozen=True)
class _SymbolSource(Source):
    """Where a symbol comes from, for messages only."""

    text: str

    @property
    def name(self) -> str:
        return self.text


@dataclass(frozen=True)
class Fakes:
    """inputs: one fake tensor or SymInt for each input of the graph; a float is a tensor whose item
    is a SymFloat, without a value while compiling if floats are unknown. symbols: those of the
    environment by the graph's names. known: how many guards the environment has been given; those
    that follow are the compiler's own."""

    mode: FakeTensorMode
    env: ShapeEnv
    inputs: list[Any]
    symbols: dict[str, sympy.Symbol]
    known: int

    def added(self) -> list[Any]:
        """The conditions, as sympy expressions, that compiling has relied on beyond the known."""
        return [guard.expr for guard in self.env.guards[self.known :]]


def fake_inputs(graph: Graph, unknown_floats: bool = False) -> Fakes:
    """Raises Refused for a graph whose expressions cannot be read."""
    mend_sums()
    env = ShapeEnv(
        duck_shape=False,
        specialize_zero_one=False,
        # `item()` and `nonzero()` in the graph give symbols without a hint.
        allow_scalar_outputs=True,
        allow_dynamic_output_shape_ops=True,
    )
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    symbols = {symbol.name: _symbol(env, symbol) for symbol in graph.symbols}
    reader = _Reader(env, symbols)
    for relation in graph.relations:
        read = reader.expression(relation)
        if not read.free_symbols <= set(symbols.values()):
            continue  # about a float; what is not known is checked where code relies on it
        if not env.evaluate_expr(read):
            raise Refused(f"the recorded relation {relation} does not hold for the hints")
    known = len(env.guards)
    inputs = [
        _unknown_float(mode)
        if unknown_floats and item.dtype == "symfloat"
        else _fake(mode, reader, item, graph.grad)
        for item in graph.inputs
    ]
    return Fakes(mode, env, inputs, symbols, known)


def _symbol(env: ShapeEnv, symbol: Symbol) -> sympy.Symbol:
    """A symbol of the environment with the bounds that the guards make sure of."""
    made = env.create_symbol(
        symbol.hint,
        _SymbolSource(symbol.name),
        DimDynamic.DYNAMIC,
        positive=True if symbol.lower is not None and symbol.lower > 0 else None,
        do_not_specialize_zero_one=True,
    )
    if not isinstance(made, sympy.Symbol):
        raise Refused(f"torch makes the constant {made} of the symbol {symbol.name}")
    lower = -sympy.oo if symbol.lower is None else symbol.lower
    upper = sympy.oo if symbol.upper is None else symbol.upper
    env.constrain_symbol_range(made, compiler_min=_end(lower), compiler_max=_end(upper))
    return made


def _end(value: Any) -> int:
    """An end of a range: torch writes the open ends as the ends of 64-bit ints."""
    if value == sympy.oo:
        return (1 << 63) - 1
    return -(1 << 63) + 1 if value == -sympy.oo else int(value)


class _Reader:
    """Reads sizes, strides and relations, which are texts over the graph's symbols."""

    def __init__(self, env: ShapeEnv, symbols: dict[str, sympy.Symbol]):
        self.env = env
        self.names = {**_FUNCTIONS, **symbols}

    def expression(self, text: str) -> Any:
        try:
            return sympy.sympify(text, locals=self.names)
        except (sympy.SympifyError, SyntaxError, TypeError, AttributeError) as error:
            raise Refused(f"the expression {text!r} cannot be read: {error}") from error

    def int(self, value: int | str) -> Any:
        """An int, or a SymInt."""
        if isinstance(value, int):
            return value
        found = self.expression(value)
        if found.is_number:
            return int(found)
        hint = int(found.xreplace(self.env.backed_var_to_val))
        return self.env.create_symintnode(found, hint=hint)


def _float(mode: FakeTensorMode, env: ShapeEnv, item: GraphInput) -> torch.Tensor:
    """A float as AOTAutograd wants it: a tensor that is asked for its item."""
    hint = float(item.value)
    source = _SymbolSource(item.name)
    symbol = env.create_unspecified_symbol(hint, source=source, dynamic_dim=DimDynamic.DYNAMIC)
    with mode:
        made = torch.empty((), dtype=torch.float64)
    made.item_memo = env.create_symfloatnode(symbol, hint=hint, source=source)
    return made


def _unknown_float(mode: FakeTensorMode) -> torch.Tensor:
    """A float that no operator can be specialized to."""
    with mode:
        return torch.empty((), dtype=torch.float64)


def float_symbol(fake: torch.Tensor) -> str | None:
    """The name of the symbol of a float; None if its value is unknown."""
    return None if fake.item_memo is None else str(fake.item_memo.node.expr)


def _fake(mode: FakeTensorMode, reader: _Reader, item: GraphInput, grad: bool) -> Any:
    if item.dtype == "int":
        return reader.int(item.value)
    if item.dtype == "symfloat":
        return _float(mode, reader.env, item)
    size = [reader.int(value) for value in item.size]
    stride = [reader.int(value) for value in item.stride]
    with mode, torch.enable_grad():
        made = torch.empty_strided(
            size, stride, dtype=getattr(torch, item.dtype), device=item.device or "cpu"
        )
        if not item.requires_grad:
            return made
        if item.parameter or not grad or 0 in stride:
            return made.requires_grad_()
        # Whether it is a leaf was not recorded; a leaf would refuse updates in place.
        return made.copy_(torch.empty_like(made).requires_grad_())

