"""Mappings: of `collections`, of the user, views of namespaces; enums and flags."""

import builtins
import collections
import collections.abc
import enum
import functools
import math
import string
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString
from typing import NamedTuple

import numpy as np
import torch

import aotdyn
from tests.record.programs import Programs, note

program = Programs()


class Gen:
    def get(self):
        return 1


class Duck:
    def quack(self):
        return 1


class MM(collections.abc.MutableMapping):
    def __init__(self, *a, **k):
        self.d = dict(*a, **k)

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


class KM(collections.abc.Mapping):
    def __getitem__(self, k):
        if k in ("a", "b"):
            return k * 2
        raise KeyError(k)

    def __iter__(self):
        yield "a"
        yield "b"

    def __len__(self):
        return 2


class Keys:
    def keys(self):
        return ["p", "q"]

    def __getitem__(self, k):
        return k + "!"


class MS(collections.abc.MutableSequence):
    def __init__(self):
        self.l = []

    def __getitem__(self, i):
        return self.l[i]

    def __setitem__(self, i, v):
        self.l[i] = v

    def __delitem__(self, i):
        del self.l[i]

    def __len__(self):
        return len(self.l)

    def insert(self, i, v):
        self.l.insert(i, v)


class MySet(collections.abc.MutableSet):
    def __init__(self, it=()):
        self.l = []
        [self.add(i) for i in it]

    def __contains__(self, v):
        return v in self.l

    def __iter__(self):
        return iter(self.l)

    def __len__(self):
        return len(self.l)

    def add(self, v):
        if v not in self.l:
            self.l.append(v)

    def discard(self, v):
        if v in self.l:
            self.l.remove(v)


class UD(UserDict):
    def __missing__(self, k):
        return k * 2


@program()
def p_mm(x):
    m = MM(a=x, b=2)
    m.update(c=3)
    m.setdefault("d", 4)
    p = m.pop("b")
    q = m.popitem()
    return (
        dict(m),
        {**m},
        list(m),
        list(m.items()),
        list(m.values()),
        "a" in m,
        m.get("z", 1),
        m == {"a": 1},
        len(m),
        p,
        q,
        bool(m),
    )


def f(**k):
    return k


@program()
def p_km(x):
    m = KM()
    return (
        dict(m),
        {**m},
        f(**m),
        list(m.keys()),
        m == {"a": "aa", "b": "bb"},
        m.get("c"),
        x,
        sorted(m.items()),
    )


@program()
def p_keys(x):
    k = Keys()
    return dict(k), {**k}, f(**k), x


@program()
def p_match_map(x):
    match KM():
        case {"a": v, **rest}:
            return v, rest, x


@program()
def p_myset(x):
    s = MySet([1, 2])
    t = MySet([2, 3])
    return (
        list(s & t),
        list(s | t),
        list(s - t),
        list(s ^ t),
        s < t,
        s == MySet([2, 1]),
        s.isdisjoint(t),
        x,
    )


@program()
def p_myset2(x):
    s = MySet([1, 2])
    s |= {5}
    s -= {1}
    s.remove(2)
    try:
        s.remove(9)
    except KeyError as e:
        return list(s), e.args, x


@program()
def p_userdict(x):
    u = UserDict(a=1)
    u["b"] = x
    u.update(c=3)
    return (
        dict(u),
        {**u},
        list(u.items()),
        u == {"a": 1},
        u.data,
        len(u),
        repr(UserDict(a=1)),
        u.copy().data,
        u.pop("a"),
        "a" in u,
        u.get("q"),
    )


@program()
def p_userdict_missing(x):
    u = UD()
    return u["ab"], "ab" in u, x


@program()
def p_userdict_or(x):
    u = UserDict(a=1) | {"b": 2}
    u |= {"c": 3}
    return type(u), u.data, x


@program()
def p_userlist(x):
    u = UserList([1, 2])
    u.append(x)
    u += [3]
    return list(u), u[1:].data, len(u), u.data, 1 in u


@program()
def p_userstring(x):
    u = UserString("abc")
    return u.upper().data, len(u), str(u), u + "d" == "abcd", x


