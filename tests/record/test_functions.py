"""Functions: arguments, closures, decorators, `functools`, `operator`, methods."""

import collections
import functools
import operator
import types
from collections import OrderedDict

import torch

import aotdyn
from tests.record.programs import Programs, note

program = Programs()


@program()
def p_defaults(x):

    def f(a, b=2, *, c=3):
        return a * b + c

    return (f(x), f(x, 3), f(x, c=1), f(x, 4, c=2))


@program()
def p_posonly(x):

    def f(a, /, b, *, c):
        return a + b + c

    return (f(x, 1, c=2), f(x, b=1, c=2))


@program()
def p_posonly_kw(x):

    def f(a, /, **kw):
        return a + kw["a"]

    return f(x, a=3)


@program()
def p_varargs(x):

    def f(*a, **k):
        return (len(a), sorted(k.items()), a[0])

    return f(x, 1, 2, z=1, y=2)


@program()
def p_spread(x):

    def f(a, b, c=1, **k):
        return (a + b * c, k)

    args = (x, 2)
    kw = {"c": 3, "d": 4}
    return (f(*args, **kw), f(x, *[3], **{"q": 1}, **{"r": 2}))


@program()
def p_spread_obj(x):
    class_ = collections.OrderedDict(a=1)

    def f(**k):
        return k

    return (f(**class_), x)


@program()
def p_missing(x):

    def f(a, b):
        return a

    try:
        f(x)
    except TypeError as e:
        return (str(e), x + 1)


@program()
def p_toomany(x):

    def f(a):
        return a

    try:
        f(x, 1, 2)
    except TypeError as e:
        return (str(e), x + 1)


@program()
def p_unexpected(x):

    def f(a):
        return a

    try:
        f(x, b=2)
    except TypeError as e:
        return (str(e), x + 1)


@program()
def p_twice(x):

    def f(a, b=1):
        return a

    try:
        f(x, a=2)
    except TypeError as e:
        return (str(e), x + 1)


@program()
def p_missing_kwonly(x):

    def f(a, *, b, c):
        return a

    try:
        f(x)
    except TypeError as e:
        return (str(e), x + 1)


@program()
def p_posonly_as_kw(x):

    def f(a, /):
        return a

    try:
        f(a=x)
    except TypeError as e:
        return (str(e), x + 1)


@program()
def p_missing3(x):

    def f(a, b, c, d=1):
        return a

    try:
        f()
    except TypeError as e:
        return (str(e), x + 1)


@program()
def p_toomany_kwonly(x):

    def f(a, b=1, *, c=2):
        return a

    try:
        f(x, 1, 2)
    except TypeError as e:
        return (str(e), x + 1)


@program()
def p_closure_write(x):
    n = 0

    def inc(k=1):
        nonlocal n
        n += k
        return n

    inc()
    inc(3)
    return x * n


@program()
def p_shared_cell(x):
    v = 1

    def get():
        return v

    def set(k):
        nonlocal v
        v = k

    set(x + 1)
    a = get()
    set(5)
    return (a, get())


@program()
def p_cells_loop(x):
    fs = []
    for i in range(3):
        fs.append(lambda y: y + i)
    return [f(x) for f in fs]


@program()
def p_cells_loop2(x):
    fs = []
    for i in range(3):

        def mk(i):
            return lambda y: y + i

        fs.append(mk(i))
    return [f(x) for f in fs]


@program()
def p_default_bind(x):
    return [f(x) for f in [lambda y, i=i: y * i for i in range(3)]]


@program()
def p_recursive(x):

    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    return x * fact(6)


@program()
def p_mutual(x):

    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    return (x * even(6), odd(7))


@program()
def p_decor(x):

    def deco(f):

        @functools.wraps(f)
        def w(*a, **k):
            return f(*a, **k) * 2

        return w

    @deco
    def g(a):
        """doc"""
        return a + 1

    return (g(x), g.__name__, g.__doc__, g.__wrapped__(x))


@program()
def p_decor_args(x):

    def rep(n):

        def deco(f):

            def w(a):
                for _ in range(n):
                    a = f(a)
                return a

            return w

        return deco

    @rep(3)
    def g(a):
        return a + 1

    return g(x)


@program()
def p_partial(x):
    f = functools.partial(lambda a, b, c=0: a + b * c, 1, c=2)
    return (f(x), f.args, f.keywords)


@program()
def p_partial2(x):

    def f(a, b, c=0, d=0):
        return a + b * c - d

    g = functools.partial(f, x, c=3)
    h = functools.partial(g, 2, d=4)
    return (h(), g(1), h(c=1), h.func is f, len(h.args))


