"""Kernels for GPUs packed in several configurations."""

import pytest
import torch

import aotdyn
from aotdyn.package.compilers import Job
from aotdyn.package.compilers.cache import Cache
from aotdyn.package.compilers.options import Options
from aotdyn.package.devices import moved_graph
from aotdyn.package.errors import AotdynError
from aotdyn.package.launch import code_file
from aotdyn.package.plan import plan_from_bytes
from aotdyn.package.recording import read_recording
from aotdyn.runtime.artifacts.gpu_parts import _sizes
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings


def transposed(x, y):
    return x.t() + y, x.add_(1)


def reduced(x):
    return x.var(0)


def test_tune_is_yes_or_no():
    assert Options.of({"tune": True}).tune and not Options.of({}).tune
    with pytest.raises(AotdynError, match="tune is true or false, not 3"):
        Options.of({"tune": 3})


@pytest.mark.slow
def test_several_configurations_are_packed(tmp_path):
    from aotdyn.package.compilers.gpu import build
    from aotdyn.package.compilers.gpu.kernels import CONFIGURATIONS

    path = tmp_path / "a.rec"
    with aotdyn.record(path):
        compiled(transposed, Settings("eager"))(torch.randn(256, 512), torch.randn(512, 256))
        compiled(reduced, Settings("eager"))(torch.randn(2048, 64))
    graphs = [moved_graph(g, {"cpu": "cuda:0"}) for g in read_recording(path).graphs.values()]
    options = Options.of({"tune": True})
    with build.GpuBuilder("cuda:sm_80", options, Cache(tmp_path)) as builder:
        built = builder.build(list(map(Job, graphs)))
    assert built.refusals == {}
    counts: list[int] = []
    for graph in graphs:
        artifact = built.artifacts[graph.id]
        launches = plan_from_bytes(artifact.files["plan"]).launches
        assert len({launch.name for launch in launches}) == len(launches)
        first = [launch for launch in launches if not launch.instead]
        before = len(counts)
        for one in first:
            others = [each for each in launches if each.instead == one.name]
            counts.append(1 + len(others))
            assert counts[-1] <= CONFIGURATIONS
            code = {bytes(artifact.files[code_file(each.name)]) for each in (one, *others)}
            assert len(code) == counts[-1]
            given = one.text.partition("(")[2].partition(")")[0].split(", ")
            read = [name for index, name in enumerate(given) if index not in one.written]
            if others:
                assert read and all(name.startswith("in_ptr") for name in read)
            for each in others:
                # They are handed over the same, and are passed the same.
                numbers = list(range(1, len(given) + 1))
                assert _sizes(each)(*numbers)[1] == _sizes(one)(*numbers)[1]
                assert (each.types, each.padding) == (one.types, one.padding)
        several = [f"in {count} configurations" for count in counts[before:] if count > 1]
        assert several and all(text in artifact.notes["kernels"] for text in several)
    assert len(counts) >= 2


def sine(x):
    return x.sin()


@pytest.mark.slow
def test_graphs_may_have_the_same_kernel(tmp_path):
    """A process that has compiled it does so no second time."""
    from aotdyn.package.compilers.gpu import build

    path = tmp_path / "a.rec"
    with aotdyn.record(path):
        for size in range(4):
            settings = Settings("eager", options={"max_fusion_size": 60 + size})
            compiled(sine, settings)(torch.randn(64))
    graphs = [moved_graph(g, {"cpu": "cuda:0"}) for g in read_recording(path).graphs.values()]
    with build.GpuBuilder("cuda:sm_80", Options(), Cache(tmp_path)) as builder:
        built = builder.build(list(map(Job, graphs)))
    assert built.refusals == {}
    codes = {bytes(a.files[n]) for a in built.artifacts.values() for n in a.files if ".bin" in n}
    assert len(graphs) == 4 and len(codes) == 1
