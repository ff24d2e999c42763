"""The cost of guards: one call's checks, in microseconds and as a ratio to torch.compile's.

    python benchmarks/guards.py            both; --ours leaves torch.compile out

Graphs are replaced by a constant in both, so that what is measured is what a call costs besides
its computation.

On a busy machine with two cores, us a call and ratio: 202 modules 101 (0.44), 25 modules 16.4
(0.39), two tensors and an int 2.0 (0.15).
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
        for _ in range(100):
            layers += [nn.Linear(4, 4), nn.PReLU(4)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


def mlp() -> nn.Module:
    """25 modules with 32 parameters: a container, eight times Linear, GELU and LayerNorm."""
    layers: list[nn.Module] = []
    for _ in range(8):
        layers += [nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)]
    return nn.Sequential(*layers)


def small(x, y, n):
    return x * n + y


def cases() -> dict[str, tuple[Callable, tuple]]:
    """name -> (callable, arguments)."""
    x = torch.ones(4, 4)
    return {
        "300 parameters, 202 modules": (Layers(), (x,)),
        "32 parameters, 25 modules": (mlp(), (torch.ones(8, 64),)),
        "two tensors and an int": (small, (x, x.clone(), 3)),
    }


def constant(graph, inputs):
    """A backend that computes nothing."""
    results = graph(*inputs)
    return lambda *args: results


def microseconds(*calls: Callable[[], object], seconds: float = 6.0) -> list[float]:
    """The least time of each call, in microseconds; measured in turns, so that other work on the
    machine slows all of them."""
    best = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for index, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(20):
                call()
            best[index] = min(best[index], (time.perf_counter() - start) / 20)
    return [each * 1e6 for each in best]


def measure(name: str, function: Callable, args: tuple, against: bool) -> None:
    torch.set_grad_enabled(False)
    ours = aotdyn.compile(function, backend=constant)
    ours(*args)
    entry = next(e for s in all_settings() for e in s.entries() if e.linked and _is_of(e, function))
    check = entry.linked[0].check
    values = (function, *args) if isinstance(function, nn.Module) else args
    calls = [lambda: check(*values), lambda: ours(*args)]
    if against:
        theirs = torch.compile(function, backend=constant)
        theirs(*args)
        calls.append(lambda: theirs(*args))
    times = microseconds(*calls)
    line = f"{name}: check {times[0]:.2f} us, call {times[1]:.2f} us"
    if against:
        line += f", torch.compile's call {times[2]:.2f} us, ratio {times[1] / times[2]:.2f}"
    print(line)


def _is_of(entry, function: Callable) -> bool:
    target = type(function).forward if isinstance(function, nn.Module) else function
    return entry.code is target.__code__


if __name__ == "__main__":
    for _name, (_function, _args) in cases().items():
        measure(_name, _function, _args, "--ours" not in sys.argv)
