"""A pair of compiled parts as one differentiable call: an autograd.Function of the plan."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import increment_version

from ...package.errors import PackageError
from ...package.plan import NEW, UNSAFE_VIEW, Layout, Plan
from .results import Hidden, Results, is_plain, shown
from .saved import Saved

_FORMATS = {
    "contiguous_format": torch.contiguous_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}

Part = Callable[[Any], list]


def training_call(plan: Plan, forward: Part, backward: Part) -> Callable[[tuple], tuple]:
    """From the graph's inputs to its outputs, which are differentiable."""
    function = _function(plan, forward, backward)
    # `Function.apply` looks for functorch's wrappers in all arguments and then calls this.
    direct = super(torch.autograd.Function, function).apply
    transformed = torch._C._are_functorch_transforms_active
    results = _results(plan)
    detached, bumped = frozenset(plan.detached), plan.bumped

    def call(inputs: tuple) -> tuple:
        if bumped:
            increment_version([inputs[i] for i in bumped])
        given = inputs
        if detached:
            given = tuple(
                [
                    value.detach() if i in detached and isinstance(value, torch.Tensor) else value
                    for i, value in enumerate(inputs)
                ]
            )
        apply = function.apply if transformed() else direct
        if torch.is_grad_enabled():
            return results(inputs, apply(*given))
        with torch.enable_grad():
            found = apply(*given)
        return results(inputs, found)

    return call


def _results(plan: Plan) -> Callable[[tuple, tuple], tuple]:
    if is_plain(plan):
        count = len(plan.outputs)
        return lambda inputs, found: found if len(found) == count else found[:count]
    return Results(plan)


class _Shape:
    """Which of forward's results are what, by index."""

    def __init__(self, plan: Plan):
        outputs, first = plan.outputs, len(plan.updated)
        bases = range(first + len(outputs), first + len(outputs) + plan.bases)
        self.count = bases.stop
        self.hidden = [
            i for i, u in enumerate(plan.updated) if u.storage or (u.metadata and not u.data)
        ] + [first + i for i, o in enumerate(outputs) if o.kind not in (NEW, UNSAFE_VIEW)]
        self.unsafe_views = [first + i for i, o in enumerate(outputs) if o.kind == UNSAFE_VIEW]
        self.without_grad = [i for i, u in enumerate(plan.updated) if not u.requires_grad] + [
            first + i for i, o in enumerate(outputs) if not o.requires_grad
        ]
        gradients = [i for i, u in enumerate(plan.updated) if u.gradient]
        gradients += [first + i for i, o in enumerate(outputs) if o.gradient]
        gradients += bases
        if len(gradients) != len(plan.tangents):
            raise PackageError("a plan whose gradients do not match its outputs")
        self.gradients = list(zip(gradients, map(_coercion, plan.tangents)))


def _function(plan: Plan, forward: Part, backward: Part) -> type[torch.autograd.Function]:
    shape = _Shape(plan)
    count, ints, unchecked = shape.count, plan.ints, plan.unchecked
    hidden, unsafe_views, without_grad = shape.hidden, shape.unsafe_views, shape.without_grad
    autocast, partial = plan.autocast, plan.partial
    tie = Saved(plan, count)

    class CompiledGraph(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> tuple:
            found = forward(inputs)
            end = len(found) - ints
            ctx.ints = found[end:]
            for i in unsafe_views:
                found[i] = torch.ops.aten._unsafe_view(found[i], found[i].shape)
            tie(inputs, found, end)
            # A view would keep its base, and with it a whole history, alive.
            saved = [t.detach() if t._is_view() else t for t in found[count:end]]
            if unchecked:
                ctx.unchecked = saved[len(saved) - unchecked :]
                saved = saved[: len(saved) - unchecked]
            ctx.save_for_backward(*saved)
            results = found[:count]
            for i in hidden:
                results[i] = Hidden(results[i])
            if without_grad:
                ctx.mark_non_differentiable(
                    *[results[i] for i in without_grad if isinstance(results[i], torch.Tensor)]
                )
            ctx._materialize_non_diff_grads = False
            if partial:
                ctx.set_materialize_grads(False)
                ctx.zeros = [_zeros(shown(results[i])) for i, _ in shape.gradients]
            return tuple(results)

        @staticmethod
        def backward(ctx: Any, *tangents: Any) -> tuple:
            given = [*ctx.ints, *ctx.saved_tensors]
            if unchecked:
                given += ctx.unchecked
            absent = frozenset()
            if partial:
                tangents, absent = _completed(tangents, ctx.zeros)
            given += [coerce(tangents[i]) for i, coerce in shape.gradients]
            if torch.is_grad_enabled():
                found = _Once.apply(run_backward, given, *tangents, _marker())
            else:
                found = run_backward(given)
            return _without(found, partial, absent) if absent else found

    def _completed(tangents: tuple, zeros: list) -> tuple[list, frozenset]:
        """The gradients, zeros where there is none, and the indices of those."""
        found = list(tangents)
        absent = [k for k, (i, _) in enumerate(shape.gradients) if tangents[i] is None]
        for k in absent:
            found[shape.gradients[k][0]] = zeros[k]()
        return found, frozenset(absent)

    def run_backward(given: list) -> tuple:
        if not autocast and not torch._C._is_any_autocast_enabled():
            return tuple(backward(given))
        guard = torch._C._DisableAutocast()
        try:
            return tuple(backward(given))
        finally:
            del guard

    return CompiledGraph


def _zeros(result: Any) -> Callable[[], torch.Tensor]:
    """Makes the gradient of a result that nothing was asked of."""
    size, dtype, device = result.shape, result.dtype, result.device
    return lambda: torch.zeros(size, dtype=dtype, device=device)


def _without(found: tuple, partial: tuple, absent: frozenset[int]) -> tuple:
    """As in eager, what follows from absent gradients only is absent, not zero: an optimizer does
    not touch a parameter that has no gradient."""
    without = {index for index, sources in partial if absent.issuperset(sources)}
    return tuple([None if i in without else value for i, value in enumerate(found)])


def _marker() -> torch.Tensor:
    return torch.empty(0, requires_grad=True)


class _Once(torch.autograd.Function):
    """Gradients that are asked for with `create_graph=True`: they are there, and connected, but
    cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[list], tuple], given: list, *connected: Any) -> tuple:
        return run(given)

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> tuple:
        raise RuntimeError(
            "torch.compile with aot_autograd does not currently support double backward"
        )


def _coercion(layout: Layout | None) -> Callable[[Any], Any]:
    """Brings a gradient into the layout that the backward part reads."""
    if layout is None:
        return lambda tangent: tangent
    if layout.memory_format:
        wanted = _FORMATS.get(layout.memory_format)
        if wanted is None:
            raise PackageError(f"a gradient in the format {layout.memory_format!r}")
        return lambda tangent: (
            tangent
            if tangent.is_contiguous(memory_format=wanted)
            else tangent.contiguous(memory_format=wanted)
        )
    size, stride = layout.size, layout.stride

    def coerce(tangent: torch.Tensor) -> torch.Tensor:
        if tangent.stride() == stride and tangent.shape == size:
            return tangent
        made = torch.empty_strided(size, stride, dtype=tangent.dtype, device=tangent.device)
        return made.copy_(tangent)

    return coerce
