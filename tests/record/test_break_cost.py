"""What breaks cost: entries per break site, variants in loops, stack depth, frames that gain
nothing, and lists that grow."""

import sys

import pytest
import torch

import aotdyn
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

SEEN = []


@aotdyn.disable
def note(value):
    depth, frame = 0, sys._getframe()
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    SEEN.append((value, depth))
    return value


def for_range(x, n):
    for i in range(n):
        x = x + i
        note(i)
    return x


def running_total(x, n):
    total = 0
    for i in range(n):
        x = x + total
        total = note(total + i)
    return x, total


def in_with_and_try(x, n):
    with torch.no_grad():
        for i in range(n):
            try:
                x = x + i
                note(i)
            finally:
                x = x * 1.0
    return x


def with_in_while(x, n):
    i = 0
    while i < n:
        with torch.no_grad():
            x = x + i
            note(i)
        i += 1
    return x


def growing_list(x, n):
    out = []
    for i, v in enumerate([x] * n):
        out.append(v + i)
        note(i)
    return torch.stack(out)


def zipped(x, n):
    for a, b in zip(range(n), range(0, 2 * n, 2), strict=True):
        x = x + a + b
        note(a)
    return x


def nested_loops(x, n):
    for i in range(n // 5):
        for j in range(5):
            x = x + i * j
            note((i, j))
    return x


def raising(x, n):
    for i in range(n):
        try:
            x = x + i
            note(i)
            int("x" * (i % 2 + 1))
        except ValueError:
            x = x - 1
    return x


@pytest.mark.parametrize(
    "program",
    [for_range, running_total, in_with_and_try, with_in_while, growing_list, zipped, nested_loops,
     raising],
)  # fmt: skip
def test_loops_are_constant(program):
    settings = Settings("eager")
    served = compiled(program, settings)
    x = torch.ones(3)
    SEEN.clear()
    expected = program(x, 40)
    values = [value for value, _ in SEEN]
    SEEN.clear()
    assert str(served(x, 40)) == str(expected)
    assert [value for value, _ in SEEN] == values
    assert len({depth for _, depth in SEEN[10:]}) == 1
    count = sum(len(entry.linked) for entry in settings.entries())
    assert count <= 14
    assert not any(entry.skipped for entry in settings.entries())
    served(x, 40)
    assert sum(len(entry.linked) for entry in settings.entries()) == count
    SEEN.clear()
    served(x, 100)
    assert sum(len(entry.linked) for entry in settings.entries()) <= count + 6


def stores(x, n):
    found, slots = {}, [None] * n
    for i in range(n):
        found[i] = slots[i] = x + i
        note(i)
    return found, slots


def reads(x, n):
    values = [x * i for i in range(n)]
    by_name = {f"k{i}": x - i for i in range(n)}
    for i in range(n):
        x = x + values[i]
        note(i)
        x = x + by_name[f"k{i}"]
    return x


def collects(x, n):
    seen, text = set(), ""
    for i in range(n):
        seen.add(i)
        text += f"{i},"
        x = x + len(seen) + len(text)
        note(i)
    return x, seen, text


def grows(x, n):
    table, pairs = {}, ()
    for i in range(n):
        table[f"k{i}"] = i
        pairs = (*pairs, i)
        for name in table:
            x = x + len(name)
        x = x + sum(pairs)
        note(i)
    return x


FUNCTIONS = [eval(f'lambda x: x + {i}') for i in range(30)]


def calls_many(x, n):
    for function in FUNCTIONS[:n]:
        x = function(x)
        note(0)
    return x


@pytest.mark.parametrize("program", [stores, reads, collects, calls_many, grows])
def test_what_varies_in_a_loop_does_not_fill_the_entry(program):
    settings = Settings("eager")
    served = compiled(program, settings)
    x = torch.ones(3)
    for n in (30, 25, 30):
        assert str(served(x, n)) == str(program(x, n))
    count = sum(len(entry.linked) for entry in settings.entries())
    assert str(served(x, 30)) == str(program(x, 30))
    assert sum(len(entry.linked) for entry in settings.entries()) == count
    assert not any(entry.skipped for entry in settings.entries())
    graphs = [v for e in settings.entries() for v in e.linked if v.variant.graph is not None]
    assert graphs


def gains_nothing(log, n):
    for i in range(n):
        note(i)
    log.append(note("end"))
    return n


def test_a_frame_that_gains_nothing_is_skipped():
    settings = Settings("eager")
    served = compiled(gains_nothing, settings)
    log = []
    for _ in range(10):
        served(log, 3)
    SEEN.clear()
    hits = sum(entry.hits for entry in settings.entries() if entry.point is not None)
    assert served(log, 3) == 3
    assert sum(e.hits for e in settings.entries() if e.point is not None) == hits
    assert [value for value, _ in SEEN] == [0, 1, 2, "end"]
    assert log == ["end"] * 11


def late_gain(x, hot):
    note("start")
    if note(hot):
        return x * 2 + 1
    return x


def test_a_frame_that_gains_later_is_kept():
    settings = Settings("eager")
    served = compiled(late_gain, settings)
    x = torch.ones(2)
    for turn in range(12):
        assert torch.equal(served(x, turn % 4 == 0), late_gain(x, turn % 4 == 0))
    graphs = [v for e in settings.entries() for v in e.linked if v.variant.graph is not None]
    assert graphs


@aotdyn.disable
def addresses(*held):
    """What tells objects apart, and tensors by their memory."""
    SEEN.append([(id(each), getattr(each, "data_ptr", lambda: 0)()) for each in held])
    KEPT.extend(held)  # an address is not used again


KEPT = []


def carries_everything(x, names):
    made, listed, table = x + 1, [x], {"x": x}
    view, pair = made[:1], (listed, table)
    holder = type(names)("n")

    def shared():
        return made, listed

    for _ in range(3):
        addresses(x, made, listed, table, view, pair, holder, shared, pair[0], shared()[0])
        note(0)
    addresses(x, made, listed, table, view, pair, holder, shared, pair[0], shared()[0])
    return made, view


def test_nothing_live_is_copied():
    served = compiled(carries_everything, Settings("eager"))
    x = torch.ones(3)
    for _ in range(2):
        SEEN.clear()
        served(x, "n")
        first, *others = [each for each in SEEN if type(each) is list]
        assert len(others) == 3 and all(each == first for each in others)
        assert first[0] == (id(x), x.data_ptr()) and first[4][1] == first[1][1]
        assert first[8] == first[2] and first[9] == first[1]
    KEPT.clear()


def uses_two_of_three(x):
    used, unused, again = x + 1, (x * 2).exp(), x - 3
    aotdyn.graph_break()
    y = used * 4
    aotdyn.graph_break()
    return y + used, again


def test_nothing_is_computed_twice(agree):
    found = agree(uses_two_of_three, (torch.ones(3),), graphs=3, breaks=2)
    # What the rest needs is handed over.
    expected = [["add", "mul", "exp", "sub"], ["mul"], ["add"]]
    assert [found.ops(index) for index in range(3)] == expected
    # What it does not need is not held.
    assert [len(found.graphs[index].outputs) for index in range(3)] == [2, 1, 1]
