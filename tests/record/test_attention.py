"""`flex_attention` as a part of the graph: functions of scores and places, masks."""

import math

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

BIAS = torch.randn(4)


def earlier(b, h, i, j):
    return i >= j


CAUSAL = create_block_mask(earlier, None, None, 128, 128, device="cpu")
BY_HEAD = create_block_mask(lambda b, h, i, j: (i >= j) & (BIAS[h] < 9), 2, 4, 128, 128, "cpu")


def plain(q, k, v):
    return flex_attention(q, k, v)


def scaled(q, k, v):
    return flex_attention(q, k, v, lambda s, b, h, i, j: s + (i - j) * 0.1, scale=0.5)


def captured(q, k, v):
    return flex_attention(q, k, v, lambda s, b, h, i, j: s + BIAS[h] * (i - j) + b)


def masked(q, k, v):
    return flex_attention(q, k, v, block_mask=CAUSAL)


def masked_by_head(q, k, v):
    return flex_attention(q, k, v, lambda s, b, h, i, j: s * 2, BY_HEAD)


def transposed(q, k, v):
    made = flex_attention(q.transpose(1, 2).contiguous().transpose(1, 2), k, v, block_mask=CAUSAL)
    return made, made.stride()


def nothing_visible(q, k, v):
    return flex_attention(q, k, v, lambda s, b, h, i, j: torch.where(i > 3, s, -math.inf))


WHOLE = [plain, scaled, captured, masked, masked_by_head, transposed, nothing_visible]


def tensors(heads=4, queries=128, keys=128, width=16, dtype=torch.float32):
    return (
        torch.randn(2, 4, queries, 16, dtype=dtype),
        torch.randn(2, heads, keys, 16, dtype=dtype),
        torch.randn(2, heads, keys, width, dtype=dtype),
    )


# That of eager is traced and compiled by torch's own tracer.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_whole_graph(agree, program):
    agree(program, tensors(), graphs=1, breaks=0)


def shared_heads(q, k, v):
    return flex_attention(q, k, v, lambda s, b, h, i, j: torch.tanh(s / 5) * 5, enable_gqa=True)


@pytest.mark.filterwarnings("ignore")
def test_other_sizes(agree):
    agree(shared_heads, tensors(heads=2), tensors(heads=2, queries=40, keys=60, width=24), breaks=0)
    agree(scaled, tensors(dtype=torch.float64), breaks=0)


def refused(q, k, v, mask=None):
    try:
        return flex_attention(q, k, v, block_mask=mask)
    except (ValueError, NotImplementedError) as error:
        return str(error)


@pytest.mark.filterwarnings("ignore")
def test_what_torch_refuses(agree):
    agree(refused, tensors(heads=2))
    q, k, v = tensors()
    agree(refused, (q.requires_grad_(), k, v))
    agree(refused, (*tensors(queries=64, keys=64), CAUSAL), package=False)


@pytest.mark.filterwarnings("ignore")
def test_another_mask_is_noticed(agree):
    agree(lambda q, k, v, m: flex_attention(q, k, v, block_mask=m), (*tensors(), CAUSAL),
          (*tensors(), BY_HEAD), package=False)  # fmt: skip
