"""Exceptions and `with`: what is raised, caught, chained and said.

PYTEST_DONT_REWRITE: asserts are part of the programs.
"""

import contextlib
import math

import torch

import aotdyn
from tests.record.programs import Programs

program = Programs()


class MyErr(Exception):
    def __init__(self, code, msg="m"):
        super().__init__(msg)
        self.code = code


class MyErr2(MyErr):
    pass


class E3(Exception):
    x = 1


class E4(ValueError):
    def __str__(self):
        return "E4!"


class E5(Exception):
    def __init__(self, a, *, b=2):
        self.a = a
        self.b = b


@program()
def p_try(x):
    try:
        raise ValueError("a", 1)
    except ValueError as e:
        return (e.args, str(e), repr(e), type(e).__name__, x)


@program()
def p_else_fin(x):
    l = []
    try:
        l.append(1)
    except ValueError:
        l.append(2)
    else:
        l.append(3)
    finally:
        l.append(4)
    return (l, x + 1)


@program()
def p_fin_ret(x):
    l = []

    def f():
        try:
            return l.append("t") or 1
        finally:
            l.append("f")

    return (f(), l, x)


@program()
def p_fin_override(x):

    def f():
        try:
            return 1
        finally:
            return 2

    return (f(), x)


@program()
def p_nested(x):
    l = []
    try:
        try:
            raise KeyError("k")
        except ValueError:
            l.append("no")
        finally:
            l.append("fin")
    except KeyError as e:
        l.append(str(e))
    return (l, x)


@program()
def p_reraise(x):
    try:
        try:
            raise ValueError("v")
        except ValueError:
            raise
    except ValueError as e:
        return (str(e), x)


@program()
def p_from(x):
    try:
        try:
            raise ValueError("v")
        except ValueError as e:
            raise KeyError("k") from e
    except KeyError as e:
        return (type(e.__cause__).__name__, type(e.__context__).__name__, e.__suppress_context__, x)


@program()
def p_from_none(x):
    try:
        try:
            raise ValueError("v")
        except ValueError as e:
            raise KeyError("k") from None
    except KeyError as e:
        return (e.__cause__, type(e.__context__).__name__, e.__suppress_context__, x)


@program(breaks=None)
def p_from_what_came_before_a_break(x):
    found = []
    causes = [None, KeyError("cause"), KeyError, "no exception", 5]
    for index, cause in enumerate(causes):
        made = ValueError("v")
        print(index)
        try:
            raise made from cause
        except (ValueError, TypeError) as e:
            found.append((type(e), str(e), type(e.__cause__), e.__suppress_context__))
    return found, x


@program()
def p_ctx(x):
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            {}["q"]
    except KeyError as e:
        return (
            e.__cause__,
            type(e.__context__).__name__,
            str(e.__context__),
            e.__suppress_context__,
            x,
        )


@program()
def p_custom(x):
    try:
        raise MyErr(3)
    except MyErr as e:
        return (e.code, str(e), e.args, x)


@program()
def p_custom2(x):
    try:
        raise MyErr2(3, msg="zz")
    except MyErr as e:
        return (e.code, str(e), e.args, type(e).__name__, x)


@program()
def p_custom5(x):
    try:
        raise E5(3, b=4)
    except E5 as e:
        return (e.a, e.b, e.args, str(e), x)


@program()
def p_custom3(x):
    e = E3("q")
    e.note = x
    return (e.x, e.note, str(e), isinstance(e, Exception), str(E4("z")), repr(E4("z")))


@program()
def p_attr(x):
    try:
        raise E3
    except E3 as e:
        e.extra = 5
        return (e.extra, e.args, x)


@program()
def p_tuple(x):
    for k in (ValueError, KeyError, IndexError):
        try:
            raise k("m")
        except (ValueError, KeyError) as e:
            x = x + 1
        except IndexError as e:
            x = x * 2
    return x


@program()
def p_bare(x):
    try:
        raise E3
    except:  # noqa: E722
        return x + 1


@program()
def p_base(x):
    try:
        [][1]
    except LookupError as e:
        return (str(e), type(e) is IndexError, x)


@program()
def p_unbound_e(x):
    try:
        raise ValueError
    except ValueError as e:
        pass
    try:
        e  # noqa: F821
    except UnboundLocalError as q:
        return (str(q), x)


