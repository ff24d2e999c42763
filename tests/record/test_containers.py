"""Containers, numbers, text, unpacking, `match`, loops: every method of the builtin types."""

import copy
import enum
import functools
import math
from collections import deque, namedtuple
from dataclasses import dataclass

import pytest
import torch

import aotdyn
from tests.record.programs import Programs, note, outcome_of

program = Programs()


@program()
def p_list(x):
    l = [3, 1, 2]
    l.append(4)
    l.extend((5,))
    l.insert(0, 9)
    l.remove(1)
    a = l.pop()
    b = l.pop(0)
    l.sort()
    l.reverse()
    c = l.copy()
    l.clear()
    return (
        l,
        a,
        b,
        c,
        c.index(2),
        c.count(3),
        [1] * 2 + [3],
        [1, 2] < [1, 3],
        c[::-1],
        c[1:],
        2 in c,
        len(c),
        sum(c),
        x,
    )


@program()
def p_list_slice(x):
    l = list(range(6))
    l[1:3] = [x]
    l[::2] = [7] * len(l[::2])
    del l[0]
    del l[-2:]
    l += [1]
    l *= 2
    return l


@program()
def p_list_sort(x):
    l = [("b", 2), ("a", 2), ("c", 1)]
    l.sort(key=lambda t: t[1])
    m = sorted(l, key=lambda t: t[0], reverse=True)
    return (l, m, sorted("bca"), sorted({3: 1, 1: 2}), sorted([3, 1, 2], reverse=True), x)


@program()
def p_list_alias(x):
    a = [1]
    b = a
    b.append(x)
    c = [a, a]
    c[0].append(2)
    return (a is b, c, a)


@program()
def p_tuple(x):
    t = (1, 2, x)
    return (
        t + (3,),
        t * 2,
        t[0],
        t[:2],
        len(t),
        (1, 2) < (1, 3),
        (1, 2).count(1),
        (1, 2).index(2),
        1 in (1, 2),
        tuple([1]),
        (),
    )


@program()
def p_dict(x):
    d = {"a": 1}
    d["b"] = x
    d.update(c=3)
    d.setdefault("d", []).append(1)
    p = d.pop("a")
    q = d.pop("zz", None)
    i = d.popitem()
    e = dict(d)
    d |= {"z": 1}
    return (
        d,
        p,
        q,
        i,
        e,
        list(d.keys()),
        list(d.items()),
        d.get("b") is x,
        {**d, "k": 1},
        dict(zip("ab", [1, 2])),
        dict.fromkeys("ab", 0),
        "b" in d,
        len(d),
        list(reversed(d)),
        {"a": 1} | {"b": 2},
    )


@program()
def p_dict_views(x):
    d = {"a": 1, "b": 2}
    k = d.keys()
    v = d.values()
    d["c"] = 3
    return (
        list(k),
        list(v),
        k & {"a", "z"} == {"a"},
        "a" in k,
        len(v),
        3 in v,
        ("a", 1) in d.items(),
        sorted(k | {"q"}),
        k - {"a"} == {"b", "c"},
        d.keys() == {"a", "b", "c"},
        x,
    )


@program()
def p_dict_order(x):
    d = {"a": 1, "b": 2}
    d["a"] = 9
    del d["b"]
    d["b"] = x
    return (list(d), d)


@program()
def p_dict_keys(x):
    d = {1: "i", True: "b", 1.0: "f", (1, 2): "t", None: "n", x.dtype: "d", int: "c"}  # noqa: F601
    return (d[1], len(d), d[1, 2], d[None], d[torch.float32], d[int], x)


@program()
def p_set(x):
    s = {1, 2}
    s.add(3)
    s.discard(9)
    s.remove(1)
    s.update([5])
    t = frozenset([2, 3])
    return (
        s,
        s | t,
        s & t,
        s - t,
        s ^ t,
        t <= s,
        s.issubset({1, 2, 3, 5}),
        s.isdisjoint({7}),
        len(s),
        2 in s,
        sorted(s),
        set("a"),
        x,
    )


@program()
def p_set2(x):
    s = {1, 2, 3}
    s -= {1}
    s |= {7}
    s &= {2, 7}
    s ^= {9}
    a = s.copy()
    s.intersection_update({2})
    s.difference_update({2})
    s.symmetric_difference_update({4})
    return (s, a, {1}.union([2], [3]), {1, 2}.difference([1]), {1} == frozenset({1}), x)


