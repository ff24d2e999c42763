"""Classes without a name in other processes: what is recorded with one serves the instances of
another one that is the same in all that a trace looks at, and of no other."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

import aotdyn
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.record.programs import note

X = torch.arange(6.0).view(2, 3)


def make(factor=2, shift=1, prop=3, doc="It multiplies.", body=0, own_dict=True, base=nn.Identity):
    """A class made anew each time, and an object of it."""

    class Base(base):
        k = shift

        def common(self, x):
            return x + self.k

        def replaced(self, x):
            return x - self.k

        if body:
            common = replaced

    class Net(Base):
        __doc__ = doc
        by = factor

        @property
        def prop(self):
            return prop

        @staticmethod
        def scaled(x):
            return x * factor

        @classmethod
        def of_class(cls, x):
            return x - cls.by

        def common(self, x):
            return super().common(x) * 2

    return Net()


def use(x, net):
    kind = type(net)
    x = net.common(x) * net.by + net.prop + net.scaled(x) + net.of_class(x)
    return x * len(kind.__doc__) + len(kind.__name__) + isinstance(net, nn.Module)


def pair(x, first, second):
    return use(x, first) + use(x, second) * (2 if type(first) is type(second) else 3)


def twins(**values):
    first = make(**values)
    return first, type(first)()


def changed(name, value, base=0, **values):
    net = make(**values)
    setattr(type(net).__mro__[base], name, value)
    return net


OTHERS = {
    "attribute": lambda: make(factor=3),
    "attribute of a base": lambda: make(shift=5),
    "cell of a property": lambda: make(prop=4),
    "docstring": lambda: make(doc="It does."),
    "method of a base": lambda: make(body=1),
    "base": lambda: make(base=nn.Module),
    "function set in the class": lambda: changed("common", lambda self, x: x),
    "function set in a base": lambda: changed("common", lambda self, x: x, base=1),
    "other kind of member": lambda: changed("prop", 3),
    "getattribute": lambda: changed("__getattribute__", lambda self, name: 7),
}


def calls_served(program, recorded, later, tmp_path):
    """For each later call the difference in misses, once all recorded ones are packed."""
    with aotdyn.record(tmp_path / "a.rec"):
        traced = compiled(program, Settings("eager"))
        for args in recorded:
            assert torch.equal(traced(X, *args), program(X, *args))
    aotdyn.pack([tmp_path / "a.rec"], tmp_path / "a.pkg")
    misses = []
    with aotdyn.load(tmp_path / "a.pkg", on_miss="eager") as package:
        served = compiled(program, Settings("eager"))
        for args in later:
            before = package.stats().misses
            try:
                expected = program(X, *args)
            except TypeError:
                with pytest.raises(TypeError):
                    served(X, *args)
            else:
                assert torch.equal(served(X, *args), expected)
            misses.append(package.stats().misses - before)
    return misses


def test_another_class_that_is_the_same_is_served(tmp_path):
    assert calls_served(use, [(make(),)], [(make(),), (make(),)], tmp_path) == [0, 0]


@pytest.mark.parametrize("name", OTHERS)
def test_a_class_that_differs_is_not(name, tmp_path):
    same, other = make(), OTHERS[name]()
    assert calls_served(use, [(make(),)], [(same,), (other,), (same,)], tmp_path) == [0, 1, 0]


def test_a_class_that_changes_after_it_was_served(tmp_path):
    net = make()

    def later():
        yield (net,)
        type(net).by = 5
        yield (net,)
        type(net).by = 2
        yield (net,)
        type(net).__bases__ = (nn.Identity,)
        yield (changed("common", lambda self, x: x * 2 + 2),)

    assert calls_served(use, [(make(),)], later(), tmp_path) == [0, 1, 0, 1]


def test_which_objects_have_the_same_class_counts(tmp_path):
    for recorded, others in ((twins(), (make(), make())), ((make(), make()), twins())):
        assert calls_served(pair, [recorded], [recorded, others], tmp_path) == [0, 1]


def test_traces_are_shared_within_a_process(agree):
    run = agree(use, (X, make()), (X, make()), (X, make(doc="It does.")), breaks=0)
    assert len(run.variants) == 2 and not any(run.obstacles)


def in_a_closure():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def total(self):
            return self.a + self.b

    def program(x):
        return Pair(x, 1).total() * isinstance(x, Pair | torch.Tensor)

    return program


def test_objects_made_of_such_a_class(agree):
    agree(in_a_closure(), (X,), (X,), breaks=0)


PARAMETRIZED = {
    "weight_norm": lambda: parametrizations.weight_norm(nn.Linear(3, 3)),
    "several": lambda: nn.Sequential(
        *(parametrizations.spectral_norm(nn.Linear(3, 3)) for _ in range(3)),
        parametrizations.weight_norm(nn.Linear(3, 3)),
    ),
}


def test_what_a_base_of_such_a_class_holds_is_its_own(agree):
    """Beyond a break in a method that calls its base's: both are other classes in each call."""

    def program(x):
        log = []

        class Base:
            def method(self, x):
                note(log, "base")
                return x + 1

        class Other(Base):
            def method(self, x):
                note(log, "before")
                y = super().method(x)
                note(log, "after")
                return y * 2

        return Other().method(x), log

    agree(program, (X,), (X,), (X,), package=False)


@pytest.mark.parametrize("name", PARAMETRIZED)
def test_parametrized_modules_are_packed(name, tmp_path):
    def program(x, module):
        return module(x)

    modules = [PARAMETRIZED[name]().eval() for _ in range(2)]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert calls_served(program, [(modules[0],)], [(modules[1],)], tmp_path) == [0]
