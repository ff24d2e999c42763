"""torch's compiler API inside `aotdyn record` and `aotdyn run` is ours, and is restored."""

import subprocess
import sys

import torch

from aotdyn.runtime.compiled import CompiledModule
from aotdyn.runtime.patch import patched
from aotdyn.runtime.settings import all_settings


def test_torch_compile_is_ours_inside():
    before = torch.compile, torch.compiler.disable, torch.nn.Module.__call__
    with patched(roots=True):
        module = torch.compile(torch.nn.Linear(2, 2), backend="eager")
        assert isinstance(module, CompiledModule)

        @torch.compile(fullgraph=True, backend="eager")
        def fn(x):
            return x + 1

        assert fn(torch.ones(1)).item() == 2
        assert torch.compile(fn, disable=True) is fn
    assert (torch.compile, torch.compiler.disable, torch.nn.Module.__call__) == before


def test_disable_and_break_markers():
    with patched():

        @torch.compiler.disable
        def shown(x):
            return x * 2

        @torch.compiler.disable(recursive=False)
        def other(x):
            return x * 3

        @torch.compile(backend="eager")
        def fn(x):
            return shown(x) + other(x)

        assert fn(torch.ones(1)).item() == 5


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        print("shown")
        return self.inner(x)


def test_outermost_modules_are_entries():
    module = Outer()
    known = {id(s) for s in all_settings()}
    with patched(roots=True):
        x = torch.ones(1, 2)
        assert torch.equal(module(x), module.inner(x))
    new = [s for s in all_settings() if id(s) not in known]
    entries = {e.key.qualname for s in new for e in s.entries() if e.linked}
    assert "Outer.forward" in entries


PROGRAM = """
import sys
import torch
from aotdyn.runtime.patch import patched

with patched():
    p = torch.nn.Parameter(torch.ones(3))
    torch._dynamo.mark_dynamic(torch.ones(4, 4), 0)
    torch._dynamo.graph_break()
    for make in (torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop):
        optimizer = make([p], lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        for _ in range(2):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
            schedule.step()
        optimizer.load_state_dict(optimizer.state_dict())
print(p.tolist(), "torch._dynamo" in sys.modules)
"""


def test_markers_and_optimizers_leave_dynamo_out():
    plain = PROGRAM.replace("with patched():", "if True:").replace("torch._dynamo.", "0 and ")
    plain = plain.replace("0 and mark_dynamic(torch.ones(4, 4), 0)", "0").replace(
        "0 and graph_break()", "0"
    )
    outputs = []
    for text in (PROGRAM, plain):
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.split("]"))
    assert outputs[0][0] == outputs[1][0]
    assert outputs[0][1].strip() == "False"
