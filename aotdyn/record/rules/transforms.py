"""The transforms of torch.func, scans and loops: `vmap(f)(x)` becomes a node that takes f as a
function.

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
from torch._higher_order_ops.while_loop import while_loop
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
from .gradients import version_of
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
    given = structure(t, t.new(TupleVariable(args)))
    inside = _mapped if self.maker is torch.vmap else _differentiated
    traced = _Inner(t, function, kwargs, inside(t, options, given))
    before = (t.references.to(self.maker), options, traced.body)
    on_fakes = [self.maker, options, traced.callable]
    return traced.node(t, operators.transformed, before, on_fakes, given)


class _Inner:
    """The function that a transform takes, as a function of the graph. entering: gives its
    arguments. free: what it uses of the graph besides."""

    def __init__(self, t, function: Variable, kwargs: dict, entering: Any):
        self.t = t
        with t.graph.function() as scope, t.effects.only_own(), entering as inner:
            self.result = structure(t, call(t, function, inner, kwargs))
            self.returned = tree_map(t.graph.argument, self.result)
        self.scope = scope
        self.free = scope.free(self.returned)
        self.body = scope.function([*scope.params, *self.free], self.returned)

    @property
    def callable(self) -> Any:
        """To be run on fakes."""
        return _callable(self.t, self.body)

    def node(self, t, operator: Any, before: tuple, on_fakes: list, *given: Any) -> Variable:
        """What an operator gives that takes the function, and variables in containers."""
        fakes = [tree_map(t.graph.fake, each) for each in given]
        found = t.graph.run(operator, [*on_fakes, *fakes, t.graph.fakes_of(self.free)], {})
        passed = [tree_map(t.graph.argument, each) for each in given]
        args = (*before, *passed, values(self.free))
        return t.graph.wrap(found, t.graph.add(operator.__name__, t.references.to(operator), args))


# -- jvp, vjp ------------------------------------------------------------


@rule(torch.func.jvp)
def jvp(t, func, primals, tangents, strict=None, has_aux=None):
    if strict is not None and t.constant(strict):
        raise GraphBreak("torch_refused", "jvp() that is strict")
    given, directions = structure(t, primals), structure(t, tangents)
    if not isinstance(given, tuple):
        raise GraphBreak("bad_arguments", "jvp() of what is no tuple")
    aux = has_aux is not None and bool(t.constant(has_aux))
    traced = _Inner(t, func, {}, _followed(t, given))
    before, on_fakes = (traced.body, aux), [traced.callable, aux]
    return traced.node(t, operators.pushed_forward, before, on_fakes, given, directions)


@rule(torch.func.vjp)
def vjp(t, func, *primals, has_aux=None):
    aux = has_aux is not None and bool(t.constant(has_aux))
    given = structure(t, t.new(TupleVariable(list(primals))))
    chosen = _differentiated(t, {"argnums": range(len(given))}, given)
    traced = _without_draws(t, func, chosen)
    pullback = t.new(PullbackVariable(t, traced, given, aux))
    # A compiler sees that this is part of what a derivative is computed of.
    before, on_fakes = (traced.body, aux), [traced.callable, aux]
    found = traced.node(t, operators.vjp_value, before, on_fakes, given)
    return t.new(TupleVariable([found.items[0], pullback, *found.items[1:]]))


@rule(torch.func.linearize)
def linearize(t, func, *primals):
    given = structure(t, t.new(TupleVariable(list(primals))))
    traced = _without_draws(t, func, _followed(t, given))
    used = (*map(t.graph.fake, tree_flatten(given)[0]), *t.graph.fakes_of(traced.free))
    if any(isinstance(fake, torch.Tensor) and fake.requires_grad for fake in used):
        raise GraphBreak("torch_refused", "linearize() of what has a gradient itself")
    value = call(t, func, list(primals), {})
    return t.new(TupleVariable([value, t.new(PushforwardVariable(t, traced, given))]))


def _without_draws(t, function: Variable, entering: Any) -> _Inner:
    """A function that runs again when its derivative is asked for."""
    hazards = t.shapes.hazards
    drawn, hazards.draws = hazards.draws, False
    try:
        traced = _Inner(t, function, {}, entering)
        if hazards.draws:
            raise GraphBreak("torch_refused", "a derivative of what draws random numbers")
    finally:
        hazards.draws |= drawn
    return traced


class DerivativeVariable(Variable):
    """A derivative that is asked for later. It cannot leave the frame. versions: how often the
    tensors had been changed that f has used."""

    __slots__ = ("traced", "primals", "has_aux", "versions")

    def __init__(self, t, traced: _Inner, primals: tuple, has_aux: bool = False):
        super().__init__()
        self.traced = traced
        self.primals = primals
        self.has_aux = has_aux
        self.versions = self.versions_now(t)

    @property
    def type(self) -> type:
        return FunctionType

    def versions_now(self, t) -> list[int]:
        given = [t.graph.fake(leaf) for leaf in tree_flatten(self.primals)[0]]
        used = (*given, *t.graph.fakes_of(self.traced.free))
        return [version_of(fake) for fake in used if isinstance(fake, torch.Tensor)]

    def node(self, t, operator: Any, given: Any) -> Variable:
        """What an operator gives that takes the function, its primals and what is given now."""
        if self.versions_now(t) != self.versions:
            raise GraphBreak("mutation", "a tensor that a derivative uses is changed", self.origin)
        before, on_fakes = (self.traced.body, self.has_aux), [self.traced.callable, self.has_aux]
        return self.traced.node(t, operator, before, on_fakes, self.primals, given)


class PullbackVariable(DerivativeVariable):
    """The function that `vjp(f, *primals)` gives."""

    __slots__ = ()

    def describe(self) -> str:
        return "function that vjp() gives"


class PushforwardVariable(DerivativeVariable):
    """The function that `linearize(f, *primals)` gives."""

    __slots__ = ()

    def describe(self) -> str:
        return "function that linearize() gives"


@calls(PullbackVariable)
def call_pullback(t, self, args, kwargs):
    if kwargs or len(args) != 1:
        raise GraphBreak("bad_arguments", "a derivative that is asked for with options")
    return self.node(t, operators.pulled_back, structure(t, args[0]))


@calls(PushforwardVariable)
def call_pushforward(t, self, args, kwargs):
    """Directions that do not fit are refused by torch in its own words."""
    directions = structure(t, t.new(TupleVariable(args)))
    if kwargs or _kinds(t, directions) != _kinds(t, self.primals):
        raise GraphBreak("bad_arguments", "a direction that does not fit", self.origin)
    return self.node(t, operators.pushed_forward, directions).items[1]


def _kinds(t, given: tuple) -> tuple:
    """What tensors in containers are, as far as a direction must have it from a primal."""
    leaves, spec = tree_flatten(given)
    fakes = [t.graph.fake(leaf) for leaf in leaves]
    return spec, [
        (fake.dtype, fake.device, [*map(str, fake.shape)])
        if isinstance(fake, torch.Tensor) else None
        for fake in fakes
    ]  # fmt: skip


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


@contextlib.contextmanager
def _followed(t, given: tuple) -> Iterator[list[Variable]]:
    """The arguments as a function sees them that is differentiated in a direction."""
    leaves, spec = tree_flatten(given)
    level = _functorch._jvp_increment_nesting()
    try:
        yield _parameters(t, leaves, [_leaf(t, leaf, False, level) for leaf in leaves], spec)
    finally:
        _functorch._jvp_decrement_nesting()


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
    return list(variables(t, spec.unflatten(inner)).items)


def structure(t, value: Variable) -> Any:
    """A variable as Python containers, of which the leaves are variables."""
    value = t.realize(value)
    if isinstance(value, TupleVariable) and value.cls is tuple:
        return tuple(structure(t, item) for item in value.items)
    if isinstance(value, ListVariable):
        return [structure(t, item) for item in value.items]
    if isinstance(value, DictVariable) and value.cls is dict and value.owner is None:
        t.complete(value)
        return {t.constant(key): structure(t, item) for key, item in value.items.values()}
    if isinstance(value, TensorVariable | Symbolic | Constant):
        return value
    raise GraphBreak("nested", f"a transform of a function over a {value.describe()}")


def variables(t, value: Any) -> Any:
    """The inverse of `structure`."""
    if isinstance(value, tuple):
        return t.new(TupleVariable([variables(t, item) for item in value]))
    if isinstance(value, list):
        return t.wrap_list([variables(t, item) for item in value])
    if isinstance(value, dict):
        items = {key: (Constant(key), variables(t, item)) for key, item in value.items()}
        return t.new(DictVariable(items))
    return value


# -- associative_scan ------------------------------------------------------------


@rule(associative_scan)
def scan(t, combine_fn, xs, dim, reverse=None, combine_mode=None):
    """A scan whose function is mapped over the slices; the same for all sizes from two on."""
    if combine_mode is None or t.constant(combine_mode) != "generic":
        raise GraphBreak("torch_refused", "an associative_scan for a GPU")
    given = structure(t, xs)
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
        left, right = (variables(t, spec.unflatten(side)) for side in sides)
        combined = structure(t, call(t, combine_fn, [left, right]))
        result = tuple(map(t.graph.argument, tree_flatten(combined)[0]))
    if tree_flatten(combined)[1] != spec:
        raise GraphBreak("bad_arguments", "associative_scan changes the structure")
    free = scope.free(result)
    body = scope.function([*scope.params, *free], result)
    passed = tuple(map(t.graph.argument, leaves))
    found = tuple(_scanned_like(t, leaf, leaves, axis) for leaf in leaves)
    node_args = (body, passed, axis, backwards, values(free))
    node = t.graph.add("scan", t.references.to(operators.scanned), node_args)
    return variables(t, spec.unflatten(t.graph.wrap(found, node).items))


def _scanned_like(t, leaf: TensorVariable, leaves: list[Variable], axis: int) -> torch.Tensor:
    """A fake for the scan of one tensor, which depends on all of them."""

    def make(tensor: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        moved = torch.movedim(tensor, axis, 0)
        for other in others:
            moved = moved + other.sum() * 0
        return torch.movedim(moved.contiguous().clone(), 0, axis)

    others = [each.fake for each in leaves if each.fake.requires_grad and each is not leaf]
    return t.graph.run(make, [leaf.fake, *others], {})


# -- while_loop ------------------------------------------------------------


@rule(while_loop)
def loop(t, cond_fn, body_fn, carried_inputs):
    given = structure(t, carried_inputs)
    leaves, spec = tree_flatten(given)
    if not isinstance(given, tuple) or not all(isinstance(x, TensorVariable) for x in leaves):
        raise GraphBreak("bad_arguments", "while_loop over what is no tensor")
    if torch.is_grad_enabled() and any(leaf.fake.requires_grad for leaf in leaves):
        raise GraphBreak("autograd", "while_loop has no gradients")
    tested = _Inner(t, cond_fn, {}, _carried(t, given))
    turned = _Inner(t, body_fn, {}, _carried(t, given))
    test = tested.result
    if not isinstance(test, TensorVariable) or test.fake.dtype != torch.bool or test.fake.dim():
        raise GraphBreak("torch_refused", "while_loop with a condition that is no tensor of a bool")
    results, made = tree_flatten(turned.result)
    if made != spec or not all(map(_is_alike, leaves, results)):
        raise GraphBreak("torch_refused", "while_loop with a body that gives other things")
    if not all(t.graph.is_of(result, turned.scope) for result in results):
        raise GraphBreak("torch_refused", "while_loop with a body that gives what it got")
    free = list(dict.fromkeys([*tested.free, *turned.free]))
    parts = (tested, tested.returned), (turned, tuple(tree_flatten(turned.returned)[0]))
    bodies = [x.scope.function([*x.scope.params, *free], returned) for x, returned in parts]
    node_args = (*bodies, tuple(map(t.graph.argument, leaves)), values(free))
    node = t.graph.add("while_loop", t.references.to(operators.looped), node_args)
    found = tuple(t.graph.run(torch.empty_like, [leaf.fake], {}) for leaf in leaves)
    return variables(t, spec.unflatten(t.graph.wrap(found, node).items))


@contextlib.contextmanager
def _carried(t, given: tuple) -> Iterator[list[Variable]]:
    """What a function of a loop gets: tensors like the first ones, which it may not change."""
    leaves, spec = tree_flatten(given)
    fakes = [t.graph.run(torch.empty_like, [leaf.fake], {}) for leaf in leaves]
    before = [version_of(fake) for fake in fakes]
    yield _parameters(t, leaves, fakes, spec)
    if [version_of(fake) for fake in fakes] != before:
        raise GraphBreak("torch_refused", "while_loop with a function that changes a tensor")


def _is_alike(first: Variable, result: Variable) -> bool:
    if not isinstance(result, TensorVariable):
        return False
    facts = [(x.dtype, x.device, [*map(str, x.shape)], [*map(str, x.stride())])
             for x in (first.fake, result.fake)]  # fmt: skip
    return facts[0] == facts[1]


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