@program()
def p_str(x):
    s = " Hello, World "
    return (
        s.strip().lower(),
        s.upper(),
        s.split(","),
        "a-b-c".rsplit("-", 1),
        "x".join(["a", "b"]),
        s.replace("l", "L"),
        s.find("W"),
        s.startswith(" H"),
        "abc".endswith(("c", "d")),
        "ab".center(6, "*"),
        "7".zfill(3),
        "abc"[::-1],
        "a" * 3,
        "a" < "b",
        "b" in "abc",
        "Title case".title(),
        "aB".swapcase(),
        "a\tb".expandtabs(2),
        "a,b".partition(","),
        "abc".translate(str.maketrans("a", "z")),
        "12".isdigit(),
        "é".encode(),
        "a\nb".splitlines(),
        "abc".removeprefix("a"),
        "abc".removesuffix("c"),
        "{:>5}|{:<4}|{:^5}".format("a", "b", "c"),
        "%d %s %.2f %r" % (1, "a", 2.5, "q"),
        "abc".index("c"),
        "aXb".casefold(),
        "abc".capitalize(),
        "a b".split(),
        ord("a"),
        chr(98),
        "abc".isalpha(),
        "ab".ljust(4) + "|",
        "ab".rjust(4),
        "aab".count("a"),
        "{a}-{b}".format(a=1, b=2),
        "{0[1]} {1.real}".format([1, 2], 3),
        "%(a)s" % {"a": 1},
        x,
    )


@program()
def p_fstr(x):
    n = 3.14159
    w = 10
    d = {"k": 1}
    return (
        f"{n:.2f} {n:{w}.3f} {w:05d} {w:x} {w:#b} {w:,} {1000000.0:e} {n!r} w={w!r} {'a':>{w}} {d['k']} {True} {None} {x.shape} {x.dtype} {-5:+d} {0.5:%} {[1, 'a']} {(1,)} {d}",  # noqa: E501
        x,
    )


@program()
def p_fmt_size(x):
    return (f"{x.shape[0]} {tuple(x.shape)} {x.ndim:>3}", str(x.dtype), repr(x.device), x)


@program()
def p_bytes(x):
    b = b"abc"
    return (
        b[0],
        b[1:],
        b + b"d",
        b.decode(),
        b.hex(),
        bytes([1, 2]),
        b.upper(),
        list(b),
        b"a" in b,
        bytes.fromhex("00ff"),
        b.split(b"b"),
        len(b),
        int.from_bytes(b"\x01\x00", "big"),
        (258).to_bytes(2, "little"),
        x,
    )


@program()
def p_int(x):
    return (
        (5).bit_length(),
        -7 // 2,
        -7 % 3,
        divmod(-7, 2),
        2**10,
        2 ** (-1),
        7 & 3,
        7 | 8,
        7 ^ 2,
        ~7,
        1 << 4,
        -9 >> 1,
        int("ff", 16),
        int(3.9),
        int("  12 "),
        (6).bit_count(),
        (3).conjugate(),
        bin(5),
        hex(255),
        oct(8),
        abs(-3),
        pow(3, 4, 5),
        (7).real,
        True + 1,
        round(15, -1),
        int(True),
        10000,
        x,
    )


@program()
def p_float(x):
    return (
        (1.5).is_integer(),
        (0.1).hex(),
        float("inf"),
        float("nan") != float("nan"),
        round(2.5),
        round(1.005, 2),
        1 / 3,
        7.0 // 2,
        -7.5 % 2,
        (2.5).as_integer_ratio(),
        float.fromhex("0x1p3"),
        1e308 * 10,
        0.0 == -0.0,
        int(2.7),
        2.0**0.5,
        x,
    )


@program()
def p_complex(x):
    return (
        (1 + 2j) * (3 - 1j),
        abs(3 + 4j),
        (1 + 2j).conjugate(),
        (1 + 2j).real,
        complex(1, 2),
        complex("1+2j"),
        1j**2,
        1 + 2j == 1 + 2j,
        x,
    )


