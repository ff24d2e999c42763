"""The ways in which graphs are compiled: which kinds of graphs need which, that the second does
what the first does, and operators that a program registers itself."""

import importlib
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import func, nn
from torch._higher_order_ops.while_loop import while_loop

import aotdyn
from aotdyn.package.archive import PackageFile
from aotdyn.package.compilers.isa import runnable_here
from aotdyn.package.recording import read_recording
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

pytestmark = pytest.mark.slow

OPERATORS = """
import torch

@torch.library.custom_op("aotdyn_test::scale", mutates_args=())
def scale(x: torch.Tensor, k: float) -> torch.Tensor:
    return x * k

@scale.register_fake
def _(x, k):
    return torch.empty_like(x)

@torch.library.custom_op("aotdyn_test::wave", mutates_args=())
def wave(x: torch.Tensor) -> torch.Tensor:
    return x.sin()

@wave.register_fake
def _(x):
    return torch.empty_like(x)

wave.register_autograd(
    lambda ctx, gradient: gradient * ctx.saved_tensors[0].cos(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)

@torch.library.custom_op("aotdyn_test::shift", mutates_args=("x",))
def shift(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y)

@torch.library.custom_op("aotdyn_test::counted", mutates_args=())
def counted(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    return x * 2, 3

@counted.register_fake
def _(x):
    return torch.empty_like(x), 3
"""

R = torch.randn
C = torch.complex64


def grad(*size, dtype=None):
    return R(*size, dtype=dtype).requires_grad_()


def with_shift(x, y):
    torch.ops.aotdyn_test.shift(x, y)
    return x * 2


def transposed_in_place(x):
    x.t_()
    return x * 2


def updated(x, y):
    x.add_(y)
    return x * 2


def views(x, w):
    y = x * w
    return y, y, y.t(), x.view(-1), x, y[0]


def branches(x, w):
    y = x * w
    return torch.cond(y.sum() > 0, lambda x: (x + 1).sin() * y, lambda x: x.cos() + y, (x,))


def branch_with_an_int(x, n):
    return torch.cond(x.sum(), lambda x: x[:n] + 1, lambda x: x[:n] - n, (x,)) * 2


def loop(x, w):
    def more(i, y):
        return (i < 5) & (y.sum() < 100)

    return while_loop(more, lambda i, y: (i + 1, y * w + x), (torch.tensor(0), x))[1]


def gradient_of_a_gradient(x):
    return func.grad(lambda y: func.grad(lambda z: (z**3).sum())(y).sum())(x)


def pulled_back(x):
    y, pull = func.vjp(lambda z: (z * x).sin(), x)
    return y, pull(y)[0], func.jvp(torch.cos, (x,), (y,))[1]


LSTM, GRU = nn.LSTM(4, 4), nn.GRU(4, 4)


def lstm(x):
    return LSTM(x)[0]


def gru(x):
    return GRU(x)[0]


# (program, arguments, the way it is compiled in)
CASES = {
    "complex": (lambda x, y: (x @ y).abs() + (x / y).real, (R(3, 3, dtype=C), R(3, 3, dtype=C)),
                "container"),
    "complex_backward": (lambda x, y: (x * y).abs().sum(), (grad(3, 3, dtype=C), R(3, 3, dtype=C)),
                         "python"),
    "operator": (lambda x: torch.ops.aotdyn_test.scale(x, 2.0) + 1, (R(4),), "container"),
    "operator_with_backward": (lambda x: torch.ops.aotdyn_test.wave(x * 2) * 3, (grad(4),),
                               "container"),
    "operator_that_changes_its_input": (with_shift, (R(4), R(4)), "container"),
    "operator_that_gives_an_int": (lambda x: torch.ops.aotdyn_test.counted(x)[0] + 1, (R(4),),
                                   "python"),
    "no_c_shim": (lambda x: torch.linalg.qr(x), (grad(4, 4),), "container"),
    "metadata": (transposed_in_place, (R(4, 2),), "container"),
    "update": (updated, (R(4), R(4)), "container"),
    "views": (views, (R(4, 4), grad(4, 4)), "container"),
    "none_and_int": (lambda x: (x.sum(), None, x.shape[0]), (R(5),), "container"),
    "constant": (lambda x: x + torch.tensor([1.0, 2, 3]), (R(3),), "container"),
    "item": (lambda x: x * x.sum().item(), (R(4),), "container"),
    "branches": (branches, (R(4), grad(4)), "container"),
    "branch_with_an_int": (branch_with_an_int, (R(5), 2), "container"),
    "loop": (loop, (R(5), R(5)), "container"),
    "gradient_of_a_gradient": (gradient_of_a_gradient, (R(5),), "container"),
    "pulled_back": (pulled_back, (R(5),), "container"),
    "pulled_back_backward": (pulled_back, (grad(5),), "container"),
    "lstm": (lstm, (R(40, 2, 4),), "container"),
    "gru_backward": (gru, (grad(2, 2, 4),), "container"),
    "nothing_to_compute_backward": (
        lambda x, i: x.clone().index_put_((i,), torch.ones(2), accumulate=True),
        (grad(4), torch.tensor([1, 2])), "container",
    ),
}  # fmt: skip


# The Python wrapper does not have the functions that branches become.
BRANCHES = ("branches", "branch_with_an_int", "loop")


def scaled(x, w, n):
    return (x @ w).relu() * n, n + x.shape[0]


SCALED = [(R(b, 8), grad(8, 8), n) for b, n in ((4, 3), (6, 5), (9, 11))]


