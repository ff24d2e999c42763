"""Traces a registry of models with backend="eager" and compares each with plain Python:

    python benchmarks/models.py --registry DIR [--json FILE] [--grad] [--shapes] [--against]
                                [NAME ...]

With `--against` torch.compile, with a backend that only counts, traces the same models after them:
it replaces `Module.__init__` for the process. With `--packages FOLDER` each is packed there as well
(target eager), and a fresh process serves the packages at the same shapes; `--serve FOLDER` does
that alone.

DIR holds `models.py`, which defines REG[name] with `make_model()`, `make_inputs(batch, seq)` and
`group`; a `dynamo.json` next to it, {name: {graphs, ops, breaks, trace_s}}, is shown alongside.
"""

import argparse
import copy
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

import aotdyn
from aotdyn.package.recording import read_recording
from aotdyn.runtime import logs

SHAPES = ((2, 16), (3, 24), (4, 32))


@dataclass
class Row:
    """What came of one model. seconds: CPU time of the first traced call, which traces and runs.
    breaks: the places at which graphs break; broken: the variants that do, which are more where
    several frames lead to a place or meet it again with other values. equal: to the last bit at
    every shape. difference: else the largest one between two numbers,
    where all else is equal (a program that asks `is_compiling()` may take another algorithm)."""

    name: str
    equal: bool = False
    difference: float = 0.0
    graphs: int = 0
    operators: int = 0
    breaks: int = 0
    broken: int = 0
    seconds: float = 0.0
    after_shapes: int = 0
    reasons: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    error: str = ""
    torch: dict[str, Any] = field(default_factory=dict)


def main() -> None:
    args = _arguments()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("AOTDYN_STRICT", "1")
    warnings.filterwarnings("ignore")
    sys.path.insert(0, args.registry)
    registry = importlib.import_module("models").REG
    if args.serve:
        sys.exit(serve(registry, args))
    theirs = _reference(Path(args.registry) / "dynamo.json")
    rows = []
    if args.against:
        _warm_up()
    for name in args.names or registry:
        rows.append(measure(name, registry[name], args))
        if not args.against:
            _print(rows[-1], theirs.get(name), args.verbose)
    for row in rows if args.against else ():
        row.torch = torchs(registry[row.name], args)
        _print(row, row.torch, args.verbose)
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))
    equal, broken = sum(row.equal for row in rows), sum(row.breaks for row in rows)
    print(f"{equal} of {len(rows)} equal, {broken} breaks, "
          f"{sum(row.seconds for row in rows):.1f} s")  # fmt: skip
    if args.against:
        _summary(rows)
    if args.packages:
        command = [sys.executable, __file__, "--registry", args.registry, *args.names,
                   "--serve", args.packages, *(["--shapes"] if args.shapes else [])]  # fmt: skip
        sys.exit(subprocess.run(command, check=False).returncode)


def serve(registry: Any, args: argparse.Namespace) -> int:
    """Serves packages without the tracer; 1 if a result differs or a call is a miss."""
    good = 0
    paths = [path for path in sorted(Path(args.serve).glob("*.pkg"))
             if not args.names or path.stem in args.names]  # fmt: skip
    for path in paths:
        row = Row(path.stem)
        entry = registry[path.stem]
        torch.manual_seed(0)
        model = entry.make_model()
        aotdyn.reset()
        with aotdyn.load(path, on_miss="eager") as package:
            served = aotdyn.compile(model, backend="eager")
            for shape in SHAPES[: 3 if args.shapes else 1]:
                expected, actual = _both(row, model, served, entry, shape, False, False)
                row.equal = same(expected, actual)
                row.difference = max(row.difference, difference(expected, actual))
            stats = package.stats()
        fits = row.equal or row.difference < 1e-5
        good += fits and not stats.misses
        state = "equal" if row.equal else f"{row.difference:.0e}"
        print(f"served {path.stem:22} {state} {stats.misses} misses", flush=True)
    print(f"{good} of {len(paths)} packages served without a miss")
    return int(good < len(paths))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="models of the registry; all by default")
    parser.add_argument("--registry", required=True, help="the folder that holds models.py")
    parser.add_argument("--json", help="a file to write the rows to")
    parser.add_argument("--grad", action="store_true", help="trace under grad mode and compare "
                        "the parameters' gradients")  # fmt: skip
    parser.add_argument("--against", action="store_true", help="trace with torch.compile as well")
    parser.add_argument("--packages", help="a folder to pack the recordings into and serve from")
    parser.add_argument("--serve", help="only serve the packages of a folder")
    parser.add_argument("--shapes", action="store_true", help="also two further shapes")
    parser.add_argument("-v", "--verbose", action="store_true", help="print tracebacks")
    return parser.parse_args()


