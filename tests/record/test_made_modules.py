"""Modules, parameters and buffers that frames make, register, switch, move and copy."""

import copy

import pytest
import torch
from torch import nn

import aotdyn
from tests.record.programs import Programs, assert_trains

program = Programs()
X = torch.arange(12.0).reshape(3, 4) / 6 - 1
W = X.clone().requires_grad_()


class Net(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.a = nn.Linear(size, size)
        self.b = nn.Sequential(nn.ReLU(), nn.Linear(size, 2, bias=False))
        self.register_buffer("c", torch.ones(size))
        self.p = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return self.b(self.a(x) * self.c + self.p)


@program((W,), (X,))
def p_linear(x):
    return nn.Linear(4, 4)(x)


@program((X,))
def p_class_of_the_program(x):
    net = Net()
    return net(x), net


@program((X,))
def p_containers(x):
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
    layers.append(nn.ReLU())
    named = nn.ModuleDict({"a": nn.Linear(4, 4), "r": nn.ReLU()})
    for layer in layers:
        x = layer(x)
    return named["r"](named["a"](x)), len(layers), list(named)


@program((X,))
def p_modules_of_torch(x):
    made = [
        nn.Embedding(5, 4)(torch.tensor([1, 2, 3])),
        nn.BatchNorm1d(4)(x),
        nn.LSTM(4, 3, batch_first=True)(x[None])[0],
        nn.MultiheadAttention(4, 2, batch_first=True)(x[None], x[None], x[None])[0],
        nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)(x[None]),
        nn.Conv1d(3, 2, 1)(x[None]),
    ]
    return [each.sum() for each in made]


@program((X,))
def p_skipped_initialization(x):
    layer = nn.utils.skip_init(nn.Linear, 4, 4)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer(x)


@program((W,))
def p_parameters(x):
    a = nn.Parameter(torch.ones(4))
    b = nn.Parameter(x.detach(), requires_grad=False)
    c = nn.Buffer(torch.ones(4))
    kinds = [isinstance(each, kind) for each in (a, b, c, x)
             for kind in (nn.Parameter, nn.Buffer, torch.Tensor)]  # fmt: skip
    return x * a * b * c, a, b, kinds, isinstance(None, nn.Parameter)


@program((Net(), X))
def p_registers(net, x):
    net.register_parameter("q", nn.Parameter(torch.ones(2)))
    net.register_buffer("r", x.sum(0), persistent=False)
    net.s = nn.Linear(2, 2)
    net.c = torch.zeros(4)
    net.t = nn.Buffer(torch.ones(2))
    net.add_module("u", nn.ReLU())
    net.p = None
    net.a.weight = nn.Parameter(torch.ones(4, 4))
    return net.u(net.s(net.b(net.a(x) + net.c) * net.q * net.t)) + net.r.sum()


@program((Net(), X))
def p_plain_attributes_give_way(net, x):
    net.layer = None
    net.layer = nn.Linear(4, 4)
    del net.b
    return net.layer(x), "layer" in vars(net), [name for name, _ in net.named_children()]


@program((Net(), X))
def p_no_parameter(net, x):
    try:
        net.a.weight = x
    except TypeError as error:
        return str(error)


@program((nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(3)]), X))
def p_list_of_parameters(given, x):
    given.append(nn.Parameter(torch.zeros(4)))
    given[0] = nn.Parameter(torch.full((4,), 2.0))
    for each in given[:2]:
        x = x * each
    return x, len(given)


@program((nn.ParameterDict({"a": nn.Parameter(torch.ones(4))}), X))
def p_dict_of_parameters(given, x):
    given["b"] = nn.Parameter(torch.full((4,), 2.0))
    for each in given.values():
        x = x * each
    return x, list(given.keys()), "b" in given


@program((Net(), X))
def p_switched(net, x):
    net.eval()
    before = [each.training for each in net.modules()]
    net.train()
    return net(x), before, net.training, net.b.training


@program((Net(), X))
def p_switched_to_what_it_is(net, x):
    return net.train()(x)


class Frozen(Net):
    def train(self, mode=True):
        super().train(mode)
        self.b.training = False
        return self


@program((nn.Sequential(Frozen()), X))
def p_switched_by_its_own_method(net, x):
    net.eval()
    net.train()
    return net(x), net[0].b.training, net[0].a.training


@program((Net(), X), breaks=1)
def p_moved(net, x):
    return net.double()(x.double())


@program((Net(), X), (Net().double(), X))
def p_moved_only(net, x):
    net.to(torch.float64)
    return x * 2


@program((Net(), X))
def p_moved_to_where_it_is(net, x):
    return net.float().cpu()(x)


@program((Net(), X))
def p_frozen(net, x):
    net.requires_grad_(False)
    net.zero_grad()
    return net(x)


@program((Net(), X))
def p_copied(net, x):
    other = copy.deepcopy(net)
    weight = copy.deepcopy(net.a.weight)
    with torch.no_grad():
        other.a.weight.zero_()
    return net(x), other(x), weight, other


@program((Net(), Net(), X))
def p_loaded(net, other, x):
    net.load_state_dict(other.state_dict())
    return net(x), list(net.state_dict())


@program((Net(), Net(), X))
def p_averaged(net, other, x):
    for mine, new in zip(net.parameters(), other.parameters()):
        mine.data = mine.data * 0.9 + new.data * 0.1
    return x * 2


@program((Net(), Net(), X))
def p_averaged_in_place(net, other, x):
    for mine, new in zip(net.parameters(), other.parameters()):
        mine.data.mul_(0.9).add_(new.data, alpha=0.1)
    return net(x)


test_agrees = program.test()


class Makes(nn.Module):
    def forward(self, x):
        layer = nn.Linear(4, 4)
        nn.init.constant_(layer.weight, 0.5)
        return layer(x), layer.weight


makes = Makes()


@pytest.mark.parametrize("function", [makes.forward])
def test_gradients(function, tmp_path):
    def program(x):
        return makes(x)

    assert_trains(program, (W,), tmp_path)


class Lazily(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(2))

    def forward(self, x):
        return self.layers(x)


def test_lazy_modules_are_one_graph_once_they_know_their_sizes():
    torch.manual_seed(0)
    net = Lazily()
    torch.manual_seed(1)
    eager = copy.deepcopy(net)(X)
    # Each lazy module breaks once, in each frame that leads to it.
    assert len(aotdyn.explain(copy.deepcopy(net), X).breaks) == 3
    torch.manual_seed(1)
    assert torch.equal(eager, aotdyn.compile(net, backend="eager")(X))
    assert type(net.layers[0]) is nn.Linear
    again = aotdyn.compile(net, backend="eager", fullgraph=True)
    assert torch.equal(eager, again(X))


def test_modules_are_made_where_torch_compile_has_been_used():
    """It replaces how they are made for the whole process."""
    torch.compile(lambda x: x + 1, backend="eager")(X)
    torch.manual_seed(0)
    expected = Net()(X)
    torch.manual_seed(0)
    made = aotdyn.compile(lambda x: Net()(x), backend="eager", fullgraph=True)
    assert torch.equal(expected, made(X))
