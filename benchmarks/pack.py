"""CPU seconds per graph and size of a package against a cold `torch.compile` of the same graphs.

    python benchmarks/pack.py [--isa ISA ...] [NAME ...]     the models of benchmarks/serve.py

Each model's forward without gradients and its forward and backward in training: two graphs, of
which the second has a backward. Every way is a fresh process with empty caches; CPU seconds are
those of the process and all its children: for packing all of them, for torch.compile less those of
a process that runs the same eagerly. Packing is measured with and without its precompiled headers,
which a machine makes once.

With `--isa avx2`, on a busy machine with two cores: mlp 19.6 s per graph and 355 KB, torch.compile
19.8 s and 1444 KB (28.8 s where the headers are not there yet); block 14.2 s and 226 KB,
torch.compile 16.5 s and 1317 KB (23.8 s).
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import serve
import torch

import aotdyn

GRAPHS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--isa", action="append", default=[], help="to compile for; all by default")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", default=["mlp", "block"], metavar="NAME")
    options = parser.parse_args()
    if options.step:
        STEPS[options.step](options.names[0], options.isa)
        return
    for name in options.names:
        measure(name, options.isa)


def measure(name: str, isas: Sequence[str]) -> None:
    """Prints the lines of one model."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        eager = _cpu_seconds(name, "eager", isas, folder)
        theirs = _cpu_seconds(name, "compile", isas, folder) - eager
        size = sum(p.stat().st_size for p in (Path(folder) / "inductor").rglob("*") if p.is_file()
                   and p.suffix not in (".gch", ".pch"))  # fmt: skip
        _show(name, "torch.compile, cold", theirs, size)
        _cpu_seconds(name, "record", isas, folder)
        package = Path(folder) / "a.pkg"
        first = _cpu_seconds(name, "pack", isas, folder)
        _show(name, "package, no headers yet", first, package.stat().st_size, theirs)
        for kept in cache.iterdir():
            if kept.name != "headers":
                shutil.rmtree(kept)
        again = _cpu_seconds(name, "pack", isas, folder)
        _show(name, "package", again, package.stat().st_size, theirs)


def _show(name: str, way: str, seconds: float, size: int, theirs: float | None = None) -> None:
    ratio = "" if theirs is None else f", {seconds / theirs:.2f} of torch.compile's"
    print(f"{name:6} {way:24} {seconds / GRAPHS:7.1f} s cpu per graph{ratio}, "
          f"{size / 1024:.0f} KB", flush=True)  # fmt: skip


def _cpu_seconds(name: str, step: str, isas: Sequence[str], folder: str) -> float:
    """Of a process and all its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    flags = [part for isa in isas for part in ("--isa", isa)]
    subprocess.run(
        [sys.executable, os.path.abspath(__file__), "--step", step, *flags, name],
        cwd=folder,
        env={
            **os.environ,
            "AOTDYN_CACHE": f"{folder}/cache",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "PYTHONDONTWRITEBYTECODE": "",  # modules are compiled once, as installed ones
        },
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _run(name: str, way) -> None:
    """Both computations of a model, once."""
    torch.manual_seed(0)
    model, x = serve.MODELS[name]()
    call = way(model)
    for kind, run in serve.runs(model, call, x).items():
        model.train(kind != "forward")
        run()


def _record(name: str, isas: Sequence[str]) -> None:
    with aotdyn.record("a.rec"):
        _run(name, aotdyn.compile)


def _pack(name: str, isas: Sequence[str]) -> None:
    aotdyn.pack(["a.rec"], "a.pkg", ["cpu"], {"isas": isas} if isas else {})


STEPS = {
    "eager": lambda name, isas: _run(name, lambda model: model),
    "compile": lambda name, isas: _run(name, torch.compile),
    "record": _record,
    "pack": _pack,
}

if __name__ == "__main__":
    main()
