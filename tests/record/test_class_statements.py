"""Class statements in frames: what the classes do, with and without a break after them."""

import abc
import collections
import collections.abc
import dataclasses
import functools
import gc
import typing

import torch

import aotdyn
from tests.record.programs import Programs, note

program = Programs()


T = typing.TypeVar("T")
CALLS = []


class Desc:
    def __get__(self, i, o):
        CALLS.append(i is None)
        return 5 if i is None else 6


class M1(type):
    @property
    def mp(cls):
        return cls.__name__ + "!"

    def mm(cls, v):
        return (cls.__name__, v)

    def __len__(cls):
        return 7

    def __iter__(cls):
        return iter((1, 2))

    def __contains__(cls, v):
        return v == 1

    def __getitem__(cls, k):
        return k * 2

    def __call__(cls, *a):
        o = super().__call__(*a)
        return o

    def __getattr__(cls, n):
        if n.startswith("zz"):
            return n
        raise AttributeError(n)


class WithD(metaclass=M1):
    d = Desc()
    k = 3


@program()
def p_desc_on_class(x):
    CALLS.clear()
    a = WithD.d
    b = WithD().d
    return a, b, list(CALLS), x


@program(breaks=None)
def p_meta(x):
    return (
        WithD.mp,
        WithD.mm(3),
        len(WithD),
        list(WithD),
        1 in WithD,
        WithD[4],
        WithD.k,
        WithD.zzq,
        x,
    )


@program()
def p_meta_missing(x):
    try:
        WithD.nope
    except AttributeError as e:
        return str(e), x


@program()
def p_cl_ret(x):
    class C:
        """doc"""

        k: int = 3

        def f(self):
            return self.k

    return C.__doc__, C.__annotations__, C().f(), C.__module__, x


@program(breaks=None)
def p_cl_ret_inst(x):
    class C:
        def __init__(self, v):
            self.v = v

        def get(self):
            return self.v + 1

    c = C(x)
    log = []
    note(log, 1)
    return c.get(), type(c).__name__, isinstance(c, C)


@program(breaks=None)
def p_cl_super_break(x):
    class B:
        def f(self):
            return 1

    class C(B):
        def f(self):
            return super().f() + 1

        def g(self):
            return __class__.__name__

        def mk(self):
            return C()

    c = C()
    log = []
    note(log, 1)
    return c.f(), c.g(), c.mk().f(), C.__mro__[1].__name__, x


@program()
def p_cl_prop(x):
    class C:
        def __init__(self):
            self._v = 1

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, n):
            self._v = n * 2

        @v.deleter
        def v(self):
            self._v = None

    c = C()
    c.v = 4
    a = c.v
    del c.v
    return a, c.v, x


@program()
def p_cl_ops(x):
    class V:
        __slots__ = ("a",)

        def __init__(self, a):
            self.a = a

        def __add__(self, o):
            return V(self.a + o.a)

        def __eq__(self, o):
            return self.a == o.a

        def __hash__(self):
            return hash(self.a)

        def __lt__(self, o):
            return self.a < o.a

        def __repr__(self):
            return f"V({self.a})"

        def __len__(self):
            return 2

        def __getitem__(self, i):
            return (self.a, i)

        def __call__(self, y):
            return y + self.a

        def __iter__(self):
            yield self.a

        def __bool__(self):
            return False

        def __contains__(self, k):
            return k == self.a

    v = V(1) + V(2)
    return (
        v.a,
        v == V(3),
        repr(v),
        len(v),
        v[5],
        v(x),
        list(v),
        bool(v),
        3 in v,
        {V(1): 2}[V(1)],
        sorted([V(3), V(1)])[0].a,
    )


@program()
def p_cl_abc(x):
    class B(abc.ABC):
        @abc.abstractmethod
        def f(self): ...
        @property
        @abc.abstractmethod
        def p(self): ...

    class C(B):
        def f(self):
            return 1

        p = 5

    try:
        B()
    except TypeError as e:
        return str(e), C().f(), C().p, isinstance(C(), B), issubclass(C, B), x


