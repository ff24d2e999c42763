"""Generators and coroutines that are compiled: plain Python, but what they call is served."""

import asyncio
import inspect

import pytest
import torch

import aotdyn
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from aotdyn.runtime.suspended import PLAIN

X = torch.ones(2)


def scaled(x, n):
    return x * n + 1


def generator(x, log):
    for n in range(3):
        try:
            sent = yield scaled(x, n)
            log.append(sent)
        except KeyError as error:
            log.append(repr(error))
            yield "handled"
        finally:
            log.append(n)
    return "end"


async def coroutine(x, n):
    await asyncio.sleep(0)
    y = scaled(x, n)
    await asyncio.sleep(0)
    return scaled(y, n)


async def async_generator(x, log):
    try:
        for n in range(3):
            await asyncio.sleep(0)
            log.append((yield scaled(x, n)))
    finally:
        log.append("closed")


def outer(x, log):
    result = yield from generator(x, log)
    log.append(result)


def play(make):
    """Everything that can be done to a generator."""
    log, seen = [], []
    seen += list(make(X, log))
    running = make(X, log)
    seen += [next(running), running.send(5), running.throw(KeyError("k")), next(running)]
    running.close()
    broken = make(X, log)
    next(broken)
    with pytest.raises(OSError, match="out"):
        broken.throw(OSError("out"))
    return str(seen), log


@pytest.mark.parametrize("function", [generator, outer])
def test_generators(function):
    settings = Settings("eager")
    made = compiled(function, settings)
    assert inspect.isgeneratorfunction(made) and made.__name__ == function.__name__
    assert play(made) == play(function)
    entries = {entry.key.qualname: entry for entry in settings.entries()}
    assert entries["scaled"].linked


def test_coroutines():
    settings = Settings("eager")
    made = compiled(coroutine, settings)
    assert inspect.iscoroutinefunction(made)
    assert torch.equal(asyncio.run(made(X, 3)), asyncio.run(coroutine(X, 3)))
    assert any(entry.linked for entry in settings.entries())


def test_async_generators():
    async def played(make):
        log, seen = [], []
        async for item in make(X, log):
            seen.append(item)
        running = make(X, log)
        seen += [await running.asend(None), await running.asend(7)]
        await running.aclose()
        broken = make(X, log)
        await broken.asend(None)
        with pytest.raises(OSError, match="out"):
            await broken.athrow(OSError("out"))
        return str(seen), log

    settings = Settings("eager")
    made = compiled(async_generator, settings)
    assert inspect.isasyncgenfunction(made)
    assert asyncio.run(played(made)) == asyncio.run(played(async_generator))
    assert any(entry.linked for entry in settings.entries())


def test_the_reason_is_reported():
    with pytest.MonkeyPatch.context() as patch:
        lines = []
        patch.setattr("aotdyn.runtime.suspended.logs.log", lambda kind, text: lines.append(text))
        list(aotdyn.compile(generator, backend="eager")(X, []))
    assert "generator: a generator, coroutine or async frame runs as plain Python" in lines


def values_of(x):
    for n in range(2):
        yield scaled(x, n)


async def answer(x):
    return scaled(x, 2)


def ask(x):
    return asyncio.run(answer(x))


@pytest.mark.parametrize(
    ("call", "name"), [(lambda x: x * 2 + max(map(abs, list_of(x))), "values_of"),
                       (lambda x: x + ask(x * 2), "answer")]
)  # fmt: skip
def test_those_that_eager_code_starts_are_reported(call, name):
    found = aotdyn.explain(call, torch.ones(()))
    assert PLAIN in found.skipped[name]
    assert f"not traced: {name}" in str(found)
    # What they call is an entry all the same.
    assert any(variant.entry.qualname == "scaled" for variant in found.variants)


def list_of(x):
    print(end="")
    return sorted(values_of(x), key=float)


# -- what eager code drives ------------------------------------------------------------


class Entered:
    """An asynchronous context manager that notes what happens to it, and lets no error through."""

    def __init__(self, log):
        self.log = log

    async def __aenter__(self):
        await asyncio.sleep(0)
        self.log.append("enter")
        return 3

    async def __aexit__(self, kind, error, trace):
        self.log.append(("exit", str(error)))
        return True


async def within(x, log, wrong):
    async with Entered(log) as n:
        y = scaled(x, n)
        if wrong:
            raise ValueError("within")
        return y


def runs_a_context(x, log):
    return [asyncio.run(within(x + 1, log, wrong)) for wrong in (False, True)], log, x * 2


async def collected(x, log):
    found = [item async for item in async_generator(x, log)]
    async for item in async_generator(x * 2, log):
        found.append(item)
    return found


def runs_async_generators(x, log):
    return asyncio.run(collected(x + 1, log)), log


async def together(x, log):
    return await asyncio.gather(*(within(x * n, log, n == 1) for n in range(3)))


def runs_several(x, log):
    return asyncio.run(together(x + 1, log)), log


async def waits_for_compiled(x, log):
    await asyncio.sleep(0)
    log.append("slept")
    return COMPILED(x, 2)


COMPILED = aotdyn.compile(scaled, backend="eager")


def runs_compiled(x, log):
    return asyncio.run(waits_for_compiled(x + 1, log)), log


@pytest.mark.parametrize(
    "program", [runs_a_context, runs_async_generators, runs_several, runs_compiled]
)
def test_coroutines_that_eager_code_runs(agree, program):
    found = agree(program, (X, []))
    assert {each.reason for each in found.obstacles} == {PLAIN}
    # What they call is an entry.
    assert any(v.entry.qualname == "scaled" for v in found.variants) or program is runs_compiled
