"""`scan` and `map` of torch: step by step, as eager computes them. Each length has a graph."""

import torch
from torch._higher_order_ops.map import map as map_function
from torch._higher_order_ops.scan import scan as scan_function
from torch.utils._pytree import tree_flatten

from ..hazards import storage_of
from ..operation import apply, call
from ..signals import GraphBreak
from ..variables import Constant, TensorVariable, TupleVariable, Variable
from .table import rule
from .transforms import structure, variables

# A graph with more steps than this is not worth its size.
_MOST_STEPS = 256


@rule(scan_function)
def scan(t, combine_fn, init, xs, *, dim=None, reverse=None):
    """The last carry, and what the steps give, stacked."""
    axis = 0 if dim is None else t.constant(dim)
    if axis < 0:
        axis += tree_flatten(structure(t, xs))[0][0].fake.dim()
    backwards = reverse is not None and bool(t.constant(reverse))
    slices = _slices(t, xs, axis)
    carry, outs = init, []
    for each in slices[::-1] if backwards else slices:
        made = t.realize(call(t, combine_fn, [carry, each]))
        if not isinstance(made, TupleVariable) or len(made.items) != 2:
            raise GraphBreak("bad_arguments", "scan of a function that gives no pair")
        _require_alike(t, carry, made.items[0])
        carry = made.items[0]
        outs.append(made.items[1])
    stacked = _stacked(t, outs[::-1] if backwards else outs, axis)
    return t.new(TupleVariable([carry, stacked]))


@rule(map_function)
def map_(t, f, xs, *args):
    parts = [leaf for each in (xs, *args) for leaf in tree_flatten(structure(t, each))[0]]
    held = [storage_of(leaf.fake) for leaf in parts if isinstance(leaf, TensorVariable)]
    if len(set(held)) < len(held):
        raise GraphBreak("torch_refused", "map over tensors that share memory")
    return _stacked(t, [call(t, f, [each, *args]) for each in _slices(t, xs, 0)])


def _slices(t, xs: Variable, axis: int) -> list[Variable]:
    """The slices of all tensors in a structure along a dimension, in that structure."""
    given = structure(t, xs)
    leaves, spec = tree_flatten(given)
    if not leaves or not all(isinstance(leaf, TensorVariable) for leaf in leaves):
        raise GraphBreak("bad_arguments", "steps over what is no tensor")
    size = t.constant(apply(t, torch.Tensor.size, [leaves[0], Constant(axis)]))
    if not 0 < size <= _MOST_STEPS:
        raise GraphBreak("long_trace", f"{size} steps")
    return [
        variables(t, spec.unflatten([
            t.graph.call(torch.Tensor.select, [leaf, Constant(axis), Constant(index)], {})
            for leaf in leaves
        ]))
        for index in range(size)
    ]  # fmt: skip


def _require_alike(t, before: Variable, after: Variable) -> None:
    """Each step carries on what the one before has."""
    old, new = (tree_flatten(structure(t, each)) for each in (before, after))
    facts = [[(x.fake.shape, x.fake.dtype) for x in leaves if isinstance(x, TensorVariable)]
             for leaves in (old[0], new[0])]  # fmt: skip
    if old[1] != new[1] or facts[0] != facts[1] or len(facts[0]) < len(old[0]):
        raise GraphBreak("torch_refused", "scan with a carry that changes its kind")


def _stacked(t, parts: list[Variable], axis: int = 0) -> Variable:
    """Structures of tensors as one structure of stacked tensors, along a dimension if these have
    it."""
    flat = [tree_flatten(structure(t, part)) for part in parts]
    spec = flat[0][1]
    tensors = all(isinstance(leaf, TensorVariable) for leaves, _ in flat for leaf in leaves)
    if not tensors or any(each != spec for _, each in flat):
        raise GraphBreak("torch_refused", "steps that give different things")
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    made = [t.graph.call(torch.stack, [t.wrap_list(list(column))], {}) for column in columns]
    made = [
        t.graph.call(torch.movedim, [each, Constant(0), Constant(axis)], {})
        if 0 < axis < each.fake.dim() else each
        for each in made
    ]  # fmt: skip
    return variables(t, spec.unflatten(made))
