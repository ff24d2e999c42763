"""The programs that `gpu_check.sh` compares on a GPU. Run as a script, it runs each once: that is
what `aotdyn record --device TARGET` records for the package."""

import sys

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

DTYPES = (torch.float32, torch.bfloat16)


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)
        self.norm = torch.nn.LayerNorm(256)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(256, 768), torch.nn.Linear(256, 256)

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 4, 64).permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(x.shape))


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = torch.nn.Embedding(512, 64), torch.nn.Linear(64, 32)

    def forward(self, x):
        return self.head(self.words((x * 100).abs().long().clamp(max=511)).mean(-2))


class Convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Conv2d(4, 16, 3, padding=1), torch.nn.BatchNorm2d(16)

    def forward(self, x):
        return self.norm(self.first(x)).relu().mean((2, 3))


def pointwise(x):
    return (x * 2 + 1).tanh() * x.sigmoid() - x.abs().sqrt()


def reductions(x):
    return x.sum(0) + x.amax(0), x.mean(), x.float().var(-1)


def softmax(x):
    return x.softmax(-1) + x.log_softmax(-1)


def rms_norm(x):
    return x * (x.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt().to(x.dtype)


def cross_entropy(x):
    return F.cross_entropy(x, torch.arange(x.shape[0], device=x.device) % x.shape[1])


def dropout(x):
    return F.dropout(x, 0.3, True) * x.sigmoid()


def in_place(x):
    y = x.clone()
    y[1:].mul_(2).add_(1)
    return y.cumsum(-1)


# name: (what is called, or makes it; the size of its input; whether gradients are asked for)
PROGRAMS = {
    "pointwise": (lambda: pointwise, (64, 1000), True),
    "reductions": (lambda: reductions, (128, 512), True),
    "softmax": (lambda: softmax, (64, 777), True),
    "rms_norm": (lambda: rms_norm, (64, 512), True),
    "cross_entropy": (lambda: cross_entropy, (32, 100), True),
    "dropout": (lambda: dropout, (64, 512), True),
    "in_place": (lambda: in_place, (16, 64), False),
    "mlp": (MLP, (32, 256), True),
    "attention": (Attention, (2, 128, 256), True),
    "classifier": (Classifier, (8, 20), True),
    "convolutions": (Convolutions, (4, 4, 32, 32), True),
}

if triton is not None:

    @triton.jit
    def fused_kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
        tl.store(out_ptr + at, x * scale + 1, mask=at < n)

    def own_kernel(x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 256),)
        fused_kernel[grid](x, out, x.numel(), 0.5, BLOCK=256)
        return out * 2

    PROGRAMS["own_kernel"] = (lambda: own_kernel, (64, 100), False)


def made(name, dtype, device):
    """What is called, the same in all processes, and its input."""
    make, size, grad = PROGRAMS[name]
    torch.manual_seed(0)
    called = make()
    if isinstance(called, torch.nn.Module):
        called = called.to(device=device, dtype=dtype)
    x = torch.randn(size).to(device=device, dtype=dtype)
    return called, x.requires_grad_(grad)


def parameters(called):
    return list(called.parameters()) if isinstance(called, torch.nn.Module) else []


def outcome(called, x, weights):
    """Results, then gradients of the input and the parameters, if any are asked for."""
    found = called(x)
    found = list(found) if isinstance(found, tuple) else [found]
    if not x.requires_grad:
        return found
    loss = sum(each.float().square().mean() for each in found)
    gradients = torch.autograd.grad(loss, [x, *weights], allow_unused=True)
    return [each.detach() for each in found] + [each for each in gradients if each is not None]


def run_each(names):
    where = "cuda" if torch.cuda.is_available() else "cpu"
    for name in names or PROGRAMS:
        for dtype in DTYPES:
            called, x = made(name, dtype, where)
            outcome(torch.compile(called), x, parameters(called))


if __name__ == "__main__":
    import gpu_programs  # under the name by which `gpu_check.py` imports it

    gpu_programs.run_each(sys.argv[1:])
