"""`re` on plain text, caches of `functools`, `heapq`, `bisect`, `os.path`, `logging`, and what
`globals()` and `locals()` give."""

import base64
import bisect
import fnmatch
import functools
import heapq
import itertools
import json
import logging
import os
import pathlib
import re
import shlex
import struct
import sys
import textwrap
import uuid
import warnings

import torch

import aotdyn
from tests.record.programs import Programs, note

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


@program(breaks=None)
def p_re_errors(x):
    found = []
    for text in ("(", "a**", "(?P<x>a)(?P<x>b)", "a{2,1}", "[b-a]", r"\8", "(?<=a*)b"):
        try:
            re.compile(text)
        except re.error as error:
            found.append((error.msg, error.pattern, error.pos, error.colno, str(error)))
    for args in ((1, 2), ("a", 3), ("a",), (b"a", "b")):
        try:
            found.append(re.match(*args))
        except TypeError as error:
            found.append(str(error))
    try:
        re.compile("a{%d}" % 2**33)
    except OverflowError as error:
        found.append(str(error))
    return found, x


@program(breaks=None)
def p_re_warns(x):
    re.purge()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        re.compile("[[a]")
        re.search("[a||b]", "b")
        re.sub("(a)", r"\g<+1>", "a")
    return [(str(each.message), each.category) for each in told], x


@program(breaks=None)
def p_re_shows_what_it_compiles(x):
    return re.compile("ab", re.DEBUG), re.match("abc", "x", flags=re.DEBUG), x


@program(breaks=None)
def p_re_scanner(x):
    scanner = re.Scanner([(r"\d+", lambda scanner, text: int(text)), (r"\w+", None)])
    return scanner.scan("12ab"), scanner.scanner.pattern, x


@program(breaks=None)
def p_re_by_locale(x):
    return re.match(b"\xe9", b"\xc9", re.L | re.I), re.findall(b"a", b"ab", flags=re.L), x


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


@program()
def p_sub_by_function(x):
    seen = []

    def double(m):
        seen.append(m.start())
        return m.group() * 2

    return (
        re.sub(r"\d", double, "a1b2"),
        PAT.subn(lambda m: m[2] + m[1], "a1b2-c3", 2),
        re.sub("x*", lambda m: "-", "abxd"),
        re.sub("A", lambda m: None, "bab", flags=re.I),
        seen,
        x,
    )


@program()
def p_sub_by_function_raises(x):
    try:
        return re.sub("a", lambda m: 1, "ba")
    except TypeError as e:
        return str(e), x


@program()
def p_heapq_chosen(x):
    return (
        heapq.nsmallest(2, [3, 1, 2]),
        heapq.nlargest(2, [3, 1, 2], key=lambda a: -a),
        heapq.nsmallest(-1, [1]),
        list(heapq.merge([1, 3], [2])),
        x,
    )


# -- partial methods ------------------------------------------------------------


class Partials:
    def f(self, a, b=1):
        return a + b

    g = functools.partialmethod(f, b=5)
    h = functools.partialmethod(f, 2)


@program()
def p_partial_methods(x):
    p = Partials()
    return p.g(x), p.h(), p.h.__self__ is p, p.g.keywords


@program()
def p_partial_attributes(x):
    p = functools.partial(max, 1)
    p.tag = x
    return p.tag is x, getattr(p, "nope", 3), hasattr(p, "__wrapped__"), p(0)


WORDS = {"a": [1, 2.5, None], "b": {"c": "é"}}


@program()
def p_pure_functions(x):
    told = json.dumps(WORDS, indent=1), json.loads('{"a": [1, null, true]}'), shlex.split("a 'b c'")
    packed = struct.unpack("<i", struct.pack("<i", x.dim())), base64.b64encode(b"ab")
    return x, told, packed, textwrap.fill("a b c d", 3), fnmatch.fnmatch("a.py", "*.py")


@program(breaks=1)
def p_partial_kept(x):
    log = []
    p = functools.partial(max, 1)
    p.tag = x
    note(log, p(2))
    return p.tag is x, p(0), log


# -- globals() ------------------------------------------------------------

COUNT = 1
LIST = [1]


@program()
def p_globals(x):
    names = globals()
    return names["COUNT"] + x, "nope" in names, names.get("LIST") is LIST, globals() is names


@program()
def p_globals_set(x):
    global COUNT
    globals()["MADE"] = 4
    COUNT = 7
    found = MADE + x, globals()["COUNT"], COUNT  # noqa: F821
    COUNT = 1
    del globals()["MADE"]
    try:
        MADE  # noqa: B018, F821
    except NameError as e:
        return found, str(e)


@program(breaks=1)
def p_globals_across_a_break(x):
    log = []
    globals()["MADE"] = 4
    note(log, MADE)  # noqa: F821
    globals().pop("MADE")
    return x, log, "MADE" in globals()


# -- logging ------------------------------------------------------------

LOG = logging.getLogger("tests.quiet")
LOG.setLevel(logging.ERROR)


@program()
def p_logging_off(x):
    LOG.debug("x %s", x.shape)
    logging.getLogger("tests.quiet").info("no")
    if LOG.isEnabledFor(logging.INFO):
        x = x * 0
    return x + 1