@program()
def p_range(x):
    r = range(1, 10, 3)
    return (
        list(r),
        len(r),
        r[1],
        r[-1],
        r[::2],
        4 in r,
        r.index(4),
        r.count(7),
        r.start,
        r.stop,
        r.step,
        r == range(1, 11, 3),
        list(reversed(r)),
        bool(range(0)),
        range(3)[1:],
        sum(range(5)),
        x,
    )


@program()
def p_slice(x):
    s = slice(1, None, 2)
    return (
        s.start,
        s.stop,
        s.step,
        s.indices(5),
        [0, 1, 2, 3][s],
        s == slice(1, None, 2),
        x[slice(0, 2)],
        x[s],
    )


@program()
def p_unpack(x):
    a, (b, *c), d = (1, (2, 3, 4), 5)
    [e, f] = (6, 7)
    *g, h = "abc"
    (i,), j = [(1,), 2]
    k = l = []
    k.append(1)
    for m, (n, o) in [(1, (2, 3))]:
        pass
    return (a, b, c, d, e, f, g, h, i, j, k is l, m, n, o, x)


@program()
def p_chain(x):
    log = []

    def t(v):
        log.append(v)
        return v

    return (1 < 2 < 3, t(1) < t(5) < t(3) < t(9), log, 1 < 2 > 0, not 1 == 2, (1 in [1]) is True, x)


@program()
def p_boolops(x):
    return (0 or "a", 1 and [], None or 0 or (), not [], [] and 1, "a" if [] else "b", x)


@program()
def p_swap(x):
    a, b = (1, x)
    a, b = (b, a)
    l = [1, 2]
    l[0], l[1] = (l[1], l[0])
    i = 0
    i, l[i] = (1, 9)
    return (a, b, l)


@dataclass
class Pt:
    x: int
    y: int


class Col(enum.Enum):
    R = 1
    G = 2


class Pos:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a = a
        self.b = b


def m(v):
    match v:
        case 0:
            return "zero"
        case 1 | 2 | 3:
            return "small"
        case True:
            return "true"
        case "a" | "b" as s:
            return "str " + s
        case []:
            return "empty"
        case [a]:
            return ("one", a)
        case [1, *rest]:
            return ("rest", rest)
        case [a, b] if a == b:
            return "same"
        case [a, [b, c]]:
            return (a, b, c)
        case {"k": kk, **r} if kk:
            return ("map", kk, r)
        case {}:
            return "anymap"
        case Pt(x=0, y=yy):
            return ("pt0", yy)
        case Pt(xx, yy):
            return ("pt", xx, yy)
        case Pos(a, b=bb):
            return ("pos", a, bb)
        case Col.R:
            return "red"
        case float(f):
            return ("float", f)
        case str():
            return "str"
        case None:
            return "none"
        case torch.Tensor():
            return "tensor"
        case _:
            return "other"


@program()
def p_match(x):
    return (
        [
            m(v)
            for v in (
                0,
                2,
                "a",
                "zz",
                [],
                [5],
                [1, 2, 3],
                (4, 4),
                [1],
                [7, [8, 9]],
                {"k": 1, "z": 2},
                {"k": 0},
                {},
                Pt(0, 5),
                Pt(1, 2),
                Pos(1, 2),
                Col.R,
                Col.G,
                2.5,
                None,
                (9, 8),
                b"x",
                -1,
                range(1),
                7j,
            )
        ],
        x,
    )


@program()
def p_match_seq(x):

    def f(v):
        match v:
            case [int(a), str(b), *_]:
                return (a, b)
            case int() | float() as n:
                return n
            case [[a, b], c]:
                return a + b + c
            case -1 | -2:
                return "neg"
            case {"t": "x", "v": [p, *q]}:
                return (p, q)

    return (
        f([1, "a", 3]),
        f(3),
        f(2.0),
        f([[1, 2], 3]),
        f({"t": "x", "v": [1, 2, 3], "e": 0}),
        f("q"),
        x,
    )


@program()
def p_loop_else(x):
    out = []
    for i in range(3):
        if i == 5:
            break
    else:
        out.append("else")
    while len(out) < 3:
        out.append(1)
        if len(out) == 2:
            continue
    else:
        out.append("welse")
    for i in []:
        pass
    else:
        out.append("e")
    return (out, i, x)


