"""A break at each place of the language where little else is in the way: in handlers, bodies of
classes, special methods, defaults, decorators; and what is carried over it."""

import contextlib
import random
import sys
import traceback

import torch

import aotdyn
from tests.record.programs import Note, Programs, note

program = Programs()
TWICE = [(torch.arange(3.0) + 1, []), (torch.arange(3.0) + 1, [])]


def chain(error):
    """An exception and those that it came from, with the places in their tracebacks."""
    told = []
    while error is not None:
        places = traceback.extract_tb(error.__traceback__)
        lines = [(each.name, each.lineno) for each in places]
        told.append((type(error).__name__, str(error), lines, error.__suppress_context__))
        error = error.__cause__ or error.__context__
    return told


def note_deco(log):
    note(log, "deco")

    def d(f):
        note(log, f.__name__)
        return f

    return d


@program(*TWICE, breaks=None)
def p_pending_in_finally(x, log):
    try:
        try:
            raise KeyError("a")
        finally:
            x = x + 1
            note(log, sys.exc_info()[0])
            x = x * 2
    except KeyError as e:
        note(log, str(e))
        log.append(e.__context__ is None)
    return x, log


@program(*TWICE, breaks=None)
def p_raise_in_finally(x, log):
    try:
        try:
            raise KeyError("a")
        finally:
            note(log, 1)
            raise ValueError("b")
    except ValueError as e:
        log.append(chain(e))
    return x + 1, log


@program(*TWICE, breaks=2)
def p_keywords_given_twice(x, log):
    try:
        dict(**{"a": 1, "b": 2}, **note_keywords(log, "c"))
        dict(**{"a": 1, "b": 2}, **note_keywords(log, "b"))
    except TypeError as e:
        log.append(str(e))
    return x + 1, log


@aotdyn.disable
def note_keywords(log, name):
    log.append(name)
    return {name: 3}


@program(*TWICE, breaks=None)
def p_except_star(x, log):
    try:
        raise ExceptionGroup("g", [ValueError("v"), KeyError("k"), TypeError("t")])
    except* ValueError as g:
        x = x + 1
        note(log, (str(g), sys.exc_info()[1] is g))
        x = x * 2
    except* KeyError as g:
        note(log, len(g.exceptions))
        x = x - 1
    except* TypeError:
        note(log, "t")
    return x, log


@program(*TWICE, breaks=None)
def p_except_star_that_raises(x, log):
    try:
        try:
            raise ExceptionGroup("g", [ValueError("v"), KeyError("k")])
        except* ValueError as g:
            note(log, str(g))
            x = x + 1
            raise RuntimeError("inner")
    except ExceptionGroup as e:
        log.append([type(s).__name__ for s in e.exceptions])
    return x, log


@program(*TWICE, breaks=None)
def p_nested_comp(x, log):
    return (
        [[note(log, (i, j)) + x for j in range(2) if note(log, i) >= 0] for i in range(2)],
        {k: note(log, k) for k in "ab"},
        {note(log, c) for c in "a"},
        log,
    )


@program(*TWICE, breaks=None)
def p_with_second_fails(x, log):
    class Bad:
        def __enter__(self):
            note(log, "bad enter")
            raise ValueError("no")

        def __exit__(self, *a):
            log.append("never")

    try:
        with Note(log, "first"), Bad(), Note(log, "third"):
            log.append("body")
    except ValueError as e:
        note(log, str(e))
    return x + 1, log


@program(*TWICE, breaks=None)
def p_class_body(x, log):
    class A:
        y = x + 1
        note(log, "body")
        z = y * 2
        names = [note(log, i) for i in range(2)]

        def m(self):
            return self.z

    return A().m(), A.names, log


@program(*TWICE, breaks=None)
def p_special_methods(x, log):
    class A:
        @property
        def p(self):
            note(log, "p")
            return x + 1

        def __getattr__(self, n):
            note(log, n)
            if n == "gone":
                raise AttributeError(n)
            return x * 2

        def __eq__(self, o):
            note(log, "eq")
            return o == 3

        __hash__ = None

        def __iter__(self):
            note(log, "iter")
            return iter([x, x])

        def __len__(self):
            note(log, "len")
            return 2

        def __bool__(self):
            note(log, "bool")
            return False

    a = A()
    return (
        a.p,
        a.q,
        getattr(a, "gone", 5),
        hasattr(a, "gone"),
        3 in [1, a],
        4 in (a,),
        [v + 1 for v in a],
        (a or 7),
        log,
    )


@program(*TWICE, breaks=None)
def p_sort_key(x, log):
    def key(v):
        note(log, v)
        return -v

    l = [3, 1, 2]
    l.sort(key=key)
    return l, sorted([1, 2], key=lambda v: note(log, v)), max([1, 5, 2], key=key), x + 1, log


@program(*TWICE, breaks=None)
def p_exit_breaks(x, log):
    class C:
        def __enter__(self):
            return 1

        def __exit__(self, k, e, t):
            note(log, (k, str(e), t.tb_lineno if t else None))
            return k is ValueError

    with C():
        x = x + 1
        raise ValueError("swallowed")
    with C():
        x = x * 2
    return x, log


@program(*TWICE, breaks=None)
def p_defaults(x, log):
    def f(a=note(log, "default"), *, b=x + 1):
        return a, b

    @note_deco(log)
    def g(y):
        return y + 1

    h = lambda y, z=note(log, "lam"): note(log, z) and y * 2
    return f(), g(x), h(x), log


@program(*TWICE, breaks=None)
def p_bare_raise(x, log):
    def inner():
        note(log, sys.exc_info()[1] is not None)
        raise

    try:
        try:
            raise KeyError("k")
        except KeyError:
            x = x + 1
            inner()
    except KeyError as e:
        log.append(chain(e))
    log.append(sys.exc_info())
    return x, log


