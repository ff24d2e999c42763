"""Iterators of C: what they do when the program raises within them, stops, and goes on; what they
say to arguments; that only what is asked for is computed."""

import copy
import itertools
from itertools import (
    accumulate,
    chain,
    combinations,
    combinations_with_replacement,
    compress,
    count,
    cycle,
    dropwhile,
    filterfalse,
    groupby,
    islice,
    pairwise,
    permutations,
    product,
    repeat,
    starmap,
    takewhile,
    tee,
    zip_longest,
)

import pytest
import torch

from tests.record.programs import Programs, note, outcome_of

program = Programs()

# What they are given that they do not take: they say so when they are made.
GARBAGE = """
repeat(1, v) | repeat(1, times=v) | islice([1], v) | islice([1], 0, 3, v) | count(v) | count(1, v)
product([1], repeat=v) | permutations([1], v) | starmap(max, v) | enumerate([1], v) | cycle(v)
sorted([1], key=v) | sum([1], v) | "ab".join(v) | slice(v).indices(3) | deque([1], v)
attrgetter(v) | OrderedDict(v) | dict(v) | length_hint([], v) | getattr(1, v) | hasattr(1, v)
"""


def written(table, call):
    """A program of `x` and `v` that gives what a call makes of each expression of a table."""
    each = table.strip().replace("\n", "|").split("|")
    calls = "".join(f"{call.format(expression)}, " for expression in each)
    scope = dict(globals())
    exec(f"def program(x, v):\n    return x, ({calls})", scope)
    return scope["program"]


@pytest.mark.parametrize("value", [2.0, None, -1, "ab", True, [1, 2]], ids=repr)
def test_garbage(agree, value):
    program = written(GARBAGE, "outcome_of(lambda: first({}))")
    agree(program, (torch.ones(2), value), package=False, breaks=None)


def first(made):
    return list(islice(made, 3)) if hasattr(made, "__next__") else type(made)


# Made before a break, advanced after it: objects are asked for their iterators once.
KEPT = """
islice(w, 3) | cycle(w) | accumulate(w) | takewhile(len, w) | dropwhile(bool, w) | starmap(max, w)
filterfalse(bool, w) | compress(w, w) | compress([1], selectors=w) | pairwise(w) | groupby(w)
zip_longest([1], w, fillvalue=3) | chain(w) | chain.from_iterable([w]) | chain.from_iterable(w)
"""


class Renewed:
    """Tells that it is asked for an iterator, of what it holds then. itself: gives itself."""

    def __init__(self, items, itself):
        self.items, self.itself, self.asked = items, itself, 0

    def __iter__(self):
        self.asked += 1
        return self if self.itself else iter(self.items)

    def __next__(self):
        if not self.items:
            raise StopIteration
        return self.items.pop()


@pytest.mark.parametrize("kind", ["list", "dict", "object", "itself"])
def test_kept_over_a_break(agree, kind):
    program = written(KEPT, "kept(lambda w: {}, v)")
    agree(program, (torch.ones(2), kind), package=False, breaks=None)


def kept(make, kind):
    items = {(1, 2): 1, (3,): 2} if kind == "dict" else [(1, 2), (3,)]
    given = items if kind in ("list", "dict") else Renewed(items, kind == "itself")
    made = make(given)
    items.setdefault((4,)) if kind == "dict" else items.append((4,))
    if kind == "object":
        given.items = [(5,), (6,)]
    note([], "break")
    told = []
    failed = outcome_of(lambda: told.extend(str(each)[:9] for each in islice(made, 4)))
    return told, failed, getattr(given, "asked", 0)


class Told:
    """Says that it is asked how many items it has. length: what it answers."""

    def __init__(self, log, length):
        self.log, self.length = log, length

    def __iter__(self):
        self.log.append("iter")
        return iter([1, 2])

    def __len__(self):
        self.log.append("len")
        if self.length == "error":
            raise ValueError("no length")
        return self.length


@program((torch.ones(2), 2), (torch.ones(2), None), (torch.ones(2), "error"), (torch.ones(2), -1))
def p_how_many_there_are_is_asked(x, length):
    log = []
    takers = (
        list, tuple, set, sorted, torch.Size, dict.fromkeys, lambda v: [*v], lambda v: (*v,),
        lambda v: [].extend(v), lambda v: ",".join(v), lambda v: max(*v), lambda v: max(0, *v),
        lambda v: [0].__iadd__(v), lambda v: [0].__setitem__(slice(0), v), lambda v: {*v},
    )  # fmt: skip
    return x, [outcome_of(lambda: take(Told(log, length))) for take in takers], log


