"""Training with the cpu target: each program is recorded, compiled, served, used in some way, and
compared with eager: results, gradients, what was changed, errors, random numbers."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import aotdyn
from aotdyn.package.archive import PackageFile
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

from .conftest import Case, outcome

pytestmark = pytest.mark.slow

R = torch.randn


def G(*size):
    return R(*size).requires_grad_()


# -- programs ------------------------------------------------------------------------------------


def sigmoid(x, w):
    return (x @ w).sigmoid()


def changes_input(x, w):
    x.mul_(w)
    return x.sum() * 2, x


def changes_without_grad(x, w):
    y = x * w
    with torch.no_grad():
        x.add_(1)
    return x.sum(), y.detach()


def changes_buffer(x, b):
    b.add_(x.detach().mean())
    return x * b


def saves_what_it_changes(x, b):
    y = x * b
    b.add_(1)
    return y


def changes_what_it_has_read(x, w):
    y = (x * 2) * w.sin() + (x.t() * 3).exp() * w
    x.add_(1)
    return y


def aliases(x, w):
    y = x * w
    return y.view(-1), y[0], y.t(), x.t(), x[1:], w.view(-1)


def view_of_result(x, w):
    y = x * w
    return y.view(-1), y @ y.t()


def other_outputs(x, w):
    y = x * w
    return y, y.argmax(-1), y > 0, x.shape[0], None


def parts(x, v, w):
    a = x * v
    return a, x * w, a * w


def twice(x, w):
    y = x * w
    return y, y


def one_without_grad(x, w, b):
    return F.linear(x, w, b).relu()


def batch_norm(x, w, mean, var):
    return F.batch_norm(x, mean, var, w, training=True)


def region(x, w):
    with torch.no_grad():
        scale = (x @ w).abs().max()
    with torch.enable_grad():
        return (x @ w) / scale


def detaches(x, w):
    y = x * w
    return y.detach(), y, (y.detach() * w).sum()


def autocast_region(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        with torch.autocast("cpu", enabled=False):
            z = x @ w
    return y.float() @ w + z


def two_products(x, w):
    return (x @ w).relu() @ w


def random(x, w):
    return F.dropout(x @ w, 0.3, True) * torch.rand_like(x) + torch.randn(4)


def sizes(x, w, n):
    return (x @ w).view(-1, x.shape[0]).sum(0) * n * x.shape[0], x.shape[0] + n


def expands(x, w):
    return (x * w).sum(0, keepdim=True).expand(4, 4), w.expand(3, 4, 4)


def writes_to_view(x, w):
    y = x * w
    v = y[0]
    v.add_(1)
    z = y * 3
    y.mul_(2)
    return z, y, v


def conv(x, w):
    return F.conv2d(x, w, padding=1).relu()


def checkpointed(x, w):
    return checkpoint(two_products, x, w, use_reentrant=False) * 2


def dropout_block(x, w):
    return F.dropout((x @ w).relu(), 0.5, True) @ w


def checkpointed_dropout(x, w):
    return checkpoint(dropout_block, x, w, use_reentrant=False).sin()


def reentrant_checkpoint(x, w):
    return checkpoint(dropout_block, x, w, use_reentrant=True).sin()


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() < 1) * ctx.factor, None


def own_function(x, w):
    return Straight.apply(x @ w, 3.0) * w


def keeps_gradient(x, w):
    y = x * w
    y.retain_grad()
    return y.sin().sum(), y


def dropouts(x, w):
    return (F.dropout(x @ w, 0.3, True), F.dropout1d(x.unsqueeze(0), 0.5, True),
            F.alpha_dropout(x, 0.2, True), torch.bernoulli(torch.full_like(x, 0.4)),
            F.rrelu(x, training=True))  # fmt: skip


def dropout_in_attention(x, w):
    q = (x @ w).view(1, 2, 4, 2)
    return F.scaled_dot_product_attention(q, q, q, dropout_p=0.2, is_causal=True)


def half_autocast(x, w):
    with torch.autocast("cpu", torch.float16):
        return (x @ w).softmax(-1)


def regions(x, w):
    with torch.no_grad():
        mean = x.mean()
        with torch.enable_grad():
            inner = (x * w).sum()
    with torch.set_grad_enabled(False):
        outer = w + 1
    return x - mean, inner, outer, torch.is_grad_enabled()


def top(x, w):
    y = x @ w
    values, places = y.topk(2)
    return values, places, (y > 0).float(), y.round(), torch.zeros(3)


def writes_to_out(x, w):
    found = torch.empty(4, 4)
    torch.mm(x.detach(), w.detach(), out=found)
    return found * x


def floats(x, w, f):
    return (x @ w) * f + f / 3, F.leaky_relu(x * (f * 2), 0.5), torch.full_like(x, f)


def complex_product(x, w):
    z = torch.view_as_complex(x.view(-1, 2))
    return (z * torch.polar(w.abs().view(-1)[:8] + 1, w.view(-1)[:8])).abs().sum()


def with_hook(x, w):
    y = x * w
    y.register_hook(lambda g: g * 2)
    return y.sin()


def half(x, w):
    return F.layer_norm(x @ w, (4,))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.norm(self.conv(x)).relu().mean((2, 3)))


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.first.register_forward_hook(lambda module, inputs, output: output * 2)
        self.second.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))

    def forward(self, x):
        return self.second(self.first(x).relu())


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
        self.out.weight = self.table.weight

    def forward(self, i):
        return F.cross_entropy(self.out(self.table(i)).view(-1, 7), i.view(-1))


# -- uses ----------------------------------------------------------------------------------------


def tensors_of(args):
    for arg in args:
        if isinstance(arg, nn.Module):
            yield from (*arg.parameters(), *arg.buffers())
        elif isinstance(arg, torch.Tensor):
            yield arg


def listed(found):
    return list(found) if isinstance(found, tuple) else [found]


def grads(args):
    return [t.grad for t in tensors_of(args) if t.is_leaf]


def train(program, args):
    """Backward from all outputs, each with gradients of its own."""
    found = listed(program(*args))
    ends = [t for t in found if isinstance(t, torch.Tensor) and t.requires_grad]
    if ends:
        sum((i + 1) * (t.float() * (torch.arange(t.numel()).view(t.shape) + 1)).mean()
            for i, t in enumerate(ends)).backward()  # fmt: skip
    return [*found, *tensors_of(args), *grads(args)]


def not_a_leaf(program, args):
    x = args[0] * 1
    found = listed(program(x, *args[1:]))
    sum(t.sum() for t in found if t.requires_grad).backward()
    return [*found, x, *grads(args)]


def not_a_leaf_then_one(program, args):
    """An update in place of a leaf is an error; which of the two an input is no guard knows."""
    found = not_a_leaf(program, args)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        program(*args)
    return [*found, *args]


def no_grad(program, args):
    with torch.no_grad():
        found = listed(program(*args))
    with torch.inference_mode():
        return found + [t.clone() for t in listed(program(*args)) if isinstance(t, torch.Tensor)]


def first_only(program, args):
    program(*args)[0].sum().backward()
    return grads(args)


def second_then_first(program, args):
    found = program(*args)
    found[1].sum().backward(retain_graph=True)
    before = [g if g is None else g.clone() for g in grads(args)]
    found[0].sum().backward()
    return [*before, *grads(args)]


def of_some(program, args):
    found = program(*args)
    return list(torch.autograd.grad(found[1].sum(), args, allow_unused=True))


def of_the_last(program, args):
    return list(torch.autograd.grad(program(*args).sum(), args[-1]))


def again_and_again(program, args):
    y = program(*args)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()
    return grads(args)


def result_changed(program, args):
    """What backward needs was written to: an error."""
    y = listed(program(*args))
    y[0].add_(1)
    y[-1].sum().backward()
    return grads(args)


def input_changed(program, args):
    x, w = args
    y = program(x, w)
    with torch.no_grad():
        x.add_(1)
    y.sum().backward()
    return grads(args)


def view_changed(program, args):
    x = args[0].detach().clone()
    found = program(x, args[1])
    found[4].add_(10.0)
    found[0].mul_(3)
    found[2].add_(1)
    sum(t.sum() for t in found if t.requires_grad).backward()
    return [*found, x, *grads(args)]


def odd_gradient(program, args):
    y = program(*args)
    y.backward(torch.arange(y.numel(), dtype=y.dtype).view(y.shape[::-1]).mT)
    return [y, *grads(args)]


def channels_last(program, args):
    x, w = args
    y = program(x.to(memory_format=torch.channels_last), w)
    y.backward(torch.rand(y.shape))
    return [y, *grads(args)]


def hooked(program, args):
    seen = []
    args[0].register_hook(lambda g: g * 2)
    args[1].register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    y = program(*args)
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    return [y, *grads(args), *seen]


def autocast_forward(program, args):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = program(*args)
    y.float().sum().backward()
    return [y, *grads(args)]


def autocast_all(program, args):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = program(*args)
        y.float().sum().backward()
    return [y, *grads(args)]


def autocast_backward(program, args):
    """The backward part is compiled for the state of forward; eager would cast in it."""
    y = program(*args)
    z = program(*args)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y.sum().backward()
    seen = [a.grad.clone() for a in args]
    z.sum().backward()
    for once, both in zip(seen, grads(args)):
        # Terms of eager's sums are rounded to eight bits, and may cancel.
        limit = 4e-2 * float(both.abs().max())
        torch.testing.assert_close(once, both - once, rtol=2e-2, atol=limit)
    return [y]


def kept_gradient(program, args):
    total, y = program(*args)
    total.backward()
    return [y.grad, *grads(args)]


def gradient_of_a_gradient(program, args):
    """Compiled code refuses it in torch's words."""
    (first,) = torch.autograd.grad(program(*args).sum(), args[0], create_graph=True)
    if "Once" in type(first.grad_fn).__name__:
        with pytest.raises(RuntimeError, match="does not currently support double backward"):
            first.square().sum().backward()
    return [first.detach(), first.requires_grad]


