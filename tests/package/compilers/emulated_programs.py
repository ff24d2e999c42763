"""Programs that run twice in one process: on the CPU and on the GPU that is emulated there. As a
script, with `made_up_environment`, it prints as JSON what is wrong with each, "" for nothing."""

import io
import json

import torch
import torch.nn.functional as F


def matches(x):
    return x[x > 0], x.nonzero(), x.topk(2), x.sort(-1, descending=True)


def views(x):
    y = x.view(-1)[2:].as_strided((2, 3), (1, 2))
    y.mul_(2)
    x.t()[0] = 7
    x.unbind(0)[1].zero_()
    return x, y, x.T._base is x


def resized(x):
    out = torch.empty(0, device=x.device)
    torch.add(x, 1, out=out)
    y = torch.zeros(2, device=x.device).resize_(4)
    y.set_(x)
    return out, y.shape, y.data_ptr() == x.data_ptr()


def complexes(x):
    z = torch.complex(x, x)
    return torch.view_as_real(z.conj() * z), z.mT.conj().imag.resolve_neg(), torch.fft.rfft(x).abs()


def moved(x):
    y = x.to("cpu", copy=True)
    y += 1
    x.copy_(y)
    y.copy_(x * 2)
    return x, y, str(y.device), x.new_ones(2), torch.zeros_like(x, device="cpu").device.type


def mixed(x):
    try:
        x + torch.ones(3, 4, device="cpu")
    except RuntimeError as error:
        return "same device" in str(error) or x.device.type == "cpu", x * torch.tensor(2.0)
    return x.device.type == "cpu", x * torch.tensor(2.0)


def indexed(x):
    x[torch.tensor([0, 1])] = 2.0  # indices may be on the CPU
    return x, x[torch.tensor([2])], x.index_add(0, torch.tensor([0], device=x.device), x[1:2])


def lists(x):
    torch._foreach_add_([x, x[0]], 1.0)
    return x, torch._foreach_norm([x, x + 1]), torch.cat([x, x]), torch.stack([x, x]).split(1)


def scalars(x):
    return x.sum().item(), x.max().tolist(), bool((x == x).all()), int(x.argmax()), repr(x.round())


def trained(optimizer):
    def train(x):
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 3)
        )
        model.to(x.device)
        steps = optimizer(model.parameters())
        for _ in range(3):
            steps.zero_grad()
            F.cross_entropy(model(x), torch.tensor([0, 1, 2], device=x.device)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            steps.step()
        return list(model.parameters())

    return train


def convolutions(x):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
        torch.nn.Conv2d(4, 4, 3, groups=4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
    ).to(x.device)  # fmt: skip
    found = model(x.repeat(2, 2)[None, None])
    found.square().sum().backward()
    return found, [p.grad for p in model.parameters()], list(model.buffers())


def attention(x):
    model = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).to(x.device)
    q = x.reshape(1, 1, 3, 4).requires_grad_()
    found = model(x[None]), F.scaled_dot_product_attention(q, q, q, is_causal=True)
    found[1].sum().backward()
    return found, q.grad


def random(x):
    torch.manual_seed(5)
    generator = torch.Generator(x.device).manual_seed(3)
    own = torch.randn(3, device=x.device, generator=generator)
    return torch.rand(3, device=x.device), F.dropout(x), torch.randperm(5, device=x.device), own


def saved(x):
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    found = torch.load(file)["x"]
    file.seek(0)
    return found, found.device == x.device, torch.load(file, map_location="cpu")["x"].device.type


