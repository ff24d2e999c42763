"""Hooks on tensors, and gradients that are kept. One on a tensor that came in is registered when
the graph has run, through which all gradients pass that it gets from there; one on a tensor that
the frame has made, and not used so far, is a function whose backward it is. Any other tensor is
made outside of the graph: a compiled one has no gradients within."""

import torch
from torch.utils.hooks import RemovableHandle

from ..body import BodyWriter, rebuilds
from ..hazards import storage_of
from ..operation import apply, truth
from ..polyfills.autograd import Hooked
from ..signals import GraphBreak
from ..variables import Constant, Known, MethodVariable, TensorVariable, Variable
from .autograd import apply_function
from .gradients import of_autograd, version_of
from .table import rule


class HandleVariable(Variable):
    """What registering a hook gives. of: on what; method: that by which it is done; active: until
    it is removed."""

    __slots__ = ("of", "hook", "method", "active")

    def __init__(self, of: Variable, hook: Variable, method: str):
        super().__init__()
        self.of = of
        self.hook = hook
        self.method = method
        self.active = True

    @property
    def type(self) -> type:
        return RemovableHandle


class TensorHandle(HandleVariable):
    """That of a hook on a tensor. version: how often it had been changed then."""

    __slots__ = ("version",)

    def __init__(self, of: TensorVariable, hook: Variable, method: str):
        super().__init__(of, hook, method)
        self.version = version_of(of.fake)

    @property
    def came_in(self) -> bool:
        """Whether the tensor existed before the frame."""
        return self.of.source is not None


@rule(torch.Tensor.register_hook, TensorVariable)
def register_hook(t, self, hook):
    if not self.fake.requires_grad or not torch.is_grad_enabled():
        raise GraphBreak("autograd", "Tensor.register_hook without gradients")
    if self.source is not None:
        return _registered_afterwards(t, self, hook, "register_hook")
    t.graph.require_unhooked(self)
    if t.graph.is_used(self) or _is_shared(t, self):
        raise GraphBreak("inner_gradient", "Tensor.register_hook", self.origin)
    t.graph.become(self, apply_function(t, Known(Hooked), self, hook))
    return t.new(TensorHandle(self, hook, "register_hook"))


@rule(torch.Tensor.register_post_accumulate_grad_hook, TensorVariable)
def register_post_accumulate_grad_hook(t, self, hook):
    if self.source is None or not self.fake.requires_grad or not self.fake.is_leaf:
        raise GraphBreak("autograd", "Tensor.register_post_accumulate_grad_hook")
    return _registered_afterwards(t, self, hook, "register_post_accumulate_grad_hook")


@rule(torch.Tensor.retain_grad, TensorVariable)
def retain_grad(t, self):
    """A leaf keeps its gradient in any case."""
    if not self.fake.requires_grad:
        raise GraphBreak("autograd", "Tensor.retain_grad without gradients")
    if truth(t, of_autograd(t, self, "is_leaf")) or truth(t, of_autograd(t, self, "retains_grad")):
        return Constant(None)
    if self.source is None:
        raise GraphBreak("inner_gradient", "Tensor.retain_grad", self.origin)
    _registered_afterwards(t, self, Constant(None), "retain_grad")
    return Constant(None)


def _registered_afterwards(t, tensor: TensorVariable, hook: Variable, method: str) -> Variable:
    if t.graph.is_nested:
        raise GraphBreak("autograd", f"Tensor.{method} in a function of the graph")
    handle = t.new(TensorHandle(tensor, t.realize(hook), method))
    t.effects.hooks.append(handle)
    t.effects.count += 1
    return handle


def _is_shared(t, tensor: TensorVariable) -> bool:
    """Whether other tensors may be views of this one, or this one of them."""
    return tensor.fake._is_view() or any(
        storage_of(each.fake) == storage_of(tensor.fake) for each in t.tensors
    )


@rule(getattr, HandleVariable)
def handle_getattr(t, self, name):
    key = t.constant(name)
    if key not in ("remove", "__enter__", "__exit__"):
        raise GraphBreak("hooks", f"{key} of a hook's handle", self.origin)
    return MethodVariable(self, Known(getattr(RemovableHandle, key)))


@rule(RemovableHandle.__enter__, HandleVariable)
def enter_handle(t, self):
    return self


@rule(RemovableHandle.__exit__, HandleVariable)
def leave_handle(t, self, *error):
    return apply(t, RemovableHandle.remove, [self])


@rule(RemovableHandle.remove, TensorHandle)
def remove_hook(t, self):
    if not self.came_in:
        raise GraphBreak("autograd", "a hook is removed again", self.origin)
    self.active = False
    t.effects.count += 1
    return Constant(None)


@rebuilds(TensorHandle)
def _handle(w: BodyWriter, v: TensorHandle) -> str:
    if not v.came_in:
        raise GraphBreak("reconstruct", "the handle of a hook", v.origin)
    if v.method == "retain_grad":
        return w.bind("handle", f"{w.value(v.of)}.retain_grad()")
    if v.version != version_of(v.of.fake):
        raise GraphBreak("autograd", "a tensor is changed that has a hook", v.origin)
    name = w.bind("handle", f"{w.value(v.of)}.{v.method}({w.value(v.hook)})")
    if not v.active:
        w.lines.append(f"{name}.remove()")
    return name
