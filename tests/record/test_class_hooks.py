"""What runs when a class is made in the frame: `__init_subclass__`, metaclasses, and what `typing`,
`dataclasses` and `functools` make of a class; functions that dispatch on classes."""

import abc
import dataclasses
import functools
import gc
import typing

import torch

import aotdyn
from tests.record.programs import Programs

program = Programs()


class Reg:
    known = {}

    def __init_subclass__(cls, /, name=None, **kw):
        super().__init_subclass__(**kw)
        Reg.known[name or cls.__name__] = cls
        cls.tag = name


@program()
def p_registry(x):
    class A(Reg, name="a"):
        def f(self):
            return self.tag

    class B(A):
        pass

    r = (sorted(Reg.known), Reg.known["a"] is A, A().f(), B.tag, B().f(), A.__mro__[1] is Reg, 1)
    Reg.known.clear()
    return r, x


@program()
def p_keywords_refused(x):
    LOG = []

    class Base:
        pass

    try:

        class A(Base, z=1):
            pass
    except TypeError as e:
        r = str(e)

    class S:
        def __init_subclass__(cls):
            LOG.append(cls.__name__)

    try:

        class T(S, k=2):
            pass
    except TypeError as e:
        r2 = str(e)

    class U(S):
        pass

    q = list(LOG)
    LOG.clear()
    return r, r2, q, x


@program()
def p_told_abstract_class(x):
    seen = []

    class P(abc.ABC):
        def __init_subclass__(cls, **k):
            super().__init_subclass__(**k)
            seen.append(cls)

        @abc.abstractmethod
        def run(self, a): ...

    class Q(P):
        def run(self, a):
            return a * 2

    try:
        P()
    except TypeError as e:
        r = str(e)
    return Q().run(x), seen[0] is Q, len(seen), r, isinstance(Q(), P)


@program()
def p_told_through_levels(x):
    out = []

    class A:
        def __init_subclass__(cls, **k):
            out.append(("A", cls.__name__, k))

    class B(A):
        def __init_subclass__(cls, b=1, **k):
            out.append(("B", b))
            super().__init_subclass__(**k)

    class C(B, b=2, c=3):
        v = x

    class D(C):
        pass

    return out, D.v, [k.__name__ for k in D.__mro__], C


@program()
def p_metaclass(x):
    class M(type):
        def __new__(m, n, b, ns, **k):
            ns["added"] = k.get("k", 0)
            c = super().__new__(m, n, b, ns)
            c.after = n
            return c

        def __init__(c, n, b, ns, **k):
            super().__init__(n, b, ns)
            c.inited = len(ns) > 2

        def __call__(c, *a):
            o = super().__call__(*a)
            o.tag = 1
            return o

        def __len__(c):
            return 5

    class A(metaclass=M, k=5):
        def __init__(s, v):
            s.v = v

    class B(A):
        pass

    a = B(x)
    return (
        a.tag,
        a.v,
        A.added,
        B.added,
        A.after,
        B.after,
        A.inited,
        len(A),
        type(B) is M,
        isinstance(B, M),
    )


class RegMeta(type):
    reg = {}

    def __new__(mcs, name, bases, ns):
        cls = super().__new__(mcs, name, bases, ns)
        mcs.reg[name] = cls
        return cls


class RegBase(metaclass=RegMeta):
    pass


@program()
def p_metaclass_that_registers(x):
    class K(RegBase):
        def f(s, a):
            return a * 3

    r = RegMeta.reg["K"] is K, K().f(x), list(RegMeta.reg)
    del RegMeta.reg["K"]
    return r


@program()
def p_abstract_metaclass(x):
    class M(abc.ABCMeta):
        def __new__(m, n, b, ns):
            c = super().__new__(m, n, b, ns)
            c.z = n
            return c

    class A(metaclass=M):
        @abc.abstractmethod
        def f(s): ...

    class B(A):
        def f(s):
            return s.z

    try:
        A()
    except TypeError as e:
        r = str(e)
    return B().f(), r, x


@program()
def p_one_instance(x):
    class S(type):
        inst = {}

        def __call__(c, *a):
            if c not in S.inst:
                S.inst[c] = super().__call__(*a)
            return S.inst[c]

    class A(metaclass=S):
        pass

    return A() is A(), x


@program()
def p_named_tuple(x):
    class P(typing.NamedTuple):
        "doc"

        a: torch.Tensor
        b: int = 2

        def s(self):
            return self.a * self.b

        @property
        def d(self):
            return self.b + 1

    p = P(x)
    a, b = p
    return (
        tuple(p),
        p.s(),
        p.d,
        p._replace(b=3).b,
        P._fields,
        P._field_defaults,
        b,
        p[1],
        P.__doc__,
        p._asdict(),
        P(x, 5).b,
        P.__annotations__["b"],
        P.__name__,
        isinstance(p, tuple),
    )


