"""Replays compiled artifacts against eager graphs: the process in which the gate runs them.

It answers for each artifact what is wrong with it. Only such processes import this module.
"""

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ...package.archive import Artifact
from ...package.compilers.worker import serve
from ...package.errors import PackageError
from ...package.graph import Graph, python_source, torch_names
from ...package.providers import NotRegistered, load_providers
from ...package.schema import decode_record
from ...package.state import process_state_is
from ...package.values import decode, encode, from_bytes, to_bytes
from ...package.weights import Weight, tensor_of
from ..eager_text import link_text
from .closeness import Noise, close, distance
from .compiled import load_graph
from .library import usable_isas
from .samples import Samples, assignments, int_ranges, normal, positive, small


class Mismatch(Exception):
    """How the compiled graph differs from the eager one."""


class NotContiguous(Mismatch):
    """An output is contiguous, or has memory of its own, in the eager graph only. index: which."""

    def __init__(self, index: int):
        super().__init__(f"output {index} is no contiguous tensor of its own")
        self.index = index


def handle(data: bytes) -> bytes:
    """One artifact; the answer is what is wrong, "" for nothing, None if it cannot be told, the
    index of an output that only has to be made a contiguous copy."""
    text, files, stored, weights = decode(from_bytes(data))
    graph = decode_record(from_bytes(stored), Graph)
    artifact = Artifact("cpu", text, {}, files)
    answer: str | int | None = ""
    if not any(f"{isa}.so" in files for isa in usable_isas()):
        answer = None
    else:
        try:
            load_providers(graph.providers, torch_names(graph))
            with process_state_is(graph.state):
                replay(graph, artifact, _tensors(weights))
        except NotContiguous as error:
            answer = error.index
        except (Mismatch, PackageError, NotRegistered) as error:
            answer = str(error)
        except Exception as error:
            answer = f"running it: {type(error).__name__}: {str(error)[:160]}"
    return to_bytes(encode(answer))


def _tensors(weights: list) -> dict[str, torch.Tensor]:
    """The weights by the names of the inputs that they are frozen to."""
    return {
        name: tensor_of(Weight(digest, dtype, size, data))
        for name, dtype, size, data, digest in weights
    }


def replay(graph: Graph, artifact: Artifact, weights: dict[str, torch.Tensor]) -> None:
    """weights: values that inputs have, by name; the others' are made up. Raises Mismatch."""
    source, names = python_source(graph)
    eager = link_text(source, "graph", names)

    def not_compiled():
        raise Mismatch("it is not right for the inputs it was recorded with")

    compiled = load_graph(artifact, not_compiled)
    lenient = load_graph(artifact, lambda: eager)
    refusal = "no inputs could be made"
    compared = False
    for number, symbols in enumerate(assignments(graph)):
        ranges = int_ranges(graph, symbols, lambda inputs: _accepts(graph, inputs, eager))
        for fill, spread in ((positive, False), (normal, True), (small, False)):
            inputs = Samples(graph, symbols, fill, ranges, weights)
            if inputs.possible:
                function = compiled if not number else lenient
                error = _compare(graph, inputs, eager, function, spread)
                compared, refusal = compared or not error, error or refusal
    if not compared:
        raise Mismatch(f"it could not be tried on random inputs: {refusal}")


def _accepts(graph: Graph, inputs: Samples, eager: Callable) -> bool:
    return inputs.possible and not _run(graph, inputs, eager, False, gradients=False).error


@dataclass
class _Run:
    """Everything that can be seen of a call."""

    error: str = ""
    outputs: tuple = ()
    inputs: list[Any] = field(default_factory=list)
    gradients: tuple = ()
    random: torch.Tensor | None = None
    backward_error: str = ""

    def tensors(self) -> dict[str, torch.Tensor]:
        """All tensors by what they are."""
        named = {
            **{f"output {index}": value for index, value in enumerate(self.outputs)},
            **{f"input {index} afterwards": value for index, value in enumerate(self.inputs)},
            **{f"gradient {index}": value for index, value in enumerate(self.gradients)},
        }
        return {what: v for what, v in named.items() if isinstance(v, torch.Tensor)}


def _run(
    graph: Graph, inputs: Samples, function: Callable, spread: bool, gradients: bool = True
) -> _Run:
    given, leaves = inputs.make()
    run = _Run(inputs=given)
    history = [value.grad_fn if isinstance(value, torch.Tensor) else None for value in given]
    for seed, _ in _generators():
        seed(11)
    mode = torch.is_grad_enabled()
    try:
        run.outputs = tuple(function(*given))
    except (Mismatch, PackageError):
        raise
    except Exception as error:
        run.error = f"{type(error).__name__}: {error}"
        return run
    finally:
        torch._C._set_grad_enabled(mode)
        run.random = torch.cat([state() for _, state in _generators()])
    if graph.grad and gradients:
        try:
            changed = [v for v, before in zip(given, history)
                       if isinstance(v, torch.Tensor) and v.grad_fn is not before]  # fmt: skip
            run.gradients = _gradients((*run.outputs, *changed), leaves, spread)
        except RuntimeError as error:
            run.backward_error = f"gradients: {error}"
    return run


def _generators() -> list[tuple[Callable[[int], Any], Callable[[], torch.Tensor]]]:
    """How random numbers are seeded, and what tells their state."""
    cpu = torch.default_generator  # `torch.manual_seed` imports torch's compiler
    found: list = [(cpu.manual_seed, torch.get_rng_state)]
    if torch.cuda.is_initialized():
        found.append((torch.cuda.manual_seed, torch.cuda.get_rng_state))
    return found


