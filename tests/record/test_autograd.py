"""Operators that take functions of the program: `autograd.Function`, checkpointed regions, the
transforms of torch.func, scans; with their gradients, recorded and served from a package."""

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import aotdyn


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * g


class Affine(Function):
    @staticmethod
    def forward(ctx, x, w, b=None, scale=2.0):
        ctx.save_for_backward(x, w, b)
        ctx.scale, ctx.shape = scale, x.shape
        y = x @ w.t()
        return (y if b is None else y + b) * scale

    @staticmethod
    def backward(ctx, g):
        x, w, b = ctx.saved_tensors
        g = g * ctx.scale
        into_x = (g @ w).view(ctx.shape) if ctx.needs_input_grad[0] else None
        into_b = g.sum(0) if b is not None and ctx.needs_input_grad[2] else None
        return into_x, g.t() @ x, into_b, None


class Several(Function):
    @staticmethod
    def forward(ctx, x):
        y, positive = x.exp(), x > 0
        ctx.save_for_backward(y)
        ctx.mark_non_differentiable(positive)
        return y, positive, 3

    @staticmethod
    def backward(ctx, g, _, __):
        (y,) = ctx.saved_tensors
        return g * y


class Tenfold(Function):
    """Returns its argument."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 10


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


class NewStyle(Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.y = inputs
        ctx.output = output

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.y, g * ctx.x + 0 * ctx.output


class Transposed(Function):
    @staticmethod
    def forward(ctx, x):
        return x.t()

    @staticmethod
    def backward(ctx, g):
        return g.t()


class Viewing(Function):
    """Its backward needs a gradient that is contiguous, as that of a sum is not."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g.contiguous().view(-1).flip(0).view(g.shape)


class Outer(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return Square.apply(x) + 1

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return Square.apply(x) * g


class Chatty(Function):
    calls = []

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Chatty.calls.append(tuple(g.shape))
        return g * 2


def square(x):
    return Square.apply(x).sum() + Square.apply(x * 2).sum()


def affine(x, w, b):
    return Affine.apply(x, w, b).relu()


def affine_without(x, w):
    return Affine.apply(x.detach(), w)


def several(x):
    y, positive, count = Several.apply(x)
    return y * positive * count


def tenfold(x):
    return Tenfold.apply(x) * 2


def in_place(x):
    y = x * 1
    z = InPlace.apply(y)
    return z + y


def new_style(x):
    return NewStyle.apply(x, x) + NewStyle.apply(x, x * 2)


def transposed(x):
    return Transposed.apply(x) @ x


def viewing(x):
    return Viewing.apply(x) * 1


def twice(x):
    return Square.apply(Square.apply(x))


def outer(x):
    return Outer.apply(x)


layer = torch.nn.Linear(3, 3)
drop = torch.nn.Dropout(0.5)
norm = torch.nn.BatchNorm1d(3)
tied_layers = torch.nn.Sequential(layer, layer)


def region(x):
    return checkpoint(lambda v: (v * 2).relu().exp(), x, use_reentrant=False)


def region_with_random(x):
    return checkpoint(lambda v: drop(layer(v)).relu(), x) + x


def region_with_buffers(x):
    made = checkpoint(
        lambda v, k=1: (norm(v), [v, v * k], None), x, use_reentrant=False, k=x.shape[0]
    )
    return made[0] * made[1][1]


def region_in_region(x):
    def inner(v):
        return checkpoint(torch.sin, v * 2, use_reentrant=False).exp()

    return checkpoint(inner, x, use_reentrant=False)


def region_of_function(x):
    return checkpoint(Square.apply, x, use_reentrant=False)


def mapped(x):
    return torch.vmap(lambda row: row.sum() * row)(x)


def mapped_twice(x):
    each = torch.vmap(lambda a, b: (a * b).sum(), in_dims=(None, 0))
    return torch.vmap(each, in_dims=(0, None), out_dims=1)(x, x * 2)


def mapped_structure(x):
    def each(d, k):
        return {"a": d["x"] * k, "b": (d["y"].sum(),)}

    made = torch.vmap(each, in_dims=({"x": 0, "y": 1}, None))({"x": x, "y": x}, x[0])
    return made["a"] + made["b"][0]


def mapped_mask(x):
    def mask(i, j):
        return (i <= j) & (x[i, j] > 0)

    rows = torch.vmap(torch.vmap(mask, in_dims=(None, 0)), in_dims=(0, None))
    return rows(torch.arange(x.shape[0]), torch.arange(x.shape[1])) * x


def gradient_of(x):
    def loss(p, v):
        return (v @ p["w"] + p["b"]).pow(2).mean()

    grads, value = torch.func.grad_and_value(loss)({"w": x, "b": x[0]}, x * 2)
    return grads["w"] * grads["b"] * value


def per_sample(x):
    each = torch.func.grad(lambda p, v: (v @ p).sin().sum())
    return torch.vmap(each, in_dims=(None, 0))(x, x * 2)


def jacobians(x):
    return torch.func.jacrev(lambda v: v.sin() * v.sum())(x[0]) @ torch.func.hessian(
        lambda v: v.pow(3).sum()
    )(x[0])


def branches(x):
    made = torch.cond(x.sum() > 0, lambda v: (v + 1, [v * 2]), lambda v: (v - 1, [v * 3]), (x,))
    return made[0] * made[1][0]


def branch_in_branch(x):
    w = x * 2

    def no(v):
        return torch.cond(v.sum() < -100, lambda a: a + w, lambda a: a - w, (v,))

    return torch.cond((x > 0).all(), lambda v: v.sin(), no, (x,))


def branch_by_size(x):
    return torch.cond(x.shape[0] > 2, lambda v: v + 1, lambda v: v - 1, (x,))


net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3).eval(), torch.nn.ReLU())


