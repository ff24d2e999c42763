"""How operators are decomposed where Inductor's own way gives a tensor of another layout than the
operator does: a graph's caller sees the strides of its outputs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor.decomposition import select_decomp_table
from torch._prims_common import suggest_memory_format

_aten = torch.ops.aten


def decompositions() -> dict[Any, Callable]:
    """Inductor's table, mended."""
    table = dict(select_decomp_table())
    if _aten.cat.default in table:
        table[_aten.cat.default] = _cat(table[_aten.cat.default])
    return table


def _cat(original: Callable) -> Callable:
    def cat(tensors: Sequence[torch.Tensor], dim: int = 0) -> Any:
        """Contiguous unless all tensors are channels last, also where but one of them has any
        elements, which Inductor would copy as it is."""
        found = original(tensors, dim)
        if not isinstance(found, torch.Tensor):
            return found
        formats = set(map(suggest_memory_format, tensors))
        wanted = formats.pop() if len(formats) == 1 else torch.contiguous_format
        return found.contiguous(memory_format=wanted)

    return cat