@program()
def p_cl_generic(x):
    class G(typing.Generic[T]):
        def __init__(self, v: T):
            self.v = v

    return G[int](x).v, G(1).v


@program()
def p_cl_list(x):
    class L(list):
        def first(self):
            return self[0]

    l = L([x, 1])
    l.append(3)
    return l.first(), len(l), isinstance(l, list)


@program()
def p_cl_dict(x):
    class D(dict):
        def __missing__(self, k):
            return k

    d = D(a=1)
    return d["a"], d["zz"], len(d), x


@program()
def p_cl_exc_out(x):
    class E(ValueError):
        pass

    try:
        raise E("m") from KeyError(1)
    except ValueError as e:
        return type(e).__name__, str(e), repr(e.__cause__), x


@program()
def p_cl_dc(x):
    @dataclasses.dataclass(order=True)
    class D:
        a: int
        b: list = dataclasses.field(default_factory=list, compare=False)
        c: object = None
        k: typing.ClassVar[int] = 9

        def __post_init__(self):
            self.b.append(self.a)

    d = D(1, c=x)
    e = dataclasses.replace(D(3), a=4)
    return (
        d.b,
        e.a,
        e.b,
        D(1) < D(2),
        D(1) == D(1),
        repr(D(5)),
        [f.name for f in dataclasses.fields(D)],
        dataclasses.asdict(D(2)),
        D.k,
        dataclasses.is_dataclass(D),
        d.c,
    )


@program()
def p_cl_dc_frozen(x):
    @dataclasses.dataclass(frozen=True)
    class D:
        a: int = 1

    d = D()
    try:
        d.a = 2
    except dataclasses.FrozenInstanceError as e:
        return str(e), hash(D(1)) == hash(D(1)), {D(1): 5}[D(1)], x


@program()
def p_cl_dc_tensor_default(x):
    @dataclasses.dataclass
    class D:
        a: object = x

    return D().a, D(2).a


@program(breaks=None)
def p_cl_dc_break(x):
    @dataclasses.dataclass
    class D:
        a: int
        b: object = 2

    d = D(1)
    log = []
    note(log, 1)
    return d.a, d.b, D(3).a, x, repr(d)


@program()
def p_cl_dc_inherit(x):
    @dataclasses.dataclass
    class A:
        a: int

    @dataclasses.dataclass
    class B(A):
        b: int = 2

    return B(1).a + B(1).b, x, repr(B(1))


@program()
def p_cl_attr(x):
    class C:
        n = 0
        items = []
        t = x

        def add(self, v):
            self.items.append(v)
            C.n += 1
            type(self).z = v

    C().add(1)
    C().add(2)
    C.w = "w"
    del C.w
    return C.n, C.items, C.t is x, C.z, hasattr(C, "w")


@program(breaks=None)
def p_cl_attr_break(x):
    class C:
        n = 0
        t = x

    C.n = 5
    C.q = [1]
    log = []
    note(log, 1)
    C.n += 1
    return C.n, C.t, C.q


@program()
def p_cl_scope(x):
    k = 5

    class C:
        a = k + 1
        b = [i * 2 for i in range(3)]

        def f(self):
            return k

        if a > 3:
            z = 1
        else:
            y = 2
        for q in range(2):
            pass
        del q
        lam = lambda self: self.a

    return C.a, C.b, C().f(), C.z, hasattr(C, "y"), C().lam(), x


@program()
def p_cl_nested(x):
    class A:
        class B:
            v = 4

            def f(self):
                return A.B.v

    return A.B().f(), A.B.__qualname__, x


@program()
def p_cl_factory(x):
    def make(n):
        class C:
            def f(self):
                return n + x

        return C

    a, b = make(1), make(2)
    return a().f(), b().f(), a is b, a.__name__ == b.__name__


@program()
def p_cl_named_err(x):
    try:

        class C(int, str):
            pass
    except TypeError as e:
        return str(e), x


