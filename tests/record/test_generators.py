"""Generators, iterators, `itertools`, comprehensions."""

import collections
import collections.abc
import contextlib
import itertools
import operator
import sys

import pytest
import torch

import aotdyn
from tests.record.programs import Programs, note

program = Programs()


def g3(x):
    for i in range(3):
        yield (x + i)


@program()
def p_gen(x):
    return (list(g3(x)), sum(g3(1)), [a for a in g3(x)], tuple(g3(2)), next(g3(x)))


@program()
def p_genexp(x):
    return (
        sum((i * x for i in range(4))),
        any((i > 2 for i in range(5))),
        list((a + 1 for a in [1, 2])),
        max((i for i in [3, 9])),
        {k: v for k, v in ((i, i) for i in range(2))},
        ",".join((str(i) for i in range(3))),
        dict(((i, x) for i in "ab")),
        set((i for i in [1])),
        sorted((i for i in (3, 1))),
    )


@program()
def p_yieldfrom(x):

    def f():
        r = yield from g()
        yield r

    def g():
        yield 1
        yield x
        return "ret"

    return list(f())


@program()
def p_yieldfrom_list(x):

    def f():
        yield from [1, x]
        yield from "ab"
        yield from range(2)

    return list(f())


@program()
def p_send(x):

    def f():
        t = 0
        while True:
            v = yield t
            if v is None:
                return
            t = t + v

    g = f()
    next(g)
    a = g.send(x)
    b = g.send(2)
    try:
        g.send(None)
    except StopIteration as e:
        r = e.value
    return (a, b, r)


@program()
def p_throw(x):
    l = []

    def f():
        try:
            yield 1
        except ValueError as e:
            l.append(str(e))
            yield 2
        finally:
            l.append("fin")

    g = f()
    next(g)
    r = g.throw(ValueError("z"))
    g.close()
    return (r, l, x)


@program()
def p_throw2(x):

    def f():
        yield 1

    g = f()
    next(g)
    try:
        g.throw(KeyError, "q")
    except KeyError as e:
        r = str(e)
    g2 = f()
    try:
        g2.throw(KeyError("never started"))
    except KeyError as e:
        r2 = str(e)
    return (r, r2, list(g2), x)


@program()
def p_close(x):
    l = []

    def f():
        try:
            while True:
                yield len(l)
        except GeneratorExit:
            l.append("ge")
            raise
        finally:
            l.append("fin")

    g = f()
    next(g)
    g.close()
    g.close()
    return (l, list(g), x)


@program()
def p_close_unstarted(x):

    def f():
        yield 1

    g = f()
    g.close()
    return (list(g), x)


@program()
def p_close_ignored(x):

    def f():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    g = f()
    next(g)
    try:
        g.close()
    except RuntimeError as e:
        return (str(e), x)


@program()
def p_retval(x):

    def f():
        yield 1
        return x + 1

    g = f()
    next(g)
    try:
        next(g)
    except StopIteration as e:
        return e.value


@program()
def p_ret_gen(x):
    y = x + 1
    return g3(y)


@program()
def p_ret_genexp(x):
    return (i * x for i in range(3))


@program()
def p_partly(x):
    g = g3(x)
    a = next(g)
    return (a, list(g), list(g))


@program(breaks=None)
def p_partly_out(x):
    g = g3(x)
    a = next(g)
    return (a, g)


@program()
def p_partly_it(x):
    it = iter([1, 2, 3, x])
    next(it)
    return (list(it), it)


@program(breaks=None)
def p_partly_it2(x):
    it = iter({"a": 1, "b": 2}.items())
    next(it)
    z = zip([1, 2], [3, 4])
    next(z)
    e = enumerate("abc", 5)
    next(e)
    m = map(abs, [-1, -2])
    next(m)
    r = reversed([1, 2, 3])
    next(r)
    return (it, z, e, m, r, x + 1)


@program()
def p_stopiter_in_gen(x):

    def f():
        yield 1
        raise StopIteration("s")

    try:
        list(f())
    except RuntimeError as e:
        return (str(e), type(e.__cause__).__name__, x)


