"""Operators that a program registers itself: what a recording says of where they come from, and how
they get into the process that compiles."""

import importlib
import sys

import pytest
import torch

import aotdyn
from aotdyn.package.providers import (
    NotRegistered,
    load_providers,
    named_provider,
    operator_name,
    providers_of,
)
from aotdyn.package.recording import read_recording
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

TEXT = """
import torch

@torch.library.custom_op("{namespace}::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@twice.register_fake
def _(x):
    return torch.empty_like(x)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Makes a module that registers `NAME::twice`; it is not imported."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def make(name):
        (tmp_path / f"{name}.py").write_text(TEXT.format(namespace=name))
        return tmp_path

    return make


def by_namespace(x):
    return torch.ops.aotdyn_test_a.twice(x) + 1


def test_a_graph_knows_the_module_that_registers_its_operator(module, tmp_path):
    folder = module("aotdyn_test_a")
    sys.path.append(str(folder))
    importlib.import_module("aotdyn_test_a")
    path, package = tmp_path / "a.rec", tmp_path / "a.pkg"
    with aotdyn.record(path):
        compiled(by_namespace, Settings("eager"))(torch.ones(2))
    (graph,) = read_recording(path).graphs.values()
    assert graph.providers == (("aotdyn_test_a", str(folder)),)
    aotdyn.pack([path], package)
    with aotdyn.load(package, on_miss="error"):
        served = compiled(by_namespace, Settings("eager"))(torch.ones(2))
        assert torch.equal(served, torch.full((2,), 3.0))


def test_torch_s_own_operators_need_nothing():
    assert providers_of(["ops.aten.add.Tensor", "nn.relu", "ops.prims.add.default"]) == ()
    assert operator_name("ops.wt.plain.default") == "wt::plain" and operator_name("sin") == ""
    load_providers((), ["ops.aten.add.Tensor", "sin"])


def test_a_module_is_imported_from_where_it_was(module):
    folder = module("aotdyn_test_b")
    load_providers([("aotdyn_test_b", str(folder))], ["ops.aotdyn_test_b.twice.default"])
    assert torch.ops.aotdyn_test_b.twice(torch.ones(1)).item() == 2


def test_a_file_is_run(module):
    path = module("aotdyn_test_c") / "aotdyn_test_c.py"
    provider = named_provider(str(path))
    assert provider == ("", str(path)) and named_provider("some.module") == ("some.module", "")
    for _ in range(2):
        load_providers([provider], ["ops.aotdyn_test_c.twice"])


@pytest.mark.parametrize(
    "providers, words",
    [
        ((), "it is not known what registers it"),
        ((("__main__", ""),), "it is registered by the script itself.*--import"),
        ((("no_such_module_here", ""),), "no_such_module_here cannot be loaded: ModuleNotFound"),
        ((("", "/no/such.so"),), "/no/such.so cannot be loaded: OSError"),
    ],
)
def test_operators_that_are_not_there(providers, words):
    with pytest.raises(NotRegistered, match=f"operator aotdyn_test_d::none is not there: {words}"):
        load_providers(providers, ["ops.aotdyn_test_d.none"])
