"""Packs a registry of models for the target `cpu` and serves each in a fresh process:

    python benchmarks/models_cpu.py --registry DIR --json FILE [--training] [--isa ISA] [NAME ...]

Each model is recorded at the first two of SHAPES and served at all three, without gradients or,
with --training, in training mode with those of all parameters. It must equal eager within the
tolerance of each dtype, without a miss. DIR holds `models.py` with REG (see benchmarks/models.py).
Steps are processes of their own with a time limit. Rows that FILE has are not made again unless
named; what it says of each: how every graph was compiled and why not better.
"""

import argparse
import copy
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from models import call, same
from torch import nn

SHAPES = ((2, 16), (3, 24), (4, 32))
RECORDED = 2

# dtype -> (relative, absolute for values of size one)
TOLERANCES = {
    torch.float64: (1e-7, 1e-9),
    torch.float32: (2e-3, 2e-4),
    torch.float16: (2e-2, 1e-2),
    torch.bfloat16: (5e-2, 3e-2),
    torch.complex64: (2e-3, 2e-4),
}


@dataclass
class Row:
    """What came of one model. equal: by shape; misses: over the recorded shapes, and the one that
    was not. ways: of each graph, the way and the reason for no better one. ran_eagerly: how many
    graphs ran eagerly in some call. cpu_s: of packing, children included."""

    name: str
    training: bool
    equal: list[str] = field(default_factory=list)
    misses: int = -1
    misses_unseen: int = -1
    ways: list[tuple[str, str]] = field(default_factory=list)
    ran_eagerly: int = 0
    size: int = 0
    cpu_s: float = 0.0
    error: str = ""

    @property
    def right(self) -> bool:
        """Whether everything is as it has to be."""
        return not self.error and not self.misses and all(each == "" for each in self.equal)


def main() -> None:
    args = _arguments()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("AOTDYN_STRICT", "1")
    warnings.filterwarnings("ignore")
    if args.step:
        STEPS[args.step](args, args.names[0], Path(args.folder))
        return
    rows = _read(args.json)
    named = bool(args.names)
    for name in args.names or _registry(args.registry):
        key = f"{name}{' training' if args.training else ''}"
        if named or key not in rows:
            rows[key] = measure(name, args)
            Path(args.json).write_text(json.dumps([asdict(r) for r in rows.values()], indent=1))
        show(rows[key])
    summarize([row for row in rows.values() if row.training == args.training])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="models of the registry; all by default")
    parser.add_argument("--registry", required=True, help="the folder that holds models.py")
    parser.add_argument("--json", required=True, help="the file that the rows are kept in")
    parser.add_argument("--training", action="store_true", help="training mode, with gradients")
    parser.add_argument("--isa", default=_isa(), help="the one ISA to compile for")
    parser.add_argument("--limit", type=int, default=900, help="seconds for each step")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    return parser.parse_args()


def _isa() -> str:
    found = torch.backends.cpu.get_cpu_capability()
    return {"AVX512": "avx512", "AVX2": "avx2"}.get(found, "scalar")


def _read(path: str) -> dict[str, Row]:
    if not Path(path).exists():
        return {}
    rows = [Row(**data) for data in json.loads(Path(path).read_text())]
    return {f"{row.name}{' training' if row.training else ''}": row for row in rows}


def _registry(folder: str) -> dict[str, Any]:
    """REG of the registry, imported under a name of its own."""
    if "registry" not in sys.modules:
        spec = importlib.util.spec_from_file_location("registry", Path(folder) / "models.py")
        sys.modules["registry"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["registry"])
    return sys.modules["registry"].REG


# -- one model -----------------------------------------------------------------------------------


def measure(name: str, args: argparse.Namespace) -> Row:
    """Records, packs and serves one model, each in a process."""
    row = Row(name, args.training)
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            before = _children_seconds()
            command = [
                sys.executable, __file__, "--registry", args.registry, "--json", args.json,
                "--isa", args.isa, "--step", step, "--folder", folder, name,
                *(["--training"] if args.training else []),
            ]  # fmt: skip
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=args.limit)
            except subprocess.TimeoutExpired:
                row.error = f"{step}: more than {args.limit} s"
                return row
            if done.returncode:
                lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
                row.error = f"{step}: {lines[-1][:300]}"
                return row
            if step == "pack":
                row.cpu_s = round(_children_seconds() - before, 1)
            found = Path(folder) / f"{step}.json"
            for field_name, value in json.loads(found.read_text()).items():
                setattr(row, field_name, value)
    return row


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _model(args: argparse.Namespace, name: str) -> tuple[nn.Module, Any]:
    entry = _registry(args.registry)[name]
    torch.manual_seed(0)
    model = entry.make_model().train(args.training)
    with torch.no_grad():
        call(model, entry.make_inputs(*SHAPES[0]), model, False)  # makes what is made lazily
    return model, entry


def record(args: argparse.Namespace, name: str, folder: Path) -> None:
    import aotdyn

    model, entry = _model(args, name)
    with aotdyn.record(folder / "a.rec"):
        recorded = aotdyn.compile(model)
        for shape in SHAPES[:RECORDED]:
            call(recorded, entry.make_inputs(*shape), model, args.training)
    (folder / "record.json").write_text("{}")