@program()
def p_partial_ret(x):

    def f(a, b):
        return a + b

    return (functools.partial(f, 2), x + 1)


def glob(a, b=2):
    return a * b


PART = functools.partial(glob, b=5)


@program()
def p_partial_global(x):
    return (PART(x), PART.keywords["b"])


@functools.lru_cache(None)
def cached(n):
    return n * n


@program()
def p_lru(x):
    return x * cached(3)


ASKED = []


@functools.lru_cache(maxsize=2)
def noted(n):
    ASKED.append(n)
    return n


@program(*[(torch.ones(2),)] * 3, breaks=None)
def p_cached_with_effects_that_is_forgotten(x):
    noted.cache_clear()
    del ASKED[:]
    for n in (1, 2, 1, 3, 1, 2):
        noted(n)
    return x + noted(2), list(ASKED)


class Recipe:
    def __init__(self, axes):
        self.axes = axes


RECIPE = Recipe((1, 0))


@functools.lru_cache(64)
def shapes_of(recipe, shape):
    """What libraries cache: lists, made of an object and of sizes, with the help of tables."""
    table = OrderedDict()
    for axis in recipe.axes:
        table[axis] = shape[axis]
    return list(table.values()), {"sizes": shape}, (*shape, -1)


SIZES = [(torch.arange(n * 3.0).reshape(n, 3),) for n in (2, 3, 4, 5, 5)]


@program(*SIZES, breaks=0)
def p_cached_of_an_object_and_sizes(x):
    new, by_name, flat = shapes_of(RECIPE, tuple(x.shape))
    return x.reshape(new), x.reshape(flat), by_name["sizes"][0] + 1


def test_what_a_cache_holds_is_changed():
    recipe = Recipe((0, 1))

    def fn(x):
        new, _, flat = shapes_of(recipe, tuple(x.shape))
        new.append(len(new))
        return x + 1, shapes_of(recipe, tuple(x.shape))[0] is new, list(new)

    run = aotdyn.compile(fn, backend="eager")
    for (x,) in SIZES:
        told = []
        for each in (fn, run):
            shapes_of.cache_clear()
            told.append([each(x)[1:], each(x)[1:]])
        assert told[0] == told[1]


@functools.lru_cache
def listed(n):
    return (n, [n])


@program(breaks=0)
def p_what_a_cache_holds_comes_out(x):
    first, (_, second) = listed(3), listed(3)
    return x, first is listed(3), second is first[1], second


def test_what_a_cache_holds_is_the_programs_own():
    def fn(x):
        held = listed(4)
        held[1].append(x.ndim)
        return held[1], x + 1

    run = aotdyn.compile(fn, backend="eager")
    for count in (2, 3, 4):
        found, _ = run(torch.ones(2))
        assert found is listed(4)[1] and len(found) == count


@program()
def p_reduce(x):
    return (
        functools.reduce(lambda a, b: a * b, [x, 2, 3]),
        functools.reduce(operator.add, [1, 2, 3], x),
        functools.reduce(operator.mul, range(1, 5)),
    )


@program()
def p_reduce_empty(x):
    try:
        functools.reduce(operator.add, [])
    except TypeError as e:
        return (str(e), x + 1)


class CP:
    def __init__(self, x):
        self.x = x
        self.n = 0

    @functools.cached_property
    def twice(self):
        self.n += 1
        return self.x * 2


@program()
def p_cached_property(x):
    c = CP(x)
    a = c.twice
    b = c.twice
    return (a, a is b, c.n, "twice" in c.__dict__)


@functools.singledispatch
def sd(a):
    return "obj"


@sd.register
def _(a: int):
    return "int"


@sd.register(list)
def _(a):
    return "list"


@sd.register(torch.Tensor)
def _(a):
    return a + 1


@program()
def p_singledispatch(x):
    return (sd(1), sd([]), sd(x), sd("a"), sd(True))


class SDM:
    @functools.singledispatchmethod
    def f(self, a):
        return "o"

    @f.register
    def _(self, a: int):
        return "i"


@program()
def p_singledispatchmethod(x):
    return (SDM().f(1), SDM().f("a"), x + 1)


@functools.total_ordering
class TO:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v == o.v

    def __lt__(self, o):
        return self.v < o.v


@program()
def p_total_ordering(x):
    return (TO(1) <= TO(2), TO(1) > TO(2), TO(2) >= TO(2), sorted([TO(3), TO(1)])[0].v, x + 1)