def test_logging_on_is_kept_in_order():
    records = []

    class Kept(logging.Handler):
        def emit(self, record):
            records.append((record.getMessage(), record.funcName))

    def program(x):
        x = x + 1
        LOG.warning("first %d", x.shape[0])
        LOG.error("second")
        return x

    handler = Kept()
    LOG.addHandler(handler)
    LOG.propagate = False
    try:
        compiled = aotdyn.compile(program, backend="eager")
        compiled(torch.ones(2))
        assert records == [("second", "program")]
        LOG.setLevel(logging.DEBUG)
        compiled(torch.ones(2))
        assert records[1:] == [("first 2", "program"), ("second", "program")]
        LOG.setLevel(logging.CRITICAL)
        compiled(torch.ones(2))
        assert len(records) == 3
    finally:
        LOG.setLevel(logging.ERROR)
        LOG.removeHandler(handler)


@functools.lru_cache
def gl(n):
    return n + 1


@program()
def p_lru_global(x):
    return gl(1), gl(1), x


class Ordered:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value


@program(((1, 3, 5, 5, 7), 5))
def p_bisect(values, x):
    ordered = list(values)
    bisect.insort(ordered, 4)
    bisect.insort_left(ordered, 3.0)
    found = [bisect.bisect(ordered, x), bisect.bisect_left(ordered, x), bisect.bisect("abc", "b")]
    found += [bisect.bisect([5, 3, 1], -3, key=lambda v: -v), bisect.bisect_left(a=values, x=6)]
    found.append(bisect.bisect_right(ordered, 3, 1, hi=3))
    objects = [Ordered(1), Ordered(4)]
    bisect.insort(objects, Ordered(2))
    try:
        bisect.bisect(values, 1, -1)
    except ValueError as error:
        found.append(str(error))
    return ordered, found, [each.value for each in objects]


class AsPath:
    def __fspath__(self):
        return "of/object"


@program()
def p_paths(x):
    path, join = "/a/b/../c.tar.gz", os.path.join
    parts = os.path.split(path), os.path.splitext(path), os.path.normpath(path)
    joined = join("a", "b"), join("a", "/b", "", "c"), join("a", AsPath()), os.fspath(AsPath())
    return parts, joined, os.path.isabs(path), os.path.basename(AsPath()), x


@program()
def p_locals(x, y=2):
    a, of_cell = 1, y
    first = locals()
    before = dict(first)
    b = 2
    second = locals()
    first["a"], first["new"] = 9, 3
    del b
    names = list(locals()), [sorted(locals()) for each in range(1)], dir(), list(vars())
    return list(before), names, first is second, first["a"], a, (lambda: of_cell)()


@program(breaks=1)
def p_locals_after_a_break(x):
    a, unused = 1, [7]
    note(unused, a)
    return sorted(locals()), x


class Settings:
    def __init__(self):
        self.folder, self.name = pathlib.Path("/tmp"), "x"

    @property
    def out(self):
        return self.folder / self.name / f"{self.name}.pt"


SETTINGS, HERE, ID = Settings(), pathlib.PurePath("a/b.txt"), uuid.UUID(int=5)


@program(*[(torch.ones(2),)] * 3)
def p_path_objects(x):
    made = pathlib.Path("x")
    told = made / "y" == pathlib.Path("x/y"), repr(made), made.parts, str(made.with_suffix(".pt"))
    more = (made / "c").relative_to(made), made.as_posix(), os.fspath(made), f"{made}", "%s" % made
    looked = HERE.stem, HERE.suffix, HERE.parent.name, str(SETTINGS.out), SETTINGS.out.parent.name
    pure = pathlib.PurePosixPath("/a/b/../c.tar.gz")
    names = pure.suffixes, pure.anchor, pure.root, pure.drive, pure.match("*.gz"), [*pure.parents]
    return x, told, more, looked, names, hash(made) == hash(pathlib.Path("x")), {made: 1}, HERE


@program()
def p_paths_refuse(x):
    told = []
    for refused in (
        lambda: pathlib.Path("a").relative_to("b"),
        lambda: pathlib.Path("a").with_name(""),
        lambda: pathlib.Path(3),
        lambda: setattr(HERE, "other", 3),
        lambda: os.fspath(None),
    ):
        try:
            refused()
        except (ValueError, TypeError, AttributeError) as error:
            told.append((type(error), str(error)))
    return told, x


@program(breaks=None)
def p_paths_that_are_there(x):
    return x, pathlib.Path("/nowhere").exists(), pathlib.Path.cwd() == pathlib.Path(os.getcwd())


@program()
def p_uuids(x):
    other = uuid.UUID("12345678123456781234567812345678")
    found = str(ID), ID.hex, ID == uuid.UUID(int=5), {ID: 3}[uuid.UUID(int=5)], repr(other)
    return x, found, other.version, ID < other, ID


@program()
def p_interned_texts(x):
    return x, sys.intern("a" + str(x.dim())), {sys.intern("k"): 1}


@program(breaks=None)
def p_calls_of_a_cache_are_counted_across_breaks(x):
    log = []

    @functools.cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    note(log, fib)
    return fib(9), fib(9), fib.cache_info(), x + 1


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
