"""`scripts/gpu_check.sh`, as far as it runs where there is no GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPTS = Path(__file__).parents[3] / "scripts"
SHELL = SCRIPTS / "gpu_check.sh"


def run(*words, **environment):
    paths = filter(None, [str(SCRIPTS), os.environ.get("PYTHONPATH")])
    return subprocess.run(
        [*map(str, words)], capture_output=True, text=True,
        env={**os.environ, "PYTHON": sys.executable, "TRITON_INTERPRET": "1",
             "PYTHONPATH": os.pathsep.join(paths), **environment},
    )  # fmt: skip


def test_the_shell_script_is_one():
    done = run("bash", "-n", SHELL)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_package_it_says_what_to_do(tmp_path):
    done = run("bash", SHELL, PACKAGE=str(tmp_path / "none.pkg"))
    assert done.returncode == 2
    assert "prepare' first" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without a GPU")
def test_without_a_gpu_it_says_so(tmp_path):
    (tmp_path / "any.pkg").touch()
    done = run("bash", SHELL, PACKAGE=str(tmp_path / "any.pkg"))
    assert done.returncode == 1
    assert "there is no GPU here" in done.stderr


@pytest.mark.slow
def test_on_the_cpu_a_package_agrees(tmp_path):
    """The same comparison, of a package of eager graphs that was recorded on the CPU."""
    recording, package = tmp_path / "a.rec", tmp_path / "a.pkg"
    names = ["pointwise", "dropout", "in_place", "mlp", "classifier", "own_kernel"]
    program = SCRIPTS / "gpu_programs.py"
    commands = (
        ["record", "-o", recording, program, *names],
        ["pack", recording, "-o", package],
    )
    for words in commands:
        done = run(sys.executable, "-m", "aotdyn", *words)
        assert not done.returncode, done.stderr
    check = [sys.executable, SCRIPTS / "gpu_check.py", package, "--device", "cpu"]
    check += ["--seconds", "900", "--compile"]
    done = run(*check, "--only", *names)
    assert not done.returncode, done.stdout + done.stderr
    assert done.stdout.endswith("\nall as in eager\n")
    assert "\n0 misses\n" in done.stdout
    for name in names:
        assert done.stdout.count(f"\n{name} ") == 2 * 2  # dtypes, without and with CUDA graphs
    done = run(*check, "--only", "softmax")
    assert done.returncode == 1
    assert "Miss: no variant of softmax" in done.stdout
    assert done.stdout.endswith("\nwrong in: served, captured\n")
