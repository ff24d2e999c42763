"""One thing changes after a program was traced: the variant must notice, in this process and as
served from a package; never a stale answer.
"""

import abc
import builtins
import collections
import contextvars
import copy
import dataclasses
import enum
import functools
import gc
import os
import sys
import types
import typing
import weakref

import pytest
import torch
from torch import nn

from tests.record.mutations import always_by_version, noticed, noticed_when_loaded

CASES: list = []


def case(function):
    CASES.append(function)
    return function


class Base:
    bias = 3

    def scale(self, x):
        return x * self.factor

    def shift(self, x):
        return x + self.bias


class Scaler(Base):
    kind = "scaler"
    table = {"a": 1, "b": 2}
    factors = [2, 3]

    def __init__(self, factor=2):
        self.factor = factor

    def scale(self, x):
        return super().scale(x) + 1

    @property
    def double(self):
        return self.factor * 2

    @staticmethod
    def plain(x):
        return x - 1

    @classmethod
    def of_class(cls, x):
        return x + cls.bias

    @functools.cached_property
    def slow(self):
        return self.factor * 5


class Other(Scaler):
    def scale(self, x):
        return x * 100


Number = typing.NewType("Number", int)


class Middle:
    bias = 11

    def scale(self, x):
        return x * 1000


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


@dataclasses.dataclass
class Options:
    factor: float = 1.5
    flag: bool = True


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)
        self.scale = 2.0
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        return self.drop(self.linear(x)) * self.scale + self.count


FACTOR = 2
FACTORS = (2, 7)
NAMES = ["a", "b"]
MODES = {"fast": 1, "slow": 2}


def helper(x):
    return x + 1


def helper_of_two(x, y=2, *, z=3):
    return x * y + z


def with_defaults(x, y=torch.nn.functional.relu):
    return y(x)


def answers(self, name):
    if name.startswith("__"):
        return object.__getattribute__(self, name)
    return 6


def close(n):
    def inner(x):
        return x * n

    return inner


closed = close(4)

X = torch.arange(3.0) - 1


# -- classes ------------------------------------------------------------


@case
def method_replaced(mp):
    yield (lambda x, o: o.scale(x)), (X, Scaler())
    mp.setattr(Scaler, "scale", lambda self, x: x * 7)
    yield


@case
def method_of_a_base_replaced(mp):
    yield (lambda x, o: o.shift(x)), (X, Scaler())
    mp.setattr(Base, "shift", lambda self, x: x * 7)
    yield


@case
def method_reached_by_super_replaced(mp):
    yield (lambda x, o: o.scale(x)), (X, Scaler())
    mp.setattr(Base, "scale", lambda self, x: x * 7)
    yield


@case
def method_added_below(mp):
    yield (lambda x, o: o.shift(x)), (X, Scaler())
    mp.setattr(Scaler, "shift", lambda self, x: x * 7, raising=False)
    yield


@case
def method_hidden_by_an_instance_attribute(mp):
    o = Scaler()
    yield (lambda x, o: o.shift(x)), (X, o)
    o.shift = lambda x: x * 9
    yield (X, o)


@case
def class_attribute_changed(mp):
    yield (lambda x, o: x + o.bias), (X, Scaler())
    mp.setattr(Base, "bias", 4)
    yield
    mp.setattr(Base, "bias", 4.0)
    yield
    mp.setattr(Scaler, "bias", 5, raising=False)
    yield


@case
def class_attribute_hidden_by_an_instance(mp):
    o = Scaler()
    yield (lambda x, o: x + o.bias), (X, o)
    o.bias = 8
    yield (X, o)


@case
def class_attribute_becomes_a_property(mp):
    yield (lambda x, o: x + o.bias), (X, Scaler())
    mp.setattr(Base, "bias", property(lambda self: 9))
    yield


@case
def instance_attribute_hidden_by_a_new_property(mp):
    yield (lambda x, o: x + o.factor), (X, Scaler())
    mp.setattr(Scaler, "factor", property(lambda self: 9), raising=False)
    yield


@case
def property_replaced(mp):
    yield (lambda x, o: x + o.double), (X, Scaler())
    mp.setattr(Scaler, "double", property(lambda self: 9))
    yield
    mp.setattr(Scaler, "double", 12)
    yield


@case
def static_method_replaced(mp):
    yield (lambda x, o: o.plain(x)), (X, Scaler())
    mp.setattr(Scaler, "plain", staticmethod(lambda x: x * 5))
    yield
    mp.setattr(Scaler, "plain", lambda self, x: x + self.factor)
    yield


@case
def static_method_becomes_a_method(mp):
    def anything(*args):
        return args[-1] * len(args)

    mp.setattr(Scaler, "plain", staticmethod(anything))
    yield (lambda x, o: o.plain(x)), (X, Scaler())
    mp.setattr(Scaler, "plain", anything)
    yield


@case
def class_method_replaced(mp):
    yield (lambda x, o: o.of_class(x)), (X, Scaler())
    mp.setattr(Scaler, "of_class", classmethod(lambda cls, x: x * 5))
    yield
    mp.setattr(Scaler, "of_class", lambda self, x: x * self.factor)
    yield


@case
def cached_property_filled(mp):
    o = Scaler()
    yield (lambda x, o: x + o.slow), (X, Scaler())
    o.slow = 77
    yield (X, o)


@case
def special_method_added(mp):
    yield (lambda x, o: x + 1 if o else x - 1), (X, Scaler())
    mp.setattr(Scaler, "__bool__", lambda self: False, raising=False)
    yield


@case
def length_added(mp):
    yield (lambda x, o: x + 1 if o else x - 1), (X, Scaler())
    mp.setattr(Base, "__len__", lambda self: 0, raising=False)
    yield


@case
def equality_added(mp):
    yield (lambda x, o, p: x + 1 if o == p else x - 1), (X, Scaler(), Scaler())
    mp.setattr(Scaler, "__eq__", lambda self, other: True)
    yield


@case
def getattr_added(mp):
    def fn(x, o):
        return x + getattr(o, "missing", 5)

    yield fn, (X, Scaler())
    mp.setattr(Scaler, "__getattr__", answers, raising=False)
    yield


@case
def getattribute_added(mp):
    yield (lambda x, o: x + o.factor), (X, Scaler())
    mp.setattr(Scaler, "__getattribute__", answers, raising=False)
    yield


@case
def setattr_added(mp):
    def fn(x, o):
        o.factor = 5
        return x + o.factor

    yield fn, (X, Scaler())
    mp.setattr(
        Scaler, "__setattr__", lambda self, n, v: object.__setattr__(self, n, v + 1), raising=False
    )
    yield


@case
def inherited_by_a_class_made_in_the_frame(mp):
    def fn(x):
        class Below(Scaler):
            pass

        return x + Below.bias + Below().bias

    yield fn, (X,)
    mp.setattr(Base, "bias", 7)
    yield


