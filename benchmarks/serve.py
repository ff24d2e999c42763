"""Microseconds per call of a package's compiled graphs against eager and torch.compile, in one run.

    python benchmarks/serve.py [--threads N] [NAME ...]     mlp, block

Each line is one computation; the last columns say how many times faster the package is. Times are
the least of several repetitions, on one thread unless told otherwise.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import aotdyn


def mlp() -> tuple[nn.Module, torch.Tensor]:
    """Eight layers of Linear, GELU and LayerNorm, width 64, batch 8."""
    layers = [
        layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64))
    ]
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


MODELS = {"mlp": mlp, "block": lambda: (Block(), torch.randn(2, 16, 16, 16))}


def least(function: Callable[[], object], seconds: float = 2.0) -> float:
    """Microseconds of the fastest of many rounds."""
    function(), function()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(20):
            function()
        best = min(best, (time.perf_counter() - start) / 20)
    return best * 1e6


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


def measure(name: str) -> None:
    """Prints the lines of one model."""
    torch.manual_seed(0)
    model, x = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        recording, path = Path(folder) / "a.rec", Path(folder) / "a.pkg"
        with aotdyn.record(recording):
            recorded = aotdyn.compile(model)
            for kind, run in runs(model, recorded, x).items():
                model.train(kind != "forward")
                run()
        print(aotdyn.pack([recording], path, ["cpu"]), flush=True)
        with aotdyn.load(path, on_miss="error"):
            served, compiled = aotdyn.compile(model), torch.compile(model)
            for kind in ("forward", "forward+backward"):
                model.train(kind != "forward")
                eager, jit, ours = (
                    least(runs(model, call, x)[kind]) for call in (model, compiled, served)
                )
                print(
                    f"{name:6} {kind:17} eager {eager:8.1f}  torch.compile {jit:8.1f}  "
                    f"package {ours:8.1f}  {eager / ours:5.2f}x  {jit / ours:5.2f}x",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("names", nargs="*", default=list(MODELS), metavar="NAME")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.names:
        measure(name)


if __name__ == "__main__":
    main()