@program()
def p_counter(x):
    c = Counter("abca")
    c.update("bb")
    c["z"] += 1
    d = Counter(a=1)
    return (
        c.most_common(2),
        dict(c),
        c + d,
        c - d,
        c & d,
        c | d,
        sum(c.values()),
        list(c.elements()),
        c["q"],
        c.total(),
        repr(c),
        x,
    )


@program()
def p_counter2(x):
    c = Counter(a=3, b=-1)
    c.subtract({"a": 1})
    return +c, -c, c == Counter(a=2, b=-1), dict(c), c.copy(), c <= c, Counter() == Counter(a=0), x


@program()
def p_counter_cmp(x):
    c = Counter([1, 2, 1])
    del c[1]
    del c[9]
    return c, x


@program()
def p_chainmap(x):
    a, b = {"a": 1}, {"a": 2, "b": x}
    c = ChainMap(a, b)
    c["n"] = 1
    d = c.new_child({"a": 0})
    return (
        c["a"],
        c["b"],
        dict(c),
        {**c},
        list(c),
        len(c),
        d["a"],
        d.parents["a"],
        a,
        "b" in c,
        c.get("zz"),
        c.maps[0] is a,
        list(d.items()),
    )


@program()
def p_chainmap2(x):
    c = ChainMap({"a": 1}, {"b": 2})
    try:
        del c["b"]
    except KeyError as e:
        r = str(e)
    return r, c.pop("a"), c.maps, repr(ChainMap({"a": 1})), x


@program()
def p_od(x):
    o = OrderedDict([("a", 1), ("b", x), ("c", 3)])
    o.move_to_end("a")
    o.move_to_end("c", last=False)
    p = o.popitem(last=False)
    q = o.popitem()
    return list(o), p, q, o == OrderedDict([("b", x)]), list(reversed(o)), o


@program()
def p_od2(x):
    o = OrderedDict(a=1, b=2, c=3)
    return (
        list(reversed(o)),
        list(reversed(o.items())),
        list(reversed(o.keys())),
        list(reversed(o.values())),
        repr(o),
        o == {"c": 3, "b": 2, "a": 1},
        o == OrderedDict(c=3, b=2, a=1),
        x,
    )


@program()
def p_od3(x):
    o = OrderedDict(a=1)
    try:
        o.move_to_end("z")
    except KeyError as e:
        r = repr(e)
    try:
        OrderedDict().popitem()
    except KeyError as e:
        r2 = repr(e)
    return r, r2, o | {"b": 2}, OrderedDict.fromkeys("ab", 0), o.copy(), x


@program((torch.ones(2), OrderedDict(a=1, b=2, c=3)))
def p_od_arg(x, o):
    o.move_to_end("a")
    o.popitem(last=False)
    o["z"] = x
    return list(o), list(reversed(o))


@program((torch.ones(2), OrderedDict(a=1, b=2, c=3)))
def p_od_arg2(x, o):
    o["a"] = 5
    del o["b"]
    o["b"] = 6
    return list(o.items())


@aotdyn.disable
def changed_below(cls: type) -> OrderedDict:
    """An OrderedDict that keeps a place for a key that it does not hold."""
    o = cls(a=1, b=2)
    dict.__delitem__(o, "a")
    return o


class Doubled(OrderedDict):
    def __getitem__(self, key):
        return 2 * super().__getitem__(key)


def raises_key_error(function) -> bool:
    try:
        function()
    except KeyError:
        return True
    return False


@program((OrderedDict,), (Doubled,), breaks=None)
def p_an_ordered_dict_that_came_in_changed_as_a_dict(cls):
    o = changed_below(cls)
    return raises_key_error(lambda: list(o)), raises_key_error(o.copy), len(o), o.get("b")


@program(breaks=None)
def p_ordered_dicts_are_changed_as_dicts(x):
    fewer, popped, cleared, more = (OrderedDict(a=1, b=2) for _ in range(4))
    dict.__delitem__(fewer, "a")
    dict.popitem(popped)
    dict.clear(cleared)
    dict.update(more, c=3)
    dict.__setitem__(more, "d", 4)
    dict.setdefault(more, "e", 5)
    return (
        [raises_key_error(lambda o=o: list(o.items())) for o in (fewer, popped, cleared, more)],
        raises_key_error(lambda: fewer.pop("a")),
        raises_key_error(lambda: dict.pop(more, "f")),
        list(more), len(more), list(cleared), len(cleared), x,
    )  # fmt: skip


