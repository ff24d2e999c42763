"""The cpu target on machines and under circumstances that are not those it was packed in: threads,
versions, damage. Never a crash: one line, and the next way
serves."""

import importlib
import json
import os
import subprocess
import sys

import pytest
import torch

import aotdyn
from aotdyn.package.compilers.cpu.isa import runnable_here
from aotdyn.package.errors import Miss
from aotdyn.runtime.artifacts import library
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

pytestmark = pytest.mark.slow

BEST = runnable_here()[-1]

# A module, so that every process knows it under the same name.
PROGRAM = '''
import torch
import torch.nn.functional as F

def reduces(x, w):
    y = x * w
    return y.sum(), y.softmax(-1).amax(0), F.layer_norm(F.gelu(y), (y.shape[1],)).square().mean(1)

def inputs():
    torch.manual_seed(0)
    return torch.randn(300, 700), torch.randn(700, requires_grad=True)

def use(program):
    x, w = inputs()
    found = program(x, w)
    sum((i + 1) * t.sum() for i, t in enumerate(found)).backward()
    return [*(t.detach() for t in found), w.grad]
'''

SERVE = '''
import json, sys
import torch, aotdyn
from aotdyn_test_program import reduces, use
from aotdyn.runtime.artifacts import library
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
worst = 0.0
with aotdyn.load(sys.argv[1], on_miss="error") as package:
    served = compiled(reduces, Settings("eager"))
    for threads in (1, 2, 16):
        torch.set_num_threads(threads)
        for a, b in zip(use(served), use(reduces)):
            worst = max(worst, float((a - b).abs().max() / b.abs().max()))
    print(json.dumps([worst, list(library._paths), package.refused]))
'''

RECORD = '''
import sys
import aotdyn
from aotdyn_test_program import inputs, reduces, use
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
with aotdyn.record(sys.argv[1]):
    use(compiled(reduces, Settings("eager")))
    compiled(reduces, Settings("eager"))(*(t.detach().double() for t in inputs()))
'''

def start(script, *args, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, args)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment},
    )  # fmt: skip


def run(script, *args, **environment):
    process = start(script, *args, **environment)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the program, which can be imported here and in new processes."""
    folder = tmp_path_factory.mktemp("machines")
    (folder / "aotdyn_test_program.py").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path[1:]]))
        yield folder


@pytest.fixture
def program(folder):
    return importlib.import_module("aotdyn_test_program")


@pytest.fixture(scope="module")
def recording(folder):
    run(RECORD, folder / "a.rec")
    return folder / "a.rec"


@pytest.fixture(scope="module")
def for_one(folder, recording):
    """Packed with two threads, for this machine's best ISA."""
    aotdyn.pack([recording], folder / "one.pkg", ["cpu"], {"threads": 2, "isas": [BEST]})
    return folder / "one.pkg"


def test_packed_with_two_threads(for_one):
    worst, paths, refused = json.loads(run(SERVE, for_one))
    assert worst < 1e-3 and [path.rpartition("-")[2] for path in paths] == [BEST] and not refused


def as_eager(program, package):
    """Serves the package's program, which gives what eager gives. What was said about it."""
    with aotdyn.load(package, on_miss="error") as opened:
        served = compiled(program.reduces, Settings("eager"))
        for a, b in zip(program.use(served), program.use(program.reduces)):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
        return opened.refused


@pytest.mark.parametrize(
    "where, value, words",
    [
        ("aotdyn.runtime.artifacts.needs.torch.__version__", "2.99.0", "it is for torch"),
        ("aotdyn.runtime.artifacts.needs._glibc", lambda: "2.0", "it needs glibc"),
        ("torch.backends.cpu.get_cpu_capability", lambda: "NEON", "there is code for"),
    ],
)
def test_what_does_not_fit_is_left_out_with_one_line(
    program, for_one, monkeypatch, where, value, words
):
    monkeypatch.setattr(where, value)
    (line,) = as_eager(program, for_one)
    assert words in line


def test_a_damaged_library_is_left_out_with_one_line(program, for_one, tmp_path):
    data = bytearray(for_one.read_bytes())
    data[data.index(b"\x7fELF") + 2000] ^= 0xFF
    (tmp_path / "damaged.pkg").write_bytes(data)
    (line,) = as_eager(program, tmp_path / "damaged.pkg")
    assert "damaged" in line


def test_without_anonymous_files(program, for_one, monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(library, "_paths", {})
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert not as_eager(program, for_one)
    (path,) = library._paths.values()
    assert path.startswith(str(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        lambda x, w: (x[:-1], w),
        lambda x, w: (x[:, :-1], w[:-1]),
        lambda x, w: (x.t().contiguous().t(), w),
        lambda x, w: (x.half(), w),
        lambda x, w: (x.requires_grad_(), w),
        lambda x, w: (x[0], w),
        lambda x, w: (x, None),
    ],
)
def test_other_inputs_do_not_reach_the_code(program, for_one, change):
    """It would take them for what it was compiled for, and read beyond their end."""
    with aotdyn.load(for_one, on_miss="error"), pytest.raises(Miss):
        compiled(program.reduces, Settings("eager"))(*change(*program.inputs()))


# -- packing -------------------------------------------------------------------------------------


def test_no_compiler_on_the_path(program, recording, tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    report = aotdyn.pack([recording], tmp_path / "a.pkg", ["cpu"])
    assert report.targets == ("eager",)
    (line,) = report.fallbacks
    assert "no C++ compiler was found" in line and "\n" not in line
    assert not as_eager(program, tmp_path / "a.pkg")
