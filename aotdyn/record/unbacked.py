"""Numbers and sizes that depend on data: `item()`, `nonzero()`, boolean masks. Each has a symbol
whose value nobody knows while tracing (unbacked); what operators assume of it is checked by the
graph when it runs. A check that fails makes the frame run as plain Python.
"""

from typing import Any

import sympy
import torch

from ..package.graph import Value
from ..package.reference import Import
from ..package.source import Size
from .shapes import SymbolPrinter
from .signals import GraphBreak
from .variables import Symbolic, TensorVariable


class Unbacked:
    """values: symbol -> the variable whose value it is."""

    def __init__(self, t):
        self.t = t
        self.values: dict[sympy.Symbol, Symbolic] = {}
        self._checked: set[sympy.Basic] = set()

    def note(self, variable: Any) -> None:
        """Where the symbols that an operator has made get their values from."""
        if isinstance(variable, Symbolic):
            self._bind(variable.value, lambda: variable)
        elif isinstance(variable, TensorVariable):
            for dim, size in enumerate(variable.fake.shape):
                if isinstance(size, torch.SymInt):
                    self._bind(size, lambda dim=dim: size_variable(self.t, variable, dim))

    def _bind(self, value: Any, make) -> None:
        # Not `expr`, in which a symbol that is known to equal another one is replaced by it.
        symbol = value.node._expr
        if not isinstance(symbol, sympy.Symbol) or symbol in self.t.shapes.bindings:
            return
        if symbol not in self.values:
            if self.t.graph.is_nested:
                raise GraphBreak("nested", f"a number that depends on data, {symbol}")
            self.values[symbol] = make()

    def depends_on_data(self, value: Any) -> bool:
        """Whether a number, symbolic or not, depends on data."""
        if not isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return False
        return not value.node._expr.free_symbols <= self.t.shapes.bindings.keys()

    def check(self) -> None:
        """Adds checks to the graph for what has been assumed since the last time, as far as it is
        about numbers that the graph has by now: before the operator that assumes it, where that
        is possible.

        Raises GraphBreak for what cannot be checked.
        """
        for expression in self.t.shapes.assumptions():
            if expression in self._checked:
                continue
            known = expression.free_symbols <= self.values.keys() | self.t.shapes.bindings.keys()
            if known:
                self._checked.add(expression)
                self._add_check(expression)

    def checked(self, condition: Symbolic) -> None:
        """A condition that the program itself checks."""
        self._checked.add(condition.value.node._expr)
        self._check_node(Value(self.t.graph.symbol_name(condition)))

    def _add_check(self, expression: sympy.Basic) -> None:
        for part in expression.args if isinstance(expression, sympy.And) else (expression,):
            names: dict[sympy.Symbol, str] = {}
            extremes = {"max": self._extreme("sym_max"), "min": self._extreme("sym_min")}
            scope: dict[str, Any] = dict(extremes)
            for symbol in sorted(part.free_symbols, key=str):
                names[symbol] = f"s{len(names)}"
                scope[names[symbol]] = _Term(self.t, Value(self._value_of(symbol)))
            try:
                found = eval(SymbolPrinter(names).doprint(part), {"__builtins__": {}}, scope)
            except (TypeError, NameError, KeyError, ValueError, AttributeError) as error:
                raise GraphBreak("data_dependent", f"a check of {part}") from error
            if not isinstance(found, _Term):
                raise GraphBreak("data_dependent", f"a check of {part}")
            self._check_node(found.value)

    def _check_node(self, value: Value) -> None:
        self.t.graph.add("check", Import("torch", "_check"), (value,))

    def _value_of(self, symbol: sympy.Symbol) -> str:
        """The name of the graph's value that a symbol stands for."""
        variable = self.values.get(symbol)
        if variable is None:
            source = self.t.shapes.bindings.get(symbol)
            variable = self.t.known_at(source)
            if isinstance(source, Size):
                tensor = self.t.known_at(source.of)
                if isinstance(tensor, TensorVariable):
                    variable = size_variable(self.t, tensor, source.dim)
        if not isinstance(variable, Symbolic):
            raise GraphBreak("data_dependent", f"a check of {symbol}")
        return self.t.graph.symbol_name(variable)

    def _extreme(self, name: str):
        def extreme(*terms: Any) -> "_Term":
            result = terms[0]
            for term in terms[1:]:
                result = _node(self.t, name, Import("torch", name), result, term)
            return result

        return extreme


def size_variable(t, tensor: TensorVariable, dim: int) -> Symbolic:
    """The symbolic size of a tensor; a node of the graph once it is used."""

    make = lambda: t.graph.add_size(tensor, dim)  # noqa: E731
    return t.new(Symbolic(tensor.fake.shape[dim], make=make))


class _Term:
    """A value of the graph in an expression that is made into nodes by evaluating it."""

    def __init__(self, t, value: Value):
        self.t = t
        self.value = value

    __hash__ = None  # type: ignore[assignment]


def _node(t, wanted: str, target: Import, *terms: Any) -> _Term:
    args = tuple(term.value if isinstance(term, _Term) else term for term in terms)
    return _Term(t, Value(t.graph.add_pure(wanted.strip("_"), target, args)))


def _overload(name: str, reflected: str = "") -> None:
    target = Import("operator", name)
    setattr(_Term, f"__{name}__", lambda self, other: _node(self.t, name, target, self, other))
    if reflected:
        setattr(_Term, reflected, lambda self, other: _node(self.t, name, target, other, self))


for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
    _overload(_name, f"__r{_name}__")
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _overload(_name)
_Term.__neg__ = lambda self: _node(self.t, "neg", Import("operator", "neg"), self)
