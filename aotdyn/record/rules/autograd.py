"""`torch.autograd.Function`: its forward and backward are traced into functions of the graph, or
the forward alone into the graph where no gradient is recorded."""

import contextlib
from collections.abc import Iterator

import torch
from torch._C import _functorch
from torch.autograd.function import once_differentiable

from ...package import operators
from ...package.graph import Value
from ..nested import values
from ..operation import apply, call
from ..polyfills.autograd import Context, run_forward
from ..signals import GraphBreak
from ..variables import Constant, Known, ObjectVariable, TensorVariable, TupleVariable, Variable
from .table import rule

_Function = torch.autograd.Function
_ONCE = once_differentiable(lambda ctx: None).__code__


@rule(_Function.apply.__func__, Known)
def apply_function(t, self, *args, **kwargs):
    args = [t.realize(arg) for arg in args]
    if kwargs:
        raise GraphBreak("autograd", f"{self.value.__qualname__}.apply")
    if any(map(_is_transformed, args)):
        # A transform takes the rules of the class, not what is in them.
        raise GraphBreak("autograd", f"{self.value.__qualname__}.apply in a derivative")
    needs = [_needs_gradient(t, arg) for arg in args]
    if any(needs) and (torch.is_grad_enabled() or t.graph.in_backward):
        return _Application(t, self, args, needs).result()
    return _without_grad(t, self, args)


def _needs_gradient(t, arg: Variable) -> bool:
    if not isinstance(arg, TensorVariable):
        return False
    # In a backward that is differentiated itself, all may have one.
    floats = arg.fake.is_floating_point() or arg.fake.is_complex()
    return arg.fake.requires_grad or t.graph.in_backward and floats


def _is_transformed(arg: Variable) -> bool:
    """Whether a tensor is one that a transform differentiates, or maps over while its gradient is
    recorded."""
    fake = arg.fake if isinstance(arg, TensorVariable) else None
    while fake is not None and _functorch.is_functorch_wrapped_tensor(fake):
        if _functorch.is_gradtrackingtensor(fake):
            return True
        fake = _functorch.get_unwrapped(fake)
        if fake.requires_grad and torch.is_grad_enabled():
            return True
    return False


