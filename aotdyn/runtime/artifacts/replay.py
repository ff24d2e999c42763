"""Replays compiled artifacts against eager graphs: the process in which the gate runs them.

`python -m aotdyn.runtime.artifacts.replay` answers for each artifact what is wrong with it.
Nothing imports this module.
"""

import itertools
import operator
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ...package.archive import Artifact
from ...package.compilers.worker import serve
from ...package.errors import PackageError
from ...package.graph import Graph, GraphInput, python_source, torch_names
from ...package.providers import NotRegistered, load_providers
from ...package.schema import decode_record
from ...package.state import process_state_is
from ...package.values import decode, encode, from_bytes, to_bytes
from ..link import link_text
from .compiled import load_graph
from .library import usable_isas

# dtype -> (relative, absolute for values of size one)
_TOLERANCES = {
    torch.float64: (1e-7, 1e-9),
    torch.float32: (2e-3, 2e-4),
    torch.float16: (2e-2, 1e-2),
    torch.bfloat16: (5e-2, 3e-2),
    torch.complex64: (2e-3, 2e-4),
    torch.complex128: (1e-7, 1e-9),
}

_FUNCTIONS = {
    "Eq": operator.eq, "Ne": operator.ne, "Lt": operator.lt, "Le": operator.le,
    "Gt": operator.gt, "Ge": operator.ge, "Mod": operator.mod, "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv, "CleanDiv": operator.floordiv, "Max": max, "Min": min,
    "And": lambda *parts: all(parts), "Or": lambda *parts: any(parts), "Not": operator.not_,
    "CeilDiv": lambda a, b: -(-a // b), "Abs": abs, "IntTrueDiv": operator.truediv,
    "__builtins__": {},
}  # fmt: skip


class Mismatch(Exception):
    """How the compiled graph differs from the eager one."""


class NotContiguous(Mismatch):
    """An output is contiguous in the eager graph only. index: which."""

    def __init__(self, index: int):
        super().__init__(f"output {index} is not contiguous")
        self.index = index


class OtherValues(Mismatch):
    """The compiled graph's numbers differ by more than the tolerance."""


def handle(data: bytes) -> bytes:
    """One artifact; the answer is what is wrong, "" for nothing, None if it cannot be told, the
    index of an output that only has to be made contiguous."""
    text, files, stored = decode(from_bytes(data))
    graph = decode_record(from_bytes(stored), Graph)
    artifact = Artifact("cpu", text, {}, files)
    answer: str | int | None = ""
    if not any(f"{isa}.so" in files for isa in usable_isas()):
        answer = None
    else:
        try:
            load_providers(graph.providers, torch_names(graph))
            with process_state_is(graph.state):
                replay(graph, artifact)
        except NotContiguous as error:
            answer = error.index
        except (Mismatch, PackageError, NotRegistered) as error:
            answer = str(error)
        except Exception as error:
            answer = f"running it: {type(error).__name__}: {str(error)[:160]}"
    return to_bytes(encode(answer))


def replay(graph: Graph, artifact: Artifact) -> None:
    """Raises Mismatch."""
    source, names = python_source(graph)
    eager = link_text(source, "graph", names)

    def not_compiled():
        raise Mismatch("it is not right for the inputs it was recorded with")

    compiled = load_graph(artifact, not_compiled)
    lenient = load_graph(artifact, lambda: eager)
    kinds = (_positive, _normal, _small)
    for number, symbols in enumerate(_assignments(graph)):
        for fill, spread in zip(kinds, (False, True, False)):
            inputs = _Inputs(graph, symbols, fill)
            if inputs.possible:
                _compare(graph, inputs, eager, compiled if not number else lenient, spread)


def _assignments(graph: Graph) -> Iterator[dict[str, int]]:
    """Values for the symbols: those of the recording, and others that fulfil the relations."""
    hints = {symbol.name: symbol.hint for symbol in graph.symbols}
    yield hints
    changes = [lambda hint, index: hint + 1 + index, lambda hint, index: 2 * hint]
    for change in changes if hints else ():
        changed = {name: change(hint, i) for i, (name, hint) in enumerate(hints.items())}
        if _fulfils(graph, changed):
            yield changed


def _fulfils(graph: Graph, symbols: dict[str, int]) -> bool:
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


def _value(text: int | str, symbols: dict[str, int]) -> Any:
    return eval(text, dict(_FUNCTIONS), symbols) if isinstance(text, str) else text


# Values. Positive ones keep square roots and logarithms away from nan, which would hide errors;
# small ints are indices that are in range almost everywhere.


def _positive(tensor: torch.Tensor, generator: torch.Generator) -> None:
    _fill(tensor, lambda size: torch.rand(size, generator=generator) * 0.5 + 0.25, generator)


def _normal(tensor: torch.Tensor, generator: torch.Generator) -> None:
    _fill(tensor, lambda size: torch.randn(size, generator=generator) * 0.5, generator)


def _small(tensor: torch.Tensor, generator: torch.Generator) -> None:
    _fill(tensor, lambda size: torch.rand(size, generator=generator) * 1e-2, generator)


def _fill(tensor: torch.Tensor, floats, generator: torch.Generator) -> None:
    size = tuple(tensor.shape)
    if tensor.dtype.is_complex:
        values = torch.complex(floats(size), floats(size))
    elif tensor.dtype.is_floating_point:
        values = floats(size)
    else:
        values = torch.randint(0, 2, size, generator=generator)
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and size[dim] > 1:  # the same memory; a copy would be refused
            tensor, values = tensor.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    tensor.copy_(values)


class _Inputs:
    """Inputs that can be made again and again, always equal. possible: whether they can be."""

    def __init__(self, graph: Graph, symbols: dict[str, int], fill, double: bool = False):
        self.graph = graph
        self.symbols = symbols
        self.fill = fill
        self.double = double
        self.possible = True
        try:
            self.make()
        except (RuntimeError, NameError, NotImplementedError):
            self.possible = False

    def exact(self) -> "_Inputs":
        """The same inputs in double precision."""
        return _Inputs(self.graph, self.symbols, self.fill, True)

    def make(self) -> tuple[list[Any], list[torch.Tensor]]:
        """The inputs, and the leaves that get gradients."""
        generator = torch.Generator().manual_seed(7)
        leaves: list[torch.Tensor] = []
        return [self._one(item, generator, leaves) for item in self.graph.inputs], leaves

    def _one(self, item: GraphInput, generator: torch.Generator, leaves: list) -> Any:
        if item.dtype == "int":
            return _value(item.value, self.symbols)
        size = [_value(part, self.symbols) for part in item.size]
        stride = [_value(part, self.symbols) for part in item.stride]
        with torch.no_grad():
            made = torch.empty_strided(size, stride, dtype=getattr(torch, item.dtype))
            if made.numel():
                self.fill(made, generator)
            if self.double and made.is_floating_point():
                made = torch.empty_strided(size, stride, dtype=torch.float64).copy_(made)
        if not item.requires_grad:
            return made
        leaves.append(made.requires_grad_())
        if item.parameter or not self.graph.grad or 0 in stride:
            return made
        with torch.enable_grad():  # not a leaf, so that it can be changed in place
            return torch.empty_strided(size, stride, dtype=made.dtype).copy_(made)


@dataclass
class _Run:
    """Everything that can be seen of a call."""

    error: str
    outputs: tuple
    inputs: list[Any]
    gradients: tuple
    random: torch.Tensor
    backward_error: str = ""


def _run(graph: Graph, inputs: _Inputs, function, spread: bool) -> _Run:
    given, leaves = inputs.make()
    torch.manual_seed(11)
    mode = torch.is_grad_enabled()
    try:
        outputs = function(*given)
    except (Mismatch, PackageError):
        raise
    except Exception as error:
        return _Run(f"{type(error).__name__}: {error}", (), given, (), torch.get_rng_state())
    finally:
        torch._C._set_grad_enabled(mode)
    random = torch.get_rng_state()
    if not graph.grad:
        return _Run("", outputs, given, (), random)
    try:
        gradients = _gradients(outputs, given, leaves, spread)
    except RuntimeError as error:
        return _Run("", outputs, given, (), random, f"gradients: {error}")
    return _Run("", outputs, given, gradients, random)


def _gradients(outputs: tuple, given: list, leaves: list[torch.Tensor], spread: bool) -> tuple:
    """Those of the leaves for random gradients of all that is differentiable. spread: the random
    gradients are expanded, as those of a sum are."""
    ends = [t for t in (*outputs, *given) if isinstance(t, torch.Tensor) and t.grad_fn is not None]
    if not leaves or not ends:
        return ()
    generator = torch.Generator().manual_seed(13)
    tangents = []
    for end in ends:
        size = () if spread else end.shape
        tangent = torch.rand(size, generator=generator, dtype=torch.float64).to(end.dtype)
        tangents.append(tangent.expand(end.shape))
    return torch.autograd.grad(ends, leaves, tangents, allow_unused=True)


def _compare(graph: Graph, inputs: _Inputs, eager, compiled, spread: bool) -> None:
    expected = _run(graph, inputs, eager, spread)
    if expected.error:
        return  # such inputs are refused by the program itself
    actual = _run(graph, inputs, compiled, spread)
    if actual.error:
        raise Mismatch(f"running it: {actual.error[:200]}")
    try:
        _agree(graph, actual, expected)
    except OtherValues:
        # Where the program itself amplifies rounding errors, its own error is the measure.
        exact = _run(graph, inputs.exact(), eager, spread)
        if exact.error or not _as_close(actual, expected, exact):
            raise


def _as_close(actual: _Run, expected: _Run, exact: _Run) -> bool:
    """Whether the numbers are not much further from those of double precision than eager's are."""
    groups = (
        (actual.outputs, expected.outputs, exact.outputs),
        (actual.inputs, expected.inputs, exact.inputs),
        (actual.gradients, expected.gradients, exact.gradients),
    )
    return all(_group_as_close(*map(_floats, group)) for group in groups)


def _group_as_close(actual: list, expected: list, exact: list) -> bool:
    if not len(actual) == len(expected) == len(exact):
        return False
    # A number that is zero but for rounding has the error of what cancels out in it.
    largest = max((_largest(tensor) for tensor in exact), default=0.0)
    for a, b, e in zip(actual, expected, exact):
        relative, absolute = _TOLERANCES[b.dtype]
        limit = 8 * _largest(b - e) + relative / 10 * _largest(e) + absolute / 20 * largest
        if not _largest(a - e) <= limit:
            return False
    return True


def _largest(tensor: torch.Tensor) -> float:
    return float(tensor.abs().nan_to_num().max()) if tensor.numel() else 0.0


def _floats(values: Any) -> list[torch.Tensor]:
    return [
        t.detach() for t in values if isinstance(t, torch.Tensor) and t.dtype in _TOLERANCES
    ]


def _agree(graph: Graph, actual: _Run, expected: _Run) -> None:
    """Raises Mismatch, OtherValues if it is the numbers only."""
    if len(actual.outputs) != len(expected.outputs):
        raise Mismatch(f"{len(actual.outputs)} outputs instead of {len(expected.outputs)}")
    if not torch.equal(actual.random, expected.random):
        raise Mismatch("the random state afterwards")
    _same_sharing(actual, expected)
    for index, (a, b) in enumerate(zip(actual.outputs, expected.outputs)):
        tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        if tensors and a.shape == b.shape and b.is_contiguous() and not a.is_contiguous():
            raise NotContiguous(index)
        _same(f"output {index}", a, b)
    for item, a, b in zip(graph.inputs, actual.inputs, expected.inputs):
        _same(f"input {item.name} afterwards", a, b)
    if expected.backward_error:
        return
    if actual.backward_error:
        raise Mismatch(f"running it: {actual.backward_error[:200]}")
    for index, (a, b) in enumerate(zip(actual.gradients, expected.gradients)):
        # One that was not asked for may come as zeros, as with torch.compile.
        if a is not None or b is not None:
            _same(f"gradient {index}", *_zeros_for_none(a, b), values_only=True)


def _zeros_for_none(a: torch.Tensor | None, b: torch.Tensor | None) -> tuple:
    return (torch.zeros_like(b) if a is None else a), (torch.zeros_like(a) if b is None else b)


def _same(what: str, a: Any, b: Any, values_only: bool = False) -> None:
    if not isinstance(b, torch.Tensor):
        if type(a) is not type(b) or a != b:
            raise Mismatch(f"{what} is {a!r} instead of {b!r}")
        return
    if not isinstance(a, torch.Tensor):
        raise Mismatch(f"{what} is {type(a).__name__} instead of a tensor")
    if not values_only:
        facts = (
            ("dtype", a.dtype, b.dtype),
            ("size", tuple(a.shape), tuple(b.shape)),
            ("strides", _strides(a), _strides(b)),
            ("offset", a.storage_offset(), b.storage_offset()),
            ("requires_grad", a.requires_grad, b.requires_grad),
        )
        for name, x, y in facts:
            if x != y:
                raise Mismatch(f"the {name} of {what} is {x} instead of {y}")
    elif a.shape != b.shape or a.dtype != b.dtype:
        raise Mismatch(f"the size or dtype of {what}")
    _same_values(what, a.detach(), b.detach())


def _strides(tensor: torch.Tensor) -> tuple:
    """Those that matter."""
    if not tensor.numel():
        return ()
    return tuple(s for s, size in zip(tensor.stride(), tensor.shape) if size > 1)


def _same_values(what: str, a: torch.Tensor, b: torch.Tensor) -> None:
    tolerance = _TOLERANCES.get(b.dtype)
    if tolerance is None:
        if not torch.equal(a, b):
            raise Mismatch(f"{what} has other values")
        return
    a, b = a.resolve_conj().resolve_neg(), b.resolve_conj().resolve_neg()
    finite = b[torch.isfinite(b)]
    scale = max(float(finite.abs().max()), 1e-6) if finite.numel() else 1.0
    relative, absolute = tolerance
    if not torch.allclose(a, b, relative, absolute * scale, equal_nan=True):
        raise OtherValues(f"{what} differs by {float((a - b).abs().nan_to_num().max()):.2e}")


def _same_sharing(actual: _Run, expected: _Run) -> None:
    """Outputs are views of the same things, and the inputs themselves where they were."""
    if _sharing(actual) != _sharing(expected):
        raise Mismatch("the outputs share memory in another way")


def _sharing(run: _Run) -> list[tuple]:
    tensors = [t for t in (*run.inputs, *run.outputs) if isinstance(t, torch.Tensor)]
    found = []
    for (i, a), (j, b) in itertools.combinations(enumerate(tensors), 2):
        if a is b:
            found.append((i, j, "same"))
        elif a.untyped_storage()._cdata == b.untyped_storage()._cdata and a.numel() and b.numel():
            found.append((i, j))
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(handle)