@program()
def p_cl_body_exc(x):
    try:

        class C:
            a = 1 / 0
    except ZeroDivisionError as e:
        return str(e), x


@program()
def p_cl_isinst(x):
    class A:
        pass

    class B(A):
        pass

    return (
        isinstance(B(), A),
        isinstance(A(), B),
        type(B()) is B,
        issubclass(B, (int, A)),
        B.__bases__ == (A,),
        x,
    )


@program()
def p_cl_match(x):
    class P:
        __match_args__ = ("a", "b")

        def __init__(self, a, b):
            self.a, self.b = a, b

    match P(1, x):
        case P(1, b):
            return b


@program()
def p_cl_setname(x):
    class D:
        def __set_name__(self, o, n):
            self.n = n

        def __get__(self, i, o):
            return self.n if i is None else (self.n, i.v)

        def __set__(self, i, v):
            i.v = v

    class C:
        d = D()

    c = C()
    c.d = 4
    return C.d, c.d, x


@program(breaks=None)
def p_cl_setname_break(x):
    class D:
        def __set_name__(self, o, n):
            self.n = n

        def __get__(self, i, o):
            return self.n

    class C:
        d = D()

    c = C()
    log = []
    note(log, 1)
    return c.d, C.d, x


@program()
def p_cl_getattribute(x):
    class C:
        def __getattribute__(self, n):
            return n + "?"

        def __setattr__(self, n, v):
            object.__setattr__(self, n, v + 1)

    c = C()
    c.q = 1
    return c.q, object.__getattribute__(c, "q"), x


@program()
def p_cl_new(x):
    class S:
        inst = None

        def __new__(cls):
            if cls.inst is None:
                cls.inst = super().__new__(cls)
            return cls.inst

    return S() is S(), x


@program()
def p_cl_classmethod(x):
    class C:
        @classmethod
        def mk(cls, v):
            o = cls()
            o.v = v
            return o

        @staticmethod
        def st(v):
            return v + 1

        alias = st

    class D(C):
        pass

    return D.mk(x).v, type(D.mk(1)) is D, C.st(1), C().st(2), C.alias(3)


@program()
def p_cl_eq_default(x):
    class C:
        pass

    a, b = C(), C()
    return a == a, a == b, a != b, {a: 1}[a], C == C, x


@program()
def p_cl_cm_cls(x):
    class Ctx:
        def __enter__(self):
            return self

        def __exit__(self, t, v, tb):
            self.t = t
            return True

    with Ctx() as c:
        raise KeyError(1)
    return c.t is KeyError, x


@program()
def p_cl_loop_var(x):
    out = []
    for i in range(2):

        class C:
            def f(self):
                return i

        out.append(C())
    return [o.f() for o in out], type(out[0]) is type(out[1]), x


@program((torch.ones(2), 1), (torch.ones(2), 2), (torch.ones(2), 3))
def p_cl_called(x, n):
    class C:
        def __init__(self):
            self.n = n

    return x + C().n


@program(breaks=None)
def p_cl_cached(x):
    class C:
        @functools.cached_property
        def v(self):
            return [1]

    c = C()
    return c.v is c.v, x


@program()
def p_type3(x):
    C = type("C", (), {"a": 1, "f": lambda self: self.a + 1})
    return C().f(), C.__name__, C.__module__, C.__qualname__, x


class A0:
    k = 1

    def __init__(self, v):
        self.v = v

    def m(self):
        return self.v


class Meta(type):
    def __new__(m, n, b, d, **kw):
        c = super().__new__(m, n, b, d)
        c.tag = n
        return c

    def __init__(c, n, b, d, **kw):
        super().__init__(n, b, d)
        c.kw = kw


def deco(c):
    c.extra = 5
    return c


@program()
def p_class_plain(x):
    class P:
        z = 3

        def __init__(self, a):
            self.a = a

        def get(self):
            return self.a + x

        @property
        def p(self):
            return self.a * 2

        @staticmethod
        def s(v):
            return v + 1

        @classmethod
        def c(cls, v):
            return cls(v)

    p = P(1)
    return p.get(), p.p, P.s(2), P.c(5).a, P.z, isinstance(p, P), P.__name__, P.__qualname__


