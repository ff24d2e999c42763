"""Generators over graph breaks: one that waits when the graph breaks is run on by the entry that
goes on, and by plain Python where that comes first."""

import contextlib

import torch

from tests.record.programs import Programs, note

program = Programs()
TWICE = [(torch.arange(3.0) + 1, []), (torch.arange(3.0) + 2, [])]


@contextlib.contextmanager
def scaled(x, log):
    log.append("in")
    y = x * 2
    try:
        yield y
    except KeyError as e:
        log.append(repr(e))
    finally:
        y.add_(1)
        log.append("out")


@program(*TWICE, breaks=1)
def p_a_context(x, log):
    with scaled(x, log) as y:
        z = y + 1
        note(log, 1)
        z = z * 2
    return z + 1, y, log


@program(*TWICE, breaks=1)
def p_a_context_that_swallows(x, log):
    with scaled(x, log) as y:
        z = y + 1
        note(log, 1)
        raise KeyError("k")
    return z, y, log


@program(*TWICE, breaks=2)
def p_two_contexts(x, log):
    with scaled(x, log) as y, scaled(x + 1, log) as w:
        note(log, 1)
        x = y + w
        note(log, 2)
        x = x * 2
    return x, log


def gen(x, log, n=3):
    for i in range(n):
        try:
            got = yield x + i
            log.append(got)
        finally:
            log.append(i)
    return "end"


@program(*TWICE, breaks=None)
def p_a_loop(x, log):
    out = 0
    for v in gen(x, log):
        out = out + v
        note(log, "n")
        out = out * 2
    return out, log


@program(*TWICE, breaks=2)
def p_send_and_close(x, log):
    g = gen(x, log)
    a = next(g)
    note(log, "n")
    b = g.send(5)
    note(log, "m")
    g.close()
    return a + b, log


@program(*TWICE, breaks=1)
def p_its_end(x, log):
    g = gen(x, log, 1)
    a = next(g)
    note(log, "n")
    try:
        next(g)
    except StopIteration as e:
        log.append(e.value)
    return a * 2, log, next(g, "over")


@program(*TWICE, breaks=1)
def p_throw(x, log):
    g = gen(x, log)
    a = next(g)
    note(log, "n")
    try:
        g.throw(ValueError("v"))
    except ValueError as e:
        log.append(str(e))
    return a * 2, log, list(g)


@program(*TWICE, breaks=1)
def p_run_on_by_eager_code(x, log):
    g = gen(x, log)
    a = next(g)
    note(log, next(g))
    b = next(g)
    return a * 2 + b, log, list(g)


def outer(x, log):
    r = yield from gen(x, log, 2)
    log.append(r)
    yield x * 10


@program(*TWICE, breaks=None)
def p_one_in_another(x, log):
    out = 0
    for v in outer(x, log):
        out = out + v
        note(log, "n")
    return out, log


@program(*TWICE, breaks=None)
def p_that_shares_variables(x, log):
    k = 2

    def g():
        nonlocal k
        while k < 5:
            yield x * k
            k += 1

    out = []
    for v in g():
        out.append(v)
        note(log, k)
        k += 1
    return out, k, log


@program(*TWICE, breaks=1)
def p_an_expression(x, log):
    g = (x * i for i in range(4))
    a = next(g)
    note(log, 1)
    return a + sum(g), log


@program(*TWICE, breaks=2)
def p_within_blocks(x, log):
    def g():
        with scaled(x, log) as y:
            for i in [1, 2, 3]:
                yield y * i

    it = g()
    a = next(it)
    note(log, 1)
    b = next(it)
    note(log, 2)
    return a + b, list(it), log


@program(*TWICE, breaks=1)
def p_run_on_again(x, log):
    g = gen(x, log)
    next(g)
    note(log, 1)
    next(g)
    return g.__name__, next(g), log


@program(*TWICE, breaks=None)
def p_dropped(x, log):
    g = gen(x, log)
    next(g)
    note(log, 1)
    del g
    log.append("deleted")
    return x, log


@program(*TWICE, breaks=None)
def p_under_two_names(x, log):
    g = gen(x, log)
    h = g
    next(g)
    note(log, 1)
    return next(h) + next(g), g is h, log


@program(*TWICE, breaks=2)
def p_in_an_object(x, log):
    class B:
        pass

    b = B()
    b.g = gen(x, log)
    next(b.g)
    note(log, 1)
    y = next(b.g)
    note(log, 2)
    return y + next(b.g), [v for v in b.g], log


@program(*TWICE, breaks=1)
def p_at_a_branch(x, log):
    g = gen(x, log)
    y = next(g)
    if y.sum() > 0:
        y = y + next(g)
    else:
        y = y - next(g)
    return y, log


@program(*TWICE, breaks=None)
def p_while_handling(x, log):
    def g():
        try:
            raise KeyError("a")
        except KeyError as e:
            yield 1
            log.append(repr(e))
        yield 2

    it = g()
    a = next(it)
    note(log, 1)
    return a, list(it), x, log


def counted(x, n=30):
    for i in range(n):
        yield x + i


def counted_twice(x, n=30):
    for v in [float(i) for i in range(n)]:
        yield x * v, v


def batches(data):
    for k, v in enumerate(data):
        yield {"k": k, "v": v}


@program(*TWICE, breaks=None)
def p_a_long_loop(x, log):
    out = 0
    for v in counted(x):
        out = out + v
        note(log, 1)
    return out, log


@program(*TWICE, breaks=None)
def p_a_long_loop_with_floats(x, log):
    out = 0
    for v, s in counted_twice(x):
        out = out + v * s
        note(log, s)
    return out, log


@program(*[(torch.arange(40.0).reshape(20, 2), [])] * 2, breaks=None)
def p_a_loop_over_dicts(x, log):
    out = 0
    for b in batches(list(x)):
        out = out + b["v"] * b["k"]
        if out.sum() > 100:
            out = out / 2
    return out, log


def made_of(text):
    space = {}
    exec(f"def walk(x):\n    yield x\n    {text}\n    yield x * 2", space)
    return space["walk"]


WALKS = [made_of(f"yield x + {n}") for n in range(12)]


@program(*[(torch.arange(3.0), walk, []) for walk in WALKS], breaks=None)
def p_other_generators_each_time(x, walk, log):
    for v in walk(x):
        note(log, v.sum().item())
        x = x + v
    return x, log


test_agrees = program.test()
