"""Operators that take functions, for graphs: torch has them for its compilers only, or not at all.

Graphs name them by import, and so do packages: they keep their names and what they take.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

# Without the wrapper that imports torch's compiler to keep it out.
_checkpoint = checkpoint.__wrapped__


def differentiable(
    forward: Callable,
    backward: Callable,
    dirty: tuple[int, ...],
    constant: tuple[int, ...],
    once: bool,
    args: tuple,
    values: tuple,
) -> tuple:
    """What an `autograd.Function` gives.

    forward(*values) -> (outputs, what is saved for backward, what is kept besides).
    backward(*gradients, *saved, *kept) -> one gradient or None for each of `args`.
    dirty, constant: which outputs are inputs changed in place, which have no gradient.
    """
    rule = _Once if once else _Rule
    return rule.apply((forward, backward, dirty, constant, values), *args)


class _Rule(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call: tuple, *args: torch.Tensor) -> tuple:
        forward, backward, dirty, constant, values = call
        outputs, saved, kept = forward(*values)
        ctx.save_for_backward(*saved)
        ctx.rule, ctx.kept = backward, kept
        ctx.mark_dirty(*(outputs[index] for index in dirty))
        ctx.mark_non_differentiable(*(outputs[index] for index in constant))
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *gradients: torch.Tensor) -> tuple:
        # The rule was recorded for gradients of this layout.
        plain = (gradient.contiguous() for gradient in gradients)
        return (None, *ctx.rule(*plain, *ctx.saved_tensors, *ctx.kept))


class _Once(_Rule):
    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients: torch.Tensor) -> Any:
        return _Rule.backward(ctx, *gradients)


def checkpointed(
    function: Callable, preserve_rng_state: bool, args: tuple, others: tuple
) -> tuple:
    """What function(*args, *others) gives; computed again in the backward instead of kept.

    args: what the program has passed, which must not be changed in between.
    """
    if not torch.is_grad_enabled():
        return function(*args, *others)

    def call(*given: Any) -> tuple:
        return function(*given, *others)

    return _checkpoint(call, *args, use_reentrant=False, preserve_rng_state=preserve_rng_state)


def conditional(condition: Any, yes: Callable, no: Callable, values: tuple) -> tuple:
    """What one of two functions gives. condition: a bool or a tensor with one element."""
    return yes(*values) if condition else no(*values)


def transformed(
    transform: Callable, options: dict[str, Any], function: Callable, args: tuple, others: tuple
) -> Any:
    """`transform(f, **options)(*args)`, a transform of torch.func.

    function: what f does, called with the leaves of its arguments and then the others.
    """

    def call(*given: Any) -> Any:
        return function(*tree_leaves(given), *others)

    return transform(call, **options)(*args)


def scanned(combine: Callable, tensors: tuple, dim: int, reverse: bool, others: tuple) -> tuple:
    """The associative scan of tensors along a dimension.

    combine: of the leaves of two neighbours and the others, gives the leaves of the result.
    """
    # Only graphs that scan need it.
    from torch._higher_order_ops.associative_scan import associative_scan

    def call(left: tuple, right: tuple) -> tuple:
        return tuple(combine(*left, *right, *others))

    return tuple(associative_scan(call, tensors, dim, reverse, "generic"))