@program()
def p_named_tuple_returned(x):
    class P(typing.NamedTuple):
        a: int
        b: str = "z"

    return P, repr(P(1)), P(1) == (1, "z")


@program()
def p_dataclass_with_slots(x):
    @dataclasses.dataclass(slots=True)
    class D:
        a: torch.Tensor
        b: int = 2

        def f(self):
            return self.a * self.b

    d = D(x)
    d.b += 1
    try:
        d.zz = 1
    except AttributeError as e:
        r = str(e)
    return d.f(), r, repr(D(1)), D(1) == D(1), D.__slots__, hasattr(d, "__dict__"), D.__qualname__


@program()
def p_dataclass_with_slots_and_heir(x):
    @dataclasses.dataclass(slots=True, frozen=True)
    class D:
        a: int
        c: list = dataclasses.field(default_factory=list)

    @dataclasses.dataclass(slots=True)
    class E(D.__mro__[1]):
        q: int = 1

    return D(1).a, D(2).c, E(3).q, x


@program()
def p_total_ordering(x):
    @functools.total_ordering
    class V:
        def __init__(self, n):
            self.n = n

        def __eq__(self, o):
            return self.n == o.n

        def __lt__(self, o):
            return self.n < o.n

    a, b = V(1), V(2)
    return a < b, a <= b, a > b, a >= b, sorted([b, a])[0].n, max(a, b).n, x, V


@program()
def p_total_ordering_refused(x):
    try:

        @functools.total_ordering
        class V:
            pass
    except ValueError as e:
        return str(e), x


@program()
def p_class_getitem(x):
    class A:
        def __class_getitem__(cls, k):
            return (cls.__name__, k)

    class B(A):
        pass

    return A[1], B["z"], B[1, 2], x


@program()
def p_type_with_three_arguments(x):
    class B:
        def __init_subclass__(cls):
            cls.t = cls.__name__

    K = type("K", (B,), {"v": x})
    return K.t, K.v, K().v


@program()
def p_slots(x):
    class A:
        __slots__ = ("a",)

        def __init_subclass__(cls):
            cls.q = 1

    class B(A):
        __slots__ = ("b",)

    return B.q, x


@program()
def p_set_name_first(x):
    class D:
        def __set_name__(s, o, n):
            s.n = n
            s.o = o.__name__

    class A:
        d = D()
        e = D()

        def __init_subclass__(cls):
            cls.names = sorted(k for k in vars(cls) if k[0] != "_")

    class B(A):
        f = D()

    return A.d.n, A.e.o, B.f.n, B.f.o, B.names, x


@program()
def p_super_before_the_class_is_done(x):
    class A:
        def __init_subclass__(cls):
            cls.made = cls().g()

        def g(self):
            return 1

    class B(A):
        def g(self):
            return super().g() + 1

    return B.made, B().g(), x


@program()
def p_protocol(x):
    @typing.runtime_checkable
    class P(typing.Protocol):
        def f(self): ...

    class A:
        def f(self):
            return 1

    return isinstance(A(), P), x


@program()
def p_singledispatch(x):
    @functools.singledispatch
    def h(a):
        return ("d", a)

    @h.register(int)
    def _(a):
        return ("i", a)

    @h.register
    def _(a: torch.Tensor):
        return a + 1

    @h.register(list)
    def _(a):
        return [h(i) for i in a]

    return h(1), h(x), h("a"), h([1, x]), h.__name__, h.dispatch(bool)(True), h.registry[int](3), h


@program()
def p_singledispatch_registered_late(x):
    @functools.singledispatch
    def h(a):
        return 0

    r = [h(True)]
    h.register(int, lambda a: 1)
    r.append(h(True))
    h.register(bool, lambda a: 2)
    r.append(h(True))
    r.append(h(2))
    return r, x


@program()
def p_singledispatchmethod(x):
    class S:
        @functools.singledispatchmethod
        def f(self, a):
            return a

        @f.register
        def _(self, a: int):
            return a + 1

        @f.register(torch.Tensor)
        def _(self, a):
            return a * 2

    s = S()
    return s.f(1), s.f(x), s.f("a"), S().f(2)


class Backend:
    name = "none"


class First(Backend):
    name = "first"


class Second(First):
    name = "second"


class Third(Backend):
    name = "third"


def names_below(cls):
    found, waiting = [], [cls]
    while waiting:
        cls = waiting.pop()
        found.append(cls.name)
        waiting += cls.__subclasses__()
    return found


@program()
def p_subclasses_are_searched(x):
    return names_below(Backend), Backend.__subclasses__()[1] is Third, Third.__subclasses__(), x


def test_a_subclass_is_added():
    def fn(x):
        return x + len(names_below(Backend))

    run = aotdyn.compile(fn, backend="eager")
    x = torch.zeros(1)
    assert run(x) == fn(x) == 4
    added = type("Added", (Third,), {})
    assert run(x) == fn(x) == 5
    del added
    gc.collect()
    assert run(x) == fn(x)


test_agrees = program.test()
