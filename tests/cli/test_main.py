"""The group of commands itself."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from aotdyn.cli import Failure, main
from aotdyn.package.errors import PackageError


def test_help_lists_every_command():
    done = CliRunner().invoke(main, ["--help"])
    assert done.exit_code == 0
    for name in ("record", "pack", "thin", "run", "inspect", "demo"):
        assert f"\n  {name} " in done.output


def test_help_imports_no_torch():
    program = (
        "import sys\n"
        "from aotdyn.cli import COMMANDS, main\n"
        "for words in [], *([name] for name in COMMANDS):\n"
        "    main([*words, '--help'], standalone_mode=False)\n"
        "sys.exit('torch was imported' if 'torch' in sys.modules else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: ")


def test_unknown_command():
    done = CliRunner().invoke(main, ["nonsense"])
    assert done.exit_code == 2
    assert "No such command 'nonsense'" in done.stderr


@pytest.mark.parametrize(
    "error, line",
    [
        (PackageError("x.pkg is damaged"), "aotdyn: x.pkg is damaged\n"),
        (Failure("no"), "aotdyn: no\n"),
        (FileNotFoundError(2, "No such file", "x"), "aotdyn: x: No such file\n"),
    ],
)
def test_errors_are_one_line(monkeypatch, error, line):
    @click.command()
    def command():
        raise error

    monkeypatch.setattr("aotdyn.cli.pack.command", command)
    done = CliRunner().invoke(main, ["pack"])
    assert done.exit_code == 1
    assert (done.stdout, done.stderr) == ("", line)


def test_errors_that_are_bugs_keep_their_traceback(monkeypatch):
    @click.command()
    def command():
        raise KeyError("bug")

    monkeypatch.setattr("aotdyn.cli.pack.command", command)
    assert isinstance(CliRunner().invoke(main, ["pack"]).exception, KeyError)
