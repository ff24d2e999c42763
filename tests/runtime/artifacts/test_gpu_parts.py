"""What the text of a graph for a GPU is given."""

import torch

from aotdyn.runtime.artifacts.gpu_parts import ALIGNMENT, aligned


def forward(inputs):
    x, y = inputs
    assert not x.data_ptr() % ALIGNMENT
    x.add_(y)
    return [x * 2]


def test_misaligned_inputs_that_are_changed():
    """The code gets an aligned copy with the same strides; the change reaches the input."""
    base = torch.arange(33.0)
    for x in (base[1:], base[1:].view(4, 8).t(), base[1:][::2], base[4:]):
        before, version, strides = x.clone(), x._version, []

        def code(inputs, strides=strides):
            strides.append(inputs[0].stride())
            return forward(inputs)

        y = torch.ones(())
        (found,) = aligned(code, (0,))((x, y))
        assert torch.equal(x, before + 1) and torch.equal(found, x * 2)
        assert strides == [x.stride()]
        # The call itself says what has changed.
        assert x._version == version + (x.data_ptr() % ALIGNMENT == 0)


def test_parameters_are_changed_as_well():
    x = torch.nn.Parameter(torch.zeros(9))[1:].detach().requires_grad_()

    def code(inputs):
        with torch.no_grad():
            return forward(inputs)

    aligned(code, (0,))((x, torch.ones(8)))
    assert x.sum() == 8 and x.requires_grad and x.is_leaf
