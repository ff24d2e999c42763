"""Every method of the containers and numbers, and what the language does with them."""

# ruff: noqa: E731, E741, E742, F601, F811, F821, F841
import itertools
import math
import operator

import torch

from tests.record.programs import Programs
from tests.record.programs import outcome_of as T

program = Programs()
X = torch.arange(3.0) + 1


@program(graphs=0)
def p_list2(x):
    l = [1]
    l.append(l)
    m = [1, 2, 3]
    m[:] = m[::-1]
    T(lambda: m.__setitem__(slice(0, 4, 2), [1]))
    n = [0] * 3
    n[1:1] = [7, 8]
    l2 = list(range(5))
    del l2[::2]
    return (
        l[1] is l,
        m,
        T(lambda: m.__setitem__(slice(0, 3, 2), [1])),
        n,
        l2,
        repr(l),
        m.__eq__([3]),
        [1, 2].__add__([3]),
        T(lambda: [1] + (2,)),
        sorted("hello", reverse=True),
        sorted([(1, "b"), (1, "a")], key=lambda p: p[0]),
        min([3, 1], key=lambda v: -v),
        max([], default=None),
        T(max, []),
        sum([[1], [2]], []),
        any([0, 1]),
        all([]),
        list(reversed([1, 2])),
        list(enumerate("ab", start=3)),
        list(zip([1, 2], "ab")),
        T(lambda: list(zip([1], [1, 2], strict=True))),
    )


@program(graphs=0)
def p_tuple(x):
    t = (1, 2, x)
    a, *b = t
    return (
        t[1:],
        a,
        b,
        t + (3,),
        (1, 2) * 2,
        (1, 2).index(2),
        (1, 1).count(1),
        T((1,).index, 5),
        (1, 2) < (1, 3),
        hash((1, 2)) == hash((1, 2)),
        T(lambda: t.__setitem__(0, 1)),
        tuple("ab"),
        tuple(i for i in (1, 2)),
        () == (),
        (1,) == [1],
        t[-1] is x,
        (1, 2, 3)[::2],
        T(lambda: (1,) + [2]),
    )


@program(graphs=0)
def p_dict(x):
    d = {"a": 1, "b": x}
    d.update({"c": 3}, z=4)
    d |= {"q": 1}
    e = d | {"a": 9}
    d.setdefault("n", []).append(1)
    p = d.pop("a")
    dd = d.pop("nope", 7)
    it = d.popitem()
    d2 = dict([(1, 2)], k=3)
    d3 = dict.fromkeys("ab", 0)
    d4 = {k: v for k, v in zip("xy", (1, 2))}
    del d["c"]
    return (
        d,
        e,
        p,
        dd,
        it,
        d2,
        d3,
        d4,
        list(d.keys()),
        list(d.values())[0] is x,
        list(d.items())[-1],
        d.get("b") is x,
        "b" in d,
        len(d),
        list(reversed(d)),
        T(d.__getitem__, "zz"),
        T(d.pop, "zz"),
        T({}.popitem),
        {"a": 1} == {"a": 1.0},
        {1: 2} != {1: 3},
        d.copy() is d,
        {**d3, "a": 5},
        d3.keys() & {"a"},
        d3.items() | {("z", 1)},
        d3.keys() - ["a"],
        T(lambda: {[]: 1}),
        dict(a=1).keys() == {"a"},
        {1: "i", True: "b", 1.0: "f"},
        list({"b": 1, "a": 2}),
        d3.keys() <= {"a", "b", "c"},
        d3.keys().isdisjoint(["q"]),
        T(dict, [1]),
        T(dict, [(1, 2, 3)]),
        {} == {},
        bool({}),
    )


@program(graphs=0)
def p_dictmut(x):
    d = {1: 1, 2: 2}

    def go():
        for k in d:
            d[k + 10] = 1

    r = [T(go)]

    def go2():
        for k in list(d):
            del d[k]

    go2()
    r.append(d)

    def go3():
        s = {1, 2, 3}
        for k in s:
            s.add(k + 10)

    r.append(T(go3))

    def go4():
        l = [1, 2, 3]
        for v in l:
            if v < 3:
                l.append(v + 2)
        return l

    r.append(go4())

    def go5():
        d = {1: 1}
        it = iter(d.items())
        next(it)
        d[2] = 2
        return next(it, "end")

    r.append(T(go5))
    return r, x


