"""Attributes of classes that are set, deleted and patched in a frame."""


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


test_agrees = program.test()


def count(x):
    A0.k += 1
    return x + A0.k


def test_a_counter_in_a_class(agree):
    def program(x):
        return restored((count(x), count(x)))

    agree(program, *[(torch.ones(2),)] * 3, breaks=0, variants=1)
