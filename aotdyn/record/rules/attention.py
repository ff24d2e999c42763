"""`flex_attention`, whose functions of scores and places become functions of the graph."""

import torch
from torch.nn.attention.flex_attention import flex_attention

from ..operation import apply, is_none
from ..polyfills import attention
from ..signals import GraphBreak
from ..variables import Constant, TensorVariable, Variable
from .table import rule


@rule(flex_attention)
def flexible_attention(
    t, query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=None,
    return_lse=None, kernel_options=None, return_aux=None,
):  # fmt: skip
    """What torch checks is checked here, where it would raise the graph breaks."""
    if not (is_none(t, _or_none(t, kernel_options)) and is_none(t, _or_none(t, return_aux))):
        raise GraphBreak("torch_refused", "flex_attention with options for its kernel")
    if return_lse is not None and t.constant(return_lse):
        raise GraphBreak("torch_refused", "flex_attention that gives more than the result")
    given = [t.realize(each) for each in (query, key, value)]
    if not all(isinstance(each, TensorVariable) for each in given):
        raise GraphBreak("bad_arguments", "flex_attention of what is no tensor")
    shared = enable_gqa is not None and bool(t.constant(enable_gqa))
    mask = _or_none(t, block_mask)
    if not _fit(*(each.fake for each in given), shared) or not _covers(t, mask, given):
        raise GraphBreak("bad_arguments", "flex_attention of tensors that do not fit")
    args = [*given, _or_none(t, score_mod), mask, _or_none(t, scale)]
    return t.inline_live(attention.flexible, args, {})


def _or_none(t, value: Variable | None) -> Variable:
    return Constant(None) if value is None else t.realize(value)


def _fit(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, shared: bool) -> bool:
    tensors = (query, key, value)
    if any(each.dim() != 4 or each.device != query.device for each in tensors):
        return False
    if query.dtype not in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        return False
    if any(each.dtype != query.dtype or each.requires_grad for each in tensors):
        return False
    heads = query.size(1) % key.size(1) == 0 if shared else query.size(1) == key.size(1)
    return bool(
        heads and key.shape[:3] == value.shape[:3] and query.size(0) == key.size(0)
        and query.size(3) == key.size(3) and not torch.is_autocast_enabled(query.device.type)
    )  # fmt: skip


def _covers(t, mask: Variable, given: list[TensorVariable]) -> bool:
    """Whether a mask is one for as many queries and keys."""
    if is_none(t, mask):
        return True
    if mask.type.__module__ != "torch.nn.attention.flex_attention":
        return False
    query, key, _ = given
    lengths = apply(t, getattr, [mask, Constant("seq_lengths")])
    wanted = [apply(t, torch.Tensor.size, [each, Constant(2)]) for each in (query, key)]
    return t.constant(lengths) == tuple(map(t.constant, wanted))
