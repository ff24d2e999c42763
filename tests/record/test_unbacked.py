"""Numbers and sizes that depend on data stay in the graph, or break it where one decides; whatever
was assumed of them is checked when the graph runs."""

import pytest
import torch

import aotdyn
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.conftest import assert_agree, perform

T = torch.tensor
PROGRAMS: dict = {}
VALUES = [(T(3),), (T(4),), (T(0),), (T(1),), (T(-2),)]
MASKED = [(T([1.0, -2, 3]),), (T([1.0, 2, 3]),), (T([-1.0, -2, 3]),), (T([-1.0, -2, -3]),)]
PAIRS = [(T([1.0, -2, 3]), T([1.0, 2, -3])), (T([1.0, 2, 3]), T([1.0, 2, 3])),
         (T([-1.0, -2, 3]), T([1.0, 2, 3])), (T([1.0, 2, -3]), T([-1.0, -2, -3]))]  # fmt: skip
PLACES = [(torch.arange(6.0), T(n)) for n in (2, 3, 0, 1, -2, 9)]


def program(calls, breaks=0, variants=1):
    """Registers a program that breaks so often; variants: of its first entry."""

    def register(function):
        PROGRAMS[function.__name__] = (function, calls, breaks, variants)
        return function

    return register


@program(VALUES)
def an_item(x):
    n = x.item()
    return n * 2 + 1, x + n, n


@program(VALUES)
def an_item_as_a_size(x):
    n = x.item()
    return torch.zeros(n), torch.arange(n), torch.ones(n, 2).sum(0)


@program(VALUES)
def an_item_that_is_checked(x):
    n = x.item()
    torch._check(n >= 0)
    torch._check(n < 4, lambda: f"{n} is too large")
    return torch.zeros(n) + 1


@program([(T(3.5),), (T(-4.25),), (T(0.0),), (T(-0.0),), (T(float("inf")),)])
def a_float(x):
    v = x.item()
    return x * v + v, v, v * 2


@program([(T(True),), (T(False),)])
def a_bool(x):
    return x.item(), x


@program([(T(2.5),), (T(3.5),), (T(-0.5),)])
def conversions(x):
    return int(x), float(x), round(x.item()), x * 2


@program([(T([1, 2, 3]),), (T([3, 4, 0]),)])
def numbers_of_a_short_tensor(x):
    a, b, c = x.tolist()
    return x * a + b, [c]


@program(MASKED)
def a_mask(x):
    return x[x > 0] * 2, x[x > 0].sum()


@program([(T([1, 0, 3]),), (T([0, 0, 0]),), (T([1, 2, 3]),)])
def nonzero(x):
    return x.nonzero() + 1, torch.nonzero(x, as_tuple=True), torch.argwhere(x)


@program(MASKED)
def a_length_that_depends_on_data(x):
    z = x[x > 0]
    n = z.shape[0]
    return z * n, n, len(z), z.numel(), z.reshape(-1, 1), z.view(1, -1), z.stride()


@program(PAIRS)
def two_lengths_that_must_be_equal(x, y):
    return x[x > 0] + y[y > 0]


@program([(x, y[:2]) for x, y in PAIRS] + PAIRS)
def a_length_that_must_be_a_size(x, y):
    return x[x > 0] + y


@program([(T([3, 1, 3]),), (T([1, 1, 1]),), (T([0, 0, 0]),)])
def other_operators(x):
    return torch.unique(x), torch.unique(x, return_counts=True), x.repeat_interleave(x)


@program(PLACES)
def slices(x, n):
    return x[: n.item()], x[n.item() :]


@program(PLACES)
def indices(x, n):
    return x[n.item()] * 2


@program([(torch.arange(3.0),), (torch.ones(3),)])
def changes_in_place(x):
    x.add_(1)
    n = x[0].item()
    x.mul_(2)
    return n, x, x[0].item()


