"""The cost of guards: one call's checks, in microseconds and as a ratio to torch.compile's.

    python benchmarks/guards.py            both; --ours leaves torch.compile out

Graphs are replaced by a constant in both, so that what is measured is what a call costs besides
its computation. Times are the least of several repetitions.
"""

import sys
import time
from collections.abc import Callable

import torch
from torch import nn

import aotdyn
from aotdyn.runtime.settings import all_settings


class Layers(nn.Module):
    """202 modules with 300 parameters: the model itself, a container, 100 pairs of layers."""

    def __init__(self):
        super().__init__()
        layers: list[nn.Module] = []
        for index in range(100):
            layers += [nn.Linear(4, 4), nn.PReLU(4) if index < 100 else nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


def small(x, y, n):
    return x * n + y


def cases() -> dict[str, tuple[Callable, tuple]]:
    """name -> (callable, arguments)."""
    x = torch.ones(4, 4)
    return {
        "300 parameters, 202 modules": (Layers(), (x,)),
        "two tensors and an int": (small, (x, x.clone(), 3)),
    }


def constant(graph, inputs):
    """A backend that computes nothing."""
    results = graph(*inputs)
    return lambda *args: results


def microseconds(call: Callable[[], object], seconds: float = 1.0) -> float:
    """The least time of a call, in microseconds."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(100):
            call()
        best = min(best, (time.perf_counter() - start) / 100)
    return best * 1e6


def measure(name: str, function: Callable, args: tuple, against: bool) -> None:
    torch.set_grad_enabled(False)
    ours = aotdyn.compile(function, backend=constant)
    ours(*args)
    entry = next(e for s in all_settings() for e in s.entries() if e.linked and _is_of(e, function))
    check = entry.linked[0].check
    values = (function, *args) if isinstance(function, nn.Module) else args
    called, checked = microseconds(lambda: ours(*args)), microseconds(lambda: check(*values))
    line = f"{name}: check {checked:.2f} us, call {called:.2f} us"
    if against:
        theirs = torch.compile(function, backend=constant)
        theirs(*args)
        other = microseconds(lambda: theirs(*args))
        line += f", torch.compile's call {other:.2f} us, ratio {called / other:.2f}"
    print(line)


def _is_of(entry, function: Callable) -> bool:
    target = type(function).forward if isinstance(function, nn.Module) else function
    return entry.code is target.__code__


if __name__ == "__main__":
    for _name, (_function, _args) in cases().items():
        measure(_name, _function, _args, "--ours" not in sys.argv)