def in_float64(program, args):
    torch.set_default_dtype(torch.float64)
    try:
        return train(program, args)
    finally:
        torch.set_default_dtype(torch.float32)


def steps(program, args):
    """An optimizer's steps: parameters change between calls."""
    optimizer = torch.optim.SGD([t for t in tensors_of(args) if t.requires_grad], 0.1, 0.9)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = program(*args).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *tensors_of(args)]


PAIR = (G(4, 4), G(4, 4))
NET, TIED, HOOKED = Net(), Tied(), Hooked()

CASES = {
    name: Case(program, use, calls)
    for name, (program, use, *calls) in {
        "saved tensors": (sigmoid, train, PAIR),
        "retain_graph": (sigmoid, again_and_again, PAIR),
        "gradient of one input": (sigmoid, of_the_last, PAIR),
        "gradients with other strides": (sigmoid, odd_gradient, PAIR),
        "hooks on inputs and outputs": (sigmoid, hooked, PAIR),
        "without gradients": (sigmoid, no_grad, PAIR),
        "saved result changed": (sigmoid, result_changed, PAIR),
        "saved input changed": (sigmoid, input_changed, (R(4, 4), G(4, 4))),
        "saved leaf changed": (sigmoid, input_changed, PAIR),
        "saved view of a result changed": (view_of_result, result_changed, PAIR),
        "view of a result": (view_of_result, train, PAIR),
        "input changed": (changes_input, not_a_leaf, (G(4), G(4))),
        "leaf changed": (changes_input, not_a_leaf_then_one, (G(4), G(4))),
        "input changed without grad": (changes_without_grad, train, (G(4), G(4))),
        "buffer changed": (changes_buffer, train, (G(4), torch.zeros(4))),
        "saved buffer changed": (saves_what_it_changes, train, (G(4), R(4))),
        "buffer changed that was read": (changes_what_it_has_read, train, (R(4, 4), G(4, 4))),
        "aliases": (aliases, train, PAIR),
        "aliases changed": (aliases, view_changed, PAIR),
        "outputs that are no floats": (other_outputs, train, PAIR),
        "unused outputs": (parts, first_only, (G(4), G(4), G(4))),
        "one output after the other": (parts, second_then_first, (G(4), G(4), G(4))),
        "unused inputs": (parts, of_some, (G(4), G(4), G(4))),
        "an output twice": (twice, train, PAIR),
        "inputs without gradients": (one_without_grad, train, (R(4, 4), G(4, 4), R(4))),
        "batch norm": (batch_norm, train, (G(6, 4), G(4), torch.zeros(4), torch.ones(4))),
        "no_grad region": (region, train, PAIR),
        "detach": (detaches, train, PAIR),
        "autocast region": (autocast_region, train, PAIR),
        "autocast around forward": (two_products, autocast_forward, PAIR),
        "autocast around all": (two_products, autocast_all, PAIR),
        "autocast around backward": (two_products, autocast_backward, PAIR),
        "random numbers": (random, train, PAIR),
        "another default dtype": (random, in_float64, PAIR),
        "sizes and ints": (sizes, train, (G(3, 4), G(4, 6), 2), (G(6, 4), G(4, 6), 3),
                           (G(9, 4), G(4, 6), 5)),
        "expanded": (expands, train, PAIR),
        "view written to": (writes_to_view, train, PAIR),
        "convolution": (conv, train, (G(2, 3, 5, 6), G(4, 3, 3, 3))),
        "channels last": (conv, channels_last, (R(2, 3, 5, 6), G(4, 3, 3, 3))),
        "checkpoint": (checkpointed, train, PAIR),
        "checkpoint with dropout": (checkpointed_dropout, train, PAIR),
        "reentrant checkpoint": (reentrant_checkpoint, train, PAIR),
        "hook in the program": (with_hook, train, PAIR),
        "modules with hooks": (Hooked.forward, train, (HOOKED, G(3, 4))),
        "a function of the program's own": (own_function, train, PAIR),
        "kept gradient": (keeps_gradient, kept_gradient, PAIR),
        "kinds of dropout": (dropouts, train, PAIR),
        "dropout in attention": (dropout_in_attention, train, PAIR),
        "float16 autocast": (half_autocast, train, PAIR),
        "regions in regions": (regions, train, PAIR),
        "values and places": (top, train, PAIR),
        "out": (writes_to_out, train, PAIR),
        "floats": (floats, train, *((*PAIR, f) for f in (0.5, 0.25, -2.5))),
        "complex": (complex_product, train, PAIR),
        "complex twice": (complex_product, again_and_again, PAIR),
        "gradient of a gradient": (sigmoid, gradient_of_a_gradient, PAIR),
        "complex gradient of a gradient": (complex_product, gradient_of_a_gradient, PAIR),
        "bfloat16": (half, train, (R(4, 4).bfloat16(), R(4, 4).bfloat16().requires_grad_())),
        "module": (Net.forward, train, *((NET, R(b, 3, 6, 6)) for b in (4, 5, 7))),
        "module in steps": (Net.forward, steps, (NET, R(4, 3, 6, 6))),
        "tied weights": (Tied.forward, train, (TIED, torch.randint(0, 7, (2, 5)))),
    }.items()
}  # fmt: skip