@program()
def p_class_base(x):
    class B(A0):
        def m(self):
            return super().m() + 1

    return B(x).m(), B.k, issubclass(B, A0), B.__mro__[1] is A0


@program()
def p_class_deco(x):
    @deco
    class C:
        pass

    return C.extra, x


@program()
def p_class_dc(x):
    @dataclasses.dataclass
    class C:
        a: int
        b: object = None

        def tot(self):
            return self.a + self.b

    c = C(1, x)
    return c.tot(), c.a, repr(C(1, 2)), C(1, 2) == C(1, 2)


@program()
def p_class_return(x):
    class C:
        def f(self):
            return 3

    return C().f(), C.__name__, x


@program()
def p_class_ret_inst(x):
    class C:
        def __init__(self):
            self.t = x

    return C().t


@program(breaks=None)
def p_class_meta(x):
    class C(metaclass=Meta, opt=1):
        pass

    return C.tag, C.kw, x


@program()
def p_class_type3(x):
    C = type("C", (A0,), {"z": 1, "f": lambda self: self.v + 1})
    c = C(x)
    return c.z, c.f(), C.__name__


@program(breaks=None)
def p_class_nt(x):
    P = collections.namedtuple("P", "a b")
    p = P(1, x)
    return p.a, p.b, p._fields, P._make([1, 2]).b


@program()
def p_class_slots(x):
    class S:
        __slots__ = ("a",)

        def __init__(self):
            self.a = x

    s = S()
    try:
        s.b = 1
    except AttributeError as e:
        return s.a, str(e)


@program()
def p_class_exc(x):
    class E(Exception):
        def __init__(self, n):
            super().__init__(n)
            self.n = n

    try:
        raise E(3)
    except E as e:
        return e.n, str(e), x


@program()
def p_class_closure_write(x):
    n = 0

    class C:
        def inc(self):
            nonlocal n
            n += 1
            return n

    c = C()
    c.inc()
    c.inc()
    return n, x


@program()
def p_class_loop(x):
    cs = []
    for i in range(3):

        class C:
            v = i

        cs.append(C)
    return [c.v for c in cs], x


@program()
def p_class_ctx(x):
    class M:
        def __enter__(self):
            return 5

        def __exit__(self, *a):
            return True

    with M() as m:
        raise ValueError
    return m, x


@program()
def p_class_getattr(x):
    class G:
        def __getattr__(self, n):
            return n * 2

    return G().ab, x


@program()
def p_class_iter(x):
    class It:
        def __iter__(self):
            yield 1
            yield x

    return list(It())


@program()
def p_class_setname(x):
    class Desc:
        def __set_name__(self, o, n):
            self.n = n

        def __get__(self, i, o):
            return self.n if i is None else (self.n, i.v)

    class C:
        d = Desc()

        def __init__(self):
            self.v = 4

    return C.d, C().d, x


@program(breaks=None)
def p_class_init_subclass(x):
    class Base:
        subs = []

        def __init_subclass__(cls, **kw):
            Base.subs.append((cls.__name__, kw))

    class S1(Base, a=1):
        pass

    return Base.subs, x


class FilledByCode(dict):
    def __init__(self):
        self.made = True

    def __setitem__(self, key, value):
        super().__setitem__(key, (key, value))


@program()
def p_from_keys_of_subclasses(x):
    class Plain(dict):
        pass

    class Stop(Exception):
        pass

    class Refusing(dict):
        def __init__(self):
            raise Stop

    try:
        Refusing.fromkeys("a")
    except Stop:
        stopped = True
    filled = FilledByCode.fromkeys("ab", 1)
    plain = [Plain.fromkeys("ab"), Plain().fromkeys([1, 2], 3)]
    kinds = [type(each) is Plain for each in plain]
    return list(map(dict, plain)), kinds, dict(filled), filled.made, stopped, x


