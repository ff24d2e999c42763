"""GPU targets on a machine without a GPU: what is compiled is for the architecture that was asked
for, its sources compute what eager computes, and the runtime starts the kernels that it says."""

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import aotdyn
from aotdyn.package.compilers import Job, Unavailable
from aotdyn.package.compilers.cache import Cache
from aotdyn.package.compilers.gpu import build
from aotdyn.package.compilers.gpu.architectures import ARCHITECTURES, architecture_of
from aotdyn.package.compilers.gpu.elf import architecture_in
from aotdyn.package.devices import moved_graph
from aotdyn.package.errors import AotdynError
from aotdyn.package.launch import ASSEMBLY, code_file
from aotdyn.package.plan import plan_from_bytes
from aotdyn.package.recording import read_recording
from aotdyn.runtime.artifacts import compiled as artifacts
from aotdyn.runtime.artifacts import gpu_parts
from aotdyn.runtime.artifacts.targets import cuda_form
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings

TO_GPU = {"cpu": "cuda:0"}
R = torch.randn


def grad(*size):
    return R(*size).requires_grad_()


def attention(q, k, v):
    scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1)
    return scores @ v


def rms_norm(x, w):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def mlp(x, w, b, v):
    return F.layer_norm(F.gelu(F.linear(x, w, b)), (16,)) @ v


def update(x, y):
    x.add_(y)
    return x * 2


def without(x, w):
    with torch.no_grad():
        z = (x * w).sum()
    return x * w * z, z


