"""`torch.autograd.Function`: inlined where no gradient is recorded, else a graph break."""

import torch

from ..operation import iterate
from ..polyfills.autograd import apply_without_grad
from ..signals import GraphBreak
from ..variables import Constant, Known, Sequence, TensorVariable, TupleVariable, Variable
from .table import rule

_Function = torch.autograd.Function


@rule(_Function.apply.__func__, Known)
def apply_function(t, self, *args, **kwargs):
    cls = self.value
    args = [t.realize(arg) for arg in args]
    if kwargs or torch.is_grad_enabled() and any(map(_requires_grad, args)):
        raise GraphBreak("autograd", f"{cls.__qualname__}.apply")
    has_setup = cls.setup_context is not _Function.setup_context
    result = t.inline_live(
        apply_without_grad, [self, Constant(has_setup), t.new(TupleVariable(args))], {}
    )
    result = t.realize(result)
    parts = iterate(t, result) if isinstance(result, Sequence) else [result]
    if any(part is arg for part in parts for arg in args if isinstance(arg, TensorVariable)):
        # C gives a new tensor then.
        raise GraphBreak("autograd", f"{cls.__qualname__} returns its argument")
    return result


def _requires_grad(arg: Variable) -> bool:
    return isinstance(arg, TensorVariable) and arg.fake.requires_grad