@program()
def p_del(x):
    a = [1, 2, 3]
    del a[1]
    b = {"k": 1}
    del b["k"]
    c = 1
    del c
    try:
        c  # noqa: F821
    except UnboundLocalError:
        c = "gone"
    return (a, b, c, x)


@program()
def p_augassign(x):
    a = [1]
    b = a
    a += [2]
    t = (1,)
    t += (2,)
    s = "a"
    s += "b"
    n = 7
    n //= 2
    n **= 2
    n <<= 1
    n |= 1
    n ^= 3
    n %= 5
    d = {"v": 1}
    d["v"] += 2
    x2 = x
    x2 = x2 + 1
    return (a is b, a, t, s, n, d, x2)


@program()
def p_aug_tuple(x):
    t = ([1],)
    try:
        t[0] += [2]
    except TypeError as e:
        return (t, str(e), x)


@program()
def p_nested_comp(x):
    return (
        [[i * j for j in range(2)] for i in range(2)],
        {i: {j for j in range(i)} for i in range(3)},
        [(a, b) for a in "ab" for b in (1, 2) if b > 1],
        {k: v * x for k, v in {"a": 1}.items()},
        x,
    )


@program()
def p_sum_types(x):
    return (
        sum([[1], [2]], []),
        sum((1.5, 2)),
        max("b", "a"),
        max([1, 2], key=lambda v: -v),
        min({3, 1}),
        max({"a": 1, "b": 2}, key={"a": 1, "b": 2}.get),
        min([], default=5),
        any((v > 1 for v in [1, 2])),
        all([]),
        x,
    )


@program((torch.ones(2), {"a": 1, "b": [2]}))
def p_dict_mut_arg(x, d):
    d["n"] = x
    d.pop("a")
    d.update(z=1)
    d["b"].append(3)
    return list(d)


@program((torch.ones(2), [3, 1]))
def p_list_mut_arg(x, l):
    l.append(x)
    l[0] = 5
    l.sort(key=lambda v: v if isinstance(v, int) else 9)
    l.insert(1, "i")
    return len(l)


@program((torch.ones(2), {1, 2}))
def p_set_mut_arg(x, s):
    s.add(5)
    s.discard(1)
    return (5 in s, len(s))


@program()
def p_conv(x):
    return (
        list("ab"),
        tuple({"a": 1}),
        set([1, 1]),
        dict([(1, 2)]),
        str(1),
        int("3"),
        float("1.5"),
        bool([]),
        bytes(2),
        list(range(2)),
        tuple(x.shape),
        list(x.shape),
        frozenset([1]),
        complex(2),
        x,
    )


@program()
def p_repr(x):
    return (
        repr([1, "a", None, 2.0, (1,), {"k": [1]}, {1}]),
        str({"a": (1, 2)}),
        repr("it's"),
        str(b"a"),
        repr(range(3)),
        str(slice(1, 2)),
        repr(True),
        ascii("é"),
        repr(float("inf")),
        x,
    )


@program()
def p_int_div0(x):
    out = []
    for f in (
        lambda: 1 // 0,
        lambda: 1 % 0,
        lambda: 1.0 / 0,
        lambda: 0 ** (-1),
        lambda: divmod(1, 0),
        lambda: 2.0**10000,
        lambda: int("x"),
        lambda: (1).to_bytes(0, "big"),
        lambda: 1 << -1,
    ):
        try:
            f()
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return (out, x)


@program(*((torch.ones(2), {1, 2, 3}) for _ in range(2)))
def p_set_in_place_operators(x, s):
    alias = s
    s |= {4, 5}
    s &= {2, 3, 4}
    s -= {3}
    s ^= {4, 9}
    f = frozenset([1])
    f |= {7}
    t = s
    t |= {1: 2}.keys()
    return s is alias, t is s, f, x


class Few:
    __match_args__ = ("a",)
    a = 1


class NotATuple:
    __match_args__ = ["a"]


class NotText:
    __match_args__ = (1,)


class Counts:
    """A property that counts how often it is asked."""

    __match_args__ = ("asked",)

    def __init__(self):
        self.times = 0

    @property
    def asked(self):
        self.times += 1
        return self.times


