"""The cpu target from a program to compiled calls in a served process: values, mutations,
gradients, sharing of memory. The gate has compared them with eager before; here the ways are."""

import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F

import aotdyn
from aotdyn.package.archive import PackageFile
from aotdyn.package.compilers import Job
from aotdyn.package.compilers.cache import Cache
from aotdyn.package.compilers.cpu.build import Builder
from aotdyn.package.compilers.isa import runnable_here
from aotdyn.package.compilers.options import Options
from aotdyn.package.recording import read_recording
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

pytestmark = pytest.mark.slow

R = torch.randn


def grad(*size):
    return R(*size).requires_grad_()


def linear(x, w, b):
    return F.layer_norm(F.gelu(F.linear(x, w, b)), (8,))


def update(x, y):
    x.add_(y)
    return x * 2


def read_after_update(x, y):
    x.add_(1)
    return x * 2 + y


def views(x, w):
    y = x * w
    return y, y.t(), x.view(-1), x, y[0], w.detach()


def dropout(x, w):
    return F.dropout(x @ w, 0.5, True).relu()


def without(x, w):
    with torch.no_grad():
        z = (x * w).sum()
    return x * w * z, z


def norm(x, w, mean, var):
    return F.batch_norm(F.conv2d(x, w), mean, var, training=True)


def constant(x):
    return x + torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])


def sliding(old, x, w):
    """The caches of a sliding window: the end of what is there so far, of nothing first."""
    new = (x @ w).view(2, 4, 2, 4).transpose(1, 2)
    return torch.cat([old, new], dim=-2)[:, :, -3:], torch.cat([new])


def numbers_first(x):
    n = 3
    n *= x
    return (-2) ** x.round() + n


CASES = {
    "linear": (linear, (R(4, 8), grad(8, 8), grad(8))),
    "update": (update, (R(4), R(4))),
    "read_after_update": (read_after_update, (R(4), R(4))),
    "views": (views, (R(4, 4), grad(4, 4))),
    "dropout": (dropout, (R(8, 8), grad(8, 8))),
    "no_grad": (without, (R(8, 8), grad(8, 8))),
    "batch_norm": (norm, (R(2, 3, 8, 8), grad(4, 3, 3, 3), torch.zeros(4), torch.ones(4))),
    "constant": (constant, (R(12),)),
    "sliding": (sliding, (torch.tensor([]), R(8, 8), R(8, 8))),
    "numbers_first": (numbers_first, (R(4),)),
    "external": (lambda x: torch.linalg.inv(x @ x.t() + torch.eye(4)), (R(4, 4),)),
    "transposed": (lambda x: x.t() @ x, (R(6, 8).t(),)),
    "none_and_int": (lambda x, n: (x.sum() * n, n, None), (R(4), 3)),
    "complex": (lambda x: torch.view_as_complex(x) * 2j, (R(4, 2),)),
    "embedding": (
        lambda i, w: F.embedding(i, w).mean(1),
        (torch.randint(0, 2, (2, 5)), grad(16, 8)),
    ),
}


def scaled(x, w, n):
    return (x @ w).relu() * n, n + x.shape[0]


SCALED = [(R(b, 8), grad(8, 8), n) for b, n in ((4, 3), (6, 5), (9, 11))]


def isa():
    return runnable_here()[-1]


@dataclass
class Packed:
    """All programs of this file in one package: compiling is what takes the time."""

    recording: object
    package: object
    report: object


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpu")
    recording, package = folder / "a.rec", folder / "a.pkg"
    calls = [(program, call) for program, call in CASES.values()]
    calls += [(scaled, call) for call in SCALED[:2]]
    settings = Settings("eager")
    with aotdyn.record(recording):
        for program, call in calls:
            compiled(program, settings)(*clones(call))
    report = aotdyn.pack([recording], package, ["cpu"], {"isas": [isa()]})
    return Packed(recording, package, report)


@pytest.fixture
def served(packed):
    """The compiled form of a program, served from the package or not at all."""
    with aotdyn.load(packed.package, on_miss="error") as package:
        yield lambda program: compiled(program, Settings("eager"))
        assert not package.refused


def clones(values):
    return [
        v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) else v
        for v in values
    ]


