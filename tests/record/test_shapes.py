"""Symbolic sizes and ints: one general variant for all sizes but 0 and 1, and the right answer."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import settings as settings_
from hypothesis import strategies as st

import aotdyn
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.explain import describe_guard
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


@sweep("n")
def slices_with_steps(x):
    return x[::2], x[1::3], x[2:], x[:5]


@sweep("n")
def negative_slices(x):
    return x[-2:], x[:-3]


@sweep("n", 3)
def slices_among_others(x):
    return x[None, :7, 1:], x[..., -9:, :2], (x[:70] * 2).sum(), x[:4].shape[0], x[-70:, None]


@sweep("n")
def rows_of_a_length(x):
    n = x.shape[0]
    return (torch.linspace(0, 1, n), torch.linspace(0, n, steps=n, dtype=torch.float64),
            torch.hann_window(n) * x, torch.logspace(0, 1, n, 2.0))  # fmt: skip


@sweep("n")
def functions_of_reals(x):
    n = x.shape[0]
    return (x * math.log2(n + 1), math.log(n + 2), math.log(n + 2, 10), math.sin(n) + math.cos(n),
            int(math.log2(n + 1)), math.exp(-n / 8), math.tanh(n), math.log2(4))  # fmt: skip


@sweep("n")
def bits(x):
    n = x.shape[0]
    return x * (n ^ 3) + (n & 6) + (n | 1) + ~n, n << 1, n >> 1, ((n + 2) | 1) & 3


@sweep("n", variants=6)
def bits_of_truths(x):
    n = x.shape[0]
    some, many = n > 2, n > 8
    both = some ^ many, some & many, some | many
    return x, both, some ^ 1, n ^ True, some & 1, some | 2, some ^ True, many | False


@sweep("n")
def tensors_like_another(x):
    n = x.shape[0]
    return x.new_tensor(n) + x, x.new_tensor([n, 2.5]), x.new_tensor(n, dtype=torch.int64)


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


@sweep("n", variants=6)
def branches_on_what_is_computed(x):
    n = x.shape[0]
    if (n | 1) * 2 + ((n + 1 | 2) & 6 ^ 3) > 15 or math.log(n + 2) > 4:
        return x + 1
    return x * 2 if int(math.log2(n + 1)) > 1 else x * 3


@sweep("n")
def compared_sizes(x):
    n = x.shape[0]
    return (n == n, n + 1 > n, n >= 0, n != -1, n * 2 == n + n, bool(n >= 0))


@sweep("n")
def tensors_of_sizes(x):
    n = x.shape[0]
    return torch.tensor(n), torch.tensor([n, 2]), torch.tensor((n / 2, 1)), x * torch.as_tensor(n)


@sweep("n", 2)
def products(x):
    return x.sum() * math.prod(x.shape), math.prod([len(x), 3], start=2), math.prod([x.sum(), 2.0])


@sweep("n", variants=6)
def one_of_some(x):
    n = x.shape[0]
    return n in {3, 8, "a", None}, n in (3, 9), n not in [8], n in {3: 1}.keys() - {3}, x + 1


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


# -- marks ------------------------------------------------------------


def traced(function, *calls, dynamic=None):
    """The guards of each variant, with the calls compared to plain Python."""
    settings = Settings("eager", dynamic=dynamic)
    made = compiled(function, settings)
    for args in calls:
        expected = function(*args)
        assert torch.equal(made(*args), expected)
    found = [each.variant.guards for each in settings.entries()[0].linked]
    return [[describe_guard(g) for g in guards if g.kind == "SHAPE"] for guards in found]


def marked(mark, n, *dims, **kwargs):
    x = torch.randn(n, 4)
    mark(x, list(dims), **kwargs)
    return (x,)


def small_or_large(x):
    return x + 1 if x.shape[0] < 5 else x - 1


def fixes(x):
    return x.view(6, 4) + 1 if x.shape[0] == 6 else x


def test_mark_dynamic():
    plain = [(torch.randn(n, 4),) for n in (7, 9, 3)]
    found = traced(small_or_large, marked(aotdyn.mark_dynamic, 6, 0), *plain)
    assert len(found) == 2
    assert "x.size(0) >= 5" in found[1] and "x.size(0) < 5" in found[0]


def test_mark_dynamic_with_a_range():
    def fn(x):
        return x + 1 if x.shape[0] < 100 else x - 1

    calls = [(torch.randn(n, 4),) for n in (3, 50)]
    found = traced(fn, marked(aotdyn.mark_dynamic, 6, 0, min=3, max=50), *calls)
    assert found == [["x.size(0) >= 2", "x.size(0) >= 3", "x.size(0) <= 50"]]
    with pytest.raises(ValueError, match="not within 3 and 50"):
        aotdyn.mark_dynamic(torch.ones(2), 0, min=3, max=50)


def test_mark_dynamic_where_the_size_is_fixed():
    message = r"x.size\(0\) is marked dynamic, but the program fixes it at 6"
    with pytest.raises(aotdyn.Unsupported, match=message):
        traced(fixes, marked(aotdyn.mark_dynamic, 6, 0))


def test_maybe_mark_dynamic_where_the_size_is_fixed():
    assert len(traced(fixes, marked(aotdyn.maybe_mark_dynamic, 6, 0), (torch.randn(7, 4),))) == 2


def test_mark_static():
    calls = [marked(aotdyn.mark_static, n, 0) for n in (6, 7, 8)]
    assert len(traced(small_or_large, *calls)) == 3


def test_never_dynamic():
    calls = [(torch.randn(n, 4),) for n in (6, 7, 8)]
    assert len(traced(small_or_large, *calls, dynamic=False)) == 3


def test_a_size_of_one_has_a_variant_of_its_own_even_where_it_is_marked():
    calls = [marked(aotdyn.mark_dynamic, n, 0) for n in (1, 6, 7, 1)]
    assert len(traced(lambda x: x * x.shape[0], *calls)) == 2


def with_pieces(x, y):
    n = x.shape[0]
    aotdyn.graph_break()
    z = x.sum() * n + y.shape[0]
    aotdyn.graph_break()
    return z * n if n > 5 else z


def test_sizes_are_symbols_in_all_pieces_of_a_broken_frame():
    settings = Settings("eager")
    made = compiled(with_pieces, settings)
    for n in (6, 7, 8, 9, 64, 65):
        args = torch.ones(n), torch.ones(n)
        assert_agree(perform(with_pieces, args, {}), perform(made, args, {}))
    pieces = [entry for entry in settings.entries() if entry.linked]
    assert len(pieces) == 3
    assert [len(entry.linked) for entry in pieces] == [1, 1, 1]


# -- indices, strides ------------------------------------------------------------


@pytest.mark.parametrize("index", ["x[i]", "x[:, i]", "x[..., i]", "x[1:, i, None]", "x[i, ::2]",
                                   "x[None, i]", "x[i, i]", "x[i, ..., i]", "x[-1, i]", "x[i, -1]",
                                   "x[i:]", "x[:i]", "x[i:i + 1]", "x[:, :i]",
                                   "x.select(1, i)"])  # fmt: skip
def test_ints_as_indices_of_tensors(index):
    scope: dict = {}
    exec(f"def fn(x, i):\n    return {index} + 1\n", scope)
    x = torch.arange(60.0).view(3, 4, 5)
    found = traced(scope["fn"], *[(x, i) for i in (0, 1, 2, -1, -2, 1, 2)])
    assert len(found) <= 5


def test_strides_that_follow_from_no_size():
    def fn(x):
        return x + 1

    views = [torch.randn(8, 8)[:, ::2], torch.randn(9, 9)[:, ::2], torch.randn(10, 12)[:, ::2],
             torch.randn(10, 12).t()[::2], torch.randn(20, 14)[:, 1:]]  # fmt: skip
    assert len(traced(fn, *[(view,) for view in views])) <= 5


SHAPES = st.lists(st.integers(0, 5), min_size=1, max_size=3)


@settings_(max_examples=25, deadline=None)
@given(st.lists(st.tuples(SHAPES, st.integers(0, 3), st.integers(-3, 3)), min_size=2, max_size=5))
def test_any_history_of_shapes_strides_and_ints(history):
    def fn(x, y, n):
        z = x.transpose(0, -1) * n + (y if y.shape == x.t().shape else y.sum())
        if x.shape[0] > n and x.is_contiguous():
            z = z + x.numel() // (n * n + 1)
        return z, x.stride(), x.shape[-1] % 3 == n

    settings = Settings("eager")
    made = compiled(fn, settings)
    for shape, how, n in history:
        x = torch.arange(float(math.prod(shape))).view(shape)
        x = (x, x.transpose(0, -1), x[..., ::2], x[1:])[how]
        args = (x if x.dim() <= 2 else x.flatten(1), x.flatten(), n)
        assert_agree(perform(fn, args, {}), perform(made, args, {}))


def test_a_symbol_may_equal_a_complex_number(agree):
    def program(x, n):
        return x + (n == 7 + 0j), n != 1 + 0j, 7 + 0j == n

    agree(program, *((torch.ones(2), n) for n in (7, 8, 9)), dynamic=True)


def test_sums_that_a_guard_has_fixed_are_added_to(agree):
    def program(x, a, b, c):
        total = a + b
        found = {5: 1}.get(total)
        longer = a + b + c
        return x * (total + b), total + b == b, longer + b, (longer, found), a + longer

    calls = [(torch.ones(2), n, 5 - n, n * n) for n in (7, 3, 12, -4, 9)]
    agree(program, *calls, (torch.ones(2), 1, 2, 3))


def test_strides_where_the_size_is_one(agree):
    def fn(x):
        made = x + 1
        return made, made.stride(), made.stride(0), x[:1].stride(), x.mT.stride()

    agree(fn, *[(torch.ones(shape),) for shape in ((4, 1), (1, 4), (1, 1), (2, 1, 3))], breaks=0)
    odd = torch.ones(1, 3).t(), torch.ones(1, 3, 1, 1).as_strided((1, 3, 1, 1), (3, 1, 3, 3))
    for x in odd:
        agree(fn, (x,))
