"""`aotdyn demo`: the whole way on the bundled example, checked against eager and timed.

Every step is a process of its own, the commands those that a user would type.
"""

import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import click

from aotdyn.cli import Failure

AOTDYN = ("-m", "aotdyn")
RECORDED_SEED, SERVED_SEED = "0", "1"  # the package must not know the numbers it will see


def example_folder() -> Path:
    """The example's scripts: inside an installed wheel, or beside the package in a checkout."""
    package = Path(__file__).parent.parent
    for root in (package, package.parent):
        folder = root / "examples" / "digits"
        if folder.is_dir():
            return folder
    raise Failure("the example's scripts are not where this installation should have them")


@dataclass(frozen=True)
class Stage:
    """Runs Python processes on one thread, with their files in one folder."""

    folder: Path
    example: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def script(self, name: str) -> str:
        return str(self.example / name)

    def relative(self, text: str) -> str:
        return text.strip().replace(f"{self.folder}{os.sep}", "")

    def python(self, *command: str, **environment: str) -> subprocess.CompletedProcess:
        """Runs `python COMMAND` to its end; raises Failure with its last words if it fails."""
        inherited = {k: v for k, v in os.environ.items() if not k.endswith("_COMPILE_DISABLE")}
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, *command],
            env=inherited | one_thread | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            last_words = "\n".join(done.stderr.strip().splitlines()[-20:])
            shown = " ".join(Path(word).name if os.sep in word else word for word in command)
            raise Failure(f"demo: `python {shown}` ended with {done.returncode}:\n{last_words}")
        return done


@dataclass(frozen=True)
class Outcome:
    """What one training and one classification gave, exactly."""

    losses: list[float]
    logits: list[list[float]]
    printed: str


@click.command("demo", short_help="Do it all on the bundled example.")
@click.option("--epochs", default=3, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Leave the recordings, the package and the results in this folder.",
)
@click.option("--no-compile", is_flag=True, help="Do not time torch.compile, which takes a minute.")
@click.option(
    "--runs",
    default=5,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many processes are timed, for their median.",
)
def command(epochs: int, keep: Path | None, no_compile: bool, runs: int) -> None:
    """Record, pack and serve the bundled example, and compare it with eager and torch.compile.

    A small convolutional network learns scikit-learn's handwritten digits. Ends with exit code 1
    if the package gives other numbers than eager, or does not cover every call.
    """
    if importlib.util.find_spec("sklearn") is None:
        raise Failure('the example needs scikit-learn: pip install "aotdyn[example]"')
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory(prefix="aotdyn-") as folder:
        stage = Stage(Path(folder).resolve(), example_folder())
        package = make_package(stage, epochs)
        check_package(stage, package, epochs)
        click.echo("\nTiming first results ...")
        click.echo(first_results(stage, package, runs, with_compile=not no_compile))
        if keep:
            click.echo(f"\n{package.name} and what it was made of are in {keep}")


def make_package(stage: Stage, epochs: int) -> Path:
    """Records a training and a classification, and packs both."""
    train = [stage.script("train.py"), *train_arguments(stage, "recorded", epochs, RECORDED_SEED)]
    serve = [stage.script("serve.py"), *serve_arguments(stage, "recorded")]
    recordings = [stage.path("train.rec"), stage.path("serve.rec")]
    for recording, program in zip(recordings, (train, serve), strict=True):
        click.echo(f"Recording {Path(program[0]).name} ...")
        done = stage.python(*AOTDYN, "record", "-o", recording, *program)
        click.echo(stage.relative(done.stderr))
    click.echo("Packing ...")
    package = stage.folder / "digits.pkg"
    done = stage.python(*AOTDYN, "pack", *recordings, "-o", str(package))
    click.echo(stage.relative(done.stdout))
    return package


def check_package(stage: Stage, package: Path, epochs: int) -> None:
    """Trains and classifies eagerly and from the package; raises Failure unless both are equal."""
    click.echo("\nTraining and classifying in eager, then from the package ...")
    eager, _ = outcome(stage, "eager", epochs, [], TORCH_COMPILE_DISABLE="1")
    run = [*AOTDYN, "run", "--package", str(package), "--on-miss", "error", "--stats"]
    served, stats = outcome(stage, "served", epochs, run)

    hits = served_calls(stats)
    if found := difference(served, eager):
        raise Failure(f"demo: the package is not eager's equal: {found}")

    click.echo(f"Training, {epochs} epochs: {len(eager.losses)} losses, each equal to eager's.")
    accuracy = eager.printed.splitlines()[-1]
    click.echo(f"Classification: {len(eager.logits)} rows of logits, each equal to eager's.")
    click.echo(f"  {accuracy}")
    click.echo(f"Both were served by {package.name} in fresh processes: {hits} hits, no miss.")


