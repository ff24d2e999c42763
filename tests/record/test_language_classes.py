"""Classes and objects, one program for each thing that the language knows of them."""

# ruff: noqa: E731, E741, E742, F601, F811, F821, F841
import abc
import collections
import copy
import dataclasses
import enum
import types
import typing

import torch

from tests.record.programs import Programs

program = Programs()
X = torch.arange(3.0) + 1


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class SlotsD(Slots):
    __slots__ = ("c", "__dict__")


@program(graphs=0)
def p_slots(x):
    s = Slots(x)
    r = []
    try:
        s.z = 1
    except AttributeError as e:
        r.append(str(e))
    try:
        s.b
    except AttributeError as e:
        r.append(str(e))
    s.b = 2
    del s.b
    d = SlotsD(1)
    d.q = 4
    d.c = 5
    return r, hasattr(s, "b"), s.a, vars(d), d.c


class Prop:
    def __init__(self):
        self._v = 1

    @property
    def v(self):
        "doc"
        return self._v

    @v.setter
    def v(self, n):
        self._v = n * 2

    @v.deleter
    def v(self):
        del self._v

    @property
    def ro(self):
        return 1


@program(graphs=0)
def p_prop(x):
    p = Prop()
    p.v = 5
    a = p.v
    del p.v
    r = []
    try:
        p.v
    except AttributeError as e:
        r.append(str(e))
    try:
        p.ro = 1
    except AttributeError as e:
        r.append(str(e))
    return a, r, Prop.v.__doc__, Prop.v.fget(Prop()), x


class GA:
    def __init__(self):
        object.__setattr__(self, "d", {"k": 1})

    def __getattr__(self, n):
        try:
            return self.d[n]
        except KeyError:
            raise AttributeError(n) from None

    def __setattr__(self, n, v):
        self.d[n] = v

    def __delattr__(self, n):
        del self.d[n]


@program(graphs=0)
def p_ga(x):
    g = GA()
    g.z = x
    r = [g.k, g.z, getattr(g, "no", 3), hasattr(g, "no")]
    del g.k
    try:
        g.k
    except AttributeError as e:
        r.append((e.args, e.__cause__ is None))
    return r, vars(g)


class GAB:
    def __getattribute__(self, n):
        if n.startswith("x_"):
            return n
        return super().__getattribute__(n)

    def m(self):
        return self.x_1, self.__class__.__name__


@program(graphs=0)
def p_gab(x):
    return GAB().m(), GAB().x_q, x


class ND:
    def __get__(self, i, o=None):
        return ("nd", i is None, o.__name__)


class DD(ND):
    def __set__(self, i, v):
        i.__dict__["dd"] = ("set", v)

    def __delete__(self, i):
        i.__dict__.pop("dd")


class Desc:
    nd = ND()
    dd = DD()


@program(graphs=0)
def p_desc(x):
    d = Desc()
    r = [d.nd, Desc.nd, d.dd]
    d.nd = 1
    d.dd = 2
    r += [d.nd, d.dd, vars(d).copy()]
    del d.dd
    del d.nd
    r.append((d.nd, vars(d)))
    return r, x


class A:
    n = "A"

    def f(self):
        return ["A"]

    @classmethod
    def mk(cls):
        return cls()


class B(A):
    def f(self):
        return ["B"] + super().f()


class C(A):
    def f(self):
        return ["C"] + super().f()


class D(B, C):
    n = "D"

    def f(self):
        return ["D"] + super(D, self).f()

    @classmethod
    def mk(cls):
        r = super().mk()
        r.z = 1
        return r


@program(graphs=0)
def p_mro(x):
    d = D.mk()
    return (
        d.f(),
        d.z,
        type(d) is D,
        [k.__name__ for k in D.__mro__],
        D.__bases__,
        super(B, d).f(),
        d.n,
        issubclass(D, A),
        isinstance(d, (int, C)),
        x,
    )


class Meta(type):
    def __call__(cls, *a, **k):
        o = super().__call__(*a, **k)
        o.made = True
        return o

    def __len__(cls):
        return 7

    def __contains__(cls, v):
        return v == 1

    def __getitem__(cls, k):
        return (cls.__name__, k)

    def __iter__(cls):
        return iter([1, 2])

    @property
    def p(cls):
        return cls.__name__.lower()


class WithMeta(metaclass=Meta):
    def __init__(self, a):
        self.a = a


