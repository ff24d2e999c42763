"""Text, numbers and hashes of objects."""

import collections
import dataclasses
import math
import operator
import types

import torch

from tests.record.programs import Programs

program = Programs()


@dataclasses.dataclass
class D:
    a: int
    b: str = "q"
    c: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, order=True)
class DF:
    a: int
    b: float = 1.5


@dataclasses.dataclass
class DR:
    a: int = dataclasses.field(repr=False)
    n: "DR" = None


class U:
    def __init__(self, v):
        self.v = v

    def __repr__(self):
        return f"U({self.v!r})"


class US(U):
    def __str__(self):
        return "S" + str(self.v)

    def __format__(self, spec):
        return f"<{spec}:{self.v}>"


class Plain:
    pass


class Idx:
    def __init__(self, n):
        self.n = n

    def __index__(self):
        return self.n


class Fl:
    def __float__(self):
        return 2.5

    def __int__(self):
        return 7

    def __complex__(self):
        return 1j

    def __bool__(self):
        return False

    def __hash__(self):
        return 99

    def __eq__(self, o):
        return True

    def __bytes__(self):
        return b"zz"

    def __round__(self, n=None):
        return ("r", n)

    def __trunc__(self):
        return 4

    def __floor__(self):
        return 5

    def __ceil__(self):
        return 6

    def __dir__(self):
        return ["b", "a"]

    def __len__(self):
        return 3

    def __sizeof__(self):
        return 10


@program()
def p_repr_dc(x):
    return (
        repr(D(1)),
        str(D(2, "z", [1])),
        f"{DF(1)}",
        "%s %r" % (D(1), DF(2)),
        "{}".format(D(3)),
        f"{D(1)!r:>40}",
        repr(DR(1, DR(2))),
        x,
    )


@program()
def p_repr_user(x):
    return (
        repr(U(1)),
        str(U("a")),
        f"{U(1)}",
        str(US(1)),
        repr(US(2)),
        f"{US(3)}",
        f"{US(4):abc}",
        f"{US(4)!s:>5}",
        "{0!r} {0!s} {0:x}".format(US(5)),
        "%s|%r" % (US(1), US(2)),
        x,
    )


@program()
def p_repr_containers(x):
    return (
        repr([U(1), "a"]),
        str({"k": U(2)}),
        repr((U(1),)),
        repr({U}) if 0 else 1,
        f"{[D(1)]}",
        str([DF(1), None, 1.5, (1, {2: 3})]),
        repr({1: [U(2)]}),
        repr([[], {}, ()]),
        x,
    )


@program()
def p_repr_class(x):
    return repr(U), str(D), f"{U}", repr(int), "%s" % U, repr([U, int]), x


@program()
def p_repr_func(x):
    return len.__name__, repr(len), repr(math.sqrt), x


@program()
def p_repr_exc(x):
    return (
        repr(ValueError("a", 1)),
        str(ValueError("a", 1)),
        str(KeyError("k")),
        f"{ValueError('q')}",
        repr([ValueError("a")]),
        x,
    )


@program()
def p_repr_misc(x):
    return (
        repr(slice(1, 2)),
        repr(range(3)),
        repr({1, 2}),
        repr(frozenset([1])),
        repr(b"a"),
        repr(1j),
        repr(...),
        repr(None),
        repr(NotImplemented),
        repr(types.SimpleNamespace(a=1)),
        x,
    )


@program()
def p_repr_rec(x):
    l = [1]
    l.append(l)
    d = {}
    d["d"] = d
    return repr(l), repr(d), x


@program()
def p_repr_deque(x):
    return (
        repr(collections.deque([1, 2])),
        repr(collections.deque([1], maxlen=3)),
        repr(collections.defaultdict(int, a=1)),
        repr(collections.OrderedDict(a=1)),
        x,
    )


@program()
def p_repr_dtype(x):
    return (
        repr(x.dtype),
        str(x.dtype),
        f"{x.dtype}",
        str(x.device),
        f"{x.device}",
        repr(x.device),
        str(x.shape),
        f"{tuple(x.shape)}",
        f"{x.shape[0]}",
        repr(x.layout),
        x,
    )


@program()
def p_fmt_index(x):
    i = Idx(5)
    return (
        hex(i),
        bin(i),
        oct(i),
        range(i),
        [1, 2, 3, 4, 5, 6][i],
        list(range(10))[i : Idx(7)],
        operator.index(i),
        chr(Idx(65)),
        "abc"[Idx(1)],
        [0] * Idx(2),
        round(1.234567, Idx(2)),
        (1).__lshift__(2),
        int(i),
        float(i),
        complex(i),
        bytes(Idx(2)),
        "ab" * Idx(2),
        (1, 2, 3)[Idx(1)],
        math.factorial(Idx(3)),
        divmod(7, 2),
        x,
    )


@program()
def p_slice_index(x):
    i = Idx(1)
    return "abc"[i:], b"abcd"[: Idx(3) : i], (1, 2, 3)[i:], x


@program()
def p_pow_index(x):
    i = Idx(5)
    try:
        pow(2, i)
    except TypeError as e:
        r = str(e)
    try:
        return "{:x}".format(i), x
    except TypeError as e:
        return r, str(e), x


@program()
def p_pct(x):
    return (
        "%d %x %5.2f %s %r %c %%" % (Idx(3) if 0 else 3, 255, 1.5, "a", "b", "c"),
        "%(a)s %(b)d" % {"a": 1, "b": 2},
        "%-5s|%5s" % ("a", "b"),
        "%*d" % (5, 3),
        x,
    )


@program()
def p_pct_index(x):
    return "%x" % Idx(255), "%d" % Fl(), x


