"""Weights recorded and frozen, vector ISAs and settings of the compiler, on the command line."""

import pytest

from aotdyn.package.archive import PackageFile
from aotdyn.package.compilers.isa import runnable_here

NET = """
import sys
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(),
    torch.nn.Linear(64, 2),
).eval()
with torch.no_grad():
    if "other" in sys.argv:
        net[4].bias += 1
    compiled = torch.compile(net)
    print([round(value, 3) for value in compiled(torch.ones(1, 3, 6, 6)).flatten().tolist()])
"""


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    return "net.py"


def test_weights_make_the_recording_larger(tmp_path, aotdyn, net):
    for name, words in (("a.rec", ()), ("b.rec", ("--weights",))):
        done = aotdyn("record", "-o", name, *words, net)
        assert done.returncode == 0, done.stderr
    a, b = ((tmp_path / name).stat().st_size for name in ("a.rec", "b.rec"))
    assert b > a + 4 * (3 * 4 * 9 + 64 * 2)


def test_nothing_to_freeze(command, refused, recording):
    words = ("pack", recording, "-o", "o.pkg", "--freeze")
    assert "record with --weights" in refused(command(*words, "--target", "cpu"))
    assert "name it as target" in refused(command(*words))


def test_unknown_isa(command, recording):
    done = command("pack", recording, "-o", "o.pkg", "--target", "cpu", "--isa", "mmx")
    assert done.returncode == 2 and "'mmx' is not one of 'avx512', 'avx2', 'scalar'" in done.stderr


@pytest.mark.parametrize(
    "setting, words",
    [
        ("max_autotun=true", "did you mean 'max_autotune'?"),
        ("max_autotune=perhaps", "takes bool, not str"),
        ("mode=fast", "unknown mode 'fast'"),
        ('ways=["by hand"]', "ways are some of container, python"),
    ],
)
def test_unknown_options(tmp_path, command, refused, recording, setting, words):
    done = command("pack", recording, "-o", "o.pkg", "--target", "cpu", "--option", setting)
    assert words in refused(done)
    assert not list(tmp_path.glob("o.pkg*"))


@pytest.mark.slow
def test_frozen_for_one_isa(tmp_path, aotdyn, python, net):
    isa = runnable_here()[-1]
    expected = python(net).stdout
    assert aotdyn("record", "--weights", net).returncode == 0
    words = ("--target", "cpu", "--isa", isa, "--freeze")
    done = aotdyn("pack", "net.rec", "-o", "net.pkg", *words)
    assert done.returncode == 0, done.stderr
    assert "cpu: 1 of 1 graph compiled (1 as container)" in done.stdout
    assert "for the recorded weights: 8 weights are frozen into it" in done.stdout
    assert "8 weights are frozen into it" in aotdyn("inspect", "net.pkg").stdout
    with PackageFile.open(tmp_path / "net.pkg") as package:
        (id,) = package.graphs
        files = package.artifact(id, "cpu").files
        assert [name for name in files if name.endswith(".so")] == [f"{isa}.so"]
        # The batch norm has become a part of the convolution.
        sizes = sorted(len(data) for name, data in files.items() if name.startswith("constant"))
        assert sum(sizes) == 4 * (3 * 4 * 9 + 4 + 64 * 2 + 2)
    run = ("run", "--package", "net.pkg", "--on-miss", "error", net)
    assert aotdyn(*run).stdout == expected
    assert aotdyn(*run, "other").stdout == python(net, "other").stdout != expected


