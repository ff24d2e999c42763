"""`aotdyn demo`, and that it would notice if something were wrong."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from aotdyn.cli import Failure, demo, main


@pytest.mark.slow
def test_demo(tmp_path, aotdyn):
    done = aotdyn("demo", "--no-compile", "--runs", "1", "--epochs", "2", "--keep", "kept")
    assert done.returncode == 0, done.stderr
    assert "46 losses, each equal to eager's" in done.stdout
    assert "360 rows of logits, each equal to eager's" in done.stdout
    assert "no miss" in done.stdout
    accuracy = re.search(r"accuracy on 360 held-out digits: ([\d.]+)%", done.stdout)
    assert float(accuracy[1]) > 80
    rows = [line.split() for line in done.stdout.splitlines()]
    assert any(row[:1] == ["eager"] and float(row[-2]) > float(row[-1]) > 0 for row in rows)
    assert any(row[:2] == ["aotdyn", "package,"] and float(row[-1]) > 0 for row in rows)

    kept = tmp_path / "kept"
    eager, served, recorded = (
        json.loads((kept / f"{name}-losses.json").read_text())
        for name in ("eager", "served", "recorded")
    )
    assert served == eager != recorded  # which had another seed
    assert len(eager) == 46 and eager[-1] < eager[0] / 2
    assert (kept / "digits.pkg").stat().st_size > 0


OUTCOME = demo.Outcome([2.0, 1.0], [[0.25, 0.5]], "epoch 1\nepoch 2\n")


@pytest.mark.parametrize(
    "change, found",
    [
        ({}, ""),
        ({"losses": [2.0, 1.5]}, "the loss of step 1 is 1.5, in eager 1.0"),
        ({"losses": [2.0]}, "the loss of step 1 is None, in eager 1.0"),
        ({"losses": [2.0, float("nan")]}, "the loss of step 1 is nan, in eager 1.0"),
        ({"logits": [[0.25, 0.75]]}, "the logits of image 0 is [0.25, 0.75], in eager [0.25, 0.5]"),
        ({"printed": "epoch 1\n"}, "printed line 1 is None, in eager 'epoch 2'"),
    ],
)
def test_difference(change, found):
    assert demo.difference(replace(OUTCOME, **change), OUTCOME) == found


def test_served_calls():
    assert demo.served_calls(["x\naotdyn: 3 hits, 0 misses\ny\n", "aotdyn: 4 hits, 0 misses"]) == 7


@pytest.mark.parametrize(
    "stats", ["", "aotdyn: 0 hits, 0 misses", "aotdyn: 5 hits, 1 misses", "aotdyn: hits"]
)
def test_calls_that_were_not_served(stats):
    with pytest.raises(Failure):
        demo.served_calls(["aotdyn: 3 hits, 0 misses", stats])


def test_step_that_fails_stops_the_demo(tmp_path):
    stage = demo.Stage(tmp_path, demo.example_folder())
    with pytest.raises(Failure, match=r"ended with 3:\nlast words"):
        stage.python("-c", "import sys; print('last words', file=sys.stderr); sys.exit(3)")


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = CliRunner().invoke(main, ["demo"])
    assert done.exit_code == 1
    assert done.stderr == 'aotdyn: the example needs scikit-learn: pip install "aotdyn[example]"\n'


def test_example_is_there():
    files = {path.name for path in demo.example_folder().glob("*.py")}
    assert files == {"digits.py", "model.py", "serve.py", "train.py"}


@pytest.mark.parametrize("name", ["digits.py", "model.py", "serve.py", "train.py"])
def test_example_knows_nothing_of_aotdyn(name):
    assert "aotdyn" not in (demo.example_folder() / name).read_text()
