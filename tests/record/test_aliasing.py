"""Which objects are one: in-place operators, elements, copies, defaults."""

import collections
import copy
import operator

import torch

from tests.record.programs import Programs

program = Programs()


@program()
def p_set_ip(x):
    s = {1, 2}
    a = s
    s |= {3}
    s &= {1, 3, 4}
    s -= {1}
    s ^= {3, 9}
    return a is s, sorted(a), x


@program()
def p_fs_ip(x):
    s = frozenset([1])
    a = s
    s |= {3}
    return a is s, sorted(a), sorted(s), type(s), x


@program((torch.ones(1), {1, 2}))
def p_set_arg(x, s):
    s.add(5)
    s.discard(1)
    s |= {7}
    s ^= {7, 8}
    return sorted(s), x


@program()
def p_deque_ip(x):
    d = collections.deque([1])
    e = d
    d += [2]
    d *= 2
    return e is d, list(e), x


@program()
def p_list_ip(x):
    d = [1]
    e = d
    d += [2]
    d *= 2
    operator.iadd(d, [5])
    operator.iconcat(d, [6])
    return e is d, list(e), x


@program()
def p_dict_ip(x):
    d = {1: 2}
    e = d
    d |= {2: 3}
    operator.ior(d, {5: 6})
    return e is d, e, x


@program()
def p_ip_err(x):
    r = []
    for f in (
        lambda: operator.iadd([1], 3),
        lambda: operator.ior({1}, [2]),
        lambda: operator.ior({1: 2}, 3),
        lambda: operator.iand({1}, 3),
        lambda: operator.imul([1], "a"),
        lambda: operator.iadd(collections.deque(), 3),
    ):
        try:
            r.append(f())
        except Exception as e:
            r.append((type(e), str(e)))
    return r, x


@program()
def p_counter_ip(x):
    c = collections.Counter("ab")
    d = c
    c += collections.Counter("b")
    c -= collections.Counter("a")
    c |= collections.Counter("z")
    return c is d, dict(c), x


@program()
def p_userlist_ip(x):
    c = collections.UserList([1])
    d = c
    c += [2]
    c *= 2
    return c is d, c.data, x


@program()
def p_arr_ip(x):
    y = x
    x += 1
    x *= 2
    return y is x, y


@program()
def p_tuple_ip(x):
    t = (1,)
    u = t
    t += (2,)
    t *= 2
    return t is u, t, u, x


@program()
def p_str_ip(x):
    s = "a"
    t = s
    s += "b"
    s *= 2
    return s, t, x


@program()
def p_fold_alias(x):
    l = [[1], [2]]
    m = max(l)
    m.append(5)
    return l, max([1, 2], [0]), x


@program()
def p_getitem_alias(x):
    d = {"a": [1]}
    v = operator.getitem(d, "a")
    v.append(2)
    w = operator.itemgetter("a")(d)
    w.append(3)
    return d, x


@program()
def p_or_alias(x):
    a = []
    b = [1]
    c = a or b
    c.append(2)
    e = a and b
    e.append(3)
    return a, b, x


@program()
def p_sorted_alias(x):
    l = [[2], [1]]
    s = sorted(l)
    s[0].append(9)
    return l, x


@program()
def p_dictcopy_alias(x):
    d = {"a": [1]}
    e = dict(d)
    f = {**d}
    g = d.copy()
    e["a"].append(2)
    f["b"] = 1
    g["a"].append(3)
    return d, e, f, g, x


@program()
def p_slice_alias(x):
    l = [[1], 2]
    m = l[:]
    m[0].append(2)
    m.append(3)
    n = l * 2
    n[0].append(7)
    return l, m, n, x


@program()
def p_zip_alias(x):
    a = [[1], [2]]
    for p, q in zip(a, a):
        p.append(len(q))
    return a, x


@program()
def p_default_mut(x):
    def f(v, acc=[]):
        acc.append(v)
        return acc

    f(1)
    r = f(2)
    return r, f(3) is r, x


def gdef(v, acc=[]):
    acc.append(v)
    return list(acc)


@program()
def p_default_mut_g(x):
    r = gdef(1)
    s = gdef(2)
    gdef.__defaults__[0].clear()
    return r, s, x


@program()
def p_setdefault_alias(x):
    d = {}
    d.setdefault("a", []).append(1)
    d.setdefault("a", []).append(2)
    return d, x


@program()
def p_fromkeys_alias(x):
    d = dict.fromkeys("ab", [])
    d["a"].append(1)
    return d, d["a"] is d["b"], x


@program()
def p_star_alias(x):
    def f(*a, **k):
        a[0].append(1)
        k["z"] = 1
        return a, k

    l = []
    kw = {"y": l}
    r = f(l, **kw)
    return r, kw, l, r[1]["y"] is l, x


@program()
def p_nested_list_mul(x):
    l = [[0]] * 3
    l[0].append(1)
    return l, l[0] is l[2], x


@program()
def p_dict_views_live(x):
    d = {1: 2}
    k, v, i = d.keys(), d.values(), d.items()
    d[3] = 4
    return list(k), list(v), list(i), len(k), x


@program()
def p_tuple_mut_inside(x):
    t = ([1], x)
    t[0].append(2)
    u = t
    return u, t[0] is u[0], copy.copy(t) is t


@program()
def p_try_iadd_tuple(x):
    t = ([1],)
    try:
        t[0] += [2]
    except TypeError as e:
        return t, str(e), x


@program()
def p_is_checks(x):
    a = [1]
    return (
        a is a,
        a[:] is a,
        tuple(a) is a,
        dict(a=a)["a"] is a,
        [a][0] is a,
        list((a,))[0] is a,
        x is x,
    )


test_agrees = program.test()
