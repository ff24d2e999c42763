"""Kernels of Triton that a program launches are operations of the graph: run by Triton's
interpreter, traced and from a package as in eager."""

import pytest
import torch

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

LIMIT = tl.constexpr(2)
SHIFT = tl.constexpr(0.5)

with triton.knobs.runtime.scope():
    triton.knobs.runtime.interpret = True

    @triton.jit
    def helper(x):
        return x * 2 + SHIFT

    @triton.jit
    def add_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, helper(x) + y * alpha, mask=mask)

    @triton.autotune(
        configs=[
            triton.Config({"BLOCK": 16}, num_warps=2),
            triton.Config({"BLOCK": 32}, num_warps=4, num_stages=2),
        ],
        key=["n"],
        do_bench=lambda call, quantiles: [1.0, 1.0, 1.0],
    )
    @triton.jit
    def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * LIMIT, mask=mask)

    @triton.heuristics(
        {
            "BLOCK": lambda args: triton.next_power_of_2(args["columns"]),
            "EVEN": lambda args: args["columns"] % 2 == 0,
        }
    )
    @triton.jit
    def rows_kernel(
        x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr, EVEN: tl.constexpr, FACTOR=1.0
    ):
        row = tl.program_id(0)
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns
        x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=-float("inf")) * FACTOR
        if EVEN:
            x = tl.exp(x) * 2
        tl.store(out_ptr + row * stride + offsets, x, mask=mask)

    @triton.jit
    def cast_kernel(x_ptr, out_ptr, n, TYPE: tl.constexpr, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask).to(TYPE), mask=mask)

    @triton.jit
    def increment_kernel(x_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(x_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, 0.5, BLOCK=16)
    return out * 2


def add_by_name(x, y):
    out = torch.zeros_like(x)
    grid = (triton.cdiv(x.numel(), 8), 1)
    add_kernel[grid](x_ptr=x, y_ptr=y + 1, out_ptr=out, n=x.numel(), alpha=2, BLOCK=8, num_warps=2)
    return out, x + out


def tuned(x):
    out = torch.empty_like(x)
    scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out.relu()


def rows(x):
    out = torch.empty_like(x)
    rows_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1])
    return out + scaled_rows(x, 2.0)


def scaled_rows(x, factor):
    out = torch.empty_like(x)
    rows_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], FACTOR=factor)
    return out


def cast(x):
    out = torch.empty_like(x)
    cast_kernel[(2,)](x, out, x.numel(), tl.int32, BLOCK=16)
    return out


def in_place(x):
    y = x * 2
    for _ in range(2):
        increment_kernel[(1,)](y, y.numel(), BLOCK=64)
    increment_kernel[(1,)](x, x.numel(), BLOCK=64)
    return x.sum() + y


def on_a_view(x):
    increment_kernel[(1,)](x[1:], x.numel() - 1, BLOCK=64)
    return x * 3


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.empty_like(x)
        scale_kernel[(2,)](x, out, x.numel())
        return out

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous()
        out = torch.empty_like(grad)
        scale_kernel[(2,)](grad, out, grad.numel())
        return out


def with_a_list(x):
    y = x * 1
    increment_kernel[[1]](y, y.numel(), BLOCK=64)  # refused by the interpreter only
    return y


def without_an_argument(x):
    increment_kernel[(1,)](x, BLOCK=64)
    return x


def differentiated(x):
    return (Doubled.apply(x) * x).sum()


def kept(x, y):
    launch = add_kernel[(4,)]
    print("between")
    out = torch.empty_like(x)
    launch(x, y, out, x.numel(), 1.0, BLOCK=16)
    return out


R = torch.randn

WHOLE = {
    "add": (add, (R(40), R(40))),
    "add_by_name": (add_by_name, (R(3, 10), R(3, 10))),
    "tuned": (tuned, (R(20),)),
    "rows": (rows, (R(3, 10),)),
    "odd_rows": (rows, (R(2, 7),)),
    "cast": (cast, (R(20) * 4,)),
    "in_place": (in_place, (R(12),)),
    "on_a_view": (on_a_view, (R(12),)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_kernels_are_in_the_graph(agree, name):
    function, args = WHOLE[name]
    run = agree(function, args)
    assert not run.breaks
    assert len(run.graphs) == 1
    assert "start" in run.ops()
    (kernel,) = run.graphs[0].kernels
    assert kernel.kernel.startswith(f"{__name__}:")


@pytest.mark.parametrize(
    ("function", "sizes"), [(add, (40, 30, 50)), (tuned, (20, 21, 70)), (in_place, (4, 5, 6))]
)
def test_sizes_become_symbolic(agree, function, sizes):
    arity = function.__code__.co_argcount
    run = agree(function, *[tuple(R(n) for _ in range(arity)) for n in sizes])
    assert not run.breaks
    assert len(run.variants) == 2


def test_what_is_kept_over_a_break(agree):
    """A launcher that is there before the frame goes on is a function of Triton."""
    run = agree(kept, (R(40), R(40)))
    assert [each.reason for each in run.breaks] == ["builtin_call", "foreign_call"]


@pytest.mark.parametrize("function", [with_a_list, without_an_argument])
def test_launches_that_raise(agree, function):
    agree(function, (R(20),))


def test_gradients(agree):
    agree(differentiated, (R(20).requires_grad_(),))
