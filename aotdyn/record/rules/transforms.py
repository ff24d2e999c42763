"""The transforms of torch.func, and scans: `vmap(f)(x)` becomes a node that takes f as a function.

f is traced as the program sees it from inside: for one sample, or for leaves that require
gradients. What the transform gives is found by transforming what was traced, on fakes.
"""

import contextlib
import inspect
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch
from torch._C import _functorch
from torch._functorch import eager_transforms, predispatch
from torch._higher_order_ops.associative_scan import associative_scan
from torch.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map

from ...package import operators
from ...package.graph import Function, function_source
from ...package.reference import Literal, Live, Reference
from ...package.resolve import resolve_import
from ..body import REBUILD
from ..nested import values
from ..operation import call
from ..signals import GraphBreak
from ..variables import (
    Constant,
    DictVariable,
    ListVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from ..variables.library import BuiltVariable
from .library import rebuild_built
from .table import calls, rule

_GRADIENTS = (torch.func.grad, torch.func.grad_and_value, torch.func.jacrev, torch.func.jacfwd,
              torch.func.hessian)  # fmt: skip


class TransformVariable(BuiltVariable):
    """`vmap(f, …)`: a function that the transform of torch.func has made."""

    __slots__ = ()


def _transform(maker: Any) -> None:
    @rule(maker)
    def make(t, *args, **kwargs):
        return t.new(TransformVariable(maker, FunctionType, list(args), kwargs, None))


for _maker in (torch.vmap, *_GRADIENTS):
    _transform(_maker)


REBUILD[TransformVariable] = rebuild_built


@calls(TransformVariable)
def call_transformed(t, self, args, kwargs):
    bound = inspect.signature(self.maker).bind(*self.args, **self.kwargs)
    function = bound.arguments.pop("func")
    options = {name: t.constant(value) for name, value in bound.arguments.items()}
    given = _structure(t, t.new(TupleVariable(args)))
    inside = _mapped if self.maker is torch.vmap else _differentiated
    with t.graph.function() as scope, t.effects.only_own(), inside(t, options, given) as inner:
        result = _structure(t, call(t, function, inner, kwargs))
        result = tree_map(t.graph.argument, result)
    free = scope.free(result)
    body = scope.function([*scope.params, *free], result)
    passed = tree_map(t.graph.argument, given)
    node_args = (t.references.to(self.maker), options, body, passed, values(free))
    fakes = (tree_map(t.graph.fake, given), t.graph.fakes_of(free))
    on_fakes = [self.maker, options, _callable(t, body), *fakes]
    found = t.graph.run(operators.transformed, on_fakes, {})
    target = t.references.to(operators.transformed)
    return t.graph.wrap(found, t.graph.add(self.maker.__name__, target, node_args))


@contextlib.contextmanager
def _mapped(t, options: dict, given: tuple) -> Iterator[list[Variable]]:
    """The arguments as a function sees them that is mapped, while it is traced."""
    leaves, spec = tree_flatten(given)
    dims = _broadcast_to_and_flatten(options.get("in_dims", 0), spec)
    mapped = [(leaf, dim) for leaf, dim in zip(leaves, dims or ()) if dim is not None]
    if not mapped or not all(isinstance(leaf, TensorVariable) for leaf, _ in mapped):
        raise GraphBreak("bad_arguments", "in_dims does not fit the arguments of vmap")
    first, dim = mapped[0]
    size = t.graph.run(torch.Tensor.size, [first.fake, dim], {})
    with _map_level(size, options.get("randomness", "error")) as level:
        fakes = [_sample(t, leaf, dim, level) for leaf, dim in zip(leaves, dims)]
        yield _parameters(t, leaves, fakes, spec)


@contextlib.contextmanager
def _map_level(size: Any, randomness: str) -> Iterator[int]:
    """Fakes are mapped over inside."""
    predispatch.lazy_load_decompositions()
    level = _functorch._vmap_increment_nesting(size, randomness)
    try:
        yield level
    finally:
        _functorch._vmap_decrement_nesting()


def _sample(t, leaf: Variable, dim: int | None, level: int) -> Any:
    """One sample of a tensor that is mapped over."""
    if not isinstance(leaf, TensorVariable):
        return None
    if dim is None:
        return t.graph.run(torch.ops.aten.alias, [leaf.fake], {})
    return t.graph.run(predispatch._add_batch_dim, [leaf.fake, dim, level], {})


@contextlib.contextmanager
def _differentiated(t, options: dict, given: tuple) -> Iterator[list[Variable]]:
    """The arguments as a function sees them that a derivative is taken of. Transforms that
    differentiate do so whatever the gradient mode outside is."""
    leaves, spec = tree_flatten(given)
    chosen = options.get("argnums", 0)
    chosen = (chosen,) if isinstance(chosen, int) else chosen
    chosen = {index % max(len(given), 1) for index in chosen}
    owners = [i for i, arg in enumerate(given) for _ in tree_flatten(arg)[0]]
    before = torch.is_grad_enabled()
    level = _functorch._grad_increment_nesting()
    torch._C._set_grad_enabled(True)
    try:
        fakes = [_leaf(t, leaf, owner in chosen, level) for leaf, owner in zip(leaves, owners)]
        yield _parameters(t, leaves, fakes, spec)
    finally:
        torch._C._set_grad_enabled(before)
        _functorch._grad_decrement_nesting()


def _leaf(t, leaf: Variable, chosen: bool, level: int) -> Any:
    """A tensor that a derivative may be taken for."""
    if not isinstance(leaf, TensorVariable):
        return None
    fake = t.graph.run(_functorch._wrap_for_grad, [leaf.fake, level], {})
    if chosen:
        t.graph.run(eager_transforms._create_differentiable, [fake, level], {})
    return fake


def _parameters(t, leaves: list[Variable], fakes: list[Any], spec: Any) -> list[Variable]:
    """The arguments of the function, made of its parameters: one for each leaf."""
    inner = []
    for leaf, fake in zip(leaves, fakes):
        if fake is None:
            t.graph.parameter("part")
            inner.append(leaf)
        else:
            inner.append(t.graph.tensor_parameter("part", fake))
    return list(_variables(t, spec.unflatten(inner)).items)


def _structure(t, value: Variable) -> Any:
    """A variable as Python containers, of which the leaves are variables."""
    value = t.realize(value)
    if isinstance(value, TupleVariable) and value.cls is tuple:
        return tuple(_structure(t, item) for item in value.items)
    if isinstance(value, ListVariable):
        return [_structure(t, item) for item in value.items]
    if isinstance(value, DictVariable) and value.cls is dict and value.owner is None:
        t.complete(value)
        return {t.constant(key): _structure(t, item) for key, item in value.items.values()}
    if isinstance(value, TensorVariable | Symbolic | Constant):
        return value
    raise GraphBreak("nested", f"a transform of a function over a {value.describe()}")


def _variables(t, value: Any) -> Any:
    """The inverse of `_structure`."""
    if isinstance(value, tuple):
        return t.new(TupleVariable([_variables(t, item) for item in value]))
    if isinstance(value, list):
        return t.wrap_list([_variables(t, item) for item in value])
    if isinstance(value, dict):
        items = {key: (Constant(key), _variables(t, item)) for key, item in value.items()}
        return t.new(DictVariable(items))
    return value


# -- associative_scan ------------------------------------------------------------


@rule(associative_scan)
def scan(t, combine_fn, xs, dim, reverse=None, combine_mode=None):
    """A scan whose function is mapped over the slices; the same for all sizes from two on."""
    if combine_mode is None or t.constant(combine_mode) != "generic":
        raise GraphBreak("torch_refused", "an associative_scan for a GPU")
    given = _structure(t, xs)
    leaves, spec = tree_flatten(given)
    backwards = reverse is not None and bool(t.constant(reverse))
    if not leaves or not all(isinstance(leaf, TensorVariable) for leaf in leaves):
        raise GraphBreak("bad_arguments", "associative_scan over what is no tensor")
    axis = t.constant(dim) % leaves[0].fake.dim()
    size = t.graph.run(torch.Tensor.size, [leaves[0].fake, axis], {})
    if type(size) is int and size < 2:
        raise GraphBreak("torch_refused", "an associative_scan over one slice")
    with (
        t.graph.function() as scope,
        t.effects.only_own(),
        _map_level(size, "error") as level,
    ):
        fakes = [_sample(t, leaf, axis, level) for _ in range(2) for leaf in leaves]
        inner = [t.graph.tensor_parameter("part", fake) for fake in fakes]
        sides = (inner[: len(leaves)], inner[len(leaves) :])
        left, right = (_variables(t, spec.unflatten(side)) for side in sides)
        combined = _structure(t, call(t, combine_fn, [left, right]))
        result = tuple(map(t.graph.argument, tree_flatten(combined)[0]))
    if tree_flatten(combined)[1] != spec:
        raise GraphBreak("bad_arguments", "associative_scan changes the structure")
    free = scope.free(result)
    body = scope.function([*scope.params, *free], result)
    passed = tuple(map(t.graph.argument, leaves))
    found = tuple(_scanned_like(t, leaf, leaves, axis) for leaf in leaves)
    node_args = (body, passed, axis, backwards, values(free))
    node = t.graph.add("scan", t.references.to(operators.scanned), node_args)
    return _variables(t, spec.unflatten(t.graph.wrap(found, node).items))


def _scanned_like(t, leaf: TensorVariable, leaves: list[Variable], axis: int) -> torch.Tensor:
    """A fake for the scan of one tensor, which depends on all of them."""

    def make(tensor: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        moved = torch.movedim(tensor, axis, 0)
        for other in others:
            moved = moved + other.sum() * 0
        return torch.movedim(moved.contiguous().clone(), 0, axis)

    others = [each.fake for each in leaves if each.fake.requires_grad and each is not leaf]
    return t.graph.run(make, [leaf.fake, *others], {})


# -- functions of the graph ------------------------------------------------------------


def _callable(t, body: Function) -> Any:
    """A function of the graph as one that can be called with fakes."""
    text, names = function_source(body)
    scope = {name: _live(t, reference) for name, reference in names.items()}
    exec(compile(text, "<aotdyn function>", "exec"), scope)
    return scope["function"]


def _live(t, reference: Reference) -> Any:
    if isinstance(reference, Live):
        return t.references.live[reference.index]
    return reference.value if isinstance(reference, Literal) else resolve_import(reference)
