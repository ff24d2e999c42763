"""Programs for GPUs: what they compute, and the calls that are recorded and served. Run as a
module under `aotdyn record --device TARGET`, it makes each call once on that device:

`python -m aotdyn record --device cuda:sm_90 -m tests.package.compilers.gpu_graphs [NAME ...]`
"""

import sys

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import aotdyn
from tests.record import test_user_kernels as kernels

torch.manual_seed(0)
R = torch.randn


def grad(*size, dtype=torch.float32):
    return R(*size).to(dtype).requires_grad_()


def ints(high, *size):
    return torch.randint(0, high, size)


# -- pointwise ---------------------------------------------------------------------------------


def pointwise(x, y):
    return (x * 2 + y).tanh() - y.exp()


def special(x):
    return x.erf() + x.sigmoid().log1p(), x.abs().lgamma(), x.atan2(x + 1), x.frexp().mantissa


def transposed(x, y):
    return x.t() + y


def broadcast(x, y):
    return (x[:, None] * y[None]).relu()


def where(x):
    return torch.where(x > 0, x, x.abs().sqrt()).masked_fill(x > 1, 7.0).clamp(-1, 5)


def ints_and_bools(x):
    return x // 3, x % 5, x.bool(), (x > 4) & (x < 9), x << 2, x.float() / 2


def mixed(x, h, i, b):
    return x * h, h + i, i * b, (x > h.float()).logical_xor(b), x.to(torch.bfloat16) * h.bfloat16()


def float8(x):
    y = x.to(torch.float8_e4m3fn)
    return y.float() * 2, x.to(torch.float8_e5m2).to(torch.bfloat16)


def complexes(x):
    return torch.fft.rfft(x).abs() * 2


def pieces(x, y):
    a, b = torch.cat([x, y * 2], 1).split([3, 4], 1)
    return a.sin(), torch.stack([b, b + 1]), F.pad(x, (1, 2), value=3.0), x.flip(0).roll(1, 1)


def made_up(x):
    n = x.shape[0]
    i = torch.arange(n, device=x.device)
    return x.tril() + torch.eye(n, device=x.device), F.one_hot(i % 3, 4), x.new_full((2, n), 3)


# -- reductions --------------------------------------------------------------------------------


def reductions(x):
    return x.sum(0), x.amax(1), x.mean(), x.var(-1), x.std(), x.norm(dim=1), x.logsumexp(0)


def arguments(x):
    return x.argmax(-1), x.argmin(0), x.max(1).values, x.min(0).indices, x.argmax()


def truths(x):
    return (x > 0).any(), (x > 0).all(-1), x.prod(1), (x > 0).sum(0), x.aminmax(dim=0)


def scans(x):
    return x.cumsum(-1), x.cumsum(0), x.cumprod(1), x.logcumsumexp(0)


def large(x):
    return x.sum(), x.amax(), x.var()


def softmax(x):
    return x.softmax(-1), x.log_softmax(0)


def layer_norm(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b)


def rms_norm(x, w):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def group_norm(x, w, b):
    return F.group_norm(x, 2, w, b).relu()


def instance_norm(x):
    return F.instance_norm(x)


def batch_norm(x, m, v, w, b):
    return F.batch_norm(x, m, v, w, b, training=True)


def batch_norm_eval(x, m, v):
    return F.batch_norm(x, m, v).relu()


# -- layers ------------------------------------------------------------------------------------


def mlp(x, w, b, v):
    return F.layer_norm(F.gelu(F.linear(x, w, b)), (16,)) @ v


def swiglu(x, w, v):
    return F.silu(x @ w) * (x @ v)


def attention(q, k, v):
    scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1)
    return scores @ v


def masked(q, k, v, m):
    return F.scaled_dot_product_attention(q, k, v, m)


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def grouped(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def embedding(i, w):
    return F.embedding(i, w, padding_idx=0).mean(1)


def embedding_bag(i, w):
    return F.embedding_bag(i, w, mode="sum")


def cross_entropy(x, y):
    return F.cross_entropy(x, y, ignore_index=1, label_smoothing=0.1), F.nll_loss(x, y)


def losses(x, y):
    return F.smooth_l1_loss(x, y), F.kl_div(x, y.softmax(-1)), F.binary_cross_entropy_with_logits(
        x, y.sigmoid()
    )


def conv(x, w, b):
    return F.conv2d(x, w, b, padding=1, stride=2).relu()


def conv_norm(x, w, b, m, v):
    return F.batch_norm(F.conv2d(x, w, b), m, v, training=True).relu().mean((2, 3))


def conv_transposed(x, w):
    return F.gelu(F.conv_transpose1d(x, w, stride=2))


def pools(x):
    return F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 1, 1), F.adaptive_avg_pool2d(x, (2, 1))


