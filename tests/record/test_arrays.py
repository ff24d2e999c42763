"""NumPy: scalars and functions on what is known are computed while tracing; arrays that came in are
guarded by what they hold, or are inputs of the graph; where the memory of an array is seen to be
changed by both, the graph breaks."""

import copy
import math
import operator
import subprocess
import sys
import warnings
from itertools import islice, repeat
from numbers import Integral

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.record.programs import Programs, note, outcome_of

program = Programs()
X = (torch.arange(12.0).reshape(3, 4) + 1,)
TWICE = [X, X]
ROWS = [(torch.ones(n, 4),) for n in (2, 3, 5, 7)]
TABLE = np.linspace(0, 1, 8)
LARGE = np.arange(3000.0)


def array_calls(*rest):
    return [(torch.ones(3), np.arange(3.0), *rest), (torch.ones(3), np.arange(3.0) + 1, *rest)]


# -- scalars ------------------------------------------------------------


RATES = [2, 3]


@program(*ROWS)
def p_functions_of_sizes(x):
    n = x.shape[0]
    half = x[: int(np.ceil(n / 2))]
    return x / np.sqrt(n), x.reshape(int(np.prod(x.shape))), half, x * np.log(n) * np.prod(RATES)


@program(*TWICE)
def p_operators_with_tensors(x):
    s, h, n = np.float64(2.5), np.float32(0.1), np.int64(3)
    scaled = (s * x, x * h, n * x, x + h, s - x, x // n, x**h, s < x, x == n)
    return scaled, x.int() * s, x.int() / n, x.clamp(min=h), F.leaky_relu(x, h)


@program(*TWICE)
def p_operators_with_numbers(x):
    s, n = np.float64(2), np.int64(3)
    one = (3 + s, 2.0**s, s // 1, -n, ~n, n << 1, divmod(n, 2), abs(-s), round(s / 3, 2))
    two = (math.sqrt(n), math.floor(s), int(s), float(n), complex(s, n), bool(s), not s, pow(s, 2))
    return x, one, two, (np.bool_(True) + 1, True + n, n % 2, s == 2, n in (1, 3))


@program(*TWICE)
def p_whole_numbers_as_indices(x):
    n = np.int64(2)
    one = ([1, 2, 3][n], "abc"[n], (1, 2, 3)[:n], range(5)[n], list(range(n)), {2: "two"}[n])
    two = ([0] * n, n * (1, 2), "ab" * n, hash(n) == 2, operator.index(n), "%d" % n, hex(n))
    three = (list(enumerate("ab", n)), list(islice("abcd", n)), list(repeat(1, n)), bytes(n))
    return x[n], x[:, n:], x.size(n - 1), x.reshape(n, -1), torch.zeros(n), one, two, three


@program(*TWICE)
def p_tensors_of_scalars_have_their_type(x):
    one = torch.tensor(np.float64(1)), torch.tensor([np.float32(1), 2]), torch.tensor(np.int8(3))
    return one, torch.tensor(np.bool_(True)), torch.full((2,), np.float64(3)), x.new_tensor(
        [np.float64(1)]
    )


@program(*TWICE)
def p_types_and_texts(x):
    s = np.float32(0.1)
    texts = (str(s), repr(s), f"{s:.3f} {s}", "%s" % np.int64(4), "{:>6}".format(np.int64(4)))
    kinds = (type(s) is np.float32, isinstance(s, np.floating), isinstance(np.float64(1), float))
    return x, texts, kinds, isinstance(np.int64(1), Integral), (np.int64(3) > 2) is np.True_


@program(*TWICE)
def p_methods_of_scalars(x):
    s = np.float32(2.5)
    one = (s.item(), s.dtype, s.astype(np.float64), s.astype(int), s.shape, s.is_integer())
    return x, one, hasattr(s, "item"), outcome_of(lambda: s.foo), outcome_of(lambda: np.int64("a"))


@program(*TWICE)
def p_aggregates_of_scalars(x):
    values = [np.float32(1), np.float32(2)]
    total = 0
    for value in values:
        total += value
    return x * total, type(total), sum(values), max(np.float64(1), 2), sorted([np.int64(3), 1])


@program(*TWICE)
def p_patterns_of_scalars(x):
    match np.int64(3):
        case 3:
            one = "three"
    match np.float64(1.5):
        case float():
            return x, one, "float"


@program(*TWICE)
def p_types_of_numbers(x):
    kinds = {np.dtype("float32"): torch.float32, np.float64: torch.float64}
    eps, most = np.finfo(np.float32).eps, np.iinfo(np.int32).max
    names = np.dtype("f4").name, np.dtype("int64").itemsize, np.dtype("f4") == np.float32
    return x.to(kinds[np.float64]), x.to(kinds[np.dtype(np.float32)]) + eps, most, names


class Box:
    pass


@program((torch.ones(3), Box()), (torch.ones(3), Box()))
def p_scalars_are_stored(x, box):
    box.scale, box.table = np.float32(2), np.arange(3)
    return x * box.scale, box.table


@program(*[(torch.ones(3), s) for s in (np.float64(1), np.float64(2), np.float32(2), 2.0)])
def p_scalars_that_came_in(x, s):
    return x * s, s


# -- arrays that the frame makes ----------------------------------------------------------


@program(*TWICE)
def p_arrays_share_memory(x):
    a = np.arange(6)
    b, c = a[1:4], a.reshape(2, 3)
    b[0], c[1, 2] = 99, -1
    a += 1
    return x, a, b, c, a[::-1].copy()


@program(*TWICE)
def p_in_place(x):
    a = np.array([3.0, 1, 2])
    r = np.add(a, 1, out=a)
    a.sort()
    np.put(a, [0], 9)
    d = {"a": np.zeros(2), "b": np.ones(2)}
    d["a"] += d["b"]
    return x * float(a[1]), a, r is a, d


@program(*TWICE)
def p_iteration(x):
    a = np.arange(3.0)
    p, *rest = a
    out = [v * x for v in a] + [i * v for i, v in enumerate(a)] + [u + v for u, v in zip(a, a)]
    return out, p, rest, max(a), sum(a), any(a), len(a), 2.0 in a, tuple(map(float, a))


@program(*TWICE)
def p_changed_during_iteration(x):
    a, out = np.arange(3), []
    for i, v in enumerate(a):
        if i == 0:
            a[2] = 77
        out.append(v)
    return x, out


@program(*TWICE)
def p_questions(x):
    a = np.arange(3)
    if (a > 1).any():
        x = x + 1
    kinds = isinstance(a, np.ndarray), type(a) is np.ndarray, a is None, np.isscalar(3.0)
    return x, kinds, a == 1, outcome_of(bool, a), hasattr(a, "foo"), getattr(a, "foo", 3)


@program(*TWICE)
def p_copies(x):
    a = np.arange(3)
    b, c, d = copy.copy(a), copy.deepcopy(a), a.copy()
    a[0] = 9
    return x, a, b, c, d


@program(*TWICE)
def p_with_lists(x):
    a = np.array([1, 2])
    return x, [1, 2] + a, [3, 4] < a, (1, 2) * a, [5] + np.float64(1), [1, 2] == a


@program(*TWICE)
def p_errors(x):
    a = np.arange(3)
    return (x, outcome_of(lambda: a[5]), outcome_of(lambda: a + np.arange(4)),
            outcome_of(lambda: a.reshape(2, 2)), outcome_of(np.zeros, -1))  # fmt: skip


@program(*TWICE)
def p_functions_of_closures(x):
    a = np.arange(3)

    def f():
        a[0] += 1
        return a[0]

    return x * f(), f


@program(*TWICE)
def p_computed_tables(x):
    at, i = np.arange(3)[:, None], np.arange(4)[None, :]
    angle = at / np.power(10000, (2 * (i // 2)) / 4)
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    return x + torch.tensor(angle, dtype=torch.float32)


@program(*TWICE)
def p_results_of_functions(x):
    q, r = np.linalg.qr(np.array([[1.0, 2], [3, 4]]))
    places = np.where(np.arange(4) > 1)
    unique = np.unique([1, 1, 2], return_counts=True)
    return x * np.linalg.norm([3, 4]), r.shape, places, unique, np.meshgrid([1], [2])


@program(*TWICE)
def p_tensors_of_arrays(x):
    stacked = torch.stack([torch.from_numpy(np.full(4, i)) for i in range(3)])
    one = torch.tensor(np.arange(4)), torch.as_tensor(np.ones(2)), torch.tensor(np.array(3.0))
    two = torch.from_numpy(np.zeros((0, 3))), torch.from_numpy(np.arange(3, dtype=np.float16))
    return x + stacked, one, two, torch.zeros(*np.array([2, 3])), torch.tensor(np.eye(2).T)


MASK = np.array([True, False, True])


@program(*[(torch.ones(n, 3), [4]) for n in (3, 5, 3, 2)], breaks=None)
def p_masks_of_other_sizes(x, log):
    try:
        x[..., MASK] = 5
        x[None, MASK[:2], MASK] += 1
        log.append(x[MASK])
    except IndexError as error:
        log.append(str(error))
    return x, log


@program(*TWICE)
def p_tensors_indexed_by_arrays(x):
    at, mask = np.array([0, 2]), np.array([True, False, True])
    y = x.clone()
    y[at], y[:, np.array([1])] = 0, 5
    return x[at], x[mask], x[at, np.array([1, 1])], y, x[:, at], x[np.ones((3, 4), bool)]


@program(*TWICE)
def p_read_after_it_was_shared(x):
    a = np.arange(4.0)
    return x + torch.from_numpy(a), float(a.sum())


@program(*TWICE, breaks=None)
def p_changed_after_it_was_shared(x):
    a = np.arange(4.0)
    b, shared = a[1:], torch.from_numpy(a)
    a[0] = 7
    shared.add_(1)
    return x + shared, a, b, a.sum()


@program(*TWICE, breaks=1)
def p_carried_over_a_break(x):
    a, s = np.arange(3.0), np.sqrt(4)
    b = a[1:]
    note([], 1)
    return x * s * float(b[0]), a, b


# -- arrays that came in ----------------------------------------------------------


@program(*array_calls(), (torch.ones(3), np.arange(4.0)), (torch.ones(3), np.arange(3)))
def p_contents(x, a):
    return x * a[1] + len(a), a.sum(), a


@program(*TWICE)
def p_of_modules(x):
    return x * TABLE[x.shape[0]], TABLE.mean(), TABLE, len(LARGE), LARGE.shape


@program(*array_calls())
def p_become_inputs(x, a):
    copied, shared = torch.tensor(a, dtype=torch.float32), torch.as_tensor(a)
    shared.mul_(2)
    return x * copied, shared, torch.from_numpy(LARGE)[:3] + x, a


@program(*array_calls(), breaks=None)
def p_changed_through_a_tensor(x, a):
    shared = torch.from_numpy(a)
    before = a[0]
    shared.add_(x)
    return shared, before, a[0], a


@program(*array_calls(), (torch.ones(3, requires_grad=True), np.arange(3.0)))
def p_changed_with_a_history(x, a):
    shared = torch.from_numpy(a)
    shared.add_(x)
    return shared, shared.requires_grad, shared * 2


@program(*array_calls(), breaks=1)
def p_two_tensors_of_one(x, a):
    one, other = torch.from_numpy(a), torch.from_numpy(a)
    one.add_(1)
    return one is other, other + x


@program(*array_calls(), breaks=2)
def p_changed(x, a):
    b = a
    a += 1
    b[0] = 7
    return x, a is b, a


@program(*[(torch.ones(3), np.full(2, float(i))) for i in range(12)], breaks=None)
def p_that_differ_each_time(x, a):
    return x * a[1]


# -- what breaks the graph ----------------------------------------------------------


@program(*TWICE, breaks=None)
def p_warnings(x):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        values = np.sqrt(-1.0), np.float64(1) / 0, np.int32(2**31 - 1) + np.int32(1)
    return x, values, [str(each.message) for each in told]


@program(*TWICE, breaks=None)
def p_how_numpy_computes(x):
    with np.errstate(divide="raise"):
        told = outcome_of(lambda: np.log(0.0))
    return x, told


@program(*TWICE, breaks=None)
def p_numbers_that_torch_takes_for_others(x):
    return x * np.bool_(True), x.real * np.complex64(2).real


@program(*TWICE, breaks=None)
def p_arrays_of_objects(x):
    return x, np.array([None, 1], dtype=object).shape, np.array(["a", "bc"]).shape


@program(*TWICE, breaks=None)
def p_tensors_as_arrays(x):
    a = np.maximum(x.detach().numpy(), 2)
    return torch.from_numpy(a * 2) + np.sqrt(4), outcome_of(lambda: x.reshape(np.array([2, 6])))


test_agrees = program.test()


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.mean, self.width = np.sqrt(8), np.array([0.1, 0.2, 0.3, 0.4]), np.int64(4)
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = ((x - torch.from_numpy(self.mean).float()) / self.scale).view(-1, self.width)
        return self.linear(x + self.mean[0] if self.scale > 2 else x)


def test_modules_hold_scalars_and_arrays(agree):
    agree(Scaled(), *TWICE, graphs=1, breaks=0)


def test_options_of_printing_are_guarded(agree):
    def told(x):
        return x + 1, str(np.float64(0.5)), repr(np.arange(3.0))

    run = agree(told, X)
    assert any("get_printoptions" in guard for guard in run.guards())


def test_texts_follow_the_options_of_printing():
    import aotdyn

    traced = aotdyn.compile(lambda x: (x, repr(np.float64(0.1))), backend="eager")
    assert traced(torch.ones(2))[1] == "np.float64(0.1)"
    with np.printoptions(legacy="1.25"):
        assert traced(torch.ones(2))[1] == "0.1"


def test_what_python_has_shown_of_warnings_stays(recwarn):
    import aotdyn

    def warned():
        warnings.warn("once")

    warnings.simplefilter("default")
    warned()
    aotdyn.compile(lambda x: x * np.sqrt(2), backend="eager")(torch.ones(2))
    warned()
    assert [str(each.message) for each in recwarn] == ["once"]


@pytest.mark.parametrize("value", [np.float64(-0.0), np.float32("nan"), np.uint64(2**64 - 1)])
def test_scalars_by_their_bits(agree, value):
    run = agree(lambda x, s: (x + 1, s.dtype, s == s), (torch.ones(2), value))
    assert len(run.breaks) == 0


def test_without_numpy():
    program = """
import sys
sys.modules["numpy"] = None
import torch, aotdyn

def f(x):
    return x + int("3") * {torch.float32: 2}[x.dtype], [1, 2][::-1], sys.version_info[:2]

traced = aotdyn.compile(f, backend="eager", fullgraph=True)
assert str(traced(torch.ones(2))) == str(f(torch.ones(2)))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)
