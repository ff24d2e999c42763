"""Time from a fresh process to the first result, and how many modules are imported, in one run.

    python benchmarks/coldstart.py [--isa ISA] [--repeats N]

A small transformer encoder; eager, torch.compile with cold and with warm caches, and a package.
`import torch` is not counted: the clock starts behind it. Seconds and CPU seconds of one thread,
the least of several processes each; on a machine that does other work the CPU seconds tell more.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUN = """
import sys, time, json
before = time.process_time()
import torch
torch_seconds = time.process_time() - before
from torch import nn
torch.set_num_threads(1)
start, start_cpu = time.perf_counter(), time.process_time()
before = len(sys.modules)
torch.manual_seed(0)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 64)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64), nn.LayerNorm(64))
            for _ in range(4))
    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            q = x.unflatten(-1, (4, 16)).transpose(1, 2)
            y = nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(2)
            x = layer(x + y)
        return x
model, ids = Model().eval(), torch.arange(32).view(2, 16)
way, path = sys.argv[1:]
with torch.no_grad():
    if way == "compile":
        result = torch.compile(model)(ids)
    elif way == "eager":
        result = model(ids)
    else:
        import aotdyn
        if way == "record":
            with aotdyn.record(path):
                result = aotdyn.compile(model)(ids)
        else:
            package = aotdyn.load(path, on_miss="error")
            result = aotdyn.compile(model)(ids)
cpu, seconds = time.process_time() - start_cpu, time.perf_counter() - start
print(json.dumps([cpu, seconds, len(sys.modules) - before, torch_seconds, float(result.sum())]))
"""


def run(script: Path, way: str, path: Path, cache: Path) -> list[float]:
    """CPU seconds, seconds, modules, CPU seconds of `import torch`, and the result's sum."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as installed ones
    done = subprocess.run(
        [sys.executable, str(script), way, str(path)],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--isa", default="", help="the one ISA to compile for; all by default")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    import aotdyn

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script, recording, package = folder / "run.py", folder / "a.rec", folder / "a.pkg"
        script.write_text(RUN)
        run(script, "record", recording, folder)
        print(aotdyn.pack([recording], package, ["cpu"], {"isas": [args.isa]} if args.isa else {}))
        cache = folder / "inductor"
        rows = [
            ("torch.compile, cold", "compile", 1),
            ("torch.compile, warm", "compile", min(2, args.repeats)),
            ("eager", "eager", args.repeats),
            ("package", "serve", args.repeats),
        ]
        for title, way, repeats in rows:
            found = [run(script, way, package, cache) for _ in range(repeats)]
            cpu, seconds, torch_seconds = (min(r[i] for r in found) for i in (0, 1, 3))
            print(f"{title:20} {cpu:7.3f} s cpu {seconds:7.3f} s  {found[0][2]:5} modules  "
                  f"(import torch {torch_seconds:.2f} s cpu, sum {found[0][4]:.4f})",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
