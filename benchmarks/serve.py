"""Microseconds per call of a package's compiled graphs against eager, torch.compile and stock
AOTInductor through its own loader, in one run.

    python benchmarks/serve.py [--threads N] [--isa ISA] [NAME ...]     mlp, block, bert

Each line is one computation, least and median times of single calls. The ways are called in turns,
so that whatever else the machine does slows all of them; one thread unless told otherwise.
AOTInductor has no backward, and its weights are part of what it has compiled.

`--isa avx2 bert`, on a busy machine with two cores, least us: forward 1446 (eager 3392,
torch.compile 2251, AOTInductor 1001), forward and backward 9446 (eager 31805, torch.compile 10998).
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import aotdyn


def mlp() -> tuple[nn.Module, torch.Tensor]:
    """Eight layers of Linear, GELU and LayerNorm, width 64, batch 8."""
    layers = [layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64))]
    return nn.Sequential(*layers), torch.randn(8, 64)


class Block(nn.Module):
    """A residual block."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norms[0](self.first(x)).relu()
        return (x + self.norms[1](self.second(y))).relu()


class Bert(nn.Module):
    """The last hidden state of a tiny BERT."""

    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertModel  # only here: the rest goes without

        self.bert = BertModel(
            BertConfig(
                vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                intermediate_size=512, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            ),
            add_pooling_layer=False,
        )  # fmt: skip

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.bert(input_ids=ids).last_hidden_state


MODELS = {
    "mlp": mlp,
    "block": lambda: (Block(), torch.randn(2, 16, 16, 16)),
    "bert": lambda: (Bert(), torch.arange(32).view(2, 16)),
}


def in_turns(
    calls: dict[str, Callable[[], object]], seconds: float
) -> dict[str, tuple[float, float]]:
    """The least and the median microseconds of single calls."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call(), call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            call()  # finds its own code and data in the processor's caches again
            for _ in range(5):
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: (min(t) * 1e6, statistics.median(t) * 1e6) for name, t in times.items()}


def runs(model: nn.Module, call: Callable, x: torch.Tensor) -> dict[str, Callable[[], object]]:
    """forward without gradients in evaluation, forward and backward in training."""
    parameters = list(model.parameters())

    def forward() -> object:
        with torch.no_grad():
            return call(x)

    def both() -> object:
        out = call(x)
        return torch.autograd.grad(out, parameters, torch.ones_like(out))

    return {"forward": forward, "forward+backward": both}


def measure(name: str, options: argparse.Namespace) -> None:
    """Prints the lines of one model."""
    torch.manual_seed(0)
    model, x = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        path = _packed(model, x, Path(folder), options.isa)
        with aotdyn.load(path, on_miss="error"):
            for kind in ("forward", "forward+backward"):
                model.train(kind != "forward")
                ways = {"eager": model, "torch.compile": torch.compile(model)}
                if kind == "forward":
                    ways["aotinductor"] = _stock(model, x, Path(folder))
                ways["package"] = aotdyn.compile(model)
                calls = {way: runs(model, call, x)[kind] for way, call in ways.items()}
                _show(name, kind, in_turns(calls, options.seconds))
                torch._dynamo.reset()


def _packed(model: nn.Module, x: torch.Tensor, folder: Path, isa: str) -> Path:
    recording, path = folder / "a.rec", folder / "a.pkg"
    with aotdyn.record(recording):
        recorded = aotdyn.compile(model)
        for kind, run in runs(model, recorded, x).items():
            model.train(kind != "forward")
            run()
    print(aotdyn.pack([recording], path, ["cpu"], {"isas": [isa]} if isa else {}), flush=True)
    return path


def _stock(model: nn.Module, x: torch.Tensor, folder: Path) -> Callable:
    with torch.no_grad():
        program = torch.export.export(model, (x,))
        path = torch._inductor.aoti_compile_and_package(
            program, package_path=str(folder / "stock.pt2")
        )
    return torch._inductor.aoti_load_package(path, run_single_threaded=True)


def _show(name: str, kind: str, times: dict[str, tuple[float, float]]) -> None:
    parts = [f"{way} {least:.1f} ({middle:.1f})" for way, (least, middle) in times.items()]
    own, ratios = times["package"], []
    for way, (least, middle) in times.items():
        if way != "package":
            ratios.append(f"{way} {least / own[0]:.2f}x ({middle / own[1]:.2f}x)")
    print(f"{name} {kind}, least (median) us: {', '.join(parts)}\n"
          f"    the package is faster than {', '.join(ratios)}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", default="", help="the one ISA to compile for; all by default")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each line")
    parser.add_argument("names", nargs="*", default=list(MODELS), metavar="NAME")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.names:
        measure(name, options)


if __name__ == "__main__":
    main()
