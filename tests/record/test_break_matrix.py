"""Place of the break x kind of break x what is live: generated programs.

The whole matrix has some six hundred; a sample runs here, the rest with AOTDYN_WHOLE_MATRIX=1.
"""

import contextlib
import itertools
import os
import textwrap

import pytest
import torch

import aotdyn
from aotdyn.runtime.suspended import PLAIN
from tests.record.programs import Note, note  # noqa: F401 - named in the texts below


class Opaque:
    """An object whose every operation breaks and is noted."""

    __slots__ = ("log", "held")

    def __init__(self, log):
        self.log, self.held = log, {"j": 1}

    @aotdyn.disable
    def __getitem__(self, key):
        self.log.append(("get", key))
        return self.held[key]

    @aotdyn.disable
    def __setitem__(self, key, value):
        self.log.append(("set", key, value))
        self.held[key] = value

    @aotdyn.disable
    def pair(self):
        self.log.append("pair")
        return 1, 2

    @aotdyn.disable
    def __iter__(self):
        self.log.append("iter")
        return iter((1, 2))

    @aotdyn.disable
    def __enter__(self):
        self.log.append("enter")
        return self

    @aotdyn.disable
    def __exit__(self, *info):
        self.log.append("exit")


@contextlib.contextmanager
def noting(log):
    log.append("generator enter")
    try:
        yield 1
    except ValueError as error:
        log.append(("generator", str(error)))
    finally:
        log.append("generator exit")


@aotdyn.disable
def fail(log):
    log.append("fail")
    raise ValueError("failed")


@aotdyn.disable
def fail_if(log, condition):
    log.append(bool(condition))
    if condition:
        raise ValueError("failed if")
    return 1


def deep(x, log):
    def deeper(v):
        note(log, "deep")
        return v + 1

    return deeper(x) * 2


def many(*args, **kwargs):
    return args, kwargs


class Base:
    def __init__(self, log):
        self.log = log

    def go(self, x):
        note(self.log, "base")
        return x + 1


class Sub(Base):
    def go(self, x):
        y = super().go(x)
        return y + super().go(y)


KINDS = {
    "call": "note(log, 'K')",
    "print": "print('K')",
    "branch": "w = 1 if x.sum() > 0 else 2",
    "assert": "assert x.sum() > -1e9, 'm'",
    "item": "w = x.sum().item()",
    "raise": "fail(log)",
    "maybe": "w = fail_if(log, x.sum() > 3)",
    "attribute": "x.tag = 1",
    "item_store": "opaque['k'] = opaque['j'] + 1",
    "format": "w = f'{x.sum()}'",
    "import": "import colorsys",
    "unpack": "w, v = opaque.pair()",
    "iteration": "w = [q for q in opaque]",
    "with": "with opaque:\n    y = y + 1",
    "inlined": "w = deep(x, log)",
    "explicit": "aotdyn.graph_break()",
    "super": "w = Sub(log).go(x)",
    "spread": "w = many(*[1, 2], **{'k': note(log, 3)})",
}