@program()
def p_next_in_gen(x):

    def f():
        yield next(iter([]))

    try:
        list(f())
    except RuntimeError as e:
        return (str(e), x)


@program()
def p_running(x):

    def f():
        yield next(g)

    g = f()
    try:
        next(g)
    except ValueError as e:
        return (str(e), x)


@program()
def p_gen_attr(x):
    g = g3(x)
    return (g.__name__, isinstance(g, collections.abc.Generator), iter(g) is g, hasattr(g, "send"))


@program()
def p_gen_cls(x):
    return (list(GC(x)), [q for q in GC(1)])


class GC:
    def __init__(self, v):
        self.v = v

    def __iter__(self):
        for i in range(2):
            yield (self.v * i)


@program()
def p_gen_order(x):
    l = []

    def f():
        for i in range(3):
            l.append(("y", i))
            yield i

    for i in f():
        l.append(("b", i))
    return (l, x)


@program()
def p_gen_unpack(x):
    a, b, c = g3(x)
    p, *q = g3(1)
    return (a, b, c, p, q, [*g3(1)], max(*g3(2)))


@program()
def p_gen_exc(x):

    def f():
        yield 1
        raise KeyError("in gen")

    try:
        for i in f():
            x = x + i
    except KeyError as e:
        return (str(e), x)


@program(breaks=None)
def p_gen_handled(x):

    def f():
        try:
            raise ValueError("a")
        except ValueError as e:
            yield str(e)
        yield 2

    l = []
    g = f()
    l.append(next(g))
    try:
        raise
    except RuntimeError as e:
        l.append(str(e))
    l.append(next(g))
    return (l, x)


@program()
def p_gen_pipeline(x):

    def nums(n):
        yield from range(n)

    def sq(it):
        for i in it:
            yield (i * i)

    return sum(sq((i for i in nums(5) if i % 2))) * x


@program()
def p_gen_inf(x):

    def cnt():
        i = 0
        while True:
            yield i
            i += 1

    return (
        list(itertools.islice(cnt(), 3)),
        next((i for i in cnt() if i > 4)),
        [a for a, _ in zip(cnt(), range(2))],
        x,
    )


@program()
def p_itertools(x):
    I = itertools
    return (
        list(I.chain([1], [x], "a")),
        list(I.chain.from_iterable([[1], [2]])),
        list(I.islice([1, 2, 3, 4], 1, None, 2)),
        list(I.product([1, 2], "ab")),
        list(I.product([0, 1], repeat=2)),
        list(I.permutations([1, 2, 3], 2)),
        list(I.combinations([1, 2, 3], 2)),
        list(I.combinations_with_replacement([1, 2], 2)),
        list(I.repeat(x, 2)),
        list(I.zip_longest([1, 2], [3], fillvalue=0)),
        list(I.accumulate([1, 2, 3])),
        list(I.accumulate([1, 2, 3], operator.mul, initial=2)),
        list(I.takewhile(lambda a: a < 3, [1, 2, 3, 1])),
        list(I.dropwhile(lambda a: a < 3, [1, 2, 3, 1])),
        list(I.starmap(pow, [(2, 3), (3, 2)])),
        list(I.filterfalse(lambda a: a % 2, range(4))),
        list(I.compress("abc", [1, 0, 1])),
        list(I.pairwise([1, 2, 3])),
        [(k, list(g)) for k, g in I.groupby("aabbc")],
        [(k, list(g)) for k, g in I.groupby([1, 3, 2], key=lambda a: a % 2)],
    )


@program()
def p_itertools2(x):
    c = itertools.count(3, 2)
    a = [next(c), next(c)]
    cy = itertools.cycle([1, 2])
    b = [next(cy) for _ in range(5)]
    t1, t2 = itertools.tee([1, 2, 3])
    d = (list(t1), list(t2))
    r = itertools.repeat(5)
    return (
        a,
        b,
        d,
        [next(r)] * 2,
        x,
        [i for i, _ in zip(itertools.count(), "ab")],
        list(zip(itertools.repeat(x), range(2))),
    )


@program()
def p_it_ret(x):
    return (itertools.chain([1], [x]), itertools.count(2), itertools.islice([1, 2, 3], 2))


