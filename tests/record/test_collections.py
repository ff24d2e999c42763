"""Dataclasses, named tuples, subclasses of containers, `collections`, `copy`."""

import collections
import copy
import dataclasses
import types
import typing
from collections import (
    ChainMap,
    OrderedDict,
    UserList,
    defaultdict,
    deque,
    namedtuple,
)
from dataclasses import asdict, astuple, dataclass, field, fields, is_dataclass, replace

import torch

from tests.record.programs import Programs

program = Programs()


class A:
    def __init__(self, v):
        self.v = v


@dataclass
class D:
    a: int
    b: float = 2.0
    c: list = field(default_factory=list)

    def tot(self):
        return self.a + self.b


@dataclass(frozen=True)
class DF:
    a: typing.Any
    b: int = 1


@dataclass(slots=True)
class DS:
    a: int
    b: int = 3


@dataclass(order=True)
class DO:
    a: int
    b: int = field(default=0, compare=False)


@dataclass
class DP:
    a: int
    iv: dataclasses.InitVar[int]
    s: int = field(init=False)

    def __post_init__(self, iv):
        self.s = self.a + iv


@dataclass(kw_only=True)
class DK:
    a: int
    b: int = 0


@dataclass
class DD(D):
    d: int = 9


@program(breaks=None)
def p_dc_frozen(x):
    d = DF(x)
    try:
        d.a = 1
    except dataclasses.FrozenInstanceError as e:
        m = str(e)
    return (m, d.a, hash(DF(1)) == hash(DF(1)), {DF(1): 2}[DF(1)])


@program()
def p_dc_slots(x):
    d = DS(1)
    d.a = x
    return (d.a, d.b, d == DS(1) if False else 0, fields(DS)[1].name)


@program()
def p_dc_order(x):
    return (
        DO(1) < DO(2),
        sorted([DO(3), DO(1)])[0].a,
        DO(1, 5) == DO(1, 6),
        max(DO(1), DO(2)).a,
        x,
    )


@program()
def p_dc_post(x):
    d = DP(1, 2)
    return (d.s, x)


@program()
def p_dc_kw(x):
    d = DK(a=2)
    try:
        DK(1)
    except TypeError as e:
        m = str(e)
    return (d.a, d.b, m, x)


@program()
def p_dc_replace(x):
    d = DF(x)
    e = replace(d, b=5)
    return (e.a is x, e.b, d.b)


@program()
def p_dc_fields(x):
    return (
        [f.name for f in fields(D)],
        is_dataclass(D),
        is_dataclass(D(1)),
        is_dataclass(3),
        [getattr(D(1), f.name) for f in fields(D(1))],
        x + 1,
    )


@program()
def p_dc_asdict(x):
    return (asdict(D(1)), astuple(DS(1, 2)), asdict(D(1, c=[D(2)])), x + 1)


@program()
def p_dc_match(x):
    match D(1, 3.0):
        case D(a=1, b=q):
            return (q, x)


@program((torch.ones(2), D(1)), (torch.ones(2), D(5)))
def p_dc_arg(x, d):
    d.a = d.a + 1
    d.c.append(3)
    return (x * d.a, d.tot(), d)


NT = namedtuple("NT", "a b c", defaults=[7])


class NTS(NT):
    __slots__ = ()

    def s(self):
        return self.a + self.b

    @property
    def pp(self):
        return self.c * 2


class TNT(typing.NamedTuple):
    x: int
    y: float = 1.5

    def norm(self):
        return self.x + self.y


@program()
def p_nts(x):
    n = NTS(x, 2)
    return (n.s(), n.pp, n, n._replace(b=9), type(n) is NTS, isinstance(n, NT))


@program()
def p_tnt(x):
    n = TNT(1)
    return (n.norm(), n, n.x, x, TNT(x=3, y=2), TNT.__annotations__.keys() if False else 0)


@program()
def p_nt_repr(x):
    return (repr(NT(1, 2)), str(TNT(1)), f"{NT(1, 2)}", x)


@program(breaks=None)
def p_nt_eq(x):
    return (
        NT(1, 2) == NT(1, 2),
        NT(1, 2) < NT(1, 3),
        hash(NT(1, 2)) == hash((1, 2, 7)),
        {NT(1, 2): 1}[1, 2, 7],
        x,
    )


@program((torch.ones(2), NTS(1, 2)))
def p_nt_arg(x, n):
    return (x * n.a, n.s(), n._replace(a=x))


@program()
def p_nt_bad(x):
    try:
        NT(1)
    except TypeError as e:
        m = str(e)
    try:
        NT(1, 2, 3, 4)
    except TypeError as e:
        m2 = str(e)
    try:
        NT(1, 2)._replace(zz=1)
    except ValueError as e:
        m3 = str(e)
    return (m, m2, m3, x)


