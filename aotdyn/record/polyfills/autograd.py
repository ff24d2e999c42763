"""`torch.autograd.Function` where no gradient is recorded."""

import torch


class Context:
    """What `forward` gets as its context; nobody will ask for what it keeps."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.to_save = ()

    def save_for_backward(self, *tensors):
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        pass

    def mark_non_differentiable(self, *tensors):
        pass

    def set_materialize_grads(self, value):
        pass

    @property
    def saved_tensors(self):
        return self.to_save


def apply_without_grad(cls, has_setup, args):
    """`cls.apply(*args)`; has_setup: whether the class has a `setup_context` of its own."""
    ctx = Context((False,) * len(args))
    with torch.no_grad():
        if has_setup:
            result = cls.forward(*args)
            cls.setup_context(ctx, args, result)
        else:
            result = cls.forward(ctx, *args)
    return result
