"""What the text of a graph for a GPU is given."""

from types import SimpleNamespace

import pytest
import torch

from aotdyn.package.archive import Artifact
from aotdyn.package.errors import PackageError
from aotdyn.package.plan import NEW, Output, Plan, plan_to_bytes
from aotdyn.runtime.artifacts import cuda_graphs, gpu_parts, load_graph
from aotdyn.runtime.artifacts.gpu_parts import ALIGNMENT, aligned, copied_if_misaligned
from tests.runtime.artifacts.stand_in_device import StandIn


def forward(inputs):
    x, y = inputs
    assert not x.data_ptr() % ALIGNMENT
    x.add_(y)
    return [x * 2]


def test_misaligned_inputs_that_are_changed():
    """The code gets an aligned copy with the same strides; the change reaches the input."""
    base = torch.arange(33.0)
    for x in (base[1:], base[1:].view(4, 8).t(), base[1:][::2], base[4:]):
        before, version, strides = x.clone(), x._version, []

        def code(inputs, strides=strides):
            strides.append(inputs[0].stride())
            return forward(inputs)

        y = torch.ones(())
        (found,) = aligned(code, (0,))((x, y))
        assert torch.equal(x, before + 1) and torch.equal(found, x * 2)
        assert strides == [x.stride()]
        # The call itself says what has changed.
        assert x._version == version + (x.data_ptr() % ALIGNMENT == 0)


def test_parameters_are_changed_as_well():
    x = torch.nn.Parameter(torch.zeros(9))[1:].detach().requires_grad_()

    def code(inputs):
        with torch.no_grad():
            return forward(inputs)

    aligned(code, (0,))((x, torch.ones(8)))
    assert x.sum() == 8 and x.requires_grad and x.is_leaf


def test_inference_tensors_are_changed_as_well():
    with torch.inference_mode():
        x = torch.zeros(9)[1:]
        aligned(forward, (0,))((x, torch.ones(8)))
        assert x.sum() == 8


def test_misaligned_inputs_that_are_only_read():
    """As torch's own, which not all of its versions have."""
    torchs = torch._C._dynamo.guards.copy_if_misaligned
    base = torch.arange(40.0)
    tensors = (
        base[4:], base[1:], base[1:37].view(4, 9).t(), base[1:][::3], base[1:2].expand(5),
        base[1:1], base[1:11].unfold(0, 4, 2), base[1:].view(torch.int32),
    )  # fmt: skip
    for tensor in tensors:
        mine, theirs = copied_if_misaligned(tensor), torchs(tensor)
        assert torch.equal(mine, theirs) and mine.stride() == theirs.stride()
        assert (mine is tensor) == (theirs is tensor) == (not tensor.data_ptr() % ALIGNMENT)
        assert not mine.data_ptr() % ALIGNMENT


TEXT = """
def forward(args):
    x, w = args
    with device_guard(0):
        return [extern_kernels.mm(x, w, out=empty_strided_cuda((2, 2), (2, 1), torch.float32))]
"""


@pytest.fixture
def device(monkeypatch):
    """A stand-in for a GPU."""
    found = StandIn()
    monkeypatch.setattr(gpu_parts, "gpu_form", lambda target: "bin")
    monkeypatch.setattr(cuda_graphs, "cuda_device", lambda index: found)
    names = {
        "device_guard": lambda index: torch.no_grad(),
        "empty_strided_cuda": torch._C._dynamo.guards._empty_strided_cpu,
    }
    monkeypatch.setattr(gpu_parts, "_device_names", lambda: names)
    return found


@pytest.mark.parametrize("target", ["cuda:sm_90", "hip:gfx942"])
@pytest.mark.parametrize(
    "planned, why, given, captures",
    [
        (False, "", None, False),
        (True, "", None, True),
        (True, "", False, False),
        (False, "", True, True),
        (True, "it takes a tensor of the CPU", True, False),
    ],
)
def test_who_decides_about_captures(device, target, planned, why, given, captures):
    """Also of graphs without kernels of their own."""
    plan = Plan(
        "", 0, outputs=(Output(NEW),), python=True, static=(1,), captured=planned,
        uncapturable=why,
    )  # fmt: skip
    artifact = Artifact(target, TEXT, {}, {"plan": plan_to_bytes(plan)})
    graph = load_graph(artifact, lambda: None, given)
    w = torch.randn(2, 2)
    for _ in range(4):
        x = torch.randn(2, 2)
        (found,) = graph(x, w)
        assert torch.equal(found, x @ w)
    assert device.replayed == (3 if captures else 0)


@pytest.mark.parametrize("limit, fits", [(101_376, True), (99_000, False)])
def test_blocks_that_need_more_shared_memory_than_there_is(monkeypatch, limit, fits):
    """Code for a GPU of the same generation may be for a larger one."""
    properties = SimpleNamespace(shared_memory_per_block_optin=limit)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda: properties)
    plan = SimpleNamespace(launches=[SimpleNamespace(shared=n) for n in (0, 100_000, 512)])
    if fits:
        gpu_parts._check_shared(plan)
    else:
        with pytest.raises(PackageError, match="needs 100000 bytes of shared memory; here are 990"):
            gpu_parts._check_shared(plan)