@program([(torch.randn(4, 3), T(m)) for m in ([True, False, True, True], [False] * 4, [True] * 4)])
def routed(x, chosen):
    found = x[chosen]
    result = torch.zeros_like(x)
    result[chosen] = found @ torch.ones(3, 3)
    index = chosen.nonzero().squeeze(-1)
    return result.index_add(0, index, found), found.shape


@program([(torch.ones(3, 4), T(n)) for n in ([1, 0, 2], [0, 0, 0], [4, 4, 4])])
def rows_of_different_lengths(x, lengths):
    return [x[i, :n] for i, n in enumerate(lengths.tolist())]


@program([(T(2),), (T(3),), (T(0),), (T(9),)], breaks=1)
def a_branch(x):
    n = x.item()
    y = x * n
    if n > 5:
        y = y + 1
    return y, n


@program([(T(True),), (T(False),)], breaks=1)
def a_branch_on_a_bool(x):
    y = x.float() * 2
    return y + 1 if x.item() else y - 1


@program(MASKED, breaks=1)
def a_branch_on_a_length(x):
    z = x[x > 0]
    return x if z.numel() == 0 else z.mean()


@program([(T(2),), (T(3),), (T(0),)], breaks=1)
def a_loop(n):
    total = n * 0
    for i in range(n.item()):
        total = total + i
    return total


@program([(T(2),), (T(3),)])
def a_number_as_text(n):
    return f"{n.item()}", n + 1


@program([(T(2),), (T(3),), (T(0),)], breaks=1)
def a_number_that_is_printed(n):
    k = n.item()
    print(k, k + 1)
    return n * k


@program(MASKED, breaks=1)
def contiguity(x):
    wide = x[x > 0].unsqueeze(0).expand(3, -1)
    return wide.t().is_contiguous(), wide.sum()


@pytest.mark.parametrize("name", PROGRAMS)
def test_captured(name, tmp_path):
    function, calls, breaks, variants = PROGRAMS[name]
    settings = Settings("eager", options={"capture": True})
    with aotdyn.record(tmp_path / "rec"):
        traced = compiled(function, settings)
        for args in calls:
            assert_agree(perform(function, args, {}), perform(traced, args, {}))
    first = settings.entries()[0]
    assert len(first.linked) == variants
    found = [e.linked[0].variant.breaks for e in settings.entries() if e.linked]
    assert len([each for each in found if each]) == breaks, found
    aotdyn.pack([tmp_path / "rec"], tmp_path / "pkg")
    with aotdyn.load(tmp_path / "pkg", on_miss="error") as package:
        served = compiled(function, Settings("eager"))
        for args in calls:
            assert_agree(perform(function, args, {}), perform(served, args, {}))
        assert not package.refused


@pytest.mark.parametrize("name", PROGRAMS)
def test_not_captured_unless_asked_for(name):
    function, calls, _, _ = PROGRAMS[name]
    settings = Settings("eager")
    traced = compiled(function, settings)
    for args in calls:
        assert_agree(perform(function, args, {}), perform(traced, args, {}))
    assert settings.entries()[0].linked[0].variant.breaks is not None


def test_what_decides_is_refused_under_fullgraph():
    with pytest.raises(aotdyn.Unsupported, match="depends on the data: u0 > 5"):
        compiled(a_branch, Settings("eager", fullgraph=True))(T(3))
    assert compiled(an_item, Settings("eager", fullgraph=True))(T(3)) == an_item(T(3))


def test_guards_name_no_number_that_depends_on_data(tmp_path):
    settings = Settings("eager", options={"capture": True})
    traced = compiled(a_length_that_must_be_a_size, settings)
    for args in ((x, y[:2]) for x, y in PAIRS[:1]):
        traced(*args)
    (variant,) = [linked.variant for linked in settings.entries()[0].linked]
    assert not [guard for guard in variant.guards if guard.kind == "SHAPE"]
