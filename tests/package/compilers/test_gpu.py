"""GPU targets on a machine without a GPU: what they refuse and what they compile. That it computes
what eager computes is for `test_gpu_served.py`."""


import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import aotdyn
from aotdyn.package.compilers import Job, Unavailable
from aotdyn.package.compilers.cache import Cache
from aotdyn.package.compilers.gpu import build
from aotdyn.package.compilers.gpu.architectures import architecture_of
from aotdyn.package.devices import moved_graph
from aotdyn.package.errors import AotdynError
from aotdyn.package.plan import plan_from_bytes
from aotdyn.package.recording import read_recording
from aotdyn.runtime.artifacts.targets import cuda_form
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

TO_GPU = {"cpu": "cuda:0"}
R = torch.randn


def heads(dtype):
    return tuple(R(2, 2, 16, 32, dtype=dtype).requires_grad_() for _ in range(3))


def flash(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def masked(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, torch.ones(16, 16).tril().to(q))


def jobs(recording, count=None):
    graphs = list(read_recording(recording).graphs.values())[:count]
    return [Job(moved_graph(graph, TO_GPU)) for graph in graphs]


def built(target, found, folder):
    with build.GpuBuilder(target, build.Options(), Cache(folder)) as builder:
        return builder.build(found)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """Programs that launch kernels of their own, recorded on the CPU."""
    programs = pytest.importorskip("tests.record.test_user_kernels")
    path = tmp_path_factory.mktemp("kernels") / "a.rec"
    with aotdyn.record(path):
        for program, args in programs.WHOLE.values():
            compiled(program, Settings("eager"))(*args)
        several = compiled(programs.add, Settings("eager"))
        for size in (40, 30):
            several(R(size), R(size))
    return path


# -- without a compiler ------------------------------------------------------------------------


def test_unknown_targets_are_refused():
    with pytest.raises(AotdynError, match="there is no GPU target 'cuda:sm_70'"):
        architecture_of("cuda:sm_70")


def test_without_triton_there_is_one_line(monkeypatch):
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unavailable, match="Triton is not installed"):
        build.build_graphs("cuda:sm_90", [], {})


@pytest.mark.parametrize(
    ("name", "capability", "form"),
    [
        ("sm_80", (8, 0), "bin"),
        ("sm_80", (8, 9), "bin"),
        ("sm_89", (8, 6), None),
        ("sm_80", (9, 0), "ptx"),
        ("sm_86", (12, 0), "ptx"),
        ("sm_90", (9, 0), "bin"),
        ("sm_90", (10, 0), None),
        ("sm_120", (12, 0), "bin"),
        ("sm_100", (10, 3), None),
        ("sm_80", (7, 5), None),
    ],
)
def test_which_code_a_device_runs(name, capability, form):
    assert cuda_form(name, capability) == form


# -- with Triton -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90", "hip:gfx942"])
def test_users_kernels_are_compiled(kernels, tmp_path, target):
    found = built(target, jobs(kernels), tmp_path)
    assert found.refusals == {}
    plans = [plan_from_bytes(each.files["plan"]) for each in found.artifacts.values()]
    launches = {launch.symbol: launch for plan in plans for launch in plan.launches}
    # A float is passed as Triton passes it; what a configuration says is used.
    assert launches["add_kernel"].types == ("*fp32", "*fp32", "*fp32", "i32", "fp32")
    assert launches["scale_kernel"].threads == 2 * architecture_of(target).warp


def test_users_kernels_are_not_for_the_cpu(kernels):
    from aotdyn.package.compilers.cpu.lower_container import lower
    from aotdyn.package.compilers.refusal import Refused

    (job, *_) = jobs(kernels)
    with pytest.raises(Refused, match="it starts the kernel add_kernel, which is for GPUs"):
        lower(Job(moved_graph(job.graph, {"cuda:0": "cpu"})), build.Options(isas=("scalar",)))


@pytest.mark.slow
def test_attention_is_by_the_operator_that_the_device_would_take(tmp_path):
    path = tmp_path / "a.rec"
    wanted = {}
    with aotdyn.record(path):
        for program, dtype, fits in (
            (flash, torch.bfloat16, True), (flash, torch.float16, True),
            (flash, torch.float32, False), (masked, torch.float16, False),
        ):  # fmt: skip
            compiled(program, Settings("eager"))(*heads(dtype))
            wanted[program.__name__, str(dtype)[6:]] = fits
    found = built("cuda:sm_90", jobs(path), tmp_path)
    assert found.refusals == {}
    for graph in read_recording(path).graphs.values():
        by_mask = any(node.target == "tril" or "tril" in repr(node.target) for node in graph.nodes)
        name = "masked" if by_mask else "flash"
        text = found.artifacts[moved_graph(graph, TO_GPU).id].text
        parts = [
            part for part in ("flash_attention.default", "flash_attention_backward.default")
            if f"_scaled_dot_product_{part}" in text
        ]  # fmt: skip
        assert len(parts) == 2 * wanted[name, graph.inputs[0].dtype], text


