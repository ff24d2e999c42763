"""Recurrent layers on fakes: torch takes them apart step by step there, which says nothing of the
result that the first step does not say, and would fix how many there are."""

import functools
from typing import Any

import torch

from ..variables import TensorVariable
from .table import rule


def _of_first_step(operation: Any):
    """What gives the same facts as an operator: its result for the first step, as long as all."""

    @functools.wraps(operation)
    def on_fakes(input: torch.Tensor, hidden: Any, params: Any, *options: Any, **named: Any):
        # Of a packed sequence another argument stands second; one step is all there is to do.
        whole = not isinstance(params, list | tuple) or input.dim() != 3
        batch_first = bool(named.get("batch_first", options[5] if len(options) > 5 else False))
        steps = None if whole else input.size(int(batch_first))
        if steps is None or isinstance(steps, int) and steps < 2:
            return operation(input, hidden, params, *options, **named)
        first = input.narrow(int(batch_first), 0, 1)
        output, *states = operation(first, hidden, params, *options, **named)
        output = output.transpose(0, 1) if batch_first else output
        output = output.expand(steps, -1, -1).contiguous()
        return (output.transpose(0, 1) if batch_first else output, *states)

    return on_fakes


def _register(operation: Any) -> None:
    on_fakes = _of_first_step(operation)

    @rule(operation, TensorVariable)
    def recurrent(t, *args, **kwargs):
        given = [t.realize(arg) for arg in args]
        named = {name: t.realize(arg) for name, arg in kwargs.items()}
        return t.graph.call(operation, given, named, on_fakes)


# Not the LSTM, of which all steps are one operator of oneDNN.
for _operation in (torch.gru, torch.rnn_tanh, torch.rnn_relu):
    _register(_operation)