@case
def method_inherited_by_a_class_made_in_the_frame(mp):
    def fn(x):
        class Below(Scaler):
            pass

        return Below().scale(x)

    yield fn, (X,)
    mp.setattr(Base, "scale", lambda self, x: x)
    yield


@case
def init_subclass_added(mp):
    def fn(x):
        class Below(Scaler):
            pass

        return x + getattr(Below, "told", 1)

    yield fn, (X,)
    mp.setattr(
        Base, "__init_subclass__", classmethod(lambda cls: setattr(cls, "told", 5)), raising=False
    )
    yield


@case
def setter_added_to_a_descriptor(mp):
    def fn(x, o):
        o.reader = 4
        return x + o.reader

    yield fn, (X, HasReader())
    mp.setattr(Reader, "__set__", lambda self, obj, value: None, raising=False)
    yield (X, HasReader())


class Reader:
    def __get__(self, obj, kind=None):
        return 9


class HasReader:
    reader = Reader()


class Items(list):
    pass


class Table(dict):
    pass


class Row(tuple):
    pass


class Problem(Exception):
    pass


def told_by_others(cls, name, function, use):
    """A special method is added to a class whose base already does the same by default."""

    def added(mp):
        yield (lambda x: (use(cls()), x + 1)), (X,)
        mp.setattr(cls, name, function, raising=False)
        yield

    added.__name__ = f"{name}_added_to_{cls.__name__}"
    case(added)


for _cls in (Items, Table, Row):
    told_by_others(_cls, "__str__", lambda self: "told", str)
    told_by_others(_cls, "__str__", lambda self: "told", lambda o: "%s" % (o,))
    told_by_others(_cls, "__format__", lambda self, spec: "told", lambda o: f"{o}")
    told_by_others(_cls, "__reduce__", lambda self: (str, ("told",)), copy.copy)
    told_by_others(_cls, "__reversed__", lambda self: iter("ab"), lambda o: list(reversed(o)))
    told_by_others(_cls, "keys", lambda self: ["a"], lambda o: len(dict(o)) if o != () else 0)
told_by_others(Problem, "__bool__", lambda self: False, bool)
told_by_others(Problem, "__len__", lambda self: 0, lambda o: not o)
told_by_others(Problem, "__format__", lambda self, spec: "told", lambda o: f"{o}")


Pair = collections.namedtuple("Pair", "a b", defaults=(1, 2))


@case
def defaults_of_a_named_tuple(mp):
    yield (lambda x: (x, Pair(), Pair(5))), (X,)
    mp.setattr(Pair.__new__, "__defaults__", (3, 4))
    yield


class Place2:
    __match_args__ = ("x", "y")
    x, y = 1, 2


@case
def match_args(mp):
    def fn(t, p):
        match p:
            case Place2(1, y):
                return t + y
        return t

    yield fn, (X, Place2())
    mp.setattr(Place2, "__match_args__", ("y", "x"))
    yield
    mp.setattr(Place2, "__match_args__", ("y",))
    yield
    mp.delattr(Place2, "__match_args__")
    yield


class Bits(enum.Flag):
    A = 1
    B = 2


@case
def operator_of_a_flag_replaced(mp):
    yield (lambda x: (x, Bits.A | Bits.B, (Bits.A & Bits.B).value)), (X,)
    mp.setattr(Bits, "__or__", lambda self, other: Bits.A, raising=False)
    yield
    mp.setattr(enum.Flag, "__and__", lambda self, other: Bits.B)
    yield


@case
def missing_attribute_added_to_the_class(mp):
    yield (lambda x, o: x + 1 if hasattr(o, "extra") else x), (X, Scaler())
    mp.setattr(Base, "extra", 1, raising=False)
    yield


@case
def missing_attribute_added_to_the_instance(mp):
    o = Scaler()
    yield (lambda x, o: x + 1 if hasattr(o, "extra") else x), (X, o)
    o.extra = None
    yield (X, o)


@case
def attribute_read_from_the_class(mp):
    yield (lambda x: x + Scaler.bias), (X,)
    mp.setattr(Scaler, "bias", 6, raising=False)
    yield


@case
def attribute_missing_on_the_class(mp):
    yield (lambda x: x + getattr(Scaler, "extra", 1)), (X,)
    mp.setattr(Base, "extra", 6, raising=False)
    yield


@case
def dict_of_a_class_changed(mp):
    yield (lambda x, o: x + o.table["a"]), (X, Scaler())
    mp.setitem(Scaler.table, "a", 5)
    yield
    mp.setattr(Scaler, "table", {"a": 9})
    yield


@case
def list_of_a_class_changed(mp):
    yield (lambda x, o: x * o.factors[1] + len(o.factors)), (X, Scaler())
    mp.setattr(Scaler, "factors", [2, 3, 4])
    yield


@case
def supertype_of_a_new_type_changed(mp):
    yield (lambda x: (x * (Number.__supertype__ is int), len(Number.__name__), Number(3))), (X,)
    mp.setattr(Number, "__supertype__", float)
    yield
    mp.setattr(Number, "__name__", "Longer")
    yield


@case
def class_of_an_object_changed(mp):
    o = Scaler()
    yield (lambda x, o: o.scale(x)), (X, o)
    o.__class__ = Other
    yield (X, o)
    yield (X, Other())


@case
def bases_changed(mp):
    cls = type("Late", (Scaler,), {})
    o = cls()
    yield (lambda x, o: o.shift(x) + o.bias), (X, o)
    cls.__bases__ = (Middle, Scaler)
    yield (X, o)


@case
def class_between_defines_the_method_later(mp):
    cls = type("Lower", (type("Between", (Base,), {}),), {"factor": 2})
    yield (lambda x, o: o.scale(x)), (X, cls())
    cls.__bases__[0].scale = lambda self, x: x * 50
    yield


@case
def constructor_replaced(mp):
    yield (lambda x: x * Scaler(4).factor), (X,)

    def init(self, factor):
        self.factor = factor + 1

    mp.setattr(Scaler, "__init__", init)
    yield


@case
def constructor_added(mp):
    class_ = type("Empty", (), {"factor": 1})
    yield (lambda x, c: x * c().factor), (X, class_)
    class_.__init__ = lambda self: setattr(self, "factor", 5)
    yield


@case
def call_added(mp):
    yield (lambda x, o: x + 1 if callable(o) else x), (X, Scaler())
    mp.setattr(Scaler, "__call__", lambda self: 1, raising=False)
    yield


@case
def class_global_replaced(mp):
    yield (lambda x: x * Scaler(4).factor), (X,)
    mp.setitem(globals(), "Scaler", Options)
    yield