def pack(args: argparse.Namespace, name: str, folder: Path) -> None:
    import aotdyn
    from aotdyn.package.archive import PackageFile

    path = folder / "a.pkg"
    aotdyn.pack([folder / "a.rec"], path, ["cpu"], {"isas": [args.isa]})
    with PackageFile.open(path) as file:
        notes = [
            file.artifact(id, "cpu").notes if "cpu" in file.artifacts(id) else {}
            for id in file.graphs
        ]
    ways = [(each.get("way", "eager"), each.get("why", "")) for each in notes]
    found = {"ways": ways, "size": path.stat().st_size}
    (folder / "pack.json").write_text(json.dumps(found))


def serve(args: argparse.Namespace, name: str, folder: Path) -> None:
    import aotdyn
    from aotdyn.runtime import package as runtime

    eager_graphs, link_text = [], runtime.link_text
    runtime.link_text = lambda *args: eager_graphs.append(1) or link_text(*args)
    model, entry = _model(args, name)
    equal, misses = [], []
    with aotdyn.load(folder / "a.pkg", on_miss="eager") as package:
        served = aotdyn.compile(model)
        for shape in SHAPES:
            inputs, before = entry.make_inputs(*shape), copy.deepcopy(model)
            expected = call(before, copy.deepcopy(inputs), before, args.training)
            actual = call(served, copy.deepcopy(inputs), model, args.training)
            equal.append(difference(expected, actual) or _buffers_differ(before, model))
            misses.append(package.stats().misses)
    found = {
        "equal": equal,
        "misses": misses[RECORDED - 1],
        "misses_unseen": misses[-1] - misses[RECORDED - 1],
        "ran_eagerly": len(eager_graphs),
    }
    (folder / "serve.json").write_text(json.dumps(found))


STEPS = {"record": record, "pack": pack, "serve": serve}


# -- comparing -----------------------------------------------------------------------------------


def difference(expected: tuple[Any, Any], actual: tuple[Any, Any]) -> str:
    """How results and gradients differ beyond the tolerance, "" if they do not."""
    said: list[str] = []

    def close(a: torch.Tensor, b: torch.Tensor) -> bool:
        return _close(a, b, _size(a), said)

    if not same(expected[0], actual[0], close):
        return f"result: {said[-1] if said else 'another structure'}"
    gradients, others = expected[1] or {}, actual[1] or {}
    # A number that is zero but for rounding has the error of what cancels out in it.
    largest = max((_size(g) for g in gradients.values() if g is not None), default=0.0)
    for name, gradient in gradients.items():
        other = others[name]
        if gradient is None and other is None:
            continue
        # One that was not asked for may come as zeros, as with torch.compile.
        gradient = torch.zeros_like(other) if gradient is None else gradient
        other = torch.zeros_like(gradient) if other is None else other
        if not _close(gradient, other, max(_size(gradient), largest / 100), said):
            return f"gradient of {name}: {said[-1]}"
    return ""


def _buffers_differ(expected: nn.Module, actual: nn.Module) -> str:
    said: list[str] = []
    others = dict(actual.named_buffers())
    for name, buffer in expected.named_buffers():
        if not _close(buffer, others[name], _size(buffer), said):
            return f"buffer {name}: {said[-1]}"
    return ""


def _size(tensor: torch.Tensor) -> float:
    if not tensor.numel() or not (tensor.is_floating_point() or tensor.is_complex()):
        return 0.0
    finite = tensor.detach()[torch.isfinite(tensor.detach())]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _close(a: torch.Tensor, b: torch.Tensor, size: float, said: list[str]) -> bool:
    tolerance = TOLERANCES.get(a.dtype)
    if tolerance is None:
        found = torch.equal(a, b)
    else:
        relative, absolute = tolerance[0], tolerance[1] * size
        found = torch.allclose(b, a, relative, absolute, equal_nan=True)
    if not found:
        said.append(f"differs by {float((a.detach().to(b.dtype) - b.detach()).abs().max()):.2e} "
                    f"of {size:.2e}")  # fmt: skip
    return found


# -- showing -------------------------------------------------------------------------------------


def show(row: Row) -> None:
    own = sum(way == "container" for way, _ in row.ways)
    state = "ERROR" if row.error else "ok" if row.right else "WRONG"
    print(f"{row.name:22} {state:5} {own:3} of {len(row.ways):3} graphs, misses {row.misses} "
          f"(unseen shape {row.misses_unseen}), ran eagerly {row.ran_eagerly}, "
          f"{row.cpu_s:6.1f} s cpu, {row.size / 1024:7.0f} KB", flush=True)  # fmt: skip
    for line in (row.error, *row.equal, *(f"{way}: {why}" for way, why in row.ways if why)):
        if line:
            print(f"    {line}", flush=True)


def summarize(rows: list[Row]) -> None:
    ways = [way for row in rows for way, _ in row.ways]
    own = sum(way == "container" for way in ways)
    print(f"{sum(row.right for row in rows)} of {len(rows)} models right; {own} of {len(ways)} "
          f"graphs ({100 * own / max(1, len(ways)):.1f} %) by the own container; "
          f"{sum(row.cpu_s for row in rows) / max(1, len(ways)):.1f} s cpu per graph")  # fmt: skip


if __name__ == "__main__":
    main()
