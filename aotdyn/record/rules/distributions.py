"""`torch.distributions` is inlined, but for two things that it does with classes."""

import torch
from torch.distributions import kl
from torch.distributions.utils import _lazy_property_and_property

from ...package.reference import Import
from ...package.source import Attribute, Bound
from ..invoke import CONSTRUCTORS
from ..operation import call
from ..signals import GraphBreak
from ..variables import Variable
from .table import rule


class LazyProperty(Variable):
    """What a class has for an attribute that its instances compute on first use."""

    __slots__ = ()

    @property
    def type(self) -> type:
        return _lazy_property_and_property


def _make(t, cls, args, kwargs) -> Variable:
    return t.new(LazyProperty())


CONSTRUCTORS[_lazy_property_and_property] = _make


@rule(torch.distributions.kl_divergence)
def kl_divergence(t, p, q):
    """By what is registered for the two classes, of which there are as many as now."""
    kinds = [t.realize(each).type for each in (p, q)]
    function = kl._dispatch_kl(*kinds)
    if function is NotImplemented:
        raise GraphBreak("unknown_operation", f"kl_divergence of {kinds[0].__qualname__}")
    registry = Attribute(Bound(Import(kl.__name__)), "_KL_REGISTRY")
    t.guard("LENGTH", registry, len(kl._KL_REGISTRY))
    return call(t, t.lazy(function, Bound(t.references.to(function))), [p, q])