def interpolated(x):
    return (
        F.interpolate(x, scale_factor=2, mode="nearest"),
        F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=False),
    )


def dropped(x):
    return F.dropout(x, 0.5, True) * 2 + torch.rand_like(x)


def without_gradients(x, w):
    with torch.no_grad():
        z = (x * w).sum()
    return x * w * z, z


def automatic(x, w):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return (F.linear(x, w) * 2).softmax(-1)


# -- indices and memory ------------------------------------------------------------------------


def scattered(x, i):
    return (
        torch.zeros_like(x).scatter_add(1, i, x), x.scatter(1, i[:, :1], 5.0),
        x.scatter_reduce(0, i % 2, x, "amax"),
    )  # fmt: skip


def put(x, i, y):
    return x.index_put((i,), y, accumulate=True), x.index_add(0, i, y)


def gathered(x, i):
    return x.gather(1, i), x.index_select(1, i[0]), x[:, i[1]], x.take_along_dim(i, 1)


def ordered(x):
    return x.sort(-1), x.topk(3).values * 2, x.argsort(stable=True, dim=0), x.median(1).values


def searched(x, y):
    return torch.searchsorted(x, y), torch.bucketize(y, x) + 1


def selected(x):
    return x[x > 0] * 2, x.nonzero() + 1


def views(x, w):
    y = x * w
    return y.t(), y[0], x.view(-1), y.unfold(1, 2, 1) + 1


def update(x, y):
    x.add_(y)
    x[1:].mul_(2)
    return x * 2


def saved_then_changed(x, w):
    y = (x * 2) * w.sin()
    x.add_(1)
    return y


def turned(x, y):
    x.t_()
    return x.unsqueeze(0), x[1:] * y


def bits(x):
    return x.view(torch.int32)[0], x.view(torch.uint8)[:, 1] + 1


def complex_views(x):
    z = torch.view_as_complex(x)
    return z, z.real * 2, x[0]


def by_operators(x, w):
    return x @ w.t()


def two_devices(x):
    return x * 2, torch.linspace(0, 1, x.shape[0]) + 1


def one_after_the_other(x):
    y = x * 2
    aotdyn.graph_break()
    z = y.to("cpu")
    aotdyn.graph_break()
    return z.sin() + z.exp(), y


def strided(x):
    x[::2, 1:].mul_(x.t()[1:, ::2].t())
    return x.as_strided((2, 3), (2, 1)) + 1


def placed(x):
    return x.as_strided((2, 3), (2, 1), 1) + 1


def steps(p, g, m):
    torch._foreach_mul_(m, 0.9)
    torch._foreach_add_(m, g)
    torch._foreach_sub_(p, m, alpha=0.1)


def sized(x, w, n):
    return (x @ w).softmax(-1) * n, n + x.shape[0]


def sequence(x, w):
    y = F.layer_norm(x, x.shape[-1:], w)
    return y.cumsum(1) / y.shape[1], y.reshape(-1, y.shape[-1]).sum(0)


def empties(x):
    return x.sum(0), x * 2, torch.cat([x, x]).amax(-1)


# -- kernels that want more of their launcher than a grid ---------------------------------------


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)


@triton.jit
def described_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    out = tl.make_tensor_descriptor(out_ptr, [ROWS, COLUMNS], [COLUMNS, 1], [ROWS, COLUMNS])
    out.store([0, 0], x.load([0, 0]) * 2)


@triton.jit
def descriptors_kernel(x, out):
    out.store([0, 0], x.load([0, 0]) * 2)


def doubled(x, **options):
    out = torch.empty_like(x)
    double_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), BLOCK=32, **options)
    return out + 1


def clusters(x):
    return doubled(x, num_ctas=2)


def cooperative(x):
    return doubled(x, launch_cooperative_grid=True)


def dependent(x):
    return doubled(x, launch_pdl=True)


def scratch(x):
    out = torch.empty_like(x)
    described_kernel[(1,)](x, out, ROWS=x.shape[0], COLUMNS=x.shape[1])
    return out + 1


def descriptors(x):
    out = torch.empty_like(x)
    described = (TensorDescriptor.from_tensor(each, list(x.shape)) for each in (x, out))
    descriptors_kernel[(1,)](*described)
    return out + 1


def heads(dtype, count=2, length=16):
    return grad(2, count, length, 32, dtype=dtype)


