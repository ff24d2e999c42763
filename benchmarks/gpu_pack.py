"""What packing costs for each GPU architecture: seconds per graph, kernels and their bytes.

    python benchmarks/gpu_pack.py [--target TARGET ...] [NAME ...]

The programs are those of tests/package/compilers/gpu_graphs.py, one of each kind unless named. They
are recorded once, for an emulated GPU, and packed with empty caches but for the precompiled headers
and the library that stands for the device, which a machine makes once. CPU seconds are those of
packing and all its children, wall seconds those of two workers side by side.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aotdyn.package.archive import PackageFile
from aotdyn.package.compilers.gpu.architectures import ARCHITECTURES
from aotdyn.package.launch import code_file
from aotdyn.package.plan import plan_from_bytes

ROOT = Path(__file__).resolve().parents[1]
NAMES = (
    "pointwise", "softmax", "reductions", "mlp", "flash", "conv_norm", "cross_entropy",
    "dynamic_batch", "own_tuned",
)  # fmt: skip

# Nothing compiled is taken from the cache or kept.
PACK = """
import sys
import aotdyn
from aotdyn.package.compilers.cache import Cache
found = Cache.get
Cache.get = lambda self, kind, key: None if kind == "lowered" else found(self, kind, key)
recording, package, target = sys.argv[1:]
aotdyn.pack([recording], package, [target])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", action="append", default=[], choices=list(ARCHITECTURES))
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    options = parser.parse_args()
    targets = options.target or list(ARCHITECTURES)
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "a.rec"
        module = "tests.package.compilers.gpu_graphs"
        _python("-m", "aotdyn", "record", "--device", targets[0], "-o", recording, "-m", module,
                *options.names)  # fmt: skip
        print("target         graphs  kernels  cpu s/graph  wall s/graph  bytes: least, mean, most")
        for target in targets:
            print(measured(recording, target, Path(folder) / target.replace(":", "-")), flush=True)


def measured(recording: Path, target: str, folder: Path) -> str:
    """The line of one architecture."""
    folder.mkdir()
    package = folder / "a.pkg"
    kept = {name: str(folder / name) for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
    before, start = _children(), time.perf_counter()
    _python("-c", PACK, recording, package, target, environment=kept)
    wall, cpu = time.perf_counter() - start, _children() - before
    graphs, sizes = 0, []
    with PackageFile.open(package) as file:
        for id in file.graphs:
            artifact = file.artifact(id, target)
            if artifact.notes.get("way") == "triton":
                graphs += 1
                launches = plan_from_bytes(artifact.files["plan"]).launches
                sizes += [len(artifact.files[code_file(launch.name)]) for launch in launches]
    mean = sum(sizes) // len(sizes)
    return (
        f"{target:14} {graphs:6}  {len(sizes):7}  {cpu / graphs:11.1f}  {wall / graphs:12.1f}  "
        f"{min(sizes)}, {mean}, {max(sizes)}"
    )


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _python(*words: object, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env={**os.environ, **(environment or {}), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr[-3000:])


if __name__ == "__main__":
    main()