@program()
def p_it_groupby_partial(x):
    out = []
    for k, g in itertools.groupby([1, 1, 2, 3]):
        out.append((k, next(g)))
    return (out, x)


@program()
def p_enum_zip(x):
    return (
        list(enumerate("ab", 1)),
        list(zip([1, 2], "ab", (x, x))),
        list(zip()),
        list(map(lambda a, b: a + b, [1], [x])),
        list(reversed(range(3))),
        dict(enumerate("a")),
        list(zip(*[(1, 2), (3, 4)])),
    )


@program()
def p_zip_strict(x):
    try:
        list(zip([1], [1, 2], strict=True))
    except ValueError as e:
        m = str(e)
    try:
        list(zip([1, 2], [1], [1, 2], strict=True))
    except ValueError as e:
        return (m, str(e), x)


@program()
def p_iter_sentinel(x):
    l = [3, 2, 1]
    return (list(iter(l.pop, 2)), l, x)


@program()
def p_mut_iter(x):
    l = [1, 2, 3]
    out = []
    for a in l:
        out.append(a)
        if len(l) < 6:
            l.append(a * 10)
    d = {"a": 1}
    try:
        for k in d:
            d["b"] = 2
    except RuntimeError as e:
        m = str(e)
    s = {1}
    try:
        for k in s:
            s.add(2)
    except RuntimeError as e:
        m2 = str(e)
    return (out, m, m2, x)


@program()
def p_mut_iter2(x):
    d = {"a": 1, "b": 2}
    for k in d:
        d[k] = x
    try:
        for k in list(d):
            del d[k]
        for k, v in d.items():
            pass
    except RuntimeError as e:
        return str(e)
    return d


@program(breaks=None)
def p_keys_changed(x):
    d = {1: 1, 2: 2}
    try:
        for k in d:
            del d[k]
            d[k + 5] = 1
    except RuntimeError as e:
        return (str(e), x)


async def co(x):
    return x


@program()
def p_gen_stored(x):
    d = {"g": g3(x)}
    return (next(d["g"]), next(d["g"]))


@program()
def p_gen_len(x):
    try:
        len(g3(x))
    except TypeError as e:
        return str(e)


@program()
def p_comp_scope(x):
    i = 7
    a = [i for i in range(3)]
    b = [[j for j in range(i)] for i in range(3)]
    c = [(i, j) for i in range(2) for j in range(2) if i != j]
    return (i, a, b, c, x, [y for i in [1, 2] if (y := (i * 2)) > 2], y)


@program()
def p_comp_closure(x):
    fs = [lambda: i for i in range(3)]
    return ([f() for f in fs], x)


@program(breaks=None)
def p_left_half_way(x):
    log = []

    def g():
        try:
            yield 1
            yield 2
        finally:
            log.append("left")

    def first():
        log.append(next(g()))
        for value in g():
            break
        log.append(value)

    first()
    a = g()
    log.append(next(a))
    a = None
    return log, x


class Pages(collections.abc.Sequence):
    """Its inherited `__iter__` waits in a `try` with a clause for IndexError."""

    def __init__(self, *pages):
        self.pages = pages

    def __len__(self):
        return len(self.pages)

    def __getitem__(self, index):
        return self.pages[index]


@program(breaks=0)
def p_left_where_only_other_exceptions_are_caught(x):
    def g():
        try:
            try:
                yield 1
            except KeyError:
                yield 2
            except ValueError as error:
                yield error
        except IndexError:
            yield 3

    pages = Pages(1, 2, x)
    return any(torch.is_tensor(page) for page in pages), 2 in pages, next(iter(pages)), next(g())


@program(breaks=None)
def p_left_where_all_is_caught(x):
    log = []

    def bare():
        try:
            yield 1
        except:
            log.append("bare")
            raise

    def base():
        try:
            yield 1
        except BaseException as error:
            log.append(type(error))

    log.append(next(bare()))
    log.append(next(base()))
    return log, x


@program(breaks=None)
def p_left_with_its_frame(x):
    log = []

    def g():
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, "closed")
            yield 1

    def run():
        a = g()
        log.append(next(a))
        log.append("end")

    run()
    return log, x


