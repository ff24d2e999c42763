"""Changes one thing at a time in models that were recorded, and compares what the package serves
with plain Python. Slow, so a command and no test:

    python -m tests.record.mutate_models --registry DIR [--sample N] [--grad] [--in-place]
        [NAME ...]

DIR holds `models.py`, which defines REG[name] with `make_model()` and `make_inputs(batch, seq)`.
--in-place: every call is of the same objects, so that what guards remember of them counts.
Models that ask whether they are compiled and then compute by another algorithm, as mamba does, give
other last bits whatever is changed, and cannot be judged.
"""

import argparse
import importlib
import os
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
import torch

import aotdyn
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.record.mutations import always_by_version, changes, stale


def call(model, inputs):
    return model(**inputs)


def check(name: str, entry, sample: int, in_place: bool) -> list[str]:
    """The changes to a model that its package does not notice."""
    torch.manual_seed(0)
    args = [entry.make_model(), entry.make_inputs(2, 16)]
    with tempfile.TemporaryDirectory() as folder:
        recording, package = Path(folder) / "rec", Path(folder) / "pkg"
        with aotdyn.record(recording):
            compiled(call, Settings("eager"))(*args)
        try:
            aotdyn.pack([recording], package)
        except aotdyn.AotdynError as error:
            print(f"{name:24} not packed: {error}", flush=True)
            return []
        with aotdyn.load(package, on_miss="eager") as loaded:
            served = compiled(call, Settings("eager"))
            found = stale(call, served, args, changes(args, sample), in_place)
            stats = loaded.stats()
    print(f"{name:24} {stats.hits} hits, {stats.misses} misses, {len(found)} stale", flush=True)
    for line in found:
        print(f"    {line}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--registry", required=True)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.in_place:
        always_by_version(pytest.MonkeyPatch())
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    warnings.filterwarnings("ignore")
    sys.path.insert(0, args.registry)
    registry = importlib.import_module("models").REG
    torch.set_grad_enabled(args.grad)
    found = [line for name in args.names or registry
             for line in check(name, registry[name], args.sample, args.in_place)]  # fmt: skip
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
