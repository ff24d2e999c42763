"""Seconds from a fresh process to the first result, and how many modules are imported, in one run.

    python benchmarks/coldstart.py

A small transformer encoder; eager, torch.compile with cold and with warm caches, and a package.
`import torch` is not counted: the clock starts behind it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUN = """
import sys, time, json, torch
from torch import nn
start = time.perf_counter()
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
seconds = time.perf_counter() - start
print(json.dumps([seconds, len(sys.modules) - before, float(result.sum())]))
"""


def run(script: Path, way: str, path: Path, cache: Path) -> tuple[float, int, float]:
    """Seconds, modules, and the result's sum."""
    done = subprocess.run(
        [sys.executable, str(script), way, str(path)],
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    import aotdyn

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script, recording, package = folder / "run.py", folder / "a.rec", folder / "a.pkg"
        script.write_text(RUN)
        run(script, "record", recording, folder)
        print(aotdyn.pack([recording], package, ["cpu"]))
        cache = folder / "inductor"
        rows = [
            ("eager", "eager"),
            ("torch.compile, cold", "compile"),
            ("torch.compile, warm", "compile"),
            ("package", "serve"),
        ]
        for title, way in rows:
            repeats = 1 if "cold" in title else 3
            best = min(run(script, way, package, cache) for _ in range(repeats))
            seconds, modules, total = best
            print(f"{title:22} {seconds:8.3f} s  {modules:5} modules  sum {total:.4f}", flush=True)


if __name__ == "__main__":
    main()
