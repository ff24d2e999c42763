"""Programs over torch's API: contexts and modes, queries, subclasses, custom operators."""

import pytest
import torch
import torch.nn.functional as F


@torch.library.custom_op("aotdyn_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Tagged(torch.Tensor):
    """A subclass that counts on __torch_function__."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.add or func is torch.Tensor.add:
            return torch.Tensor.mul(result, 100)
        return result


class Wrapper:
    """No tensor, but it overrides torch functions."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "overridden", func.__name__


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g * x


@torch.no_grad()
def without_grad(x):
    return x * 2


def no_grad(x):
    with torch.no_grad():
        y = x * 2
    return y, y.requires_grad, (x * 2).requires_grad


def nested_grad(x):
    with torch.no_grad():
        with torch.enable_grad():
            a = x * 2
        with torch.set_grad_enabled(False):
            b = x * 3
    return a, b, torch.is_grad_enabled()


def set_grad_function(x):
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(True)
    return y, x * 3


def decorated(x):
    return without_grad(x), x * 3


def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        with torch.autocast("cpu", enabled=False):
            z = x @ x
    return y, z, torch.is_autocast_enabled("cpu")


def record_function(x):
    with torch.profiler.record_function("block"):
        y = x + 1
    return y * 2


def finfo(x):
    info = torch.finfo(x.dtype)
    low = torch.finfo(torch.float16).min
    return x.clamp(min=info.min / 2) + info.eps, low, torch.iinfo(torch.int8).max, info.bits


def sizes(x):
    s = x.shape + (2,)
    return torch.zeros(s), x.size()[1:], s.numel(), len(s), torch.Size([1, *s[:-1]]), s == (3, 3, 2)


def queries(x):
    return (
        x.dtype,
        x.device,
        x.device.type,
        x.ndim,
        x.dim(),
        x.is_floating_point(),
        x.is_contiguous(),
        x.dtype.is_floating_point,
        x.dtype.itemsize,
        x.numel(),
        x.layout,
        x.is_complex(),
        torch.is_tensor(x),
        torch.is_floating_point(x),
        x.element_size(),
        x.stride(),
    )


def factories(x):
    return (
        torch.arange(3),
        torch.arange(0, 4, 2, dtype=torch.float64),
        torch.zeros(2, 3),
        torch.ones_like(x),
        x.new_zeros(2),
        x.new_tensor([1, 2]),
        torch.full((2,), 7),
        torch.tensor([[1.0, 2.0]]),
        torch.eye(2),
        torch.linspace(0, 1, 3),
        torch.tensor(3),
        torch.empty(0),
        torch.as_tensor([1, 2]),
        torch.tril(torch.ones(2, 2)),
        torch.asarray(x),
    )


def out_argument(x):
    y = torch.empty_like(x)
    torch.add(x, 1, out=y)
    return y


def in_place(x):
    y = x.clone()
    y.add_(1).mul_(2)
    y[0] = 5
    y[:, 1] += x[:, 1]
    x.relu_()
    return y, x


def views(x):
    v = x.view(-1)
    v[0] = 9
    return x, v.t(), x.T, x.mT.contiguous(), x.unbind(0), x.split(1), x.chunk(2)


def random_operators(x):
    return (
        torch.rand(2),
        torch.randn_like(x),
        torch.randint(0, 5, (2,)),
        F.dropout(x, 0.5),
        x.bernoulli(0.5),
    )


def complex_numbers(x):
    c = torch.complex(x, x)
    return c.abs(), c.real, c.imag, c.conj(), torch.fft.fft(x), torch.view_as_real(c), c.angle()


def library(x):
    return (
        torch.linalg.norm(x),
        torch.linalg.inv(x + 5 * torch.eye(3)),
        torch.special.expit(x),
        torch.fft.rfft(x),
        torch.linalg.qr(x),
        torch.topk(x, 2),
        torch.max(x, dim=0).values,
        x.sort().indices,
        torch.einsum("ij,jk->ik", x, x),
    )


def overloads(x):
    return (
        torch.ops.aten.add.Tensor(x, x),
        torch.ops.aten.relu(x),
        torch.ops.aten.sum.dim_IntList(x, [0]),
    )


def custom_op(x):
    return twice(x) + torch.ops.aotdyn_tests.twice(x)


def operators(x):
    a = (x > 0) & ~(x < 1) | (x == 2)
    return a, x // 2, x % 2, x**2, 2**x, -x, abs(x), 1 / x, 1 - x, x @ x, x != 1


def indexing(x):
    m = x > 0
    return (
        x[0],
        x[..., 1],
        x[None],
        x[[0, 1]],
        x[:, ::2],
        x[torch.tensor([1])],
        x[-1, -1],
        torch.where(m, x, 0),
        x.masked_fill(m, 0),
        x[1:, :-1],
        x[None, ..., None].shape,
    )


def methods(x):
    return (
        x.to(torch.float64),
        x.float(),
        x.type_as(x),
        x.type(),
        x.to("cpu"),
        x.to(x),
        x.bool(),
        x.expand(2, 3, 3),
        x.detach(),
        x.data,
        x.mean((0, 1)),
        x.flatten(),
        x.sum(dim=-1, keepdim=True),
    )


def masked(x):
    kept = x > 0
    return torch.masked.sum(x, 1, mask=kept), torch.masked.softmax(x, 1, mask=kept)


def checks(x):
    torch._check(x.dim() == 2, lambda: "no matrix")
    torch._check_value(x.shape[0] > 1)
    torch._check_tensor_all(x < 100)
    loss = F.gaussian_nll_loss(x, x * 2, x.abs() + 1)
    return loss, torch.unravel_index(torch.tensor([3, 5]), x.shape)


def old_constructors(x):
    made = torch.Tensor([1, 2, 3]), torch.LongTensor((1, 2)), torch.FloatTensor([[1.5], [2]])
    empty = torch.Tensor(2, x.shape[0]).fill_(1), torch.IntTensor(x.shape).zero_()
    return *made, *empty, torch.DoubleTensor(), x + torch.Tensor([1])


def types_for_scripts(x):
    sizes = torch.jit.annotate(list[int], [1, 2])
    told = torch.jit.isinstance(x, torch.Tensor), torch.jit.isinstance(sizes, int)
    return told, sizes, x + 1


def inline_function(x):
    with torch.no_grad():
        return Square.apply(x)


def covariances(x):
    whole = (x * 10).long()
    return x.cov(), torch.cov(whole, correction=0), torch.corrcoef(x), x[0].corrcoef()


WHOLE = [
    covariances,
    no_grad,
    nested_grad,
    set_grad_function,
    decorated,
    autocast,
    record_function,
    finfo,
    sizes,
    queries,
    factories,
    out_argument,
    in_place,
    views,
    random_operators,
    complex_numbers,
    library,
    overloads,
    custom_op,
    operators,
    indexing,
    methods,
    masked,
    checks,
    old_constructors,
    types_for_scripts,
    inline_function,
]


@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_whole_graph(agree, program):
    agree(program, (torch.randn(3, 3),), breaks=0)


def broadcast(x, y):
    together = torch.broadcast_shapes(x.shape, y.shape)
    return torch.zeros(together), torch.broadcast_shapes(x.shape[1], y.shape[-1:]), together


def weighted_covariances(x, weights):
    return torch.cov(x), torch.cov(x, fweights=weights), torch.cov(x.to(torch.complex64))


def test_covariances_that_need_a_number(agree):
    """With weights, of complex numbers, and of a single observation, which torch warns of."""
    calls = [(torch.randn(3, n), torch.ones(n, dtype=torch.long)) for n in (4, 1)]
    with pytest.warns(UserWarning, match="degrees of freedom"):
        agree(weighted_covariances, *calls)


def test_shapes_are_broadcast_symbolically(agree):
    calls = [(torch.ones(5, 4), torch.ones(3, 1, 4)), (torch.ones(7, 6), torch.ones(2, 1, 6))]
    agree(broadcast, *calls, dynamic=True, breaks=0, variants=1)


def inference_mode(x):
    with torch.inference_mode():
        y = x * 2
    return y + 0, y.is_inference()


def vmapped(x):
    return torch.vmap(lambda row: row.sum() * row)(x)


def func_grad(x):
    return torch.func.grad(lambda v: (v**2).sum())(x)


def backward_inside(x):
    y = x.clone().requires_grad_()
    (y**2).sum().backward()
    return y.grad


def autograd_grad(x):
    y = x.clone().requires_grad_()
    return torch.autograd.grad((y**3).sum(), y)[0]


def function_with_grad(x):
    y = x.clone().requires_grad_()
    return Square.apply(y) + 1


def values(x):
    return x.sum().item(), x.tolist(), x.shape[0] * x.numpy().size


def branch(x):
    return x + 1 if x.sum() > 0 else x - 1


def masked(x):
    return x[x > 0], x.nonzero(), torch.unique(x)


def seeded(x):
    torch.manual_seed(7)
    return torch.rand(2) + x.sum()


def generator(x):
    g = torch.Generator().manual_seed(3)
    return torch.rand(2, generator=g) + x.sum()


def hooked_tensor(x):
    y = (x * 2).requires_grad_()
    y.register_hook(lambda g: g * 2)
    return y * 3


def saved_hooks(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return (x * x).exp()


def checkpointed(x):
    return torch.utils.checkpoint.checkpoint(lambda v: (v * 2).relu(), x, use_reentrant=False)


def cond(x):
    return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))


