"""Text of numbers and strings that differ between calls: made after the graph where it is only
passed on, fixed where it decides something."""

import collections
import dataclasses
import logging
import math
import types

import pytest
import torch

from tests.record.programs import Programs

program = Programs()
X = torch.arange(3.0) + 1
SIZES = [(torch.ones(n, 4) * n,) for n in (3, 5, 7, 12)]
INTS = [(X, n) for n in (3, 5, 12, 104, -7)]
FLOATS = [(X, f) for f in (1.5, 2.25, -0.0, 1e300, 3.125, math.nan, math.inf, 7.0)]
STRINGS = [(X, s) for s in ("ab", "cd", "ef", 'g"h')]


@dataclasses.dataclass
class Noted:
    number: int
    text: str


class Told:
    def __init__(self, value):
        self.value = value

    def __str__(self):
        return f"Told<{self.value}>"

    def __repr__(self):
        return "Told(%r)" % self.value

    def __format__(self, spec):
        return f"{self.value:{spec}}" if spec else str(self)


@program(*SIZES)
def p_size(x):
    return f"{x.shape[0]:03d} {x.size(0)!r:>5} {x.shape[0]=}", x * 2


@program(*SIZES)
def p_shape(x):
    shape = x.shape
    return (
        str(shape),
        f"{shape} {shape!r} {tuple(shape)} {list(shape)}",
        "shape %s" % (shape,),
        "{0[0]} {0}".format(shape),
        x,
    )


@program(*SIZES)
def p_message_of_an_assertion(x):
    assert x.shape[0] > 2, f"only {x.shape[0]} rows"
    return x + 1


@program(*SIZES)
def p_message_of_an_exception(x):
    try:
        if x.shape[0] > 4:
            raise ValueError(f"{x.shape} is too long", x.size(0))
    except ValueError as error:
        return error.args, str(error), repr(error), x
    return x


@program(*SIZES)
def p_logged_below_the_level(x):
    logging.getLogger("tests.late_texts").debug("rows: %d, %s", x.shape[0], x.shape)
    return x + 1


@program(*INTS)
def p_percent(x, n):
    return (
        "%d %s %r %5d|%-6d|%05d %x %o %%" % (n, n, n, n, n, n, n, n),
        "%(a)s=%(b)03d" % {"a": n, "b": n},
        "%*d" % (5, n),
        "%s %s" % ((n,), [n]),
        "%.2f %e" % (n, n),
        x,
    )


@program(*INTS)
def p_format(x, n):
    return "{}.{:>5}.{!r}".format(n, n + 1, str(n)), "{a:{w}}".format(a=n, w=6), x


@program(*INTS)
def p_concatenation(x, n):
    s = "h"
    s += str(n)
    s += f"-{n:+d}"
    return s, "a" + s + "b", s + s, s * 2, x


@program(*INTS)
def p_join(x, n):
    return ",".join([str(n), "a", f"{n * 2}"]), " ".join(f"{i}:{n + i}" for i in range(3)), x


@program(*INTS)
def p_methods(x, n):
    s = str(n)
    return s.zfill(5), s.rjust(6) + "|", s.center(9, "*"), s.replace("1", "one").upper(), x


@program(*INTS)
def p_containers(x, n):
    pair = collections.namedtuple("Pair", "a b")(n, str(n))
    return (
        repr([n, str(n)]),
        str({"a": n, "b": (n,)}),
        f"{pair} {pair!r}",
        repr(Noted(n, str(n))),
        repr(types.SimpleNamespace(a=n)),
        repr(collections.deque([n], 3)),
        repr(collections.OrderedDict(a=n)),
        x,
    )


@program(*INTS)
def p_objects(x, n):
    told = Told(n)
    return str(told), f"{told} {told:4d} {told!r}", "%s %r" % (told, told), "{}".format(told), x


@program(*INTS)
def p_truths(x, n):
    return f"{n > 4} {n > 4!r}", str(n == 3), x


@program(*FLOATS)
def p_floats(x, f):
    return f"{f:.3f} {f!r} {f:e} {f * 2:g} {f}", str(f), "%.1f" % f, x


@program(*STRINGS)
def p_strings(x, s):
    return f"<{s}> {s!r} {s:>5}", "%s/%d" % (s, 3), "{}.{}".format(s, 1), ".".join(["a", s]), x


@program(*INTS)
def p_one_object(x, n):
    s = f"{n}"
    held = [s, s]
    return held, held[0] is held[1], s is None, isinstance(s, str), type(s) is str, x


@program(*INTS)
def p_closure(x, n):
    s = f"n{n}"
    return (lambda: s), {"s": s}, x


# -- where the text decides something ---------------------------------------------------


@program(*INTS)
def p_compared(x, n):
    s = str(n)
    return s == "3", s < "9", len(s), bool(s), s in ("3", "12"), s.split("0"), s[0], [*s], x


@program(*INTS)
def p_key(x, n):
    names = {"3": "three"}
    return names.get(f"{n}"), f"{n}" in names, {str(n): 1}, {str(n), "3"}, x


@program(*INTS)
def p_attribute(x, n):
    held = types.SimpleNamespace()
    setattr(held, f"a{n}", x)
    return getattr(held, f"a{n}"), vars(held)


@program(*INTS)
def p_converted(x, n):
    return int(str(n)), float(f"{n}.5"), str(n).encode(), hash(str(n)) == hash(str(n)), x


@program(*INTS)
def p_matched(x, n):
    match str(n):
        case "3":
            return x
        case "5":
            return x * 5
        case other:
            return other


@program(*STRINGS)
def p_string_compared_later(x, s):
    told = f"<{s}>"
    return (told + "!", x) if s == "ab" else (told, x * 2)


@program((X, 65), (X, 66), (X, 67))
def p_character(x, n):
    return f"{n:c}", "%c" % n, chr(n), x


# -- what raises ---------------------------------------------------------------------


@program(*INTS)
def p_refused(x, n):
    told = []
    for attempt in (
        lambda: f"{n:q}",
        lambda: "%d %d" % (n,),  # noqa: F507
        lambda: "%d" % (n, n),  # noqa: F507
        lambda: str(n).zfill("a"),
        lambda: "a" + n,
        lambda: str(n) + n,
    ):
        try:
            attempt()
        except (TypeError, ValueError) as error:
            told.append(str(error))
    return told, x


ONE = Told(1)


@program((X,), (X,))
def p_ids_in_texts(x):
    return f"{id(ONE)} {id(ONE)!r:>20}", hex(id(ONE)), "%d %x" % (id(ONE), id(ONE)), x


@program((X,), (X,), breaks=None)
def p_ids_in_texts_decide_something(x):
    text = str(id(ONE))
    return len(text) > 3, int(text) == id(ONE), {text: x}[str(id(ONE))], text == str(id(X))


test_agrees = program.test()


@pytest.mark.parametrize("values", [range(3, 23), [f"name {n}" for n in range(20)]])
def test_no_variant_for_each_value(agree, values):
    def fn(x, value):
        return f"<{value}>", x * 2

    agree(fn, *[(X, value) for value in values], variants=2, breaks=0)


def test_a_break_finds_the_text(agree):
    def fn(x, n):
        told = f"n is {n}"
        print(told)
        return told, x + n

    agree(fn, *INTS, breaks=2)
