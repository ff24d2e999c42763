"""`aotdyn record`: the program runs as ever, and a recording is left behind."""

import signal

import pytest

from aotdyn.package.recording import read_recording


def qualnames(path):
    return {variant.entry.qualname for variant in read_recording(path).variants}


def test_records_what_torch_compile_was_given(tmp_path, aotdyn, eager, power):
    done = aotdyn("record", "-o", "out.rec", power, "2", "3", "-2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == eager(power, "2", "3", "-2").stdout
    assert done.stderr.startswith("aotdyn: out.rec: ")
    recording = read_recording(tmp_path / "out.rec")
    assert qualnames(tmp_path / "out.rec") == {"power"}
    assert recording.graphs and not recording.truncated
    assert recording.summary() in done.stderr


def test_default_name_and_two_dashes(tmp_path, aotdyn, power):
    assert aotdyn("record", power, "--", "2").returncode == 0
    assert qualnames(tmp_path / "power.rec") == {"power"}


def test_module(tmp_path, aotdyn, power):
    (tmp_path / "shop").mkdir()
    (tmp_path / power).rename(tmp_path / "shop" / power)
    done = aotdyn("record", "-m", "shop.power", "2")
    assert done.returncode == 0, done.stderr
    assert qualnames(tmp_path / "power.rec") == {"power"}


def test_modules_where_nothing_is_compiled(tmp_path, aotdyn, eager):
    (tmp_path / "plain.py").write_text(
        "import torch\n"
        "torch.manual_seed(0)\n"
        "model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())\n"
        "print(model(torch.ones(4, 3)).tolist())\n"
    )
    done = aotdyn("record", "plain.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == eager("plain.py").stdout
    assert not read_recording(tmp_path / "plain.rec").empty


def test_script_that_raises_leaves_what_it_did(tmp_path, aotdyn, eager, power):
    with (tmp_path / power).open("a") as file:
        file.write("def fail():\n    raise ValueError('no more')\nfail()\n")
    done = aotdyn("record", power, "2")
    expected = eager(power, "2")
    assert done.returncode == expected.returncode == 1
    assert done.stdout == expected.stdout
    assert done.stderr.startswith(expected.stderr)  # the traceback, with no frame of ours
    assert done.stderr.removeprefix(expected.stderr).startswith("aotdyn: power.rec: ")
    assert qualnames(tmp_path / "power.rec") == {"power"}
    assert aotdyn("pack", "power.rec", "-o", "power.pkg").returncode == 0


def test_exit_status_is_the_scripts(tmp_path, aotdyn, power):
    with (tmp_path / power).open("a") as file:
        file.write("sys.exit(5)\n")
    assert aotdyn("record", power, "2").returncode == 5
    assert qualnames(tmp_path / "power.rec") == {"power"}


def test_script_that_is_killed_leaves_what_it_did(tmp_path, aotdyn, power):
    with (tmp_path / power).open("a") as file:
        file.write("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = aotdyn("record", power, "2")
    assert done.returncode == -signal.SIGKILL
    assert qualnames(tmp_path / "power.rec") == {"power"}


@pytest.mark.parametrize("program, status", [("print('hello')", 1), ("exit(3)", 3)])
def test_nothing_to_record(tmp_path, aotdyn, refused, program, status):
    (tmp_path / "idle.py").write_text(f"import torch\ntorch.ones(2) + 1\n{program}\n")
    done = aotdyn("record", "idle.py")
    line = refused(done, stdout="hello\n" if status == 1 else "")
    assert done.returncode == status
    assert "nothing was recorded" in line and "idle.py" in line
    assert not (tmp_path / "idle.rec").exists()


def test_script_that_does_not_compile_keeps_the_last_recording(tmp_path, aotdyn):
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "broken.rec").write_text("the last one")
    done = aotdyn("record", "broken.py")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "SyntaxError: invalid syntax"
    assert (tmp_path / "broken.rec").read_text() == "the last one"


def test_recording_that_cannot_be_written(tmp_path, aotdyn, refused, power):
    line = refused(aotdyn("record", "-o", "nowhere/out.rec", power, "2"))
    assert "nowhere/out.rec" in line and "No such file or directory" in line


TRAIN = """
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.LayerNorm(4)).to(device)

@torch.compile
def step(x):
    scale = torch.arange(4, device=x.device) if x.is_cuda else 1
    loss = (model(x) * scale).sum()
    print("between", loss.device)
    return loss * 2

for size in (4, 5, 6):
    loss = step(torch.ones(size, 8).to(device))
    loss.backward()
print(model[0].weight.grad.device)
"""


@pytest.mark.slow
def test_for_a_gpu_that_is_not_there(tmp_path, aotdyn, eager):
    """Programs see the device; where it is not, what was recorded for it is a miss, no error."""
    (tmp_path / "train.py").write_text(TRAIN)
    done = aotdyn("record", "--device", "cuda:sm_90", "train.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "between cuda:0\n" * 3 + "cuda:0\n"
    recording = read_recording(tmp_path / "train.rec")
    assert recording.header.device == "cuda:sm_90"
    assert recording.header.devices == (("cuda:0", "cpu"),)
    assert {item.device for g in recording.graphs.values() for item in g.inputs} == {"cuda:0"}
    assert "cuda:sm_90; cuda:0 was cpu" in aotdyn("inspect", "train.rec").stdout
    assert aotdyn("pack", "train.rec", "-o", "train.pkg").returncode == 0
    for policy in ("jit", "eager"):
        done = aotdyn("run", "--package", "train.pkg", "--on-miss", policy, "train.py")
        assert done.returncode == 0, done.stderr
        assert done.stdout == eager("train.py").stdout
        assert "it is for tensors on cuda:0, which is not here" in done.stderr
    done = aotdyn("run", "--package", "train.pkg", "--on-miss", "error", "train.py")
    assert "no variant of step" in done.stderr


@pytest.mark.slow
def test_a_program_that_keeps_to_the_cpu_is_told(aotdyn, power):
    done = aotdyn("record", "--device", "cuda:sm_90", power, "2")
    assert done.returncode == 0, done.stderr
    assert "no tensor on cuda:0" in done.stderr


def test_unknown_devices_are_refused(aotdyn, power, refused):
    assert "there is no GPU target 'gpu'" in refused(aotdyn("record", "--device", "gpu", power))