def served_calls(stats: list[str]) -> int:
    """How many calls the runs served, by what they said on stderr; Failure unless it was all."""
    hits = 0
    for text in stats:
        found = re.search(r"^aotdyn: (\d+) hits, (\d+) misses$", text, re.MULTILINE)
        if not found:
            raise Failure("demo: `aotdyn run --stats` did not say what it served")
        if found[1] == "0" or found[2] != "0":
            raise Failure(f"demo: the package did not serve every call:\n{text.strip()}")
        hits += int(found[1])
    return hits


def difference(served: Outcome, eager: Outcome) -> str:
    """Where two outcomes first differ, in words; empty if nowhere."""
    pairs = {
        "the loss of step": (served.losses, eager.losses),
        "the logits of image": (served.logits, eager.logits),
        "printed line": (served.printed.splitlines(), eager.printed.splitlines()),
    }
    for what, (ours, theirs) in pairs.items():
        for index, (our, their) in enumerate(zip_longest(ours, theirs)):
            if our != their:
                return f"{what} {index} is {our!r}, in eager {their!r}"
    return ""


def outcome(
    stage: Stage, name: str, epochs: int, launcher: list[str], **environment: str
) -> tuple[Outcome, list[str]]:
    """Trains and classifies with `python LAUNCHER`; returns the numbers, and what stderr said."""
    train = [stage.script("train.py"), *train_arguments(stage, name, epochs, SERVED_SEED)]
    serve = [stage.script("serve.py"), *serve_arguments(stage, name)]
    runs = [stage.python(*launcher, *program, **environment) for program in (train, serve)]
    numbers = Outcome(
        losses=json.loads(Path(stage.path(f"{name}-losses.json")).read_text()),
        logits=json.loads(Path(stage.path(f"{name}-logits.json")).read_text()),
        printed="".join(run.stdout for run in runs),
    )
    return numbers, [run.stderr for run in runs]


def train_arguments(stage: Stage, name: str, epochs: int, seed: str) -> list[str]:
    out, losses = stage.path(f"{name}.pt"), stage.path(f"{name}-losses.json")
    return ["--epochs", str(epochs), "--seed", seed, "--out", out, "--losses", losses]


def serve_arguments(stage: Stage, name: str) -> list[str]:
    weights, logits = stage.path(f"{name}.pt"), stage.path(f"{name}-logits.json")
    return ["--weights", weights, "--predictions", logits]


def first_results(stage: Stage, package: Path, runs: int, with_compile: bool) -> str:
    """The table of times from the start of a process to its first result."""
    cache = {"TORCHINDUCTOR_CACHE_DIR": stage.path("inductor-cache")}
    rows = [("eager", median(stage, runs, "eager"))]
    problem = ""
    if with_compile:
        try:
            # The first run fills the cache that the others find warm.
            rows.append(("torch.compile, cold cache", median(stage, 1, "compile", **cache)))
            warm = median(stage, min(runs, 3), "compile", **cache)
            rows.append(("torch.compile, warm cache", warm))
        except Failure as failure:  # no C++ compiler, as a rule
            problem = f"\n\ntorch.compile did not run here: {failure.message.splitlines()[-1]}"
    rows.append(("aotdyn package, target eager", median(stage, runs, "package", str(package))))

    title = "First result of the network, batch of 64"
    lines = [f"{title:<42}{'seconds':>10}{'over import torch':>20}"]
    lines += [f"{name:<42}{total:>10.2f}{over:>20.2f}" for name, (total, over) in rows]
    return "\n".join(lines) + "\nFrom the start of the process, one thread." + problem


def median(
    stage: Stage, times: int, mode: str, *rest: str, **environment: str
) -> tuple[float, float]:
    """Medians over fresh processes: seconds to the first result, and those after import torch."""
    probe = str(Path(__file__).with_name("first_result.py"))
    runs = []
    for _ in range(times):
        command = ["-P", probe, mode, str(stage.example)]
        done = stage.python(*command, str(time.time()), *rest, **environment)
        runs.append(json.loads(done.stdout.strip().splitlines()[-1]))
    total, over = zip(*runs, strict=True)
    return statistics.median(total), statistics.median(over)
