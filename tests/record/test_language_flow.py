"""Exceptions, generators, context managers, and the library, one program for each."""

# ruff: noqa: E731, E741, E742, F601, F811, F821, F841
import bisect
import collections
import contextlib
import fractions
import heapq
import inspect
import math
import numbers
import random
import re
import statistics
import string
import sys
import textwrap
import typing

import torch

import aotdyn
from tests.record.programs import Programs
from tests.record.programs import outcome_of as T

program = Programs()
X = torch.arange(3.0) + 1


@program(graphs=0)
def p_tryflow(x):
    log = []

    def f(k):
        try:
            log.append("t")
            if k == 0:
                return "r"
            if k == 1:
                raise ValueError("v")
            if k == 2:
                raise KeyError("k")
        except ValueError as e:
            log.append(str(e))
            return "ve"
        else:
            log.append("else")
            return "e"
        finally:
            log.append("fin")
            if k == 5:
                return "override"

    return [T(f, k) for k in (0, 1, 2, 3, 5)], log, x


@program(graphs=0)
def p_loopfin(x):
    r = []
    for i in range(5):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            r.append(i)
        finally:
            r.append("f")
    else:
        r.append("no")
    return r, x


class MyErr(Exception):
    def __init__(s, code, msg="m"):
        super().__init__(msg)
        s.code = code


class Sub(MyErr):
    pass


@program(graphs=0)
def p_ctx(x):
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            [][1]
    except IndexError as e:
        return repr(e.__context__), e.__cause__, e.__suppress_context__, x


@program(graphs=0)
def p_fromnone(x):
    try:
        try:
            {}["a"]
        except KeyError:
            raise TypeError("t") from None
    except TypeError as e:
        return e.__cause__, e.__suppress_context__, type(e.__context__), x


@program(graphs=0)
def p_exgroup(x):
    r = []
    try:
        raise ExceptionGroup(
            "g", [ValueError(1), TypeError("t"), ExceptionGroup("n", [ValueError(2)])]
        )
    except* ValueError as eg:
        r.append((eg.message, len(eg.exceptions)))
    except* TypeError as eg:
        r.append([str(e) for e in eg.exceptions])
    return r, x


@program(graphs=0)
def p_note(x):
    e = ValueError("a")
    e.add_note("n")
    try:
        raise e
    except ValueError as f:
        return f is e, f.__notes__, x


@program(graphs=1)
def p_torcherr(x):
    r = []
    try:
        x + torch.ones(4)
    except RuntimeError as e:
        r.append("rt")
    try:
        x.view(7)
    except RuntimeError as e:
        r.append(str(e)[:5])
    try:
        x[5]
    except IndexError as e:
        r.append(str(e))
    try:
        torch.cat([x, x[None]])
    except RuntimeError:
        r.append("cat")
    try:
        x.nope
    except AttributeError as e:
        r.append(str(e))
    try:
        torch.nope
    except AttributeError as e:
        r.append("attr")
    try:
        x.reshape("a")
    except TypeError:
        r.append("te")
    return r, x * 2


@program(graphs=1)
def p_suppress(x):
    with contextlib.suppress(KeyError, ValueError):
        {}["a"]
    with contextlib.suppress(KeyError):
        y = x * 2
    return y


@program(graphs=0)
def p_exitstack(x):
    log = []
    with contextlib.ExitStack() as s:
        s.callback(log.append, 1)
        s.enter_context(contextlib.suppress(ValueError))
        s.push(lambda *a: log.append(a[0]) or False)
        log.append(2)
        raise ValueError
    return log, x


@contextlib.contextmanager
def cm(log, v):
    log.append("in")
    try:
        yield v * 2
    except ValueError as e:
        log.append(str(e))
    finally:
        log.append("out")


@program(graphs=1)
def p_cm(x):
    log = []
    with cm(log, x) as y:
        raise ValueError("q")
    with cm(log, x) as z, contextlib.nullcontext(5) as n:
        pass

    def f():
        with cm(log, 1):
            return "ret"

    return log, z, n, f(), x


