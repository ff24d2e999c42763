"""Programs that read and switch the state of the process: kernels of attention, the default
dtype, devices for what is made."""

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import aotdyn


def attend(q):
    return F.scaled_dot_product_attention(q, q, q)


def doubled(x):
    return x * 2


def one_kernel(q):
    with sdpa_kernel(SDPBackend.MATH):
        return attend(q * 2)


def kernels_in_an_order(q):
    wanted = [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
    before = torch._C._get_sdp_priority_order()
    with sdpa_kernel(wanted, set_priority=True):
        return attend(q), before, torch._C._get_sdp_priority_order()


def nested_kernels(q):
    told = []
    with sdpa_kernel(SDPBackend.MATH):
        told.append(torch.backends.cuda.flash_sdp_enabled())
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            told.append(torch.backends.cuda.flash_sdp_enabled())
            a = attend(q)
        b = attend(q)
    return a, b, told, torch.backends.cuda.flash_sdp_enabled()


def refused_under_kernels(q):
    try:
        with sdpa_kernel(SDPBackend.MATH):
            F.scaled_dot_product_attention(q, q[:1, :, :3, :2], q)
    except RuntimeError:
        return q * 2, torch.backends.cuda.flash_sdp_enabled()


def switched(q):
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        return attend(q), torch.backends.cuda.flash_sdp_enabled()
    finally:
        torch.backends.cuda.enable_flash_sdp(True)


@sdpa_kernel(SDPBackend.MATH)
def decorated(q):
    return attend(q)


def calls_decorated(q):
    return decorated(q) + 1


def members(q):
    kernel = SDPBackend.MATH
    known = {kernel: 3}
    told = kernel == SDPBackend.FLASH_ATTENTION, kernel in [SDPBackend.MATH], known[kernel]
    return q * int(kernel), kernel.name, kernel.value, str(kernel), told


def another_dtype(q):
    torch.set_default_dtype(torch.float64)
    made = torch.ones(3)
    torch.set_default_dtype(torch.float32)
    return made, torch.ones(2), q.double() * 2.5


def another_dtype_and_an_error(q):
    torch.set_default_dtype(torch.float64)
    try:
        return q.view(7)
    except RuntimeError:
        return torch.ones(2)
    finally:
        torch.set_default_dtype(torch.float32)


WHOLE = [one_kernel, kernels_in_an_order, nested_kernels, refused_under_kernels, switched,
         calls_decorated, members, another_dtype, another_dtype_and_an_error]  # fmt: skip


@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_state_is_part_of_the_graph(agree, program):
    agree(program, (torch.randn(2, 2, 8, 16),), graphs=1, breaks=0)


def broken_under_kernels(q):
    with sdpa_kernel(SDPBackend.MATH):
        q = q * 2
        aotdyn.graph_break()
        return attend(q), torch.backends.cuda.flash_sdp_enabled()


def left_switched(q):
    torch.backends.cuda.enable_flash_sdp(False)
    return attend(q)


def test_state_across_a_break(agree):
    agree(broken_under_kernels, (torch.randn(2, 2, 8, 16),))


def test_state_that_is_left_switched(agree):
    try:
        agree(left_switched, (torch.randn(2, 2, 8, 16),))
    finally:
        torch.backends.cuda.enable_flash_sdp(True)


def test_a_failing_graph_leaves_the_kernels_as_they_were():
    def program(q, n):
        with sdpa_kernel(SDPBackend.MATH):
            q = attend(q)
            return q / torch.ones(3)[n]

    compiled = aotdyn.compile(program, backend="eager")
    q = torch.randn(1, 1, 4, 4)
    compiled(q, torch.tensor(1))
    with pytest.raises(IndexError):
        compiled(q, torch.tensor(7))
    assert torch.backends.cuda.flash_sdp_enabled()


@pytest.mark.parametrize("program, graphs", [(attend, 2), (doubled, 1)])
def test_what_depends_on_the_kernels(program, graphs):
    seen = []
    compiled = aotdyn.compile(program, backend=lambda graph, _: seen.append(graph) or graph)
    compiled(torch.randn(1, 1, 4, 4))
    with sdpa_kernel(SDPBackend.MATH):
        compiled(torch.randn(1, 1, 4, 4))
    assert len(seen) == graphs


def on_a_device(x):
    with torch.device("cpu"):
        made = torch.zeros(2), torch.arange(3.0), torch.tensor([1, 2]), torch.as_tensor(3.0)
        return made, torch.randn(2) + torch.full((2,), 3.0) * torch.linspace(0, 1, 2), x + 1


def on_two_devices(x):
    with torch.device("meta"):
        a = torch.zeros(2)
        with torch.device("cpu"):
            b = torch.ones(3)
        c = torch.empty(2, device="cpu").fill_(1)
        d = torch.rand(2, device=None).device
    return a.device, b, c, d, x * 2, torch.zeros_like(x), torch.zeros(1)


def left_by_an_error(x):
    try:
        with torch.device("meta"):
            torch.zeros(3).view(7)
    except RuntimeError:
        return torch.zeros(2) + 1, x * 2


def entered_by_hand(x):
    device = torch.device("meta")
    device.__enter__()
    made = torch.zeros(3).device
    device.__exit__(None, None, None)
    return made, torch.zeros(3) + x[0, 0, 0, :3]


ON_DEVICES = [on_a_device, on_two_devices, left_by_an_error, entered_by_hand]


@pytest.mark.parametrize("program", ON_DEVICES, ids=lambda f: f.__name__)
def test_devices(agree, program):
    agree(program, (torch.randn(2, 2, 8, 16),), graphs=1, breaks=0)


def broken_on_a_device(x):
    y = x * 2
    with torch.device("meta"):
        aotdyn.graph_break()
        made = torch.zeros(2)
    return made.device, y + 1, torch.ones(2)


def asks_for_the_device(x):
    with torch.device("meta"):
        return torch.get_default_device(), x + 1


def left_on_a_device(x):
    torch.device("meta").__enter__()
    return x + 1, torch.zeros(2).device


@pytest.mark.parametrize("program", [broken_on_a_device, asks_for_the_device])
def test_devices_across_breaks(agree, program):
    agree(program, (torch.randn(3),))


def test_a_device_that_is_not_left():
    device = torch.device("meta")
    for function in (left_on_a_device, aotdyn.compile(left_on_a_device, backend="eager")):
        found, made = function(torch.ones(2))
        try:
            assert torch.get_default_device() == made == device
        finally:
            device.__exit__(None, None, None)
        assert torch.equal(found, torch.full((2,), 2.0, device="cpu"))