def subclass(x):
    y = x.as_subclass(Tagged)
    return (torch.add(y, 1) * 2).as_subclass(torch.Tensor)


def override(x):
    return torch.add(Wrapper(x), 1), torch.sum(Wrapper(1))


RIGHT = [
    inference_mode,
    vmapped,
    func_grad,
    backward_inside,
    autograd_grad,
    function_with_grad,
    values,
    branch,
    masked,
    seeded,
    generator,
    hooked_tensor,
    saved_hooks,
    checkpointed,
    cond,
    subclass,
    override,
]


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_right_with_or_without_breaks(agree, program):
    agree(program, (torch.randn(3, 3),))


def test_mode_around_the_call(agree):
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def under_mode(x):
        with Mode():
            return torch.add(x, 1)

    agree(under_mode, (torch.ones(3),))


class Loaded(torch.nn.Parameter):
    """A parameter that carries what it needs; made in a way of its own."""

    def __new__(cls, data, loader):
        return super().__new__(cls, data)

    def __init__(self, data, loader):
        self.loader = loader

    def thrice(self):
        return self * 3


class Odd(torch.nn.Parameter):
    """Overrides what an operator does."""

    def __mul__(self, other):
        return torch.zeros(3)


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = Loaded(torch.ones(3), 5)
        self.odd = Odd(torch.ones(3))

    def forward(self, x, odd=False):
        if odd:
            return self.odd * x
        same = type(self.weight) is Loaded and isinstance(self.weight, torch.nn.Parameter)
        return self.weight * x + self.weight.thrice() * self.weight.loader, same


