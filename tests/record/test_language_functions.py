"""Functions, one program for each thing that the language knows of them."""

# ruff: noqa: E731, E741, E742, F601, F811, F821, F841
import functools
import operator
import types

import torch

from tests.record.programs import Programs

program = Programs()
X = torch.arange(3.0) + 1


def deco(times):
    def outer(f):
        @functools.wraps(f)
        def inner(*a, **k):
            inner.calls += 1
            r = f(*a, **k)
            for _ in range(times - 1):
                r = f(r, **k)
            return r

        inner.calls = 0
        return inner

    return outer


@deco(3)
def scaled(x, *, by=2.0):
    return x * by


@program(graphs=1)
def p_deco_in(x):
    @deco(2)
    def f(y, by=1):
        "doc"
        return y + by

    return f(x), f.calls, f.__doc__, f.__name__, f.__wrapped__.__name__


@program(graphs=1)
def p_cells(x):
    fs = []
    for i in range(3):

        def f(y, i=i):
            return y * i

        def g(y):
            return y * i

        fs.append((f, g))
    return [(f(x), g(x)) for f, g in fs]


@program(graphs=0)
def p_shared(x):
    n = 0

    def inc():
        nonlocal n
        n += 1
        return n

    def get():
        return n

    inc()
    inc()
    return get(), n, inc, get


@program(graphs=0)
def p_posonly(x):
    def f(a, b=2, /, c=3, *d, e, g=5, **h):
        return a, b, c, d, e, g, h

    r = [f(1, e=2), f(1, 2, 3, 4, e=5, z=6), f(*[1, 2], **{"e": 1, "a": 9})]
    for bad in (lambda: f(), lambda: f(1), lambda: f(a=1, e=2), lambda: f(1, e=1, **{"e": 2})):
        try:
            bad()
        except TypeError as e:
            r.append(str(e))
    return r, x


@program(graphs=0)
def p_mutual(x):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return even(10), odd(7), x


@program(graphs=0)
def p_ycomb(x):
    Y = lambda f: (lambda g: g(g))(lambda h: f(lambda *a: h(h)(*a)))
    return Y(lambda s: lambda n: 1 if n < 2 else n * s(n - 1))(6), x


@program(graphs=1)
def p_compose(x):
    comp = lambda *fs: functools.reduce(lambda f, g: lambda *a: g(f(*a)), fs)
    return comp(torch.sin, torch.cos, lambda t: t * 2)(x), comp


@program(graphs=1)
def p_partial(x):
    p = functools.partial(torch.add, alpha=2)
    q = functools.partial(p, x)
    return q(x), p.func is torch.add, p.keywords, q.args, q


class PM:
    def f(self, a, b=1):
        return a, b, self

    g = functools.partialmethod(f, 5)

    @functools.cached_property
    def cp(self):
        return [1]

    @staticmethod
    def s(a):
        return a

    @classmethod
    def c(cls, a):
        return cls, a


@program(graphs=0)
def p_pmeth(x):
    o = PM()
    return (
        o.g()[:2],
        o.g(b=3)[:2],
        o.cp is o.cp,
        vars(o),
        PM.s(x),
        o.c(1)[0] is PM,
        PM.f(o, 1)[2] is o,
        o.f.__self__ is o,
        o.f.__func__ is PM.f,
    )


@program(graphs=0)
def p_cached_del(x):
    o = PM()
    a = o.cp
    del o.cp
    return a is o.cp, x


@program(graphs=1)
def p_reduce(x):
    return (
        functools.reduce(operator.mul, [1, 2, 3, 4]),
        functools.reduce(operator.add, [x, x], x),
        functools.reduce(lambda a, b: a + [b], "abc", []),
    )


@program(graphs=1)
def p_op(x):
    return (
        operator.itemgetter(1, 0)([1, 2]),
        operator.attrgetter("shape", "dtype")(x),
        operator.methodcaller("add", 1)(x),
        operator.attrgetter("a.b")(types.SimpleNamespace(a=types.SimpleNamespace(b=4))),
    )


@program(graphs=1)
def p_op2(x):
    return (
        operator.matmul(x, x),
        operator.iconcat([1], [2]),
        operator.countOf([1, 1], 1),
        operator.index(3),
        operator.concat((1,), (2,)),
        operator.truth([]),
        operator.contains([x.shape], (3,)),
        operator.not_(0),
    )


class Call:
    def __init__(self):
        self.n = 0

    def __call__(self, x, *, k=1):
        self.n += k
        return x * self.n


