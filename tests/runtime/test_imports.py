"""The promise of the runtime: serving a package imports nothing of the compiler or the tracer."""

import json
import subprocess
import sys
import textwrap

FORBIDDEN = (
    "torch._dynamo",
    "torch._inductor",
    "torch._functorch.aot_autograd",
    "sympy",
    "torch.fx.experimental.symbolic_shapes",
    "triton",
    "aotdyn.record",
)

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.inner(x).relu()
        print("between")
        return helper(y) + 1

def helper(y):
    if y.sum() > 1e9:
        return y
    return y * 2
"""

PROGRAM = """
import json, sys
import torch, aotdyn
from model import Net

torch.manual_seed(0)
net = Net()
if sys.argv[1] == "record":
    with aotdyn.record("it.rec"):
        compiled = aotdyn.compile(net, backend="eager")
        for n in (3, 5):
            compiled(torch.ones(n, 4)).sum().backward()
            with torch.no_grad():
                compiled(torch.ones(n, 4))
    aotdyn.pack("it.rec", "it.pkg")
else:
    package = aotdyn.load("it.pkg", on_miss="error")
    compiled = aotdyn.compile(net)
    for n in (3, 5, 7):
        compiled(torch.ones(n, 4)).sum().backward()
        with torch.no_grad():
            compiled(torch.ones(n, 4))
    stats = package.stats()
    print(json.dumps([sorted(sys.modules), stats.misses, stats.hits]))
"""


def run(folder, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "program.py", *args], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_serving_imports_neither_compiler_nor_tracer(tmp_path):
    (tmp_path / "model.py").write_text(textwrap.dedent(MODEL))
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    run(tmp_path, "record")
    last = run(tmp_path, "serve").splitlines()[-1]
    modules, misses, hits = json.loads(last)
    assert misses == 0
    assert hits > 0
    inside = tuple(f"{name}." for name in FORBIDDEN)
    loaded = [m for m in modules if m in FORBIDDEN or m.startswith(inside)]
    assert loaded == []


def test_import_alone_is_light(tmp_path):
    text = "import sys, aotdyn; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert not [m for m in modules if m in FORBIDDEN]
    assert "click" not in modules
