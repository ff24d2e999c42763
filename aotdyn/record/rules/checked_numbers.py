"""`tensor.item()` of which the program only asks whether something holds, and raises where it does
not: the number stays in the graph, as a copy of the tensor. Whatever else is done with it breaks
the graph where the program has asked for it."""

import operator

import torch

from ..assumptions import CheckedNumber, Verdict, is_checked_next
from ..body import BodyWriter, rebuilds
from ..operation import apply
from ..variables import Constant, Symbolic, TensorVariable, Variable
from .table import rule

# What numbers of these types become without loss: comparisons of tensors round the other side.
_WIDEST = {
    **dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), torch.int64),
    **dict.fromkeys((torch.float16, torch.bfloat16, torch.float32, torch.float64), torch.float64),
}


def number_to_check(t, tensor: TensorVariable) -> Variable | None:
    """The number in a tensor, where the next branch of the frame only checks; else None."""
    dtype = _WIDEST.get(tensor.fake.dtype)
    if dtype is None or tuple(tensor.fake.shape) not in ((), (1,)) or not is_checked_next(t):
        return None
    alone = t.graph.call(torch.Tensor.detach, [tensor], {})
    how = {"dtype": Constant(dtype), "copy": Constant(True)}
    return t.new(CheckedNumber(t, t.graph.call(torch.Tensor.to, [alone], how)))


def _compare(operation) -> None:
    @rule(operation, CheckedNumber)
    def compare(t, self, other):
        other = t.realize(other)
        if isinstance(other, CheckedNumber):
            found = other.tensor if other.kind is self.kind else None
        else:
            found = other if _fits(self, other) else None
        if found is None:
            raise self.asked()
        return t.new(Verdict(self, t.realize(apply(t, operation, [self.tensor, found]))))

    @rule(operation, Constant, Symbolic)
    def compare_reversed(t, self, other):
        other = t.realize(other)
        if not isinstance(other, CheckedNumber):
            return NotImplemented
        return apply(t, _MIRRORED[operation], [other, self])


_MIRRORED = {
    operator.eq: operator.eq, operator.ne: operator.ne, operator.lt: operator.gt,
    operator.gt: operator.lt, operator.le: operator.ge, operator.ge: operator.le,
}  # fmt: skip


def _fits(number: CheckedNumber, other: Variable) -> bool:
    """Whether a tensor of the number compares with another number as Python's numbers do."""
    if isinstance(other, Symbolic):
        return other.type is number.kind
    if not isinstance(other, Constant) or other.type not in (int, float):
        return False
    if number.kind is int:
        return other.type is int and abs(other.value) < 2**63
    return other.type is float or abs(other.value) <= 2**53


for _operation in _MIRRORED:
    _compare(_operation)


def _same(kind: type) -> None:
    @rule(kind, CheckedNumber)
    def convert(t, self):
        if self.kind is not kind:
            raise self.asked()
        return self


_same(int)
_same(float)


@rebuilds(CheckedNumber, Verdict)
def _asked(w: BodyWriter, v: CheckedNumber) -> str:
    raise v.asked()