@program(graphs=0)
def p_cmdeco(x):
    log = []

    @cm(log, 1)
    def f(a):
        log.append(a)
        return a

    return f(x), log


class CtxDeco(contextlib.ContextDecorator):
    def __enter__(s):
        return s

    def __exit__(s, *a):
        return a[0] is KeyError


@program(graphs=0)
def p_ctxdeco(x):
    @CtxDeco()
    def f():
        {}["a"]

    return f(), x


@program(graphs=0)
def p_closing(x):
    class C:
        n = 0

        def close(s):
            s.n += 1

    c = C()
    with contextlib.closing(c):
        pass
    return c.n, x


def g1(x):
    try:
        r = yield x
        while True:
            r = yield x * r if r else x
    except ValueError:
        yield "caught"
    finally:
        pass
    return "end"


@program(graphs=1)
def p_gen(x):
    g = g1(x)
    a = next(g)
    b = g.send(3)
    c = g.throw(ValueError())
    r = [a, b, c]
    try:
        next(g)
    except StopIteration as e:
        r.append(e.value)
    h = g1(x)
    next(h)
    h.close()
    r.append(T(next, h))
    return r


@program(graphs=0)
def p_yieldfrom(x):
    def inner():
        a = yield 1
        return a

    def outer():
        v = yield from inner()
        yield ("got", v)
        yield from [7, 8]
        return 9

    g = outer()
    r = [next(g), g.send("s"), next(g), next(g)]
    try:
        next(g)
    except StopIteration as e:
        r.append(e.value)
    return r, x


@program(graphs=1)
def p_genout(x):
    def g():
        s = x
        for i in range(3):
            s = s + i
            yield s

    a = g()
    next(a)
    return a, g()


@program(graphs=1)
def p_genexpr(x):
    it = (x * i for i in range(4))
    a = next(it)
    return (
        a,
        sum(it),
        list(it),
        all(v.shape[0] == 3 for v in [x, x]),
        max((len(s) for s in ["a", "bb"]), default=0),
        dict((i, i * i) for i in range(3)),
        "".join(c for c in "abc" if c != "b"),
        tuple(i for i in (1, 2)),
    )


@program(graphs=0)
def p_gi(x):
    def g():
        yield 1

    h = g()
    r = [inspect.isgenerator(h), h.gi_frame is None if 0 else 1]
    return r, x


class It:
    def __init__(s, n):
        s.n = n

    def __iter__(s):
        return s

    def __next__(s):
        if s.n == 0:
            raise StopIteration
        s.n -= 1
        return s.n


@program(graphs=0)
def p_userit(x):
    return (
        list(It(3)),
        [*It(2)],
        sum(It(4)),
        2 in It(4),
        max(It(3)),
        dict(zip("ab", It(2))),
        list(map(lambda v: v * 2, It(2))),
        sorted(It(3)),
        tuple(It(2)),
        set(It(2)),
        list(enumerate(It(2))),
        x,
    )


async def co(x):
    return x * 2


@program(graphs=1)
def p_math(x):
    return (
        math.pi,
        math.sin(1),
        math.sqrt(2),
        math.floor(2.5),
        math.inf,
        math.dist((0, 0), (3, 4)),
        math.degrees(1),
        math.ulp(1.0),
        math.perm(4, 2),
        math.isqrt(10),
        math.trunc(2.7),
        math.exp(1),
        math.log(10, 2),
        math.atan2(1, 2),
        math.fmod(5, 3),
        math.remainder(5, 3),
        math.ldexp(1, 3),
        math.lcm(2, 3),
        math.nextafter(1, 2),
        math.tau,
        x * math.e,
    )


@program(graphs=1, breaks=2)
def p_random2(x):
    if random.random() < 0.5:
        return x * 2
    return x + random.random()


@program(graphs=1, breaks=1)
def p_torchrand(x):
    torch.manual_seed(5)
    a = torch.rand(3)
    b = torch.randn_like(x)
    return (
        a + b + torch.randint(0, 5, (3,)),
        torch.randperm(3),
        torch.bernoulli(torch.full((3,), 0.5)),
    )