PLACES = """
plain
    <break>
if
    if n > 1:
        <break>
    else:
        y = y * 2
for
    for i in range(3):
        y = y + i
        <break>
        y = y * 2
    else:
        log.append('else')
for_first
    for i, z in zip(range(2), [x, y]):
        <break>
        y = y + z * i
while
    i = 0
    while i < 3:
        i += 1
        if i == 2:
            continue
        <break>
        y = y + i
try
    try:
        y = y + 1
        <break>
        y = y * 2
    except ValueError as e:
        log.append(str(e))
        y = y - 1
    else:
        log.append('else')
    finally:
        log.append('finally')
except
    try:
        fail(log)
    except ValueError as e:
        y = y + 1
        try:
            <break>
        except ValueError as f:
            log.append((str(f), repr(f.__context__)))
        log.append(repr(sys.exc_info()[1]))
        y = y * 2
except_traced
    try:
        raise ValueError('t')
    except ValueError as e:
        y = y + 1
        <break>
        y = y * 2
finally
    try:
        y = y + 1
    finally:
        y = y * 2
        <break>
        y = y - 1
finally_with_error
    try:
        try:
            fail(log)
        finally:
            y = y * 2
            <break>
            y = y - 1
    except ValueError as e:
        log.append((str(e), repr(e.__context__)))
no_grad
    with torch.no_grad():
        y = y + 1
        <break>
        y = y * 2
    log.append(torch.is_grad_enabled())
two_contexts
    with Note(log, 'a'), Note(log, 'b', True):
        y = y + 1
        <break>
        y = y * 2
generator_context
    with noting(log):
        y = y + 1
        <break>
        y = y * 2
context_in_loop
    for i in range(2):
        with Note(log, i, True), torch.no_grad():
            y = y + i
            <break>
            if i == 1:
                break
            y = y * 2
nested_loops
    for i in range(2):
        for j in range(2):
            try:
                <break>
                if j:
                    continue
            except ValueError:
                y = y - 1
                break
            finally:
                log.append((i, j))
            y = y + j
        else:
            y = y + 10
inner_function
    def inner(x, y):
        w = 0
        <break>
        return x + y
    y = y * inner(x, y) + inner(y, x)
closure
    def inner():
        nonlocal y, x, n
        w = 0
        <break>
        y = y + 1
        n += 1
        return y
    y = inner() + inner()
    log.append(n)
"""

LIVE = {
    "nothing": ("pass", "pass"),
    "much": (
        """
a = [x, y]
b = (a, a)
it = iter([1, 2, 3])
next(it)
c = {'a': a, x.dtype: 2}
d = y
del d
fn = lambda v: (v, a)
""",
        """
kept = [a, b[0] is a, list(it), c['a'] is a, fn(2)[1] is a]
try:
    d
except UnboundLocalError:
    kept.append('unbound')
""",
    ),
}

PROGRAM = """
def program(x, n, log):
    import sys
    w, kept, opaque = 0, [], Opaque(log)
    y = x * 2
{before}
{place}
{after}
    return y + 1, w, kept
"""


def places():
    """Name -> the text of the place, with `<break>` in it."""
    found, name = {}, ""
    for line in PLACES.strip().splitlines():
        if line.startswith(" "):
            found[name] += f"{line[4:]}\n"
        else:
            name = line
            found[name] = ""
    return found


def make(place, kind, live):
    """A program of the matrix."""
    lines = []
    for line in places()[place].splitlines():
        if line.strip() == "<break>":
            lines.append(textwrap.indent(KINDS[kind], line[: line.index("<")]))
        else:
            lines.append(line)
    before, after = (textwrap.indent(part.strip(), "    ") for part in LIVE[live])
    text = PROGRAM.format(
        before=before, place=textwrap.indent("\n".join(lines), "    "), after=after
    )
    scope = {}
    code = compile(text, f"<{place} {kind} {live}>", "exec")
    exec(code, globals(), scope)
    return scope["program"]


MATRIX = list(itertools.product(places(), KINDS, LIVE))
SAMPLE = MATRIX if os.environ.get("AOTDYN_WHOLE_MATRIX") else MATRIX[3::19]


@pytest.mark.parametrize(("place", "kind", "live"), SAMPLE)
def test_break(agree, place, kind, live):
    program = make(place, kind, live)
    found = agree(program, (torch.ones(3), 2, []), (-torch.ones(3), 1, []))
    assert not [each for each in found.obstacles if each.reason != PLAIN]
    assert not any(variant.obstacles for variant in found.variants)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(("place", "kind", "live"), MATRIX[5::97])
def test_entries_anywhere(agree, monkeypatch, place, kind, live):
    monkeypatch.setenv("AOTDYN_BREAK_EVERY", "1")
    program = make(place, kind, live)
    agree(program, (torch.ones(3), 2, []), (-torch.ones(3), 1, []), package=False)
