"""Attributes of classes that are set, deleted and patched in a frame; slots that hold nothing, and
properties whose accessor is no function."""

import copy
import functools
import operator

import torch

from tests.record.programs import Programs, note

program = Programs()


class A0:
    k = 1

    def __init__(self, v):
        self.v = v

    def m(self):
        return self.v

    @property
    def pr(self):
        return 5


class B0(A0):
    pass


class S0:
    __slots__ = ("a",)


M = A0.m


def restored(result):
    A0.k = 1
    A0.m = M
    for name in ("q", "n", "st"):
        if hasattr(A0, name):
            delattr(A0, name)
    return result


@program()
def p_write(x):
    A0.k = 7
    a = A0(x)
    return restored((a.k, A0.k, B0.k, B0(1).k, getattr(A0, "k"), hasattr(A0, "k")))


@program()
def p_new(x):
    A0.q = x
    A0.n = 1
    A0.n += 1
    return restored((A0.q, A0.n, A0(1).n, B0.q is x, hasattr(B0(1), "n")))


@program()
def p_self(x):
    a = A0(1)
    type(a).k = 9
    a.__class__.n = 3
    return restored((a.k, a.n, x))


@program()
def p_del(x):
    A0.q = 1
    del A0.q
    return restored((hasattr(A0, "q"), x, getattr(A0, "q", "dflt")))


@program()
def p_del_err(x):
    try:
        del A0.zzz
    except AttributeError as e:
        return restored((str(e), x))


@program()
def p_del_get(x):
    A0.q = 1
    del A0.q
    try:
        A0.q
    except AttributeError as e:
        r = str(e)
    try:
        A0(1).q
    except AttributeError as e:
        return restored((r, str(e), x))


@program()
def p_patch(x):
    old = A0.m
    A0.m = lambda self: "patched"
    r = A0(1).m(), B0(2).m(), A0.m(3)
    A0.m = old
    return restored((r, A0(2).m(), x))


@program()
def p_patch_kinds(x):
    A0.n = property(lambda self: self.v + 1)
    A0.q = staticmethod(lambda v: v * 2)
    A0.st = classmethod(lambda cls, v: (cls.__name__, v))
    return restored((A0(1).n, A0.q(3), A0(1).q(4), B0.st(5), B0(0).st(6), x))


@program()
def p_setattr(x):
    setattr(A0, "k", 11)
    return restored((A0.k, x))


@program()
def p_list(x):
    A0.q = []
    A0.q.append(1)
    A0(1).q.append(x)
    return restored((len(A0.q), A0.q is A0(2).q))


@program(breaks=1)
def p_break(x):
    A0.k = 5
    A0.q = [x]
    log = []
    note(log, A0.k)
    A0.k = 6
    return restored((A0.k, log, A0(1).q))


@program()
def p_inst_shadow(x):
    a = A0(1)
    a.k = 50
    A0.k = 60
    return restored((a.k, A0.k, A0(2).k, x))


@program()
def p_exc(x):
    try:
        A0.k = 9
        raise ValueError
    except ValueError:
        return restored((A0.k, x))


@program()
def p_slots(x):
    try:
        S0.zz = 1
        return restored((S0.zz, x))
    finally:
        del S0.zz


@program()
def p_read_before(x):
    a = A0.k
    b = A0(1).k
    A0.k = 2
    return restored((a, b, A0.k, A0(1).k, x))


@program()
def p_super_set(x):
    class C(A0):
        def m(self):
            return restored((super().m() + 1))

    A0.m = lambda self: 10
    r = C(1).m()
    A0.m = M
    return restored((r, C(1).m(), x))


# -- slots ------------------------------------------------------------


class Slotted:
    __slots__ = ("a", "_b")

    def __init__(self, a, b=None):
        self.a = a
        if b is not None:
            self._b = b

    @property
    def b(self):
        try:
            return self._b
        except AttributeError:
            self._b = self.a * 2
            return self._b


class Falls(Slotted):
    __slots__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return f"no {name}"


EMPTY_AND_FULL = [
    (torch.ones(2), Slotted(4), Slotted(5, 3)),
    (torch.ones(2), Slotted(4, 6), Slotted(7)),
    (torch.ones(2), Slotted(4), Slotted(5)),
]


@program(*EMPTY_AND_FULL)
def p_slots_are_filled_when_they_are_asked_for(x, first, second):
    return x * first.b, second.b, first.b, first._b


@program(*EMPTY_AND_FULL)
def p_slots_are_looked_at(x, first, second):
    return x, hasattr(first, "_b"), getattr(second, "_b", None), hasattr(first, "a")


@program(*EMPTY_AND_FULL)
def p_the_value_of_a_slot_is_handed_on(x, first, second):
    try:
        value = first._b
    except AttributeError as error:
        value = str(error), error.name, error.obj is first
    return value, x


@program(*EMPTY_AND_FULL)
def p_slots_are_emptied(x, first, second):
    told = []
    for each in (first, second):
        for _ in range(2):
            try:
                del each._b
            except AttributeError as error:
                told.append((str(error), hasattr(each, "_b")))
    first._b = 3
    del first._b
    return x, told, hasattr(first, "_b"), Slotted(1, 2).b


@program(*EMPTY_AND_FULL)
def p_objects_with_empty_slots_are_copied(x, first, second):
    copied = copy.copy(first)
    return x, hasattr(copied, "_b"), copied.a, copy.deepcopy(second).b


@program(*[(torch.ones(2), Falls(4)), (torch.ones(2), Falls(4, 5))], breaks=None)
def p_a_class_has_the_last_word_on_its_empty_slots(x, held):
    return x, held.b, held._b, held.other


# -- properties ------------------------------------------------------------


class Adds:
    def __call__(self, of):
        return of.c + 1


class Odd:
    c = 4
    x = property(operator.attrgetter("c"))
    y = property(Adds())
    z = property(len)
    w = property(type)
    u = property(functools.partial(max, 3, key=lambda value: 0))

    def __len__(self):
        return 7

    def put(self, value):
        self.c = value

    v = property(operator.attrgetter("c"), put)


ODD = Odd()


@program()
def p_accessors_that_are_no_functions(x):
    made = Odd()
    made.v = 9
    return x * ODD.x, ODD.y, ODD.z, ODD.w is Odd, ODD.u, made.v, made.x


test_agrees = program.test()


def count(x):
    A0.k += 1
    return x + A0.k


def test_a_counter_in_a_class(agree):
    def program(x):
        return restored((count(x), count(x)))

    agree(program, *[(torch.ones(2),)] * 3, breaks=0, variants=1)
