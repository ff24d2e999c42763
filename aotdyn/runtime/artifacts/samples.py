"""Inputs for replays: random tensors and ints of the recorded kinds, sizes and layouts.

Used by `replay.py` only.
"""

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...package.graph import Graph, GraphInput

_FUNCTIONS = {
    "Eq": operator.eq, "Ne": operator.ne, "Lt": operator.lt, "Le": operator.le,
    "Gt": operator.gt, "Ge": operator.ge, "Mod": operator.mod, "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv, "CleanDiv": operator.floordiv, "Max": max, "Min": min,
    "And": lambda *parts: all(parts), "Or": lambda *parts: any(parts), "Not": operator.not_,
    "CeilDiv": lambda a, b: -(-a // b), "Abs": abs, "IntTrueDiv": operator.truediv,
    "__builtins__": {},
}  # fmt: skip

_NAME = re.compile(r"[A-Za-z_]\w*")

Values = dict[str, int]
Range = tuple[int, int]


def assignments(graph: Graph) -> Iterator[Values]:
    """Values for the symbols: those of the recording, and others that fulfil the relations."""
    hints = {symbol.name: symbol.hint for symbol in graph.symbols}
    yield hints
    changes = [lambda hint, index: hint + 1 + index, lambda hint, index: 2 * hint]
    for change in changes if hints else ():
        changed = {name: change(hint, i) for i, (name, hint) in enumerate(hints.items())}
        if _fulfils(graph, changed):
            yield changed


def _fulfils(graph: Graph, symbols: Values) -> bool:
    for symbol in graph.symbols:
        value = symbols[symbol.name]
        if symbol.lower is not None and value < symbol.lower:
            return False
        if symbol.upper is not None and value > symbol.upper:
            return False
    try:
        return all(_value(relation, symbols) for relation in graph.relations)
    except (NameError, SyntaxError, TypeError, ZeroDivisionError):
        return False


def _value(text: int | str, symbols: Values) -> Any:
    return eval(text, dict(_FUNCTIONS), symbols) if isinstance(text, str) else text


# -- floats --------------------------------------------------------------------------------------
#
# Positive ones keep square roots and logarithms away from nan, which would hide errors.

Fill = Callable[[GraphInput, tuple, torch.Generator], torch.Tensor]


def _rand(size: tuple, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(size, generator=generator, dtype=torch.float64)


def _randn(size: tuple, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(size, generator=generator, dtype=torch.float64)


def positive(item: GraphInput, size: tuple, generator: torch.Generator) -> torch.Tensor:
    """Between a quarter and three quarters."""
    return _rand(size, generator) * 0.5 + 0.25


def normal(item: GraphInput, size: tuple, generator: torch.Generator) -> torch.Tensor:
    """Of both signs. Weights keep the size of what they are multiplied with: values that grow
    from layer to layer end as infinities, where nothing can be compared."""
    rows = torch.Size(size[1:]).numel() if item.requires_grad and len(size) > 1 else 4
    return _randn(size, generator) / max(rows, 1) ** 0.5


def small(item: GraphInput, size: tuple, generator: torch.Generator) -> torch.Tensor:
    """Up to a hundredth."""
    return _rand(size, generator) * 1e-2


# -- ints ----------------------------------------------------------------------------------------

TWO = (0, 2)

# Of ints: indices that are in range almost everywhere, and what a graph takes that wants others.
_FALLBACKS: tuple[Range, ...] = (TWO, (0, 1), (1, 2), (1, 3))
# Beside the sizes of the inputs, which indices have to stay below.
_HIGHS = (100, 30, 10, 5, 3)


def _ranges(graph: Graph, symbols: Values, starts: list[int]) -> list[Range]:
    """From what tells most downwards; which of them a graph takes only the graph can tell."""
    sizes = {_value(part, symbols) for item in graph.inputs for part in item.size}
    highs = sorted({*_HIGHS, *(size for size in sizes if 3 < size < 2**20)}, reverse=True)
    return [
        (-40, 40),
        *((0, high) for high in highs),
        *((start, start + high) for start in starts for high in highs),
    ]


def _starts(graph: Graph, symbols: Values) -> list[int]:
    """The numbers in a graph, from which ints may be counted: classes of a vocabulary, say."""
    found = {*symbols.values()}
    todo: list[Any] = [node.args for node in graph.nodes]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple | list):
            todo += part
        elif type(part) is int:
            found.add(part)
    return sorted(number for number in found if 1 < number < 2**20)[:_MOST_STARTS]


_MOST_STARTS = 4


def int_ranges(graph: Graph, symbols: Values, accepts: Callable[["Samples"], bool]) -> list[Range]:
    """For each input the range of ints that the graph takes there, as wide as can be.

    accepts: whether the graph runs with such inputs.
    """
    kinds = [_int_dtype(item) for item in graph.inputs]
    if not any(kinds):
        return [TWO] * len(kinds)
    found = [TWO] * len(kinds)
    starts = _starts(graph, symbols)
    for fallback in (*_FALLBACKS, *((start, start + 1) for start in starts)):
        found = [fallback] * len(kinds)
        if accepts(Samples(graph, symbols, positive, found)):
            break
    for index, dtype in enumerate(kinds):
        for wider in _ranges(graph, symbols, starts) if dtype else ():
            info = torch.iinfo(dtype)
            if wider[0] < info.min or wider[1] > info.max:
                continue
            tried = [*found[:index], wider, *found[index + 1 :]]
            if accepts(Samples(graph, symbols, positive, tried)):
                found = tried
                break
    return found


def _int_dtype(item: GraphInput) -> torch.dtype | None:
    dtype = getattr(torch, item.dtype, None)
    if not isinstance(dtype, torch.dtype) or dtype.is_floating_point or dtype.is_complex:
        return None
    return None if dtype is torch.bool else dtype


# Which of several values ends up at an index that is there twice is for none of these to say.
_WRITES = {
    "index_copy", "index_copy_", "index_put", "index_put_", "scatter", "scatter_", "setitem",
    "put_",
}  # fmt: skip


def _writes_at_indices(graph: Graph) -> bool:
    names = (getattr(node.target, "qualname", node.target) for node in graph.nodes)
    return any(name.rpartition(".")[2] in _WRITES for name in names)


# -- inputs --------------------------------------------------------------------------------------


class Samples:
    """Inputs that can be made again and again, always equal.

    weights: the values of inputs that are not made up. possible: whether they can be made at all.
    """

    def __init__(
        self,
        graph: Graph,
        symbols: Values,
        fill: Fill,
        ranges: list[Range],
        weights: dict[str, torch.Tensor] | None = None,
    ):
        self.graph = graph
        self.symbols = symbols
        self.fill = fill
        self.ranges = ranges
        self.weights = weights or {}
        self.possible = True
        self._distinct = _writes_at_indices(graph)
        self._double = False
        self._shift = 0.0
        self._seed = 0
        try:
            self.make()
        except (RuntimeError, NameError, NotImplementedError):
            self.possible = False

    def exact(self) -> "Samples":
        """The same inputs in double precision."""
        return self._changed(_double=True)

    def shifted(self, by: float, seed: int) -> "Samples":
        """The same inputs, floats moved by some multiple of their own size."""
        return self._changed(_shift=by, _seed=seed)

    def _changed(self, **values: Any) -> "Samples":
        made = object.__new__(Samples)
        made.__dict__.update(self.__dict__, **values)
        return made

    def make(self) -> tuple[list[Any], list[torch.Tensor]]:
        """The inputs, and the leaves that get gradients."""
        generator = torch.Generator().manual_seed(7)
        noise = torch.Generator().manual_seed(self._seed)
        leaves: list[torch.Tensor] = []
        return [
            self._one(item, span, generator, noise, leaves)
            for item, span in zip(self.graph.inputs, self.ranges)
        ], leaves

    def _one(
        self,
        item: GraphInput,
        span: Range,
        generator: torch.Generator,
        noise: torch.Generator,
        leaves: list[torch.Tensor],
    ) -> Any:
        if item.dtype == "int":
            return _value(item.value, self.symbols)
        if item.dtype == "symfloat":
            return float(item.value) * self._factor(item, generator, noise)
        size = tuple(_value(part, self.symbols) for part in item.size)
        stride = tuple(_value(part, self.symbols) for part in item.stride)
        dtype = getattr(torch, item.dtype)
        with torch.no_grad():
            made = torch.empty_strided(size, stride, dtype=dtype, device=item.device or "cpu")
            weight = self.weights.get(item.name)
            if weight is None:
                weight = self._values(item, size, dtype, span, generator)
            _write(made, weight)
            if self._shift and (dtype.is_floating_point or dtype.is_complex):
                moved = made * (1 + self._moved(size, noise).to(made.device))
                _write(made, moved.to(dtype))
            if self._double and made.is_floating_point():
                made = _with_strides(stride, made.double())
        if not item.requires_grad:
            return made
        leaves.append(made.requires_grad_())
        if item.parameter or not self.graph.grad or 0 in stride:
            return made
        with torch.enable_grad():  # not a leaf, so that it can be changed in place
            return _with_strides(stride, made)

    def _values(
        self, item: GraphInput, size: tuple, dtype: torch.dtype, span: Range, generator
    ) -> torch.Tensor:
        if dtype.is_complex:
            return torch.complex(self.fill(item, size, generator), self.fill(item, size, generator))
        if dtype.is_floating_point:
            return self.fill(item, size, generator)
        if dtype is torch.bool:
            return torch.randint(0, 2, size, generator=generator)
        low, high = span
        count = torch.Size(size).numel()
        if self._distinct and count <= high - low:
            return torch.randperm(high - low, generator=generator)[:count].view(size) + low
        values = torch.randint(low, high, size, generator=generator)
        if values.numel() > 1:  # the ends are always there: what takes them takes all between
            values.view(-1)[0], values.view(-1)[-1] = high - 1, low
        return values

    def _factor(self, item: GraphInput, generator, noise) -> float:
        """Of a float that came in; guards on it are not known here, so that it is another one only
        where there can be none."""
        known = {symbol.name for symbol in self.graph.symbols}
        names = {name for relation in self.graph.relations for name in _NAME.findall(relation)}
        free = names <= known | _FUNCTIONS.keys()
        factor = float(self.fill(item, (1,), generator)) if free else 1.0
        return (factor or 1.0) * (1 + float(self._moved((1,), noise)))

    def _moved(self, size: tuple, noise: torch.Generator) -> torch.Tensor:
        """By how much: always more than nothing, which would not change how things are rounded."""
        signs = torch.randint(0, 2, size, generator=noise, dtype=torch.float64) * 2 - 1
        return signs * self._shift


def _with_strides(stride: tuple, values: torch.Tensor) -> torch.Tensor:
    """A copy of values in another layout."""
    made = torch.empty_strided(values.size(), stride, dtype=values.dtype, device=values.device)
    return made.copy_(values)


def _write(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Also where several elements are the same memory, into which a copy would be refused."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dim] > 1:
            tensor, values = tensor.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    if tensor.numel():
        tensor.copy_(values)