def with_other_weights(x):
    given = {"0.weight": x * 2, "1.running_mean": x[0].detach()}
    return torch.func.functional_call(net, given, (x,)) + net(x)


def ensemble(x):
    weights = {"weight": torch.stack([x, x * 2]), "bias": torch.stack([x[0], x[1]])}

    def one(p, v):
        return torch.func.functional_call(layer, p, (v,))

    return torch.vmap(one, in_dims=(0, None))(weights, x)


def gradients_per_sample(x):
    def loss(p, v):
        return torch.func.functional_call(layer, p, (v[None],)).pow(2).sum()

    weights = {"weight": layer.weight.detach(), "bias": layer.bias.detach()}
    return torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)["weight"]


def linear_recurrence(x):
    def combine(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    return associative_scan(combine, (x, x * 2), dim=1, combine_mode="generic")[1]


def backwards_scan(x):
    weight = x.sum()
    return associative_scan(
        lambda a, b: a * b + 0 * weight, x, dim=0, reverse=True, combine_mode="generic"
    )


def branches_with_modules(x):
    return torch.cond(x.sum() > 0, lambda v: layer(v), lambda v: net(v), (x,))


class Branching(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def yes(self, x):
        return self.layer(x)

    def no(self, x):
        return x - self.layer(x)

    def forward(self, x):
        return torch.cond(x.mean() > 0, self.yes, self.no, (x,))


branching = Branching()


def branches_that_are_methods(x):
    return branching(x).mul_(2)


def region_that_gives_a_dict(x):
    made = checkpoint(lambda v: {"a": layer(v), "b": [v * 2, 3]}, x, use_reentrant=False)
    return made["a"] * made["b"][0] * made["b"][1]


def regions_one_after_another(x):
    return checkpoint_sequential(net, 2, x, use_reentrant=False)


def with_a_tied_weight(x):
    both = torch.func.functional_call(tied_layers, {"0.weight": x}, (x,))
    return both + torch.func.functional_call(tied_layers, {"1.weight": x}, (x,), tie_weights=False)


def stacked_state(x):
    parameters, _ = torch.func.stack_module_state([layer, layer])
    return parameters["weight"].sum(0) @ x


def scan_with_a_carry(x):
    def step(carry, row):
        carry = {"a": carry["a"] * 0.5 + row}
        return carry, (carry["a"] * 2, row.sum())

    last, outs = scan(step, {"a": x[0] * 0}, x, dim=1, reverse=True)
    return outs[0] * outs[1].sum() + last["a"]


def mapped_step_by_step(x):
    return map_over(lambda row, w: (row.sin() * w.sum()), x, x.detach() * 2)


def made_in_the_frame(x):
    class Steep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.round()

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    return Steep.apply(x)


WHOLE = {
    made_in_the_frame: [(3, 3)],
    branches_with_modules: [(3, 3)],
    branches_that_are_methods: [(3, 3)],
    region_that_gives_a_dict: [(3, 3)],
    regions_one_after_another: [(3, 3)],
    with_a_tied_weight: [(3, 3)],
    stacked_state: [(3, 3)],
    scan_with_a_carry: [(3, 3)],
    mapped_step_by_step: [(3, 3)],
    branches: [(3,)],
    branch_in_branch: [(3,)],
    branch_by_size: [(3,)],
    with_other_weights: [(3, 3)],
    ensemble: [(3, 3)],
    gradients_per_sample: [(3, 3)],
    linear_recurrence: [(2, 7)],
    backwards_scan: [(4, 3)],
    square: [(3,)],
    affine: [(2, 3), (4, 3), (4,)],
    affine_without: [(2, 3), (4, 3)],
    several: [(4,)],
    tenfold: [(3,)],
    in_place: [(3,)],
    new_style: [(3,)],
    transposed: [(3, 3)],
    viewing: [(2, 3)],
    twice: [(3,)],
    outer: [(3,)],
    region: [(3, 3)],
    region_with_random: [(3, 3)],
    region_with_buffers: [(3, 3)],
    region_in_region: [(3, 3)],
    region_of_function: [(3, 3)],
    mapped: [(3, 3)],
    mapped_twice: [(3, 3)],
    mapped_structure: [(3, 3)],
    mapped_mask: [(3, 3)],
    gradient_of: [(3, 3)],
    per_sample: [(3, 3)],
    jacobians: [(3, 3)],
}


def outcome(call, shapes):
    """The result, the gradients of all that has them, and the buffers."""
    torch.manual_seed(0)
    args = [torch.randn(shape, requires_grad=True) for shape in shapes]
    leaves = [*args, *layer.parameters(), *norm.parameters()]
    for leaf in leaves:
        leaf.grad = None
    norm.reset_running_stats()
    result = call(*args)
    result.sum().backward()
    return [result, *(leaf.grad for leaf in leaves), norm.running_mean, norm.num_batches_tracked]


def assert_equal(expected, actual):
    assert [e is None for e in expected] == [a is None for a in actual]
    for e, a in zip(expected, actual):
        assert e is None or torch.equal(e, a)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_gradients(program, dynamic, tmp_path):
    shapes = WHOLE[program]
    expected = outcome(program, shapes)
    with aotdyn.record(tmp_path / "a.rec"):
        traced = aotdyn.compile(program, backend="eager", fullgraph=True, dynamic=dynamic)
        assert_equal(expected, outcome(traced, shapes))
    aotdyn.pack([tmp_path / "a.rec"], tmp_path / "a.pkg")
    with aotdyn.load(tmp_path / "a.pkg", on_miss="error"):
        served = aotdyn.compile(program, backend="eager", fullgraph=True, dynamic=dynamic)
        assert_equal(expected, outcome(served, shapes))


class Scaled(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 5


def class_that_leaves(x):
    k = x.sum()

    class Steeper(Scaled):
        @staticmethod
        def backward(ctx, g):
            return Scaled.backward(ctx, g) * k

    return Steeper, Steeper.apply(x)


def test_functions_made_in_the_frame_leave_it(agree):
    x = torch.ones(3)
    agree(lambda x: class_that_leaves(x)[1], (x,), breaks=0)
    agree(lambda x: class_that_leaves(x)[0]._backward_cls.__name__, (x,), breaks=1)
    cls, y = aotdyn.compile(class_that_leaves, backend="eager", fullgraph=True)(x)
    x.requires_grad_()
    cls.apply(x).sum().backward()
    assert x.grad.tolist() == [15, 15, 15]


def second_order(call):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (first,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)[0]


@pytest.mark.parametrize("program", [square, several, twice, outer, region])
def test_second_derivatives(program):
    traced = aotdyn.compile(program, backend="eager", fullgraph=True)
    assert torch.equal(second_order(program), second_order(traced))


def once(x):
    return NewStyle.apply(x, x).pow(2)


def test_no_second_derivative_where_backward_is_marked():
    traced = aotdyn.compile(once, backend="eager", fullgraph=True)
    x = torch.ones(3, requires_grad=True)
    for call in (once, traced):
        (first,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            first.sum().backward()


def test_a_scan_is_one_graph_for_all_sizes(agree):
    sizes = [(torch.randn(2, size),) for size in (7, 8, 12)]
    agree(linear_recurrence, *sizes, graphs=2, breaks=0)


def chatty(x):
    return Chatty.apply(x) + 1


def counted_region(x):
    seen = []

    def inner(v):
        seen.append(v.shape)
        return v.exp()

    return checkpoint(inner, x, use_reentrant=False) * len(seen)


def leaking_region(x):
    kept = []

    def inner(v):
        return (kept := [v.exp()])[0].sin()

    return checkpoint(inner, x, use_reentrant=False), kept


def leaking_function(x):
    class Keeper:
        value = None

    keeper = Keeper()

    def inner(v):
        keeper.value = v.exp()
        return keeper.value.sin()

    return checkpoint(inner, x, use_reentrant=False) + keeper.value


def test_what_runs_in_backward_is_not_run_before():
    Chatty.calls.clear()
    x = torch.ones(2, requires_grad=True)
    result = aotdyn.compile(chatty, backend="eager")(x)
    assert Chatty.calls == []
    result.sum().backward()
    assert Chatty.calls == [(2,)]


@pytest.mark.parametrize("program", [counted_region, leaking_region, leaking_function])
def test_regions_that_reach_outside_are_right(agree, program):
    agree(program, (torch.randn(3, requires_grad=True),), package=False)


def random_in_map(x):
    return torch.vmap(lambda row: row * torch.rand(1), randomness="different")(x)


def refused_in_map(x):
    return torch.vmap(lambda row: row * torch.rand(1))(x)


def item_in_map(x):
    return torch.vmap(lambda row: row.sum().item())(x)


def tied(x):
    both = torch.nn.Sequential(layer, layer)
    return torch.func.functional_call(both, {"0.weight": x}, (x,))


class Mapped(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 3 * g * ctx.saved_tensors[0]


def function_in_map(x):
    return torch.vmap(Mapped.apply)(x)


def function_in_derivative(x):
    return torch.func.grad(lambda v: Mapped.apply(v).sum())(x)


def returned_map(x):
    each = torch.vmap(torch.sin)
    return each, each(x)


@pytest.mark.parametrize(
    "program",
    [random_in_map, refused_in_map, item_in_map, tied, returned_map, function_in_map,
     function_in_derivative],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_transforms_are_right(agree, program):
    agree(program, (torch.randn(3, 3),))


@pytest.mark.parametrize("program", [function_in_map, function_in_derivative])
def test_functions_in_transforms_have_their_own_gradients(program):
    traced = aotdyn.compile(program, backend="eager")
    assert_equal(outcome(program, [(3, 3)]), outcome(traced, [(3, 3)]))
