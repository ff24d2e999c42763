"""Instances of subclasses of int, float, str and bytes: made in frames, come in, and whose methods
say otherwise; what C gives on them has the type that C gives it."""

import collections
import copy
import functools
import math
import operator
import re

import pytest
import torch

from tests.record.programs import Programs, note, outcome_of

program = Programs()
X = (torch.arange(12.0).reshape(3, 4) + 1,)
TWICE = [X, X]


class Whole(int):
    pass


class Digits(int):
    def __add__(self, other):
        return Digits(int(self) * 100 + int(other))

    __radd__ = __add__


class Length(int):
    def __new__(cls, value, unit="m"):
        made = super().__new__(cls, value)
        made.unit = unit
        return made

    def __repr__(self):
        return f"Length({int(self)}{self.unit})"


class Text(str):
    def upper(self):
        return Text(super().upper() + "?")

    @property
    def size(self):
        return len(self)


class Loud(str):
    def __str__(self):
        return "loud!"

    def __eq__(self, other):
        return str.__eq__(self, other) or other == "any"

    __hash__ = str.__hash__


class Real(float):
    def __mul__(self, other):
        return "product"


class Bits(bytes):
    pass


class Odd(int):
    def __bool__(self):
        return False

    def __index__(self):
        return 1


HERE = Length(7, "g")
NAME, HALF, FEW = Text("key"), Real(0.5), [Whole(1), Whole(2)]


@program(*TWICE)
def p_numbers(x):
    p = Whole(3)
    one = (p.real, p.bit_length(), -p, ~p, p**2, 2**p, p / 2, divmod(p, 2), p << 1, pow(2, p))
    two = (range(p), "ab" * p, [0] * p, (1,) * p, [3].index(p), {3: "a"}[p], {p: 1}, p in (3,))
    three = (str(p), repr(p), f"{p:>4} {p}", "%d %s" % (p, p), hex(p), float(p), type(int(p)))
    four = (p > 2, 2 < p, p == 3, max(p, 2), sorted([p, 1]), math.sqrt(p), round(p), bool(p))
    sizes = torch.zeros(p), x[p - 1], x.reshape(p, -1), x.sum(Whole(0)), list(range(5))[:p]
    return x * p, one, two, three, four, sizes, isinstance(p, int), p.__class__, [1, 2, 3, 4][p]


@program(*TWICE)
def p_operators_of_their_own(x):
    return x, Digits(1) + 2, 2 + Digits(1), Digits(1) - 2, type(Digits(1) + 2), sum([Digits(1), 2])


@program(*TWICE)
def p_made_with_more(x):
    n, m = Length(3, unit="k"), Length(4)
    n.extra = 5
    texts = (repr(n), str(n), f"{n}", f"{n:d}", "%s" % n, "{}".format(n), format(n))
    return x * n, n, n.unit, [n], n + m, m.unit, n.extra, vars(n), texts


@program(*TWICE)
def p_texts(x):
    t = Text("ab")
    one = (t.upper(), type(t.upper()), t.size, t.lower(), list(t), t[::-1], t.split("b"))
    two = ({t: 1}["ab"], {"ab": 2}[t], t in {"ab"}, t.startswith(t), bool(Text("")), t + "c")
    three = (t == "ab", "ab" == t, t is t, dict(a=t), ",".join(t), int(Text("12")))
    return x, one, two, three, max(t), ascii(t), re.match("a", t).group(), Text("{}").format(t)


@program(*TWICE)
def p_texts_that_say_otherwise(x):
    s = Loud("a")
    one = (str(s), f"{s}", "%s" % s, "{}".format(s), s + "b", s.upper(), len(s), s[0], repr(s))
    return x, one, s == "any", s == "b", s != "b", "".join([s, "c"]), "abc".replace(s, "")


@program(*TWICE)
def p_floats(x):
    f = Real(2.5)
    one = (f + 1, 2 + f, f * 2, f.is_integer(), int(f), math.floor(f), round(f, 1), f"{f:.2f}")
    return x + f, one, f == 2.5, torch.full((2,), f), type(float(f)), f.hex(), str(f), x / f


@program(*TWICE)
def p_bytes(x):
    b = Bits(b"ab")
    return x, b[0], b + b"c", len(b), b.decode(), list(b), type(bytes(b)), b == b"ab", b.hex()


@program(*TWICE)
def p_what_c_asks_for(x):
    odd = Odd(2)
    return x, bool(odd), not odd, 1 if odd else 2, [1, 2, 3][odd], list(range(odd)), "a" * odd


@program(*TWICE)
def p_copies(x):
    n = Length(3, "q")
    c, d, e = copy.copy(n), copy.deepcopy(n), copy.deepcopy([n, n])
    return x, c, c.unit, type(c), d.unit, e[0] is e[1], copy.copy(Text("a")), copy.deepcopy({1: n})


@program(*TWICE)
def p_globals(x):
    one = HERE.unit, HERE + 1, NAME.upper(), {"key": 1}[NAME], sum(FEW), HERE, FEW, repr(HERE)
    return x * HERE, x + HALF, one, NAME == "key"


@program(*[(torch.ones(3), n) for n in (Whole(2), Whole(3), Whole(4), 4, Length(4, "z"))])
def p_arguments(x, n):
    return x * n, n, type(n)


@program(*TWICE)
def p_patterns(x):
    found = []
    for value in (Whole(3), Text("a"), Real(1.5), Bits(b"x")):
        match value:
            case int():
                found.append("int")
            case str(s):
                found.append(s)
            case float() as f:
                found.append(f)
            case _:
                found.append("other")
    return x, found