def _gradients(results: tuple, leaves: list[torch.Tensor], spread: bool) -> tuple:
    """Those of the leaves for random gradients of all results that are differentiable. spread: the
    random gradients are expanded, as those of a sum are."""
    ends = [t for t in results if isinstance(t, torch.Tensor) and t.grad_fn is not None]
    if not leaves or not ends:
        return ()
    generator = torch.Generator().manual_seed(13)
    tangents = []
    for end in ends:
        size = () if spread else end.shape
        tangent = torch.rand(size, generator=generator, dtype=torch.float64).to(end)
        tangents.append(tangent.expand(end.shape))
    return torch.autograd.grad(ends, leaves, tangents, allow_unused=True)


def _compare(graph: Graph, inputs: Samples, eager, compiled, spread: bool) -> str:
    """Raises Mismatch. Why nothing could be compared: the program itself refuses such inputs."""
    expected = _run(graph, inputs, eager, spread)
    if expected.error:
        return expected.error[:160]
    actual = _run(graph, inputs, compiled, spread)
    if actual.error:
        raise Mismatch(f"running it: {actual.error[:200]}")
    _same_structure(actual, expected)
    a, b = actual.tensors(), expected.tensors()
    far = [what for what in b if what in a and not close(a[what], b[what])]
    if not far:
        return ""

    def noisy(by: float, seed: int) -> dict[str, torch.Tensor]:
        found = _run(graph, inputs.shifted(by, seed), eager, spread).tensors()
        # What is gone is no noise: the program takes another way there.
        return {what: found.get(what, tensor) for what, tensor in b.items()}

    noise = Noise.of(noisy)
    exact = _run(graph, inputs.exact(), eager, spread).tensors()
    for what in far:
        if not noise.explains(what, a[what], b, exact.get(what)):
            gap = distance(a[what], b[what])
            raise Mismatch(f"{_named(graph, what)} differs by {gap:.2e}")
    return ""


def _named(graph: Graph, what: str) -> str:
    """What differs, in the graph's own words."""
    if not what.startswith("input "):
        return what
    return f"input {graph.inputs[int(what.split()[1])].name} afterwards"


def _same_structure(actual: _Run, expected: _Run) -> None:
    """Everything but the numbers. Raises Mismatch."""
    if len(actual.outputs) != len(expected.outputs):
        raise Mismatch(f"{len(actual.outputs)} outputs instead of {len(expected.outputs)}")
    if not torch.equal(actual.random, expected.random):
        raise Mismatch("the random state afterwards")
    _same_sharing(actual, expected)
    for index, (a, b) in enumerate(zip(actual.outputs, expected.outputs)):
        tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        if tensors and a.shape == b.shape and b.is_contiguous() and not a.is_contiguous():
            raise NotContiguous(index)
        _same_facts(f"output {index}", a, b)
    for index, (a, b) in enumerate(zip(actual.inputs, expected.inputs)):
        _same_facts(f"input {index} afterwards", a, b)
    if expected.backward_error:
        return
    if actual.backward_error:
        raise Mismatch(f"running it: {actual.backward_error[:200]}")
    for index, (a, b) in enumerate(zip(actual.gradients, expected.gradients)):
        if (a is None) != (b is None):
            # One that was not asked for may come as zeros, as with torch.compile.
            if (a if b is None else b).any():
                raise Mismatch(f"gradient {index} is there in one of the two only")
        elif a is not None and (a.shape != b.shape or a.dtype != b.dtype):
            raise Mismatch(f"the size or dtype of gradient {index}")


def _same_facts(what: str, a: Any, b: Any) -> None:
    if not isinstance(b, torch.Tensor):
        if type(a) is not type(b) or a != b:
            raise Mismatch(f"{what} is {a!r} instead of {b!r}")
        return
    if not isinstance(a, torch.Tensor):
        raise Mismatch(f"{what} is {type(a).__name__} instead of a tensor")
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


def _strides(tensor: torch.Tensor) -> tuple:
    """Those that matter."""
    if not tensor.numel():
        return ()
    return tuple(s for s, size in zip(tensor.stride(), tensor.shape) if size > 1)


def _same_sharing(actual: _Run, expected: _Run) -> None:
    """Outputs are views of the same things, and the inputs themselves where they were."""
    a, b = _sharing(actual), _sharing(expected)
    if a == b:
        return
    shared = min((pair[1] for pair in a - b), default=0) - len(expected.inputs)
    if b <= a and shared >= 0 and expected.outputs[shared].is_contiguous():
        raise NotContiguous(shared)
    raise Mismatch("the outputs share memory in another way")


def _sharing(run: _Run) -> set[tuple]:
    """Pairs of places among the inputs and outputs."""
    values = enumerate((*run.inputs, *run.outputs))
    tensors = [(place, value) for place, value in values if isinstance(value, torch.Tensor)]
    found: set[tuple] = set()
    for (i, a), (j, b) in itertools.combinations(tensors, 2):
        if a is b:
            found.add((i, j, "same"))
        elif a.untyped_storage()._cdata == b.untyped_storage()._cdata and a.numel() and b.numel():
            found.add((i, j))
    return found


def main() -> None:
    """Answers for artifacts until there are no more."""
    warnings.simplefilter("ignore")
    serve(handle)
