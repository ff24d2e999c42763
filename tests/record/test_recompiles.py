"""How many variants a history of calls makes, and what is said of a miss."""

import importlib
import math
import sys
import time
from collections import deque

import pytest
import torch

import aotdyn
from aotdyn.runtime import logs
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.conftest import assert_agree, perform


class Counter:
    scale = 2

    def __init__(self):
        self.count = 0
        self.total = 0.0

    def scaled(self, x):
        return x * self.scale

    def fresh(self):
        made = Counter()
        made.__dict__.update(self.__dict__)
        return made


def increments(x, c):
    c.count += 1
    return x + 1


def accumulates(x, c):
    c.total += 0.5
    return x + 1


def asks_for_the_sign(x, v):
    return x * v, math.copysign(1, v)


def passes_on(x, value):
    return x + 1, value


def stores(x, value):
    holder = [value, {"v": value}]
    return x + 1, holder


def multiplies(x, v):
    return x * v


def branches(x, n):
    return x + 1 if n > 3 else x - 1


def loops(x, n):
    for i in range(n):
        x = x + i
    return x


def indexes(x, n):
    return x + [10, 20, 30, 40][n]


def compares(x, n):
    return x + 1 if n == 3 else x


def looks_up(x, n):
    return x * {4: 0.5, 2.0: 3, "a": 1}.get(n, 7) + (n in {8: 1})


TABLE = {5: 1.5, 30: 2}


def looks_up_what_came_in(x, n):
    try:
        return x * TABLE[n] * n
    except KeyError as error:
        return x - n, error.args


def is_a_key(x, n):
    return x * {n: 2}[n]


def makes_tensors(x, v):
    made = torch.tensor(v), torch.tensor([v, 1]), torch.as_tensor(v, dtype=torch.float32)
    return x * made[0], made


def asks_for_finite(x, v):
    return x if math.isnan(v) or math.isinf(v) else x * v


def two_ints(x, n, m):
    return x * n + m * n


def aligned(x, y):
    return x + y


def shapes_of(*sizes):
    return [(torch.ones(n),) for n in sizes]


def with_values(*values):
    return [(torch.ones(3), value) for value in values]


