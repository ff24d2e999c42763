"""Seconds to trace a program next to torch's own tracer, both with the eager backend:

    python benchmarks/trace.py [--registry DIR] [--turns N] [--json FILE] [NAME ...]

A first call traces and runs; both tracers make it in turns, in one process, after each has traced
something else, and the least CPU time counts. DIR as in `benchmarks/models.py`; without it only the
small programs are measured.
"""

import argparse
import importlib
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torch._dynamo
from torch import nn

import aotdyn


class Block(nn.Module):
    """A layer as models have them."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first, self.second = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.dropout(self.second(torch.relu(self.first(self.norm(x)))))


class Stack(nn.Module):
    """Twelve blocks."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(8) for _ in range(12))

    def forward(self, x, scales=None):
        for index, block in enumerate(self.blocks):
            x = block(x) * (1.0 if scales is None else scales[index])
        return {"last": x, "mean": x.mean()}


def arithmetic(x, y):
    z = (x - y) ** 2
    return z.sum() / max(1, x.dim())


def containers(x, names):
    found = {name: x * index for index, name in enumerate(names)}
    pairs = sorted(found.items(), key=lambda item: item[0])
    return torch.stack([value for _, value in pairs]), [name.upper() for name, _ in pairs]


def loop(x):
    total = x
    for index in range(200):
        total = total + index if index % 3 else total * 0.5
    return total


def python_loop(x):
    squares = [i * i for i in range(2000) if i % 7]
    return x + sum(squares) % 5


def control(x, limit):
    try:
        if limit > 3:
            raise ValueError(limit)
        scale = 1
    except ValueError as error:
        scale = error.args[0]
    with torch.no_grad():
        return x * scale


def broken(x):
    y = x + 1
    print("", end="")
    z = y * 2
    print("", end="")
    return z - x


Call = tuple[Callable, tuple, dict]


def small() -> dict[str, Call]:
    """name -> (callable, arguments)."""
    x = torch.ones(4, 8)
    return {
        "arithmetic": (arithmetic, (x, x.clone()), {}),
        "containers": (containers, (x, ["b", "a", "c"]), {}),
        "200 turns of tensors": (loop, (x,), {}),
        "2000 turns of Python": (python_loop, (x,), {}),
        "exception and context": (control, (x, 5), {}),
        "two breaks": (broken, (x,), {}),
        "12 blocks": (Stack().eval(), (x,), {}),
    }


def models(folder: str, names: list[str]) -> dict[str, Call]:
    """Models of a registry."""
    sys.path.insert(0, folder)
    registry = importlib.import_module("models").REG
    found = {}
    for name in names or registry:
        torch.manual_seed(0)
        entry = registry[name]
        found[name] = (entry.make_model(), (), entry.make_inputs(2, 16))
    return found


def ours(call: Call) -> Callable:
    aotdyn.reset()
    return aotdyn.compile(call[0], backend="eager")


def theirs(call: Call) -> Callable:
    torch._dynamo.reset()
    return torch.compile(call[0], backend="eager")


def seconds(make: Callable[[Call], Callable], call: Call) -> float:
    """CPU time of a first call."""
    compiled = make(call)
    start = time.process_time()
    compiled(*call[1], **call[2])
    return time.process_time() - start


def measure(call: Call, turns: int) -> tuple[float, float]:
    """The least CPU time of both."""
    call[0](*call[1], **call[2])
    pairs = [(seconds(ours, call), seconds(theirs, call)) for _ in range(turns)]
    mine, other = zip(*pairs)
    return min(mine), min(other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="models of the registry; all by default")
    parser.add_argument("--registry", help="the folder that holds models.py")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", help="a file to write the rows to")
    args = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    calls = small()
    if args.registry:
        calls |= models(args.registry, args.names)
    rows = {}
    with torch.no_grad():
        warm = (nn.Sequential(nn.Linear(8, 8), nn.ReLU()), (torch.ones(2, 8),), {})
        seconds(ours, warm), seconds(theirs, warm)
        print(f"{'program':24}{'aotdyn':>9}{'torch':>9}  ratio   (seconds of CPU)")
        for name, call in calls.items():
            mine, other = rows[name] = measure(call, args.turns)
            print(f"{name:24}{mine:9.3f}{other:9.3f}{mine / other:7.2f}", flush=True)
    mine, other = map(sum, zip(*rows.values()))
    mean = math.exp(sum(math.log(a / b) for a, b in rows.values()) / len(rows))
    print(f"{'all':24}{mine:9.3f}{other:9.3f}{mean:7.2f}   (geometric mean)")
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