def _reference(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def measure(name: str, entry: Any, args: argparse.Namespace) -> Row:
    """Traces one model at the first shape, or at all of them, and compares."""
    row = Row(name)
    torch.manual_seed(0)
    model = entry.make_model()
    aotdyn.reset()
    skipped: list[str] = []
    sink = _collect(skipped)
    logs.sinks["graph_breaks"].append(sink)
    path = Path(f"/tmp/aotdyn-models-{os.getpid()}.rec")
    path.unlink(missing_ok=True)
    try:
        with aotdyn.record(path):
            traced = aotdyn.compile(model, backend="eager")
            equal = []
            for index, shape in enumerate(SHAPES[: 3 if args.shapes else 1]):
                first = index == 0
                expected, actual = _both(row, model, traced, entry, shape, args.grad, first)
                equal.append(same(expected, actual))
                row.difference = max(row.difference, difference(expected, actual))
                if index == 0:
                    _count(row, path)
            row.equal = all(equal)
        row.after_shapes = len(read_recording(path).graphs)
        if args.packages:
            folder = Path(args.packages)
            folder.mkdir(exist_ok=True)
            aotdyn.pack([path], folder / f"{name}.pkg")
    except Exception as error:
        row.error = f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}"
        if args.verbose:
            traceback.print_exc()
    finally:
        logs.sinks["graph_breaks"].remove(sink)
        path.unlink(missing_ok=True)
    row.skipped = skipped
    return row


def _warm_up() -> None:
    """What a tracer does once in a process is not the first model's."""
    aotdyn.compile(lambda x: x + 1, backend="eager")(torch.ones(2))


def torchs(entry: Any, args: argparse.Namespace) -> dict[str, Any]:
    """The same of torch's own tracer: graphs, operators and breaks of the first call, its CPU
    time, and the graphs after all shapes."""
    from torch._dynamo.utils import counters

    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    torch._dynamo.reset()
    counters.clear()
    graphs: list[int] = []

    def counting(module: torch.fx.GraphModule, inputs: list) -> Callable:
        nodes = module.graph.nodes
        graphs.append(sum(node.op.startswith("call_") for node in nodes))
        return module.forward

    torch.manual_seed(0)
    model = entry.make_model()
    traced = torch.compile(model, backend=counting)
    found: dict[str, Any] = {}
    try:
        for shape in SHAPES[: 3 if args.shapes else 1]:
            inputs = entry.make_inputs(*shape)
            call(model, copy.deepcopy(inputs), model, args.grad)
            start = time.process_time()
            call(traced, inputs, model, args.grad)
            if not found:
                found = {
                    "graphs": len(graphs), "ops": sum(graphs),
                    "breaks": sum(counters["graph_break"].values()),
                    "trace_s": time.process_time() - start,
                }  # fmt: skip
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return {"graphs": 0, "ops": 0, "breaks": 0, "trace_s": 0.0, "error": lines[0][:200]}
    found["graphs_after_2_more_shapes"] = len(graphs)
    return found


def _summary(rows: list[Row]) -> None:
    """Both tracers, over the models that both have traced."""
    both = [row for row in rows if not row.error and not row.torch.get("error")]
    mine, theirs = sum(r.seconds for r in both), sum(r.torch["trace_s"] for r in both)
    worse = [row.name for row in both if row.breaks > row.torch["breaks"]]
    slower = [row.name for row in both if row.seconds > row.torch["trace_s"]]
    print(f"{len(both)} models: {mine:.1f} s, torch.compile {theirs:.1f} s, ratio "
          f"{mine / theirs:.2f}; {sum(r.breaks for r in both)} breaks, torch.compile "
          f"{sum(r.torch['breaks'] for r in both)}")  # fmt: skip
    print(f"more breaks: {', '.join(worse) or 'none'}; slower: {', '.join(slower) or 'none'}")


