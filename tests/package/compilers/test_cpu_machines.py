"""The cpu target on machines and under circumstances that are not those it was packed in: threads,
vector ISAs, versions, damage, processes that are killed. Never a crash: one line, and the next way
serves."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

import aotdyn
from aotdyn.package.archive import PackageFile
from aotdyn.package.compilers.cache import Cache
from aotdyn.package.compilers.isa import runnable_here
from aotdyn.package.errors import Miss
from aotdyn.runtime.artifacts import library
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

pytestmark = pytest.mark.slow

BEST = runnable_here()[-1]
CAPABILITY = {"scalar": "default", "avx2": "avx2", "avx512": "avx512"}

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

PACK = """
import sys
import aotdyn
print(aotdyn.pack([sys.argv[1]], sys.argv[2], ["cpu"], {"isas": [sys.argv[3]]}))
"""


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


def said(script, **environment):
    """What a process says on stderr."""
    process = start(script, **environment)
    _, err = process.communicate()
    assert process.returncode == 0, err
    return err


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
def for_all(folder, recording):
    """Packed with one thread, for all vector ISAs."""
    aotdyn.pack([recording], folder / "all.pkg", ["cpu"], {"threads": 1})
    return folder / "all.pkg"


@pytest.fixture(scope="module")
def for_one(folder, recording):
    """Packed with two threads, for this machine's best ISA."""
    aotdyn.pack([recording], folder / "one.pkg", ["cpu"], {"threads": 2, "isas": [BEST]})
    return folder / "one.pkg"


@pytest.mark.parametrize("isa", runnable_here())
def test_any_isa_and_any_number_of_threads(for_all, isa):
    """The machine is one that torch takes for it: the right code runs, with more threads too than
    there were when it was packed."""
    worst, paths, refused = json.loads(run(SERVE, for_all, ATEN_CPU_CAPABILITY=CAPABILITY[isa]))
    assert worst < 1e-3 and [path.rpartition("-")[2] for path in paths] == [isa] and not refused


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


@pytest.fixture
def cache(tmp_path):
    """An empty cache but for the compiled headers, which take long and are the same for all."""
    folder = tmp_path / "cache"
    folder.mkdir()
    headers = Cache().folder / "headers"
    headers.mkdir(parents=True, exist_ok=True)
    (folder / "headers").symlink_to(headers)
    return Cache(folder)


def entries(cache, *kinds):
    return {p: p.stat().st_ino for kind in kinds for p in cache.folder.glob(f"{kind}/??/*")}


def assert_whole(cache):
    """Every entry is what was written."""
    for kind in ("lowered", "object", "library", "passed"):
        for path in entries(cache, kind):
            assert cache.get(kind, path.parent.name + path.name) is not None, path


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_pack_goes_on_where_it_stopped(recording, cache, tmp_path, stop):
    target = tmp_path / "a.pkg"
    process = start(PACK, recording, target, BEST, AOTDYN_CACHE=str(cache.folder))
    while not entries(cache, "lowered") and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(stop)
    _, err = process.communicate()
    assert process.returncode != 0 and not target.exists(), err
    assert_whole(cache)
    before = entries(cache, "lowered", "object")
    out = run(PACK, recording, target, BEST, AOTDYN_CACHE=str(cache.folder))
    assert "cpu: 2 of 2 graphs compiled" in out
    assert before and before.items() <= entries(cache, "lowered", "object").items()
    assert_whole(cache)


def test_two_packs_at_once(program, recording, cache, tmp_path):
    environment = {"AOTDYN_CACHE": str(cache.folder)}
    both = [start(PACK, recording, tmp_path / name, BEST, **environment) for name in ("a", "b")]
    for process in both:
        out, err = process.communicate()
        assert process.returncode == 0 and "cpu: 2 of 2 graphs compiled" in out, err
    assert_whole(cache)
    assert not list(cache.folder.glob(".new-*"))
    found = []
    for name in ("a", "b"):
        assert not as_eager(program, tmp_path / name)
        with PackageFile.open(tmp_path / name) as package:
            found.append(sorted(package.graphs))
    assert found[0] == found[1]


def test_damage_in_the_cache_is_mended(program, recording, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("AOTDYN_CACHE", str(cache.folder))
    aotdyn.pack([recording], tmp_path / "a.pkg", ["cpu"], {"isas": [BEST]})
    for path in entries(cache, "lowered", "object", "library", "passed"):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] + b"damage")
    report = aotdyn.pack([recording], tmp_path / "b.pkg", ["cpu"], {"isas": [BEST]})
    assert "cpu: 2 of 2 graphs compiled" in str(report)
    assert not as_eager(program, tmp_path / "b.pkg")


def test_no_compiler_on_the_path(program, recording, tmp_path, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    report = aotdyn.pack([recording], tmp_path / "a.pkg", ["cpu"])
    assert report.targets == ("eager",)
    (line,) = report.fallbacks
    assert "no C++ compiler was found" in line and "\n" not in line
    assert not as_eager(program, tmp_path / "a.pkg")


# -- the JIT -------------------------------------------------------------------------------------

JIT = '''
import aotdyn
from aotdyn_test_program import reduces, use
jitted = aotdyn.compile(reduces)
for a, b in zip(use(jitted), use(reduces)):
    assert float((a - b).abs().max() / b.abs().max()) < 1e-3
'''


def test_the_jit_and_pack_share_jobs_and_cache(recording, cache, tmp_path):
    environment = {"AOTDYN_CACHE": str(cache.folder)}
    assert "runs eagerly" not in said(JIT, **environment)
    first = entries(cache, "lowered", "object")
    (_,) = entries(cache, "lowered")
    assert "runs eagerly" not in said(JIT, **environment)
    assert entries(cache, "lowered", "object") == first
    run(PACK, recording, tmp_path / "a.pkg", BEST, **environment)
    assert first.items() <= entries(cache, "lowered", "object").items()
    assert len(entries(cache, "lowered")) == 2  # the recording has one graph more


FORKS = '''
import os
import torch, aotdyn
from aotdyn_test_program import inputs, reduces
torch.set_num_threads(1)  # OpenMP's threads do not survive a fork
jitted = aotdyn.compile(reduces)
x, w = (t.detach() for t in inputs())
jitted(x, w)
child = os.fork()
found = jitted(x.double(), w.double())
assert all(torch.allclose(a, b) for a, b in zip(found, reduces(x.double(), w.double())))
if child:
    assert os.waitpid(child, 0)[1] == 0
    jitted(x.bfloat16(), w.bfloat16())
'''


def test_a_forked_process_has_workers_of_its_own(folder, cache):
    assert said(FORKS, AOTDYN_CACHE=str(cache.folder)) == ""


def test_the_jit_without_a_compiler(cache, tmp_path):
    """It says so once."""
    environment = {"AOTDYN_CACHE": str(cache.folder), "PATH": str(tmp_path), "CXX": ""}
    assert said(JIT, **environment).count("runs eagerly") == 1
