"""What autograd knows of a tensor, as the program asks for it: gradients, leaves, versions; and the
attributes that a program sets on tensors. Fakes have been through the same operators as the tensors
that they stand for, so they tell."""

import operator

import torch

from ...package.reference import Import
from ...package.source import Attribute
from ..body import BodyWriter, rebuilds
from ..hazards import storage_of
from ..operation import apply
from ..signals import GraphBreak
from ..variables import (
    DELETED,
    Constant,
    GradientFunction,
    ListVariable,
    TensorVariable,
    TupleVariable,
    Variable,
)
from .table import rule

NONE = Constant(None)

# What may be asked of a tensor that came in after its data was replaced.
_KEPT_WITH_DATA = ("data", "grad", "requires_grad", "is_leaf")


def of_autograd(t, self: TensorVariable, key: str) -> Variable:
    """An attribute that autograd answers for."""
    return _ANSWERS[key](t, self)


def _grad(t, self: TensorVariable) -> Variable:
    if self.source is not None:
        return t.lazy(self.live.grad, Attribute(self.source, "grad"))
    if self.fake.requires_grad and not self.fake.is_leaf:
        raise GraphBreak("autograd", "grad of a tensor that is no leaf")
    # Nothing in a graph runs a backward.
    return NONE


def _is_leaf(t, self: TensorVariable) -> Variable:
    if self.source is not None:
        t.guard("EQUALS", Attribute(self.source, "is_leaf"), self.live.is_leaf)
    return Constant(self.fake.is_leaf)


def _grad_fn(t, self: TensorVariable) -> Variable:
    if self.source is not None:
        t.guard("EQUALS", Attribute(self.source, "is_leaf"), self.live.is_leaf)
        if storage_of(self.fake) not in t.shapes.hazards.changed:
            # That of the fake only says that there is one.
            return t.lazy(self.live.grad_fn, Attribute(self.source, "grad_fn"))
        if self.live._is_view():
            raise GraphBreak("autograd", "grad_fn of a view that came in and is changed")
    function = self.fake.grad_fn
    return NONE if function is None else t.new(GradientFunction(self, function))


@rule((bool, operator.truth), GradientFunction)
def truth_of_function(t, self):
    return Constant(True)


@rebuilds(GradientFunction)
def _gradient_function(w: BodyWriter, v: GradientFunction) -> str:
    if v.of.fake.grad_fn is not v.function:
        raise GraphBreak("reconstruct", "the grad_fn of a tensor that was changed", v.origin)
    return w.bind("grad_fn", f"{w.value(v.of)}.grad_fn")


def _version(t, self: TensorVariable) -> Variable:
    came_in = self.source is not None
    if came_in or any(storage_of(each.fake) == storage_of(self.fake) for each in t.tensors):
        raise GraphBreak("varies", "how often a tensor was changed that came in")
    if self.fake.is_inference():
        raise GraphBreak("autograd", "the version of an inference tensor")
    return Constant(self.fake._version)


def _retains_grad(t, self: TensorVariable) -> Variable:
    if self.source is None:
        return Constant(False)
    if any(handle.of is self and handle.method == "retain_grad" for handle in t.effects.hooks):
        return Constant(True)
    t.guard("EQUALS", Attribute(self.source, "retains_grad"), self.live.retains_grad)
    return Constant(self.live.retains_grad)


def _output_nr(t, self: TensorVariable) -> Variable:
    if self.source is None:
        raise GraphBreak("autograd", "output_nr")
    t.guard("EQUALS", Attribute(self.source, "output_nr"), self.live.output_nr)
    return Constant(self.live.output_nr)


_ANSWERS = {
    "grad": _grad, "is_leaf": _is_leaf, "grad_fn": _grad_fn, "_version": _version,
    "retains_grad": _retains_grad, "output_nr": _output_nr,
}  # fmt: skip

OF_AUTOGRAD = frozenset(_ANSWERS)


def version_of(fake: torch.Tensor) -> int:
    """How often a fake was changed in place; inference tensors do not count."""
    return 0 if fake.is_inference() else fake._version


# -- what is computed ------------------------------------------------------------


@rule(torch.autograd.grad)
def gradients_of(t, outputs, inputs, *args, **kwargs):
    """Runs outside of the graph. To autograd a compiled one is a single step, within which there
    are no gradients: what they are asked of is made before it."""
    for each in _tensors(t, inputs):
        if each.source is None and each.fake.requires_grad and t.graph.is_used(each):
            raise GraphBreak("inner_gradient", "torch.autograd.grad", each.origin)
    raise GraphBreak("autograd", "torch.autograd.grad")


