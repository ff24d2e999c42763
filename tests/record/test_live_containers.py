"""Everything that is done with containers that came in: a part of the program that made them is
not traced, so that they are known by their guards only."""

import collections
import copy
import functools
import heapq
import itertools
import math
import operator
import sys
import types

import torch

from tests.record.programs import Programs

program = Programs()
X = torch.arange(3.0) + 1


def raised(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@program(([3, 1, 2], [9]))
def p_lists(l, m):
    return (
        l + [2],
        [2] + l,
        l + m,
        l * 2,
        l == [3, 1, 2],
        [3] == l,
        l < [4],
        l < m,
        l != m,
        l is m,
        sorted(l),
        l[1:],
        l[::-1],
        max(l),
        sum(l),
        list(l),
        tuple(l),
        set(l),
        *l,
        len(l),
        1 in l,
        l.index(1),
        l.count(3),
        l.copy(),
        reversed(l) is None,
        [*l, *m],
        dict.fromkeys(l),
        list(zip(l, m)),
        list(map(str, l)),
        list(enumerate(l)),
        any(l),
        all(l),
        bool(l),
        str(l),
        repr(l),
        l[-1],
        ",".join(map(str, l)),
        min(l, key=lambda v: -v),
        functools.reduce(operator.add, l),
        [i for i in l if i > 1],
        l.__len__(),
        operator.concat(l, m),
        copy.copy(l),
        copy.deepcopy(l),
        list(itertools.chain(l, m)),
        f"{l}",
        isinstance(l, list),
        type(l),
        heapq.nsmallest(2, l),
    )


@program(([3, 1, 2], [9]))
def p_lists_changed(l, m):
    l += [5]
    l.extend(m)
    l.append(1)
    l[0] = 7
    l[1:2] = [8, 8]
    del l[-1]
    l.insert(0, 0)
    a = l.pop()
    l.sort()
    l.reverse()
    l.remove(8)
    l *= 2
    m.clear()
    b = l + [1]
    return a, b, l, m


@program(([3, 1, 2],))
def p_list_appended_to(l):
    l.append(4)
    a = l + [1]
    b = [1] + l
    c = l * 2
    d = l == [3, 1, 2, 4]
    e = sorted(l)
    f = l[:]
    g = 5 in l
    h = len(l)
    return a, b, c, d, e, f, g, h


@program(((1, 2, 3), (9,)))
def p_tuples(l, m):
    return (
        l + (2,),
        (2,) + l,
        l + m,
        l * 2,
        l == (1, 2, 3),
        l < m,
        sorted(l),
        l[1:],
        l[::-1],
        max(l),
        sum(l),
        list(l),
        l[-1],
        hash(l) == hash((1, 2, 3)),
        {l: 1}[(1, 2, 3)],
        *m,
        l.index(2),
        l.count(2),
        reversed(l) is None,
        tuple(l) is l,
        l[:] is l,
        raised(lambda: l + [1]),
    )


@program(({"a": 1, "b": 2}, {"c": 3}))
def p_dicts(d, e):
    return (
        d | e,
        e | d,
        {**d, **e},
        d == {"a": 1, "b": 2},
        d != e,
        list(d),
        sorted(d),
        len(d),
        "a" in d,
        d.get("z"),
        d.keys() & e.keys(),
        d.keys() | e,
        d.items() == e.items(),
        dict(d),
        d.copy(),
        list(d.items()),
        max(d),
        bool(e),
        str(d),
        [k for k in d],
        {v: k for k, v in d.items()},
        tuple(d.values()),
        copy.copy(d),
        copy.deepcopy(d),
        dict(d, z=1),
        dict(**d),
        list(reversed(d)),
        *d,
        d.keys() == {"a", "b"},
        raised(d.__getitem__, "q"),
        next(iter(d)),
        list(zip(d, e)),
        isinstance(d, dict),
        sum(d.values()),
        any(d),
        collections.OrderedDict(d),
        collections.Counter(d),
        functools.reduce(lambda a, b: a + b, d.values()),
    )


@program(({"a": 1, "b": 2}, {"c": 3}))
def p_dicts_changed(d, e):
    d["n"] = 1
    d.update(e)
    a = d.pop("a")
    d.setdefault("s", []).append(2)
    b = d.popitem()
    e.clear()
    d |= {"k": 1}
    del d["b"]
    return a, b, d, e, list(d), d | {"q": 1}, len(d)


@program(({1, 2}, {2, 3}, frozenset([1])))
def p_sets(a, b, f):
    return (
        a | b,
        a & b,
        a - b,
        a ^ b,
        a <= b,
        a == {1, 2},
        sorted(a),
        len(a),
        1 in a,
        a.union([5]),
        a.isdisjoint(b),
        f | a,
        a | f,
        frozenset(a),
        set(a) is a,
        max(a),
        a.issubset([1, 2, 3]),
        {f: 1}[frozenset([1])],
        sum(a),
        bool(a),
        a.copy(),
        list(b) == sorted(b),
        f == frozenset({1}),
        hash(f) == hash(frozenset({1})),
    )


@program(({1, 2}, {2, 3}))
def p_sets_changed(a, b):
    a.add(5)
    a |= b
    a -= {1}
    a.discard(9)
    a.remove(2)
    b.clear()
    b.update([1])
    a &= {3, 5}
    return sorted(a), b


@program(("text", b"ab"))
def p_text(s, b):
    return (
        s + "x",
        "x" + s,
        s * 2,
        s.upper(),
        s[1:],
        len(s),
        s == "text",
        f"{s:>8}",
        s.split("x"),
        list(s),
        "e" in s,
        b + b"c",
        b.decode(),
        s.encode(),
        hash(s) == hash("text"),
        {s: 1},
        s < "z",
        sorted(s),
        "%s" % s,
        s.replace("t", "T"),
        ",".join(s),
        reversed(s) is None,
        [c for c in s],
        s in ("text",),
        s is s,
        bytes(b),
        b[0],
        *b,
    )


@program((torch.Size([2, 3]), torch.ones(2, 3)))
def p_sizes(s, x):
    return (
        s + (1,),
        (1,) + s,
        s + s,
        s[1:],
        s[-1],
        list(s),
        tuple(s),
        s == (2, 3),
        s == x.shape,
        s.numel(),
        len(s),
        sum(s),
        math.prod(s),
        [*s, 4],
        s * 2,
        x.shape + (1,),
        list(x.shape) + [1],
        x.shape[:-1] + (4,),
        (5,) + tuple(x.shape),
        x.view(*s),
        x.reshape(s),
        torch.Size([1]) + s,
        torch.Size(list(s)),
        max(s),
        s.index(3),
        repr(s),
        x.new_zeros(s),
        x.shape != s,
        s < (3,),
        {s: 1},
    )


@program((collections.OrderedDict(a=1, b=2),))
def p_ordered_dict(d):
    d["c"] = 3
    d.move_to_end("a")
    return (
        d,
        d | {"z": 1},
        list(d),
        list(reversed(d)),
        d == {"b": 2, "c": 3, "a": 1},
        d == collections.OrderedDict(d),
        d.copy(),
        type(d.copy()),
        d.popitem(),
        dict(d),
        list(d.items()),
        d.pop("b"),
        len(d),
        {**d},
        copy.copy(d),
    )


@program((collections.deque([1, 2, 3]),))
def p_deque(q):
    q.append(4)
    q.appendleft(0)
    a = q.pop()
    q.rotate(1)
    q.extend([7, 8])
    return (
        a,
        list(q),
        q[0],
        len(q),
        q.index(7),
        q.count(1),
        3 in q,
        q.copy(),
        q + q,
        q * 2,
        reversed(q) is None,
        list(reversed(q)),
        q == collections.deque([1]),
        sum(q),
        q.popleft(),
        q.remove(7),
        q,
        collections.deque(q, maxlen=2),
        sorted(q),
        bool(q),
        max(q),
        q.maxlen,
    )


@program((collections.defaultdict(int, a=1), collections.Counter("aab")))
def p_default_dict_and_counter(d, c):
    d["n"] += 1
    c.update("b")
    c["z"] += 3
    return (
        d,
        c,
        c.most_common(1),
        c + c,
        c - c,
        c["nope"],
        d["x"],
        "x" in d,
        sum(c.values()),
        sorted(c),
        list(c.elements()),
        dict(d),
        d.copy(),
        d.default_factory,
        c.total(),
        c | c,
        c == c,
        max(c, key=c.get),
        c.subtract("a"),
        c,
        collections.Counter(c),
    )


@program((range(4), slice(1, 2)))
def p_range_and_slice(r, s):
    return (
        list(r),
        r[1:],
        len(r),
        3 in r,
        r == range(4),
        [1, 2, 3][s],
        s.start,
        s == slice(1, 2),
        sum(r),
        list(reversed(r)),
        max(r),
        [*r],
        r[-1],
        list(zip(r, r)),
        X[s],
        "abc"[s],
        r[s],
        tuple(r),
        X[list(r)[:2]],
        set(r),
    )


@program((types.SimpleNamespace(v=1), {"q": 1}))
def p_namespace(n, m):
    n.z = n.v + 1
    n.v += 1
    m2 = dict(m)
    m = types.MappingProxyType(m)
    return (
        n,
        vars(n),
        m["q"],
        list(m),
        m2,
        m | {"a": 1},
        len(m),
        "q" in m,
        {**m},
        m == {"q": 1},
        m.get("z", 4),
        n == types.SimpleNamespace(v=2, z=2),
        repr(n),
        list(m.items()),
        copy.copy(n),
        isinstance(m, collections.abc.Mapping),
    )


@program(([[1, 2], [3]], {"a": {"b": [1]}}, ((1, (2,)),)))
def p_nested(l, d, t):
    l[0].append(5)
    d["a"]["b"] += [2]
    d["a"]["c"] = l[1]
    l[1].append(d["a"]["b"])
    ((a, (b,)),) = t
    return (
        sum(l[0]),
        l,
        d,
        a,
        b,
        [y for z in l for y in z],
        l[0] + l[1],
        [*l[0], *l[1]],
        sum(l, []),
        list(itertools.chain.from_iterable(l)),
        dict(zip("ab", l)),
        copy.deepcopy(d) == d,
        l == [[1, 2, 5], [3, [1, 2]]],
    )


@program((X.clone(), [1, 2.5, True, None, "s", (1,), [X.clone()], {"t": X.clone()}]))
def p_mixed(x, l):
    return (
        [type(v).__name__ for v in l],
        l[6] + [x],
        l[7] | {"u": x},
        l[:3] + [x],
        (x,) + l[5],
        [v for v in l if isinstance(v, (int, float))],
        l[6][0] + x,
        torch.stack(l[6] + [x]),
        torch.cat([*l[6], x]),
        sum(l[6]),
        l.index(None),
        l.count(True),
    )


@program((torch.arange(6.0).view(3, 2).max(0), X))
def p_named_result(m, x):
    return m.values * 2, m.indices, m[0] + 1, len(m), isinstance(m, tuple), [*m], x


@program()
def p_versions(x):
    if sys.version_info >= (3, 8) and sys.version_info.major == 3:
        x = x * 2
    return (
        sys.version_info[:2],
        sys.version_info.minor,
        len(sys.version_info),
        sys.float_info.max,
        sys.float_info[0],
        sys.hash_info.width,
        sys.version_info == sys.version_info,
        sys.flags.optimize,
        sys.version_info,
        x,
    )


@program((torch.Size([2, 3]), X))
def p_sizes_refused(s, x):
    return (
        [
            raised(f)
            for f in (
                lambda: s + (1.5,),
                lambda: ("a",) + s,
                lambda: s + [1],
                lambda: torch.Size(["a"]),
                lambda: s * "a",
            )
        ],
        type(() + s),
        s + () is s,
        x,
    )


test_agrees = program.test()