def fs(a: int, b="x", *c, d, e=3, **f) -> float:
    "doc"
    return a


@program(graphs=0)
def p_sig(x):
    s = inspect.signature(fs)
    return (
        list(s.parameters),
        s.parameters["a"].annotation,
        s.parameters["b"].default,
        s.parameters["d"].kind.name,
        s.return_annotation,
        str(s),
        s.parameters["c"].kind == inspect.Parameter.VAR_POSITIONAL,
        s.parameters["d"].default is inspect.Parameter.empty,
        inspect.getfullargspec(fs).args,
        inspect.isfunction(fs),
        inspect.ismethod(fs),
        inspect.isclass(int),
        "a" in s.parameters,
        len(s.parameters),
        x,
    )


@program(graphs=0)
def p_sigfilter(x):
    kw = {"a": 1, "zz": 2, "d": 4}
    ok = {k: v for k, v in kw.items() if k in inspect.signature(fs).parameters}
    return fs(**ok), x


@program(graphs=0)
def p_re(x):
    m = re.match(r"(?P<n>\w+)\.(\d+)", "layer.12")
    return (
        m["n"],
        int(m[2]),
        re.sub(r"\d", "#", "a1b2"),
        re.split(r"[.]", "a.b.c"),
        bool(re.search("z", "abc")),
        re.compile("a+").findall("aabaa"),
        re.fullmatch(r"\d+", "123").span(),
        x,
    )


@program(graphs=0)
def p_string(x):
    return (
        string.ascii_lowercase[:3],
        string.Template("$a-b").substitute(a=1),
        textwrap.dedent("  a"),
        "{0:>{w}}".format("q", w=4),
        string.capwords("ab cd"),
        x,
    )


@program(graphs=0)
def p_collabc(x):
    return (
        isinstance(x, numbers.Number),
        isinstance(3, numbers.Integral),
        isinstance([], collections.abc.MutableSequence),
        isinstance(torch.nn.ReLU(), collections.abc.Callable),
        issubclass(dict, collections.abc.MutableMapping),
        isinstance("a", collections.abc.Sequence),
    )


@program(graphs=0)
def p_heap(x):
    h = [3, 1, 2]
    heapq.heapify(h)
    heapq.heappush(h, 0)
    return (
        heapq.heappop(h),
        h,
        heapq.nlargest(2, h),
        bisect.bisect([1, 2, 3], 2),
        heapq.nsmallest(1, h),
        x,
    )


@program(graphs=0)
def p_frac(x):
    return fractions.Fraction(1, 3) + 1, float(fractions.Fraction(1, 4)), x


@program(graphs=0)
def p_stat(x):
    return statistics.mean([1, 2, 3]), x


@program(graphs=0)
def p_importin(x):
    import math as m
    import os.path as p
    from collections import OrderedDict as OD

    return m.pi, p.sep, OD(a=1), x


@program(graphs=0, breaks=1)
def p_print(x):
    print("a", 1, sep="-", end="!\n")
    return x


@program(graphs=0)
def p_prog(x):
    r = []
    for i, (a, b) in enumerate(zip(range(3), "abc"), 1):
        r.append(f"{i}{a}{b}")
    return ",".join(r), x


@program(graphs=0)
def p_breakpoint(x):
    return __name__, __file__[-5:], __doc__, x


@program(graphs=0)
def p_tup(x):
    return typing.get_type_hints(MyErr.__init__), x


test_agrees = program.test()


def of_a_package(x):
    from wsgiref import headers

    return x + 1, headers.__name__


def test_part_of_a_package_that_is_not_imported_so_far(agree):
    def forget():
        import wsgiref

        sys.modules.pop("wsgiref.headers", None)
        vars(wsgiref).pop("headers", None)

    forget()
    assert aotdyn.compile(of_a_package, backend="eager")(torch.ones(2))[1] == "wsgiref.headers"
    forget()
    assert aotdyn.explain(of_a_package, torch.ones(2)).breaks[0].detail == "wsgiref.headers"
    agree(of_a_package, (torch.ones(2),), breaks=0)
