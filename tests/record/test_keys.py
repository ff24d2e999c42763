"""Objects as keys of dicts and members of sets: with a hash of the program's own, by identity, and
tuples, named tuples, enums and sizes among them; of tables that came in, and of new ones."""

import collections
import dataclasses
import enum
import math
from typing import NamedTuple

import torch

import aotdyn
from tests.record.programs import Programs, note


@dataclasses.dataclass(frozen=True)
class K:
    a: int
    b: str = "x"


class H:
    """Whose hash can change."""

    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return isinstance(other, H) and self.n == other.n


class Collides(H):
    def __hash__(self):
        return 1


class ByType(H):
    def __hash__(self):
        return hash((type(self), self.n))


class ById(H):
    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other


class Pair(NamedTuple):
    a: int
    b: str


class E(enum.Enum):
    A = 1
    B = 2


class Plain:
    pass


D = {K(1): 10, K(2): 20}
DH = {H(1): [1], H(2): [2]}
COLLIDING = {Collides(1): 1, Collides(2): 2, Collides(3): 3}
ONE, PLAIN = ById(1), Plain()
OTHERS = {ONE: 1, ById(2): 2, ByType(1): 3}
MIXED = {1: "one", "s": 2, K(3): 3, (K(1), 2): 4, Pair(1, "x"): 5, E.A: 6, frozenset((1, 2)): 7,
         torch.Size([2]): 8}  # fmt: skip
ORDERED = collections.OrderedDict([(K(1), 1), (H(2), 2)])
DEFAULTS = collections.defaultdict(list, {H(1): [1]})
COUNTS = collections.Counter({H(1): 3, H(2): 1})
KS, ES, TS, CLASSES, HS = {K(1), K(5)}, {E.A, E.B}, {(1, 2), (3, 4)}, {int, str}, frozenset({H(1)})
OBJECTS, PAIRS = {PLAIN}, {Pair(1, "x"), (Pair(2, "y"), K(1))}
PARAMETERS = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(3))]
STATE = {p: {"step": i} for i, p in enumerate(PARAMETERS)}
MODULES = {torch.nn.Linear(2, 2): "linear", torch.nn.ReLU(): "relu"}

program = Programs()


@program()
def _hashed_keys(x):
    try:
        D[K(7)]
    except KeyError as error:
        missing = error.args[0] == K(7), str(error)
    items = [(k.a, k.b, v) for k, v in D.items()]
    first = next(iter(D))
    found = D[K(1)], K(3) in D, D.get(K(9), 5), len(D), {**D} == D, dict(D)[K(2)], first in D
    more = COLLIDING[Collides(2)], Collides(4) in COLLIDING, [k.n for k in COLLIDING]
    others = OTHERS[ONE], ById(1) in OTHERS, OTHERS[ByType(1)], [k.n for k in OTHERS]
    return x * D[K(2)], items, found, missing, more, others


@program()
def _many_kinds_of_keys(x):
    kinds = [type(k).__name__ for k in MIXED]
    found = [MIXED[key] for key in (1, "s", K(3), (K(1), 2), Pair(1, "x"), (1, "x"), E.A,
                                    frozenset((2, 1)), torch.Size([2]))]  # fmt: skip
    ordered = ORDERED[K(1)], [type(k).__name__ for k in ORDERED], H(2) in ORDERED
    counts = COUNTS[H(1)], COUNTS[H(7)], COUNTS.most_common(1)[0][1]
    by_tensor = STATE[PARAMETERS[1]]["step"], [s["step"] for p, s in STATE.items() if p.numel() > 2]
    return x, kinds, found, MIXED.get(True), ordered, counts, by_tensor, [
        name for module, name in MODULES.items() if isinstance(module, torch.nn.ReLU)
    ]


@program()
def _tables_that_came_in_change(x):
    DH[H(1)].append(x)
    DH[H(5)] = [5]
    size = len(DH), len(DH[H(1)])
    DH[H(1)].pop()
    last = DH.pop(H(5))
    DEFAULTS[H(3)].append(2)
    count = len(DEFAULTS)
    del DEFAULTS[H(3)]
    KS.add(K(8))
    KS.add(K(1))
    sizes = len(KS), K(8) in KS
    KS.remove(K(8))
    return x * count, size, last, sizes, [k.n for k in DH], len(KS)


@program(breaks=None)
def _members_go(x):
    KS.clear()
    KS.update({K(1), K(5), K(7)})
    CLASSES.add(int)
    CLASSES.add(float)
    log = []
    note(log, (len(KS), len(CLASSES)))
    KS.discard(K(7))
    CLASSES.discard(float)
    ES.symmetric_difference_update({E.A, 3})
    note(log, (len(KS), K(7) in KS, float in CLASSES, E.A in ES))
    ES.difference_update([3])
    ES.add(E.A)
    return x, log, len(ES)