# name: (the program, the arguments of each call)
GRAPHS = {
    "pointwise": (pointwise, [(R(3000), R(3000))]),
    "special": (special, [(R(40),)]),
    "transposed": (transposed, [(R(6, 10), R(10, 6))]),
    "broadcast": (broadcast, [(R(7), R(9))]),
    "where": (where, [(R(40),)]),
    "ints_and_bools": (ints_and_bools, [(torch.arange(1, 30),)]),
    "mixed": (mixed, [(R(33), R(33).half(), ints(9, 33), R(33) > 0)]),
    "float8": (float8, [(R(48),)]),
    "complexes": (complexes, [(R(4, 16),)]),
    "pieces": (pieces, [(R(4, 5), R(4, 2))]),
    "made_up": (made_up, [(R(9, 9),)]),
    "reductions": (reductions, [(grad(8, 24),)]),
    "arguments": (arguments, [(R(5, 17),)]),
    "truths": (truths, [(R(5, 17),)]),
    "scans": (scans, [(grad(4, 16),)]),
    "large": (large, [(R(150_000),)]),
    "softmax": (softmax, [(grad(6, 19),)]),
    "layer_norm": (layer_norm, [(grad(4, 16), grad(16), grad(16))]),
    "rms_norm": (rms_norm, [(grad(4, 16), grad(16))]),
    "group_norm": (group_norm, [(grad(2, 4, 9), grad(4), grad(4))]),
    "instance_norm": (instance_norm, [(grad(2, 3, 9),)]),
    "batch_norm": (
        batch_norm, [(grad(4, 3, 5), torch.zeros(3), torch.ones(3), grad(3), grad(3))]
    ),
    "batch_norm_eval": (batch_norm_eval, [(R(4, 3, 5), R(3), torch.ones(3))]),
    "mlp": (mlp, [(R(6, 16), grad(16, 16), grad(16), grad(16, 8))]),
    "swiglu": (swiglu, [(grad(5, 16), grad(16, 24), grad(16, 24))]),
    "attention": (attention, [(grad(2, 2, 8, 4), grad(2, 2, 8, 4), grad(2, 2, 8, 4))]),
    "masked": (masked, [(*(heads(torch.float32) for _ in range(3)), R(16, 16) > 0)]),
    "causal": (causal, [tuple(heads(torch.float32) for _ in range(3))]),
    "flash": (
        lambda q, k, v: causal(q * 2, k, v).float().sigmoid(),
        [tuple(heads(torch.bfloat16) for _ in range(3))],
    ),
    "grouped": (
        grouped, [(heads(torch.float32, 4), heads(torch.float32), heads(torch.float32))]
    ),
    "rotated": (rotated, [(grad(2, 3, 8), R(3, 8), R(3, 8))]),
    "embedding": (embedding, [(ints(16, 3, 5), grad(16, 8))]),
    "embedding_bag": (embedding_bag, [(ints(16, 3, 5), grad(16, 8))]),
    "cross_entropy": (cross_entropy, [(grad(6, 10), ints(10, 6))]),
    "losses": (losses, [(grad(6, 10), R(6, 10))]),
    "conv": (conv, [(R(2, 3, 7, 6), grad(4, 3, 3, 3), grad(4))]),
    "conv_norm": (
        conv_norm,
        [(grad(2, 3, 6, 6), grad(4, 3, 3, 3), grad(4), torch.zeros(4), torch.ones(4))],
    ),
    "conv_transposed": (conv_transposed, [(grad(2, 3, 6), grad(3, 4, 3))]),
    "pools": (pools, [(grad(2, 3, 8, 6),)]),
    "interpolated": (interpolated, [(grad(2, 3, 4, 5),)]),
    "dropped": (dropped, [(grad(32),)]),
    "without_gradients": (without_gradients, [(R(4, 8), grad(4, 8))]),
    "automatic": (automatic, [(grad(4, 8), grad(6, 8))]),
    "scattered": (scattered, [(R(4, 6), ints(6, 4, 6))]),
    "put": (put, [(grad(5, 6), ints(5, 4), grad(4, 6))]),
    "gathered": (gathered, [(grad(4, 6), ints(4, 4, 6))]),
    "ordered": (ordered, [(R(4, 9),)]),
    "searched": (searched, [(torch.arange(8.0), R(12))]),
    "selected": (selected, [(R(17),)]),
    "views": (views, [(R(4, 4), grad(4, 4))]),
    "update": (update, [(R(12), R(12))]),
    "saved_then_changed": (saved_then_changed, [(R(4, 6), grad(4, 6))]),
    "turned": (turned, [(R(4, 6), R(5, 4))]),
    "bits": (bits, [(R(4, 6),)]),
    "complex_views": (complex_views, [(R(3, 4, 2),)]),
    "strided": (strided, [(R(4, 6),)]),
    "placed": (placed, [(R(4, 6),)]),
    "by_operators": (by_operators, [(R(4, 8), grad(6, 8))]),
    "one_after_the_other": (one_after_the_other, [(R(7),)]),
    "two_devices": (two_devices, [(R(5),)]),
    "steps": (
        steps, [([R(6), R(3, 4)], [R(6), R(3, 4)], [R(6), R(3, 4)])]
    ),
    "half": (lambda x: F.silu(x) * x, [(grad(48, dtype=torch.float16),)]),
    "bfloat16": (
        lambda x, w: F.layer_norm(x, (16,), w),
        [(grad(4, 16, dtype=torch.bfloat16), grad(16, dtype=torch.bfloat16))],
    ),
    "bfloat16_loss": (cross_entropy, [(grad(6, 10, dtype=torch.bfloat16), ints(10, 6))]),
    "dynamic_batch": (sized, [(R(b, 8), grad(8, 8), n) for b, n in ((4, 3), (6, 5), (9, 2))]),
    "dynamic_length": (sequence, [(R(2, s, 8), grad(8)) for s in (5, 7, 16)]),
    "dynamic_both": (
        lambda x, y: x[:, None] * y + x.sum(), [(R(a), R(b)) for a, b in ((5, 6), (7, 9), (3, 33))]
    ),
    "empties": (empties, [(R(n, 3),) for n in (4, 6, 1, 5)]),
    "nothing": (lambda x: (x * 2, x.sum(1)), [(R(n, 3),) for n in (0, 4, 5, 0, 1)]),
    **{f"own_{name}": (program, [args]) for name, (program, args) in kernels.WHOLE.items()},
    "own_sizes": (kernels.add, [(R(n), R(n)) for n in (40, 30, 17, 1)]),
    "own_clusters": (clusters, [(R(64),)]),
    "own_cooperative": (cooperative, [(R(64),)]),
    "own_dependent": (dependent, [(R(64),)]),
    "own_scratch": (scratch, [(R(16, 16),)]),
    "own_descriptors": (descriptors, [(R(16, 16),)]),
    "own_gradients": (kernels.differentiated, [(R(20).requires_grad_(),)]),
}