@program()
def p_fmt_fields(x):
    d = D(1)
    return (
        "{0.a} {0.b!r}".format(d),
        "{a[0]} {b[k]}".format(a=[1], b={"k": 2}),
        "{:{w}.{p}f}".format(1.5, w=8, p=3),
        "{!r}".format(d),
        "{:,}".format(12345),
        f"{12345.678:_.2f}",
        f"{'a':^{5}}",
        f"{1:08b}",
        f"{255:#x}",
        f"{0.5:%}",
        "{} {}".format(1, 2),
        "{1} {0}".format(1, 2),
        "{x}".format(**{"x": 3}),
        "{}".format_map({}) if 0 else 1,
        "{a}".format_map({"a": U(1)}),
        x,
    )


@program()
def p_fmt_err(x):
    r = []
    for f in (
        lambda: "{}".format(),  # noqa: F524
        lambda: "{a}".format(),  # noqa: F524
        lambda: "%d" % "a",
        lambda: "%s %s" % 1,  # noqa: F507
        lambda: format(1, "q"),
        lambda: f"{[]:x}",
        lambda: "{:d}".format("a"),
        lambda: f"{D(1):x}",
    ):
        try:
            f()
        except Exception as e:
            r.append((type(e), str(e)))
    return r, x


@program()
def p_conv(x):
    o = Fl()
    return (
        int(o),
        float(o),
        complex(o),
        bool(o),
        hash(o),
        o == 3,
        bytes(o),
        round(o),
        round(o, 2),
        math.trunc(o),
        math.floor(o),
        math.ceil(o),
        len(o),
        x,
    )


@program()
def p_dir(x):
    return (
        dir(Fl()),
        [n for n in dir(U(1)) if n[0] != "_"],
        [n for n in dir(U) if "_" not in n],
        "append" in dir([]),
        x,
    )


@program()
def p_dir2(x):
    p = Plain()
    p.zz = 1
    return "zz" in dir(p), x


@program()
def p_hash(x):
    d = {hash(1): x, hash((1, 2)): 2}
    return (
        d[hash(1)],
        hash(1.0) == hash(1),
        hash("a") == hash("a"),
        hash((1, "a")) == hash((1, "a")),
        hash(DF(1)) == hash(DF(1)),
        hash(None) == hash(None),
        hash(U) == hash(U),
    )


@program()
def p_hash_val(x):
    return hash(5), hash(2.5), hash(-1), hash(True), hash((1, 2)), hash(frozenset([1])), x


class H:
    def __init__(self, k):
        self.k = k

    def __hash__(self):
        return hash(("H", self.k))

    def __eq__(self, o):
        return isinstance(o, H) and self.k == o.k


@program()
def p_hash_user(x):
    d = {H(1): "a", H("x"): x}
    return d[H(1)], d[H("x")], H(2) in d, hash(H(3)) == hash(H(3)), len({H(1), H(1), H(2)})


@program()
def p_hash_pass(x):
    return {"h": hash("a")}["h"] == hash("a"), x


@program()
def p_unhash(x):
    try:
        {[]: 1}
    except TypeError as e:
        r = str(e)
    try:
        hash({})
    except TypeError as e:
        r2 = str(e)
    try:
        {D(1)}
    except TypeError as e:
        return r, r2, str(e), x


@program()
def p_exc_keys(x):
    e = ValueError("a")
    d = {e: 1, KeyError: x}
    return d[e], d[KeyError], ValueError("a") in d, e in {e}


@program()
def p_exc_eq(x):
    a = ValueError("a")
    return a == a, a == ValueError("a"), a in [a], x


@program()
def p_raise_cls(x):
    try:
        raise ValueError
    except ValueError as e:
        return e.args, x


@program((torch.ones(2), 1 << 20000, {1 << 20000: 3}), (torch.ones(2), 3, {3: 1 << 20000}))
def p_numbers_too_long_to_be_written(x, given, table):
    number = 1 << 20001
    return number, number == given * 2, table[given], 1 << 20000 in {1 << 20000, given}, x


@program(breaks=None)
def p_percent_of_a_tensor(x):
    found = ["%s" % x, "a%sb%%" % x.sum(), "%5.1f|" % x.sum(), "%s" % (x,)]
    try:
        b"%s" % x
    except TypeError as error:
        found.append(str(error))
    return found, x + 1


@program(*((torch.ones(2), text) for text in ("\u0374", "a", "\u00e9\n", "\u0374b")), breaks=None)
def p_texts_that_differ_in_ascii(x, text):
    return f"{text!a}", f"{text!r}", "%a" % text, ascii(text), "{!a}".format(text), x


@program()
def p_percent_with_a_width_that_is_too_large(x):
    try:
        return "%*d" % (10**100, x.shape[0])
    except OverflowError as error:
        return str(error), x


@program(*((torch.ones(2), n) for n in (1, 2, 3, 10**5000, -(10**5000), 2**62)), breaks=None)
def p_a_text_that_nobody_needs_of_a_number_too_long_for_it(x, n):
    try:
        str(n)
        f"{[n]}"
    except ValueError as error:
        return type(error), x + 2
    return x + 1


@program((torch.ones(2), 5, 1234.5))
def p_texts_with_an_n(x, n, f):
    told = "{}, a version".format(n), f"{n} then", "{n}".format(n=n), "%d in" % n
    return x, told, format("nan", ""), format(float("nan"), ".1f"), f"{f:,}n"


@program((torch.ones(2), 5, 1234.5), breaks=None)
def p_numbers_as_the_locale_has_them(x, n, f):
    return x, f"{n:n}", format(f, "n"), "{:n}".format(f), f.__format__("n"), f"{f:n}"


test_agrees = program.test()
