"""Graphs straight through the builder and the gate: what the gate lets pass, and what it stops."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import aotdyn
from aotdyn.package.compilers import Job
from aotdyn.package.compilers.cache import Cache
from aotdyn.package.compilers.cpu import gate
from aotdyn.package.compilers.cpu.build import Builder
from aotdyn.package.compilers.forks import ForkServer
from aotdyn.package.compilers.isa import runnable_here
from aotdyn.package.compilers.options import Options
from aotdyn.package.graph import Graph, GraphInput, Node, Value
from aotdyn.package.plan import plan_from_bytes, plan_to_bytes
from aotdyn.package.recording import read_recording
from aotdyn.package.reference import Import
from aotdyn.package.state import process_state
from aotdyn.runtime.artifacts import load_graph
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

pytestmark = pytest.mark.slow

R = torch.randn
ISA = runnable_here()[-1]


def G(*size):
    return R(*size).requires_grad_()


# -- programs ------------------------------------------------------------------------------------


def gelu(x, w, v):
    return F.gelu(x @ w) + 1e-4 * (x @ v)


def indices(i, w):
    return F.embedding(i, w).sum(1), i // 2


def through_batch_norm(x, w, b, g):
    """The gradient of `b` is nothing but rounding errors."""
    return F.batch_norm(F.linear(x, w, b), None, None, g, None, True).relu()


def scaled(x, w, f):
    return (x @ w) * f + f / 2, x - f


def taken_as_numbers(x, f):
    """Operators that take a number, never a tensor, and the number itself."""
    y = x.abs() ** f + torch.add(x, x, alpha=f) + torch.full((4,), f)
    return y, x.clamp(max=f), f * 2, f > 1


def counted_from(x, i):
    """Indices that start at a number of the program."""
    return x.log_softmax(1).gather(1, (i - 10).unsqueeze(1))


def rows_replaced(x, i, y):
    """At an index that is there twice any of the values is right."""
    return x.clone().index_copy_(0, i, y)


def twice(x):
    """Inductor computes it once."""
    return x + 1, x + 1


def recurrent(x, *weights):
    """On fakes only the decomposition knows symbolic sizes."""
    state = torch.zeros(1, x.size(0), 4), torch.zeros(1, x.size(0), 4)
    return torch.lstm(x, state, weights, True, 1, 0.0, False, False, True)


def halves(x, w):
    return (x @ w).relu() @ w


FLOATS = (0.25, 0.75, 1.5)

# name -> (program, calls)
PROGRAMS = {
    "gelu": (gelu, [(R(4, 8), G(8, 8), G(8, 8))]),
    "indices": (indices, [(torch.randint(0, 9, (2, 5)), G(9, 4))]),
    "batch norm": (through_batch_norm, [(R(16, 4), G(4, 4), G(4), G(4))]),
    "floats": (scaled, [(G(3, 4), G(4, 6), f) for f in FLOATS]),
    "numbers": (taken_as_numbers, [(R(3, 4), f) for f in FLOATS]),
    "counted": (counted_from, [(R(6, 5), torch.randint(10, 15, (6,)))]),
    "rows": (rows_replaced, [(R(8, 3), torch.tensor([1, 4, 2]), R(3, 3))]),
    "twice": (twice, [(R(3, 4),)]),
    "recurrent": (recurrent, [
        (R(b, s, 3), R(16, 3), R(16, 4), R(16), R(16)) for b, s in ((2, 5), (3, 7))
    ]),
    "half": (halves, [(R(8, 8).bfloat16(), R(8, 8).bfloat16().requires_grad_())]),
}


def _ints(*nodes, outputs):
    """A graph of numbers that depend on data. x, w, with gradients: of floats; j: an int."""
    inputs = (
        GraphInput("x", "float32", "cpu", False, (4, 3), (3, 1)),
        GraphInput("w", "float32", "cpu", True, (4, 3), (3, 1)),
        GraphInput("j", "int64", "cpu"),
    )
    made = []
    for name, target, *args in nodes:
        args = tuple(Value(arg[1:]) if str(arg).startswith("%") else arg for arg in args)
        made.append(Node(name, target, args, ()))
    return Graph(inputs, tuple(made), outputs, state=process_state())


MUL, GE, GT = (Import("operator", name) for name in ("mul", "ge", "gt"))
ITEM = ("n", "item", "%j")

GRAPHS = {
    "an int of data": _ints(ITEM, ("y", MUL, "%x", "%n"), outputs=("y",)),
    "an int that comes out": _ints(
        ITEM, ("m", MUL, "%n", 2), ("y", MUL, "%x", "%m"), outputs=("y", "n", "m")
    ),
    "an int that is saved": _ints(
        ITEM, ("y", MUL, "%w", "%n"), ("z", "sin", "%y"), outputs=("z",)
    ),
    "a float of data": _ints(
        ("s", "sum", "%x"), ("n", "item", "%s"), ("y", MUL, "%w", "%n"), ("z", "sin", "%y"),
        outputs=("z",),
    ),
    "a size of data": _ints(
        ITEM, ("c", GE, "%n", 0), ("k", Import("torch", "_check"), "%c"),
        ("y", Import("torch", "zeros"), "%n"), ("s", "sum", "%y"), outputs=("y", "s"),
    ),
    "a mask": _ints(
        ("c", GT, "%x", 0.5), ("m", Import("operator", "getitem"), "%w", "%c"),
        ("z", "sum", "%m"), outputs=("z", "m"),
    ),
}  # fmt: skip


class Built:
    """Graphs by name, and what became of them."""

    def __init__(self, graphs):
        self.graphs = graphs
        options = Options((ISA,), **({"ways": ("container",)}))
        with Builder(options) as builder:
            self.built = builder.build([Job(graph) for graph in graphs.values()])
        self.server = ForkServer()

    def artifact(self, name):
        id = self.graphs[name].id
        assert id in self.built.artifacts, self.built.refusals[id]
        return self.built.artifacts[id]

    def check(self, name, artifact, cache):
        """What the gate says, "" for nothing."""
        return self.compare(self.graphs[name], artifact, cache)

    def compare(self, graph, artifact, cache):
        """The same for any graph."""
        jobs = {graph.id: (Job(graph), artifact)}
        return gate.check_artifacts(jobs, [ISA], cache, self.server).get(graph.id, "")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    path = tmp_path_factory.mktemp("gate") / "a.rec"
    graphs = dict(GRAPHS)
    for name, (program, calls) in PROGRAMS.items():
        with aotdyn.record(path.with_name(f"{name}.rec")):
            recorded = compiled(program, Settings("eager"))
            for call in calls:
                recorded(*call)
        graphs[name] = list(read_recording(path.with_name(f"{name}.rec")).graphs.values())[-1]
    return Built(graphs)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


@pytest.mark.parametrize("name", [*GRAPHS, *PROGRAMS])
def test_right_code_passes(built, name):
    built.artifact(name)


@pytest.mark.parametrize("name", ["floats", "numbers"])
def test_a_float_may_be_any(built, name):
    graph = load_graph(built.artifact(name), None)
    program, calls = PROGRAMS[name]
    names = [item.dtype for item in built.graphs[name].inputs]
    for f in (*FLOATS, -3.7, 1e-3, 9.25):
        given = iter(calls[0][:-1])
        found = graph(*(f if dtype == "symfloat" else next(given) for dtype in names))
        torch.testing.assert_close(tuple(found), program(*calls[0][:-1], f))


def test_equal_outputs_are_tensors_of_their_own(built):
    x = R(3, 4)
    first, second = load_graph(built.artifact("twice"), None)(x)
    first.zero_()
    assert torch.equal(second, x + 1)


# -- wrong code ----------------------------------------------------------------------------------


def wrong(artifact, part, index, factor):
    """The artifact with one of a part's tensors, the first being 0, some times too large."""
    changed = f"[t * {factor!r} if i == {index} else t for i, t in enumerate(run_{part}(a))]"
    return changed_text(artifact, part, f"    return {changed}\n")