# -- sizes beyond 32 bits ----------------------------------------------------------------------


def placed(x):
    return x.as_strided((2, 3), (2, 1), 1) + 1


def test_views_placed_in_an_inputs_memory_are_not_compiled(tmp_path):
    """Another input may begin elsewhere in its memory."""
    from aotdyn.package.compilers.cpu.lower_container import lower
    from aotdyn.package.compilers.refusal import Refused

    graph = recorded_with(placed, tmp_path / "a.rec", (R(24),))
    with pytest.raises(Refused, match="as_strided counts from the start of an input's memory"):
        lower(Job(moved_graph(graph, {"cuda:0": "cpu"})), build.Options(isas=("scalar",)))


def scaled(x, y):
    return x * 2 + y


def turned(x, y):
    return x.t() + y


def recorded_with(program, path, *calls):
    with aotdyn.record(path):
        served = compiled(program, Settings("eager"))
        for args in calls:
            served(*args)
    *_, job = jobs(path)
    return job.graph


def with_sizes(graph, *sizes):
    """The graph as if its inputs, which lie without gaps, had other sizes."""
    inputs = [
        replace(item, size=size, stride=torch.empty(size, device="meta").stride())
        for item, size in zip(graph.inputs, sizes, strict=True)
    ]
    return replace(graph, inputs=tuple(inputs))


def bytes_of(*size):
    return torch.ones(size, dtype=torch.int8)


HUGE = 1 << 31


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cuda:sm_90", "hip:gfx942"])
def test_numbers_are_as_wide_as_the_sizes_need(target, tmp_path):
    small = recorded_with(scaled, tmp_path / "a.rec", (bytes_of(4, 8), bytes_of(8)))
    crossed = recorded_with(turned, tmp_path / "b.rec", (bytes_of(4, 8), bytes_of(8, 4)))
    graphs = {
        "i32": with_sizes(small, (1 << 15, 1 << 15), (1 << 15,)),
        "i64": with_sizes(small, (1 << 16, 1 << 15), (1 << 15,)),
        "wide": with_sizes(crossed, (8, 1 << 27), (1 << 27, 8)),
    }
    found = built(target, list(map(Job, graphs.values())), tmp_path)
    assert found.refusals == {}
    grids = {name: grid_of(found.artifacts[graph.id]) for name, graph in graphs.items()}
    for name, kind, count in (("i32", "i32", 1 << 30), ("i64", "i64", HUGE)):
        launch, (x, y, z), numbers = grids[name]
        assert launch.types[-1] == kind and numbers == [count]
        # Blocks of at most 2048 elements, as many as there have to be, and no more than a grid has.
        assert (y, z) == (1, 1) and count // 2048 <= x < HUGE
    launch, (x, y, z), numbers = grids["wide"]
    assert sorted(numbers) == [8, 1 << 27]
    assert max(y, z) <= 65535 and x < HUGE and x * y * z * 8192 >= 1 << 30


def grid_of(artifact):
    """The only kernel of a text, its grid, and the numbers that it is given."""
    (launch,) = plan_from_bytes(artifact.files["plan"]).launches
    (given,) = re.findall(r"\.run\((.*), stream=", artifact.text)
    names: dict = {}
    exec(launch.text, names)
    numbers = [int(each) for each in given.split(", ") if each.isdecimal()]
    pointers = [None] * sum(kind[0] == "*" for kind in launch.types)
    grid, passed = names["launch"](*pointers, *numbers)
    return launch, grid, [each for each in passed if each is not None]


@pytest.mark.slow
def test_symbolic_sizes_beyond_32_bits_run_eagerly(tmp_path):
    """The code is for numbers of 32 bits; whether they suffice is asked at each call."""
    calls = [(bytes_of(n, 8), bytes_of(8)) for n in (4, 6)]
    graph = recorded_with(scaled, tmp_path / "a.rec", *calls)
    found = built("cuda:sm_90", [Job(graph)], tmp_path)
    artifact = found.artifacts[graph.id]
    (launch,) = plan_from_bytes(artifact.files["plan"]).launches
    assert launch.types[-1] == "i32"
    start = artifact.text.index("def fits")
    names: dict = {}
    exec(artifact.text[start:].partition("\n\n")[0], names)

    def fits(rows):
        return names["fits"]([torch.empty(rows, 8, device="meta"), torch.empty(8, device="meta")])

    assert fits(100) and fits((HUGE - 1) // 8)
    assert not fits(HUGE // 8)
