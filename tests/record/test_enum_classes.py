"""Enum classes that a frame makes, and what code of the program does in enums that came in."""

import dataclasses
import enum
import functools
import typing

import torch

from tests.record.programs import Programs, note

CALLS = []

program = Programs()


class Flags(enum.Flag):
    R = 1
    W = 2
    X = 4


class Text(str, enum.Enum):
    A = "ab"
    B = "b"


class Falls(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value):
        return cls.A if value in (7, "seven") else None


@program()
def _an_enum_of_the_frame(x):
    class C(enum.Enum):
        A = 1
        B = 2
        ALIAS = A
        D = [1]

        def double(self):
            return self.value * 2

        def __str__(self):
            return f"<{self.name}>"

        @property
        def more(self):
            return self._value_ + 10

        @classmethod
        def first(cls):
            return cls.A, __class__ is cls

    m = C.B
    looked = C(2) is m, C["A"] is C.A, [each.name for each in C], len(C), m in C, C.ALIAS is C.A
    texts = str(C.A), f"{m}", repr(m), C.D.value, C.__name__, C.A == m, C.first()[1]
    same = C.first()[0] is C.A, type(m) is C, {C.A: 1}[C.A], {C.A, m} == {m, C.A}, m.more
    errors = []
    for wrong in (lambda: C(99), lambda: C["Z"], lambda: setattr(C, "A", 3)):
        try:
            wrong()
        except (ValueError, KeyError, AttributeError) as error:
            errors.append((type(error), str(error)))
    match m:
        case C.A:
            matched = 1
        case C.B:
            matched = 2
    return x * C.A.double() * matched, looked, texts, same, errors, hash(m) == hash(C.B)


@program()
def _numbers_texts_and_flags(x):
    k = x.dim()

    class N(enum.IntEnum):
        A = k
        B = enum.auto()
        C = B * 2

    class F(enum.Flag):
        R = enum.auto()
        W = enum.auto()
        RW = 3

    class S(str, enum.Enum):
        A = "a"

    @enum.unique
    class U(enum.StrEnum):
        HELLO = enum.auto()

    c = F.R | F.W
    flags = c is F.RW, F.R in c, bool(F.R & F.W), (~F.R).value, [m.name for m in c], F(0).value
    by_name = enum.Enum("Color", "RED GREEN")
    return x * N.A * N.C, N.A < N.B, sorted([N.B, N.A])[0].name, flags, S.A.upper(), U.HELLO + "", (
        by_name.GREEN.value, by_name(1).name, by_name.__module__, f"{U.HELLO}!", S("a") == "a"
    )  # fmt: skip


@program()
def _members_with_more(x):
    class C(enum.Enum):
        A = (1, "x")
        B = (2, "y")

        def __init__(self, number, text):
            self.number, self.text = number, text

        @property
        def both(self):
            return f"{self.number}{self.text}"

        @classmethod
        def _missing_(cls, value):
            return cls.A

    return x * C.A.number, C.B.both, C(99) is C.A


@program()
def _enums_that_came_in(x):
    flags = ~Flags.R, Flags.R ^ Flags.W, list(Flags.R | Flags.X), not (Flags.R & Flags.W)
    texts = Text.A.upper(), Text.A + "c", Text.A.split("b"), "-".join([Text.A, Text.B])
    try:
        Falls(3)
    except ValueError as error:
        told = str(error)
    return x, flags, texts, Falls(7) is Falls.A, Falls("seven").name, told


@program(breaks=1)
def _outlives_a_break(x):
    log = []

    class C(enum.Enum):
        A = 1
        B = 2

        def me(self):
            return self, __class__

    member, combined = C.B, enum.Flag("F", "R W X")
    both = combined.R | combined.X
    note(log, member.name)
    found = member is C.B, member.me() == (C.B, C), both in combined, both.value, C(1) is C.A
    return x * member.value, found, [m.name for m in C], log


@program(breaks=None)
def _an_enum_with_effects(x):
    CALLS.clear()

    class C(enum.Enum):
        A = "a"

        def __init__(self, text):
            self.up = text.upper()
            CALLS.append(text)

    return x, C.A.up, len(CALLS)


@program()
def _other_classes_made_by_the_library(x):
    class Lazily:
        def __init__(self):
            self.count = 0

        @functools.cached_property
        def value(self):
            self.count += 1
            return 3

    class T(typing.TypedDict, total=False):
        a: int

    P = dataclasses.make_dataclass("P", [("a", int), ("b", int, 3)])
    lazily, t, p = Lazily(), T(a=1), P(1)
    twice = lazily.value * lazily.value
    return x * twice * p.b, lazily.count, vars(lazily), t, T.__total__, [*T.__annotations__], (
        repr(p), p == P(1), [f.name for f in dataclasses.fields(P)]
    )  # fmt: skip


@program()
def _one_number_for_two_names(x):
    class C(enum.Enum):
        FIRST = PRIMERO = enum.auto()
        SECOND = enum.auto()

    return [(each.name, each.value) for each in C], C.PRIMERO is C.FIRST, x


@program()
def _bases_that_are_refused(x):
    class Members(enum.Enum):
        A = 1

    told = []
    for bases in ((Members,), (str, int, enum.Enum), (enum.Enum, str)):
        try:

            class Refused(*bases):
                B = 2

        except TypeError as error:
            told.append(str(error))
    return told, x


test_agrees = program.test()


def test_reused_names_are_refused(agree):
    def f(x):
        try:

            class C(enum.Enum):
                A = 1
                A = 2  # noqa: PIE794

        except TypeError as error:
            return x, str(error)

    agree(f, (torch.ones(2),), breaks=0)