@program(breaks=None)
def p_ordered_dicts_are_compared_as_dicts(x):
    a, b = OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)
    return a == b, dict.__eq__(a, b), a != b, dict.__ne__(a, b), type(dict.copy(a)), x


class Counted(dict):
    """Notes what is read, and goes through its keys from the end."""

    def __init__(self, **items):
        super().__init__(**items)
        self.reads = []

    def __getitem__(self, key):
        self.reads.append(key)
        return super().__getitem__(key)

    def __iter__(self):
        return reversed(list(dict.keys(self)))


@program((torch.ones(2), Counted(a=1, b=2)))
def p_a_dict_that_counts_what_is_read(x, d):
    return list(d), d["a"], list(d.reads), len(d), list(dict.items(d)), x


class Numbered:
    """Equal only to itself, with a hash that may change."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number


@aotdyn.disable
def renumbered(cls: type) -> dict:
    key = Numbered(1)
    made = cls([(key, 5)])
    key.number = 2
    return made


@program((dict,), (OrderedDict,), (Doubled,), breaks=None)
def p_keys_whose_hash_has_changed(cls):
    d = renumbered(cls)
    return (
        len(d),
        raises_key_error(lambda: list(d.values())),
        raises_key_error(lambda: d[list(dict.keys(d))[0]]),
    )


@program()
def p_dict_rev(x):
    d = {"a": 1, "b": 2}
    return list(reversed(d)), list(reversed(d.items())), d.popitem(), x


@program()
def p_mapproxy(x):
    d = {"a": 1}
    m = types.MappingProxyType(d)
    d["b"] = 2
    return (
        m["a"],
        dict(m),
        {**m},
        list(m),
        len(m),
        "b" in m,
        m.get("z"),
        list(m.items()),
        m == {"a": 1, "b": 2},
        x,
    )


@program()
def p_mapproxy2(x):
    m = types.MappingProxyType({"a": x})
    try:
        m["b"] = 1
    except TypeError as e:
        return str(e), m.copy(), m | {"c": 1}


class Proxied:
    def __init__(self):
        self.own = {"a": 1}
        self.seen = types.MappingProxyType(self.own)

    def __deepcopy__(self, memo):
        return Proxied()

    def __eq__(self, other):
        return self.own == other.own


@program((torch.ones(2), Proxied()))
def p_mapproxy_of_what_is_changed(x, held):
    held.own["b"] = 2
    return x + 1, dict(held.seen), len(held.seen)


@program((torch.ones(2), Proxied()))
def p_what_a_mapproxy_shows_is_changed(x, held):
    before = [*held.seen], held.seen.get("b"), "b" in held.seen
    held.own["b"], held.own["a"] = 2, x + 1
    other = types.MappingProxyType(held.own)
    after = dict(held.seen), len(other), held.seen == held.own, held.seen | {"z": 2}
    held.own.clear()
    return x, before, after, len(held.seen), [*other.items()]


@program((torch.ones(2), Proxied(), []), breaks=1)
def p_a_mapproxy_around_a_break(x, held, log):
    found = held.seen.get("b")
    held.own["b"] = 2
    note(log, found)
    return x, held.seen["b"]


class Namespace:
    k = 1


NAMESPACE = vars(Namespace)


@program(breaks=None)
def p_a_namespace_shows_what_is_set(x):
    before = NAMESPACE["k"]
    Namespace.k = 5
    after = NAMESPACE["k"]
    Namespace.k = 1
    return before, after, x


MP = types.MappingProxyType({"a": 1})


@program()
def p_mapproxy_global(x):
    return MP["a"], dict(MP), list(MP.items()), len(MP), "a" in MP, x * MP["a"], [k for k in MP]


@program()
def p_cls_dict(x):
    return (
        "get" in Gen.__dict__,
        Gen.__dict__["get"] is Gen.get,
        "zzz" in Gen.__dict__,
        Gen.__dict__.get("nope"),
        x,
    )


@program()
def p_cls_vars(x):
    return [k for k in vars(Duck) if not k.startswith("_")], x


@program()
def p_cls_dict_iter(x):
    return sorted(k for k in Duck.__dict__ if k[0] != "_"), x


class EE(enum.Enum):
    A = 1
    B = "b"
    C = 1

    @property
    def low(self):
        return self.name.lower()


class FL(enum.Flag):
    R = 1
    W = 2
    X = 4
    RW = 3


class IF_(enum.IntFlag):
    R = 1
    W = 2


class IE(enum.IntEnum):
    A = 1
    B = 2


class SE(enum.StrEnum):
    A = enum.auto()
    B = "q"


@program()
def p_enum_members(x):
    return (
        list(EE.__members__),
        EE.__members__["A"],
        [(k, v) for k, v in EE.__members__.items()],
        len(EE),
        "A" in EE.__members__,
        EE.C is EE.A,
        x,
    )


@program()
def p_enum_lookup(x):
    return (
        EE(1),
        EE["B"],
        EE("b").low,
        EE.A.name,
        EE.A.value,
        x,
        EE.A in EE,
        list(EE),
        list(reversed(EE)),
    )


@program()
def p_enum_bad(x):
    try:
        EE(77)
    except ValueError as e:
        r = str(e)
    try:
        EE["Q"]
    except KeyError as e:
        return r, str(e), x


@program()
def p_flags(x):
    f = FL.R | FL.W
    g = FL.R | FL.X
    return (
        f,
        f is FL.RW,
        g,
        FL.R in g,
        bool(g & FL.W),
        g.value,
        ~FL.R,
        g ^ FL.R,
        [m for m in g],
        len(g),
        repr(g),
        str(g),
        x,
    )


@program()
def p_intflag(x):
    f = IF_.R | IF_.W
    return f, f + 1, IF_.R in f, f == 3, IF_(3), IF_(8), repr(IF_.R | 8), x


@program((torch.ones(2), FL.R | FL.X), (torch.ones(2), FL.W | FL.X))
def p_flag_arg(x, f):
    return f, f & FL.R, FL.X in f, f | FL.W, x


@program()
def p_enum_text(x):
    return (
        repr(EE.A),
        str(EE.A),
        f"{EE.A}",
        f"{IE.A}",
        f"{SE.A}",
        str(IE.B),
        "{}".format(EE.B),
        "%s" % EE.A,
        f"{EE.A!r}",
        f"{IE.A:03d}",
        SE.A + "z",
        x,
    )


@program()
def p_enum_dict(x):
    d = {EE.A: 1, IE.B: 2}
    return d[EE.A], d[2], EE.A == EE.C, hash(EE.A) == hash(EE.A), x


@program()
def p_enum_match(x):
    match EE.A:
        case EE.B:
            return 0
        case EE.A:
            return x + 1


@program()
def p_enum_cmp(x):
    return IE.A < IE.B, IE.A + 1, max(IE), sorted([IE.B, IE.A]), EE.A != EE.B, x


class Told(str):
    def __eq__(self, other):
        told.append(other)
        return str.__eq__(self, other)

    def __hash__(self):
        return hash("same")


told = []
TOLD = {Told(): 1}


@program(breaks=None)
def p_keys_that_code_compares(x):
    del told[:]
    return "same" in TOLD, TOLD.get("same", 3), len(TOLD), list(told), x


@program()
def p_dicts_of_modules_are_written_to(x):
    names, builtin = vars(string), builtins.__dict__
    digits, shown = string.digits, builtins.print
    try:
        names["digits"], names["added"] = "x", 1
        builtin["print"] = len
        found = string.digits, string.added, print([1, 2]), hasattr(string, "added")
        del names["added"]
        return found, hasattr(string, "added"), x
    finally:
        names["digits"], builtin["print"] = digits, shown


@program(breaks=None)
def p_names_of_modules_are_deleted(x):
    names = vars(string)
    names["added"] = 1
    aotdyn.graph_break()
    before = string.added
    del names["added"]
    after = getattr(string, "added", "none"), hasattr(string, "added"), "added" in names
    return before, after, x


@program(breaks=None)
def p_keywords_of_any_name(x):
    plain = dict(self=1, other=2, t=3, function=4)
    plain.update(other=5, self=6, t=7)
    ordered = collections.OrderedDict(self=1, other=2, t=3)
    ordered.update(other={}, self=6)
    default = collections.defaultdict(int, factory=1, self=2, t=4)
    space = types.SimpleNamespace(self=1, t=2)
    partial = functools.partial(dict, t=1, function=2, self=3)
    return plain, ordered, default, vars(space), partial(), partial(other=5), x


class LikeText:
    """Is found by the hash of a text, which is as large as it may be."""

    def __init__(self, text):
        self.text = text

    def __hash__(self):
        return hash(self.text)

    def __eq__(self, other):
        return other == self.text


@program()
def p_objects_with_the_hash_of_a_text(x):
    found = [len({text, LikeText(text)}) for text in ("a", "halibut", "b" * 7, "", "xyz")]
    table = {"halibut": 1, -2: 2}
    return found, table[LikeText("halibut")], table.get(LikeText("b")), x


class Crowded:
    """All have one place in a table."""

    refusing = False

    def __eq__(self, other):
        if Crowded.refusing:
            raise ZeroDivisionError
        return self is other

    def __hash__(self):
        return 7


@program(([],), breaks=None)
def p_keys_in_one_place_that_compare_otherwise_later(log):
    Crowded.refusing = False
    members = {Crowded() for _ in range(3)}
    table = {Crowded(): 1, Crowded(): 2}
    Crowded.refusing = True
    note(log, "break")
    found = [len(members), len(table)]
    try:
        members.add(Crowded())
    except ZeroDivisionError:
        found.append("refused")
    return found


class NothingIn(dict):
    def __contains__(self, key):
        return False


class AlwaysFive(dict):
    def get(self, key, default=None):
        return 5


@program(
    *[(torch.ones(2), made) for made in (NothingIn(a=1), AlwaysFive(a=1), AlwaysFive(b=1),
                                         collections.OrderedDict(a=3, b=4), {"a": 2}, NothingIn())],
    breaks=None,  # one raises
)  # fmt: skip
def p_patterns_ask_the_get_of_mappings(x, given):
    match given:
        case {"a": found, "b": other}:
            return x, found, other
        case {"a": found, **rest}:
            return x, found, rest
        case {}:
            return x


class AnyMapping:
    def __init__(self, **items):
        self.items = items

    def __getitem__(self, key):
        return key if key == "self" else self.items[key]

    def __len__(self):
        return len(self.items)


BEHIND = types.MappingProxyType(AnyMapping(a=10))


@program(breaks=None)
def p_proxies_of_what_is_no_dict(x):
    made = types.MappingProxyType(AnyMapping(a=10))
    return [(each["a"], each["self"], len(each)) for each in (BEHIND, made)], x


def both_orders(o):
    return list(dict.items(o)), list(o.items()), dict.__repr__(o)


@program((torch.ones(2), OrderedDict(a=1, b=2, c=3)), breaks=None)
def p_moved_items_stay_where_they_are_in_the_dict_below(x, came_in):
    came_in.move_to_end("a")
    came_in["d"] = 4
    came_in.move_to_end("d")
    del came_in["b"]
    came_in["b"] = came_in.pop("d")
    made = OrderedDict(a=1, b=2, c=x)
    made.move_to_end("a")
    made["e"] = 3
    del made["b"]
    made.move_to_end("c", last=False)
    made["b"] = 7
    return [*came_in], [*made], both_orders(came_in), both_orders(made)


# -- keys that are sizes, devices, types of numbers ---------------------------------------------

OF_ALL_KINDS = {
    torch.float32: 1, torch.device("cpu"): 2, (1, torch.float16): 3, torch.Size([3]): 4, int: 5,
    torch.relu: 6, None: 7, 1.5: 8, True: 9, b"x": 10, frozenset([1]): 11, (1, (2, "a")): 12,
    float("inf"): 13, range(3): 14, 2j: 15, np.int64(77): 16,
}  # fmt: skip


@program()
def p_keys_of_all_kinds(x):
    held = OF_ALL_KINDS
    one = held[x.dtype], held[x.device], held[x.shape], held[(1, torch.float16)], held[int]
    two = held[torch.relu], held[frozenset([1])], held[math.inf], held[range(3)], held[2j], held[77]
    kept = {key: value + 1 for key, value in held.items()}
    return x, one, two, kept, [*held], torch.float64 in held, held.get((3,)), (4,) in held


class Rotary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        key = (x.shape[0], x.device, x.dtype)
        if key not in self.cache:
            self.cache[key] = torch.arange(x.shape[0]).to(x.dtype)
        if x.shape not in self.cache:
            self.cache[x.shape] = self.cache[key] * 2
        return x * self.cache[key] + self.cache[x.shape]


@program(*[(torch.ones(n), Rotary()) for n in (3, 4)])
def p_caches_by_size_and_device(x, rotary):
    y = rotary(x) + rotary(x)
    rotary.cache[x.device] = 1
    return y, [*rotary.cache], rotary.cache.pop(x.shape)


ROTARY = Rotary()


def test_caches_that_are_filled(agree):
    ROTARY.cache.clear()
    ROTARY(torch.ones(3))
    agree(ROTARY, (torch.ones(3),), (torch.ones(3) * 2,), breaks=0, graphs=1)


NARROWED = {torch.float64: torch.float32, torch.int64: torch.int32}
SLOW_ON = {torch.float64: frozenset({"mps"}), torch.int64: frozenset({"mps", "xpu"})}
BY_PLACE = {("a", torch.float32): 1, (torch.device("cpu"), 3): 2, torch.device("cpu"): 7}
LAYOUTS = {torch.strided: "strided", torch.sparse_coo: "sparse", torch.contiguous_format: "c"}


@program((torch.ones(3),), (torch.ones(3, dtype=torch.float64),), (torch.ones(3).long(),))
def p_keys_of_torch(x):
    slow = SLOW_ON.get(x.dtype)
    dtype = NARROWED[x.dtype] if slow and x.device.type in slow else x.dtype
    found = BY_PLACE.get(("a", x.dtype)), BY_PLACE[x.device, 3], BY_PLACE[x.device]
    return x.to(dtype), found, list(BY_PLACE), LAYOUTS[x.layout], (x.dtype,) in BY_PLACE


@program((torch.ones(3), {}), (torch.ones(3), {torch.float32: 1, (torch.device("cpu"), 2): 3}))
def p_a_table_by_dtype_and_place_is_filled(x, table):
    table.setdefault((x.device, x.dtype), x * 2)
    table[x.dtype] = table.pop(x.dtype, 0) + 1
    return table[x.device, x.dtype] + 1, list(table)


class Pair(NamedTuple):
    a: int
    b: str = "x"


Other = collections.namedtuple("Other", "a b")
BY_PAIR = {Pair(1): 1, (3, "y"): 2, Other(4, Pair(5)): 3}


@program((torch.ones(3), {}), (torch.ones(3), {Pair(3): 1}), (torch.ones(4), {(4, "x"): 2}))
def p_keys_that_are_named_tuples(x, table):
    found = BY_PAIR[Pair(1)], BY_PAIR[1, "x"], BY_PAIR.get(Pair(9)), BY_PAIR[Other(4, Pair(5))]
    if Pair(x.shape[0]) not in table:
        table[Pair(x.shape[0])] = x * 2
    return found, Pair(3, "y") in BY_PAIR, (4, (5, "x")) in BY_PAIR, table[x.shape[0], "x"] * x


test_agrees = program.test()


class Part:
    def __init__(self, *parts):
        self.parts = parts


def test_ids_read_from_texts_are_those_of_objects(agree):
    def fn(x, members):
        whole = Part(Part(), Part())
        found = {}
        for name in [f"part[{id(part)}]" for part in whole.parts]:
            found[int(name[5:-1])] = name
        members.add(id(whole))
        members.add(10**9)
        known = id(whole) in members
        members.clear()
        return [id(part) in found for part in (whole, *whole.parts)], known, x

    # Served, each new number is a miss.
    agree(fn, (torch.ones(2), set()), package=False)