def changed_text(artifact, part, body):
    """The artifact whose text calls a function with this body in place of a part's code."""
    text = artifact.text.replace(f"run_{part}", f"changed_{part}")
    assert text != artifact.text
    return replace(artifact, text=f"def changed_{part}(a):\n{body}{text}")


@pytest.mark.parametrize(
    "name, part, index, factor",
    [
        ("gelu", "forward", 0, 1.001),
        ("gelu", "backward", 0, 1.001),
        ("gelu", "backward", 1, 1.001),  # ten thousand times smaller than the other
        ("indices", "backward", 0, 1.001),
        ("batch norm", "backward", 0, 1.001),
        ("batch norm", "backward", 2, 1.001),
        ("floats", "forward", 1, 1.001),
        ("half", "forward", 0, 1.05),
        ("half", "backward", 0, 1.05),
        ("an int that is saved", "backward", 0, 1.001),
    ],
)
def test_wrong_numbers_are_stopped(built, cache, name, part, index, factor):
    said = built.check(name, wrong(built.artifact(name), part, index, factor), cache)
    assert "differs by" in said


def test_one_wrong_row_of_a_table_is_stopped(built, cache):
    """Indices are not only the two smallest."""
    artifact = built.artifact("indices")
    i = [item.dtype for item in built.graphs["indices"].inputs].index("int64")
    body = f"    o = run_forward(a)\n    return [o[0] + (a[{i}] == 8).any(), *o[1:]]\n"
    wrong = changed_text(artifact, "forward", body)
    assert "output 0 differs" in built.check("indices", wrong, cache)