CASES = {
    "pointwise": (lambda x, y: (x * 2 + y).tanh() - y.exp(), (R(33), R(33))),
    "transposed": (lambda x, y: x.t() + y, (R(6, 10), R(10, 6))),
    "broadcast": (lambda x, y: (x[:, None] * y[None]).relu(), (R(7), R(9))),
    "reductions": (lambda x: (x.sum(0), x.amax(1), x.mean(), x.var(-1)), (R(8, 24),)),
    "argmax": (lambda x: x.argmax(-1), (R(5, 17),)),
    "softmax": (lambda x: (x.softmax(-1), x.log_softmax(0)), (R(6, 19),)),
    "cumsum": (lambda x: x.cumsum(-1), (R(4, 16),)),
    "where": (lambda x: torch.where(x > 0, x, x.abs().sqrt()), (R(40),)),
    "cat": (lambda x, y: torch.cat([x, y * 2], 1)[:, 1:], (R(4, 5), R(4, 3))),
    "ints": (lambda x: (x // 3, x % 5, x.bool()), (torch.arange(1, 30),)),
    "half": (lambda x: F.silu(x) * x, (R(48).half(),)),
    "bfloat16": (lambda x: F.layer_norm(x, (16,)), (R(4, 16).bfloat16(),)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (16,), w), (R(4, 16), grad(16))),
    "rms_norm": (rms_norm, (R(4, 16), grad(16))),
    "mlp": (mlp, (R(6, 16), grad(16, 16), grad(16), grad(16, 8))),
    "attention": (attention, (grad(2, 2, 8, 4), grad(2, 2, 8, 4), grad(2, 2, 8, 4))),
    "embedding": (
        lambda i, w: F.embedding(i, w).mean(1),
        (torch.randint(0, 2, (3, 5)), grad(16, 8)),
    ),
    "cross_entropy": (
        lambda x, y: F.cross_entropy(x, y),
        (grad(6, 10), torch.randint(0, 2, (6,))),
    ),
    "conv": (lambda x, w: F.conv2d(x, w, padding=1).relu(), (R(2, 3, 6, 6), grad(4, 3, 3, 3))),
    "batch_norm": (
        lambda x, m, v: F.batch_norm(x, m, v, training=True),
        (grad(4, 3, 5), torch.zeros(3), torch.ones(3)),
    ),
    "dropout": (lambda x: F.dropout(x, 0.5, True) * 2, (grad(32),)),
    "update": (update, (R(12), R(12))),
    "no_grad": (without, (R(4, 8), grad(4, 8))),
    "views": (lambda x, w: ((y := x * w).t(), y[0], x.view(-1)), (R(4, 4), grad(4, 4))),
}


def heads(dtype):
    return tuple(R(2, 2, 16, 32, dtype=dtype).requires_grad_() for _ in range(3))


def flash(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def masked(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, torch.ones(16, 16).tril().to(q))


def sized(x, w, n):
    return (x @ w).softmax(-1) * n, n + x.shape[0]


SIZED = [(R(b, 8), grad(8, 8), n) for b, n in ((4, 3), (6, 5))]


def clones(args):
    return [
        a.detach().clone().requires_grad_(a.requires_grad) if torch.is_tensor(a) else a
        for a in args
    ]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """All programs, recorded on the CPU."""
    path = tmp_path_factory.mktemp("gpu") / "a.rec"
    settings = Settings("eager")
    with aotdyn.record(path):
        for program, args in CASES.values():
            compiled(program, settings)(*clones(args))
        for args in SIZED:
            compiled(sized, settings)(*clones(args))
    return path


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


def interpreted(recording):
    """What is wrong with each graph of a recording when Triton interprets its code."""
    script = Path(__file__).with_name("triton_interpreter.py")
    code = f"import runpy; print(runpy.run_path({str(script)!r})['environment']())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not found.returncode, found.stderr
    done = subprocess.run(
        [sys.executable, script, recording, "cuda:sm_90"],
        capture_output=True, text=True, env=eval(found.stdout),
    )  # fmt: skip
    assert not done.returncode, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_sources_compute_what_eager_computes(recording):
    """Also for gradients, and for other sizes where they are symbolic."""
    answers = interpreted(recording)
    assert len(answers) == len(CASES) + len(SIZED)
    assert {id: answer for id, answer in answers.items() if answer} == {}


@pytest.mark.slow
@pytest.mark.parametrize("target", ARCHITECTURES)
def test_each_architecture_packs(recording, tmp_path, target):
    found = built(target, jobs(recording, 4), tmp_path)
    assert found.refusals == {}
    name = architecture_of(target).name
    for artifact in found.artifacts.values():
        plan = plan_from_bytes(artifact.files["plan"])
        assert plan.launches
        for launch in plan.launches:
            assert architecture_in(artifact.files[code_file(launch.name)]) == name
            later = code_file(launch.name, ASSEMBLY) in artifact.files
            assert later == (target in ("cuda:sm_80", "cuda:sm_86", "cuda:sm_89"))


@pytest.mark.slow
def test_the_same_recording_gives_the_same_bytes(recording, tmp_path):
    found = jobs(recording, 3)
    first = built("cuda:sm_90", found, tmp_path / "a")
    second = built("cuda:sm_90", found, tmp_path / "b")
    assert first.artifacts.keys() == second.artifacts.keys() == {j.graph.id for j in found}
    assert first.artifacts == second.artifacts


@pytest.mark.slow
def test_the_runtime_starts_the_kernels(recording, tmp_path, monkeypatch, mock_drivers):
    job = next(job for job in jobs(recording) if "layer_norm" in repr(job.graph.nodes))
    artifact = built("cuda:sm_90", [job], tmp_path).artifacts[job.graph.id]
    plan = plan_from_bytes(artifact.files["plan"])
    names = {
        "copy_if_misaligned": lambda tensor: tensor,
        "device_guard": lambda index: nullcontext(),
        "empty_strided_cuda": torch._C._dynamo.guards._empty_strided_cpu,
        "get_raw_stream": lambda index: 7,
    }
    monkeypatch.setattr(gpu_parts, "gpu_form", lambda target: "bin")
    monkeypatch.setattr(gpu_parts, "_device_names", lambda: names)
    call = artifacts.load_graph(artifact, lambda: pytest.fail("it is right for these inputs"))
    inputs = [
        torch.ones(i.size, dtype=getattr(torch, i.dtype), requires_grad=i.requires_grad)
        for i in job.graph.inputs
    ]
    call(*inputs)
    launches = [line for line in mock_drivers() if line["op"] == "launch"]
    forward = [launch for launch in plan.launches if launch.name.startswith("forward_")]
    assert [line["symbol"] for line in launches] == [launch.symbol for launch in forward]
    for line, launch in zip(launches, forward):
        assert line["threads"] == launch.threads
        assert line["shared"] == launch.shared
        assert line["stream"] == 7
        pointers = sum(kind[0] == "*" for kind in launch.types)
        assert len(line["parameters"]) >= 2 * 8 * (pointers + launch.padding)
    # An input of the graph is what the first kernel gets.
    packed = bytes.fromhex(launches[0]["parameters"])
    addresses = {int.from_bytes(packed[i : i + 8], "little") for i in range(0, len(packed), 8)}
    assert addresses & {value.data_ptr() for value in inputs}


@pytest.mark.slow
def test_users_kernels_compute_what_eager_computes(kernels):
    answers = interpreted(kernels)
    assert len(answers) == 9
    assert {id: answer for id, answer in answers.items() if answer} == {}


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
    from aotdyn.package.compilers.cpu.lower import lower
    from aotdyn.package.compilers.cpu.refusal import Refused

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