HISTORIES = {
    "a float that is passed on": (passes_on, with_values(1.5, 2.5, None, "a", [1], 3), 1),
    "a value that is stored": (stores, with_values(1.5, None, "a", (1, 2), 3), 1),
    "an int in the graph": (multiplies, with_values(2, 3, 4, -5, 0, 1, 100), 2),
    "a float in the graph": (multiplies, with_values(2.5, 3.5, 4.5, -5.5, 1e9, 1.0), 3),
    "nan and infinity": (multiplies, with_values(2.5, 3.5, 4.5, float("nan"), float("inf")), 5),
    "an int as a tensor": (makes_tensors, with_values(2, 3, 4, -5, 0, 2**40), 2),
    "a float as a tensor": (makes_tensors, with_values(2.5, 3.5, 4.5, -5.5, 1e-9), 3),
    "floats that are not normal": (multiplies, with_values(2.5, 3.5, 4.5, 5e-324, -1e-310), 3),
    "whether a float is finite": (asks_for_finite, with_values(2.5, 3.5, 4.5, 5.5, math.inf), 4),
    "signs": (asks_for_the_sign, with_values(math.nan, -math.nan, 0.0, -0.0, -math.inf, 1.5), 6),
    "zeros": (multiplies, with_values(0.0, -0.0, 0.5, 1.5, -0.0), 3),
    "bools are no ints": (multiplies, with_values(2, 3, True, False, 1), 4),
    "a branch on an int": (branches, with_values(1, 2, 3, 4, 5, 6), 3),
    "a loop over an int": (loops, with_values(1, 2, 3, 1, 2, 3), 3),
    "an int as an index of a list": (indexes, with_values(0, 1, 2, 0, 1, 2), 3),
    "an int that is looked up": (looks_up, with_values(10, 11, 12, 4, 13, 2, -5, 8), 5),
    "an int looked up in what came in": (
        looks_up_what_came_in, with_values(10, 11, 12, 5, 13, -5, 30, 0), 4,
    ),
    "an int as a key": (is_a_key, with_values(3, 4, 5), 3),
    "an int that is compared": (compares, with_values(1, 2, 3, 4, 5), 3),
    "one int of two": (two_ints, [(torch.ones(2), n, 5) for n in (1, 2, 3, 4)], 2),
    "both ints": (two_ints, [(torch.ones(2), n, n) for n in (1, 2, 3, 4)], 2),
    "both ints, one after the other": (
        two_ints, [(torch.ones(2), n, m) for n, m in ((1, 5), (2, 5), (3, 6), (4, 7))], 3,
    ),
    "equal sizes": (aligned, [(torch.ones(n), torch.ones(n)) for n in (2, 3, 4, 5)], 2),
    "sizes that are not equal": (
        aligned, [(torch.ones(n, 1), torch.ones(1, m)) for n, m in ((2, 2), (3, 3), (4, 5))], 3,
    ),
    "strings": (passes_on, with_values("a", "b"), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", HISTORIES)
def test_number_of_variants(name, agree):
    function, calls, variants = HISTORIES[name]
    agree(function, *calls, variants=variants, breaks=0)


CAUGHT = {
    "compares": (lambda x, v: v < 3, [2.5, 1.5, math.nan]),
    "divides": (lambda x, v: v // 2, [2.5, 1.5, math.nan, math.inf]),
    "remainder": (lambda x, v: v % 3, [2.5, 1.5, math.nan]),
    "power": (lambda x, v: v**2, [2.5, 0.75, -2.5]),
    "bits": (lambda x, v: v & 3, [2.5, 3.5]),
    "sizes that do not fit": (lambda x, v: x.view(v, -1), [3, 2, 5, -7, 0]),
    "sizes of the wrong type": (lambda x, v: x.view(v, -1), [2.5, 0.75]),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", CAUGHT)
def test_what_is_caught_tells_of_no_symbols(name, dynamic, agree):
    function, values = CAUGHT[name]

    def fn(x, v):
        try:
            return x + 1, function(x, v)
        except (TypeError, ValueError, RuntimeError, OverflowError, AssertionError) as error:
            return x + 2, type(error), str(error)

    agree(fn, *with_values(*values), dynamic=dynamic)


def scales_by_itself(x):
    return x * x.sum().item() + 1


def test_a_float_that_an_eager_step_has_given_is_symbolic_at_once(agree):
    agree(scales_by_itself, *[(torch.rand(3),) for _ in range(4)], variants=2, breaks=1)


@pytest.mark.parametrize("function, variants", [(increments, 1), (accumulates, 1)])
def test_a_counter_does_not_recompile_at_each_call(function, variants):
    settings = Settings("eager")
    traced = compiled(function, settings)
    mine, theirs = Counter(), Counter()
    for _ in range(8):
        traced(torch.ones(2), mine)
        function(torch.ones(2), theirs)
    assert vars(mine) == vars(theirs)
    assert len(settings.entries()[0].linked) == variants


def test_a_counter_in_a_closure_and_a_global():
    calls = 0

    def fn(x):
        nonlocal calls
        calls += 1
        return x + 1

    settings = Settings("eager")
    traced = compiled(fn, settings)
    for _ in range(8):
        traced(torch.ones(2))
    assert calls == 8
    # The one that takes any count has taken the place of the first.
    assert len(settings.entries()[0].linked) == 1


class Log:
    def __init__(self):
        self.items = []
        self.table = {}
        self.queue = deque()
        self.seen = set()


ONLY_ADDED_TO = {
    "append": lambda x, log: log.items.append(x.shape[0]),
    "extend": lambda x, log: log.items.extend([x.shape[0], 1]),
    "+=": lambda x, log: log.items.__iadd__((1, 2)),
    "a key of a dict": lambda x, log: log.table.__setitem__("last", 1),
    "a new key of a dict": lambda x, log: log.table.update(a=1, b=2),
    "append to a deque": lambda x, log: log.queue.append(x.shape[0]),
}


@pytest.mark.parametrize("name", ONLY_ADDED_TO)
def test_a_container_that_is_only_added_to(name):
    add = ONLY_ADDED_TO[name]

    def fn(x, log):
        add(x, log)
        return x + 1

    settings = Settings("eager")
    traced = compiled(fn, settings)
    mine, theirs = Log(), Log()
    for _ in range(8):
        traced(torch.ones(2), mine)
        fn(torch.ones(2), theirs)
    assert vars(mine) == vars(theirs)
    assert len(settings.entries()[0].linked) == 1


# -- parameters that are called as what generated text needs ----------------------------------


def test_parameters_named_like_builtins(agree):
    def fn(x, type, len, id=3, *, float=2.0, math=None, **map):
        return x * type + (1 if len else 2) * float + ("a" in map) + (id if math is None else 0)

    agree(fn, (torch.ones(3), 3, [1]), (torch.ones(3), 4, []), (torch.ones(4), 4, [], 7), breaks=0)


# -- messages ------------------------------------------------------------


def misses(function, *calls) -> list[str]:
    """The failed guards that the recompile log names, without their places."""
    shown: list[str] = []
    logs.sinks["recompiles"].append(shown.append)
    try:
        traced = compiled(function, Settings("eager"))
        for change, args in calls:
            if change is not None:
                change()
            traced(*args)
    finally:
        logs.sinks["recompiles"].pop()
    lines = [line.strip() for text in shown for line in text.splitlines()[1:]]
    return [line.removeprefix("failed: ").partition("  # ")[0] for line in lines]


def chooses(x, v):
    return x if v is None else x * v


def counts(x, items):
    return x * len(items)


def applies(x, f):
    return f(x)


def hooked(module):
    module.register_forward_hook(lambda module, args, result: None)
    return module


X = torch.ones(3)
MESSAGES = [
    (passes_on, (X, 1), (torch.ones(4), 1),
     "tensor 'x' size mismatch at index 0. expected 3, actual 4"),
    (passes_on, (X, 1), (X.double(), 1),
     "tensor 'x' dtype mismatch. expected Float, actual Double"),
    (multiplies, (X, 1), (X, 2), "v == 1 (it is 2)"),
    (multiplies, (X, 1), (X, True), "v == 1 (it is True)"),
    (multiplies, (X, 0.5), (X, -0.5), "v == 0.5 (it is -0.5)"),
    (multiplies, (X, 2), (X, X + 1), "v == 2 (it is tensor([2., 2., 2.]))"),
    (multiplies, (X, math.nan), (X, -math.nan), "v == nan (it is -nan)"),
    (chooses, (X, None), (X, 3), "v is None (it is 3)"),
    (counts, (X, [1]), (X, [1, 2]), "len(items) == 1 (it is 2)"),
    (counts, (X, {"a": 1}), (X, {"b": 1}), "the keys of items are ('a',) (they are ('b',))"),
    (applies, (X, torch.nn.ReLU()), (X, hooked(torch.nn.ReLU())),
     "f has no hooks (it has _forward_hooks)"),
]  # fmt: skip


@pytest.mark.parametrize("function, first, second, message", MESSAGES)
def test_message_of_a_miss(function, first, second, message):
    assert misses(function, (None, first), (None, second)) == [message]


@pytest.mark.parametrize(
    "change, told",
    [
        (lambda: torch.set_default_dtype(torch.float64), "default dtype was torch.float32 and is"),
        (lambda: torch.set_autocast_enabled("cpu", True), "(autocast on cpu was False and is True"),
    ],
)
def test_message_of_one_setting(change, told):
    try:
        found = misses(increments, (None, (X, Counter())), (change, (X, Counter())))
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_autocast_enabled("cpu", False)
    assert told in found[0]


@pytest.mark.parametrize("value, symbolic", [(3, True), (True, False), (3.0, False)])
def test_what_would_cover_another_number(value, symbolic, tmp_path):
    with aotdyn.record(tmp_path / "a.rec"):
        compiled(multiplies, Settings("eager"))(X, 2)
    aotdyn.pack([tmp_path / "a.rec"], tmp_path / "a.pkg")
    with aotdyn.load(tmp_path / "a.pkg", on_miss="eager") as package:
        told = str(package.why(multiplies, X, value))
    assert ("a number that differs is symbolic" in told) is symbolic
    assert ("record this call as well" in told) is not symbolic


def test_the_limit_names_the_guard_that_failed(monkeypatch):
    def fn(x, thing):
        return x * thing.size

    classes = [type(f"Thing{index}", (), {"size": index}) for index in range(20)]
    warned: list[str] = []
    monkeypatch.setattr(logs, "warn", warned.append)
    settings = Settings("eager")
    traced = compiled(fn, settings)
    for cls in classes:
        assert torch.equal(traced(X, cls()), fn(X, cls()))
    assert len(settings.entries()[0].linked) == 16
    assert len(warned) == 1
    assert "has 16 variants; calls that none of them covers run eagerly from now on" in warned[0]
    assert "failed last: type(thing) is what the recorded Thing15 was" in warned[0]
    assert "Thing16" in warned[0]


def test_a_miss_lists_all_that_fails_in_the_nearest_variant():
    calls = [(None, (X, 1)), (None, (X.double(), True)), (None, (torch.ones(4), True))]
    assert misses(multiplies, *calls) == [
        "v == 1 (it is True)",
        "tensor 'x' dtype mismatch. expected Float, actual Double",
        "tensor 'x' dtype mismatch. expected Double, actual Float",
    ]


def test_the_limit_says_what_to_mark_dynamic(monkeypatch):
    def fn(x):
        return x.view(x.shape[0], -1) + 1

    warned: list[str] = []
    monkeypatch.setattr(logs, "warn", warned.append)
    settings = Settings("eager", dynamic=False)
    traced = compiled(fn, settings)
    for size in range(2, 22):
        traced(torch.ones(size))
    assert len(warned) == 1
    assert "(x differed in 16 of them; failed last: tensor 'x' size mismatch at" in warned[0]
    assert warned[0].endswith("aotdyn.mark_dynamic(x, 0) before the first call makes it symbolic")


def test_message_of_a_changed_state():
    def fn(x):
        return x + 1

    wanted = "the process' state (gradient mode, autocast, defaults) "
    found = misses(fn, (None, (X,)), (lambda: torch.set_grad_enabled(False), (X,)))
    torch.set_grad_enabled(True)
    assert found == [f"{wanted}(grad mode was True and is False)"]


def test_message_of_a_changed_class(monkeypatch):
    def fn(x, c):
        return c.scaled(x) if c else x

    module = __name__
    found = misses(
        fn,
        (None, (X, Counter())),
        (lambda: monkeypatch.setattr(Counter, "scale", 3), (X, Counter())),
    )
    assert found == ["Counter.scale == 2 (it is 3)"]
    found = misses(
        fn,
        (None, (X, Counter())),
        (
            lambda: monkeypatch.setattr(Counter, "__bool__", lambda s: True, raising=False),
            (X, Counter()),
        ),
    )
    assert found == [
        f"classes Counter (__bool__ of {module}:Counter was not there and is a function)"
    ]
    found = misses(
        fn,
        (None, (X, Counter())),
        (
            lambda: monkeypatch.setattr(
                Counter.scaled, "__code__", (lambda self, x: x).__code__
            ),
            (X, Counter()),
        ),
    )
    assert len(found) == 1 and found[0].startswith("the code of ")
    assert f"({module}.Counter.scaled has another one)" in found[0]


# -- between record and load ------------------------------------------------------------

INLINED = "def inner(x):\n    return x {}\n"
PROGRAM = """
import torch
from inlined_by_aotdyn_test import inner

def outer(x):
    return inner(x) + 1
"""


def test_a_variant_is_refused_when_inlined_code_has_changed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "inlined_by_aotdyn_test.py").write_text(INLINED.format("* 2"))
    (tmp_path / "program_of_aotdyn_test.py").write_text(PROGRAM)
    program = importlib.import_module("program_of_aotdyn_test")
    with aotdyn.record(tmp_path / "a.rec"):
        compiled(program.outer, Settings("eager"))(X)
    aotdyn.pack([tmp_path / "a.rec"], tmp_path / "a.pkg")
    for name in ("program_of_aotdyn_test", "inlined_by_aotdyn_test"):
        monkeypatch.delitem(sys.modules, name)
    source = INLINED.format("* 300")
    (tmp_path / "inlined_by_aotdyn_test.py").write_text(source)
    importlib.invalidate_caches()
    program = importlib.import_module("program_of_aotdyn_test")
    with aotdyn.load(tmp_path / "a.pkg", on_miss="eager") as package:
        served = compiled(program.outer, Settings("eager"))
        assert_agree(perform(program.outer, (X,), {}), perform(served, (X,), {}))
        assert len(package.refused) == 1
        assert "inlined_by_aotdyn_test:inner" in str(package.refused)
        assert "has changed since it was recorded" in str(package.refused)


def test_a_time_that_was_taken_before_another_break_is_no_constant(agree):
    def fn(x):
        start = time.perf_counter()
        y = x * 2
        for _ in range(2):
            lap = time.perf_counter()
            y = y + 1
            assert time.perf_counter() - lap >= 0
        return y, time.perf_counter() - start > 0

    agree(fn, (torch.ones(3),), breaks=6)
