"""Breaks inside `with`, `try`, `except` and `finally`, and where a callee looks at its caller.

PYTEST_DONT_REWRITE: a traced assert must be the plain instruction.
"""

import contextlib
import inspect
import itertools
import logging
import sys
import warnings

import pytest
import torch

import aotdyn
from tests.record.programs import Note, note


@contextlib.contextmanager
def noting(log, name):
    log.append(("enter", name, torch.is_grad_enabled()))
    try:
        yield name
    except ValueError as error:
        log.append(("error", name, str(error)))
        raise
    finally:
        log.append(("exit", name))


@aotdyn.disable
def fail(log, kind, text):
    log.append(("fail", text))
    raise kind(text)


@aotdyn.disable
def fail_if(condition, kind=ValueError):
    if condition:
        raise kind("failed")
    return 1


def exc_name():
    error = sys.exc_info()[1]
    return type(error).__name__, str(error)


PROGRAMS = {}


def case(*calls, breaks=None, graphs=None, package=True):
    def add(program):
        PROGRAMS[program.__name__] = program, calls, breaks, graphs, package
        return program

    return add


X = torch.arange(3.0)


# -- with ------------------------------------------------------------


@case((X, []), graphs=2, breaks=1)
def in_no_grad(x, log):
    y = x + 1
    with torch.no_grad():
        y = y * 2
        note(log, torch.is_grad_enabled())
        y = y + 3
    return y * 4


@case((X, []))
def in_nested_contexts(x, log):
    with Note(log, "a") as a, torch.no_grad(), Note(log, "b"):
        y = x * 2
        note(log, (a.name, torch.is_grad_enabled()))
        y = y + 1
        with torch.enable_grad():
            note(log, torch.is_grad_enabled())
            y = y * y
    note(log, torch.is_grad_enabled())
    return y


@case((X, [], False), (X, [], True))
def in_swallowing_context(x, log, wrong):
    y = x + 1
    with Note(log, "a", swallow=True):
        y = x * 2
        fail_if(wrong)
        y = x * 3
    return y + 1


@case((X, [], False), (X, [], True))
def in_context_that_raises(x, log, wrong):
    with Note(log, "a"), torch.no_grad():
        y = x * 2
        fail_if(wrong)
        y = y * 3
    return y + 1


@case((X, []))
def state_after_error(x, log):
    try:
        in_context_that_raises(x, log, True)
    except ValueError as error:
        note(log, (str(error), torch.is_grad_enabled()))
    return x + 1, torch.is_grad_enabled()


@case((X, [], False), (X, [], True))
def in_contextmanager(x, log, wrong):
    y = x + 1
    with noting(log, "c") as name:
        y = y * 2
        note(log, name)
        fail_if(wrong)
        y = y + 3
    return y * 4


@case((X, []))
def loop_in_context(x, log):
    with torch.no_grad(), Note(log, "n"):
        for i in range(4):
            x = x + i
            note(log, i)
            x = x * 2
    return x + torch.is_grad_enabled()


@case((X, []))
def context_in_loop(x, log):
    for i in range(4):
        with Note(log, i), torch.set_grad_enabled(i % 2 == 0):
            x = x + i
            if i == 1:
                continue
            note(log, torch.is_grad_enabled())
            if i == 2:
                break
            x = x * 2
    else:
        log.append("else")
    return x + 1


@case((X, []))
def return_in_context(x, log):
    for i in range(3):
        with Note(log, i), noting(log, "g"):
            x = x + i
            note(log, "in")
            if i == 1:
                return x * 2
    return x