@program()
def p_match_positions(x):
    found = []
    for subject in (Few(), NotATuple(), NotText(), Counts(), 3, object()):
        try:
            match subject:
                case int(n):
                    found.append(n)
                case Counts(n):
                    found.append((n, subject.times))
                case NotATuple(n) | NotText(n):
                    found.append(n)
                case Few(a, b):
                    found.append((a, b))
                case object(n):
                    found.append(n)
        except TypeError as error:
            found.append(str(error))
    return found, x


# -- filled from iterators that run code of the program ----------------------------------------


def _failing(log=None):
    yield 1, 1
    if log is not None:
        log.append("in")
    yield 2, 2
    raise ValueError("end")


@program((torch.ones(2), [9], {9: 9}, {9}))
def p_filled_until_it_raises(x, given, mapping, members):
    made, queue, first = [0], deque(maxlen=3), deque()
    for fill in (made.extend, given.extend, mapping.update, members.update, queue.extend,
                 first.extendleft):  # fmt: skip
        try:
            fill(_failing())
        except ValueError:
            pass
    try:
        made += _failing()
    except ValueError:
        pass
    return made, given, mapping, members, list(queue), list(first), x


@program()
def p_filled_while_it_is_looked_at(x):
    seen = [0]
    seen.extend(len(seen) for _ in range(3))
    seen.extend(_failing_no_more(seen))
    return seen, x


def _failing_no_more(log):
    yield 1
    log.append("in")
    yield 2


class _Filled(list):
    pass


