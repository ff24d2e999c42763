"""Runs the command line as a user does, in the test's folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from aotdyn.cli import main

Run = Callable[..., subprocess.CompletedProcess]

# A branch on an int that becomes dynamic, and one graph break.
POWER = """
import sys
import torch

def power(x, n):
    y = x ** 2
    print("n is", n)
    return (n + 1) * y if n >= 0 else y / n

compiled = torch.compile(power)
for n in map(int, sys.argv[1:]):
    print(compiled(torch.arange(4.0), n).tolist())
"""


def run_in(folder: Path, *words: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """python(*words, **environment): `python WORDS`."""
    return lambda *words, **environment: run_in(tmp_path, *words, **environment)


@pytest.fixture
def eager(tmp_path: Path, python: Run) -> Run:
    """eager(script, *words): `python SCRIPT WORDS` without its torch.compile: the truth."""

    def run(script: str, *words: object) -> subprocess.CompletedProcess:
        text = (tmp_path / script).read_text()
        (tmp_path / script).write_text(text.replace("torch.compile(", "("))
        try:
            return python(script, *words)
        finally:
            (tmp_path / script).write_text(text)

    return run


@pytest.fixture
def aotdyn(python: Run) -> Run:
    """aotdyn(*words): `aotdyn WORDS` in a process of its own."""
    return lambda *words: python("-m", "aotdyn", *words)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., SimpleNamespace]:
    """command(*words): `aotdyn WORDS` in this process; quicker, for what runs no program."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> SimpleNamespace:
        done = CliRunner().invoke(main, [*map(str, words)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)

    return run


@pytest.fixture
def refused() -> Callable[..., str]:
    """refused(done): checks that a command failed with one line on stderr; returns that line."""

    def check(done: subprocess.CompletedProcess | SimpleNamespace, stdout: str = "") -> str:
        assert done.returncode not in (0, None)
        assert done.stdout == stdout
        (line,) = done.stderr.splitlines()
        assert line.startswith("aotdyn: ")
        return line

    return check


@pytest.fixture
def power(tmp_path: Path) -> str:
    """The script power.py: power.py N... prints power(x, n) for each n."""
    (tmp_path / "power.py").write_text(POWER)
    return "power.py"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with power.rec, recorded with n = 2, 3 and -2, and power.pkg."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "power.py").write_text(POWER)
    for words in (["record", "power.py", "2", "3", "-2"], ["pack", "power.rec", "-o", "power.pkg"]):
        done = run_in(folder, "-m", "aotdyn", *words)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def recording(tmp_path: Path, recorded: Path) -> Path:
    return Path(shutil.copy(recorded / "power.rec", tmp_path))


@pytest.fixture
def package(tmp_path: Path, recorded: Path) -> Path:
    return Path(shutil.copy(recorded / "power.pkg", tmp_path))