class Around:
    def two_variables_of_one_name(self):
        class Made:
            nonlocal __class__
            __class__ = 42

            def f():
                return __class__

        return __class__


@program(breaks=None)
def p_two_variables_of_one_name(x):
    return Around().two_variables_of_one_name(), x


@program()
def p_tuples_of_fields_are_new(x):
    @dataclasses.dataclass
    class Made:
        a: int
        b: int = 0

    made = Made(1)
    one, other, constant = dataclasses.astuple(made), dataclasses.astuple(made), (1, 0)
    return one is other, one == other, one is constant, one, other


class Items(list):
    pass


@program()
def p_defaults_that_can_be_changed(x):
    told = []
    for default in ([], [1], Items(), Items([1]), {}, {1}, (), "text"):
        try:

            @dataclasses.dataclass
            class Made:
                a: type(default) = default

        except ValueError as error:
            told.append(str(error))
        else:
            told.append(Made().a)
    return told, x


@program(*((default,) for default in ([], [1], {}, {"a": 1}, {1})))
def p_defaults_that_came_in(given):
    try:

        @dataclasses.dataclass
        class Made:
            a: type(given) = given

    except ValueError as error:
        return str(error)


@program(breaks=None)
def p_bases_that_are_subscripted(x):
    T = typing.TypeVar("T")

    @dataclasses.dataclass
    class Parent(typing.Generic[T]):
        a: T

    bases = Parent[int], typing.Generic[T]
    Child = dataclasses.make_dataclass("Child", [("b", T), ("c", T | None, None)], bases=bases)
    order = Child.__mro__ == (Child, Parent, typing.Generic, object)
    return order, Child[int](1, 2).c, typing.get_args(Parent[int]), x


@program(breaks=None)
def p_a_field_that_is_an_annotation(x):
    class C:
        pass

    @dataclasses.dataclass
    class Made:
        C: C = dataclasses.field()

    return repr(Made.__dataclass_fields__["C"])[:20], x


@program()
def p_functions_of_made_classes_share_no_cells(x):
    shared = []

    @dataclasses.dataclass
    class Made:
        a: list = dataclasses.field(default_factory=lambda: shared)

    shared.append(1)
    first, second = Made(), Made()
    shared = [2]
    return first.a is second.a, first == second, Made().a, x


@program()
def p_class_statements_that_are_refused(x):
    told = []
    try:

        class WithCell:
            __classcell__ = 42

    except TypeError as error:
        told.append(str(error))

    class Plain:
        pass

    try:
        del Plain.__qualname__
    except TypeError as error:
        told.append(str(error))
    return told, x


@program(breaks=None)
def p_a_class_that_is_being_made(x):
    seen = []

    class Meta(type):
        def mro(cls):
            seen.append(cls.__mro__)
            return type.mro(cls)

    class Made(metaclass=Meta):
        pass

    return seen, Made.__mro__[1] is object, type("Made", (), {OddName("a"): x}).a is x


class OddName(str):
    pass


class Registered:
    pass


def test_stand_ins_are_no_subclasses(agree):
    def program(x):
        class Made(Registered):
            pass

        return Made().__class__.__name__, x

    agree(program, (torch.ones(2),), breaks=0, package=False)
    gc.collect()
    gc.disable()
    try:
        aotdyn.compile(program, backend="eager")(torch.ones(2))
        assert Registered.__subclasses__() == []
    finally:
        gc.enable()


class Named:
    __dict__ = property(lambda self: {"told": 1})


@program(breaks=None)
def p_a_property_named_as_an_attribute_of_classes(x):
    return Named().__dict__, x


class Told:
    def __init_subclass__(cls, **kwargs):
        CALLS.append(cls.__name__)
        super().__init_subclass__(**kwargs)


@program(breaks=None)
def p_hooks_behind_that_of_typing(x):
    del CALLS[:]

    class Made(typing.Generic[T], Told):
        pass

    return Made.__name__, list(CALLS), x