@program(graphs=1)
def p_callobj(x):
    c = Call()
    return [c(x), c(x, k=2), list(map(c, [x, x]))], c.n


@program((X, Call()), graphs=1)
def p_callobj_in(x, c):
    return c(x) + c(x, k=3)


@program(graphs=1)
def p_return_fn(x):
    y = x * 2

    def f(z, k=[1]):
        k.append(2)
        return z + y, len(k)

    f.tag = "t"
    return f, f(x), f(x)


@program(graphs=0)
def p_fnattrs(x):
    def f(a: int = 1, *, b: "str" = "z") -> float:
        "d"

    return (
        f.__defaults__,
        f.__kwdefaults__,
        f.__annotations__,
        f.__doc__,
        f.__qualname__,
        f.__module__,
        f.__code__.co_varnames,
        f.__closure__,
    )


@program(graphs=0)
def p_setdefaults(x):
    def f(a, b=1):
        return a + b

    f.__defaults__ = (5,)
    return f(1), x


@functools.lru_cache(maxsize=None)
def cached(n):
    return n * 2


@program(graphs=1)
def p_lru(x):
    return cached(3), cached(3), x * cached(4)


@functools.lru_cache
def warn_once(msg):
    print(msg)


@program(graphs=1)
def p_lambda_default(x):
    return [(lambda a, b=i: a * b)(x) for i in range(3)], (lambda *a, **k: (a, k))(1, b=2)


@program(graphs=0)
def p_kwonlyorder(x):
    log = []

    def n(v):
        log.append(v)
        return v

    def f(*a, **k):
        return a, k

    r = f(n(1), *[n(2)], a=n(3), **{"b": n(4)})
    return r, log, x


@program(graphs=0)
def p_unpackcalls(x):
    def f(a, b, c, *d):
        return a, b, c, d

    return f(*"ab", *range(3)), f(*(x, x), 1), f(**{"a": 1, "b": 2, "c": 3})


@program(graphs=0)
def p_dupkw(x):
    def f(**k):
        return k

    try:
        f(**{"a": 1}, **{"a": 2})
    except TypeError as e:
        return str(e), x


@program(graphs=0)
def p_nonlocal_del(x):
    a = 1

    def f():
        nonlocal a
        del a

    f()
    try:
        a
    except NameError as e:
        return type(e).__name__, str(e), x


@program(graphs=0)
def p_unbound(x):
    try:
        if x is None:
            q = 1
        q
    except UnboundLocalError as e:
        return str(e), x


@program(graphs=1)
def p_generator_fn(x):
    def g(n):
        for i in range(n):
            y = yield i * x
            if y:
                return "done"

    it = g(5)
    a = next(it)
    try:
        it.send(1)
    except StopIteration as e:
        return a, e.value


@program(graphs=0)
def p_recdefault(x):
    def flat(l):
        for e in l:
            if isinstance(e, list):
                yield from flat(e)
            else:
                yield e

    return list(flat([1, [2, [3, x]], 4]))


G = 5


@program(graphs=0)
def p_globalw(x):
    global G
    G += 1
    r = G
    G = 5
    return r, x


@program(graphs=0)
def p_builtinscope(x):
    max = lambda *a: "mine"
    return (
        max(1, 2),
        min(1, 2),
        sum([1, 2]),
        abs(-3),
        divmod(7, 2),
        pow(2, 3, 5),
        round(2.567, 2),
        x,
    )


@program(graphs=0)
def p_func_eq(x):
    def f():
        pass

    def g():
        pass

    return f == f, f != g, f in [g, f], {f: 1}[f], hash(f) == hash(f), x


@program(graphs=0)
def p_method_eq(x):
    o = PM()
    return o.f == o.f, o.f is o.f, PM.f is PM.f, o.c == PM.c, o.s is PM.s, x


@program(graphs=0)
def p_typedlru(x):
    @functools.lru_cache(typed=True)
    def f(a):
        return type(a).__name__

    return f(1), f(1.0), f(True), f.cache_info(), x


@program(graphs=0)
def p_cmpkey(x):
    return sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)), x


@program(graphs=0)
def p_wrapsattrs(x):
    def f(a):
        "D"
        return a

    f.z = 3

    @functools.wraps(f, updated=())
    def g(a):
        return f(a)

    return g.__name__, hasattr(g, "z"), g.__doc__, x


test_agrees = program.test()