def checked(x):
    from torch.utils.checkpoint import checkpoint

    x = x.requires_grad_()
    checkpoint(lambda y: (y.sin() * y).exp(), x, use_reentrant=False).sum().backward()
    (twice,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    twice.sum().backward()
    return x.grad, torch.func.vmap(torch.dot)(x, x), torch.func.grad(lambda y: (y**2).sum())(x)


def recurrent(x):
    found = []
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        model = kind(4, 3, num_layers=2, bidirectional=True).to(x.device)
        out, _ = model(x[:, None])
        out.square().sum().backward()
        found += [out, [p.grad for p in model.parameters()]]
    return found


LINEAR = torch.nn.Linear(4, 3)


def inferred(x):
    with torch.inference_mode():
        y = x.clone()
        y.view(-1)[0] = 1
        linear = LINEAR.to(x.device)
        z = linear(y), linear.weight.t().is_inference(), linear(x).is_inference()
        return y.softmax(-1), F.embedding(torch.tensor([0, 2], device=x.device), y), z


def ctc(x):
    scores = x.repeat(2, 1)[:, None].log_softmax(2).requires_grad_()
    labels, length = torch.tensor([[1, 2]]), torch.tensor([2])
    loss = F.ctc_loss(scores, labels.to(x.device), torch.tensor([6]), length)  # lengths on the CPU
    loss.backward()
    return loss, scores.grad


def asked(x):
    """What scripts ask and tell `torch.cuda`, none of which changes a result."""
    if x.device.type == "cuda":
        side, now = torch.cuda.Stream(priority=-1), torch.cuda.current_stream()
        side.wait_stream(now)
        with torch.cuda.stream(side):
            x.record_stream(side)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
        end.record(side)
        now.wait_event(end)
        torch.cuda.synchronize()
        assert start.elapsed_time(end) >= 0 and side == now and side.priority == 0
        for name in ("memory_allocated", "max_memory_reserved", "get_sync_debug_mode"):
            assert getattr(torch.cuda, name)() == 0
        assert "allocated_bytes.all.peak" in torch.cuda.memory_stats()
        assert "Allocated memory" in torch.cuda.memory_summary()
        assert torch.cuda.memory._snapshot()["segments"] == []
        torch.cuda.memory._record_memory_history(enabled=None)
        torch.cuda.set_per_process_memory_fraction(0.5)
        torch.cuda.set_sync_debug_mode("default")
        torch.cuda.profiler.start()
        torch.cuda.profiler.stop()
        torch.accelerator.empty_cache()
        assert torch.accelerator.max_memory_allocated() == 0
        assert x.cpu().pin_memory().to(x.device, non_blocking=True).is_cuda
        assert torch.cuda.get_arch_list() == ["sm_90"]
    return x


PROGRAMS = {
    "matches": matches, "views": views, "resized": resized, "complexes": complexes, "moved": moved,
    "mixed": mixed, "indexed": indexed, "lists": lists, "scalars": scalars,
    "sgd": trained(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "adamw": trained(torch.optim.AdamW), "convolutions": convolutions, "attention": attention,
    "random": random, "saved": saved, "checked": checked, "recurrent": recurrent,
    "inferred": inferred, "ctc": ctc, "asked": asked,
}  # fmt: skip


def plain(value):
    """Without devices, so that results can be compared."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return str(value).replace(", device='cuda:0'", "").replace("cuda:0", "cpu")


def difference(one, other) -> str:
    if isinstance(one, list):
        found = [difference(*pair) for pair in zip(one, other, strict=True)]
        return next(filter(None, found), "")
    if isinstance(one, torch.Tensor):
        same = one.shape == other.shape and torch.allclose(one, other, atol=1e-5, equal_nan=True)
        return "" if same else f"{one} instead of {other}"
    return "" if one == other else f"{one} instead of {other}"


def run(program, device):
    torch.manual_seed(1)
    x = torch.randn(3, 4).to(device)
    return plain(program(x))


def main():
    from aotdyn.package.compilers.gpu.emulated import emulated
    from aotdyn.package.compilers.gpu.made_up import forget_environment

    forget_environment()
    answers = {}
    with emulated("cuda:sm_90") as devices:
        answers["devices"] = "" if devices == (("cuda:0", "cpu"),) else str(devices)
        for name, program in PROGRAMS.items():
            try:
                answers[name] = difference(run(program, "cuda"), run(program, "cpu"))
            except Exception as error:
                answers[name] = f"{type(error).__name__}: {error}"[:500]
    answers["afterwards"] = "it is still there" if torch.cuda.is_available() else ""
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