@program(graphs=0)
def p_meta(x):
    o = WithMeta(x)
    return (
        o.made,
        len(WithMeta),
        1 in WithMeta,
        WithMeta[3],
        list(WithMeta),
        WithMeta.p,
        hasattr(o, "p"),
        o.a,
    )


class Num:
    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return Num(self.v + (o.v if isinstance(o, Num) else o))

    def __radd__(self, o):
        return Num(("r", o, self.v))

    def __iadd__(self, o):
        self.v += 1
        return self

    def __sub__(self, o):
        return NotImplemented

    def __rsub__(self, o):
        return "rsub"

    def __neg__(self):
        return Num(-self.v)

    def __invert__(self):
        return "inv"

    def __abs__(self):
        return 1

    def __matmul__(self, o):
        return "mm"

    def __divmod__(self, o):
        return "dm"

    def __pow__(self, o, m=None):
        return ("pow", o, m)

    def __lt__(self, o):
        return self.v < o.v

    def __eq__(self, o):
        return isinstance(o, Num) and self.v == o.v

    def __hash__(self):
        return hash(self.v)

    def __bool__(self):
        return self.v != 0

    def __len__(self):
        return 3

    def __contains__(self, k):
        return k == "in"

    def __iter__(self):
        return iter((1, 2, self.v))

    def __getitem__(self, k):
        return k

    def __setitem__(self, k, v):
        self.v = (k, v)

    def __delitem__(self, k):
        self.v = None

    def __call__(self, *a, **k):
        return (a, k)

    def __format__(self, s):
        return "F" + s

    def __int__(self):
        return 3

    def __float__(self):
        return 2.5

    def __index__(self):
        return 2

    def __reversed__(self):
        return ["rev"]

    def __round__(self, n=0):
        return ("round", n)

    def __enter__(self):
        return self

    def __exit__(self, *a):
        return True

    def __complex__(self):
        return 1j

    def __missing__(self, k):
        return k


class New:
    inst = None

    def __new__(cls, *a, **k):
        o = super().__new__(cls)
        o.args = (a, k)
        return o

    def __init__(self, a, b=1):
        self.b = b


class Single:
    def __new__(cls, v):
        if v:
            return object.__new__(cls)
        return "other"

    def __init__(self, v):
        self.v = v


@program(graphs=0)
def p_new(x):
    o = New(1, b=x)
    return o.args[0], o.b, Single(1).v, Single(0), x


@dataclasses.dataclass
class DC:
    a: int
    b: list = dataclasses.field(default_factory=list)
    c: typing.ClassVar[int] = 4
    d: dataclasses.InitVar[int] = 3
    e: float = dataclasses.field(init=False, repr=False, compare=False, default=0.5)

    def __post_init__(self, d):
        self.e = d * 2


@dataclasses.dataclass(frozen=True)
class DF:
    x: torch.Tensor
    n: int = 0


@dataclasses.dataclass(slots=True, order=True, kw_only=True)
class DS:
    a: int
    b: int = 2


@program(graphs=0)
def p_dc(x):
    d = DC(1, d=5)
    d.b.append(2)
    r = dataclasses.replace(d, a=9, d=1)
    f = DF(x)
    try:
        f.n = 3
    except dataclasses.FrozenInstanceError as e:
        er = str(e)
    return (
        d,
        r,
        dataclasses.asdict(d),
        dataclasses.astuple(d),
        [g.name for g in dataclasses.fields(DC)],
        er,
        dataclasses.replace(f, n=2).n,
        DS(a=1) < DS(a=2),
        DS(a=1, b=3),
        DC.c,
        d == DC(1, [2]),
        DC.__match_args__,
        dataclasses.is_dataclass(d),
    )


class P(typing.NamedTuple):
    a: int
    b: torch.Tensor = None

    def s(self):
        return self.a * 2


class P2(collections.namedtuple("P2", "u v")):
    __slots__ = ()

    def __new__(cls, u, v=5):
        return super().__new__(cls, u, v)

    @property
    def w(self):
        return self.u + self.v


@program(graphs=0)
def p_nt(x):
    p = P(1, x)
    q = P2(3)
    a, b = p
    return (
        p,
        q,
        p.s(),
        q.w,
        p._replace(a=5),
        q._asdict(),
        P._make([1, 2]),
        p + (1,),
        p[0],
        p[-1] is x,
        isinstance(p, tuple),
        q == (3, 5),
        P._fields,
        len(q),
        {q: 1}[(3, 5)],
        repr(q),
        a,
    )