@program(breaks=1)
def p_named_tuples_are_made(x):
    P = collections.namedtuple("P", ["a", "b", "c"], defaults=(1, None))

    class Q(collections.namedtuple("Q", "a b", module="elsewhere")):
        __slots__ = ()

        def total(self):
            return self.a + self.b

    P.extra = 4
    made, other = P(x), Q(x, 1)
    note([], 1)
    told = P._fields, P.__name__, P.__module__, Q.__base__.__module__, P.extra, P._field_defaults
    items = dict(made._asdict()), made.b, made._replace(b=5).b, P(1) == (1, 1, None), repr(P(1))
    return told, items, other.total(), type(other._replace(a=1)) is Q, Q(1, 2) + (3,)


@program()
def p_named_tuples_that_are_refused(x):
    told = []
    for args in (("P", "a a"), ("1P", "a"), ("P", "def"), ("P", "a b")):
        try:
            told.append(collections.namedtuple(*args)._fields)
        except ValueError as error:
            told.append(str(error))
    return told, collections.namedtuple("P", "a def a", rename=True)._fields, x


class Without(type):
    __new__ = None


class WithoutInit(type):
    __init__ = None


class NewOfClass(type):
    @classmethod
    def __new__(other, meta, *args):
        return super().__new__(meta, *args)


@program(*((torch.ones(3), meta) for meta in (Without, WithoutInit, NewOfClass)), breaks=None)
def p_metaclasses_whose_methods_are_no_functions(x, meta):
    try:

        class Made(metaclass=meta):
            pass

    except TypeError as error:
        return str(error), x
    return type(Made), Made.__name__, x


class Losing(type):
    def __new__(meta, name, bases, namespace):
        namespace.pop("__classcell__", None)
        return super().__new__(meta, name, bases, namespace)


class Sharing(type):
    def __new__(meta, name, bases, namespace):
        made = super().__new__(meta, name, bases, namespace)
        type("Other", (), namespace)
        return made


@program((torch.ones(3), Losing), (torch.ones(3), Sharing), breaks=None)
def p_the_cell_of_a_class_is_lost(x, meta):
    class WithoutCell(metaclass=meta):
        pass

    try:

        class WithCell(metaclass=meta):
            def own(self):
                return __class__

    except (RuntimeError, TypeError) as error:
        return type(error), str(error), WithoutCell.__name__, x


@program()
def p_a_metaclass_tells_its_own_names(x):
    class Meta(type):
        def __class_getitem__(cls, item):
            return f"{cls.__name__}[{item.__name__}]"

    told = Meta.__name__, Meta.__qualname__, Meta.__module__, Meta.__bases__, Meta.__mro__[1:]
    return Meta[int], told, x


@program(breaks=None)
def p_a_named_tuple_keeps_its_own_names(x):
    try:

        class Point(typing.NamedTuple):
            a: int

            def _fields(self):
                return ()

    except AttributeError as error:
        return str(error), x


class Noting:
    seen: list = []

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.seen.append(cls.__name__)
        if cls.__name__ == "Refused":
            raise LookupError(cls.__name__)


class GenericAndNoting(typing.Generic[T], Noting):
    pass


@program(breaks=None)
def p_typing_stands_before_a_class_that_is_told_of_others(x):
    del Noting.seen[:]

    class Plain(GenericAndNoting):
        pass

    class Given(GenericAndNoting[int]):
        pass

    try:

        class Refused(GenericAndNoting):
            pass

    except LookupError as error:
        return list(Noting.seen), error.args, Plain.__mro__[1:], Given.__parameters__, x


def refuse_others(cls, above):
    if not issubclass(cls, above):
        raise LookupError(f"{cls!r} {above!r}")


@program(breaks=None)
def p_registers_after_a_sequence(x):
    class Items(collections.abc.MutableSequence):
        pass

    refuse_others(Items, typing.MutableSequence)

    class Table(collections.abc.Mapping):
        pass

    class Registered:
        pass

    Table.register(Registered)
    refuse_others(Registered, typing.Mapping)
    return x + 1


test_agrees = program.test()
