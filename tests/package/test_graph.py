"""Graphs print as Python that computes what their nodes say."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aotdyn.package.compilers.fx import graph_module
from aotdyn.package.graph import (
    Function,
    Graph,
    GraphInput,
    Node,
    Symbol,
    Value,
    python_source,
    values_in,
)
from aotdyn.package.reference import Import, Literal

X, Y, N = GraphInput("x", "float32"), GraphInput("y", "float32"), GraphInput("n", "int", value="s0")
INPUTS = {"x": torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]), "y": torch.ones(2, 3), "n": 2}


def resolved(reference):
    """The object of a reference, looked up plainly."""
    if isinstance(reference, Literal):
        return reference.value
    found = __import__(reference.module, fromlist=["*"])
    for part in filter(None, reference.qualname.split(".")):
        found = getattr(found, part)
    return found


def evaluated(graph, values):
    """What a graph computes, by walking its nodes."""
    values = dict(values)

    def live(arg):
        if isinstance(arg, Function):
            params = tuple(map(tensor, arg.params))
            body = Graph(params, arg.nodes, [v.name for v in arg.result])
            return lambda *args: evaluated(body, zip(arg.params, args))
        if isinstance(arg, Value):
            return values[arg.name]
        if isinstance(arg, tuple | list):
            return type(arg)(map(live, arg))
        if isinstance(arg, dict):
            return {key: live(part) for key, part in arg.items()}
        if isinstance(arg, slice):
            return slice(live(arg.start), live(arg.stop), live(arg.step))
        return resolved(arg) if isinstance(arg, Import | Literal) else arg

    for node in graph.nodes:
        args, kwargs = live(node.args), {key: live(arg) for key, arg in node.kwargs}
        if isinstance(node.target, str):
            values[node.name] = getattr(args[0], node.target)(*args[1:], **kwargs)
        else:
            values[node.name] = resolved(node.target)(*args, **kwargs)
    return tuple(values[name] for name in graph.outputs)


def executed(graph, values):
    text, names = python_source(graph)
    namespace = {name: resolved(reference) for name, reference in names.items()}
    exec(text, namespace)
    return namespace["graph"](*(values[item.name] for item in graph.inputs))


def chain(*nodes, inputs=(X, Y, N), outputs=None):
    return Graph(inputs, nodes, outputs or (nodes[-1].name,))


CHOICE = Import("aotdyn.package.operators", "conditional")


def tensor(name):
    return GraphInput(name, "float32")


def op(name, target, *args, **kwargs):
    return Node(name, target, args, tuple(kwargs.items()))


def py(name):
    return Import("operator", name)


def th(name):
    return Import("torch", name)


x, y, n = Value("x"), Value("y"), Value("n")

GRAPHS = {
    "operators": chain(
        op("a", py("sub"), x, y), op("b", py("pow"), Value("a"), n), op("c", "sum", Value("b"))
    ),
    "methods with keywords": chain(
        op("a", "sum", x, dim=1, keepdim=True), op("b", "t", Value("a"))
    ),
    "functions": chain(op("a", th("cat"), [x, y], dim=0), op("b", th("nn.functional.relu"), x)),
    "one item": chain(op("a", th("stack"), (x,)), op("b", "reshape", Value("a"), (-1,))),
    "items": chain(
        op("a", py("getitem"), x, 0),
        op("b", py("getitem"), x, (..., slice(None, n, None))),
        op("c", py("getitem"), x, (slice(1, None), None, [0, 2])),
        outputs=("a", "b", "c"),
    ),
    "operators on ints": chain(
        op("m", py("mul"), n, 3),
        op("k", py("sub"), Value("m"), 1),
        op("a", py("add"), x, Value("k")),
    ),
    "comparisons": chain(
        op("a", py("le"), x, y),
        op("b", py("ne"), x, y),
        op("c", py("and_"), Value("a"), Value("b")),
    ),
    "other operators": chain(
        op("a", py("neg"), x), op("t", "t", y), op("b", py("matmul"), Value("a"), Value("t"))
    ),
    "negative exponent": chain(op("a", py("pow"), y, -1)),
    "special floats": chain(
        op("a", py("mul"), y, float("inf")),
        op("b", th("full_like"), y, float("nan")),
        op("c", py("add"), y, -0.0),
        op("d", py("mul"), y, 1e-30),
        outputs=("a", "b", "c", "d"),
    ),
    "complex number": chain(op("a", py("mul"), y, 2j)),
    "torch's values": chain(
        op("a", "to", x, Literal(torch.float64)),
        op("b", "to", x, torch.float64),
        op("c", "to", x, th("float64")),
        op("d", th("zeros"), 2, device=torch.device("cpu"), dtype=th("int8")),
        op("e", "contiguous", x, memory_format=torch.contiguous_format),
        op("f", "reshape", x, torch.Size([6])),
        outputs=("a", "b", "c", "d", "e", "f"),
    ),
    "keyword with dict": chain(
        op("a", Import("builtins", "dict"), k={"v": x}, l=[None, True, "s"])
    ),
    "value used twice, and after being returned": chain(
        op("a", py("add"), x, x),
        op("b", py("mul"), Value("a"), Value("a")),
        outputs=("b", "a", "x"),
    ),
    "result that nobody uses": chain(op("a", py("add"), x, 1), op("b", "add_", y, 0)),
    "no operation": chain(op("a", "clone", x), outputs=("a", "a", "n")),
    "functions inside": chain(
        op("p", py("gt"), n, 3),
        op("a", CHOICE, Value("p"),
           Function(("x", "y"), (op("u", py("add"), x, y),), (Value("u"), y)),
           Function(("x", "y"), (op("v", CHOICE, True, Function(("x",), (), (x,)),
                                    Function(("x",), (op("w", "neg", x),), (Value("w"),)), (x,)),
                                 op("z", py("getitem"), Value("v"), 0)),
                    (Value("z"), x)), (x, y)),
        op("b", py("getitem"), Value("a"), 0),
        op("c", py("getitem"), Value("a"), 1),
        outputs=("b", "c"),
    ),
    "no output": Graph((X,), (op("a", "clone", x),), ()),
    "nothing": Graph((), (), ()),
}  # fmt: skip


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5))
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and same(list(a.values()), list(b.values()))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_text_computes_what_the_nodes_say(graph):
    found = executed(graph, INPUTS)
    assert type(found) is tuple and same(found, evaluated(graph, INPUTS))


# Graphs whose text is easily printed as Python that means something else.
TRAPS = {
    "negative base": chain(op("a", py("pow"), -2, n)),
    "negative float base": chain(op("b", "add", y, 1), op("a", py("pow"), -2.0, Value("b"))),
    "keyword that Python reserves": chain(op("a", "random_", x, **{"from": 3, "to": 4})),
    "a function called slice": chain(
        op("a", Import("builtins", "slice"), 0, 1), op("b", py("getitem"), x, slice(0, 1)),
        inputs=(X, replace(N, name="slice")),
    ),
    "an input called slice": chain(
        op("b", py("getitem"), x, slice(0, 1)), inputs=(X, replace(N, name="slice"))
    ),
}  # fmt: skip


@pytest.mark.parametrize("graph", TRAPS.values(), ids=TRAPS)
def test_text_means_what_the_graph_means(graph):
    values = {**INPUTS, "slice": 2}
    assert same(executed(graph, values), evaluated(graph, values))


def test_the_text():
    graph = Graph(
        (X, Y),
        (
            op("sub", py("sub"), x, y),
            op("pow_1", py("pow"), Value("sub"), 2),
            op("z", "sum", Value("pow_1")),
            op("relu", Import("torch.nn.functional", "relu"), Value("z")),
        ),
        ("relu", "z"),
    )
    text, names = python_source(graph)
    assert text == (
        "def graph(x, y):\n"
        "    sub = x - y; x = y = None\n"
        "    pow_1 = sub ** 2; sub = None\n"
        "    z = pow_1.sum(); pow_1 = None\n"
        "    relu = relu_1(z)\n"
        "    return (relu, z)\n"
    )
    assert names == {"relu_1": Import("torch.nn.functional", "relu")}


def test_names_do_not_clash():
    nodes = (
        op("relu", th("relu"), x),
        op("relu_1", Import("torch.nn.functional", "relu"), Value("relu")),
        op("torch", th("relu"), Value("relu_1")),
    )
    graph = chain(*nodes)
    _, names = python_source(graph)
    assert list(names.values()) == [th("relu"), Import("torch.nn.functional", "relu")]
    assert not names.keys() & {"x", "y", "n", "relu", "relu_1", "torch"}
    assert same(executed(graph, INPUTS), evaluated(graph, INPUTS))


def test_values_are_dropped_after_their_last_use():
    dropped = []

    class Tensor(torch.Tensor):
        def __del__(self):
            dropped.append(self.label)

    def labelled(label):
        tensor = torch.zeros(1).as_subclass(Tensor)
        tensor.label = label
        return tensor

    nodes = (
        op("a", Import("m", "f"), "a"),
        op("b", Import("m", "g"), Value("a")),
        op("c", Import("m", "h")),
    )
    text, names = python_source(Graph((), nodes, ("b",)))
    seen = []
    namespace = {"f": labelled, "g": lambda a: None, "h": lambda: seen.extend(dropped)}
    assert set(names) == set(namespace)
    exec(text, namespace)
    namespace["graph"]()
    assert seen == ["a"]


NUMBERS = st.integers(0, 9) | st.floats(0, 9)
STEPS = st.lists(
    st.tuples(
        st.sampled_from("add sub mul truediv maximum".split()),
        st.integers(0, 5),
        st.integers(0, 5) | NUMBERS.map(float),
    ),
    min_size=1,
    max_size=6,
)


@given(STEPS, st.data())
def test_any_chain_computes_what_its_nodes_say(steps, data):
    names, nodes = ["x", "y"], []
    for name, a, b in steps:
        left = Value(names[a % len(names)])
        right = Value(names[b % len(names)]) if type(b) is int else b
        if name == "maximum":
            target, right = th("maximum"), right if isinstance(right, Value) else left
        else:
            target = py(name)
        nodes.append(op(f"v{len(names)}", target, left, right))
        names.append(nodes[-1].name)
    outputs = tuple(data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)))
    graph = Graph((X, Y), tuple(nodes), outputs)
    assert same(executed(graph, INPUTS), evaluated(graph, INPUTS))


@pytest.mark.parametrize("name", ["operators", "functions inside", "no operation"])
def test_the_module_computes_what_the_nodes_say(name):
    graph = GRAPHS[name]
    made = graph_module(graph)(*(INPUTS[item.name] for item in graph.inputs))
    assert same(made, evaluated(graph, INPUTS))


def test_values_in():
    arg = (Value("a"), [Value("b"), {"k": Value("c")}], slice(Value("d"), None, 2), Literal(1), 3)
    assert values_in(arg) == ["a", "b", "c", "d"]


def test_the_id_is_of_what_is_computed():
    graph = GRAPHS["operators"]
    first, *rest = graph.nodes
    assert replace(graph, nodes=(replace(first, user="other.py:3"), *rest)).id == graph.id
    symbol = Symbol("s0", 8, 2, None)
    assert (
        replace(graph, symbols=(symbol,)).id
        == replace(graph, symbols=(replace(symbol, hint=9),)).id
    )
    others = [
        replace(graph, nodes=(replace(first, args=(x, 1)), *rest)),
        replace(graph, nodes=(replace(first, args=(x, True)), *rest)),
        replace(graph, nodes=(replace(first, args=(x, 1.0)), *rest)),
        replace(graph, inputs=(X, Y)),
        replace(graph, outputs=("c", "b")),
        replace(graph, symbols=(symbol,)),
        replace(graph, symbols=(replace(symbol, lower=3),)),
        replace(graph, relations=("s0 % 2 == 0",)),
        replace(graph, grad=False),
    ]
    ids = {graph.id, *(other.id for other in others)}
    assert len(ids) == len(others) + 1
