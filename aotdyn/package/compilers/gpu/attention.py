"""Attention by the operator for GPUs that keeps no scores in memory, where torch itself would take
it on the device. With fake tensors torch takes the operations apart instead."""

from typing import Any

import torch
import torch.fx
from torch.nn.functional import scaled_dot_product_attention

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention
_DTYPES = (torch.float16, torch.bfloat16)
_LARGEST_HEAD = 256  # of the kernels that torch has


def use_flash_attention(module: torch.fx.GraphModule) -> None:
    """Attention in the graph is by `attention` from now on."""
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is scaled_dot_product_attention:
            node.target = attention
    module.recompile()


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **options: Any,
) -> torch.Tensor:
    """As torch's function of the same arguments."""
    shared = options.pop("enable_gqa", False)
    if attn_mask is None and not shared and _fit(query, key, value, is_causal):
        return _FLASH(query, key, value, dropout_p, is_causal, **options)[0]
    options["enable_gqa"] = shared
    return scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, **options
    )


def _fit(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, is_causal: bool) -> bool:
    """Whether the operator takes them without copies: what torch asks, and no more than is known
    for all sizes."""
    tensors = (query, key, value)
    if not torch._C._get_flash_sdp_enabled() or query.device.type != "cuda":
        return False
    if any(each.dim() != 4 or each.dtype not in _DTYPES for each in tensors):
        return False
    if len({each.dtype for each in tensors}) > 1:
        return False
    head = query.shape[-1]
    if any(type(each.shape[-1]) is not int or each.shape[-1] != head for each in tensors):
        return False
    if head % 8 or head > _LARGEST_HEAD or any(each.stride(-1) != 1 for each in tensors):
        return False
    if any(0 in each.shape for each in tensors):
        return False
    # A causal mask is aligned otherwise where there are more keys than queries.
    return not is_causal or bool(query.shape[-2] == key.shape[-2])