@case
def slots(mp):
    o = Slotted(1, 2.0)
    yield (lambda x, o: x * o.a + o.b), (X, o)
    yield (X, Slotted(1, 3.0))
    o.b = -0.0
    yield (X, o)


@case
def data_class(mp):
    o = Options()
    yield (lambda x, o: x * o.factor if o.flag else x), (X, o)
    o.flag = False
    yield (X, o)
    yield (X, Options(flag=1))


@case
def enum_member(mp):
    def fn(x, mode):
        return x + 1 if mode is Mode.FAST else x - getattr(mode, "value", 7)

    yield fn, (X, Mode.FAST)
    yield (X, Mode.SLOW)
    yield (X, Options.flag)


# -- functions ------------------------------------------------------------


@case
def global_function_replaced(mp):
    yield (lambda x: helper(x)), (X,)
    mp.setitem(globals(), "helper", lambda x: x * 9)
    yield


@case
def code_of_a_function_replaced(mp):
    yield (lambda x: helper(x)), (X,)
    mp.setattr(helper, "__code__", (lambda x: x * 9).__code__)
    yield


@case
def code_of_a_method_replaced(mp):
    yield (lambda x, o: o.shift(x)), (X, Scaler())
    mp.setattr(Base.shift, "__code__", (lambda self, x: x * 9).__code__)
    yield


@case
def defaults_changed(mp):
    yield (lambda x: helper_of_two(x)), (X,)
    mp.setattr(helper_of_two, "__defaults__", (5,))
    yield
    mp.setattr(helper_of_two, "__kwdefaults__", {"z": 9})
    yield
    mp.setitem(helper_of_two.__kwdefaults__, "z", 10)
    yield


@case
def default_that_is_a_function(mp):
    yield (lambda x: with_defaults(x)), (X,)
    mp.setattr(with_defaults, "__defaults__", (torch.sigmoid,))
    yield


@case
def own_defaults_changed(mp):
    def fn(x, y=2, *, z=3):
        return x * y + z

    yield fn, (X,)
    fn.__defaults__ = (7,)
    yield
    fn.__kwdefaults__ = {"z": 8}
    yield


@case
def closure_cell_changed(mp):
    n = 2

    def fn(x):
        return x * n

    yield fn, (X,)
    n = 5
    yield
    n = 5.0
    yield
    n = True
    yield


@case
def cell_of_an_inlined_function_changed(mp):
    yield (lambda x: closed(x)), (X,)
    mp.setattr(closed.__closure__[0], "cell_contents", 6)
    yield


@case
def closure_passed_as_argument(mp):
    yield (lambda x, f: f(x)), (X, close(3))
    yield (X, close(4))
    yield (X, helper)
    yield (X, torch.sin)


@case
def attribute_put_on_a_function(mp):
    yield (lambda x: x + 1 if hasattr(helper, "flag") else x), (X,)
    mp.setattr(helper, "flag", 1, raising=False)
    yield


@case
def attribute_of_a_function_changed(mp):
    mp.setattr(helper, "flag", 1, raising=False)
    yield (lambda x: x + helper.flag), (X,)
    mp.setattr(helper, "flag", 2)
    yield


@case
def partial_changed(mp):
    yield (lambda x, f: f(x)), (X, functools.partial(helper_of_two, y=3))
    yield (X, functools.partial(helper_of_two, y=4))
    yield (X, functools.partial(helper_of_two, z=4))


@case
def bound_method_passed(mp):
    o = Scaler()
    yield (lambda x, f: f(x)), (X, o.shift)
    yield (X, Scaler.plain)
    yield (X, o.scale)


@case
def bound_method_is_itself(mp):
    m, n = Scaler().shift, Scaler().shift
    yield (lambda x, f, g: x + 1 if f is g else x), (X, m, m)
    yield (X, m, n)


# -- globals and modules ------------------------------------------------------------


@case
def global_value_changed(mp):
    yield (lambda x: x * FACTOR), (X,)
    mp.setitem(globals(), "FACTOR", 3)
    yield
    mp.setitem(globals(), "FACTOR", 3.0)
    yield
    mp.delitem(globals(), "FACTOR")
    yield


@case
def global_containers_changed(mp):
    yield (lambda x: x * len(NAMES) + MODES["fast"]), (X,)
    mp.setitem(globals(), "NAMES", ["a"])
    yield
    mp.setitem(MODES, "fast", 5)
    yield


@case
def builtin_hidden(mp):
    yield (lambda x: x * abs(-2)), (X,)
    mp.setitem(globals(), "abs", lambda v: 9)
    yield


@case
def module_attribute_changed(mp):
    module = sys.modules[__name__]
    yield (lambda x: x * module.FACTOR), (X,)
    mp.setattr(module, "FACTOR", 8)
    yield


@case
def module_attribute_added(mp):
    yield (lambda x: x * getattr(types, "extra", 2)), (X,)
    mp.setattr(types, "extra", 8, raising=False)
    yield


@case
def torch_function_patched(mp):
    yield (lambda x: torch.relu(x)), (X,)
    mp.setattr(torch, "relu", lambda x: x * 3)
    yield


@case
def imported_in_the_function(mp):
    def fn(x):
        from types import SimpleNamespace

        return x * len(SimpleNamespace.__name__)

    yield fn, (X,)
    mp.setattr(types, "SimpleNamespace", Scaler)
    yield


@case
def module_replaced(mp):
    def fn(x):
        import types as t

        return x * getattr(t, "number", 1)

    yield fn, (X,)
    replaced = types.ModuleType("types")
    replaced.number = 5
    mp.setitem(sys.modules, "types", replaced)
    yield


# -- modules ------------------------------------------------------------


@case
def training_flag(mp):
    block = Block()
    yield (lambda x, m: m(x)), (X, block)
    block.eval()
    yield (X, block)
    block.train()
    block.drop.eval()
    yield (X, block)


