"""Objects of which the program sees the end, let go of by whatever holds them: attributes, items,
cells, operands, arguments, other objects. Each ends where it does in Python."""

import collections
import weakref

import torch

import aotdyn
from tests.record.programs import Programs, note
from tests.record.test_lifetimes import ending

program = Programs()


class Box:
    pass


@program(breaks=None)
def p_overwritten(x):
    log = []
    a = Box()
    a.e = ending(log)
    a.e = 3
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_operand(x):
    log = []
    note(log, ending(log).name)
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_closure_in_list(x):
    log = []

    def make():
        e = ending(log)
        return lambda: e.name

    fns = [make()]
    log.append(fns[0]())
    fns.clear()
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_chain2(x):
    log = []
    a = Box()
    b = Box()
    a.b = b
    b.e = ending(log)
    x = x + 1
    note(log, 1)
    b = None
    log.append("y")
    a = None
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_popped_live(x):
    log = []
    held = [ending(log)]
    note(log, 0)
    x = x + 1
    held.pop()
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_del_item(x):
    log = []
    d = {"a": ending(log)}
    note(log, 0)
    x = x + 1
    del d["a"]
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_set_item(x):
    log = []
    d = {"a": ending(log)}
    note(log, 0)
    x = x + 1
    d["a"] = 1
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_set_member(x):
    log = []
    d = {ending(log)}
    note(log, 0)
    x = x + 1
    d.clear()
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_inlined_local(x):
    log = []

    def use(e):
        log.append(e.name)
        log.append("in")

    use(ending(log))
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_inlined_drop(x):
    log = []

    def use(e):
        log.append(e.name)
        del e
        log.append("in")

    use(ending(log))
    log.append("x")
    return x + 1, log


@aotdyn.disable
def consume(log, e):
    log.append(e.name)
    del e
    log.append("consumed")


@program(breaks=None)
def p_eager_consume(x):
    log = []
    x = x + 1
    consume(log, ending(log))
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_truth(x):
    log = []
    if ending(log):
        log.append("yes")
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_tuple_index(x):
    log = []
    n = (ending(log), 5)[1]
    log.append(n)
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_list_len(x):
    log = []
    n = len([ending(log)])
    log.append(n)
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_unpack(x):
    log = []
    a, b = (ending(log, "a"), ending(log, "b"))
    x = x + 1
    a = None
    log.append("m")
    b = None
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_deque_pop(x):
    log = []
    held = collections.deque([ending(log)])
    note(log, 0)
    x = x + 1
    held.popleft()
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_default_arg(x):
    log = []

    def f(e=ending(log)):
        return 1

    note(log, 1)
    x = x + f()
    f = None
    log.append("x")
    return x, log


@program(breaks=None)
def p_deep_live(x):
    log = []
    h = [[[[[[[ending(log)]]]]]]]
    note(log, 0)
    x = x + 1
    h = None
    log.append("x")
    return x, log


@program(breaks=None)
def p_wref(x):
    log = []
    o = Box()
    note(log, 0)
    r = weakref.ref(o, lambda r: log.append("gone"))
    x = x + 1
    o = None
    log.append("x")
    return x + 1, log


@aotdyn.disable
def watched(log):
    o = Box()
    o.r = 1
    weakref.finalize(o, log.append, "gone")
    return o


_refs = []


@aotdyn.disable
def watched2(log):
    o = Box()
    _refs.append(weakref.ref(o, lambda r: log.append("gone")))
    return o


@program(breaks=None)
def p_fin(x):
    log = []
    o = watched(log)
    x = x + 1
    o = None
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_fin2(x):
    log = []
    o = watched2(log)
    x = x + 1
    o = None
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_fin_attr(x):
    log = []
    a = Box()
    a.o = watched(log)
    x = x + 1
    a.o = None
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_fin_operand(x):
    log = []
    n = watched(log).r
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_global_over(x):
    global G
    log = []
    G = ending(log)
    x = x + 1
    note(log, 1)
    G = None
    log.append("x")
    return x, log


@program(breaks=None)
def p_global_del(x):
    global G
    log = []
    G = ending(log)
    x = x + 1
    del G
    log.append("x")
    return x, log