@program()
def _sets_of_objects(x):
    found = [K(5) in KS, K(6) in KS, E.A in ES, len(ES), (1, 2) in TS, (1, 3) in TS, int in CLASSES,
             float in CLASSES, H(1) in HS, H(3) in HS, (1, "x") in PAIRS, PLAIN in OBJECTS,
             Plain() in OBJECTS, ((2, "y"), K(1)) in PAIRS, (2, "y") in PAIRS]  # fmt: skip
    a, b = K(1), K(1)
    both = {a, b}
    assert [type(k) for k in {True: 9, 1: 3}] == [bool]  # noqa: F601
    assert [m for m, n in {(1, 2): 3, "ab": 4}] == [1, "a"]
    new = len(KS | {K(9)}), [k.a for k in KS & {K(5)}], KS <= {K(1), K(5)}, KS == {K(5), K(1)}
    kinds = [[type(k) for k in s] for s in ({1.0} & {True}, {1.0} & {True, 2}, {1, 2} & {2.0})]
    assert kinds == [[bool], [float], [float]] and next(iter({a} & {b})) is b
    pairs = [m + n for m, n in {(1, 2)}], {(1, 2), (3, 4)} == TS, sorted(k.a for k in {K(2), b})
    return x, found, next(iter(both)) is a, next(iter({a: 1, b: 2})) is a, new, pairs, len(HS - HS)


@program(({K(1): 2, K(3): 4}, {K(1)}, torch.ones(3)), ({K(1): 2, K(3): 5}, {K(2)}, torch.ones(3)),
         ({K(1): 2}, set(), torch.ones(3)))  # fmt: skip
def _tables_as_arguments(d, s, x):
    d[K(9)] = 1
    s.add(K(2))
    return x * d[K(1)] + sum(d.values()), len(s)


@program(({H(1): 1}, H(1), torch.ones(3)), ({H(1): 1}, H(2), torch.ones(3)))
def _key_as_argument(d, key, x):
    d[key] = 4
    return x * len(d), d


@program(({H(1): 1}, torch.ones(3)))
def _key_that_changes(d, x):
    (key,) = d
    key.n = 5
    found = key in d, H(1) in d, H(5) in d, len(d)
    key.n = 1
    return x, found, key in d


@program(breaks=3)
def _keys_around_breaks(x):
    log = []
    note(log, D[K(1)])
    DH[H(4)] = x
    note(log, len(DH))
    w = DH.pop(H(4))
    note(log, H(4) in DH)
    return x * D[K(2)] + w, log, [k.a for k in D]


# -- nans ------------------------------------------------------------


class Float(float):
    pass


NAN, NAN_OBJECT = float("nan"), Float("nan")


@program(breaks=None)
def p_nans_that_are_made(x):
    a = b = float("nan")
    c = math.inf - math.inf
    held, pair = [a, c], (a, 1)
    aotdyn.graph_break()
    found = a is b, a is c, a in held, held.index(c), held == [a, c], held == [c, a]
    return found, pair == (a, 1), {a: 1, c: 2}[b], len({a, b, c}), x


@program((torch.ones(2), NAN, NAN), (torch.ones(2), NAN, float("nan")), breaks=None)
def p_nans_that_came_in(x, first, second):
    held = [first]
    aotdyn.graph_break()
    found = first in held, second in held, first is second, (first,) == (second,)
    same = {"a": first} == {"a": second}, {first: 1}.get(second)
    return found, same, x


@program(breaks=None)
def p_nans_of_a_class(x):
    made = Float("nan")
    return made in [made], {made: 1}[made], {NAN_OBJECT: 2}[NAN_OBJECT], x


test_agrees = program.test()


def test_hashes_of_nans(agree):
    """They are addresses: nothing for a package, whose variants compare them."""

    def program(x, came_in):
        for value in (float("nan"), Float("nan"), came_in):
            hashed = hash(value)
            if hashed != object.__hash__(value) or type(value).__hash__(value) != hashed:
                return None
        return x

    agree(program, *((torch.ones(2), each) for each in (NAN, NAN_OBJECT)), package=False)


def test_a_key_that_was_changed_is_not_found(agree):
    """A table keeps the hash that a key had when it was put there."""
    changed, other = H(1), H(3)
    table = {changed: 1}
    changed.n = 3

    def f(d, x):
        return x, other in d, len(d)

    assert agree(f, ({H(3): 1}, torch.ones(2)), package=False).outcomes[0].result[1]
    found = agree(lambda x: f(table, x), (torch.ones(2),), package=False)
    assert not found.outcomes[0].result[1] and {b.reason for b in found.breaks} == {"hash"}
