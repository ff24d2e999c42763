"""Programs that read and switch the state of the process: kernels of attention, the default
dtype."""

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
