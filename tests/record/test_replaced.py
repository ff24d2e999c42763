"""Functions of torch, the calls of modules and the machinery of classes are replaced: before the
trace they are honored, after it they are noticed."""

import abc
import builtins
import collections
import types
from collections import OrderedDict, defaultdict

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.conftest import assert_agree, perform
from tests.record.mutations import noticed, noticed_when_loaded

X = torch.arange(3.0) - 1
M = torch.arange(6.0).view(2, 3) - 1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.linear(x))


class Thing:
    def __init__(self, n=1):
        self.n = n


class Descriptor:
    def __get__(self, instance, owner=None):
        return 3


class Described:
    d = Descriptor()


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


class Made(metaclass=Meta):
    def __init__(self, n=2):
        self.n = n


class Items(list):
    pass


class Table(dict):
    pass


def sevenfold(self, *args, **kwargs):
    return torch.mul(self, 7)


# (owner, name, what takes its place, program, arguments)
REPLACEMENTS = {
    "a method of C": (torch.Tensor, "relu", sevenfold, lambda x: x.relu(), (X,)),
    "a method of Python": (torch.Tensor, "norm", sevenfold, lambda x: x.norm() + 1, (X,)),
    "an operator": (torch.Tensor, "__add__", sevenfold, lambda x: x + 1, (X,)),
    "a reflected operator": (torch.Tensor, "__rsub__", sevenfold, lambda x: 1 - x, (X,)),
    "an operator in place": (torch.Tensor, "__imul__", sevenfold, lambda x: [x.__imul__(2)], (X,)),
    "a property": (torch.Tensor, "T", property(sevenfold), lambda x: x.T + 1, (M,)),
    "the shape": (torch.Tensor, "shape", property(lambda self: (9,)),
                  lambda x: x * x.shape[0], (X,)),
    "the length": (torch.Tensor, "__len__", lambda self: 9, lambda x: x * len(x), (X,)),
    "iteration": (torch.Tensor, "__iter__", lambda self: iter([self]),
                  lambda x: [row + 1 for row in x], (M,)),
    "items": (torch.Tensor, "__getitem__", sevenfold, lambda x: x[0] + 1, (M,)),
    "a new attribute": (torch.Tensor, "unheard_of", 5, lambda x: x * hasattr(x, "unheard_of"),
                        (X,)),
    "a new attribute with a default": (torch.Tensor, "unheard_of", 5,
                                       lambda x: x * getattr(x, "unheard_of", 2), (X,)),
    "a new method": (torch.Tensor, "unheard_of", lambda self: self * 5,
                     lambda x: x.unheard_of() if hasattr(x, "unheard_of") else x, (X,)),
    "a function": (torch, "sin", torch.cos, lambda x: torch.sin(x), (X,)),
    "a function that an inlined one uses": (F, "relu", sevenfold, lambda m, x: m(x), (Block(), M)),
    "a function that a graph's one uses": (
        F, "dropout", lambda x, *args: x * 7,
        lambda x: F.multi_head_attention_forward(
            x, x, x, 2, 1, torch.eye(6, 2), None, None, None, False, 0.5, torch.eye(2), None,
            training=True,
        )[0], (torch.ones(3, 1, 2),),
    ),
    "calls of modules": (nn.Module, "__call__", lambda self, x: x * 7, lambda m, x: m(x),
                         (Block(), M)),
    "what calls of modules do": (nn.Module, "_call_impl", lambda self, x: x * 7,
                                 lambda m, x: m(x), (Block(), M)),
    "forward of a module": (nn.ReLU, "forward", sevenfold, lambda m, x: m(x), (Block(), M)),
    "setting attributes of modules": (
        nn.Module, "__setattr__", lambda self, name, value: self.__dict__.update(other=value),
        lambda m, x: [setattr(m, "k", 1), x * hasattr(m, "other")], (Block(), M),
    ),
    "a descriptor's read": (Descriptor, "__get__", lambda self, o, t=None: 9,
                            lambda x, o: x * o.d, (X, Described())),
    "making instances": (Meta, "__call__", lambda cls, *args: types.SimpleNamespace(n=100),
                         lambda x: x * Made(4).n, (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_replaced_after_the_trace(name):
    owner, attribute, value, program, args = REPLACEMENTS[name]

    def case(mp):
        yield program, args
        with mp.context() as inner:
            inner.setattr(owner, attribute, value, raising=False)
            yield
        yield

    noticed(case)


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_replaced_after_loading(name, tmp_path):
    owner, attribute, value, program, args = REPLACEMENTS[name]

    def case(mp):
        yield program, args
        mp.setattr(owner, attribute, value, raising=False)
        yield

    noticed_when_loaded(case, tmp_path)


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_replaced_before_the_trace(name, monkeypatch):
    owner, attribute, value, program, args = REPLACEMENTS[name]
    traced = compiled(program, Settings("eager"))
    monkeypatch.setattr(owner, attribute, value, raising=False)
    for _ in range(2):
        assert_agree(perform(program, args, {}), perform(traced, args, {}))


def lookup_of_a_module(mp):
    before = nn.Module.__getattr__
    yield (lambda m, x: m.linear(x)), (Block(), M)

    def getter(self, name):
        return (lambda x: x * 7) if name == "linear" else before(self, name)

    mp.setattr(nn.Module, "__getattr__", getter)
    yield


def registered_with_an_abstract_class(mp):
    class Abstract(abc.ABC):  # noqa: B024
        pass

    yield (lambda x, o: x * (2 if isinstance(o, Abstract) else 3)), (X, Thing())
    Abstract.register(Thing)
    yield


def descriptor_that_becomes_one_of_data(mp):
    described = Described()
    described.__dict__["d"] = 8
    yield (lambda x, o: x * o.d), (X, described)
    mp.setattr(Descriptor, "__set__", lambda self, o, v: None, raising=False)
    yield


def _two_of(make, change, read):
    def case(mp):
        def program(a, b, x):
            change(a)
            return x * read(b)

        yield program, (make(), make(), X)
        one = make()
        yield one, one, X

    return case


ALIASES = {
    "list": _two_of(lambda: [1], lambda a: a.append(1), len),
    "dict": _two_of(lambda: {"k": 1}, lambda a: a.update(k=5), lambda b: b["k"]),
    "set": _two_of(lambda: {1}, lambda a: a.add(2), len),
    "deque": _two_of(lambda: collections.deque([1]), lambda a: a.append(1), len),
    "list's subclass": _two_of(lambda: Items([1]), lambda a: a.append(1), len),
    "dict's subclass": _two_of(lambda: Table(k=1), lambda a: a.update(k=5), lambda b: b["k"]),
    "OrderedDict": _two_of(lambda: OrderedDict(k=1), lambda a: a.update(k=5), lambda b: b["k"]),
    "defaultdict": _two_of(lambda: defaultdict(int), lambda a: a.update(k=5), len),
    "object": _two_of(Thing, lambda a: setattr(a, "n", 5), lambda b: b.n),
    "items of lists": _two_of(lambda: [[1]], lambda a: a[0].append(1), lambda b: len(b[0])),
}
CASES = {
    **{f"same {name}": case for name, case in ALIASES.items()},
    **{
        case.__name__: case
        for case in (
            lookup_of_a_module, registered_with_an_abstract_class,
            descriptor_that_becomes_one_of_data,
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_noticed(name):
    noticed(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_noticed_by_what_was_loaded(name, tmp_path):
    noticed_when_loaded(CASES[name], tmp_path)


# -- builtins ------------------------------------------------------------

CALLED = []
COUNTED = ("len", "type", "isinstance", "tuple", "iter", "next", "getattr", "zip", "any", "all",
           "sorted", "map", "id", "hasattr", "set", "print")  # fmt: skip


def count_calls(name):
    original = getattr(builtins, name)

    def counting(*args, **kwargs):
        CALLED.append(name)
        return original(*args, **kwargs)

    setattr(builtins, name, counting)
    return original


def tell(items):
    print(items)
    return len(items)


def counts(name, items):
    tell(items)
    original = count_calls(name)
    try:
        found = [tell(each) for each in items]
        try:
            tell(None)
        except TypeError as error:
            print(error)
        return found
    finally:
        setattr(builtins, name, original)


@pytest.mark.parametrize("name", COUNTED)
def test_only_the_program_calls_what_it_puts_in_place_of_a_builtin(name):
    served = compiled(counts, Settings(backend="eager"))
    found = []
    for function in (counts, served, served):
        CALLED.clear()
        found.append((perform(function, (name, [[1], (2, 3)]), {}).result, len(CALLED)))
    assert found == [found[0]] * 3


SHOWN = print


def only_if_forced(*args, force=False, **options):
    if force:
        SHOWN("shown:", *args, **options)


def tells(x):
    print("kept")
    print(x.shape, force=True, sep="")
    return x + 1


def test_a_builtin_that_was_replaced_is_still_called_by_what_keeps_it(agree, monkeypatch):
    monkeypatch.setattr(builtins, "print", only_if_forced)
    found = agree(tells, (X.clone(),))
    assert [each.reason for each in found.breaks] == ["builtin_call"] * 2
    assert "Size" in found.outcomes[0].printed
