"""Symbolic sizes and ints: one general variant for all sizes but 0 and 1, and the right answer."""

import math

import pytest
import torch

from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.conftest import assert_agree, perform

SIZES = (12, 7, 8, 3, 0, 1, 2, 9, 64, 65)
SWEEPS: dict = {}


def sweep(*shape, variants=3):
    """Registers a program over tensors whose shapes have "n" where the size varies."""

    def register(function):
        SWEEPS[function.__name__] = (function, shape, variants)
        return function

    return register


@sweep("n")
def plus_one(x):
    return x + 1


@sweep("n", 3)
def two_dimensions(x):
    return (x * 2).sum(0) + x.shape[0]


@sweep("n", "n")
def square(x):
    return x @ x.t() + x.shape[1]


@sweep(3, "n")
def reshapes(x):
    return x.reshape(-1), x.view(x.shape[1] * 3), x.unsqueeze(0).expand(2, -1, x.size(1))


@sweep("n", 4)
def flattens(x):
    return x.flatten().view(x.size(0), 2, 2).permute(1, 0, 2).contiguous()


@sweep("n")
def size_arithmetic(x):
    n = x.shape[0]
    return x.sum() + n // 2 + n % 3 + (n - 5) ** 2 + abs(n - 4) + max(n, 2) - min(n, 60) + -n


@sweep("n")
def size_division(x):
    n = len(x)
    return x * (1 / (n + 1)) + n / 2, math.ceil(n / 2), int(n * 0.5), round(n / 4), n / 4


@sweep("n")
def size_powers(x):
    n = x.shape[0]
    return x.sum() * n**2 + 2**3, n**0.5 if n else 0


@sweep("n")
def size_returned(x):
    n = x.shape[0]
    return n, (n + 1, [n * 2]), {"n": n}, x.shape, x.numel(), x.size()


@sweep("n")
def slices(x):
    n = x.shape[0]
    return x[: n // 2], x[n // 2 :], x[-1:], x[:-1], x[n - n : n]


@sweep("n", variants=5)
def slices_with_steps(x):
    return x[::2], x[1::3], x[2:], x[:5]


@sweep("n", variants=4)
def negative_slices(x):
    return x[-2:], x[:-3]


@sweep("n")
def factories(x):
    n = x.shape[0]
    return torch.zeros(n), torch.arange(n), torch.ones(n, n).sum(), torch.full((n, 2), 1.5)


@sweep("n")
def factories_like(x):
    return x.new_zeros(x.shape), torch.zeros_like(x), x.new_ones(x.shape[0], 2), torch.eye(len(x))


@sweep("n", 2)
def concatenates(x):
    return torch.cat([x, x]), torch.stack([x, x]), torch.cat([x, x.new_zeros(1, 2)])


@sweep("n", 6)
def attention(x):
    heads = x.view(x.shape[0], 2, 3).transpose(0, 1)
    scores = heads @ heads.transpose(1, 2) / math.sqrt(heads.size(-1))
    mask = torch.ones(x.shape[0], x.shape[0]).tril() == 0
    return (scores.masked_fill(mask, -1e9).softmax(-1) @ heads).transpose(0, 1).reshape(x.shape)


@sweep("n")
def stored(x):
    class_ = {}
    class_["n"] = x.shape[0]
    items = [x.shape[0] + 1]
    return class_["n"] + items[0]


@sweep("n", 2)
def prints_of_shapes(x):
    return f"{x.shape}", str(x.shape[0])


# Text fixes the size.
SWEEPS["prints_of_shapes"] = (prints_of_shapes, ("n", 2), len(SIZES))


@sweep("n")
def non_contiguous(x):
    y = x.unsqueeze(1).expand(len(x), 3).t()
    return y.contiguous() + 1, y.is_contiguous(), y.stride(0), y.stride()


@sweep("n", 3)
def chunks(x):
    return x.chunk(1), x.split([x.shape[0], 0]), x.narrow(0, 0, x.shape[0])


@sweep("n")
def pads(x):
    return torch.nn.functional.pad(x, (1, 2)), x.repeat(2), x.roll(1), x.flip(0)


@sweep("n")
def branches(x):
    # 2, 3 | 7, 8, 9 | 64, 65, and 0, 1
    if x.shape[0] < 5:
        return x + 1
    return x - 1 if x.shape[0] <= 10 else x * 2


SWEEPS["branches"] = (branches, ("n",), 5)


@sweep("n")
def compared_sizes(x):
    n = x.shape[0]
    return (n == n, n + 1 > n, n >= 0, n != -1, n * 2 == n + n, bool(n >= 0))


def _tensor(shape, n):
    return torch.randn([n if size == "n" else size for size in shape])


@pytest.mark.parametrize("name", SWEEPS)
def test_sizes_agree_with_few_variants(name):
    function, shape, variants = SWEEPS[name]
    settings = Settings("eager")
    traced = compiled(function, settings)
    for n in SIZES:
        args = (_tensor(shape, n),)
        assert_agree(perform(function, args, {}), perform(traced, args, {}))
    entries = settings.entries()
    assert not [e.skipped for e in entries if e.skipped]
    assert len(entries) == 1, [str(e.linked[0].variant.breaks) for e in entries if e.linked]
    assert len(entries[0].linked) <= variants + 1, [
        [str(g) for g in e.variant.guards if g.kind == "SHAPE"] for e in entries[0].linked
    ]


@pytest.mark.parametrize("name", SWEEPS)
def test_sizes_agree_when_dynamic_from_the_start(name):
    function, shape, variants = SWEEPS[name]
    settings = Settings("eager", dynamic=True)
    traced = compiled(function, settings)
    for n in SIZES:
        args = (_tensor(shape, n),)
        assert_agree(perform(function, args, {}), perform(traced, args, {}))
    assert len(settings.entries()[0].linked) <= variants


@pytest.mark.parametrize("name", SWEEPS)
def test_sizes_agree_when_loaded(name, agree):
    function, shape, _ = SWEEPS[name]
    agree(function, *[(_tensor(shape, n),) for n in (3, 7, 8, 0, 1, 9)])
