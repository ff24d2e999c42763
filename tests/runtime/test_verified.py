"""What is remembered of dictionaries: every change of one is noticed, and nothing is kept alive."""

import gc
import weakref
from collections import OrderedDict

import pytest
import torch
from torch import nn

from aotdyn.runtime import verified
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from aotdyn.runtime.verified import VerifiedDicts
from tests.conftest import assert_agree, perform
from tests.record.mutations import always_by_version

X = torch.arange(6.0).view(2, 3)


class Holder:
    pass


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)
        self.scale = 2.0

    def forward(self, x):
        return self.norm(self.linear(x)) * self.scale


class Stack(nn.Module):
    def __init__(self, count=3):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Counting(nn.Module):
    """Changes its own dictionary in each call."""

    def __init__(self):
        super().__init__()
        self.layer = Layer()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


# -- dicts ------------------------------------------------------------

DICT_CHANGES = {
    "a new key": lambda d: d.__setitem__("new", 1),
    "another value": lambda d: d.__setitem__("a", 2),
    "an equal value": lambda d: d.__setitem__("a", 1.0),
    "del": lambda d: d.__delitem__("a"),
    "pop": lambda d: d.pop("a"),
    "popitem": lambda d: d.popitem(),
    "clear": lambda d: d.clear(),
    "setdefault": lambda d: d.setdefault("new", 1),
    "update": lambda d: d.update(a=2),
    "update with a dict": lambda d: d.update({"a": 2}),
    "|=": lambda d: d.__ior__({"a": 2}),
    "__init__": lambda d: d.__init__({"a": 2}),
    "another order": lambda d: d.__setitem__("a", d.pop("a")),
}


@pytest.mark.parametrize("name", DICT_CHANGES)
def test_every_change_of_a_dict(name):
    held, other = {"a": 1, "b": 2}, {"a": 1}
    known = VerifiedDicts()
    assert not known.before((held, other))
    known.now(None, (held, other), ())
    assert known.before((held, other))
    DICT_CHANGES[name](held)
    assert not known.before((held, other))
    known.now(None, (held, other), ())
    assert known.before((held, other))


def test_dicts_of_a_subclass():
    """They may have another order without another version."""
    known, held = VerifiedDicts(), OrderedDict(a=1, b=2)
    known.now(None, ({}, held), ())
    assert not known.before(({}, held)) and not known._known


@pytest.mark.parametrize("how", ["update", "__init__", "__ior__"])
def test_a_dict_filled_when_it_was_empty(how):
    held, known = {}, VerifiedDicts()
    known.now(None, (held,), ())
    getattr(held, how)({"a": 1})
    assert not known.before((held,))


ATTRIBUTE_CHANGES = {
    "set": lambda o: setattr(o, "a", 2),
    "new": lambda o: setattr(o, "new", 2),
    "deleted": lambda o: delattr(o, "a"),
    "another dict": lambda o: setattr(o, "__dict__", {**o.__dict__}),
}


@pytest.mark.parametrize("name", ATTRIBUTE_CHANGES)
def test_every_change_of_attributes(name):
    """By bytecode that has been specialized as well."""
    for _ in range(50):
        held, known = Holder(), VerifiedDicts()
        held.a = 1
        known.now(held, (held.__dict__,), ())
        assert known.before((held.__dict__,))
        ATTRIBUTE_CHANGES[name](held)
        assert not known.before((held.__dict__,))


def test_dicts_that_hold_the_same_are_told_apart():
    known, one = VerifiedDicts(), {"a": 1}
    known.now(None, (one, one), ())
    for other in ({"a": 1}, one.copy(), dict(one), {}):
        assert not known.before((one, other))
        assert not known.before((other, one))
    assert known.before((one, one))


def test_what_is_no_dict():
    known, held = VerifiedDicts(), {"a": 1}
    known.now(None, (held, Holder.__dict__), ())
    assert not known.before((held, Holder.__dict__))
    known = VerifiedDicts()
    known.now(None, (held, {}), ())
    assert not known.before((held, None))
    assert not known.before((held, Holder.__dict__))


def test_a_dict_that_is_reordered(monkeypatch):
    """An OrderedDict has no new version then; nor is a class' namespace asked for one."""
    always_by_version(monkeypatch)

    class Local:
        size = 2

    def fn(cls, order, x):
        x = x * cls.size * len(order)
        return x * next(iter(order.values()))

    served, order = compiled(fn, Settings("eager")), OrderedDict(a=1, b=2)
    for _ in range(3):
        assert torch.equal(served(Local, order, X), fn(Local, order, X))
    order.move_to_end("a")
    assert torch.equal(served(Local, order, X), fn(Local, order, X))


# -- modules ------------------------------------------------------------


def hook(module, inputs, output=None):
    return inputs[0] * 5 if output is None else output * 5