@program()
def p_cmp_to_key(x):
    return (sorted([3, 1, 2], key=functools.cmp_to_key(lambda a, b: b - a)), x + 1)


@program()
def p_operator(x):
    return (
        operator.itemgetter(1)([1, 2]),
        operator.itemgetter(0, 2)("abc"),
        operator.attrgetter("shape")(x),
        operator.methodcaller("sum")(x),
        operator.methodcaller("split", ",", maxsplit=1)("a,b,c"),
    )


@program()
def p_operator2(x):
    a = [1, 2]
    b = operator.iadd(a, [3])
    return (
        operator.add(x, 1),
        operator.mul(x, x),
        operator.neg(x),
        operator.getitem([1, 2], 0),
        a is b,
        a,
        operator.concat([1], [2]),
        operator.contains([1, 2], 2),
        operator.countOf([1, 1], 1),
        operator.indexOf([1, 2], 2),
        operator.length_hint([1, 2]),
        operator.truth([]),
        operator.not_(1),
        operator.is_(x, x),
        operator.index(3),
        operator.inv(3),
        operator.matmul(x, x),
    )


@program()
def p_operator3(x):
    d = {}
    operator.setitem(d, "a", x)
    e = operator.getitem(d, "a")
    operator.delitem(d, "a")
    return (e, d, operator.attrgetter("a.b", "c")(NS(a=NS(b=1), c=2)))


class NS:
    def __init__(self, **k):
        self.__dict__.update(k)


class M:
    k = 3

    def __init__(self, v):
        self.v = v

    def add(self, o):
        return self.v + o

    @staticmethod
    def st(a, b=2):
        return a * b

    @classmethod
    def make(cls, v):
        return cls(v)

    def __call__(self, a, *, s=1):
        return self.v * a * s


@program()
def p_methods(x):
    m = M(x)
    f = m.add
    g = M.add
    return (
        f(1),
        g(m, 2),
        m.st(3),
        M.st(x),
        M.make(x).v,
        m.make(2).v,
        m(2),
        m(2, s=3),
        f.__self__ is m,
        f.__func__ is g,
        f.__name__,
    )


@program()
def p_method_eq(x):
    m = M(x)
    return (m.add == m.add, m.add is m.add, M.add is M.add, m.st is M.st, x + 1)


@program()
def p_ret_func(x):
    y = x + 1

    def f(z, *, k=2):
        return z + y * k

    f.tag = "t"
    return (f, y)


@program()
def p_ret_lambda(x):
    return (lambda: x + 1, lambda q: q)


@program()
def p_store_func(x):
    d = {}

    def f(a):
        return a

    d["f"] = f
    return (d["f"](x), d["f"].__name__, f.__qualname__, f.__module__)


@program(breaks=None)
def p_func_attrs(x):

    def f(a, b=1, *, c=2) -> int:
        """d"""
        return a

    f.count = 0
    f.count += 1
    return (
        f.count,
        f.__defaults__,
        f.__kwdefaults__,
        f.__annotations__,
        f.__doc__,
        f.__code__.co_name,
        hasattr(f, "zz"),
        x + 1,
        f.__dict__,
    )


@program()
def p_globfunc_attrs(x):
    return (
        glob.__name__,
        glob.__defaults__,
        glob.__module__,
        x + 1,
        glob.__code__.co_argcount,
        glob.__qualname__,
    )


@program()
def p_callable(x):
    return (
        callable(glob),
        callable(M),
        callable(M(1)),
        callable(3),
        callable(lambda: 0),
        callable(len),
        callable(x),
        x + 1,
    )


@program()
def p_map_func(x):
    return (
        list(map(glob, [x, 1])),
        list(map(lambda a, b: a + b, [1, 2], [x, x])),
        list(filter(None, [0, 1, 2])),
    )


@program()
def p_walrus(x):
    if (n := 3) > 2:
        x = x * n
    return (x, [(y := 5), y + 1], [(last := i) for i in range(3)], last)


@program(breaks=None)
def p_global_partialmethod(x):
    return (PM().f(3), x + 1)


class PM:
    def _f(self, a, b):
        return a * b

    f = functools.partialmethod(_f, 4)


@program()
def p_annot(x):
    a: int = 3
    b: "foo"  # noqa: F821, F842
    return x * a


@program()
def p_kw_order(x):
    log = []

    def t(v):
        log.append(v)
        return v

    def f(*a, **k):
        return list(k)

    r = f(t(1), t(2), z=t(3), a=t(4))
    return (r, log, x + 1)