@program()
def p_subclass_filled_until_it_raises(x):
    made = _Filled([0])
    try:
        made.extend(1 // (1 - i) for i in range(4))
    except ZeroDivisionError:
        pass
    members = {0}
    try:
        members.update([1, [], 2])
    except TypeError:
        pass
    return list(made), members, x


@program()
def p_aggregates_take_items_one_by_one(x):
    log = []

    def items():
        for i in range(3):
            log.append(i)
            yield i

    class Added:
        def __radd__(self, other):
            log.append("add")
            return other

    def added():
        for i in range(2):
            log.append(i)
            yield Added()

    least = min(items(), key=lambda i: log.append("key") or -i)
    total = sum(added())
    product = functools.reduce(lambda a, b: log.append("f") or a + b, items(), 5)
    return least, total, product, log, x


class _Frozen(frozenset):
    pass


@program(((1, [2]), frozenset({1, 2})))
def p_what_changes_nothing_gives_the_object_itself(t, f):
    s, u = frozenset({3}), (1, [2])
    sets = [frozenset(e) is e and e.copy() is e and id(e) == id(frozenset(e)) for e in (f, s)]
    return sets, [tuple(e) is e and e[:] is e and e * 1 is e and e + () is e for e in (t, u)]


@program((torch.ones(2), _Frozen([1])), breaks=None)
def p_equality_of_what_is_not_understood(x, other):
    return frozenset({1}) == other, {1} != other, {1: 2} == other, int in (other,), x


class _Tuple(tuple):
    pass


@program()
def p_subclasses_of_tuple_give_plain_ones(x):
    t = _Tuple((1, 2))
    made = t * 1, t[:], t + (), tuple(t)
    return [each is t for each in made], [type(each) is tuple for each in made], x


class Counted:
    def __init__(self, log, length):
        self.log, self.length = log, length

    def __iter__(self):
        self.log.append("iter")
        return iter((1, 2))

    def __len__(self):
        self.log.append("len")
        return self.length


class Guessed:
    def __init__(self, hint):
        self.hint = hint

    def __iter__(self):
        return iter("ab")

    def __length_hint__(self):
        if self.hint is None:
            raise TypeError("not known")
        return self.hint


@program()
def p_iterables_are_asked_for_their_length(x):
    log, told = [], []
    made = list(Counted(log, 2)), tuple(Counted(log, 5)), [*Guessed(NotImplemented)]
    for value in (Counted(log, -1), Guessed(-1), Guessed(3), Guessed(None)):
        try:
            told.append(list(value))
        except ValueError as error:
            told.append(str(error))
    return made, told, log, x


LONG = 10**5000
BY_LONG = {LONG: 1}


@program(*((torch.ones(2), n) for n in (LONG, LONG + 1, 5)), breaks=None)
def p_longer_than_python_writes_out(x, n):
    members, mapping = {n, LONG}, {n: 2, "n": n}
    note([], "break")
    spans = range(LONG, LONG + 2), slice(n, LONG), frozenset({n})
    found = [*mapping.values()], [*map(type, mapping)], members == {n, LONG}, spans, (n, [n])
    return n == LONG, found, BY_LONG[LONG], x + (n % 7)


Point = namedtuple("Point", "a b")


class Listed(list):
    pass


class Paired(tuple):
    pass


@program(breaks=None)
def p_methods_of_tuple_on_sizes_and_named_tuples(x):
    size, point = x.size(), Point(1, 2)
    found = [
        (4,).__add__(size), tuple.__add__(size, (4,)), tuple.__mul__(size, 2), tuple.__repr__(size),
        tuple.__getitem__(size, slice(None)), (4,) + size, size * 2, size[:], point.__add__((3,)),
        tuple.__repr__(point), tuple.__getitem__(point, slice(1)), point.__eq__((1, 2)),
    ]  # fmt: skip
    return found, [*map(type, found)], type(iter(point)), x


@program()
def p_methods_that_compare_refuse_other_types(x):
    listed, paired = Listed([1]), Paired((1,))
    found = [
        (1,).__eq__([1]), [1].__eq__((1,)), (1,).__ne__(3), (1,).__lt__(2), [1].__ge__(None),
        listed.__eq__((1,)), paired.__eq__([1]), listed.__eq__([1]), paired.__ne__((2,)),
    ]  # fmt: skip
    return found, x


@program((torch.ones(2), (math.nan, -math.nan)), (torch.ones(2), (-math.nan, math.nan)), breaks=2)
def p_complex_nans_have_signs(x, parts):
    z, w = (complex(0, part) for part in parts)
    note([], 1)
    return x + 1, math.copysign(1, z.imag), math.copysign(1, w.imag)


@program((torch.ones(2), {3, 16, 1, 2, 5}), (torch.ones(2), frozenset((0, 8))))
def p_sets_that_came_in_have_the_order_of_their_members(x, s):
    return [[*each] for each in (s, s | {21, 64}, {21, 64} | s, s ^ {64, 1}, s - {1})], x


@program(breaks=2)
def p_sets_have_the_order_of_their_history(x):
    shrunk = {*range(20)}
    for member in range(17):
        shrunk.discard(member)
    shrunk |= {40, 33, 81}
    s = {3, 16, 1, 2, 5}
    made = [
        shrunk, s, set(s), s | {21, 64}, s.copy(), s & {16, 1, 5}, s - {1, 2}, s ^ {64, 1}, {*s},
        s.union([64, 32], {7}), set(dict.fromkeys(s)), copy.deepcopy(s),
    ]  # fmt: skip
    orders = [*map(list, made)]
    note([], 1)
    shrunk.add(1)
    shrunk.discard(33)
    return orders, [*map(list, made)], x


def in_order(change, given):
    change(given)
    return list(given)


def shrink(given):
    while len(given) > 4:
        given.discard(max(given))
    given.add(77)


def combine(given):
    given |= {7, 8, 500}
    given -= {2, 3}
    given ^= {5, 100}
    given &= set(range(200))
    given.update([1000, 17], {200: 1})


def remove_most(given):
    given.difference_update(range(1, 30))
    given.add(128)


@pytest.mark.parametrize("change", [shrink, combine, remove_most])
def test_a_set_that_came_in_keeps_its_history(change):
    traced = aotdyn.compile(change, backend="eager")
    expected, found = ({*range(0, 60, 3), 1, 2, 64, 128} for _ in range(2))
    assert in_order(traced, found) == in_order(change, expected)


@program()
def p_sets_look_for_sets(x):
    nested, plain = {frozenset({1}), 2}, {1, 2, 3}
    equal, fewer = {1.0, 3}, {1.0}
    equal.intersection_update([True, 2, 4])
    fewer.intersection_update({True, 2})
    told = [equal, fewer, {1.0}.intersection([True, 2]), {1.0}.intersection({True, 2}),
            outcome_of(lambda: plain.intersection_update([1], 5)), {1} in nested, {3} in nested,
            nested.discard({3}), outcome_of(lambda: nested.remove({3})), nested.remove({1}),
            outcome_of(lambda: plain.symmetric_difference()),
            outcome_of(lambda: plain.symmetric_difference_update([1], [2]))]  # fmt: skip
    return x, told, nested, plain


test_agrees = program.test()