def test_parameters_of_classes_of_their_own(agree):
    agree(Weighted(), (torch.randn(3),), breaks=0)
    agree(Weighted(), (torch.randn(3), True), package=False)


def nested(x):
    return torch.nested.nested_tensor([x, x[:2]]).to_padded_tensor(0.0) * 2


def quantized(x):
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize() + 1


def quantized_only(x):
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()


def quantized_given(x, dtype):
    return torch.quantize_per_tensor(x, scale=0.1, zero_point=0, dtype=dtype).int_repr()


def sparse_coo(x):
    y = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), x[:2], (3,))
    return y.to_dense() + x, (y * 2).coalesce().values()


def sparse_csr(x):
    y = torch.diag(x).to_sparse_csr()
    return y @ x, y.to_dense()


KINDS = [nested, quantized, quantized_only, sparse_coo, sparse_csr]


@pytest.mark.parametrize("program", KINDS, ids=lambda f: f.__name__)
def test_tensors_of_other_kinds(agree, program):
    agree(program, (torch.randn(3),))


def test_a_quantized_dtype_that_is_given(agree):
    agree(quantized_given, (torch.randn(3), torch.qint8))


class Doubling(torch.Tensor):
    """A wrapper whose operators run below autograd."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [arg.inner if isinstance(arg, Doubling) else arg for arg in args]
        return Doubling(func(*args, **(kwargs or {})) * 2)


def doubled(x):
    return (Doubling(x) + 1).inner, (Doubling(x * 2) * 3).inner


def test_what_torch_calls_below_autograd(agree):
    agree(doubled, (torch.randn(3),), (torch.randn(4),))


def operators_by_name(x):
    namespace = torch.ops.aten
    return namespace.mul.Tensor(x, x) + torch.ops.aten.add(x, 1)


def test_namespaces_of_operators(agree):
    run = agree(operators_by_name, (torch.randn(3),), graphs=1, breaks=0)
    assert not run.variants[0].obstacles