@program(breaks=None)
def p_msgs(x):
    out = []

    def t(f):
        try:
            f()
        except Exception as e:
            out.append((type(e).__name__, str(e), e.args))

    t(lambda: 1 / 0)
    t(lambda: [1][3])
    t(lambda: {}["a"])
    t(lambda: (1,)[2])
    t(lambda: "abc"[9])
    t(lambda: int("q"))
    t(lambda: [].pop())
    t(lambda: {}.pop("z"))
    t(lambda: [1].remove(2))
    t(lambda: [1].index(2))
    t(lambda: "a" + 1)
    t(lambda: 1 + "a")
    t(lambda: None.foo)
    t(lambda: 3())
    t(lambda: len(3))
    t(lambda: iter(3))
    t(lambda: [1, 2] < 3)
    t(lambda: [1]["a"])
    t(lambda: {}[[]])
    t(lambda: {[]})
    t(lambda: set().pop())
    t(lambda: set().remove(1))
    t(lambda: {}.popitem())
    t(lambda: next(iter([])))
    t(lambda: max([]))
    t(lambda: "a".index("b"))
    t(lambda: (1,).index(3))
    t(lambda: float("x"))
    t(lambda: chr(-1))
    t(lambda: [1, 2, 3].insert())
    t(lambda: [].append())
    t(lambda: range(0, 1, 0))
    t(lambda: math.sqrt(-1))
    t(lambda: sum(["a"]))
    t(lambda: [3] * "a")
    t(lambda: -"a")
    t(lambda: ~1.5)
    t(lambda: object().x)
    t(lambda: None[0])
    t(lambda: range(3)[5])
    t(lambda: dict([1]))
    t(lambda: dict([(1,)]))
    t(lambda: dict(1))
    t(lambda: sorted([1, "a"]))
    t(lambda: [1] + (1,))
    t(lambda: isinstance(1, 1))
    t(lambda: 3 in 4)
    t(lambda: "a" in 4)
    t(lambda: setattr(1, "a", 1))
    t(lambda: abs("a"))
    t(lambda: ord("ab"))
    t(lambda: hash([]))
    t(lambda: zip([1], 2))
    t(lambda: enumerate(1))
    t(lambda: list(1))
    t(lambda: int([]))
    t(lambda: "".join([1]))
    return (out, x)


@program()
def p_setitem_msgs(x):
    out = []

    def t(f):
        try:
            f()
        except Exception as e:
            out.append((type(e).__name__, str(e)))

    def a():
        [1][5] = 2

    def b():
        (1,)[0] = 2

    def c():
        "a"[0] = "b"

    def d():
        q = [1]
        del q[4]

    def e():
        q = {}
        del q["z"]

    def f():
        q = [1, 2, 3]
        q[::2] = [1]

    def g():
        a, b = [1]

    def h():
        a, b = [1, 2, 3]

    def i():
        a, *b, c = [1]

    def j():
        a, b = 3

    def k():
        range(3)[0] = 1

    def l():  # noqa: E743
        del (1,)[0]

    def m():
        x.nope

    def n():
        x.nope = 1
        del x.nope
        del x.nope

    for q in (a, b, c, d, e, f, g, h, i, j, k, l):
        t(q)
    return (out, x)


@program()
def p_assert(x):
    try:
        assert x.dim() == 2, f"dim {x.dim()}"
    except AssertionError as e:
        return (str(e), e.args, x)


@program()
def p_assert_ok(x):
    assert x.dim() == 1
    assert isinstance(x, torch.Tensor), "no"
    return x + 1


@program()
def p_suppress(x):
    with contextlib.suppress(KeyError):
        {}["a"]
    with contextlib.suppress(ValueError, KeyError):
        x = x + 1
        raise ValueError
    return x


@program()
def p_suppress2(x):
    try:
        with contextlib.suppress(KeyError):
            raise ValueError("z")
    except ValueError as e:
        return (str(e), x)


class CM:
    def __init__(self, l, sup=False):
        self.l = l
        self.sup = sup

    def __enter__(self):
        self.l.append("in")
        return self

    def __exit__(self, t, v, tb):
        self.l.append(t.__name__ if t else None)
        self.l.append(v is None)
        return self.sup


@program()
def p_cm(x):
    l = []
    with CM(l) as c:
        x = x + 1
    with CM(l, True):
        raise KeyError("a")
    try:
        with CM(l):
            raise ValueError("b")
    except ValueError as e:
        l.append(str(e))
    return (l, x)


@program()
def p_cm_multi(x):
    l = []
    with CM(l) as a, CM(l, True) as b:
        raise KeyError
    return (l, x)


@program()
def p_cm_ret(x):
    l = []

    def f():
        with CM(l):
            return 5

    r = f()
    for i in range(3):
        with CM(l):
            if i == 1:
                break
            continue
    return (r, l, x)


@contextlib.contextmanager
def cmg(l, sup=False):
    l.append("enter")
    try:
        yield 7
    except KeyError as e:
        l.append(("caught", str(e)))
        if not sup:
            raise
    finally:
        l.append("exit")