@program(*TWICE, breaks=None)
def p_cause(x, log):
    try:
        try:
            {}["a"]
        except KeyError as k:
            note(log, "h")
            raise ValueError("v") from k
    except ValueError as v:
        log.append(chain(v))
    return x + 1, log


@program(*TWICE, breaks=None)
def p_error_that_is_kept(x, log):
    try:
        {}["a"]
    except KeyError as k:
        kept = k
    note(log, str(kept))
    log.append(chain(kept))
    return x + 1, log


@program(*TWICE, breaks=None)
def p_while_else(x, log):
    n = 0
    while n < 3:
        n += 1
        if x.sum() < 0:
            break
        note(log, n)
        if n == 2:
            continue
        x = x + n
    else:
        note(log, "else")
        x = x * 2
    for i in range(2):
        note(log, i)
    else:
        x = x + 1
    return x, n, log


@program(*TWICE, breaks=None)
def p_loop_turns(x, log):
    total = 0
    for i in range(50):
        x = x + 1
        total += note([], i)
    return x, total


@program(*TWICE, breaks=None)
def p_recursion(x, log):
    def fact(n, x):
        if n == 0:
            return x
        note(log, n)
        y = fact(n - 1, x + 1)
        note(log, -n)
        return y * 2

    return fact(4, x), log


@program(*TWICE, breaks=None)
def p_exitstack(x, log):
    with contextlib.ExitStack() as s:
        a = s.enter_context(Note(log, "a"))
        s.callback(note, log, "cb")
        x = x + 1
        note(log, "in")
        s.enter_context(torch.no_grad())
        note(log, torch.is_grad_enabled())
        y = x * 2
    log.append(torch.is_grad_enabled())
    return y, log


@program(*TWICE, breaks=None)
def p_grad_contexts(x, log):
    w = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        a = w * 2
        note(log, torch.is_grad_enabled())
        with torch.enable_grad():
            b = w * 3
            note(log, torch.is_grad_enabled())
            c = b + 1
        d = w + 1
    return a.requires_grad, b.requires_grad, c.requires_grad, d.requires_grad, log


@program(*TWICE, breaks=None)
def p_autocast(x, log):
    with torch.autocast("cpu", torch.bfloat16):
        a = torch.ones(2, 2) @ torch.ones(2, 2)
        note(log, torch.is_autocast_enabled("cpu"))
        b = torch.ones(2, 2) @ torch.ones(2, 2)
    c = torch.ones(2, 2) @ torch.ones(2, 2)
    return a, b, c, log


@program(*TWICE, breaks=None)
def p_identity(x, log):
    a = [x]
    b = (a, a)
    d = {"a": a}
    y = x + 1
    note(log, 0)
    a.append(y)
    d["b"] = b
    note(log, len(d["b"][0]))
    return b[0] is b[1] is d["a"] is a, a[1] is y, a[0] is x, log


@program(*TWICE, breaks=None)
def p_unpack(x, log):
    class It:
        def __iter__(self):
            note(log, "it")
            yield 1
            note(log, "mid")
            yield 2

    a, b = It()
    c, *d = It()
    try:
        (e,) = It()
    except ValueError as err:
        log.append(str(err))
    return a + b + c, d, x + 1, log


@program(*TWICE, breaks=None)
def p_random_state(x, log):
    a = torch.rand(2)
    r = random.random()
    note(log, round(r, 6))
    b = torch.rand(2) + torch.randn(2)
    return a, b, random.randint(0, 100), torch.randperm(3), log


@program(*TWICE, breaks=None)
def p_del_local(x, log):
    y = x + 1
    del x
    note(log, 1)
    try:
        x  # noqa: F821 - unbound on purpose
    except UnboundLocalError as e:
        log.append(str(e))
    return y, log


@program(*TWICE, breaks=None)
def p_cells(x, log):
    n = 0

    def inc():
        nonlocal n, x
        n += 1
        x = x + n
        note(log, n)
        return n

    fs = [lambda: n for _ in range(2)]
    inc()
    note(log, fs[0]())
    inc()
    n = 10
    note(log, fs[1]())
    return x, inc(), fs[0](), log


@program(*TWICE, breaks=None)
def p_formatting(x, log):
    s = f"{x.sum():.2f} {x!r:>40} {note(log, 3)}"
    return s, "%s" % x, str(x), log


@program(*TWICE, breaks=None)
def p_assert_on_tensors(x, log):
    assert x.sum() > -100, note(log, "never")
    try:
        # Not an `assert`, to whose message pytest adds addresses.
        if not x.sum() > 1e6:
            raise AssertionError(f"m {x.sum().item()}")
    except AssertionError as e:
        log.append(str(e))
    return x, log


@program(*TWICE, breaks=None)
def p_kwargs_call(x, log):
    f = aotdyn.disable(lambda *a, **k: (len(a), sorted(k), log.append((a[1:], sorted(k))))[:2])
    return f(x, 1, *[2, 3], k=4, **{"z": 5}), f(*(), **{}), f(x, y=x + 1), log


@program(*TWICE, breaks=None)
def p_return_in_finally(x, log):
    def g():
        for i in range(3):
            try:
                if i == 1:
                    return note(log, ("ret", i))
                continue
            finally:
                note(log, ("fin", i))

    return g(), x * 2, log


@program(*TWICE, breaks=None)
def p_uncaught(x, log):
    y = x + 1
    note(log, 1)

    def deep(v):
        note(log, 2)
        raise ValueError(f"deep {v.shape[0]}")

    try:
        deep(y)
    except KeyError:
        log.append("no")
    return y


test_agrees = program.test()
