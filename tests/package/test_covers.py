"""Which variants another one makes superfluous: decided from guards, and none too many."""

import pytest
import torch

import aotdyn
from aotdyn.package.covers import covers, needed
from aotdyn.package.guard import Guard
from aotdyn.package.recording import read_recording
from aotdyn.package.reference import Import, TensorMeta
from aotdyn.package.source import Local, Size, Stride
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

X, N = Local("x"), Local("n")
STATE = Guard("STATE", None, "{}")


def tensor(size, stride, **changes) -> Guard:
    facts = {"dtype": "float32", "device": "cpu", "requires_grad": False, **changes}
    return Guard("TENSORS", None, ((X,), (TensorMeta(size=size, stride=stride, **facts),)))


def shape(template, *sources) -> Guard:
    return Guard("SHAPE", None, (template, sources))


STATIC = [STATE, tensor((4, 3), (3, 1))]
DYNAMIC = [STATE, tensor((None, 3), (3, 1)), shape("{0} >= 2", Size(X, 0))]
INT = Guard("TYPE", N, Import("builtins", "int"))

ROWS = [
    ("itself", STATIC, STATIC, True),
    ("a size", DYNAMIC, STATIC, True),
    ("not the other way round", STATIC, DYNAMIC, False),
    ("size 1", DYNAMIC, [STATE, tensor((1, 3), (3, 1))], False),
    ("another size that is fixed", DYNAMIC, [STATE, tensor((4, 5), (5, 1))], False),
    ("another number of dimensions", DYNAMIC, [STATE, tensor((4,), (1,))], False),
    ("another dtype", DYNAMIC, [STATE, tensor((4, 3), (3, 1), dtype="int64")], False),
    ("gradients", DYNAMIC, [STATE, tensor((4, 3), (3, 1), requires_grad=True)], False),
    ("another state", DYNAMIC, [Guard("STATE", None, "[]"), STATIC[1]], False),
    ("a stride", [STATE, tensor((4, 3), (None, 1)), shape("{0} == 3", Stride(X, 0))], STATIC, True),
    ("a stride that differs",
     [STATE, tensor((4, 3), (None, 1)), shape("{0} == 4", Stride(X, 0))], STATIC, False),
    ("a condition that holds", [*DYNAMIC, shape("2*{0} < 9", Size(X, 0))], STATIC, True),
    ("a condition that does not", [*DYNAMIC, shape("2*{0} < 8", Size(X, 0))], STATIC, False),
    ("a condition on what is not known", [*DYNAMIC, shape("{0} < 8", N)], STATIC, False),
    ("an int", [STATE, INT], [STATE, Guard("EQUALS", N, 3)], True),
    ("a negative int", [STATE, INT, shape("{0} < 0", N)], [STATE, Guard("EQUALS", N, -3)], True),
    ("a bool is no int", [STATE, INT], [STATE, Guard("EQUALS", N, True)], False),
    ("a float is no int", [STATE, INT], [STATE, Guard("EQUALS", N, 3.0)], False),
    ("another condition", [*DYNAMIC, Guard("LENGTH", Local("l"), 2)], STATIC, False),
    ("conditions that are not needed", DYNAMIC, [*STATIC, Guard("LENGTH", Local("l"), 2)], True),
    ("values that are only equal", [STATE, Guard("EQUALS", N, 0.0)],
     [STATE, Guard("EQUALS", N, -0.0)], False),
]  # fmt: skip


@pytest.mark.parametrize("name, general, special, answer", ROWS, ids=lambda part: str(part)[:40])
def test_covers(name, general, special, answer):
    assert covers(general, special) is answer


def scales(x, n):
    return x * n + x.shape[0]


CALLS = [(torch.ones(4), 2), (torch.ones(5), 2), (torch.ones(6), 3), (torch.ones(1), 2)]


def test_a_dynamic_variant_takes_the_place_of_static_ones(tmp_path):
    settings = Settings("eager")
    with aotdyn.record(tmp_path / "rec"):
        traced = compiled(scales, settings)
        for args in CALLS:
            traced(*args)
    assert len(settings.entries()[0].linked) == 2
    variants = read_recording(tmp_path / "rec").variants
    assert len(variants) == 4
    assert needed(variants) == list(variants[2:])
    aotdyn.pack(tmp_path / "rec", tmp_path / "pkg")
    with aotdyn.load(tmp_path / "pkg", on_miss="error"):
        served = compiled(scales, Settings("eager"))
        for args in [*CALLS, (torch.ones(9), -7)]:
            assert torch.equal(served(*args), scales(*args))


def test_of_two_that_cover_each_other_one_stays(tmp_path):
    for name in "ab":
        with aotdyn.record(tmp_path / name):
            traced = compiled(scales, Settings("eager"))
            for args in CALLS[: 3 if name == "a" else 1]:
                traced(*args)
    report = aotdyn.pack([tmp_path / "a", tmp_path / "b"], tmp_path / "pkg")
    assert report.variants == 1


def test_what_was_recorded_is_history(tmp_path):
    """The first size that differs from what a package has becomes symbolic at once."""
    with aotdyn.record(tmp_path / "rec"):
        compiled(scales, Settings("eager"))(*CALLS[0])
    aotdyn.pack(tmp_path / "rec", tmp_path / "pkg")
    settings = Settings("eager")
    with aotdyn.load(tmp_path / "pkg"):
        served = compiled(scales, settings)
        for args in [(torch.ones(7), 2), (torch.ones(8), 2), (torch.ones(9), 2)]:
            assert torch.equal(served(*args), scales(*args))
    (entry,) = settings.entries()
    assert entry.missed == 1
    assert len(entry.linked) == 1


def doubled(x):
    return x * 2


def tripled(x):
    return x * 3


def calls_a_global(x):
    return helper(x) + 1


helper = doubled


def test_what_is_put_back_is_still_there(monkeypatch):
    """The same name means another object: neither variant covers the other one."""
    settings = Settings("eager")
    traced = compiled(calls_a_global, settings)
    x = torch.ones(3)
    for _ in range(4):
        for function in (doubled, tripled, lambda x: x * 4, lambda x: x * 5):
            function = kept.setdefault(function.__code__, function)
            monkeypatch.setitem(globals(), "helper", function)
            assert torch.equal(traced(x), function(x) + 1)
    (entry,) = settings.entries()
    assert len(entry.linked) == entry.missed == 4


kept: dict = {}


def test_variants_that_were_dropped_count_for_the_limit():
    def fn(x, n):
        return x * n if n % 2 else x + n

    settings = Settings("eager")
    traced = compiled(fn, settings)
    for n in range(9):
        traced(torch.ones(n + 2), n)
    (entry,) = settings.entries()
    assert entry.missed == len(entry.linked) + entry.dropped