# AOTAutograd runs backward once to see what it does, and that is an error in these.
EAGERLY = {"saves_what_it_changes"}


@pytest.fixture(scope="module")
def packed(pack_cases):
    return pack_cases("training", CASES)


@pytest.mark.parametrize("name", CASES)
def test_served_is_as_eager(name, packed):
    packed.check(name)


def test_all_graphs_are_compiled_but_those_whose_backward_is_an_error(packed):
    with PackageFile.open(packed.package) as package:
        eager = [
            package.graph(id) for id in package.graphs
            if package.artifact(id, "cpu").notes["way"] == "eager"
        ]  # fmt: skip
    lines = {g.nodes[0].user.rpartition(":")[2] for g in eager}
    first = {case.program.__code__.co_firstlineno for case in CASES.values()
             if case.program.__name__ in EAGERLY}  # fmt: skip
    assert {int(line) - 1 for line in lines} == first, packed.report


def test_random_numbers_are_eagers_own(packed):
    case = CASES["kinds of dropout"]
    with aotdyn.load(packed.package, on_miss="error"):
        served = outcome(compiled(case.program, Settings("eager")), case.use, case.calls[0])
    expected = outcome(case.program, case.use, case.calls[0])
    assert all(torch.equal(a, b) for a, b in zip(served, expected) if b is not None)


# -- as Python around compiled kernels -----------------------------------------------------------

PYTHON = {
    name: CASES[name] for name in (
        "floats", "complex", "complex twice", "retain_graph", "gradient of a gradient",
        "kinds of dropout", "values and places", "a function of the program's own", "aliases",
        "sizes and ints", "batch norm", "autocast region",
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def packed_as_python(pack_cases):
    return pack_cases("training_as_python", PYTHON, ways=["python"])


@pytest.mark.parametrize("name", PYTHON)
def test_served_as_python_is_as_eager(name, packed_as_python):
    packed_as_python.check(name)


def test_all_of_these_are_compiled(packed_as_python):
    with PackageFile.open(packed_as_python.package) as package:
        ways = {package.artifact(id, "cpu").notes["way"] for id in package.graphs}
    assert ways == {"python"}, packed_as_python.report
