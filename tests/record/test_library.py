"""`re` on plain text, caches of `functools`."""

import functools
import itertools
import re

import torch

from tests.record.programs import Programs

program = Programs()


PAT = re.compile(r"(\w)(\d+)")


@program()
def p_re(x):
    m = re.match(r"(\w+)-(\d+)", "ab-12")
    return (
        m.group(1),
        m.groups(),
        m[2],
        bool(m),
        re.sub("a", "b", "aa"),
        re.findall(r"\d", "1a2"),
        re.split(",", "a,b"),
        x,
    )


@program()
def p_re_pat(x):
    m = PAT.search("x12")
    return (
        m.groups(),
        PAT.pattern,
        PAT.sub("z", "a1b2"),
        PAT.match("!") is None,
        [k.group() for k in PAT.finditer("a1b2")],
        m.span(),
        m.start(),
        x,
    )


@program()
def p_re_named(x):
    m = re.match(r"(?P<a>\w)(?P<b>\w)", "xy")
    return (
        m.groupdict(),
        m["a"],
        m.group("a", "b"),
        m.end(),
        re.fullmatch("a", "ab"),
        re.escape("a.b"),
        x,
    )


@program()
def p_lru_in_frame(x):
    calls = []

    @functools.lru_cache(maxsize=None)
    def f(n):
        calls.append(n)
        return n * 2

    return f(1), f(1), f(2), calls, x


@program()
def p_cache_fib(x):
    @functools.cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(20), fib.cache_info(), x


@program()
def p_lru_maxsize(x):
    calls = []

    @functools.lru_cache(maxsize=2)
    def f(n):
        calls.append(n)
        return n

    f(1)
    f(2)
    f(3)
    f(1)
    f.cache_clear()
    f(1)
    return calls, f.cache_info(), f.__wrapped__(5), f.__name__, x


@functools.lru_cache
def gl(n):
    return n + 1


@program()
def p_lru_global(x):
    return gl(1), gl(1), x


test_agrees = program.test()


def test_what_is_told_to_the_user_names_no_polyfill(agree):
    limits = [3, 1, 2]

    def program(x):
        ordered = sorted([0, 1, 2], key=functools.cmp_to_key(lambda a, b: limits[a] - limits[b]))
        return list(itertools.starmap(lambda a: print(a), [(1,)])), x + ordered[0]

    found = agree(program, (torch.ones(2),))
    assert found.breaks
    for variant in found.variants:
        told = [guard.user for guard in variant.guards]
        told += variant.breaks.stack if variant.breaks else ()
        assert not any("polyfills" in place for place in told)