MODULE_CHANGES = {
    "a hook": lambda m: m.layers[1].linear.register_forward_hook(hook),
    "a hook on a container's child": lambda m: m.layers[2].register_forward_hook(hook),
    "a pre-hook": lambda m: m.layers[1].norm.register_forward_pre_hook(hook),
    "a hook put there": lambda m: m.layers[0].norm._forward_hooks.__setitem__(0, hook),
    "another registry": lambda m: m.layers[0].norm.__dict__.update(_forward_hooks={0: hook}),
    "forward of one": lambda m: m.layers[1].__dict__.update(forward=lambda x: x * 5),
    "a plain attribute": lambda m: setattr(m.layers[2], "scale", 7.0),
    "a parameter": lambda m: setattr(m.layers[2].linear, "weight", nn.Parameter(torch.ones(3, 3))),
    "no bias": lambda m: setattr(m.layers[2].linear, "bias", None),
    "a tensor in a parameter's place": lambda m: (
        m.layers[1].linear._parameters.pop("bias"), setattr(m.layers[1].linear, "bias", X[0])
    ),
    "parameters in another dict": lambda m: setattr(
        m.layers[1].linear, "_parameters",
        {name: nn.Parameter(p * 3) for name, p in m.layers[1].linear.named_parameters()},
    ),
    "one layer twice": lambda m: m.layers.__setitem__(1, m.layers[0]),
    "one layer more": lambda m: m.layers.append(Layer()),
    "one layer less": lambda m: m.layers.__delitem__(1),
    "the order of layers": lambda m: m.layers._modules.update(
        {"0": m.layers[1], "1": m.layers[0]}
    ),
    "another class": lambda m: setattr(m.layers[1].norm, "__class__", nn.Identity),
    "another dict": lambda m: setattr(
        m.layers[1], "__dict__", {**m.layers[1].__dict__, "scale": 9.0}
    ),
    "the shape of a norm": lambda m: setattr(m.layers[1].norm, "eps", 0.5),
    "data": lambda m: setattr(m.layers[1].linear.weight, "data", torch.ones(3, 3)),
    "a dtype": lambda m: m.double(),
    "gradients": lambda m: m.requires_grad_(False),
    "evaluation": lambda m: m.eval(),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULE_CHANGES)
def test_every_change_of_a_module(name):
    model, settings = Stack(), Settings("eager")
    served = compiled(lambda m, x: m(x), settings)
    for _ in range(3):
        served(model, X)
    assert remembered(settings)
    MODULE_CHANGES[name](model)
    for _ in range(3):
        expected = perform(lambda m, x: m(x), (model, X), {})
        assert_agree(expected, perform(served, (model, X), {}, in_place=True))


def test_many_modules_in_turns():
    models = [Layer() for _ in range(5)]
    settings = Settings("eager")
    served = compiled(lambda m, x: m(x), settings)
    for _ in range(3):
        for model in models:
            assert torch.equal(served(model, X), model(X))
    models[3].scale = 4.0
    for model in models:
        assert torch.equal(served(model, X), model(X))


def test_one_object_as_two_arguments():
    """What was found below one parameter says nothing of what guards ask for below another."""

    def fn(a, b, x):
        x = a.linear(x) if hasattr(a, "extra") else a.norm(x)
        return x * (b.scale if "forward" not in vars(b) else 3)

    one, two, three = Layer(), Layer(), Layer()
    three.extra = 1
    served = compiled(fn, Settings("eager"))
    pairs = [(a, b) for a in (one, two, three) for b in (one, three)] * 2
    for pair in pairs:
        assert torch.equal(served(*pair, X), fn(*pair, X))
    one.scale = 6.0
    for pair in pairs:
        assert torch.equal(served(*pair, X), fn(*pair, X))


def test_an_object_that_the_frame_changes():
    model, settings = Counting(), Settings("eager")
    served = compiled(model, settings)
    for count in range(1, 6):
        assert torch.equal(served(X), model.layer(X))
        assert model.calls == count
    (entry,) = [each for each in settings.entries() if each.linked]
    assert len(entry.linked) == 1


# -- how long things live ------------------------------------------------------------


def remembered(settings: Settings) -> list[VerifiedDicts]:
    return [
        value for entry in settings.entries() for linked in entry.linked
        for value in linked.names.values() if isinstance(value, VerifiedDicts)
    ]  # fmt: skip


def test_nothing_is_kept_alive():
    settings = Settings("eager")
    served = compiled(lambda m, x: m(x), settings)
    model = Stack()
    for _ in range(3):
        served(model, X)
    (known,) = remembered(settings)
    assert len(known._known) == 1
    layer = weakref.ref(model.layers[0])
    weight = weakref.ref(model.layers[0].linear.weight)
    registry = weakref.ref(model.layers[0].linear._forward_hooks)
    del model.layers[0]
    gc.collect()
    assert layer() is None and weight() is None
    del model
    gc.collect()
    assert registry() is None and not known._known


def test_objects_that_are_new_in_each_call(monkeypatch):
    """They are given up on: what is remembered does not grow, and nothing is asked any more."""
    monkeypatch.setattr(verified, "CAPACITY", 4)
    settings = Settings("eager")
    served = compiled(lambda m, x: m(x), settings)
    models = [Layer() for _ in range(20)]
    for model in models:
        assert torch.equal(served(model, X), model(X))
        assert all(len(known._known) <= 4 for known in remembered(settings))
    assert [len(known._known) for known in remembered(settings)] == [0]
    models[0].scale = 3.0
    assert torch.equal(served(models[0], X), models[0](X))
