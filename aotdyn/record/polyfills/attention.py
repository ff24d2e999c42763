"""`flex_attention` as torch computes it without a kernel made for it: all scores at once."""

import math

import torch


def flexible(query, key, value, score_mod, block_mask, scale):
    """For 4-dimensional tensors on one device. A row of which all is masked gives zeros."""
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    shared = query.size(1) // key.size(1)
    if shared != 1:
        key = torch.repeat_interleave(key, shared, dim=1)
        value = torch.repeat_interleave(value, shared, dim=1)
    key = key.expand(query.size(0), -1, -1, -1)
    value = value.expand(query.size(0), -1, -1, -1)
    if scale is None:
        scale = 1.0 / math.sqrt(query.size(-1))
    scores = (query.to(wide) @ key.to(wide).transpose(-2, -1)) * scale
    places = [torch.arange(size, device=query.device) for size in scores.shape]
    if score_mod is not None:
        scores = _everywhere(score_mod, (0,))(scores, *places)
    if block_mask is not None:
        visible = _everywhere(block_mask.mask_mod, ())(*places)
        hidden = torch.tensor(-math.inf, dtype=wide, device=query.device)
        scores = torch.where(visible, scores, hidden)
    result = torch._safe_softmax(scores, dim=-1).to(query.dtype) @ value.to(query.dtype)
    # In memory the dimensions follow each other as those of the query do.
    order = sorted(range(4), key=query.stride().__getitem__, reverse=True)
    back = sorted(range(4), key=order.__getitem__)
    return result.permute(order).contiguous().permute(back)


def _everywhere(function, before):
    """The function, of batch, head, query and key, mapped over all of them; before: how it is
    mapped over what it takes before these."""
    for place in (3, 2, 1, 0):
        dims = [None, None, None, None]
        dims[place] = 0
        function = torch.vmap(function, in_dims=(*before, *dims))
    return function
