"""`aotdyn inspect`: shows everything, runs nothing."""

import pytest


def test_package(command, package, power):
    done = command("inspect", package)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{power}:5" in done.stdout  # where the entry is defined
    assert f"{power}:7" in done.stdout  # where its graph breaks
    assert "def check(" not in done.stdout


def test_guards(command, package):
    plain, guards = command("inspect", package), command("inspect", package, "--guards")
    assert guards.returncode == 0, guards.stderr
    assert "n >= 0" in guards.stdout and "n >= 0" not in plain.stdout
    assert "type(n) is int" in guards.stdout and "type(n) is int" not in plain.stdout


def test_breaks(command, package, recording, power):
    for file, hits in ((package, ""), (recording, "hit ")):
        done = command("inspect", file, "--breaks")
        assert done.returncode == 0, done.stderr
        assert f"{power}:7 in power" in done.stdout
        assert f"  {hits}" in done.stdout and "operations before: " in done.stdout
        assert "== graph " not in done.stdout and "  variant " not in done.stdout


@pytest.mark.parametrize("words", [["--source"], ["--source", "power"]])
def test_source(command, package, words):
    done = command("inspect", package, *words)
    assert done.returncode == 0, done.stderr
    assert "def check(" in done.stdout and "def body(" in done.stdout


def test_graph(command, package):
    done = command("inspect", package, "--graph")
    assert done.returncode == 0, done.stderr
    assert "== graph " in done.stdout


@pytest.mark.parametrize("option", ["--source", "--graph"])
def test_selector_that_selects_nothing(command, package, option):
    done = command("inspect", package, option, "nonsense")
    assert done.returncode == 1
    assert done.stderr.startswith("aotdyn: ") and "'nonsense'" in done.stderr


def test_recording(command, recording, power):
    done = command("inspect", recording, "--guards", "--source", "--graph")
    assert done.returncode == 0, done.stderr
    assert f"{power}:5" in done.stdout
    assert "def body(" in done.stdout and "== graph " in done.stdout


def test_runs_nothing_of_the_package(tmp_path, aotdyn, command):
    (tmp_path / "marks.py").write_text(
        "import pathlib, torch\n"
        "pathlib.Path('mark').touch()\n"
        "torch.compile(lambda x: x + 1)(torch.ones(2))\n"
    )
    aotdyn("record", "-m", "marks")
    command("pack", "marks.rec", "-o", "marks.pkg")
    (tmp_path / "mark").unlink()
    for file in ("marks.rec", "marks.pkg"):
        done = command("inspect", file, "--guards", "--source", "--graph")
        assert done.returncode == 0, done.stderr
        assert "marks.py:3" in done.stdout
    assert not (tmp_path / "mark").exists()


def test_files_that_are_neither(tmp_path, command, refused):
    (tmp_path / "foreign").write_bytes(b"PK\x03\x04")
    assert "foreign" in refused(command("inspect", "foreign"))
    assert "nowhere" in refused(command("inspect", "nowhere"))