# Where a call starts no kernel of the package (operators of torch only, nothing to compute), what
# is computed in half precision between others, and what Triton or torch itself refuses where memory
# is not aligned.
WITHOUT_KERNELS = {"by_operators", "nothing", "own_descriptors"}
LOOSE = {"automatic", "flash", "float8"}
ALIGNED = {"complex_views", "own_scratch"}

_WITH_TENSOR_MEMORY = ("cuda:sm_90", "cuda:sm_100", "cuda:sm_120")


def not_compiled(target):
    """What there is no code for, and why."""
    found = {
        "placed": "as_strided counts from the start of an input's memory",
        "two_devices": "it computes on the CPU as well",
        "own_clusters": "the kernel double_kernel is launched in clusters of 2 blocks",
        "own_cooperative": "the kernel double_kernel is launched with launch_cooperative_grid",
        "own_dependent": "the kernel double_kernel is launched with launch_pdl",
    }
    if target in _WITH_TENSOR_MEMORY:
        found["own_scratch"] = "described_kernel_0 needs global scratch size (256)"
    if target in ("cuda:sm_80", "cuda:sm_86"):
        found["float8"] = "fp8e4nv not supported in this architecture"
    return found


def moved(args, device):
    """The arguments on a device, leaves of their own."""

    def one(value):
        if isinstance(value, list):
            return [one(each) for each in value]
        if not isinstance(value, torch.Tensor):
            return value
        made = value.detach().clone().to(device)
        return made.requires_grad_(value.requires_grad)

    return [one(value) for value in args]


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [found for part in value for found in tensors_in(part)]
    return []


def outcome(program, args):
    """What can be seen of a call: numbers, results and arguments afterwards, gradients."""
    torch.manual_seed(1)
    found = program(*args)
    results = tensors_in(found)
    numbers = [part for part in (found if isinstance(found, tuple) else (found,))
               if isinstance(part, int | float)]  # fmt: skip
    leaves = [value for value in tensors_in(args) if value.requires_grad and value.is_leaf]
    ends = [each for each in results if each.requires_grad and each.grad_fn is not None]
    gradients = []
    if leaves and ends:
        torch.manual_seed(2)
        weights = [torch.randn(each.shape).to(each) for each in ends]
        gradients = torch.autograd.grad(ends, leaves, weights, allow_unused=True)
    seen = [each.detach() for each in (*results, *tensors_in(args))]
    return numbers, seen, list(gradients)


def run(names, device="cuda"):
    for name in names or GRAPHS:
        program, calls = GRAPHS[name]
        called = torch.compile(program)
        for args in calls:
            outcome(called, moved(args, device))


if __name__ == "__main__":
    from tests.package.compilers import gpu_graphs  # under the name by which it is served

    gpu_graphs.run(sys.argv[1:])