@program()
def p_ctxmanager(x):
    l = []
    with cmg(l) as v:
        x = x + v
    with cmg(l, True):
        raise KeyError("k")
    try:
        with cmg(l):
            raise KeyError("k2")
    except KeyError as e:
        l.append(str(e))
    try:
        with cmg(l):
            raise ValueError("v")
    except ValueError as e:
        l.append(str(e))
    return (l, x)


@program()
def p_ctxdeco(x):
    l = []

    @cmg(l)
    def f(a):
        l.append("body")
        return a + 1

    return (f(x), l)


@program()
def p_exitstack(x):
    l = []
    with contextlib.ExitStack() as st:
        a = st.enter_context(CM(l))
        b = st.enter_context(cmg(l))
        st.callback(l.append, "cb")
        x = x + b
    return (l, x)


@program()
def p_exitstack_exc(x):
    l = []
    with contextlib.ExitStack() as st:
        st.enter_context(CM(l, True))
        st.push(CM(l))
        raise KeyError
    return (l, x)


@program()
def p_nullctx(x):
    with contextlib.nullcontext(3) as q:
        x = x * q
    return x


@program()
def p_closing(x):
    class_ = []
    with contextlib.closing(Cl(class_)) as c:
        x = x + 1
    return (x, class_)


class Cl:
    def __init__(self, l):
        self.l = l

    def close(self):
        self.l.append("closed")


class CMD(contextlib.ContextDecorator):
    def __enter__(self):
        return self

    def __exit__(self, *a):
        return False


@CMD()
def decorated(a):
    return a * 2


@program()
def p_ctxdecorator(x):
    return decorated(x)


@program()
def p_loop_exc(x):
    out = []
    for i in range(4):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            out.append(i)
        finally:
            out.append("f")
    else:
        out.append("else")
    return (out, x)


@program()
def p_stopiter(x):
    it = iter([1])
    next(it)
    try:
        next(it)
    except StopIteration as e:
        return (e.value, e.args, x)


@program()
def p_exc_arg_tensor(x):
    try:
        raise ValueError(x)
    except ValueError as e:
        return e.args[0] + 1


@program()
def p_exc_ret(x):
    e = ValueError("a", x)
    e2 = MyErr(4)
    return (e.args, e2)


@program(breaks=None)
def p_exc_with_tb(x):
    try:
        raise ValueError("a")
    except ValueError as e:
        return (e.with_traceback(None) is e, e.__traceback__, x)


@program()
def p_note(x):
    e = ValueError("a")
    e.add_note("n")
    return (e.__notes__, x)


@program()
def p_raise_cls_inst(x):
    for k in (ValueError, ValueError()):
        try:
            raise k
        except ValueError as e:
            x = x + len(e.args)
    return x


@program()
def p_raise_bad(x):
    try:
        raise 3
    except TypeError as e:
        return (str(e), x)


@program()
def p_except_bad(x):
    try:
        try:
            raise ValueError
        except 3:
            pass
    except TypeError as e:
        return (str(e), x)


@program(breaks=None)
def p_keyerror_str(x):
    return (
        str(KeyError("a")),
        str(KeyError()),
        str(KeyError(1, 2)),
        repr(KeyError("a")),
        str(OSError(2, "x")),
        x,
    )


@program()
def p_finally_exc(x):
    l = []
    try:
        try:
            raise ValueError("1")
        finally:
            l.append("f")
            raise KeyError("2")
    except KeyError as e:
        return (type(e.__context__).__name__, l, x)


@program()
def p_type_e(x):
    import sys

    try:
        raise ValueError
    except ValueError:
        return (sys.exc_info()[0].__name__, x)


@program()
def p_retry(x):
    n = 0
    while True:
        try:
            n += 1
            if n < 3:
                raise ValueError(n)
            break
        except ValueError:
            x = x + n
    return (x, n)


@program()
def p_exc_is_ctx(x):
    a = None
    try:
        raise ValueError("1")
    except ValueError as e:
        a = e
    try:
        raise a
    except ValueError as e2:
        return (e2 is a, a.__context__, x)


@program()
def p_lookup(x):
    try:
        return {"a": 1}.b
    except AttributeError as e:
        return (str(e), x)


def fails():
    raise ValueError(1)


@program(breaks=None)
def p_tracebacks_are_those_of_python(x):
    try:
        fails()
    except ValueError as error:
        kept = error
    trace = kept.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    line = trace.tb_lineno - fails.__code__.co_firstlineno
    try:
        raise IndexError().with_traceback(kept.__traceback__)
    except IndexError as error:
        again = error.__traceback__.tb_next is kept.__traceback__
    return line, again, x + 1


# -- what operators raise for sizes and types ------------------------------------------------


