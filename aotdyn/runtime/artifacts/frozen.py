"""Whether the weights that a call comes with are those that compiled code has taken for constants.

A tensor's contents are compared when it is first seen, and again when torch has counted a change to
it or its memory is another one. What is written past torch's count (`x.data.add_(1)`, NumPy) is not
noticed.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch

from ...package.plan import Plan
from ...package.weights import can_be_stored, weight_digest


def weights_as_frozen(plan: Plan) -> Callable[[tuple], bool]:
    """A test of a graph's inputs."""
    expected = [(frozen.input, frozen.digest) for frozen in plan.frozen]
    # Of the last call that was compared: (input, tensor, version, address), and the answer.
    known: list[tuple[int, weakref.ref, int, int]] = []
    answer = False

    def test(inputs: tuple) -> bool:
        nonlocal known, answer
        for index, reference, version, address in known:
            value = inputs[index]
            if reference() is not value or value._version != version:
                break
            if value.data_ptr() != address:
                break
        else:
            if known:
                return answer
        known = []  # not to be believed if what follows is interrupted
        answer = all(_is(inputs[index], digest) for index, digest in expected)
        if not any(inputs[index].is_inference() for index, _ in expected):
            known = [_facts(index, inputs[index]) for index, _ in expected]
        return answer

    return test


def _is(value: Any, digest: str) -> bool:
    return can_be_stored(value) and weight_digest(value) == digest


def _facts(index: int, value: torch.Tensor) -> tuple[int, weakref.ref, int, int]:
    return index, weakref.ref(value), value._version, value.data_ptr()