class L(list):
    tag = "L"

    def __init__(self, *a):
        super().__init__(*a)
        self.n = len(self)

    def first(self):
        return self[0]

    def append(self, v):
        super().append(v)
        self.n += 1


class L0(list):
    pass


class Di(dict):
    def __getattr__(self, k):
        try:
            return self[k]
        except KeyError:
            raise AttributeError(k)

    def __setattr__(self, k, v):
        self[k] = v


class Di2(dict):
    def __getitem__(self, k):
        return dict.__getitem__(self, k) * 2

    def __missing__(self, k):
        return k


class Tu(tuple):
    def __new__(cls, *a):
        return super().__new__(cls, a)

    def s(self):
        return sum(self)


class OD(OrderedDict):
    def __post_init__(self):
        pass

    def __getitem__(self, k):
        if isinstance(k, str):
            return dict(self.items())[k]
        return self.to_tuple()[k]

    def to_tuple(self):
        return tuple((self[k] for k in self.keys()))

    def __setattr__(self, n, v):
        if n in self.keys() and v is not None:
            super().__setitem__(n, v)
        super().__setattr__(n, v)


@program()
def p_list_sub(x):
    l = L([x, 2])
    l.append(3)
    return (
        l.first(),
        len(l),
        l.n,
        l.tag,
        isinstance(l, list),
        l[1:],
        [a for a in l][1],
        l == [x, 2, 3],
        sum(l[1:]),
    )


@program()
def p_list_sub_ret(x):
    l = L([1])
    l.append(x)
    l.extra = 4
    return l


@program()
def p_list_sub0(x):
    l = L0()
    l.append(x)
    l.extend([1, 2])
    return (l, l.pop(), 2 in l[1:], sorted(L0([3, 1])), L0("ab"))


@program((torch.ones(2), L([1, 2])))
def p_list_sub_arg(x, l):
    l.append(x)
    return (l[0], len(l), l.first())


@program()
def p_dict_sub(x):
    d = Di(a=x)
    d.b = 2
    return (
        d.a,
        d["b"],
        d.b,
        hasattr(d, "z"),
        list(d),
        dict(d),
        isinstance(d, dict),
        len(d),
        "a" in d,
    )


@program()
def p_dict_sub_ret(x):
    d = Di(a=1)
    d["b"] = x
    return d


@program()
def p_dict_sub2(x):
    d = Di2(a=2)
    return (d["a"], d["zz"] if False else 0, d.get("a"), x, list(d.values()), {**d})


@program()
def p_dict_missing(x):
    d = Di3()
    return (d["q"], x)


class Di3(dict):
    def __missing__(self, k):
        self[k] = [k]
        return self[k]


@program((torch.ones(2), Di(a=1)))
def p_dict_sub_arg(x, d):
    d.q = x
    return (d.a, list(d.items())[0])


@program()
def p_tuple_sub(x):
    t = Tu(1, 2, 3)
    return (t.s(), t[0], len(t), t, isinstance(t, tuple), t == (1, 2, 3), x, Tu(x, 1))


@program()
def p_od_sub(x):
    o = OD(a=x, b=2)
    return (o["a"], o[1], o.to_tuple(), list(o), o)


@program((torch.ones(2), OD(a=torch.ones(2))))
def p_od_sub_arg(x, o):
    return (o["a"] + x, o[0], o.to_tuple())


@program((torch.ones(2), OrderedDict(a=1, b=2)))
def p_od_arg(x, o):
    o["n"] = x
    o.move_to_end("a")
    return (list(o), o)


@program()
def p_defaultdict(x):
    d = defaultdict(list)
    d["a"].append(x)
    d["b"]
    e = defaultdict(int)
    e["k"] += 3
    f = defaultdict(lambda: 5, z=1)
    return (
        d,
        e,
        f["q"],
        f["z"],
        "nope" in d,
        d.get("nope"),
        list(e.items()),
        d.default_factory is list,
    )


@program((torch.ones(2), defaultdict(list, a=[1])))
def p_defaultdict_arg(x, d):
    d["new"].append(x)
    return (d, len(d))


@program()
def p_defaultdict_ret(x):
    d = defaultdict(list)
    d[1].append(x)
    return d


@program()
def p_deque(x):
    d = deque([1, 2, 3], maxlen=3)
    d.append(x)
    d.appendleft(9)
    a = d.pop()
    b = d.popleft()
    d.extend([5, 6])
    d.rotate(1)
    return (
        a,
        b,
        list(d),
        len(d),
        d.maxlen,
        d[0],
        5 in d,
        d,
        bool(d),
        [i for i in d],
        list(reversed(d)),
    )


@program()
def p_deque_loop(x):
    q = deque([x])
    out = []
    while q:
        a = q.popleft()
        out.append(a)
        if len(out) < 3:
            q.append(a + 1)
    return out


