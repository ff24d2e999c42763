"""`torch.cov` and `torch.corrcoef`, as far as they need no number at run time."""

import operator

import torch

from ..operation import apply, is_none, truth
from ..polyfills import statistics
from ..variables import Constant, TensorVariable, Variable
from .table import rule

NONE, ONE = Constant(None), Constant(1)


@rule((torch.cov, torch.Tensor.cov), TensorVariable)
def covariance(t, self, *, correction=ONE, fweights=NONE, aweights=NONE):
    if not (is_none(t, fweights) and is_none(t, aweights) and _is_enough(t, self, correction)):
        return NotImplemented
    return t.inline_live(statistics.covariance, [self, correction], {})


@rule((torch.corrcoef, torch.Tensor.corrcoef), TensorVariable)
def correlation(t, self):
    if not _is_enough(t, self, ONE):
        return NotImplemented
    return t.inline_live(statistics.correlation, [self], {})


def _is_enough(t, self: TensorVariable, correction: Variable) -> bool:
    """Whether torch takes the numbers, and warns of nothing."""
    fake = self.fake
    if fake.dim() > 2 or fake.is_complex() or fake.dtype is torch.bool:
        return False
    if type(t.constant(correction)) is not int:
        return False
    count = apply(t, torch.Tensor.size, [self, Constant(-1)]) if fake.dim() else Constant(1)
    return truth(t, apply(t, operator.gt, [count, correction]))