@program()
def p_nested_default_eval(x):
    log = []

    def d(v):
        log.append(v)
        return v

    def f(a=d(1), *, b=d(2)):
        return a + b

    return (f(), f(), log, x)


@program()
def p_star_expr(x):
    a = [*range(3), *"ab"]
    b = {**{"a": 1}, "b": 2, **{"a": 3}}
    c = (*a,)
    d = {*a}
    return (a, b, c, len(d), x + 1)


@program()
def p_compose(x):
    compose = lambda *fs: functools.reduce(lambda f, g: lambda a: g(f(a)), fs)
    return compose(lambda a: a + 1, lambda a: a * 2, torch.sin)(x)


@program()
def p_y(x):
    return (lambda f: f(f, 5))(lambda f, n: 1 if n == 0 else n * f(f, n - 1)) * x


@program()
def p_exec_default_mut(x):

    def f(a, acc=[]):
        acc.append(a)
        return list(acc)

    f(1)
    return (f(2), x)


DEF = []


def gdef(a, acc=DEF):
    acc.append(a)
    return len(acc)


@program()
def p_nonlocal_del(x):
    a = 1

    def f():
        nonlocal a
        del a

    f()
    try:
        return a
    except NameError as e:
        return (type(e).__name__, str(e), x + 1)


@program()
def p_unbound(x):
    try:
        print(qq)  # noqa: F821
        qq = 1
    except UnboundLocalError as e:
        return (str(e), x + 1)


@program()
def p_nameerror(x):
    try:
        undefined_thing
    except NameError as e:
        return (str(e), e.name, x + 1)


@program()
def p_func_in_cls(x):
    return (M.k, M.__name__, M.add.__qualname__, M.__mro__[0] is M, x)


@program()
def p_wraps_global(x):
    return (deco_g(x), deco_g.__name__)


def deco(f):

    @functools.wraps(f)
    def w(*a):
        return f(*a) * 2

    return w


@deco
def deco_g(a):
    return a + 1


@program()
def p_builtin_as_val(x):
    fs = [abs, len, max]
    return (
        fs[0](x),
        fs[1]([1]),
        fs[2](1, 2),
        max([1, 3], key=lambda v: -v),
        min(3, 1, 2),
        sum([x, x]),
        sum([[1], [2]], []),
        all([]),
        any([0, 1]),
        divmod(7, 2),
        pow(2, 3, 5),
        round(2.567, 2),
    )


@program()
def p_eval(x):
    return (getattr(x, "shape"), getattr(M, "nope", 3), hasattr(M, "k"))


@program()
def p_getattr_msg(x):
    try:
        M(1).zip
    except AttributeError as e:
        return (str(e), e.name, x + 1)


@program()
def p_cell_contents(x):

    def f():
        return x

    return (f.__closure__[0].cell_contents is x, x + 1)


@program(breaks=None)
def p_locals_shows_what_cells_hold(x):
    n = 3
    if n > 5:
        unbound = 1

    def inner(y):
        def innermost():
            return y + n, unbound

        y += 3
        found = dict(locals())
        del found["innermost"]
        return found

    return inner(4), sorted(locals()), x + 1


class EqualsAll:
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


class Holder:
    def method(self):
        """Has attributes on its function."""


def three():
    return 3


def known_attributes(x, function, holder):
    function.known = 7
    found = ["known" in dir(function), "method" in dir(holder.method)]
    holder.named = types.MethodType(id, holder)
    return found, holder.named() == id(holder), holder.named.__self__ is holder, x


@program(breaks=None)
def p_attributes_that_mean_something(x):
    def other():
        return x

    def made():
        pass

    found = [made()]
    try:
        made.__code__ = other.__code__
    except ValueError as error:
        found.append(str(error))
    values = {
        "__name__": 3, "__qualname__": None, "__closure__": (), "__globals__": {}, "__dict__": 7,
        "__annotations__": 4, "__doc__": 3, "__module__": 4, "__code__": 3, "own": 5,
    }  # fmt: skip
    for name, value in values.items():
        try:
            setattr(made, name, value)
            found.append(getattr(made, name))
        except (TypeError, AttributeError) as error:
            found.append(str(error))
    made.__code__ = three.__code__
    made.__dict__ = {"given": 1}
    return found, made(), made.given


@program(breaks=None)
def p_dir_and_methods_bound_by_hand(x):
    def function():
        pass

    return known_attributes(x, function, Holder())