@case
def forward_hook(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    handle = block.linear.register_forward_hook(lambda m, i, o: o * 2)
    yield (X, block)
    handle.remove()
    yield (X, block)
    block.register_forward_pre_hook(lambda m, i: (i[0] + 1,))
    yield (X, block)


@case
def global_hook(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 2)
    try:
        yield (X, block)
    finally:
        handle.remove()


@case
def forward_replaced(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    mp.setattr(Block, "forward", lambda self, x: x)
    yield (X, block)


@case
def forward_put_on_the_instance(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    block.linear.forward = lambda x: x * 2
    yield (X, block)


@case
def module_call_replaced(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    mp.setattr(nn.Linear, "__call__", lambda self, x: x, raising=False)
    yield (X, block)


@case
def submodule_replaced(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    block.linear = nn.Identity()
    yield (X, block)
    block.linear = nn.Linear(3, 3, bias=False)
    yield (X, block)


@case
def parameters_replaced(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    block.linear.weight = nn.Parameter(torch.ones(3, 3))
    yield (X, block)
    block.linear.bias = None
    yield (X, block)
    block.linear.weight.requires_grad_(False)
    yield (X, block)
    block.double()
    yield (X.double(), block)


@case
def parameter_hidden_in_the_dictionary(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    block.linear.__dict__["weight"] = torch.ones(3, 3)
    yield (X, block)


@case
def module_constant_changed(mp):
    block = Block().eval()
    yield (lambda x, m: m(x)), (X, block)
    block.scale = 3.0
    yield (X, block)
    block.scale = torch.tensor(3.0)
    yield (X, block)
    del block._buffers["count"]
    block.count = 5
    yield (X, block)


@case
def sequential_changed(mp):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    yield (lambda x, m: m(x)), (X, model)
    model.append(nn.Sigmoid())
    yield (X, model)
    model[1] = nn.Tanh()
    yield (X, model)
    yield (X, nn.Sequential(nn.ReLU(), nn.Linear(3, 3)))


@case
def module_list_changed(mp):
    def fn(x, layers):
        for layer in layers:
            x = layer(x)
        return x + len(layers)

    layers = nn.ModuleList([nn.Linear(3, 3), nn.ReLU()])
    yield fn, (X, layers)
    layers.insert(0, nn.Tanh())
    yield (X, layers)
    del layers[1]
    yield (X, layers)


@case
def shared_parameters(mp):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    yield (lambda x, m: m(x)), (X, model)
    model[1].weight = nn.Parameter(torch.ones(3, 3))
    yield (X, model)
    same = nn.Linear(3, 3)
    yield (X, nn.Sequential(same, same))


# -- tensors ------------------------------------------------------------


@case
def tensor_properties(mp):
    def fn(x):
        y = x * 2 if x.requires_grad else x + 1
        return y.sum() if x.dtype == torch.float32 else y

    x = torch.ones(4, 4)
    yield fn, (x,)
    yield (x.double(),)
    yield (torch.ones(4, 4, requires_grad=True),)
    yield (torch.ones(4, 4).t()[:2],)
    yield (torch.ones(4),)
    yield (torch.ones(4, 4, dtype=torch.int64),)
    yield (nn.Parameter(x),)
    yield (x.T,)
    yield (x.expand(2, 4, 4)[0],)
    yield (torch.ones(4, 4, dtype=torch.complex64).conj(),)


@case
def strides_decide(mp):
    def fn(x):
        return x + 1 if x.is_contiguous() else x.stride(0) * x

    yield fn, (torch.ones(4, 4),)
    yield (torch.ones(4, 4).t(),)
    yield (torch.ones(8, 8)[::2, ::2],)


@case
def storage_offset(mp):
    base = torch.arange(8.0)
    yield (lambda x: x + x.storage_offset()), (base[0:3],)
    yield (base[2:5],)


@case
def same_tensor_twice(mp):
    def fn(x, y):
        x.add_(1)
        return x * y

    a = torch.ones(3)
    yield fn, (a.clone(), torch.ones(3))
    yield (a, a)
    yield (a.clone(), torch.ones(3))


@case
def same_tensor_then_two(mp):
    def fn(x, y):
        x.add_(1)
        return x * y if x is y else x - y

    a = torch.ones(3)
    yield fn, (a, a)
    yield (a.clone(), a.clone())


@case
def overlapping_views(mp):
    def fn(x, y):
        x.add_(1)
        return x * y

    base = torch.arange(6.0)
    yield fn, (base[:3].clone(), base[3:].clone())
    yield (base[:3], base[1:4])
    yield (base[:3], base[:3])


@case
def attribute_put_on_a_tensor(mp):
    x = torch.ones(3)
    yield (lambda x: x + 1 if hasattr(x, "mark") else x), (x,)
    y = torch.ones(3)
    y.mark = 1
    yield (y,)


@case
def tensor_grad(mp):
    x = torch.ones(3, requires_grad=True)
    yield (lambda x: x * 2 if x.grad is None else x + x.grad), (x,)
    x.grad = torch.ones(3)
    yield (x,)


@case
def leaf(mp):
    x = torch.ones(3, requires_grad=True)
    yield (lambda x: x * 2 if x.is_leaf else x + 1), (x,)
    yield (x.clone().detach().requires_grad_(False),)


@case
def tensor_subclass(mp):
    class Marked(torch.Tensor):
        def __deepcopy__(self, memo):
            return self

    yield (lambda x: x * 2 if type(x) is torch.Tensor else x + 1), (torch.ones(3),)
    yield (torch.ones(3).as_subclass(Marked),)


# -- plain values and containers ------------------------------------------------------------


@case
def scalars(mp):
    def fn(x, v):
        return x * 2 if v else x + 1

    yield fn, (X, 1)
    for value in (True, 1.0, 0, False, 0.0, -0.0, float("nan"), "", "a", b"", None, 2, [], [0]):
        yield (X, value)


@case
def floats(mp):
    def fn(x, v):
        return torch.full((2,), v) / 0.0 + x[:2]

    yield fn, (X, 0.0)
    yield (X, -0.0)
    yield (X, float("nan"))
    yield (X, float("inf"))


@case
def int_and_bool(mp):
    def fn(x, v):
        return x + v if type(v) is int else x - 1

    yield fn, (X, 1)
    yield (X, True)
    yield (X, 2)
    yield (X, False)
    yield (X, 2**70)


@case
def strings_in_a_list(mp):
    def fn(x, names):
        return x * names.count("a") + len(names)

    yield fn, (X, ["a", "b"])
    yield (X, ["a", "a"])
    yield (X, ["a"])
    yield (X, ("a", "b"))
    yield (X, [])


@case
def order_of_a_dict(mp):
    def fn(x, d):
        for key, value in d.items():
            x = x * 2 + value if key == "a" else x - value
        return x

    yield fn, (X, {"a": 1, "b": 2})
    yield (X, {"b": 2, "a": 1})
    yield (X, {"a": 1})
    yield (X, {"a": 1, "b": 2, "c": 3})


@case
def keys_of_a_dict(mp):
    def fn(x, d):
        return x + d.get("k", 1)

    yield fn, (X, {"a": 1})
    yield (X, {"k": 7})
    yield (X, {})


@case
def dict_is_empty(mp):
    yield (lambda x, d: x + 1 if d else x), (X, {})
    yield (X, {"a": 1})


@case
def type_of_keys(mp):
    def fn(x, d):
        for key in d:
            x = x + 1 if type(key) is bool else x * 2
        return x

    yield fn, (X, {1: 0})
    yield (X, {True: 0})
    yield (X, {1.0: 0})


@case
def members_of_a_set(mp):
    yield (lambda x, s: x + 1 if "a" in s else x), (X, {"a", "b"})
    yield (X, {"b"})
    yield (X, frozenset("a"))
    yield (X, {"a", "b", "c"})


@case
def same_list_twice(mp):
    def fn(x, a, b):
        a.append(1)
        return x * len(b)

    yield fn, (X, [1], [2])
    both = [1]
    yield (X, both, both)


@case
def identity_of_lists(mp):
    yield (lambda x, a, b: x + 1 if a is b else x), (X, [1], [1])
    both = [1]
    yield (X, both, both)


@case
def identity_of_objects(mp):
    o = Scaler()
    yield (lambda x, a, b: x + 1 if a is b else x), (X, Scaler(), o)
    yield (X, o, o)


@case
def equality_of_objects(mp):
    o = Scaler()
    yield (lambda x, a, b: x + 1 if a == b else x), (X, Scaler(), o)
    yield (X, o, o)


@case
def object_in_a_list(mp):
    o = Scaler()
    yield (lambda x, a, items: x + 1 if a in items else x), (X, o, [Scaler(), Scaler()])
    yield (X, o, [Scaler(), o])


@case
def objects_as_keys(mp):
    def fn(x, a, b):
        return x * len({a: 1, b: 2})

    o = Scaler()
    yield fn, (X, Scaler(), o)
    yield (X, o, o)


@case
def objects_in_a_set(mp):
    def fn(x, a, b):
        return x * len({a, b})

    o = Scaler()
    yield fn, (X, Scaler(), o)
    yield (X, o, o)


@case
def lists_in_a_tuple(mp):
    def fn(x, pair):
        pair[0].append(3)
        return x * len(pair[1])

    yield fn, (X, ([1], [2]))
    both = [1]
    yield (X, (both, both))


@case
def ranges_and_slices(mp):
    yield (lambda x, s: x[s] if isinstance(s, slice) else x * len(s)), (X, slice(0, 2))
    yield (X, slice(1, 3))
    yield (X, slice(None))
    yield (X, range(3))
    yield (X, range(0, 6, 2))


@case
def identity_of_slices_and_ranges(mp):
    s, r = slice(0, 2), range(3)
    yield (lambda x, a, b: x + 1 if a is b else x), (X, s, s)
    yield (X, s, slice(0, 2))
    yield (X, r, r)
    yield (X, r, range(3))


@case
def dtype_arguments(mp):
    yield (lambda x, d: x.to(d)), (X, torch.float64)
    yield (X, torch.int32)
    yield (X, "cpu")
    yield (X, torch.device("cpu"))


# -- the process ------------------------------------------------------------


def reads_the_state(x):
    y = x @ x.t()
    return y * 2 if torch.is_grad_enabled() else y + 1


@case
def gradient_mode(mp):
    x = torch.ones(2, 3, requires_grad=True)
    yield reads_the_state, (x,)
    with torch.no_grad():
        yield (x,)
    with torch.inference_mode():
        yield (x,)
        yield (torch.ones(2, 3),)


@case
def autocast(mp):
    x = torch.ones(2, 3)
    yield reads_the_state, (x,)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        yield (x,)
    with torch.autocast("cpu", dtype=torch.float16):
        yield (x,)


@case
def default_dtype(mp):
    yield (lambda x: torch.ones(2) * x), (torch.ones(2, dtype=torch.float64),)
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@case
def default_device(mp):
    yield (lambda x: x + 1 if torch.ones(3).is_meta else x), (X,)
    with torch.device("meta"):
        yield


@case
def torch_function_mode(mp):
    class Twice(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            return result * 2 if function is torch.sin else result

    yield (lambda x: torch.sin(x)), (X,)
    with Twice():
        yield


@case
def deterministic(mp):
    def fn(x):
        return x + 1 if torch.are_deterministic_algorithms_enabled() else x

    yield fn, (X,)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@case
def anomaly_mode(mp):
    yield (lambda x: x + 1 if torch.is_anomaly_enabled() else x), (X,)
    with torch.autograd.set_detect_anomaly(True):
        yield


# -- reached in other ways ------------------------------------------------------------


class Ten:
    """A descriptor with state of its own."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner=None):
        return self.value if instance is not None else self


class Described:
    ten = Ten(10)


class Wrapped:
    def __init__(self, **values):
        self.__dict__["values"] = values

    def __deepcopy__(self, memo):
        return self

    def __getattr__(self, name):
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None


def decorated(function):
    @functools.wraps(function)
    def call(x):
        return function(x) * call.factor

    call.factor = 2
    return call


@decorated
def wrapped_helper(x):
    return x + 1


@case
def state_of_a_descriptor(mp):
    yield (lambda x, o: x + o.ten), (X, Described())
    mp.setattr(Described.__dict__["ten"], "value", 11)
    yield
    mp.setattr(Described, "ten", Ten(12))
    yield


@case
def attributes_made_by_getattr(mp):
    o = Wrapped(a=1)
    yield (lambda x, o: x + o.a + getattr(o, "b", 0)), (X, o)
    o.values["a"] = 5
    yield (X, o)
    o.values["b"] = 7
    yield (X, o)
    o.__dict__["b"] = 8
    yield (X, o)


@case
def attribute_of_a_decorated_function(mp):
    yield (lambda x: wrapped_helper(x)), (X,)
    mp.setattr(wrapped_helper, "factor", 5)
    yield
    mp.setattr(wrapped_helper.__closure__[1], "cell_contents", lambda x: x - 7)
    yield


@case
def attribute_read_through_the_class_of_an_object(mp):
    yield (lambda x, o: x + type(o).bias + o.__class__.bias), (X, Scaler())
    mp.setattr(Base, "bias", 40)
    yield


@case
def attribute_of_an_enum_member(mp):
    mp.setattr(Mode.FAST, "extra", 1, raising=False)
    yield (lambda x, m: x + m.extra), (X, Mode.FAST)
    mp.setattr(Mode.FAST, "extra", 2)
    yield


@case
def value_of_an_enum_member(mp):
    yield (lambda x, m: x + m.value), (X, Mode.FAST)
    mp.setattr(Mode.FAST, "_value_", 9)
    yield


@case
def iteration_over_a_set(mp):
    def fn(x, s):
        for value in s:
            x = x * 2 + value
        return x

    yield fn, (X, {1, 9})
    yield (X, {9, 1})
    other = {9, 17, 1}
    other.discard(17)
    yield (X, other)


@case
def deep_inside(mp):
    data = {"a": [1, {"b": (2, [3, 4])}]}
    yield (lambda x, d: x * d["a"][1]["b"][1][0]), (X, data)
    data["a"][1]["b"][1][0] = 5
    yield (X, data)
    data["a"][1]["b"][1].append(5)
    yield (X, data)
    data["a"][1]["b"] = (2, [7])
    yield (X, data)
    data["a"].pop(0)
    yield (X, {"a": [0, {"b": [2, [3, 4]]}]})


@case
def length_of_args_and_kwargs(mp):
    def fn(x, *args, **kwargs):
        return x * len(args) + sum(kwargs.values())

    yield fn, (X, 1, 2)
    yield (X, 1)
    yield (X,)


@case
def iterators(mp):
    yield (lambda x, it: x + next(it)), (X, iter([1, 2]))
    yield (X, iter([5, 2]))
    yield (X, iter((7,)))


@case
def nested_functions_of_globals(mp):
    def fn(x):
        return (lambda y: helper(y) * FACTOR)(x)

    yield fn, (X,)
    mp.setitem(globals(), "FACTOR", 21)
    yield
    mp.setitem(globals(), "helper", torch.sin)
    yield


@case
def comprehension_over_a_global(mp):
    yield (lambda x: x + sum([n for n in Scaler.factors])), (X,)
    mp.setattr(Scaler, "factors", [2, 30])
    yield


@case
def default_of_a_method(mp):
    def method(self, x, k=3):
        return x * k

    mp.setattr(Scaler, "scale", method)
    yield (lambda x, o: o.scale(x)), (X, Scaler())
    method.__defaults__ = (9,)
    yield


@case
def none_attribute_set(mp):
    o = Scaler()
    o.mask = None
    yield (lambda x, o: x if o.mask is None else x * o.mask), (X, o)
    o.mask = torch.tensor([1.0, 0.0, 1.0])
    yield (X, o)
    o.mask = torch.tensor([True, False, True])
    yield (X, o)


@case
def tensors_in_containers(mp):
    def fn(d):
        return [d["a"] * 2, *(t + 1 for t in d["list"])]

    yield fn, ({"a": X, "list": [X, X + 1]},)
    yield ({"a": X, "list": [X]},)
    yield ({"a": X, "list": (X, X + 1)},)
    yield ({"a": X.double(), "list": [X, X.double()]},)
    yield ({"a": X, "list": [None]},)


@case
def same_object_on_two_paths(mp):
    def fn(x, a, b):
        a.factor = 5
        return x * b.factor

    yield fn, (X, Scaler(), Scaler())
    o = Scaler()
    yield (X, o, o)


@case
def same_dict_inside(mp):
    def fn(x, a, b):
        a["k"]["n"] = 5
        return x * b["n"]

    yield fn, (X, {"k": {"n": 1}}, {"n": 2})
    d = {"n": 1}
    yield (X, {"k": d}, d)


# -- what objects say of themselves ------------------------------------------------------------


class Told:
    a = 1

    def __init__(self):
        self.b = 2

    @functools.cached_property
    def cached(self):
        return self.b * 10


class Meta(type):
    pass


class Checked(metaclass=Meta):
    pass


class Letter(enum.Enum):
    A = 1
    B = 2

    def doubled(self):
        return self.value * 2


def says_otherwise(self, name):
    found = {"__dict__": {"z": 30, "y": 4, "x": 5}, "__class__": list}
    return found[name] if name in found else object.__getattribute__(self, name)


ASKED = {
    "vars": lambda x, o: x * sum(vars(o).values()),
    "__dict__": lambda x, o: x * sum(o.__dict__.values()),
    "dir": lambda x, o: x * len(dir(o)),
    "isinstance": lambda x, o: x * (2 if isinstance(o, list) else 3),
    "isinstance of an abstract class": lambda x, o: (
        x * (2 if isinstance(o, collections.abc.Sequence) else 3)
    ),
    "__class__": lambda x, o: x * (2 if o.__class__ is list else 3),
    "hasattr": lambda x, o: x * (2 if hasattr(o, "z") else 3),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_class_that_reads_attributes_its_own_way(name):
    asked, told = ASKED[name], Told()

    def played(mp):
        yield (lambda x: asked(x, told)), (X,)
        mp.setattr(Told, "__getattribute__", says_otherwise, raising=False)
        yield
        mp.setattr(Told, "__dir__", lambda self: ["one"], raising=False)
        yield

    noticed(played)


@case
def check_added_to_a_metaclass(mp):
    yield (lambda x, o: x * (2 if isinstance(o, Checked) else 3)), (X, Told())
    mp.setattr(Meta, "__instancecheck__", lambda cls, o: True, raising=False)
    yield


@case
def name_of_a_cached_property(mp):
    yield (lambda x, o: (x * o.cached, sorted(vars(o)))), (X, Told())
    mp.setattr(Told.__dict__["cached"], "attrname", "other")
    yield


@case
def attribute_added_to_a_member_of_an_enum(mp):
    yield (lambda x, m: x * getattr(m, "extra", 3)), (X, Letter.A)
    mp.setattr(Letter.A, "extra", 50, raising=False)
    yield


@case
def member_of_an_enum_by_another_value(mp):
    yield (lambda x, v: x * Letter(v).value), (X, 1)
    mp.setitem(Letter._value2member_map_, 1, Letter.B)
    yield


@case
def member_of_an_enum_by_another_name(mp):
    yield (lambda x, v: x * Letter[v].value), (X, "A")
    mp.setitem(Letter._member_map_, "A", Letter.B)
    yield


@case
def members_of_an_enum(mp):
    yield (lambda x: x * sum(m.value for m in Letter) * len(Letter)), (X,)
    mp.setitem(Letter._member_map_, "A", Letter.B)
    yield
    mp.setattr(Letter, "_member_names_", ["B"])
    yield


@case
def new_of_an_enum(mp):
    yield (lambda x, v: x * Letter(v).value), (X, 1)
    mp.setattr(Letter, "__new__", lambda cls, value: Letter.B)
    yield


@case
def name_and_value_of_a_member_of_an_enum(mp):
    yield (lambda x, m: (x * len(str(m)), f"{m}", repr(m), m.doubled())), (X, Letter.A)
    mp.setattr(Letter.A, "_name_", "LONGER")
    yield
    mp.setattr(Letter.A, "_value_", 7)
    yield


@case
def value_of_a_flag(mp):
    yield (lambda x, m: x * (2 if Bits.B in m else 3)), (X, Bits.A | Bits.B)
    mp.setattr(Bits.B, "_value_", 4)
    yield


@case
def name_of_a_class(mp):
    class Named:
        """It has a text."""

    yield (lambda x, o: (x * len(type(o).__name__), type(o).__doc__)), (X, Named())
    Named.__name__ = "AnotherOne"
    yield
    Named.__doc__ = "Another text."
    yield


@case
def name_of_a_global_class_and_function(mp):
    yield (lambda x: (x * len(Told.__name__), Told.__module__, helper.__name__)), (X,)
    mp.setattr(helper, "__name__", "helps")
    yield
    mp.setattr(Told, "__module__", "elsewhere")
    yield


# -- the process, and what it holds ------------------------------------------------------------


@case
def global_that_is_missing(mp):
    def fn(x):
        try:
            return x * MISSING  # noqa: F821
        except NameError:
            return x * 9

    yield fn, (X,)
    mp.setitem(globals(), "MISSING", 4)
    yield
    mp.delitem(globals(), "MISSING")
    yield
    mp.setattr(builtins, "MISSING", 5, raising=False)
    yield


@case
def missing_key_answered_by_the_class(mp):
    class Table(dict):
        pass

    table = Table(a=1)

    def fn(x):
        try:
            return x * table["b"]
        except KeyError:
            return x * 9

    yield fn, (X,)
    Table.__missing__ = lambda self, key: 4
    yield


@case
def environment(mp):
    def fn(x):
        return x * int(os.environ.get("OF_A_TEST", "3")) + ("OF_A_TEST" in os.environ)

    yield fn, (X,)
    mp.setenv("OF_A_TEST", "5")
    yield


@case
def number_of_threads(mp):
    before = torch.get_num_threads()
    yield (lambda x: x * torch.get_num_threads()), (X,)
    try:
        torch.set_num_threads(before + 1)
        yield
    finally:
        torch.set_num_threads(before)


@case
def arguments_of_the_process(mp):
    yield (lambda x: x * len(sys.argv)), (X,)
    mp.setattr(sys, "argv", list("abcdefg"))
    yield


@case
def settings_of_backends(mp):
    def fn(x):
        return x * torch.backends.cudnn.benchmark + (
            torch.get_float32_matmul_precision() == "high"
        )

    yield fn, (X,)
    mp.setattr(torch.backends.cudnn, "benchmark", True)
    yield
    try:
        torch.set_float32_matmul_precision("high")
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


@case
def tensor_of_a_closure_in_place(mp):
    w = torch.ones(6)
    yield (lambda x: x * w.numel() + w.dim() + w.stride(-1)), (X,)
    w.resize_(4)
    yield
    w.resize_(2, 3)
    yield
    w.t_()
    yield
    w.data = torch.ones(2)
    yield
    w.data = torch.ones(2, dtype=torch.float64)
    yield
    w.requires_grad_()
    yield


@case
def conjugate_and_sparse(mp):
    held = [torch.eye(3, dtype=torch.complex64) * 1j]
    yield (lambda x: held[0] @ x.to(torch.complex64)), (X,)
    held[0] = held[0].conj()
    yield
    held[0] = torch.eye(3, dtype=torch.complex64).to_sparse()
    yield


@case
def parametrization(mp):
    class Twice(nn.Module):
        def forward(self, w):
            return w * 2

    m = nn.Linear(3, 3)
    yield (lambda x: m(x)), (X,)
    nn.utils.parametrize.register_parametrization(m, "weight", Twice())
    yield


@case
def buffers_and_state(mp):
    m = nn.Linear(3, 3)
    yield (lambda x: m(x) * len(list(m.buffers())) + len(m.state_dict())), (X,)
    m.register_buffer("one", torch.ones(1), persistent=False)
    yield
    m.register_buffer("two", torch.ones(1))
    yield


@case
def context_variable_that_is_passed_on(mp):
    given, other = contextvars.ContextVar("given"), contextvars.ContextVar("other", default=5)
    held = [given]
    token = given.set([1])
    yield (lambda x: (x * 2, held[0].get(3))), (X,)
    given.reset(token)
    yield
    given.set([2])
    yield
    held[0] = other
    yield


@case
def end_of_what_is_referred_to(mp):
    class Thing:
        size = 3

    held = [Thing()]
    reference = weakref.ref(held[0])

    def fn(x):
        thing = reference()
        return x * (9 if thing is None else thing.size)

    yield fn, (X,)
    held[0].size = 4
    yield
    held.clear()
    gc.collect()
    yield


@case
def name_of_the_module(mp):
    def fn(x):
        made = collections.namedtuple("Made", "a"), type("Plain", (), {}), lambda: x
        return x, [each.__module__ for each in made]

    yield fn, (X,)
    mp.setitem(globals(), "__name__", "another")
    yield
    mp.setitem(globals(), "__name__", None)
    yield
    mp.delitem(globals(), "__name__")
    yield


class Flags(enum.Flag):
    R = 1
    W = 2
    X = 4


@case
def tables_of_an_enum(mp):
    yield (lambda x: (x, Flags(5), Flags.R | Flags.W, Flags(2))), (X,)
    for number in (5, 3, 2):
        mp.setitem(Flags._value2member_map_, number, Flags.X)
        yield
    mp.setattr(Flags, "_value2member_map_", {})
    yield
    mp.setattr(Flags, "_value2member_map_", None)
    yield


class BareMeta(type):
    pass


@case
def methods_that_a_class_did_not_have(mp):
    class Bare(metaclass=BareMeta):
        __reversed__ = None

    def told(use):
        try:
            return use(Bare())
        except (TypeError, AttributeError) as error:
            return str(error)

    def fn(x):
        uses = (callable, lambda o: o(), reversed, lambda o: Bare.told)
        return x, [told(use) for use in uses]

    yield fn, (X,)
    changes = {"__call__": lambda self: 3, "__reversed__": lambda self: 4}
    for name, value in changes.items():
        mp.setattr(Bare, name, value, raising=False)
        yield
    mp.setattr(BareMeta, "told", property(lambda cls: 5), raising=False)
    yield


@case
def context_manager_that_was_none(mp):
    class Bare:
        pass

    def fn(x):
        try:
            with Bare():
                return x + 1
        except TypeError as error:
            return x, str(error)

    yield fn, (X,)
    mp.setattr(Bare, "__enter__", lambda self: self, raising=False)
    yield
    mp.setattr(Bare, "__exit__", lambda self, *error: None, raising=False)
    yield


@case
def identity_of_equal_numbers_and_strings(mp):
    yield (lambda x, a, b: (x, a is b, a is not b)), (X, 10**6, 10**6)
    yield X, 10**6, int("1000000")
    yield X, "word", "".join(["wo", "rd"])
    yield X, "word", "word"
    yield X, 1.5, 1.5
    yield X, 1.5, float("1.5")
    yield X, 7, 7
    yield X, 7, int("7")
    yield X, 300, int("300")


@case
def identity_with_a_constant(mp):
    yield (lambda x, a: (x, a is Ellipsis, a == 7 and a is FACTORS[1])), (X, 7)
    yield X, ...
    yield X, 7.0
    yield X, 8


@case
def text_of_an_enum_in_a_format(mp):
    yield (lambda x: (x, f"{Mode.FAST}")), (X,)
    mp.setattr(Mode, "__str__", lambda self: "told", raising=False)
    yield


@case
def members_of_an_enum_that_are_not_there(mp):
    yield (lambda x: (x, len(Mode), list(Mode))), (X,)
    mp.delitem(Mode._member_map_, "SLOW")
    yield


@case
def registry_of_hooks_that_is_not_there(mp):
    m = nn.Linear(3, 3)
    yield (lambda x: m(x)), (X,)
    mp.delitem(vars(m), "_forward_hooks")
    yield


@case
def where_a_cached_property_keeps_its_value(mp):
    def fn(x):
        s = Scaler(x)
        return s.slow, s.slow, vars(s)

    yield fn, (X,)
    mp.setattr(Scaler.__dict__["slow"], "attrname", "slower")
    yield
    mp.setattr(Scaler.__dict__["slow"], "attrname", None)
    yield


@functools.singledispatch
def dispatched(value):
    return 1


@dispatched.register
def _(value: int):
    return 2


@case
def table_of_a_function_with_implementations_by_type(mp):
    code = dispatched.dispatch.__code__
    cell = dispatched.dispatch.__closure__[code.co_freevars.index("registry")]
    table = cell.cell_contents
    yield (lambda x: (x * dispatched(3), x * dispatched("a"))), (X,)
    dispatched._clear_cache()
    mp.delitem(table, int)
    yield
    dispatched._clear_cache()
    mp.delitem(table, object)
    yield
    mp.setattr(cell, "cell_contents", None)
    dispatched._clear_cache()
    yield


# -- modules of the program ------------------------------------------------------------

ROOM = types.ModuleType("room_of_aotdyn_test")
ROOM.present = 1
sys.modules[ROOM.__name__] = ROOM


class Furnished(types.ModuleType):
    @property
    def present(self):
        return 50


@case
def what_a_module_answers_for_names_that_it_lacks(mp):
    yield (lambda x: x * getattr(ROOM, "missing", 3)), (X,)
    mp.setattr(ROOM, "__getattr__", lambda name: 7, raising=False)
    yield
    mp.setattr(ROOM, "__getattr__", lambda name: len(name))
    yield
    mp.setattr(ROOM, "missing", 11, raising=False)
    yield


@case
def class_of_a_module(mp):
    yield (lambda x: x * ROOM.present), (X,)
    mp.setattr(ROOM, "__class__", Furnished)
    yield


@case
def how_modules_are_imported(mp):
    def fn(x):
        import math

        return x * math.floor(2.5)

    yield fn, (X,)
    real, other = builtins.__import__, types.SimpleNamespace(floor=lambda value: 9)
    mp.setattr(builtins, "__import__", lambda n, *a: other if n == "math" else real(n, *a))
    yield


# -- abstract classes, protocols, metaclasses without a name -----------------------------------


@typing.runtime_checkable
class Moves(typing.Protocol):
    size: int

    def move(self): ...


@case
def what_a_protocol_asks_for(mp):
    o = Told()
    yield (lambda x: x * (2 if isinstance(o, Moves) else 3)), (X,)
    o.size, o.move = 1, lambda: 1
    yield
    o.move = None
    yield
    del o.size
    yield


class Cuts(typing.Protocol):
    def cut(self): ...


@case
def class_that_says_it_follows_a_protocol(mp):
    class Knife:
        pass

    protocol = typing.runtime_checkable(Cuts)
    yield (lambda x: x * (2 if isinstance(Knife(), protocol) else 3)), (X,)
    protocol.register(Knife)
    yield


@case
def implementation_for_an_abstract_class(mp):
    class Shape(abc.ABC):
        pass

    class Round:
        pass

    dispatched.register(Shape)(lambda value: 50)
    yield (lambda x: x * dispatched(Round())), (X,)
    Shape.register(Round)
    yield


@case
def call_of_a_metaclass(mp):
    class Meta(type):
        pass

    class Made(metaclass=Meta):
        n = 2

    yield (lambda x: x * Made().n), (X,)
    Meta.__call__ = lambda cls: types.SimpleNamespace(n=8)
    yield


@case
def truth_of_a_class(mp):
    class Meta(type):
        pass

    class Made(metaclass=Meta):
        pass

    yield (lambda x: x * (2 if Made else 3)), (X,)
    Meta.__len__ = lambda cls: 0
    yield
    Meta.__bool__ = lambda cls: True
    yield


@case
def end_that_a_class_did_not_have(mp):
    ended = []

    class Ends:
        pass

    def fn(x):
        ended.clear()
        Ends()
        return x * 2, len(ended)

    yield fn, (X,)
    Ends.__del__ = lambda self: ended.append(1)
    yield


@case
def member_of_a_flag_by_its_number(mp):
    yield (lambda x: (x, (Flags.R | Flags.W) & Flags.R)), (X,)
    mp.setitem(Flags._value2member_map_, 1, Flags.X)
    yield


@case
def accessor_that_a_property_did_not_have(mp):
    class Made:
        @property
        def size(self):
            return 3

    def fn(x):
        try:
            Made().size = 4
        except AttributeError as error:
            return x, str(error)
        return x + 1

    yield fn, (X,)
    Made.size = Made.size.setter(lambda self, value: None)
    yield


@case
def abstract_methods(mp):
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    class Square(Shape):
        def area(self):
            return 2

    def fn(x):
        try:
            return x * Square().area() + (Shape() is None)
        except TypeError as error:
            return x, str(error)

    yield fn, (X,)
    Shape.__abstractmethods__ = frozenset()
    yield
    Square.__abstractmethods__ = frozenset({"sides"})
    yield


class Count(int):
    pass


@case
def reflected_method_that_a_tensor_does_not_ask_for(mp):
    yield (lambda x, n: (x * n, n + 1)), (X, Count(3))
    mp.setattr(Count, "__rmul__", lambda self, other: other, raising=False)
    yield
    mp.setattr(Count, "__add__", lambda self, other: 90, raising=False)
    yield


# -- numbers as texts, annotations -----------------------------------------------------------


@case
def most_digits_of_a_number(mp):
    def fn(x, number):
        try:
            return x, str(number)
        except ValueError as error:
            return x, str(error)

    yield fn, (X, 10**5000)
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


Given = typing.ParamSpec("Given")


def annotated(function):
    def call(*args: Given.args, **kwargs: Given.kwargs):
        return function(*args, **kwargs)

    return call


@case
def annotations_of_a_function(mp):
    made = annotated(torch.sin)
    yield (lambda x, f: (f(x), f.__annotations__["args"] == Given.args)), (X, made)
    yield X, annotated(torch.cos)
    mp.setitem(globals(), "Given", typing.ParamSpec("Given"))
    yield X, made


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.__name__)
def test_a_change_is_noticed(each):
    noticed(each)


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.__name__)
def test_a_change_is_noticed_by_what_was_loaded(each, tmp_path):
    noticed_when_loaded(each, tmp_path)


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.__name__)
def test_a_change_is_noticed_in_the_same_objects(each, monkeypatch):
    """What guards found in dictionaries is remembered, here of all of them."""
    always_by_version(monkeypatch)
    noticed(each, in_place=True)
