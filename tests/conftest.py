"""The helper that runs a test's program three ways: as plain Python, traced in this process, and
served from a package; results, changed arguments, exceptions and output must agree.

Break fuzzing: with AOTDYN_BREAK_EVERY=n every entry goes on in another one after n instructions, so
that with n = 1, 2, 3 there is an entry at every instruction; with AOTDYN_BREAK_STEPS=1 besides,
each n-th instruction is executed by itself. Tests with programs then run without their counts and
in this process only, all others are left out (half an hour for each n):

    AOTDYN_BREAK_EVERY=1 AOTDYN_BREAK_STEPS=1 pytest tests/record
"""

import contextlib
import copy
import ctypes
import io
import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

import aotdyn
from aotdyn.package.frozen import plain_text
from aotdyn.package.recording import read_recording
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from aotdyn.runtime.suspended import PLAIN

# A fault of the tracer is an error in tests, not a fallback.
os.environ["AOTDYN_STRICT"] = "1"
# The programs are tiny, and tests run in several processes.
torch.set_num_threads(1)

FUZZING = bool(os.environ.get("AOTDYN_BREAK_EVERY"))


def pytest_collection_modifyitems(items: list) -> None:
    if FUZZING:
        items[:] = [item for item in items if "agree" in getattr(item, "fixturenames", ())]


class Disagreement(AssertionError):
    """What break fuzzing looks for, apart from what a test finds in graphs that are now others."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except Disagreement:
        raise
    except BaseException:
        if not FUZZING:
            raise


@dataclass
class Outcome:
    """What a call did: its result or exception, its arguments afterwards, and what it printed."""

    result: Any = None
    error: BaseException | None = None
    args: Any = None
    printed: str = ""
    random: Any = None


@dataclass
class Run:
    """What `agree` found out, for further assertions."""

    graphs: list = field(default_factory=list)
    variants: list = field(default_factory=list)
    obstacles: list = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def breaks(self) -> list:
        return [v.breaks for v in self.variants if v.breaks is not None]

    def guards(self, index: int = -1) -> list[str]:
        """The guards of a variant as text."""
        from aotdyn.runtime.explain import describe_guard

        return [describe_guard(guard) for guard in self.variants[index].guards]

    def ops(self, index: int = 0) -> list[str]:
        """The names of a graph's operations."""
        found = []
        for node in self.graphs[index].nodes:
            target = node.target
            found.append(target if isinstance(target, str) else target.qualname.split(".")[-1])
        return found


def perform(call: Callable, args: tuple, kwargs: dict, in_place: bool = False) -> Outcome:
    """Calls with copies of the arguments, or the very objects, and a fixed random state."""
    if not in_place:
        args, kwargs = copy.deepcopy((args, kwargs))
    torch.manual_seed(0)
    random.seed(0)
    out = io.StringIO()
    outcome = Outcome(args=(args, kwargs))
    with contextlib.redirect_stdout(out):
        try:
            outcome.result = call(*args, **kwargs)
        except Exception as error:
            outcome.error = error
    outcome.printed = out.getvalue()
    outcome.random = (torch.get_rng_state(), random.getstate())
    return outcome


def assert_same(expected: Any, actual: Any, path: str = "result") -> None:
    """Structural equality, exact for everything; tensors by dtype, shape, strides and bits."""
    assert type(expected) is type(actual), f"{path}: {type(expected)} and {type(actual)}"
    if isinstance(expected, torch.Tensor):
        assert expected.dtype == actual.dtype, path
        assert expected.shape == actual.shape, path
        assert expected.requires_grad == actual.requires_grad, path
        assert expected.is_leaf == actual.is_leaf, path
        # Copies of arguments are made in whatever mode the call is made in.
        assert path.startswith("args") or expected.is_inference() == actual.is_inference(), path
        assert torch.equal(expected.nan_to_num(), actual.nan_to_num()), path
    elif type(expected).__module__ == "numpy" and hasattr(expected, "tobytes"):
        assert expected.dtype == actual.dtype and expected.shape == actual.shape, path
        assert expected.tobytes() == actual.tobytes(), path
    elif isinstance(expected, list | tuple):
        assert len(expected) == len(actual), path
        for i, (e, a) in enumerate(zip(expected, actual)):
            assert_same(e, a, f"{path}[{i}]")
    elif isinstance(expected, dict):
        assert list(expected) == list(actual), path
        for key in expected:
            assert_same(expected[key], actual[key], f"{path}[{plain_text(key)}]")
    elif isinstance(expected, float) and expected != expected:
        assert actual != actual, path
    elif isinstance(expected, torch.nn.Module):
        assert_same(dict(expected.state_dict()), dict(actual.state_dict()), f"{path}.state_dict()")
        assert_same(_plain(expected), _plain(actual), f"{path}.__dict__")
    elif hasattr(expected, "__dict__") and type(expected).__eq__ is object.__eq__ and not callable(
        expected
    ):
        assert_same(vars(expected), vars(actual), f"{path}.__dict__")
    elif not callable(expected) and type(expected).__eq__ is not object.__eq__:
        assert expected == actual, path


