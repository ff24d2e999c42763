"""Graphs for GPUs whose launches are captured: which may be, and, slowly, that replays of them by a
stand-in compute what eager computes."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import aotdyn
from aotdyn.package.compilers import Job
from aotdyn.package.compilers.cache import Cache
from aotdyn.package.devices import moved_graph
from aotdyn.package.plan import plan_from_bytes
from aotdyn.package.recording import read_recording
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

HERE = Path(__file__).parent
R = torch.randn


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm = torch.nn.Linear(8, 16), torch.nn.LayerNorm(8)
        self.down = torch.nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3)
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x):
        y = self.norm(self.conv(x)).relu()
        self.mean.mul_(0.9).add_(y.detach().mean((0, 2, 3)), alpha=0.1)
        return y.mean((2, 3)), self.mean * 2


def update(x, y):
    x.add_(y)
    return x, x[1:] * 2


def views(x, w):
    y = x * w
    return y.t(), y[0], x.view(-1), y.sum()


def shapes(x, w, n):
    return (x @ w).softmax(-1) * n


CAPTURED = {
    "block": (Block(), [(R(4, 8),)]),
    "counted": (Counted(), [(R(2, 2, 5, 5),)]),
    "dropout": (lambda x: F.dropout(x, 0.5, True) * torch.rand_like(x), [(R(32),)]),
    "update": (update, [(R(12), R(12))]),
    "views": (views, [(R(4, 4), R(4, 4).requires_grad_())]),
    "shapes": (shapes, [(R(b, 8), R(8, 8).requires_grad_(), n) for b, n in ((4, 3), (6, 5))]),
}


def scale(x, s):
    return x * s


def recorded(path, cases, **options):
    settings = Settings("eager", options=options or None)
    with aotdyn.record(path):
        for program, calls in cases.values():
            served = compiled(program, settings)
            for args in calls:
                served(*args)
    return path


def lowered(path, folder, **options):
    """The plans of a recording's graphs for a GPU."""
    from aotdyn.package.compilers.gpu import build

    graphs = [moved_graph(g, {"cpu": "cuda:0"}) for g in read_recording(path).graphs.values()]
    with build.GpuBuilder("cuda:sm_90", build.Options.of(options), Cache(folder)) as builder:
        built = builder.build(list(map(Job, graphs)))
    assert built.refusals == {}
    found = [built.artifacts[graph.id] for graph in graphs]
    return [plan_from_bytes(each.files["plan"]) for each in found], built


@pytest.mark.slow
def test_which_inputs_stay_where_they_are(tmp_path):
    cases = {name: CAPTURED[name] for name in ("block", "counted", "update")}
    path = recorded(tmp_path / "a.rec", cases)
    plans, built = lowered(path, tmp_path)
    for plan, graph in zip(plans, read_recording(path).graphs.values()):
        kept = [i for i, item in enumerate(graph.inputs) if item.parameter or item.buffer]
        assert list(plan.static) == kept
        assert plan.uncapturable == "" and not plan.captured
    assert [len(plan.static) for plan in plans] == [6, 8, 0]
    assert not any("cudagraphs" in artifact.notes for artifact in built.artifacts.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked, at_pack, captured",
    [({"cudagraphs": True}, {}, True), ({"cudagraphs": True}, {"cudagraphs": False}, False)],
)
def test_who_asks_for_captures(tmp_path, asked, at_pack, captured):
    path = recorded(tmp_path / "a.rec", {"update": CAPTURED["update"]}, **asked)
    ((plan,), built) = lowered(path, tmp_path, **at_pack)
    assert plan.captured is captured
    (artifact,) = built.artifacts.values()
    wanted = "launches are captured for each shape" if captured else None
    assert artifact.notes.get("cudagraphs") == wanted


@pytest.mark.slow
def test_what_the_cpu_does_is_not_captured(tmp_path):
    from aotdyn.package.compilers.gpu import build
    from aotdyn.package.graph import Graph

    cases = {"scale": (scale, [(R(3), R(()))])}
    path = recorded(tmp_path / "a.rec", cases, cudagraphs=True)
    (graph,) = read_recording(path).graphs.values()
    moved = moved_graph(graph, {"cpu": "cuda:0"})
    # The second input stays on the CPU, as a number in a tensor does.
    mixed = Graph(**{**vars_of(moved), "inputs": (moved.inputs[0], graph.inputs[1])})
    with build.GpuBuilder("cuda:sm_90", build.Options(), Cache(tmp_path)) as builder:
        built = builder.build([Job(mixed)])
    assert built.refusals == {}
    why = "it takes a tensor of the CPU"
    (artifact,) = built.artifacts.values()
    assert plan_from_bytes(artifact.files["plan"]).uncapturable == why
    assert artifact.notes["cudagraphs"] == f"launches are not captured: {why}"
    assert built.notes[mixed.id] == [f"so that its launches are not captured: {why}"]


def vars_of(graph):
    return {name: getattr(graph, name) for name in type(graph).__match_args__}


@pytest.mark.slow
def test_replays_compute_what_eager_computes(tmp_path):
    path = recorded(tmp_path / "a.rec", CAPTURED)
    environment = runpy.run_path(str(HERE / "triton_interpreter.py"))["environment"]()
    done = subprocess.run(
        [sys.executable, HERE / "captured_graphs.py", path, "cuda:sm_90"],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2000:]
    answers, (aside, made, replayed) = map(json.loads, done.stdout.splitlines()[-2:])
    assert len(answers) == len(CAPTURED) + 1
    assert {id: answer for id, answer in answers.items() if answer} == {}
    assert aside == 0 and replayed >= made >= 6 + 4  # with gradients