@program(*TWICE)
def p_versions(x):
    if torch.__version__ >= "2.0" and torch.__version__ > (1, 8):
        x = x + 1
    return x, torch.__version__.startswith("2"), torch.__version__.split(".")[0]


@program(*TWICE)
def p_classes_of_the_frame(x):
    class Half(int):
        def half(self):
            return Half(self // 2)

    return x * Half(5).half(), Half(3) + 1


@program(*TWICE, breaks=None)
def p_refusals(x):
    told = outcome_of(lambda: Whole(1) + "a"), outcome_of(lambda: Whole(1).foo)
    return x, told, outcome_of(lambda: "a" + Whole(1)), outcome_of(lambda: len(Whole(1)))


@program(*TWICE, breaks=1)
def p_over_a_break(x):
    n, t = Length(3, "b"), Text("z")
    note([], 1)
    return x * n, n.unit, t.upper(), n


class Mute(float):
    __repr__ = None
    __mul__ = None


class Bare(str):
    __len__ = None
    __eq__ = None
    __hash__ = str.__hash__


@program()
def p_methods_that_are_none(x):
    number, text = Mute(2.0), Bare("a")
    calls = (lambda: repr(number), lambda: f"{number}", lambda: number * 2, lambda: 3 * number,
             lambda: len(text), lambda: text == "a", lambda: text + "b")  # fmt: skip
    return [outcome_of(call) for call in calls], x


class Odder(float):
    __mul__ = staticmethod(lambda other: ("static", other))
    __add__ = float.__sub__
    __sub__ = functools.partial(operator.add, 1)
    __neg__ = classmethod(lambda cls: cls)
    __abs__ = property(lambda self: lambda: 7)
    __repr__ = 1

    def __float__(self):
        return 5.5


@program()
def p_methods_that_are_no_functions(x):
    v = Odder(2.5)
    calls = (lambda: v * 2, lambda: v + 1, lambda: v - 1, lambda: -v, lambda: abs(v),
             lambda: f"{v}", lambda: "%f %g" % (v, v), lambda: float(v))  # fmt: skip
    return [outcome_of(call) for call in calls], x


# -- containers and objects are given them as they are ----------------------------------------


class PlainFloat(float):
    pass


class PlainText(str):
    pass


class PlainInt(int):
    pass


class Table(dict):
    pass


class Row(list):
    pass


class Asks:
    """Tells the type of what it is given."""

    def __add__(self, other):
        return type(other).__name__

    __radd__ = __lt__ = __eq__ = __getitem__ = __and__ = __divmod__ = __call__ = __add__

    def __setitem__(self, key, value):
        self.got = type(key).__name__, type(value).__name__

    def __contains__(self, item):
        self.got = type(item).__name__
        return True


def _held(made, key):
    return type([*made][0]) is type(key)


@program()
def _keys_and_items(x):
    found = []
    for key in (PlainFloat(2), PlainText("a"), PlainInt(3)):
        for make in (
            dict, Table, collections.Counter, collections.OrderedDict, collections.UserDict,
            functools.partial(collections.defaultdict, int),
        ):  # fmt: skip
            made = make()
            made[key] = key
            found += [_held(made, key), type(made[key]) is type(key), key in made]
        chained = collections.ChainMap({})
        chained[key] = 1
        row = Row([key])
        row.append(key)
        kept = collections.deque([key]), collections.Counter([key]), {key}, dict.fromkeys([key])
        found += [_held(chained, key), _held(row, key), *(_held(each, key) for each in kept)]
    return found, x


@program(breaks=None)
def _operands(x):
    asks, found = Asks(), []
    for key in (PlainFloat(2), PlainText("a"), PlainInt(3)):
        asks[key] = key
        found += [asks.got, key in asks, asks.got, asks + key, key + asks, asks < key, key > asks]
        found += [asks == key, key == asks, asks[key], asks & key, asks(key), divmod(asks, key)]
    return found, x


test_agrees = program.test()

T, B, I, F = Text, Bits, Whole, Real
# Some of C's methods give the object itself where nothing is to be done.
EXPRESSIONS = """
t%() | t%{} | t.format() | t.format_map({}) | t.partition("x")[0] | t.rpartition("x")[2] | t.strip()
t[:] | t+"" | ""+t | t*1 | 1*t | t.replace("x","y") | t.center(1) | "".join([t]) | t.split("x")[0]
T(",").join(["a"]) | t.translate({}) | str(t) | t.__str__() | "{0}".format(t) | "{a}".format(a=t)
t.removeprefix("x") | t.zfill(1) | t.splitlines()[0] | t.__format__("") | "x".join([t]) | min(t)
B(b"ab")[:] | b""+B(b"ab") | B(b"ab")*1 | B(b"a").split(b"x")[0] | B(b"a").partition(b"x")[0]
B(b"ab") % () | B(b"%b") % (b"x",) | b"%b"%B(b"a") | bytes(B(b"a")) | B(b"a").__bytes__()
+I(1) | I(1)+0 | 0+I(1) | abs(I(1)) | round(I(1)) | I(1).real| int(I(1)) | I(1)|0
max(I(1),0) | sum([I(1)]) | I(1).__index__() | I(1).__int__() | I(5).__round__(-1)
math.floor(I(5)) | +F(1) | abs(F(1)) | F(1).real | F(1).conjugate() | float(F(1))
"""


@pytest.mark.parametrize("expressions", EXPRESSIONS.strip().splitlines())
def test_types_of_results(agree, expressions):
    listed = "".join(f"({each}), " for each in expressions.split(" | "))
    scope = dict(globals())
    exec(f"def program(x):\n    t = T('ab')\n    r = ({listed})\n    return x, r, [*map(type, r)]",
         scope)  # fmt: skip
    agree(scope["program"], (torch.ones(2),), package=False, breaks=0)