def clones(values):
    return [
        v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v
        for v in values
    ]


def outcome(program, call):
    given = clones(call)
    with torch.set_grad_enabled(_wants_grad(call)):
        found = program(*given)
    outputs = found if isinstance(found, tuple) else (found,)
    ends = [t for t in outputs if isinstance(t, torch.Tensor) and t.requires_grad]
    if ends:
        sum(t.abs().sum() * (i + 1) for i, t in enumerate(ends)).backward()
    grads = [v.grad for v in given if isinstance(v, torch.Tensor)]
    return [t.detach() if isinstance(t, torch.Tensor) else t for t in (*outputs, *given, *grads)]


def _wants_grad(call):
    return any(isinstance(v, torch.Tensor) and v.requires_grad for v in call)


def assert_close(actual, expected):
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
        else:
            assert a == b and type(a) is type(b)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording of all programs, and the case that each graph belongs to."""
    folder = tmp_path_factory.mktemp("ways")
    (folder / "aotdyn_test_operators.py").write_text(OPERATORS)
    sys.path.append(str(folder))
    importlib.import_module("aotdyn_test_operators")
    path = folder / "a.rec"
    owners = {}
    settings = Settings("eager")
    calls = [(name, program, call) for name, (program, call, _) in CASES.items()]
    calls += [("scaled", scaled, call) for call in SCALED[:2]]
    with aotdyn.record(path):
        for name, program, call in calls:
            with torch.set_grad_enabled(_wants_grad(call)):
                compiled(program, settings)(*clones(call))
            for id in read_recording(path).graphs:
                owners.setdefault(id, name)
    yield SimpleNamespace(path=path, owners=owners, folder=folder)
    sys.path.remove(str(folder))


def ways_of(package, owners):
    found = {}
    with PackageFile.open(package) as file:
        for id in file.graphs:
            found.setdefault(owners[id], set()).add(file.artifact(id, "cpu").notes["way"])
    return found


@pytest.fixture(scope="module", params=["best", "python"])
def packed(request, recorded):
    options = {"isas": runnable_here()[-1:]}
    if request.param != "best":
        options["ways"] = [request.param]
    package = recorded.folder / f"{request.param}.pkg"
    report = aotdyn.pack([recorded.path], package, ["cpu"], options)
    expected = {name: {way} for name, (_, _, way) in CASES.items()} | {"scaled": {"container"}}
    if request.param != "best":
        expected = {n: {"eager" if n in BRANCHES else request.param} for n in expected}
    return SimpleNamespace(package=package, report=report, expected=expected)


def test_each_kind_of_graph_has_its_way(packed, recorded):
    assert ways_of(packed.package, recorded.owners) == packed.expected, str(packed.report)
    counts = {(target, way): count for target, way, count in packed.report.ways}
    refused = sum(ways == {"eager"} for ways in packed.expected.values())
    assert sum(counts.values()) == packed.report.graphs - refused and ("cpu", "python") in counts
    assert f"{counts['cpu', 'python']} as python" in str(packed.report)


def test_why_it_is_not_the_first_way(packed, recorded):
    if packed.report.ways[0][1] == "python":
        pytest.skip("there was no choice")
    from aotdyn.package.printer import render

    shown = render(packed.package)
    assert "cpu: container" in shown
    assert "cpu: python, because: InductorError: " in shown
    assert "is compiled as python: InductorError: " in str(packed.report)


@pytest.mark.parametrize("name", CASES)
def test_a_program_is_served(name, packed):
    program, call, _ = CASES[name]
    with aotdyn.load(packed.package, on_miss="error") as package:
        served = compiled(program, Settings("eager"))
        for _ in range(2):
            assert_close(outcome(served, call), outcome(program, call))
        assert not package.refused


def test_sizes_and_ints_that_change(packed):
    with aotdyn.load(packed.package, on_miss="error"):
        served = compiled(scaled, Settings("eager"))
        for call in (*SCALED, (R(7, 8), grad(8, 8), -2)):
            assert_close(outcome(served, call), outcome(scaled, call))


def test_an_operator_of_the_script_itself(recorded, tmp_path, monkeypatch):
    from dataclasses import replace

    from aotdyn.package.compilers import Job
    from aotdyn.package.compilers.cpu.build import build_graphs

    graphs = read_recording(recorded.path).graphs
    graph = next(g for id, g in graphs.items() if recorded.owners[id] == "operator")
    assert graph.providers == (("aotdyn_test_operators", str(recorded.folder)),)
    job = Job(replace(graph, providers=(("__main__", ""),)))
    options = {"isas": runnable_here()[-1:]}
    built = build_graphs([job], options)
    assert "operator aotdyn_test::scale is not there" in built.refusals[graph.id]
    assert "--import" in built.refusals[graph.id]
    (tmp_path / "script.py").write_text(OPERATORS)
    options["imports"] = [str(tmp_path / "script.py")]
    built = build_graphs([job], options)
    assert built.artifacts[graph.id].notes == {"way": "container"}


def test_a_recurrent_layer_with_gradients_is_not_unrolled_without_end(tmp_path):
    from aotdyn.package.compilers import Job
    from aotdyn.package.compilers.cpu.build import build_graphs

    path = tmp_path / "a.rec"
    with aotdyn.record(path):
        compiled(lstm, Settings("eager"))(R(9, 2, 4))
    (graph,) = read_recording(path).graphs.values()
    built = build_graphs([Job(graph)], {"isas": runnable_here()[-1:]})
    assert "of a recurrent layer 8 steps at most are unrolled" in built.refusals[graph.id]