class Color(enum.Enum):
    R = 1
    G = "g"

    @property
    def d(self):
        return self.name * 2

    @classmethod
    def first(cls):
        return cls.R


class Perm(enum.IntFlag):
    A = 1
    B = 2


@program(graphs=1)
def p_enum(x):
    return (
        Color.R,
        Color("g"),
        Color["R"],
        Color.R.d,
        Color.first() is Color.R,
        list(Color),
        len(Color),
        Color.R in Color,
        Perm.A | Perm.B,
        (Perm.A | Perm.B) & Perm.B,
        Perm(3),
        {Color.R: 1}[Color(1)],
        Color.R == 1,
        isinstance(Perm.A, int),
        Perm.A + 1,
        Color.R.value,
        f"{Color.R}",
        str(Perm.A),
        Color.R != Color.G,
        hash(Color.R) == hash(Color.R),
        x * Perm.B,
    )


@program(graphs=0)
def p_enumerr(x):
    try:
        Color(5)
    except ValueError as e:
        return str(e), x


class Abs(abc.ABC):
    @abc.abstractmethod
    def f(self): ...
    @classmethod
    def __subclasshook__(cls, c):
        return hasattr(c, "quack") or NotImplemented


class Q:
    quack = 1


@typing.runtime_checkable
class Proto(typing.Protocol):
    def quack(self): ...


class Duck:
    def quack(self):
        return 1


T = typing.TypeVar("T")


class Gen(typing.Generic[T]):
    def __init__(self, v: T):
        self.v = v


@program(graphs=0)
def p_typing(x):
    g = Gen[int](3)
    return (
        isinstance(Duck(), Proto),
        isinstance(3, Proto),
        g.v,
        Gen[int],
        typing.cast(int, x) is x,
        typing.Optional[int],
        typing.Union[int, str],
        list[int],
        int | None,
        isinstance(3, int | str),
        typing.get_args(typing.Dict[str, int]),
        typing.TYPE_CHECKING,
        isinstance(None, typing.Optional[int]) if 0 else 1,
    )


@program(graphs=0)
def p_type3(x):
    K = type("K", (A,), {"f": lambda s: "k", "z": x})
    k = K()
    return k.f(), k.z, K.__name__, type(k) is K, type(x), type(3)(5), type([])([1])


@program(graphs=1)
def p_copy(x):
    a = A()
    a.l = [1, [2]]
    a.me = a
    b = copy.copy(a)
    c = copy.deepcopy(a)
    return (
        b.l is a.l,
        c.l is a.l,
        c.l == a.l,
        c.me is c,
        copy.copy([1]),
        copy.deepcopy({"a": [x]})["a"][0] is x,
        copy.deepcopy(x).add_(1),
        x,
        copy.copy((1,)),
        copy.deepcopy(A) is A,
    )


class Cp:
    def __init__(self):
        self.v = [1]

    def __copy__(self):
        return "cp"

    def __deepcopy__(self, memo):
        return ("dc", len(memo))


class Rd:
    def __init__(self, a):
        self.a = a

    def __reduce__(self):
        return Rd, (self.a + 1,)


class St:
    def __init__(self):
        self.a = 1

    def __getstate__(self):
        return {"a": 5}

    def __setstate__(self, s):
        self.s = s


@program(graphs=0)
def p_copy2(x):
    return (
        copy.copy(Cp()),
        copy.deepcopy([Cp()])[0][0],
        copy.copy(Rd(1)).a,
        vars(copy.copy(St())),
        vars(copy.deepcopy(St())),
        x,
    )


class MyList(list):
    def last(self):
        return self[-1]


class MyDict(dict):
    def __getattr__(self, k):
        return self[k]

    def __missing__(self, k):
        return "miss"


class MyOD(collections.OrderedDict):
    def __setitem__(self, k, v):
        super().__setitem__(k, ("w", v))

    def to_tuple(self):
        return tuple(self.values())


class MyTuple(tuple):
    def __new__(cls, *a):
        return super().__new__(cls, a)


@program(graphs=0)
def p_sub(x):
    l = MyList([1, 2])
    l.append(x)
    d = MyDict(a=1)
    o = MyOD(a=x)
    o["b"] = 2
    t = MyTuple(1, 2)
    return (
        l.last() is x,
        l[:2],
        type(l[:1]),
        d.a,
        d["zz"],
        d.get("zz"),
        o.to_tuple(),
        o,
        t,
        t[0],
        l + [1],
        len(d),
        isinstance(o, dict),
        sorted(d.items()),
    )