def steps(n, x, log):
    try:
        for i in range(n):
            sent = yield x * i
            if sent is not None:
                log.append(sent)
    finally:
        log.append("ended")


def nested(n, x, log):
    seen = [n]

    def inner():
        seen.append(1)
        yield x + len(seen)
        seen.append(2)
        yield x + len(seen)

    yield from inner()
    yield from steps(n, x, log)


@contextlib.contextmanager
def logged(name, log, k=2):
    y = k * 2
    try:
        yield y
    except ValueError as error:
        log.append(("error", str(error)))
    else:
        log.append("no error")
    finally:
        log.append(("out", name, y))


@program(breaks=1)
def p_context_manager_around_a_break(x):
    log = []
    with logged("a", log) as v:
        x = x + v
        note(log, "between")
        x = x * 2
    return x, log


@program(breaks=None)
def p_context_managers_around_breaks(x):
    log = []
    with logged("a", log) as v, logged("b", log, k=3) as w:
        x = x + v
        note(log, "between")
        x = x * w
        if x.sum() > 5:
            raise ValueError("big")
    return x, log


@program(breaks=3)
def p_exit_stack_around_a_break(x):
    """What the stack lets go of holds generators, which may have to end."""
    log = []
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(logged("a", log))
        note(log, "between")
        x = x * a + stack.enter_context(logged("b", log))
    return x, log


@program(breaks=None)
def p_waits_across_a_break(x):
    log = []
    generator = steps(3, x, log)
    found = [next(generator)]
    note(log, "between")
    found.append(next(generator))
    found.append(generator.send("sent"))
    generator.close()
    return found, log


@program(breaks=0)
def p_waits_when_returned(x):
    log = []
    generator = steps(3, x, log)
    return next(generator), generator, log


@program(breaks=None)
def p_waits_in_a_loop(x):
    log, found = [], []
    for item in steps(3, x, log):
        note(log, "loop")
        found.append(item + 1)
    return found, log


@program(breaks=None)
def p_waits_in_yield_from(x):
    log = []
    generator = nested(2, x, log)
    found = [next(generator)]
    note(log, "between")
    return found, [*generator], log


@program(breaks=None)
def p_finished_before_a_break(x):
    log = []
    generator = nested(2, x, log)
    found = [*generator]
    note(log, "between")
    return found, next(generator, "none"), generator.gi_frame, log


@program(breaks=None)
def p_throws_into_one_that_waited(x):
    log = []
    generator = nested(2, x, log)
    found = [next(generator)]
    note(log, "between")
    try:
        generator.throw(KeyError("k"))
    except KeyError as error:
        log.append(repr(error))
    return found, next(generator, None), log


@program(breaks=None)
def p_waits_while_it_handles_an_exception(x):
    log = []

    def g():
        try:
            raise KeyError("k")
        except KeyError as error:
            log.append((yield x))
            log.append(repr(error))
            raise

    generator = g()
    found = [next(generator)]
    note(log, "between")
    try:
        generator.send("sent")
    except KeyError as error:
        log.append(repr(error.__context__))
    return found, log


@program(breaks=None)
def p_ends_with_its_frame_after_an_exception(x):
    log = []

    def run():
        try:
            generator = steps(2, x, log)
            next(generator)
            note(log, "between")
            raise KeyError("a")
        except KeyError:
            return next(generator)

    return run(), list(log)


@program(breaks=None)
def p_ends_where_it_is_rebound(x):
    log = []
    generator = steps(2, x, log)
    next(generator)
    note(log, "between")
    generator = steps(2, x + 1, log)
    log.append("rebound")
    found = [next(generator)]
    del generator
    log.append("deleted")
    return found, log


@program(breaks=None)
def p_ends_where_its_loop_is_left(x):
    log = []
    for value in steps(3, x, log):
        note(log, "turn")
        break
    log.append("after")
    note(log, "note")
    return value, log


@program(breaks=None)
def p_ends_where_its_loop_is_left_for_a_tensor(x):
    log = []
    for value in steps(3, x, log):
        x = x + value
        if x.sum() > 0:
            break
    log.append("after")
    return x, log