class Cut:
    """Gives what it holds; "bad" is raised, "stop" stops, and both times it goes on."""

    def __init__(self, items):
        self.items = list(items)

    def __iter__(self):
        return self

    def __next__(self):
        if not self.items:
            raise StopIteration
        item = self.items.pop(0)
        if item == "stop":
            raise StopIteration
        if item == "bad":
            raise ValueError(item)
        return item


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def odd(item):
    if item == 2:
        raise KeyError(item)
    if item == 5:
        raise StopIteration
    return item


def drained(iterator):
    found = []
    for _ in range(12):
        try:
            found.append(next(iterator))
        except StopIteration:
            found.append("end")
        except Exception as error:
            found.append(type(error).__name__)
    return found


GIVEN = [1, 2, 3, 4, 5, 6, 8, 3]
MADE = {
    "starmap": lambda: starmap(odd, [(item,) for item in GIVEN]),
    "starmap of what goes on": lambda: starmap(odd, Cut([(1,), "bad", (2,), "stop", (3,)])),
    "takewhile": lambda: takewhile(lambda item: odd(item) < 7, GIVEN),
    "dropwhile": lambda: dropwhile(lambda item: odd(item) < 4, GIVEN),
    "filterfalse": lambda: filterfalse(lambda item: odd(item) == 3, GIVEN),
    "filterfalse of what goes on": lambda: filterfalse(None, Cut([0, "stop", 1, 0, "bad", 0])),
    "accumulate": lambda: accumulate(GIVEN, lambda a, b: a + odd(b)),
    "accumulate of what goes on": lambda: accumulate(Cut([1, 2, "bad", 3, "stop", 4])),
    "compress": lambda: compress(Cut([1, 2, "bad", 3, "stop", 4]), repeat(1)),
    "pairwise": lambda: pairwise(Cut([1, 2, "bad", 3, 4, "stop", 5, 6])),
    "chain": lambda: chain(Cut([1, "bad", 2, "stop", 3]), Cut([4])),
    "chain of what goes on": lambda: chain.from_iterable(Cut([[1], "bad", [2], "stop", [3]])),
    "chain of a number": lambda: chain.from_iterable(Cut([[1], 3, [2], "stop", [3]])),
    "cycle": lambda: cycle(Cut([1, "bad", 2, "stop", 3])),
    "islice": lambda: islice(Cut([1, "bad", 2, 3, "stop", 3]), 0, 4, 2),
    "islice by objects": lambda: islice(range(100), Index(1), Index(9), Index(3)),
    "zip_longest": lambda: zip_longest(Cut([1, "bad", 2, "stop", 3]), Cut([1, 2, 3, 4, 5])),
    "groupby": lambda: ((k, list(g)) for k, g in groupby(Cut([1, 1, 2, "stop", 3, 3]))),
    "keys of groupby": lambda: (k for k, _ in groupby(GIVEN, odd)),
    "tee": lambda: tee(Cut([1, "bad", 2, "stop", 3]))[0],
    "until": lambda: iter(Cut([1, "bad", 2, "stop", 3]).__next__, 9),
    "until a StopIteration": lambda: iter(lambda items=iter(GIVEN): next(items), 9),
    "map": lambda: map(odd, GIVEN),
    "filter": lambda: filter(odd, GIVEN),
    "zip": lambda: zip(Cut([1, "bad", 2, "stop", 3]), Cut([1, 2, 3, 4, 5])),
    "strict zip": lambda: zip(Cut([1, 2, "stop", 3]), Cut([1, 2, 3, 4, 5]), strict=True),
    "enumerate": lambda: enumerate(Cut([1, "bad", 2, "stop", 3])),
    "product": lambda: product(GIVEN[:2], "ab"),
    "a large product": lambda: product(range(1000), repeat=4),
    "product of nothing": lambda: chain(product(), product([1, 2], repeat=0), product([], [1])),
    "many permutations": lambda: permutations(range(40), 20),
    "permutations": lambda: permutations(GIVEN[:3], None),
    "combinations": lambda: combinations(iterable=GIVEN[:3], r=2),
    "combinations_with_replacement": lambda: combinations_with_replacement(GIVEN[:3], r=2),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_an_iterator_goes_on_as_one_of_c(agree, name):
    make = MADE[name]
    agree(lambda x: (drained(make()), x), (torch.ones(2),), breaks=None)


# (callable, arguments, keywords)
CALLS = [
    (pairwise, ("a", 1), {}), (pairwise, (), {"iterable": "ab"}), (islice, ([1],), {}),
    (islice, ([1], 1, 2, 3, 4), {}), (islice, ([1],), {"stop": 3}), (islice, ([1, 2], True), {}),
    (islice, ([1, 2], 1.0), {}), (islice, ([1, 2], 0, 2, 0), {}), (islice, ([1, 2], -1), {}),
    (islice, ([1, 2], -1, 2), {}), (chain, (), {"iterables": []}),
    (chain.from_iterable, (3,), {}), (cycle, (), {"iterable": [1]}),
    (takewhile, (), {"predicate": bool, "iterable": [1]}), (takewhile, (bool,), {}),
    (starmap, (pow,), {}), (compress, ([1],), {}), (compress, (), {"data": "ab", "selectors": "c"}),
    (zip_longest, ([1],), {"fill": 1}), (accumulate, ([1, 2], None), {"initial": 3}),
    (accumulate, ([1, 2], None, 3), {}), (repeat, (1,), {"times": 2}), (repeat, (1, 2, 3), {}),
    (repeat, (1, "a"), {}), (repeat, (1, -4), {}), (count, ("a",), {}), (count, (1, 2, 3), {}),
    (count, (), {"step": 3}), (product, ([1],), {"repeat": -1}), (product, ([1],), {"rep": 1}),
    (permutations, ([1], -1), {}), (permutations, ([1], "a"), {}), (combinations, ([1],), {}),
    (combinations, ([1], -2), {}), (combinations, ([1], None), {}), (tee, ([1], -1), {}),
    (tee, ([1], "a"), {}), (tee, (), {"iterable": [1]}), (filterfalse, (None,), {}),
    (slice, (), {}), (slice, (1, 2, 3, 4), {}),
]  # fmt: skip


@program(breaks=None)
def p_arguments(x):
    found = []
    for function, args, kwargs in CALLS:
        try:
            found.append(list(islice(function(*args, **kwargs), 4)))
        except (TypeError, ValueError) as error:
            found.append((type(error), str(error)))
    return found, x


@program()
def p_tee_is_of_its_own_type(x):
    one, two = tee([1, 2, 3])
    return next(one), type(one), list(two), x


@program(breaks=None)
def p_tee_is_copied(x):
    one, two = tee([1, 2, 3])
    next(one)
    again = copy.copy(one)
    return list(again), list(one), tee(two)[0] is two, list(two), x


@program(([], [1, 1, 2, 3]), breaks=None)
def p_tee_and_groups_at_a_break(log, items):
    one, two = tee(items)
    next(one)
    found = []
    for key, group in groupby(items):
        note(log, key)
        found.append((key, list(group)))
    return found, list(one), list(two)


@program(([1, 1, 2],), breaks=None)
def p_what_leaves_the_frame(items):
    groups = groupby(items)
    _, group = next(groups)
    kinds = [type(each) for each in (groups, group, *tee(items))]
    rows = next(product(items, items)), next(combinations(items, 2))
    one, two = tee(items)
    next(one)
    return kinds, rows, list(group), list(one), list(two)


@program(([1, 1, 2, 3],))
def p_a_group_ends_with_the_next_one(items):
    groups = groupby(items)
    _, first = next(groups)
    next(groups)
    return list(first)


class Reentering:
    group = None
    entered = False

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        if not Reentering.entered:
            Reentering.entered = True
            next(Reentering.group, None)
        return True


@program(breaks=None)
def p_a_group_is_advanced_within(x):
    Reentering.entered = False
    Reentering.group = next(groupby(range(10), Reentering))[1]
    return [next(Reentering.group, None) for _ in range(3)], x


class Within:
    def __init__(self):
        self.first, self.others = True, ()

    def __iter__(self):
        return self

    def __next__(self):
        if self.first:
            self.first = False
            return next(self.others[1])
        raise StopIteration


@program(breaks=None)
def p_tee_is_advanced_within(x):
    within = Within()
    within.others = itertools.tee(within)
    try:
        return next(within.others[0]), x
    except RuntimeError as error:
        return str(error), x


test_agrees = program.test()