@program(graphs=0)
def p_set(x):
    s = {1, 2, 3}
    s.add(4)
    s.discard(9)
    s |= {5}
    s -= {1}
    s &= {2, 3, 4, 5}
    s ^= {2}
    f = frozenset([1, 2])
    s.update([7], (8,))
    s.difference_update([7])
    s.intersection_update({3, 4, 5, 8})
    s.symmetric_difference_update([8])
    return (
        sorted(s),
        s.issubset({3, 4, 5}),
        s >= {3},
        f | {3},
        type({3} | f),
        type(f | {3}),
        f.union([9]),
        s.isdisjoint({1}),
        T(s.remove, 99),
        {1} < {1, 2},
        hash(f) == hash(frozenset([2, 1])),
        f in {f},
        len(s),
        s.copy() == s,
        T(lambda: {[]}),
        {*s, 1},
        set("aab"),
        frozenset().union("a"),
        1 in s,
        {1, 2} == {2, 1},
        {1, 2}.difference([1], [2]),
        {f: 1}[frozenset([1, 2])],
        T(set().pop),
        {5}.pop(),
        set() or "empty",
        {i % 2 for i in range(4)},
    )


@program(graphs=0)
def p_str(x):
    s = "Hello, World"
    return (
        s.lower(),
        s.upper(),
        s.title(),
        s.swapcase(),
        s.split(", "),
        s.rsplit("o", 1),
        s.partition(","),
        s.rpartition("o"),
        s.find("o"),
        s.rfind("o"),
        T(s.index, "z"),
        s.replace("l", "L", 1),
        s.strip("Hd"),
        s.startswith(("He", "x")),
        s.endswith("d"),
        s.center(20, "*"),
        s.zfill(15),
        s.count("l"),
        s.encode(),
        s.isalpha(),
        s.join(["a", "b"]),
        s[::-1],
        s[2:5],
        "a" in s,
        s * 2,
        s + "!",
        s < "Z",
        s.splitlines(),
        "a\nb".splitlines(True),
        "{:>10}|{:<5}|{:^7}".format("a", 1, 2.5),
        "%s-%05.2f-%x" % ("a", 3.14159, 255),
        f"{3.14159:.2f} {255:#x} {1000000:,} {0.5:%} {5:08b} {'a'!r:>5}",
        s.translate(str.maketrans("lo", "01")),
        "a,b,,c".split(","),
        "  a b ".split(),
        "abc".removeprefix("a"),
        "abc".removesuffix("c"),
        s.casefold(),
        "tab\tx".expandtabs(4),
        "ß".upper(),
        "é".encode("utf-8"),
        "abc".maketrans("a", "b"),
        "1".isdigit(),
        "½".isnumeric(),
        "a_b".isidentifier(),
        s.format_map({}),
        chr(97),
        ord("a"),
        ascii("é"),
        repr("a'b"),
        "x".ljust(3) + "|",
        "abc" > "abd",
        max("abc"),
        sorted("bca"),
        "".join(reversed("abc")),
        T(lambda: "a" + 1),
        T(lambda: "a" * "b"),
        T("{}".format),
        T(lambda: "%d" % "a"),
        T(int, "x"),
        hash("a") == hash("a"),
    )


@program(graphs=0)
def p_bytes(x):
    b = b"abc"
    return (
        b[0],
        b[1:],
        b + b"d",
        b * 2,
        b.decode(),
        b.hex(),
        bytes.fromhex("616263"),
        b.split(b"b"),
        b.find(b"c"),
        list(b),
        b"a" in b,
        97 in b,
        bytes([1, 2]),
        bytes(3),
        b.upper(),
        b.replace(b"a", b"z"),
        b.startswith(b"a"),
        int.from_bytes(b"\x01\x00", "big"),
        (258).to_bytes(2, "little"),
        b == b"abc",
        b < b"abd",
        T(bytes, [300]),
        b"%d" % 3,
        b.join([b"1", b"2"]),
        b.center(5),
        hash(b) == hash(b),
        bytes("é", "utf8"),
        b.strip(b"a"),
        b.translate(None, b"a"),
        sum(b),
    )


