"""A program with kernels of Triton is served where Triton is not installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

SHIFT = tl.constexpr(2)
TYPE = tl.float32

@triton.jit
def doubled(x):
    return x * 2

@triton.autotune(
    configs=[triton.Config({"BLOCK": 16}, num_warps=2)], key=["n"], prune_configs_by=None
)
@triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})
@triton.jit(do_not_specialize=["n"])
def kernel(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, factor: "tl.float32" = 1.0):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, doubled(tl.load(x + at, mask=at < n)).to(TYPE) + SHIFT, mask=at < n)

def program(x):
    out = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out + triton.next_power_of_2(x.numel())

def plain(x):
    return x * triton.cdiv(7, 2)
"""

RECORD = """
import torch, aotdyn, program
with aotdyn.record("a.rec"):
    for each in (program.program, program.plain):
        aotdyn.compile(each)(torch.ones(20))
print(aotdyn.pack("a.rec", "a.pkg"))
"""

SERVE = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "triton" else find(name, *more)
import torch, aotdyn
package = aotdyn.load("a.pkg", on_miss="error", triton_stand_in=True)
import program
print(aotdyn.compile(program.plain)(torch.ones(2)[:1].expand(20).contiguous()).sum().item())
try:
    aotdyn.compile(program.program)(torch.ones(20))
except RuntimeError as error:
    print(error)
print(package.stats().misses, [name for name in sys.modules if name == "torch._inductor"])
"""

MISS = SERVE.replace('on_miss="error"', 'on_miss="jit"').partition("try:")[0] + """
import triton
print(aotdyn.compile(program.plain, backend="eager")(torch.ones(3, 3)).sum().item())
print(package.stats().misses, triton.__version__)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "program.py").write_text(PROGRAM)
    report = run(folder, RECORD, TRITON_INTERPRET="1")
    assert "2 variants" in report and "break" not in report
    return folder


def run(folder: Path, code: str, **environment: str) -> str:
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout


def test_programs_are_served(folder):
    """The variants fit: what they know of the kernels is the same with the stand-in."""
    printed = run(folder, SERVE).splitlines()
    assert printed == [
        "80.0",
        "Triton is not installed: the kernel kernel runs as a part of packaged graphs for its GPU "
        "only",
        "0 []",
    ]


def test_compilers_do_not_see_it(folder):
    assert run(folder, MISS).splitlines() == ["80.0", "36.0", "1 0"]