@program(breaks=None)
def p_ends_where_it_is_deleted(x):
    log = []
    generator = steps(2, x, log)
    x = x + next(generator)
    note(log, "between")
    log.append("before")
    x = x + next(generator)
    log.append("still")
    note(log, "again")
    del generator
    log.append("after")
    return x, log


class Noted:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("gone")


@aotdyn.disable
def noted(log):
    return Noted(log)


def is_deleted(x, log):
    kept = noted(log)
    x = x + 1
    del kept
    log.append("after")
    note(log, "note")
    return x


def is_rebound(x, log, first=None):
    kept, other = noted(log), (lambda: first)
    x = x + 1
    kept = other()
    log.append("after")
    note(log, "note")
    return x, kept


def is_rebound_in_a_loop(x, log):
    for i in range(3):
        kept = noted(log)
        x = x + i
        log.append(i)
    log.append("after")
    return x, kept is None


@pytest.mark.parametrize("function", [is_deleted, is_rebound, is_rebound_in_a_loop])
def test_what_has_an_end_ends_where_the_frame_drops_it(function):
    expected, log = [], []
    function(torch.ones(2), expected)
    served = aotdyn.compile(function, backend="eager")
    for _ in range(3):
        log.clear()
        served(torch.ones(2), log)
        assert log == expected


@program(breaks=None)
def p_waits_without_locals(x):
    def g():
        yield 1
        yield 2

    log = []
    generator = g()
    found = [next(generator)]
    note(log, "between")
    return found, list(generator), x


@program()
def p_what_is_thrown_comes_from_what_is_handled(x):
    def inner():
        yield

    def handling():
        try:
            raise KeyError("a")
        except KeyError:
            yield from inner()

    generator = handling()
    generator.send(None)
    try:
        generator.throw(ValueError)
    except ValueError as error:
        return type(error.__context__), error.__context__.args, x


# -- iterators of the program below `yield from` ----------------------------------------------


class Ones:
    def __init__(self, log, own=False):
        self.log = log
        if own:
            self.close = lambda: log.append("own close")

    def __iter__(self):
        return self

    def __next__(self):
        return 1


class Closes(Ones):
    def close(self):
        self.log.append("closed")


class Throws(Closes):
    def throw(self, kind, *rest):
        self.log.append(("thrown", kind))
        return 7


class Fails(Ones):
    def close(self):
        raise ValueError("closing")


class AskedFor(Ones):
    def __getattr__(self, name):
        self.log.append(name)
        raise AttributeError(name)


class Broken(Ones):
    def __getattr__(self, name):
        raise ZeroDivisionError(name)


def below(inner):
    try:
        yield from inner
    except ValueError as error:
        yield "caught", str(error)


def _ways(make):
    def p_ends(x, log):
        found = []
        for end in (
            lambda each: each.close(),
            lambda each: each.throw(KeyError),
            lambda each: each.throw(GeneratorExit),
            lambda each: each.throw(ValueError("v")),
        ):
            waiting = below(make(log))
            found.append(next(waiting))
            try:
                found.append(end(waiting))
            except BaseException as error:
                found.append((type(error), str(error)))
        return found, x

    p_ends.__name__ = f"p_{getattr(make, '__name__', 'own')}_below_yield_from"
    program((torch.ones(2), []), breaks=None)(p_ends)


for _make in (Ones, Closes, Throws, Fails, AskedFor, lambda log: Ones(log, True)):
    _ways(_make)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_error_that_python_only_tells_of(agree, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: told.append(error.exc_type))

    def p(x):
        waiting = below(Broken([]))
        next(waiting)
        return waiting.close(), x

    found = agree(p, (torch.ones(2),), package=False)
    assert len(told) == 2 * len(found.outcomes) and {*told} == {ZeroDivisionError}


@program((torch.ones(2), []), breaks=None)
def p_left_half_way_below_yield_from(x, log):
    def first():
        for value in below(Closes(log)):
            return value

    waiting = below(Closes(log))
    found = next(waiting), first()
    log.append("first")
    del waiting
    log.append("deleted")
    for value in below(Closes(log)):
        if value:
            break
    log.append("after")
    return found, x


test_agrees = program.test()
