"""What the backward part gets from the forward part is what it was then, or an error.

Code gives tensors of its own, which may lie in the memory of an input or of a result. Autograd sees
that such memory was written to in the meantime only if they count versions together.
"""

from collections.abc import Sequence
from typing import Any

import torch

from ...package.plan import Plan
from .results import may_be_copied, view_like, was_copied


class Saved:
    """Ties the saved tensors of a plan's forward part to what they are parts of.

    first: the index of the first one among the part's results. Which is part of what follows from
    the code, so that it is found out once.
    """

    def __init__(self, plan: Plan, first: int):
        self.first = first
        self.replaced = frozenset(updated.input for updated in plan.updated if updated.data)
        # (index, index of the input or else -1, of the result or else -1)
        self.ties: list[tuple[int, int, int]] | None = None

    def __call__(self, inputs: Sequence[Any], found: list[Any], end: int) -> None:
        """Changes the saved tensors in `found`, which end at `end`."""
        ties = self.ties
        if ties is None:
            ties = self._find(inputs, found, end)
        for index, source, result in ties:
            if source in self.replaced:
                # The new value is written to it when the part has run.
                found[index] = _copy(found[index])
            else:
                base = inputs[source] if source >= 0 else found[result]
                if found[index] is not base and not was_copied(base, found[index]):
                    found[index] = view_like(base.detach(), found[index], False)

    def _find(self, inputs: Sequence[Any], found: list[Any], end: int) -> list:
        owners: dict[int, tuple[int, int]] = {}
        apart = True
        for index, value in enumerate(found[: self.first]):
            if isinstance(value, torch.Tensor):
                owners.setdefault(_memory(value), (-1, index))
        known: set[int] = set()
        for index, value in enumerate(inputs):
            if isinstance(value, torch.Tensor):
                apart = apart and _memory(value) not in known and not may_be_copied(value)
                known.add(_memory(value))
                owners[_memory(value)] = (index, -1)
        ties = []
        for index in range(self.first, end):
            value = found[index]
            source, result = owners.get(_memory(value), (-1, -1))
            if source < 0 and result < 0:
                continue
            base = inputs[source] if source >= 0 else found[result]
            if value.dtype == base.dtype and (value is not base or source in self.replaced):
                ties.append((index, source, result))
        if apart:  # else another call may tell more
            self.ties = ties
        return ties


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """In memory of its own, with the same strides."""
    memory = tensor.untyped_storage().clone()
    made = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return made.set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())
