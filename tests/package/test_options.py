"""`mode` and `options` of compile(): what is recorded with a graph, and what is refused at once."""

from dataclasses import replace

import pytest
import torch

import aotdyn
from aotdyn.package.errors import AotdynError
from aotdyn.package.graph import Graph
from aotdyn.package.options import compile_options, load_options
from aotdyn.package.printer import render
from aotdyn.package.recording import read_recording
from aotdyn.runtime.patch import torch_compile


@pytest.mark.parametrize(
    "mode, options, expected",
    [
        (None, None, ()),
        ("default", None, ()),
        ("reduce-overhead", None, (("mode", "reduce-overhead"),)),
        (None, {"b": [1, {"x": 2.0}], "a": True}, (("a", True), ("b", [1, {"x": 2.0}]))),
        (None, {"guard_filter_fn": print, "use_aoti": True}, ()),
    ],
)
def test_options_are_data_in_a_fixed_order(mode, options, expected):
    assert compile_options(mode, options) == (expected, [])


def test_what_only_this_process_has_is_named(capsys):
    assert compile_options(None, {"pass": print, "b": 1}) == ((("b", 1),), ["pass"])
    aotdyn.compile(torch.sin, options={"post_grad_custom_post_pass": print})
    assert "post_grad_custom_post_pass" in capsys.readouterr().err


@pytest.mark.parametrize(
    "mode, options, words",
    [
        ("fast", None, "Unrecognized mode=fast, should be one of: default"),
        ("default", {}, "Either mode or options can be specified"),
    ],
)
@pytest.mark.parametrize("compile", [aotdyn.compile, torch_compile])
def test_what_torch_compile_refuses(compile, mode, options, words):
    with pytest.raises(RuntimeError, match=words):
        compile(lambda x: x, mode=mode, options=options)


def twice(x):
    return x * 2


def test_graphs_are_recorded_with_their_options(tmp_path):
    path = tmp_path / "a.rec"
    with aotdyn.record(path):
        torch_compile(twice)(torch.ones(2))
        torch_compile(twice, mode="max-autotune")(torch.ones(2))
        torch_compile(twice, options={"epilogue_fusion": True})(torch.ones(2))
        torch_compile(twice, options={"epilogue_fusion": True})(torch.ones(2))
    graphs = read_recording(path).graphs
    assert [graph.options for graph in graphs.values()] == [
        (), (("mode", "max-autotune"),), (("epilogue_fusion", True),),
    ]  # fmt: skip
    assert "options: mode='max-autotune'" in render(path)


def test_options_belong_to_a_graph_s_identity(samples):
    graph = samples.GRAPH
    assert replace(graph, options=(("a", 1),)).id != graph.id
    assert replace(graph, providers=(("module", ""),)).id == graph.id
    assert replace(Graph((), (), ()), options=()).id == Graph((), (), ()).id


def test_options_of_load(tmp_path):
    assert load_options(None) == {} and load_options({"cudagraphs": False}) == {"cudagraphs": False}
    for given, words in (
        ({"cudagraph": True}, "loaded with the option 'cudagraphs', not 'cudagraph'"),
        ({"cudagraphs": 1}, "the option 'cudagraphs' takes bool, not int"),
    ):
        with pytest.raises(AotdynError, match=words):
            aotdyn.load(tmp_path / "none.pkg", options=given)