@contextlib.contextmanager
def _grad_disabled() -> Iterator[None]:
    """Gradients are off while tracing, as C has them off around forward and backward. The graph
    does not switch them: what runs it does."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        yield
    finally:
        torch._C._set_grad_enabled(before)


def _forward(t, cls: Known, args: list[Variable], needs: list[bool]) -> tuple:
    """The context and what `forward` gives."""
    ctx = t.construct(Context, [t.new(TupleVariable(map(Constant, needs)))], {})
    has_setup = cls.value.setup_context is not _Function.setup_context
    given = [cls, ctx, Constant(has_setup), t.new(TupleVariable(args))]
    return ctx, t.realize(t.inline_live(run_forward, given, {}))


def _parts(t, cls: Known, result: Variable) -> list[Variable]:
    """The outputs of `forward`: C knows a single one and tuples."""
    if isinstance(result, TupleVariable) and result.cls is tuple:
        return [t.realize(item) for item in result.items]
    if isinstance(result, TensorVariable):
        return [result]
    raise GraphBreak("autograd", f"{cls.value.__qualname__}.forward gives no tensor or tuple")


def _noted(t, ctx: ObjectVariable, name: str) -> list[Variable]:
    """The tensors that `forward` has given to a method of the context."""
    items = [t.realize(item) for item in t.realize(ctx.attributes[name]).items]
    for item in items:
        if not isinstance(item, TensorVariable) and item.constant() is not None:
            raise GraphBreak("autograd", f"{name} holds a {item.describe()}")
    return [item for item in items if isinstance(item, TensorVariable)]


def _assembled(result: Variable, parts: list[Variable], t) -> Variable:
    return t.new(TupleVariable(parts)) if isinstance(result, TupleVariable) else parts[0]


def _without_grad(t, cls: Known, args: list[Variable]) -> Variable:
    enabled = torch.is_grad_enabled()
    if enabled:
        apply(t, torch._C._set_grad_enabled, [Constant(False)])
    ctx, result = _forward(t, cls, args, [False] * len(args))
    dirty = _noted(t, ctx, "dirty_tensors")
    parts = []
    for part in _parts(t, cls, result):
        given = isinstance(part, TensorVariable) and any(part is arg for arg in args)
        if given and not any(part is each for each in dirty):
            # C gives a new tensor then.
            part = t.graph.call(torch.Tensor.view_as, [part, part], {})
        parts.append(part)
    if enabled:
        apply(t, torch._C._set_grad_enabled, [Constant(True)])
    return _assembled(result, parts, t)


class _Application:
    """One call of `apply` under gradients.

    The backward is traced at once, for gradients that are contiguous; what it uses of the forward
    is saved or kept as the program asked for it.
    """

    def __init__(self, t, cls: Known, args: list[Variable], needs: list[bool]):
        self.t = t
        self.cls = cls
        self.args = args
        self.needs = needs

    def result(self) -> Variable:
        t, cls = self.t, self.cls
        with t.graph.function() as forward, _grad_disabled():
            ctx, result = _forward(t, cls, self.args, self.needs)
            parts = _parts(t, cls, result)
            outputs = [part for part in parts if isinstance(part, TensorVariable)]
            names = [t.graph.tensor_name(output) for output in outputs]
            tensors = _noted(t, ctx, "to_save")
            to_save = [t.graph.tensor_name(tensor) for tensor in tensors]
        if not t.constant(ctx.attributes["materialize_grads"]):
            raise GraphBreak("autograd", f"{cls.value.__qualname__} does not materialize gradients")
        with (
            t.graph.function(forward, backward=True) as backward,
            _grad_disabled(),
            t.effects.only_own(ctx),
        ):
            gradients = self._backward(ctx, parts)
        if any(node.name.startswith("state") for node in backward.nodes) and not self._once:
            raise GraphBreak("autograd", f"{cls.value.__qualname__}.backward switches a mode")
        free = backward.free(gradients)
        saved = [name for name in free if name in to_save]
        kept = [name for name in free if name not in to_save]
        outer = forward.free((values(names), values(saved), values(kept)))
        call_ = (
            forward.function(outer, (values(names), values(saved), values(kept))),
            backward.function([*backward.params, *saved, *kept], gradients),
            self._indices(outputs, _noted(t, ctx, "dirty_tensors")),
            self._indices(outputs, _noted(t, ctx, "non_differentiable")),
            self._once,
        )
        made = self._record(call_, outer, outputs, (tensors, saved))
        remaining = iter(made)
        parts = [next(remaining) if isinstance(p, TensorVariable) else p for p in parts]
        return _assembled(result, parts, t)

    @property
    def _once(self) -> bool:
        """Whether the backward is marked as one that has no gradients itself."""
        return self.cls.value.backward.__code__ is _ONCE

    def _backward(self, ctx: ObjectVariable, parts: list[Variable]) -> tuple:
        """Traces the backward; what it gives for each tensor among the arguments."""
        t, name = self.t, self.cls.value.__qualname__
        if self.cls.value.backward is _Function.backward:
            raise GraphBreak("autograd", f"{name} has no backward")
        gradients = [self._gradient(p) if isinstance(p, TensorVariable) else Constant(None)
                     for p in parts]  # fmt: skip
        function = apply(t, getattr, [self.cls, Constant("backward")])
        found = t.realize(call(t, function, [ctx, *gradients]))
        items = found.items if isinstance(found, TupleVariable) else [found]
        items = [t.realize(item) for item in items]
        if len(items) < len(self.args):
            raise GraphBreak("autograd", f"{name}.backward gives too few gradients")
        given = []
        for item, arg in zip(items, [*self.args, *[None] * (len(items) - len(self.args))]):
            is_tensor = isinstance(item, TensorVariable)
            if not is_tensor and item.constant() is not None:
                raise GraphBreak("autograd", f"{name}.backward gives a {item.describe()}")
            if isinstance(arg, TensorVariable):
                given.append(Value(t.graph.tensor_name(item)) if is_tensor else None)
            elif is_tensor:
                raise GraphBreak("autograd", f"{name}.backward gives a gradient for no tensor")
        return tuple(given)

    def _gradient(self, output: TensorVariable) -> TensorVariable:
        """The gradient that the backward gets for an output."""
        fake = output.fake
        facts = {"dtype": fake.dtype, "device": fake.device}
        return self.t.graph.tensor_parameter(
            "gradient", self.t.graph.run(torch.empty, [tuple(fake.shape)], facts)
        )

    def _indices(self, outputs: list[TensorVariable], marked: list[Variable]) -> tuple[int, ...]:
        found = [i for i, output in enumerate(outputs) if any(output is each for each in marked)]
        if len(found) < len(marked):
            raise GraphBreak("autograd", f"{self.cls.value.__qualname__} marks what it keeps")
        return tuple(found)

    def _record(self, call_: tuple, outer: list[str], outputs: list, kept: tuple) -> list[Variable]:
        """Adds the node; gives the outputs as the frame sees them."""
        t = self.t
        tensors = [arg for arg in self.args if isinstance(arg, TensorVariable)]
        given = values([t.graph.tensor_name(arg) for arg in tensors])
        fakes = [output.fake for output in outputs]
        saved = [tensor.fake for tensor in kept[0] if tensor.node in kept[1]]
        forward, backward, *marks = call_
        # Autograd itself says what the outputs are: views, leaves, in place.
        found = t.graph.run(
            operators.differentiable,
            [lambda: (fakes, saved, ()), None, *marks, [arg.fake for arg in tensors], ()],
            {},
        )
        for output in outputs:
            t.graph.released(output)
        node = t.graph.add(
            self.cls.value.__name__,
            t.references.to(operators.differentiable),
            (forward, backward, *marks, given, values(outer)),
        )
        return t.graph.wrap(found, node).items