def with_library(artifact, data):
    plan = replace(plan_from_bytes(artifact.files["plan"]), library="changed")
    files = {**artifact.files, "plan": plan_to_bytes(plan), f"{ISA}.so": data}
    return replace(artifact, files=files)


def test_wrong_machine_code_is_stopped(built, cache):
    """gelu's constant, the root of a half, is wrong by one in four thousand."""
    artifact = built.artifact("gelu")
    data = bytes(artifact.files[f"{ISA}.so"])
    assert b"\xf3\x04\x35\x3f" in data
    data = data.replace(b"\xf3\x04\x35\x3f", b"\xf3\x14\x35\x3f")
    assert "differs by" in built.check("gelu", with_library(artifact, data), cache)


@pytest.mark.parametrize("damage", ["code", "end", "nothing"])
def test_damaged_machine_code_is_stopped(built, cache, damage):
    """It crashes, or does not load; this process does neither."""
    artifact = built.artifact("gelu")
    data = bytes(artifact.files[f"{ISA}.so"])
    if damage == "code":
        middle = len(data) // 3
        data = data[:middle] + b"\x0f\x0b" * (len(data) // 6) + data[middle + len(data) // 6 * 2 :]
    else:
        data = data[: len(data) // 2] if damage == "end" else b""
    assert built.check("gelu", with_library(artifact, data), cache)


def test_a_wrong_graph_is_stopped(built, cache):
    graph = built.graphs["gelu"]
    nodes = tuple(
        replace(node, args=tuple(1.01e-4 if arg == 1e-4 else arg for arg in node.args))
        for node in graph.nodes
    )
    other = replace(graph, nodes=nodes)
    assert other != graph
    assert "differs by" in built.compare(other, built.artifact("gelu"), cache)


def test_what_no_input_was_found_for_is_not_shipped(built, cache):
    """A graph that always raises is not known to be right."""
    graph = built.graphs["gelu"]
    never = Node("z", Import("torch", "_assert"), (False, "never"), ())
    other = replace(graph, nodes=(never, *graph.nodes))
    answer = built.compare(other, built.artifact("gelu"), cache)
    assert "could not be tried on random inputs: AssertionError" in answer