@program()
def p_functions_and_cells_are_compared(x):
    def cell(*values):
        def inner():
            return a

        if values:
            (a,) = values
        return inner.__closure__[0]

    anything = EqualsAll()
    functions = (three == anything, anything == three, three != anything, three in [anything],
                 Holder().method == anything, three == 1, three == three)  # fmt: skip
    cells = (cell() == cell(), cell() < cell(3), cell(3) < cell(), cell(2) < cell(3),
             cell(2) == cell(2), cell(1) == 1, cell() != cell())  # fmt: skip
    return functions, cells, x


@program()
def p_class_of_functions(x):
    def drawn():
        yield x

    classes = (drawn.__class__, (lambda: 1).__class__, three.__class__)
    return [cls.__name__ for cls in classes], drawn.__class__ is type(drawn), x + 1


@program(breaks=None)
def p_arguments_that_builtins_refuse(x):
    told = []
    for ask in (
        lambda: sorted([2, 1], None),
        lambda: getattr("a", name="upper"),
        lambda: filter(function=len, iterable=[]),
        lambda: {1: 2}.get(1, default=3),
        lambda: {}.pop(key=1),
        lambda: functools.reduce(function=len, iterable=[]),
        lambda: type("A", [], {}),
        lambda: getattr(functools, 1),
        lambda: getattr(x, 3, None),
        lambda: hasattr([], None),
        lambda: setattr(functools, 3, 3),
    ):
        try:
            told.append(ask())
        except TypeError as error:
            told.append(str(error))
    return told, x


# -- methods of C that are bound to objects ------------------------------------------------------

LOGGED = [(torch.arange(3.0) + 1, []), (torch.arange(3.0) + 2, [])]


@program(*LOGGED, breaks=2)
def p_methods_wait_for_arguments(x, log):
    out = []
    for i in range(3):
        out.append(note(log, i))
    return x * len(out), out, log


@program(*LOGGED, breaks=8)
def p_methods_of_all_kinds_wait(x, log):
    d, s, t, held = {"a": 1}, {1}, "-", OrderedDict(a=1)
    d.update({"z": note(log, 1)})
    s.add(note(log, 2))
    text = t.join([str(note(log, 3))])
    found = d.get(note(log, "z")), (1, 2, 3).index(note(log, 2)), held.pop(note(log, "a"))
    y = x.clone()
    y.add_(note(log, 2))
    return y, x.sum(dim=note(log, 0)), d, s, text, found, held


@program(*LOGGED, breaks=2)
def p_methods_are_kept(x, log):
    out = []
    add, pop = out.append, out.pop
    add(note(log, 1))
    note(log, 2)
    add(2)
    return x, pop(0), out, add.__name__, add.__self__ is out


class Twice(list):
    def append(self, item):
        super().append(item * 2)


@program(*LOGGED, breaks=None)
def p_methods_that_others_hide(x, log):
    out = Twice()
    add = super(Twice, out).append
    out.append(note(log, 1))
    add(5)
    return x, out


@program(*[(torch.ones(2), f) for f in ([].append, [1].append, {}.get, [].extend, set().add)])
def p_methods_come_in(x, f):
    return x + 1, f("ab"), f.__self__


MISSING, OTHER = object(), object()


@program(*((torch.ones(2), value) for value in (MISSING, OTHER, None, 2, "a", [1])), breaks=0)
def p_sentinels(x, value):
    def given(value=MISSING):
        return value is not MISSING

    return x + given(value), given(), given(OTHER), given(2), value is OTHER, value is x


BY_NAME, BY_INDEX = operator.attrgetter("a.b", "c"), operator.itemgetter(1, 0)
CALLS, CALLS_NAMED = operator.methodcaller("split", "-"), operator.methodcaller("split", sep="-")


@program(
    *((torch.ones(2), getter) for getter in map(operator.itemgetter, (0, 1, "a"))), breaks=0
)
def p_getters_that_came_in(x, getter):
    held = NS(a=NS(b=1), c=2)
    found = BY_NAME(held), BY_INDEX([5, 6]), CALLS("a-b"), BY_NAME is BY_NAME, BY_INDEX is BY_NAME
    return x, found, getter({0: "0", 1: "1", "a": "a"}), getter, type(getter)


TWICE = (
    BY_NAME, CALLS, functools.partial(len), functools.lru_cache(len), "a".upper,
    NS(a=1), [1].append, slice(1, 2), iter([1]), len, operator.add,
)  # fmt: skip


@program(*((torch.ones(2), value, value) for value in TWICE), breaks=0)
def p_one_object_twice(x, value, other):
    return x + 1, value is other, [value, other][0] is not other


@program(breaks=None)
def p_a_call_with_keywords_that_came_in(x):
    return x, CALLS_NAMED("a-b")


test_agrees = program.test()