@case((X, []))
def in_autocast(x, log):
    w = torch.ones(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x.reshape(1, 3) @ w
        note(log, (str(y.dtype), torch.is_autocast_enabled("cpu")))
        y = y @ w
    note(log, torch.is_autocast_enabled("cpu"))
    return y, x @ w


@case((X, []))
def in_inference_mode(x, log):
    with torch.inference_mode():
        y = x + 1
        note(log, torch.is_inference_mode_enabled())
        y = y * 2
    return y.clone() + 1, y.is_inference()


@case((X, []))
def in_exit_stack(x, log):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(Note(log, "s"))
        stack.callback(log.append, "callback")
        y = x * 2
        note(log, torch.is_grad_enabled())
        y = y + 1
    return y + torch.is_grad_enabled()


@case((X, []))
def in_suppress(x, log):
    y = x + 1
    with contextlib.suppress(KeyError):
        note(log, 1)
        fail(log, KeyError, "k")
        y = x + 2
    with contextlib.suppress(KeyError):
        y = y * 2
        {}["k"]
    return y + 3


@case((X, [], 0), (X, [], 1))
def not_a_context(x, log, which):
    y = x + 1
    try:
        with (3, Note(log, "n"))[which]:
            note(log, "in")
            y = y + 2
    except TypeError as error:
        note(log, str(error))
    return y * 2


@case((X, [], 0), (X, [], 1))
def enter_raises(x, log, which):
    y = x + 1
    try:
        with Note(log, "a"), Stubborn(log, which):
            y = y + 2
    except ValueError as error:
        note(log, str(error))
    return y * 2


class Stubborn:
    def __init__(self, log, where):
        self.log, self.where = log, where

    def __enter__(self):
        print("enter")
        if self.where == 0:
            raise ValueError("enter")

    def __exit__(self, *info):
        print("exit", info[0])
        if self.where == 1:
            raise ValueError("exit")


# -- try ------------------------------------------------------------


@case((X, [], False), (X, [], True), (X, [], False))
def in_try(x, log, wrong):
    y = x + 1
    try:
        y = y * 2
        fail_if(wrong)
        y = y + 3
    except KeyError:
        y = y * 5
    except ValueError as error:
        note(log, str(error))
        y = y - 1
    else:
        y = y + 100
        note(log, "else")
    finally:
        note(log, "finally")
        y = y + 1000
    return y * 2


@case((X, [], ValueError), (X, [], KeyError), (X, [], OSError))
def several_handlers(x, log, kind):
    y = x + 1
    try:
        fail(log, kind, "t")
    except (KeyError, IndexError) as error:
        note(log, exc_name())
        y = y * 2
        note(log, repr(error))
    except ValueError:
        y = y * 3
        note(log, exc_name())
        y = y + 1
        note(log, exc_name())
    note(log, exc_name())
    return y + 1


@case((X, []))
def exc_info_and_context(x, log):
    y = x * 2
    try:
        try:
            fail(log, ValueError, "first")
        except ValueError:
            note(log, exc_name())
            y = y + 1
            fail(log, KeyError, "second")
    except KeyError as error:
        y = y + 2
        note(log, repr(error.__context__))
        note(log, exc_name())
        y = y + 3
    note(log, exc_name())
    return y


@case((X, []))
def bare_raise(x, log):
    y = x * 2
    try:
        try:
            fail(log, ValueError, "first")
        except ValueError:
            y = y + 1
            note(log, "between")
            raise
    except ValueError as error:
        y = y + 2
        note(log, (repr(error), repr(error.__context__), repr(error.__cause__)))
    return y


@case((X, []))
def raise_from(x, log):
    y = x * 2
    try:
        try:
            fail(log, ValueError, "first")
        except ValueError as first:
            note(log, "between")
            raise KeyError("second") from first
    except KeyError as error:
        y = y + 2
        note(log, (repr(error), repr(error.__context__), repr(error.__cause__)))
    return y


@case((X, []))
def traced_raise_and_break_in_handler(x, log):
    y = x * 2
    try:
        raise ValueError("own")
    except ValueError as error:
        y = y + 1
        note(log, (repr(error), exc_name(), error.__traceback__ is not None))
        y = y + 2
    return y


@case((X, {"a": 1}, []))
def key_error_and_break_in_handler(x, d, log):
    y = x * 2
    for key in ("a", "b", "a"):
        try:
            y = y + d[key]
        except KeyError as error:
            y = y - 1
            note(log, (repr(error), error.args))
    return y


def inner_raises(x, n):
    if n > 1:
        raise ValueError(f"n is {n}")
    return x + n


@case((X, [], 1), (X, [], 2))
def inlined_raise_and_break_in_handler(x, log, n):
    try:
        y = inner_raises(x * 2, n)
    except ValueError as error:
        note(log, str(error))
        y = x
    return y + 1


@case((X, [], True), (X, [], False))
def finally_returns(x, log, wrong):
    try:
        y = x + 1
        fail_if(wrong)
        return y
    finally:
        note(log, "finally")
        if wrong:
            return x * 7


@case((X, [], True), (X, [], False))
def finally_runs_on_error(x, log, wrong):
    y = x + 1
    try:
        y = y * 2
        fail_if(wrong)
    finally:
        y = y + 1
        note(log, ("finally", exc_name()))
        y = y + 2
        log.append(y.sum().item())
    return y


@case((X, []))
def loop_in_try(x, log):
    try:
        for i in range(5):
            x = x + i
            note(log, i)
            fail_if(i == 3)
            x = x * 2
    except ValueError:
        x = x - 1
        note(log, "caught")
    return x + 1


@case((X, []))
def try_in_loop(x, log):
    for i in range(6):
        try:
            x = x + i
            if i == 4:
                break
            fail_if(i % 2)
            x = x * 2
        except ValueError as error:
            note(log, str(error))
            continue
        finally:
            note(log, ("finally", i))
            x = x + 1
    else:
        x = x * 0
    return x


@case((X, []), (X.double(), []))
def deleted_and_unbound(x, log):
    a = x + 1
    b = x + 2
    del a
    try:
        note(log, "b")
        if x.dtype is torch.float32:
            c = b + 1
        note(log, "c")
        return c + 1
    except UnboundLocalError as error:
        note(log, type(error).__name__)
    try:
        a  # noqa: B018, F821
    except UnboundLocalError as error:
        note(log, type(error).__name__)
    return b


@case((X, []))
def error_name_is_unbound_after(x, log):
    try:
        fail(log, ValueError, "v")
    except ValueError as error:
        note(log, str(error))
    try:
        return error  # noqa: F821
    except UnboundLocalError:
        note(log, "unbound")
    return x + 1


@case((X, []))
def nested_handlers(x, log):
    y = x + 1
    try:
        fail(log, ValueError, "outer")
    except ValueError as outer:
        y = y + 1
        try:
            note(log, exc_name())
            fail(log, KeyError, "inner")
        except KeyError as inner:
            y = y + 2
            note(log, (exc_name(), repr(inner.__context__)))
            y = y + 3
        note(log, (exc_name(), repr(outer)))
        y = y + 4
    note(log, exc_name())
    return y


@case((X, []))
def operators_that_raise(x, log):
    y = x + 1
    got = []
    for make in (lambda: 1 + "a", lambda: [][3], lambda: None.attr, lambda: int("x")):
        try:
            y = y + make()
        except (TypeError, IndexError, AttributeError, ValueError) as error:
            note(log, type(error).__name__)
            got.append(str(error))
    return y, got


@case((X,))
def tensor_branch_in_try(x):
    try:
        if x.sum() > 1:
            y = x + 1
        else:
            y = x - 1
        while y.max() < 10:
            y = y * 2
        assert y.min() > 5, "small"
    except AssertionError as error:
        y = y + len(str(error))
    return y


@case((X, []), (torch.zeros(0), []))
def runtime_error_in_the_graph(x, log):
    y = x + 1
    try:
        with torch.no_grad():
            y = y[torch.tensor([7])] * 2
    except IndexError:
        y = x - 1
    return y, torch.is_grad_enabled()


# -- callees that look at the frame ------------------------------------------------------------


@case((X,))
def warning(x):
    y = x + 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("careful", UserWarning, stacklevel=1)
        y = y * 2
    w = caught[0]
    return y + 1, str(w.message), w.filename, w.lineno


class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append((record.getMessage(), record.funcName, record.lineno, record.filename))


keep = Keep()
logger = logging.getLogger("aotdyn-test")
logger.propagate = False
logger.addHandler(keep)
logger.setLevel(logging.INFO)


@case((X,))
def log_lines(x):
    del keep.records[:]
    y = x + 1
    logger.info("one %d", 1)
    y = y * 2
    try:
        logger.info("two")
        raise ValueError("three")
    except ValueError as error:
        logger.info("%s", error)
    return y, list(keep.records)


@case((X,))
def sees_locals(x):
    y = x + 1
    names = sorted(locals())
    z = y * 2
    value = eval("z + y")
    return value, names, sorted(vars()), dir()


def caller_name():
    return inspect.currentframe().f_back.f_code.co_name


@case((X,))
def sees_caller(x):
    y = x + 1
    name = caller_name()
    return y * 2, name


@case((X,))
def imports(x):
    y = x + 1
    import json as j
    import xml.dom.minidom
    from os.path import join, split

    z = y * 2
    return z, j.dumps([1]), join("a", "b"), split("a/b"), xml.dom.minidom.__name__


@case((X,))
def class_statement(x):
    y = x + 1

    class Local:
        factor = 2

        def apply(self, v):
            return v * self.factor

    return Local().apply(y) + 1


counter = 0


@case((X,))
def global_variables(x):
    global counter
    counter = 1
    y = x + 1
    print(counter)
    counter += 1
    z = y * counter
    print(counter)
    del counter
    try:
        counter  # noqa: B018
    except NameError as error:
        print(error)
    counter = 0
    return z


# -- iterators and half-evaluated expressions ------------------------------------------------------


@case((X, []))
def iterators_at_their_position(x, log):
    a = iter([1, 2, 3, 4, 5])
    z = zip([1, 2, 3, 4], "abcd", strict=False)
    e = enumerate([x, x + 1, x + 2], start=3)
    m = map(lambda v: v * 2, [1, 2, 3])
    f = filter(None, [0, 1, 0, 2])
    r = reversed([1, 2, 3])
    d = iter({"a": 1, "b": 2}.items())
    got = [next(a), next(z), next(m), next(f), next(r), next(d), next(e)[0]]
    y = x * 2
    note(log, "break")
    got += [next(a), next(z), next(m), next(f), next(r), next(d), next(e)[0]]
    note(log, "again")
    got += [list(a), list(z), list(m), list(f), list(r), list(d)]
    return y + 1, got


@case((X, []))
def generators_across_breaks(x, log):
    def counting(n):
        for i in range(n):
            log.append(("made", i))
            yield x + i

    fresh = counting(3)
    started = counting(4)
    first = next(started)
    note(log, "break")
    rest = list(started)
    note(log, len(rest))
    return first, rest, list(fresh)


@case((X, []))
def loop_over_generator(x, log):
    total = x * 0
    for i, v in enumerate(x + k for k in range(4)):
        total = total + v
        note(log, i)
        total = total * 2
    return total


@case((X, []))
def comprehensions(x, log):
    a = [note(log, i) + x for i in range(3)]
    b = {k: note(log, k) * x for k in ("a", "b")} if False else {}
    c = [y * 2 for y in a if y.sum() > 4]
    d = {note(log, i) for i in (1, 2)}
    return a, b, c, sorted(d)


@case((X, []))
def half_evaluated(x, log):
    d = {"k": [x, 2]}
    return (
        x + note(log, 1) * (x - note(log, 2)),
        [x * 2, note(log, 3), *[note(log, 4), x], f"{note(log, 5)}-{x.sum().item():.1f}"],
        {"a": note(log, 6), **{"b": note(log, 7)}},
        max(note(log, 8), *[1, 2], key=lambda v: v + note(log, 9)),
        d["k"][note(log, 1)],
        (x if note(log, 0) else x + 1),
        note(log, 1) < note(log, 2) < note(log, 3),
    )


def deeper(x, log, n):
    if n == 0:
        note(log, "deep")
        return x + 1
    return deeper(x * 2, log, n - 1) + deeper(x - 1, log, 0) * n


@case((X, []))
def deep_in_an_expression(x, log):
    return [deeper(x, log, 2) + 1, x * deeper(x, log, 1)]


class Parent:
    scale = 2

    def run(self, x, log):
        note(log, type(self).__name__)
        return x * self.scale

    @classmethod
    def make(cls, log):
        note(log, cls.__name__)
        return cls()

    @property
    def double(self):
        print("property")
        return self.scale * 2

    def __getattr__(self, name):
        print("missing", name)
        return 5

    def __getitem__(self, key):
        print("item", key)
        return key * self.scale

    def __setitem__(self, key, value):
        print("set", key)
        self.__dict__[key] = value

    def __delitem__(self, key):
        print("del", key)
        del self.__dict__[key]

    def __add__(self, other):
        print("add")
        return other + self.scale

    def __bool__(self):
        print("bool")
        return True

    def __iter__(self):
        print("iter")
        return iter([1, 2])

    def __contains__(self, item):
        print("contains")
        return True

    def __eq__(self, other):
        print("eq")
        return False

    def __format__(self, spec):
        print("format", spec)
        return "formatted"


class Kid(Parent):
    scale = 3

    def run(self, x, log):
        y = super().run(x + 1, log)
        note(log, "kid")
        return super().run(y, log) + 1

    @classmethod
    def make(cls, log):
        made = super().make(log)
        note(log, "made")
        return made


@case((X, []))
def methods_and_operators(x, log):
    kid = Kid.make(log)
    y = kid.run(x, log)
    kid["a"] = 1
    got = [kid.double, kid.unknown, kid["a"], kid + 1, 3 in kid, 4 not in kid]
    got += [f"{kid:>5}", kid == 1]
    del kid["a"]
    if kid and not (kid == 2):
        y = y + 1
    a, b = kid
    first, *rest = kid
    total = sum(v for v in kid)
    given = (lambda *v, **k: (v, k))(*kid, k=kid.double)
    return y * 2, got, a, b, first, rest, total, [*kid], given


@case((X, []))
def shared_cells(x, log):
    n = 0

    def bump():
        nonlocal n
        n += 1
        return n

    def later():
        return helper(n)

    note(log, bump())
    x = x + n

    def helper(k):
        return x * k

    note(log, later().sum().item())
    bump()
    y = later()
    fs = []
    for i in range(3):
        fs.append(lambda i=i: (i, n))
        note(log, [f() for f in fs])
        bump()
    return y, n, [f() for f in fs], bump(), n


@case((X, []))
def random_state(x, log):
    a = torch.rand(3)
    note(log, 1)
    b = torch.nn.functional.dropout(x + a, 0.5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        c = torch.rand(2)
        note(log, 2)
        d = torch.rand(2)
    return a, b, c, d, torch.rand(1)


@case((X, []), (X.requires_grad_(False), []))
def aliases(x, log):
    a = [x]
    d = {"a": a, "self": None}
    d["self"] = d
    t = (a, d)
    view = x.view(3)
    view.add_(1)
    note(log, len(a))
    a.append(view)
    d["self"]["new"] = a
    note(log, a is d["new"] is t[0])
    return a is d["a"], d["self"] is d, t[1] is d, x is a[0], view is a[1], len(d), x + 0


@case((X, []), (X, [], 2))
def nested_loops_with_else(x, log, stop=None):
    for i in range(3):
        for j in range(3):
            if j == stop:
                break
            x = x + j
            note(log, (i, j))
        else:
            note(log, "inner else")
            continue
        x = x * 2
        while True:
            x = x - 1
            if note(log, x.sum().item() < 3):
                break
        else:
            note(log, "never")
    else:
        note(log, "outer else")
    return x


@case((X, []))
def starred_and_keywords(x, log):
    def f(a, *args, k=1, **kw):
        note(log, (a, len(args), k, sorted(kw)))
        return x * k + a

    y = f(1, 2, k=3, z=4) + f(*[1, 2, 3], **{"k": 2}) + f(note(log, 1), k=note(log, 2))
    return y, print(1, 2, sep=", ", end="!\n")


@case((X, []))
def conditions_on_tensors(x, log):
    a = x.sum() > 0 and x.max() > 1 or x
    b = not x.min() > 0
    c = 1 if (x > 0).all() else 2
    d = [i for i in range(3) if x[i] > 0.5]
    e = any(v > 1 for v in x)
    f = 0 < x[1] < 2
    note(log, c)
    while (x > 5).sum() == 0:
        x = x * 2
    return a, b, c, d, e, f, x


@case((X, [1, 2, 3], {"a": 1}, []))
def iterators_over_what_was_changed(x, xs, d, log):
    xs.append(4)
    back = reversed(xs)
    d["b"] = 2
    keys = iter(d)
    forth = iter(xs)
    got = [next(forth), next(forth)]
    xs.append(5)
    y = x * 2
    note(log, "break")
    got += [list(back), list(keys), list(forth)]
    for v in xs:
        if len(xs) < 9:
            xs.append(v)
        note(log, v)
    return y + 1, got


@case((X, [1, 2], []))
def iterators_that_read_at_once(x, xs, log):
    own = [1, 2]
    xs.append(3)
    made = [
        itertools.permutations(xs, 2),
        itertools.combinations(iterable=own, r=2),
        itertools.product(own, xs),
        itertools.combinations_with_replacement(own, 2),
        itertools.chain.from_iterable([own, xs]),
        itertools.chain.from_iterable(iter([own])),
        itertools.chain(own, [own]),
    ]
    own.append(3)
    xs.append(4)
    note(log, "break")
    return [list(each) for each in made], x + 1


@case((X, []))
def methods_of_numbers(x, log):
    y = x + 1
    method = (258).to_bytes
    note(log, "break")
    return method(2, "big"), y


@case((X, []))
def methods_are_compared(x, log):
    n = Note(log, "n")
    enter = n.__enter__
    note(log, "break")
    return enter == n.__enter__, enter is n.__enter__, enter.__self__ is n, x + 1


@case((X, []))
def attributes_of_exceptions(x, log):
    try:
        fail(log, ValueError, "v")
    except ValueError as error:
        error.extra = x + 1
        error.add_note("noted")
        note(log, sorted(vars(error)))
        return error.extra, error.args, error.__notes__


@pytest.mark.parametrize("name", PROGRAMS)
def test_breaks_at(agree, name):
    program, calls, breaks, graphs, package = PROGRAMS[name]
    agree(program, *calls, breaks=breaks, graphs=graphs, package=package)


def exported_buffer(x):
    """The view is not used again, and keeps the array from being resized as long as the frame."""
    array = bytearray(8)
    view = memoryview(array)  # noqa: F841
    array[2:4] = b"ab"
    try:
        array.append(1)
    except BufferError:
        return x + 1, bytes(array)
    return x - 1, bytes(array)


def test_a_memoryview_that_is_not_used_again(agree):
    agree(exported_buffer, (torch.ones(2),))