def _collect(skipped: list[str]):
    def sink(text: str) -> None:
        if "runs as plain Python" in text:
            skipped.append(text)

    return sink


def _both(row: Row, model, traced, entry, shape, grad: bool, first: bool) -> tuple[Any, Any]:
    """What one call gives each way from the same state."""
    inputs = entry.make_inputs(*shape)
    call(model, copy.deepcopy(inputs), model, grad)  # makes what is made lazily
    before = copy.deepcopy(model)
    expected = call(before, copy.deepcopy(inputs), before, grad)
    start = time.process_time()
    actual = call(traced, copy.deepcopy(inputs), model, grad)
    if first:
        row.seconds = time.process_time() - start
    return expected, actual


def call(function, inputs: dict, model, grad: bool) -> Any:
    torch.manual_seed(1)
    with torch.set_grad_enabled(grad):
        result = function(**inputs)
        gradients = _gradients(result, model) if grad else None
    return result, gradients


def _gradients(result: Any, model) -> dict[str, torch.Tensor | None]:
    model.zero_grad()
    total = sum(t.float().sum() for t in _tensors(result) if t.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    return {name: p.grad for name, p in model.named_parameters()}


def difference(expected: Any, actual: Any) -> float:
    """The largest difference between the floating point numbers of two results."""
    pairs = list(zip(_tensors(expected), _tensors(actual)))
    if any(e.shape != a.shape for e, a in pairs):
        return float("inf")
    return max((float((e - a).detach().abs().nan_to_num().max()) for e, a in pairs
                if e.numel()), default=0.0)  # fmt: skip


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for part in value for tensor in _tensors(part)]
    return []


def _identical(expected: torch.Tensor, actual: torch.Tensor) -> bool:
    return torch.equal(expected.detach().nan_to_num(), actual.detach().nan_to_num())


def same(expected: Any, actual: Any, alike: Callable = _identical) -> bool:
    """Equality to the last bit, of types too; objects by what they hold. alike: compares what is
    in two tensors, whose strides may then differ where the size is one, as with Inductor."""
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, torch.Tensor):
        return (
            expected.dtype == actual.dtype
            and expected.shape == actual.shape
            and _strides(expected, alike) == _strides(actual, alike)
            and expected.requires_grad == actual.requires_grad
            and alike(expected, actual)
        )
    if isinstance(expected, dict):
        return list(expected) == list(actual) and all(
            same(value, actual[key], alike) for key, value in expected.items()
        )
    if isinstance(expected, list | tuple):
        return len(expected) == len(actual) and all(
            same(a, b, alike) for a, b in zip(expected, actual)
        )
    if hasattr(expected, "__dict__") and not callable(expected):
        return same(vars(expected), vars(actual), alike)
    return callable(expected) or expected == actual


def _strides(tensor: torch.Tensor, alike: Callable) -> tuple:
    exact = alike is _identical
    return tuple(s for s, n in zip(tensor.stride(), tensor.shape) if exact or n > 1)


def _count(row: Row, path: Path) -> None:
    recording = read_recording(path)
    row.graphs = len(recording.graphs)
    row.operators = sum(len(graph.nodes) for graph in recording.graphs.values())
    causes = [variant.breaks for variant in recording.variants if variant.breaks is not None]
    row.breaks = len({cause.stack[-1:] or row.name for cause in causes})
    row.broken = len(causes)
    row.reasons = [f"{c.reason}: {c.detail} at {c.stack[-1] if c.stack else '?'}" for c in causes]


def _print(row: Row, theirs: dict | None, verbose: bool) -> None:
    other = ""
    if theirs:
        other = (f"  (torch: {theirs['graphs']} graphs {theirs['ops']} ops {theirs['breaks']} "
                 f"breaks {theirs['trace_s']:.2f} s)")  # fmt: skip
    state = "equal" if row.equal else "ERROR" if row.error else f"{row.difference:.0e}"
    print(f"{row.name:22} {state} {row.graphs:3} graphs {row.operators:5} ops {row.breaks:3} "
          f"breaks {row.seconds:6.2f} s {row.after_shapes or '':3}{other}", flush=True)  # fmt: skip
    for line in [*row.reasons, *row.skipped, row.error] if verbose or row.error else ():
        if line:
            print(f"    {line}", flush=True)


if __name__ == "__main__":
    main()
