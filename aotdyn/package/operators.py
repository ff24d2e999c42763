"""Operators that take functions, for graphs: torch has them for its compilers only, or not at all.

Graphs name them by import, and so do packages: they keep their names and what they take.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_leaves

from .no_compiler import compiler_left_out


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
    region = _Region(function, preserve_rng_state, args, others)
    with saved_tensors_hooks(region.pack, region.unpack):
        return function(*args, *others)


class _Region:
    """What computes again the tensors that the backward of a function needs, all at once when the
    first is asked for. `torch.utils.checkpoint` does the same, but imports torch's compiler.

    Each run saves the same tensors in the same order: a number is enough to tell them apart.
    """

    def __init__(self, function: Callable, preserve: bool, args: tuple, others: tuple):
        self.function = function
        self.args = _Kept(args)
        self.others = others
        self.count = 0
        # By the run of the backward, what was computed again and not asked for yet.
        self.again: dict[int, dict[int, torch.Tensor]] = {}
        devices = {arg.device for arg in args if isinstance(arg, torch.Tensor)}
        self.devices = sorted(device for device in devices if device.type == "cuda")
        self.random = self._random_states() if preserve else None
        self.autocast = [
            (kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind))
            for kind in sorted({"cpu", *(device.type for device in devices)})
            if torch.amp.is_autocast_available(kind)
        ]
        self.cache = torch.is_autocast_cache_enabled()

    def _random_states(self) -> list[torch.Tensor]:
        on_devices = [torch.cuda.get_rng_state(device) for device in self.devices]
        return [torch.get_rng_state(), *on_devices]

    def pack(self, tensor: torch.Tensor) -> int:
        self.count += 1
        return self.count - 1

    def unpack(self, number: int) -> torch.Tensor:
        run = torch._C._current_graph_task_id()
        found = self.again.get(run)
        if found is None or number not in found:
            found = self._compute()
            # Outside of a backward somebody looks at one tensor of a node.
            if run == -1:
                return found[number]
            self.again = {run: found}
        return found.pop(number)

    def _compute(self) -> dict[int, torch.Tensor]:
        found: list[torch.Tensor] = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            found.append(tensor.detach())
            if len(found) == self.count:
                raise _AllComputed
            return tensor

        with contextlib.ExitStack() as stack:
            if self.random is not None:
                stack.enter_context(torch.random.fork_rng(self.devices))
                torch.set_rng_state(self.random[0])
                for device, state in zip(self.devices, self.random[1:]):
                    torch.cuda.set_rng_state(state, device)
            for kind, dtype, enabled in self.autocast:
                stack.enter_context(torch.autocast(kind, dtype, enabled, self.cache))
            stack.enter_context(torch.enable_grad())
            stack.enter_context(saved_tensors_hooks(pack, lambda tensor: tensor))
            stack.enter_context(contextlib.suppress(_AllComputed))
            self.function(*self.args.get(), *self.others)
        return dict(enumerate(found))


class _AllComputed(Exception):
    """Raised in a function that is run again when nothing more is needed of it."""


class _Kept:
    """Arguments as autograd keeps tensors: it complains where one has been changed since, and an
    outer region computes them again."""

    def __init__(self, args: tuple):
        self.places = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        self.rest = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
        leaf = torch.empty(0, requires_grad=True)
        self.kept = _Keep.apply(leaf, *(args[place] for place in self.places))

    def get(self) -> list:
        args = list(self.rest)
        for place, tensor in zip(self.places, self.kept.grad_fn.saved_tensors, strict=True):
            args[place] = tensor
        return args


class _Keep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, leaf: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*tensors)
        return torch.empty(0)

    @staticmethod
    def backward(ctx, *gradients: torch.Tensor) -> Any:
        raise AssertionError("nothing is computed of what only holds tensors")


def conditional(condition: Any, yes: Callable, no: Callable, values: tuple) -> tuple:
    """What one of two functions gives. condition: a bool or a tensor with one element. What the
    other one uses has a gradient, too, of zeros."""
    results = yes(*values) if condition else no(*values)
    used = [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad]
    if not used or not torch.is_grad_enabled():
        return results
    differentiable = [each for each in results if each.requires_grad]
    reaching = iter(_Reaching.apply(len(differentiable), *differentiable, *used))
    return tuple(next(reaching) if each.requires_grad else each for each in results)


class _Reaching(torch.autograd.Function):
    """Tensors, with gradients of zeros for others. Copies: what shares their memory could not be
    changed in place."""

    @staticmethod
    def forward(ctx, count: int, *tensors: torch.Tensor) -> tuple:
        ctx.others = [(each.shape, each.dtype, each.device) for each in tensors[count:]]
        return tuple(each.clone() for each in tensors[:count])

    @staticmethod
    def backward(ctx, *gradients: torch.Tensor) -> Any:
        zeros = [torch.zeros(shape, dtype=dtype, device=device)
                 for shape, dtype, device in ctx.others]  # fmt: skip
        return (None, *gradients, *zeros)


def looped(condition: Callable, body: Callable, carried: tuple, others: tuple) -> tuple:
    """`torch.while_loop`: what body(*carried, *others) has last given, as long as the condition
    held, a tensor of a bool. Always new tensors."""
    if not condition(*carried, *others):
        return tuple(tensor.clone() for tensor in carried)
    while True:
        carried = body(*carried, *others)
        if not condition(*carried, *others):
            return carried


def transformed(
    transform: Callable, options: dict[str, Any], function: Callable, args: tuple, others: tuple
) -> Any:
    """`transform(f, **options)(*args)`, a transform of torch.func.

    function: what f does, called with the leaves of its arguments and then the others.
    """

    with compiler_left_out():
        return transform(_of_arguments(function, others), **options)(*args)


def _of_arguments(function: Callable, others: tuple) -> Callable:
    """f itself, of what `transformed` takes for it."""

    def call(*given: Any) -> Any:
        return function(*tree_leaves(given), *others)

    return call


def pushed_forward(
    function: Callable, has_aux: bool, primals: tuple, tangents: tuple, others: tuple
) -> tuple:
    """`torch.func.jvp(f, primals, tangents, has_aux=has_aux)`; function: as in `transformed`."""
    with compiler_left_out():
        return torch.func.jvp(_of_arguments(function, others), primals, tangents, has_aux=has_aux)


def vjp_value(function: Callable, has_aux: bool, primals: tuple, others: tuple) -> tuple:
    """What `torch.func.vjp(f, *primals, has_aux=has_aux)` gives without the derivative; function:
    as in `transformed`."""
    with compiler_left_out():
        value, _, *aux = torch.func.vjp(_of_arguments(function, others), *primals, has_aux=has_aux)
    return (value, *aux)


def pulled_back(
    function: Callable, has_aux: bool, primals: tuple, cotangents: Any, others: tuple
) -> tuple:
    """What the function that `torch.func.vjp(f, *primals, has_aux=has_aux)` gives makes of
    cotangents; function: as in `transformed`."""
    with compiler_left_out():
        pull = torch.func.vjp(_of_arguments(function, others), *primals, has_aux=has_aux)[1]
        return pull(cotangents)


def scanned(combine: Callable, tensors: tuple, dim: int, reverse: bool, others: tuple) -> tuple:
    """The associative scan of tensors along a dimension.

    combine: of the leaves of two neighbours and the others, gives the leaves of the result.
    """
    # Only graphs that scan need it.
    from torch._higher_order_ops.associative_scan import associative_scan

    def call(left: tuple, right: tuple) -> tuple:
        return tuple(combine(*left, *right, *others))

    return tuple(associative_scan(call, tensors, dim, reverse, "generic"))