def _tensors(t, value: Variable) -> list[TensorVariable]:
    value = t.realize(value)
    if isinstance(value, TensorVariable):
        return [value]
    parts = value.items if isinstance(value, TupleVariable | ListVariable) else ()
    return [tensor for part in parts for tensor in _tensors(t, part)]


# -- what is set ------------------------------------------------------------


@rule(torch.Tensor.requires_grad_, TensorVariable)
def requires_grad_(t, self, requires_grad=None):
    wanted = requires_grad is None or bool(t.constant(requires_grad))
    if wanted is self.fake.requires_grad:
        return self
    if t.graph.is_nested:
        # A transform refuses it, and what runs again would do it again.
        raise GraphBreak("autograd", "Tensor.requires_grad_ in a function of the graph")
    if self.source is not None and t.assumptions:
        # It would stay so where the frame starts over and raises before.
        raise GraphBreak("autograd", "Tensor.requires_grad_ after a check of a tensor")
    return t.graph.call(torch.Tensor.requires_grad_, [self, Constant(wanted)], {})


@rule(torch.Tensor.detach_, TensorVariable)
def detach_(t, self):
    """One that came in would not be put back where the graph raises."""
    if self.source is not None or t.graph.is_nested:
        raise GraphBreak("autograd", "Tensor.detach_")
    return t.graph.call(torch.Tensor.detach_, [self], {})


@rule(setattr, TensorVariable)
def tensor_setattr(t, self, name, value):
    key = t.constant(name)
    value = t.realize(value)
    if t.graph.is_nested:
        raise GraphBreak("mutation", f"Tensor.{key} in a function of the graph")
    if key == "requires_grad" and isinstance(value, Constant) and type(value.value) is bool:
        requires_grad_(t, self, value)
    elif key == "data" and isinstance(value, TensorVariable):
        _set_data(t, self, value)
    elif key in ("real", "imag") and isinstance(value, TensorVariable):
        part = t.realize(apply(t, getattr, [self, name]))
        t.graph.call(torch.Tensor.copy_, [part, value], {})
    elif key == "grad" and _fits_as_gradient(self, value) or key not in dir(self.cls):
        t.effects.set_attribute(self, key, value)
    else:
        raise GraphBreak("mutation", f"Tensor.{key}")
    return NONE


@rule(delattr, TensorVariable)
def tensor_delattr(t, self, name):
    key = t.constant(name)
    if t.graph.is_nested or key not in self.attributes or key in dir(self.cls):
        raise GraphBreak("mutation", f"del Tensor.{key}")
    t.effects.delete_attribute(self, key, key in getattr(self.live, "__dict__", ()))
    return NONE


def _fits_as_gradient(self: TensorVariable, value: Variable) -> bool:
    """Whether torch takes a value for the gradient of a tensor, for certain."""
    if not isinstance(value, TensorVariable):
        return isinstance(value, Constant) and value.value is None
    facts = [(x.dtype, x.device, [*map(str, x.shape)]) for x in (self.fake, value.fake)]
    return value is not self and facts[0] == facts[1]


def _set_data(t, self: TensorVariable, value: TensorVariable) -> None:
    """Of a tensor that the frame has made, in the graph; of one that came in, when the graph has
    run, which could not be put back if it raises. What uses that one meanwhile breaks, unless the
    new data are like the old ones and have no gradients."""
    if value is self:
        return
    if self.source is not None:
        if type(value.fake) is not type(self.fake) or value.fake.device != self.fake.device:
            raise GraphBreak("mutation", "Tensor.data")
        t.graph.replace_data(self, t.realize(apply(t, getattr, [value, Constant("data")])))
        t.effects.set_attribute(self, "data", value)
        return
    t.graph.run(setattr, [self.fake, "data", value.fake], {})
    args = (t.graph.argument(self), "data", t.graph.argument(value))
    t.graph.add("set_data", Import("builtins", "setattr"), args)


def set_before(t, self: TensorVariable, key: str) -> Variable | None:
    """What the frame has set as an attribute, None where it has set nothing."""
    held = self.attributes.get(key)
    if held is DELETED:
        t.raise_exception(AttributeError, f"'Tensor' object has no attribute {key!r}")
    if held is not None and key == "data":
        return t.graph.call(torch.Tensor.detach, [held], {})
    if key not in _KEPT_WITH_DATA:
        # Anything else may be another one now.
        t.graph.tensor_name(self)
    return held

