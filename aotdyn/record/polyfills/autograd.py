"""`torch.autograd.Function`, without what C does around it; hooks of tensors as functions."""

import torch


class Context:
    """What `forward` and `backward` get as their context. Its attributes have the names that they
    have in C, where those a program sets cannot clash with them either."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.to_save = ()
        self.dirty_tensors = ()
        self.non_differentiable = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors):
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        pass

    def mark_dirty(self, *tensors):
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        self.non_differentiable = tensors

    def set_materialize_grads(self, value):
        self.materialize_grads = value

    @property
    def saved_tensors(self):
        return self.to_save


def run_forward(cls, ctx, has_setup, args):
    """What `cls.forward` gives; has_setup: whether the class has a `setup_context` of its own."""
    if not has_setup:
        return cls.forward(ctx, *args)
    result = cls.forward(*args)
    cls.setup_context(ctx, args, result)
    return result


class Hooked(torch.autograd.Function):
    """A tensor whose gradient a hook sees, and may replace. A copy: one that shares its memory
    could not be changed in place."""

    @staticmethod
    def forward(ctx, tensor, hook):
        ctx.hook = hook
        return tensor.clone()

    @staticmethod
    def backward(ctx, gradient):
        replaced = ctx.hook(gradient)
        return gradient if replaced is None else replaced, None