def _plain(module: torch.nn.Module) -> dict:
    return {k: v for k, v in vars(module).items() if not k.startswith("_")}


def assert_agree(expected: Outcome, actual: Outcome) -> None:
    """Two runs of the same call cannot be told apart."""
    if expected.error is None and actual.error is not None:
        raise actual.error
    assert type(expected.error) is type(actual.error), (expected.error, actual.error)
    if expected.error is not None:
        assert str(expected.error) == str(actual.error)
    assert_same(expected.result, actual.result)
    assert_same(expected.args, actual.args, "args")
    assert expected.printed == actual.printed
    assert torch.equal(expected.random[0], actual.random[0]), "torch's random state"
    assert expected.random[1] == actual.random[1], "Python's random state"


@pytest.fixture
def agree(tmp_path: Path) -> Callable[..., Run]:
    """agree(program, *calls, graphs=, breaks=, variants=, dynamic=, fullgraph=, package=True).

    A call is a tuple of arguments; a dict as its last item that is wrapped in `kw(...)` becomes
    keyword arguments.
    """
    counter = [0]

    def run_once(
        program: Callable,
        *calls: tuple,
        graphs: int | None = None,
        breaks: int | None = None,
        variants: int | None = None,
        dynamic: bool | None = None,
        fullgraph: bool = False,
        package: bool = True,
    ) -> Run:
        counter[0] += 1
        if FUZZING:
            graphs = breaks = variants = None
            fullgraph = package = False
        found = Run()
        split = [(c[:-1], c[-1].values) if c and isinstance(c[-1], kw) else (c, {}) for c in calls]
        eager = [perform(program, *each) for each in split]
        found.outcomes = eager
        path = tmp_path / f"{counter[0]}.rec"
        with aotdyn.record(path):
            traced = compiled(program, Settings("eager", fullgraph, dynamic))
            for each, expected in zip(split, eager):
                assert_agree(expected, perform(traced, *each))
        recording = read_recording(path)
        found.variants, found.obstacles = list(recording.variants), list(recording.obstacles)
        found.graphs = [
            recording.graphs[v.graph] for v in recording.variants if v.graph is not None
        ]
        if graphs is not None:
            assert len(found.graphs) == graphs, [g.nodes for g in found.graphs]
        if breaks is not None:
            assert len(found.breaks) == breaks, found.breaks
        if variants is not None:
            assert len(found.variants) == variants
        # Generators that eager code runs stand in nobody's way.
        others = [obstacle for obstacle in found.obstacles if obstacle.reason != PLAIN]
        packable = not any(v.obstacles for v in found.variants) and not others
        if package and packable and found.variants:
            _serve(program, split, eager, path, tmp_path / f"{counter[0]}.pkg", dynamic)
        return found

    def run(*args: Any, **options: Any) -> Run:
        try:
            return run_once(*args, **options)
        except Exception as error:
            raise Disagreement(f"{type(error).__name__}: {error}") from error

    return run if FUZZING else run_once


def _serve(program, calls, eager, recording: Path, path: Path, dynamic) -> None:
    aotdyn.pack([recording], path)
    with aotdyn.load(path, on_miss="error") as package:
        served = compiled(program, Settings("eager", False, dynamic))
        for each, expected in zip(calls, eager):
            assert_agree(expected, perform(served, *each))
        assert not package.refused


@dataclass(frozen=True)
class kw:
    """Keyword arguments of a call given to `agree`."""

    values: dict


@pytest.fixture(name="kw")
def _kw() -> type[kw]:
    return kw


@pytest.fixture(scope="session")
def mock_driver_folder(tmp_path_factory) -> Path:
    """Where there are mock GPU drivers, by the names of the real ones."""
    folder = tmp_path_factory.mktemp("drivers")
    source = Path(__file__).parent / "runtime" / "artifacts" / "mock_driver.c"
    for name in ("libcuda.so.1", "libamdhip64.so"):
        command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", folder / name, source]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="session")
def mock_driver_libraries(mock_driver_folder) -> None:
    """Mock GPU drivers, loaded: whoever asks for the real ones by name gets them."""
    for library in mock_driver_folder.iterdir():
        ctypes.CDLL(str(library))


@pytest.fixture
def mock_drivers(mock_driver_libraries, tmp_path, monkeypatch) -> Callable[[], list[dict]]:
    """What the mock drivers were asked for so far."""
    path = tmp_path / "driver.log"
    path.touch()
    monkeypatch.setenv("MOCK_DRIVER_LOG", str(path))
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(autouse=True)
def modules_are_made_as_at_first() -> Iterator[None]:
    """torch's own compiler, once it has run, replaces how modules are made, for the whole process:
    what one test compiles with it must not decide what another one traces."""
    Module = torch.nn.Module
    before = Module.__init__, Module.__setstate__
    yield
    if Module.__init__ is not before[0]:
        Module.__init__, Module.__setstate__ = before
        Module.___needs_generation_tag_patch = True