@program()
def p_chainmap(x):
    c = ChainMap({"a": 1}, {"b": x})
    c["z"] = 2
    return (c["a"], c["b"], len(c), "q" in c, c.maps[0], c.get("nope"), list(c), c.new_child()["a"])


@program()
def p_userlist(x):
    u = UserList([1])
    u.append(x)
    return (u[0], len(u), u.data, u[1])


class MM(collections.abc.MutableMapping):
    def __init__(self):
        self.d = {}

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


@program()
def p_simplens(x):
    n = types.SimpleNamespace(a=x, b=2)
    n.c = 3
    n.b += 1
    return (
        n.a,
        n.b,
        n.c,
        vars(n),
        hasattr(n, "z"),
        types.SimpleNamespace(b=3) == types.SimpleNamespace(b=3),
    )


@program(breaks=None)
def p_simplens_repr(x):
    return (repr(types.SimpleNamespace(a=1)), x)


@program()
def p_copy(x):
    a = A([1, x])
    b = copy.copy(a)
    return (
        b.v is a.v,
        type(b) is A,
        copy.copy([1, 2]),
        copy.copy({"a": 1}),
        copy.copy((1,)),
        copy.copy({1}),
        b is a,
    )


@program(breaks=None)
def p_deepcopy(x):
    a = A([1, [2]])
    b = copy.deepcopy(a)
    return (
        b.v is a.v,
        b.v == a.v,
        copy.deepcopy({"a": [1]}),
        copy.deepcopy([1, (2, [3])]),
        copy.deepcopy(D(1)),
        x,
    )


@program()
def p_deepcopy_alias(x):
    l = [1]
    m = copy.deepcopy([l, l])
    return (m[0] is m[1], m[0] is l, x)


class CC:
    def __init__(self, v):
        self.v = v

    def __copy__(self):
        return CC("copied")

    def __deepcopy__(self, memo):
        return CC("deep")


@program()
def p_copy_proto(x):
    return (copy.copy(CC(1)).v, copy.deepcopy([CC(1)])[0].v, x)


@program()
def p_object(x):
    o = object()
    return (o is o, o == o, isinstance(o, object), x)


@program()
def p_obj_sentinel(x):
    s = object()
    d = {}
    return (d.get("a", s) is s, x)


SENT = object()


@program()
def p_global_sentinel(x):
    return ({}.get("a", SENT) is SENT, x)


@program()
def p_delattr(x):
    a = A(x)
    delattr(a, "v")
    return (hasattr(a, "v"), x)


@program()
def p_setattr(x):
    a = A(1)
    setattr(a, "zz", x)
    return (a.zz, getattr(a, "v"), a.__class__.__name__, a.__module__, A.__doc__, a.__class__ is A)


@program()
def p_class_call_attr(x):
    a = A(1)
    return (isinstance(a.__init__, types.MethodType), x)


@program()
def p_isinstance_tuple(x):
    return (
        isinstance(x, (int, torch.Tensor)),
        isinstance(A(1), (int, (str, A))),
        issubclass(bool, int),
        isinstance(True, int),
        isinstance(1, bool),
        isinstance(x, torch.nn.Parameter),
    )


@program(breaks=None)
def p_isinstance_looks_no_further_than_needed(x):
    found = []
    kinds = ((int, "x"), ("x", int), ((int,), "x"), ((), int), (), (int, list[int]), int | str)
    for kind in kinds:
        for value in (1, 1.5):
            try:
                found.append((isinstance(value, kind), issubclass(type(value), kind)))
            except TypeError as error:
                found.append(str(error))
    nested = (str,)
    for _ in range(1100):
        nested = (nested,)
    try:
        return isinstance("", nested)
    except RecursionError:
        return found, "nested too deeply", isinstance(x, (torch.Tensor, "x")), x


@program()
def p_isinstance_bad(x):
    try:
        isinstance(1, 3)
    except TypeError as e:
        return (str(e), x)


@program()
def p_eqdefault(x):
    a = A(1)
    return (a == a, a == A(1), a != A(1), a in [a], A(1) in [a], {a: 1}[a], x)


@program()
def p_method_cmp_none(x):
    return (
        A(1) == None,  # noqa: E711
        A(1) is None,
        None != A(1),  # noqa: E711
        (1).__add__(2),
        "a".__eq__("a"),
        [].__len__(),
        x,
    )


@program()
def p_deques_ask_for_whole_numbers(x):
    told, items = [], collections.deque([1, 2, 3])
    rotate, insert = items.rotate, items.insert
    for call in (lambda: rotate("x"), lambda: rotate(1.0), lambda: insert("a", 1)):
        try:
            call()
        except TypeError as error:
            told.append(str(error))
    items.rotate(True)
    return told, list(items), x


test_agrees = program.test()