@program(graphs=0)
def p_num(x):
    return (
        7 // 2,
        -7 // 2,
        -7 % 3,
        7.5 // 2,
        divmod(-7, 3),
        2**10,
        2**-1,
        (-8) ** (1 / 3),
        1_000,
        0x1F,
        0b11,
        ~5,
        5 & 3,
        5 | 3,
        5 ^ 3,
        1 << 4,
        -1 >> 1,
        int(3.9),
        int("ff", 16),
        int("0b11", 0),
        float("inf"),
        float("1e3"),
        (3).bit_length(),
        (5).bit_count(),
        (0.5).as_integer_ratio(),
        (2.0).is_integer(),
        (1 + 2j) * (3 - 1j),
        (1 + 2j).conjugate(),
        abs(3 + 4j),
        complex("1+2j"),
        (1 + 2j).real,
        round(2.5),
        round(-1.567, 2),
        round(1234, -2),
        True + 1,
        isinstance(True, int),
        bool(0.0),
        T(lambda: 1 / 0),
        T(lambda: 1 % 0),
        T(lambda: 1 // 0.0),
        T(lambda: int("")),
        T(lambda: 2 ** "a"),
        1 == 1.0,
        1 < 2 < 3,
        1 < 3 > 2,
        not 1 == 2,
        3 if 0 else 4,
        hash(1) == hash(1.0),
        (10).__add__(5),
        (1).__radd__(2),
        float.hex(1.5),
        math.isclose(0.1 + 0.2, 0.3),
        0.1 + 0.2,
        1e308 * 10,
        -0.0,
        math.nan != math.nan,
        max(1, 2.0),
        sum([0.1] * 3),
        pow(3, -1, 7),
        int(-3.7),
        math.floor(-3.5),
        math.gcd(12, 18),
        math.comb(5, 2),
        math.prod([1, 2, 3]),
        math.hypot(3, 4),
        math.log2(8),
        math.fsum([0.1] * 10),
        T(math.sqrt, -1),
        math.copysign(1, -0.0),
        math.frexp(8.0),
        math.modf(2.5),
        math.inf > 1,
    )


@program(graphs=0)
def p_range(x):
    r = range(10, 0, -3)
    return (
        list(r),
        len(r),
        r[1],
        r[-1],
        r[1:],
        7 in r,
        r.index(4),
        r.count(1),
        r == range(10, 0, -3),
        list(reversed(r)),
        r.start,
        r.stop,
        r.step,
        T(r.index, 5),
        bool(range(0)),
        hash(range(3)) == hash(range(3)),
        range(3) == range(0, 3, 1),
        T(range, 1, 2, 0),
        sum(range(101)),
        slice(1, 5, 2).indices(4),
        slice(3) == slice(None, 3, None),
        [0, 1, 2, 3][slice(1, 3)],
        slice(1, 2).stop,
        T(hash, slice(1)),
    )


@program(graphs=1)
def p_comp(x):
    y = 5
    a = [y for y in range(3)]
    b = {i: j for i, j in enumerate("ab") if i}
    c = [(i, j) for i in range(3) for j in range(i)]
    d = [[k * 2 for k in r] for r in ([1], [2, 3])]
    fs = [lambda: i for i in range(3)]
    e = [w := i for i in range(4)]
    g = sum(i for i in range(5))
    n = [a2 for a1 in [[1], [2]] for a2 in a1 if (z := a2) > 0]
    return (
        y,
        a,
        b,
        c,
        d,
        [f() for f in fs],
        e,
        w,
        g,
        n,
        z,
        [x * i for i in range(2)],
        {i for i in "aa"},
        any(i > 2 for i in [1, 3]),
    )


@program(graphs=0)
def p_unpack(x):
    a, (b, *c), d = 1, (2, 3, 4), 5
    [e, f] = 7, 8
    g, *h, i = "abcde"
    (*j,) = range(3)
    (k,), l = [1], 2
    m = n = [1]
    o, p = p_ = [1, 2]
    q = {}
    q["a"], q["b"] = 1, 2
    for_ = [(u, v) for u, (v, _) in [(1, (2, 3))]]
    a2, b2 = b, a
    r = [T(lambda: (lambda a, b: 0)(*[1])) if 0 else 0]

    def bad(v):
        a, b = v

    def bad2(v):
        a, b, *c = v

    return (
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        m is n,
        o,
        p,
        q,
        for_,
        a2,
        b2,
        T(bad, [1]),
        T(bad, (1, 2, 3)),
        T(bad2, [1]),
        T(bad, 5),
        T(bad, None),
        T(bad, "ab"),
        T(bad, {1: 2, 3: 4}),
        x,
    )


class Pt:
    __match_args__ = ("px", "py")

    def __init__(s, a, b):
        s.px = a
        s.py = b


def mt(v):
    match v:
        case 0 | 1:
            return "small"
        case int(n) if n > 100:
            return ("big", n)
        case bool():
            return "bool"
        case float() as f:
            return ("f", f)
        case "a" | "b" as s:
            return ("s", s)
        case str():
            return "str"
        case []:
            return "empty"
        case [1, *rest]:
            return ("1+", rest)
        case [a, b]:
            return ("two", a, b)
        case (a, _, *_):
            return ("many", a)
        case {"k": val, **rest}:
            return ("map", val, rest)
        case {}:
            return "anymap"
        case Pt(0, py=q):
            return ("pt0", q)
        case Pt(px=a, py=Pt(b, c)):
            return ("nested", a, b, c)
        case Pt(a, b):
            return ("pt", a, b)
        case math.pi:
            return "pi"
        case None:
            return "none"
        case torch.Tensor(shape=(n,)):
            return ("t1", n)
        case _:
            return "other"


@program(graphs=0)
def p_matcherr(x):
    def f(v):
        match v:
            case Pt(1, 2, 3):
                return 1

    def g(v):
        match v:
            case int(1, 2):
                return 1

    return T(f, Pt(1, 2)), T(g, 1), x


@program(graphs=1)
def p_walrus(x):
    l = []
    while (n := len(l)) < 3:
        l.append(n)
    if (m := max(l)) > 1 and (k := m * 2):
        pass
    return l, n, m, k, (y := x * 2) + y


@program(graphs=0)
def p_chain(x):
    log = []

    def v(a):
        log.append(a)
        return a

    r = v(1) < v(2) < v(0) < v(9)
    q = v(1) <= v(1) != v(2) in [v(2)]
    return r, q, log, x


@program(graphs=0)
def p_iterout(x):
    it = iter([1, 2, 3])
    next(it)
    z = zip([1, 2], [3, 4])
    next(z)
    g = (i * 2 for i in range(4))
    next(g)
    c = itertools.count(5)
    next(c)
    e = enumerate([5, 6])
    next(e)
    return it, z, g, c, e, x


@program(graphs=1)
def p_itertools(x):
    I = itertools
    L = list
    return (
        L(I.chain([1], "a")),
        L(I.islice(I.count(1, 2), 3)),
        L(I.product([1, 2], "ab")),
        L(I.permutations([1, 2, 3], 2)),
        L(I.combinations("abc", 2)),
        L(I.combinations_with_replacement("ab", 2)),
        L(I.accumulate([1, 2, 3])),
        L(I.accumulate([1, 2, 3], operator.mul, initial=2)),
        L(I.zip_longest([1], [1, 2], fillvalue=0)),
        L(I.starmap(pow, [(2, 3)])),
        L(I.takewhile(lambda v: v < 2, [1, 2, 1])),
        L(I.dropwhile(lambda v: v < 2, [1, 2, 1])),
        L(I.filterfalse(None, [0, 1])),
        [(k, L(g)) for k, g in I.groupby("aab")],
        L(I.repeat(1, 2)),
        L(I.compress("abc", [1, 0, 1])),
        L(I.pairwise([1, 2, 3])),
        [L(t) for t in I.tee([1, 2])],
        L(I.islice(I.cycle("ab"), 5)),
        L(I.chain.from_iterable(["ab", "c"])),
        sum(I.islice(I.repeat(x), 2)),
    )


@program(graphs=1)
def p_sortstab(x):
    d = [("b", 2), ("a", 2), ("c", 1)]
    s = sorted(d, key=lambda p: p[1])
    calls = []
    sorted([3, 1, 2], key=lambda v: calls.append(v) or v)
    l = [x, x * 2]
    l.sort(key=lambda t: t.shape[0])
    return (
        s,
        calls,
        len(l),
        T(lambda: sorted([1, "a"])),
        sorted([True, 0]),
        sorted({"b": 1, "a": 2}),
        sorted([[2], [1]]),
        sorted("bA", key=str.lower),
        sorted([1, 2], reverse=True, key=lambda v: 0),
    )


@program(graphs=0)
def p_hash(x):
    class I:
        def __init__(s, k):
            s.k = k

        def __hash__(s):
            return hash(s.k)

        def __eq__(s, o):
            return isinstance(o, I) and s.k == o.k

    class J:
        pass

    j = J()
    d = {
        I(1): "a",
        j: "j",
        (1, I(2)): "t",
        frozenset([I(3)]): "f",
        x: "tensor",
        None: 0,
        ...: 1,
        int: 2,
        len: 3,
    }
    return (
        d[I(1)],
        d[j],
        d[(1, I(2))],
        J() in d,
        d[x],
        d[None],
        d[...],
        d[int],
        d[len],
        len({I(1), I(1)}),
        d.get(I(9)),
        d[frozenset([I(3)])],
    )


@program(graphs=0)
def p_bigloop(x):
    s = 0
    for i in range(300):
        if i % 2:
            continue
        if i > 200:
            break
        s += i
    else:
        s = -1
    while s > 10:
        s //= 2
    else:
        s += 1000
    return s, x


@program(graphs=1)
def p_slices(x):
    class S:
        def __getitem__(s, k):
            return k

    s = S()
    return (
        s[1],
        s[1:2],
        s[::2, ...],
        s[None, 1:],
        s[x.shape[0] :],
        x[1:],
        x[..., None],
        x[[0, 1]],
        x[x > 1] if 0 else 0,
        s[()],
        s[-1:,],
    )


test_agrees = program.test()