@program(breaks=None)
def p_exc_tb(x):
    log = []

    def boom():
        e = ending(log)
        x.sum()
        raise ValueError

    try:
        boom()
    except ValueError:
        log.append("caught")
    log.append("x")
    return x, log


@program(breaks=None)
def p_exc_args(x):
    log = []
    try:
        raise ValueError(ending(log))
    except ValueError as e:
        log.append("caught")
        x = x + 1
    log.append("x")
    return x, log


@program(breaks=None)
def p_ctx(x):
    log = []

    class C:
        def __enter__(self):
            return ending(log)

        def __exit__(self, *a):
            log.append("exit")

    with C() as e:
        x = x + 1
        log.append(e.name)
    log.append("y")
    e = None
    log.append("x")
    return x, log


@program(breaks=None)
def p_ctx_unnamed(x):
    log = []

    class C:
        def __enter__(self):
            return ending(log)

        def __exit__(self, *a):
            log.append("exit")

    with C():
        x = x + 1
        log.append("in")
    log.append("x")
    return x, log


@program(breaks=None)
def p_comp(x):
    log = []
    r = [(ending(log, i).name, log.append(("t", i))) for i in range(2)]
    log.append("x")
    return x + 1, log, r


@program(breaks=None)
def p_fstr(x):
    log = []
    s = f"{ending(log).name}-{log.append('m')}"
    log.append("x")
    return x + 1, log, s


@program(breaks=None)
def p_chainedattr(x):
    log = []
    s = ending(log).name.upper()
    log.append("x")
    return x + 1, log, s


@program(breaks=None)
def p_ret_discard(x):
    log = []

    def f():
        e = ending(log)
        log.append("in")
        return e

    f()
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_setdefault(x):
    log = []
    d = {}
    d["k"] = ending(log)
    d.pop("k")
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_slice_del(x):
    log = []
    d = [1, ending(log)]
    note(log, 1)
    d[1:] = []
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_item_store(x):
    log = []
    d = [1, ending(log)]
    note(log, 1)
    d[1] = 3
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_obj_del(x):
    log = []
    a = Box()
    a.e = ending(log)
    note(log, 1)
    del a.e
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_obj_dict(x):
    log = []
    a = Box()
    a.e = ending(log)
    note(log, 1)
    a.__dict__.clear()
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_cellover2(x):
    log = []
    e = ending(log)

    def f():
        nonlocal e
        e = None
        log.append("f")

    x = x + 1
    f()
    log.append("x")
    return x + 1, log


class Own:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("end")


@program(breaks=None)
def p_made_inlined(x):
    log = []

    def f():
        o = Own(log)
        log.append("in")

    f()
    log.append("x")
    return x + 1, log


@program(breaks=None)
def p_made_kept(x):
    log = []

    def f():
        o = Own(log)
        log.append("in")
        return o

    a = Box()
    a.o = f()
    x = x + 1
    a.o = 1
    log.append("x")
    return x + 1, log


class Slotted:
    __slots__ = ("held",)


@program(breaks=None)
def p_slot(x):
    log, made = [], Slotted()
    made.held = ending(log)
    note(log, 0)
    x = x + 1
    made.held = 1
    log.append("x")
    return x, log


@program(breaks=None)
def p_arguments_dropped_by_the_callee(x):
    log = []

    def use(*given):
        log.append(given[0].name)
        given = None
        log.append("in")

    use(ending(log))
    log.append("x")
    return x + 1, log


test_agrees = program.test()


def replaced(x, log, box, items):
    box.held = 1
    items["key"] = 2
    log.append("replaced")
    return x + 1


def test_guards_tell_what_ends_from_what_does_not():
    """What is replaced without a look at it may have an end in a later call, or not be there."""
    compiled = aotdyn.compile(replaced, backend="eager")
    for kind in ("plain", "ends", "none", "ends", "plain"):
        logs = []
        for function in (replaced, compiled):
            log, box, items = [], Box(), {}
            if kind != "none":
                box.held = Own(log) if kind == "ends" else 1
                items["key"] = ending(log) if kind == "ends" else [1]
            result = function(torch.ones(2), log, box, items)
            logs.append((result.tolist(), log))
        assert logs[0] == logs[1]