class Ctr(collections.abc.MutableMapping):
    def __init__(self, **k):
        self.d = dict(k)

    def __getitem__(self, k):
        return self.d[k]

    def __setitem__(self, k, v):
        self.d[k] = v

    def __delitem__(self, k):
        del self.d[k]

    def __iter__(self):
        return iter(self.d)

    def __len__(self):
        return len(self.d)


class UD(collections.UserDict):
    def __setitem__(self, k, v):
        super().__setitem__(str(k), v)


@program(graphs=0)
def p_mm(x):
    c = Ctr(a=1, b=2)
    c.update(z=x)
    c.setdefault("q", 4)
    p = c.pop("a")
    u = UD({1: 2})
    u[3] = x
    return (
        dict(c),
        p,
        list(c.items())[0],
        "b" in c,
        c.get("no"),
        c == {"b": 2},
        {**c},
        u["1"],
        3 in u,
        "3" in u,
        dict(u),
        len(u),
        c.popitem(),
    )


@program(graphs=0)
def p_coll(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    c = collections.Counter("abca")
    q = collections.deque([1, 2, 3], maxlen=2)
    q.appendleft(0)
    m = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    o = collections.OrderedDict(a=1, b=2)
    o.move_to_end("a")
    n = types.SimpleNamespace(a=1, b=x)
    mp = types.MappingProxyType({"a": 1})
    c.update("aa")
    c["z"] -= 1
    return (
        d,
        c.most_common(1),
        c,
        q,
        dict(m),
        m["a"],
        m.new_child({"a": 9})["a"],
        o,
        n.b is x,
        mp["a"],
        list(mp),
        c + c,
        c & collections.Counter("a"),
        q.rotate(1),
        o.popitem(last=False),
        repr(q),
    )


@program(graphs=0)
def p_clsattr(x):
    class L:
        reg = []
        n = 0

        def __init__(self):
            L.n += 1
            self.reg.append(self.n)

    L()
    L()
    return L.n, L.reg, x


@program(graphs=0)
def p_nested(x):
    class O:
        class I:
            v = 1

        def mk(self):
            return self.I()

        @staticmethod
        def st(a, b=2):
            return a + b

        __slots__ = ()

    return O().mk().v, O.I.__qualname__, O.st(1), x


@program(graphs=0)
def p_dunderdict(x):
    a = A()
    a.__dict__.update(p=1, q=x)
    a.__dict__["r"] = 3
    return (
        a.p,
        a.r,
        sorted(vars(a)),
        a.__class__,
        a.__dict__ is a.__dict__,
        a.__module__,
        "p" in a.__dict__,
    )


@program(graphs=0, breaks=1)
def p_setclass(x):
    a = A()
    a.__class__ = B
    return a.f(), x


@program(graphs=0)
def p_del(x):
    a = A()
    a.z = 1
    del a.z
    r = []
    try:
        del a.z
    except AttributeError as e:
        r.append(str(e))
    try:
        a.nope
    except AttributeError as e:
        r.append((str(e), e.name, e.obj is a))
    return r, x


class Claims:
    def __init__(self, held):
        self.held = held

    def __getattribute__(self, name):
        if name == "held":
            return object.__getattribute__(self, name)
        return getattr(self.held, name)


class Below(Slots):
    __slots__ = ()

    def told(self):
        return super(Below, self).__init__.__name__


@program(breaks=None)
def p_super_of_what_claims_another_class(x):
    return Below.__dict__["told"](Claims(Below(1))), x


@program(breaks=None)
def p_names_that_classes_refuse(x):
    class Made:
        __slots__ = ["__qualname__"]

    told = [type(Made.__dict__["__qualname__"]).__name__, Made.__qualname__]
    Named = type("Named", (), {})
    for name, value in (("__name__", "a\0b"), ("__name__", 1), ("__qualname__", b"A")):
        try:
            setattr(Named, name, value)
        except (TypeError, ValueError) as error:
            told.append(str(error))
    return told, Named.__name__, x


@program(breaks=None)
def p_module_without_a_name(x):
    bare = types.ModuleType.__new__(types.ModuleType)
    bare.foo = 1
    return bare.foo, hasattr(bare, "__name__"), vars(bare), x


test_agrees = program.test()