def _fails(*attempts):
    """What each attempt on a tensor raises; a program of its own for each."""
    for number, attempt in enumerate(attempts):

        def p_attempt(x, attempt=attempt):
            try:
                return attempt(x)
            except (RuntimeError, IndexError, TypeError, ValueError, AttributeError) as e:
                return type(e), str(e), x * 2

        p_attempt.__name__ = f"p_operator_fails_{number}"
        p_attempt.__qualname__ = p_attempt.__name__
        globals()[p_attempt.__name__] = p_attempt
        program()(p_attempt)


_fails(
    lambda x: x @ torch.ones(5),
    lambda x: x + torch.ones(5),
    lambda x: x.view(2, 2),
    lambda x: x[5],
    lambda x: torch.mm(x, x),
    lambda x: x + "a",
    lambda x: torch.relu(x, 1, 2),
    lambda x: x.nope,
    lambda x: torch.cat([x, torch.ones(2, 2)]),
    lambda x: x.sum(3),
    lambda x: list(x[0]),
    lambda x: x.unsqueeze(4),
    lambda x: torch.nn.functional.linear(x, torch.ones(2, 5)),
    lambda x: torch.device("nonsense"),
    lambda x: x.to("nonsense"),
)


@program((torch.ones(3), []))
def p_operator_fails_between_effects(x, log):
    try:
        log.append(1)
        x @ torch.ones(5)
        log.append("never")
    except RuntimeError as e:
        log.append(str(e)[:12])
    finally:
        log.append("finally")
    return log, x + 1


@program()
def p_operator_fails_in_place(x):
    y = x.clone()
    with contextlib.suppress(RuntimeError):
        y.add_(torch.ones(2, 5))
    return y


@program()
def p_operator_fails_in_turns(x):
    for size in (5, 4, 3):
        try:
            return torch.nn.functional.linear(x, torch.ones(2, size)), size
        except RuntimeError:
            continue


@program()
def p_operator_fails_with_a_cause(x):
    try:
        try:
            x.reshape(7)
        except RuntimeError as e:
            raise ValueError("bad") from e
    except ValueError as v:
        return type(v.__cause__), str(v.__cause__), type(v.__context__), x


@program()
def p_operator_fails_in_a_generator(x):
    def items():
        yield 1
        yield x @ torch.ones(5)

    out = []
    try:
        for item in items():
            out.append(item)
    except RuntimeError:
        out.append("end")
    return out, x


@program((torch.ones(3), torch.nn.Parameter(torch.ones(5, 5))))
def p_operator_fails_on_a_parameter(x, w):
    try:
        return x.matmul(w)
    except RuntimeError as e:
        return str(e), w * 2


@program(*((torch.ones(n),) for n in (4, 5, 21)), breaks=None)
def p_operator_fails_for_some_sizes(x):
    try:
        return x.reshape(7, 3) + 1
    except RuntimeError as e:
        return str(e), x


@program(breaks=None)
def p_operator_fails_and_nobody_catches(x):
    with torch.no_grad():
        return x @ torch.ones(5)


@program(breaks=None)
def p_the_text_of_a_syntax_error(x):
    told = []
    for error in (SyntaxError("text"), OSError(2, "text"), KeyError("text")):
        told.append((str(error), repr(error)))
    return told, x


@program(breaks=None)
def p_the_value_of_a_stop_is_set(x):
    stop = StopIteration("spam")
    found = [stop.value]
    stop.value = "eggs"
    try:
        len(range(10**100))
    except OverflowError as error:
        found.append(str(error))
    missing = ImportError("spam", name="n")
    missing.msg = "eggs"
    return found, stop.value, str(stop), stop.args, str(missing), missing.name, x


@program(breaks=None)
def p_ring_of_contexts(x):
    try:
        try:
            raise ValueError(1)
        except ValueError as first:
            first.__context__ = first
            raise TypeError(2)
    except TypeError as second:
        inner = second.__context__
        return type(inner), inner.__context__ is inner, x + 1


@program(breaks=2)
def p_a_stop_told_over_a_break(x):
    stop, other = StopIteration("spam"), StopIteration(1, 2)
    stop.value = "eggs"
    other.args = ("args",)
    aotdyn.graph_break()
    # The second break: the text of one that came in.
    return stop.value, other.value, str(stop), other.args, StopIteration().value, x


class Tagged(Exception):
    """Whatever is set is marked."""

    def __setattr__(self, name, value):
        super().__setattr__(name, ("set", value))


@program(breaks=1)
def p_an_exception_that_marks_what_is_set(x):
    error = Tagged("m")
    error.code = 1
    aotdyn.graph_break()
    return error.code, vars(error), x


class Fixed(Exception):
    """Nothing can be set."""

    __setattr__ = None


@program()
def p_an_exception_on_which_nothing_can_be_set(x):
    error = Fixed("m")
    try:
        error.code = 1
    except TypeError as refused:
        return str(refused), vars(error), x


test_agrees = program.test()
