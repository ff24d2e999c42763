"""Hooks on tensors that came in and on those that the frame makes: their gradients, recorded and
served from a package."""

import pytest
import torch

import aotdyn
from tests.conftest import assert_same
from tests.record.programs import assert_trains

W = torch.arange(12.0).reshape(3, 4).requires_grad_()


def on_a_result(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y.sin()


def that_looks_only(x):
    y = x * 2
    y.register_hook(lambda g: None)
    return y.sin()


def with_what_is_around(x):
    y = x * 2
    scale = x.detach().abs().sum()
    y.register_hook(lambda g: g.clamp(-0.1, 0.1) * scale)
    z = y.sin()
    z.register_hook(lambda g: g + y.detach())
    return z * y


def changed_in_place_after(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    y.mul_(5)
    return y.sin()


def on_an_argument(x):
    x.register_hook(lambda g: g * 3)
    return x.sin()


def removed(x):
    handle = x.register_hook(lambda g: g * 3)
    kept = x.register_hook(lambda g: g + 1)
    handle.remove()
    return x.sin(), kept


def with_results_of_the_graph(x):
    y = x.detach().exp()
    x.register_hook(lambda g: g * y)
    return x.sin()


def when_it_is_added_up(x):
    def twice(p):
        p.grad.mul_(2)

    x.register_post_accumulate_grad_hook(twice)
    return x.sin()


WHOLE = [on_a_result, that_looks_only, with_what_is_around, changed_in_place_after,
         on_an_argument, with_results_of_the_graph, when_it_is_added_up]  # fmt: skip


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_hooks(function, tmp_path):
    assert_trains(function, (W,), tmp_path)


def only_first(x):
    return removed(x)[0]


def two_of_them(x):
    y = x * 2
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: g * 3)
    return y.sin()


def that_leaves(x):
    y = x * 2
    y.register_hook(lambda g: g + 1)
    z = y.sin()
    print(z.shape)
    y.register_hook(lambda g: g * 3)
    return y * z


def used_before(x):
    y = x * 2
    z = y.sin()
    y.register_hook(lambda g: g * 3)
    return z + y


def on_a_view(x):
    y = (x * 2).view(-1)
    y.register_hook(lambda g: g * 3)
    return y.sin()


def changed_after(x):
    y = x * 1
    return on_a_changed(y)


def on_a_changed(y):
    y.register_hook(lambda g: g * 3)
    y.add_(1)
    return y * 2


def removed_from_a_result(x):
    y = x * 2
    y.register_hook(lambda g: g * 3).remove()
    return y.sin()


BROKEN = [only_first, two_of_them, that_leaves, used_before, on_a_view, changed_after,
          removed_from_a_result]  # fmt: skip


@pytest.mark.parametrize("function", BROKEN, ids=lambda f: f.__name__)
def test_hooks_that_may_break(function, tmp_path):
    assert_trains(function, (W,), tmp_path, fullgraph=False)


class OneNode(torch.autograd.Function):
    """A graph as compiled ones are to autograd: nothing is known of what is within."""

    @staticmethod
    def forward(ctx, graph, *inputs):
        with torch.enable_grad():
            ctx.inputs = [t.detach().requires_grad_(t.requires_grad) for t in inputs]
            ctx.outputs = graph(*ctx.inputs)
        return tuple(t.detach() for t in ctx.outputs)

    @staticmethod
    def backward(ctx, *gradients):
        wanted = [t for t in ctx.inputs if t.requires_grad]
        found = torch.autograd.grad(
            ctx.outputs, wanted, gradients, retain_graph=True, allow_unused=True
        )
        found = dict(zip(map(id, wanted), found))
        return None, *(found.get(id(t)) for t in ctx.inputs)


def one_node(graph, inputs):
    return lambda *given: OneNode.apply(graph, *given)


def kept(y):
    y.retain_grad()
    z = y.sin()
    y.retain_grad()
    return z.sum() * y, y.retains_grad, y


def kept_where_made(x):
    return kept(x * 2)


def kept_late(x):
    y = x * 2
    z = y.sin() * y
    y.retain_grad()
    return z, y


def kept_of_an_inner_result(x):
    return kept(on_a_result(x))


def hooked_late(x):
    return used_before(x), x


def hooked_after_a_break(x):
    y = x * 2
    z = y.sin()
    print(end="")
    y.register_hook(lambda g: g * 3)
    return z + y, x


def asked_for(x):
    y = x * 2
    z = (y.sin() * y).sum()
    (gradient,) = torch.autograd.grad(z, [y], retain_graph=True)
    return z * gradient, x


# With how many graphs there are: what is asked for its gradient is made outside of any.
KEPT = [(kept, 1), (kept_where_made, 1), (kept_late, 1), (kept_of_an_inner_result, 2),
        (hooked_late, 1), (hooked_after_a_break, 2), (asked_for, 2)]  # fmt: skip


@pytest.mark.parametrize(("function", "graphs"), KEPT, ids=lambda row: getattr(row, "__name__", ""))
def test_gradients_within(function, graphs):
    def gradients(call):
        x = W * 1
        x.retain_grad()
        result, *more, asked = call(x)
        result.sum().backward()
        return [result, *more, asked.grad, x.grad]

    made = []

    def backend(graph, inputs):
        made.append(graph)
        return one_node(graph, inputs)

    assert_same(gradients(function), gradients(aotdyn.compile(function, backend=backend)))
    assert len(made) == graphs


class Keeper:
    def __init__(self):
        self.gradients = None

    def keep(self, gradient):
        self.gradients = gradient

    def __call__(self, x):
        y = x * 2
        y.register_hook(self.keep)
        return y.sin()


def test_a_hook_that_keeps_the_gradient_is_run():
    for compiled in (False, True):
        keeper = Keeper()
        call = aotdyn.compile(keeper.__call__, backend="eager") if compiled else keeper
        x = torch.ones(3, requires_grad=True)
        call(x).sum().backward()
        assert torch.equal(keeper.gradients, (x * 2).cos())


def test_a_handle_leaves_the_frame():
    call = aotdyn.compile(removed, backend="eager", fullgraph=True)
    for _ in range(2):
        x = torch.ones(3, requires_grad=True)
        result, handle = call(x)
        result.sum().backward(retain_graph=True)
        assert torch.equal(x.grad, x.detach().cos() + 1)
        handle.remove()
        x.grad = None
        result.sum().backward()
        assert torch.equal(x.grad, x.detach().cos())