def outcome(program, call):
    given = clones(call)
    torch.manual_seed(3)
    found = program(*given)
    outputs = found if isinstance(found, tuple) else (found,)
    ends = [t for t in outputs if isinstance(t, torch.Tensor) and t.requires_grad]
    if ends:
        sum(t.sum() * (i + 1) for i, t in enumerate(ends)).backward()
    grads = [v.grad for v in given if isinstance(v, torch.Tensor)]
    return [t.detach() if isinstance(t, torch.Tensor) else t for t in (*outputs, *given, *grads)]


def assert_close(actual, expected):
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
        else:
            assert a == b and type(a) is type(b)


def test_all_graphs_are_compiled(packed):
    assert packed.report.compiled == (("cpu", packed.report.graphs),), str(packed.report)
    assert packed.report.targets == ("eager", "cpu")
    with PackageFile.open(packed.package) as package:
        assert {package.artifact(id, "cpu").notes["way"] for id in package.graphs} == {"container"}
        assert package.targets["cpu"]["torch"] == str(torch.__version__)


@pytest.mark.parametrize("name", CASES)
def test_a_program_is_served_compiled(name, served):
    program, call = CASES[name]
    for _ in range(2):
        assert_close(outcome(served(program), call), outcome(program, call))


def test_sizes_and_ints_that_change(served):
    for call in (*SCALED, (R(7, 8), grad(8, 8), -2), (R(7, 8), grad(8, 8), 0)):
        assert_close(outcome(served(scaled), call), outcome(scaled, call))


def test_inputs_that_overlap_are_served_eagerly(served):
    base = R(6)
    expected = base.clone()
    result = read_after_update(expected[1:5], expected[:4])
    torch.testing.assert_close(served(read_after_update)(base[1:5], base[:4]), result)
    torch.testing.assert_close(base, expected)


def test_gradients_twice_and_of_gradients(served):
    x, w = clones(CASES["dropout"][1])
    loss = served(dropout)(x, w).sum()
    (first,) = torch.autograd.grad(loss, w, retain_graph=True)
    (again,) = torch.autograd.grad(loss, w, create_graph=True)
    assert torch.equal(first, again) and again.requires_grad
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        again.sum().backward()


def test_without_a_compiler_there_is_eager(packed, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    report = aotdyn.pack([packed.recording], tmp_path / "a.pkg", ["cpu"])
    assert report.targets == ("eager",) and "no C++ compiler" in str(report)


def test_a_package_for_another_torch(packed, monkeypatch):
    monkeypatch.setattr("aotdyn.runtime.artifacts.needs.torch.__version__", "2.99.0")
    with pytest.warns(UserWarning), aotdyn.load(packed.package, on_miss="error") as package:
        call = CASES["update"][1]
        actual = outcome(compiled(update, Settings("eager")), call)
        assert_close(actual, outcome(update, call))
        assert any("it is for torch" in line for line in package.refused)


SERVE = """
import sys, torch, aotdyn
from aotdyn.package.archive import PackageFile
package = aotdyn.load(sys.argv[1], on_miss="error")
torch.set_num_threads(int(sys.argv[2]))
for id in package.file.graphs:
    graph = package.graph(id)
    data = package.file.graph(id)
    if data.symbols or any(i.dtype != "float32" or len(i.size) > 2 for i in data.inputs):
        continue
    leaves = [torch.rand(i.size).requires_grad_(i.requires_grad) for i in data.inputs]
    for output in graph(*leaves):
        if output is not None and output.requires_grad:
            output.sum().backward(retain_graph=True)
assert graph.__module__.startswith("aotdyn.runtime.artifacts")
bad = {"torch._dynamo", "torch._inductor", "sympy", "triton", "aotdyn.record",
       "torch._functorch.aot_autograd", "torch.fx.experimental.symbolic_shapes",
       "aotdyn.package.compilers"} & sys.modules.keys()
assert not bad, bad
"""


@pytest.mark.parametrize("threads", ["1", "2", "16"])
def test_serving_imports_no_compiler_whatever_the_number_of_threads(packed, threads):
    subprocess.run([sys.executable, "-c", SERVE, str(packed.package), threads], check=True)


def test_the_same_graphs_as_python(packed, tmp_path):
    """The gate compares them with eager, gradients included."""
    jobs = [Job(graph) for graph in read_recording(packed.recording).graphs.values()]
    options = Options(isas=(isa(),), ways=("python",))
    with Builder(options, Cache(tmp_path)) as builder:
        assert builder.build(jobs).refusals == {}
