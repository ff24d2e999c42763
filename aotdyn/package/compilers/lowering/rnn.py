"""Recurrent layers: which of torch's decompositions are worth compiling."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch
from torch._decomp import decompositions

from ..refusal import Refused

# How many steps of a layer are unrolled, without and with gradients. Each becomes some operators: 8
# steps of an LSTM with gradients take 12 s of compiling, 16 of two layers take minutes; eager runs
# them as one operator.
MOST_STEPS, MOST_WITH_GRADIENTS = 32, 8


def rnn_layers() -> dict[str, Callable]:
    """By name, what stands in for functions of torch's table of decompositions."""
    return {
        "select_one_layer_lstm_function": _lstm_layer(decompositions.mkldnn_one_layer_lstm),
        "one_layer_lstm": _few_steps(decompositions.one_layer_lstm),
        "one_layer_rnn": _few_steps(decompositions.one_layer_rnn),
    }


def _lstm_layer(fused: Callable) -> Callable:
    original = decompositions.select_one_layer_lstm_function

    def select(
        input: torch.Tensor, hidden: Sequence[torch.Tensor], params: Sequence[Sequence]
    ) -> Callable:
        """oneDNN's fused layer for inference only: its kernel keeps the workspace that the backward
        operator needs under eager autograd alone."""
        found = original(input, hidden, params)
        tensors = chain((input,), hidden, *params)
        if found is fused and torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            return decompositions.one_layer_lstm
        return found

    return select


def _few_steps(layer: Callable) -> Callable:
    """A layer that is unrolled over the steps of its first argument: (steps, batch, features)."""

    def unrolled(input: torch.Tensor, hidden: Any, params: Sequence, *args: Any, **kwargs: Any):
        wanted = torch.is_grad_enabled() and any(t.requires_grad for t in (input, *params))
        most = MOST_WITH_GRADIENTS if wanted else MOST_STEPS
        steps = input.size(0)
        if not isinstance(steps, int) or steps > most:
            raise Refused(f"of a recurrent layer {most} steps at most are unrolled")
        return layer(input, hidden, params, *args, **kwargs)

    return unrolled
