"""Values that live in the graph: tensors, and ints, floats and bools that are symbolic."""

from typing import Any

import torch

from ...package.source import Source
from .base import Variable

QUANTIZED = (torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one of strides, as graphs hold: operators know too little of fakes of
    other kinds."""
    strided = tensor.layout is torch.strided and not tensor.is_nested
    return strided and tensor.dtype not in QUANTIZED


class TensorVariable(Variable):
    """A tensor. fake: its stand-in without data. node: the graph's node, made on first use for
    what comes in. live: the tensor itself for what comes in; shape, strides: as it came in (an
    operator may change the fake in place). attributes: what the frame has set on it, by name;
    DELETED where it was deleted."""

    __slots__ = ("fake", "node", "live", "cls", "shape", "strides", "attributes")

    def __init__(self, fake, node, source: Source | None = None, live=None, cls=torch.Tensor):
        super().__init__(source)
        self.fake = fake
        self.node = node
        self.live = live
        self.cls = cls
        self.shape = tuple(fake.shape)
        self.strides = tuple(fake.stride()) if live is not None else ()
        self.attributes: dict[str, Any] = {}

    @property
    def type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"tensor{tuple(self.fake.shape)}"


class GradientFunction(Variable):
    """The function that autograd has noted for a tensor: that there is one is known. function:
    that of the fake."""

    __slots__ = ("of", "function")

    def __init__(self, of: TensorVariable, function: Any):
        super().__init__()
        self.of = of
        self.function = function

    @property
    def type(self) -> type:
        return type(self.function)

    def describe(self) -> str:
        return "grad_fn of a tensor"


class Symbolic(Variable):
    """An int, float or bool that depends on sizes or on symbolic arguments.

    value: the torch.SymInt, SymFloat or SymBool. node: its node in the graph; made on first use.
    """

    __slots__ = ("value", "node", "make")

    def __init__(self, value: Any, node=None, source: Source | None = None, make=None):
        super().__init__(source)
        self.value = value
        self.node = node
        self.make = make

    @property
    def type(self) -> type:
        return _PYTHON[type(self.value)]

    def describe(self) -> str:
        return f"symbolic {self.type.__name__}"


_PYTHON = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
