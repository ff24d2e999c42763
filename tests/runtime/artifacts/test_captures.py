"""Captures, on a stand-in for a GPU: what is captured when, and that a replay is like a call."""

import threading

import pytest
import torch
import torch.nn.functional as F

from aotdyn.package.plan import NEW, Layout, Output, Plan
from aotdyn.runtime.artifacts import captures
from aotdyn.runtime.artifacts.captures import Captured, captured_parts
from aotdyn.runtime.artifacts.training import training_call
from tests.runtime.artifacts.stand_in_device import StandIn

R = torch.randn


def captured(run, static=(), changed=(), said=None):
    device = StandIn()
    say = (lambda line: pytest.fail(line)) if said is None else said.append
    return Captured(run, static, changed, device, "a graph", say), device


def counts(device):
    return device.run_aside, device.captured, device.replayed


def same(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        if not isinstance(b, torch.Tensor):
            assert a == b and type(a) is type(b)
            continue
        assert (a.dtype, a.size(), a.stride()) == (b.dtype, b.size(), b.stride())
        assert torch.equal(a, b)


def expanded(x):
    return [x * 2, x.expand(4, *x.shape)]


def outputs_in_one_memory(x):
    y = x + 1
    return [y, y[1:], y.t(), y.view(torch.int32)]


PARTS = {
    "pointwise": (lambda x, y: [(x + y).tanh()], lambda: (R(3, 4), R(4))),
    "several": (lambda x: [x.sum(), None, x * 2, 7, x.size(0)], lambda: (R(5),)),
    "transposed": (lambda x: [x.t() @ x, (x @ x.t()).t()], lambda: (R(3, 5).t(),)),
    "expanded": (lambda x: [x + 1], lambda: (R(3, 1).expand(3, 4),)),
    "windows": (lambda x: [x + 1], lambda: (R(9).unfold(0, 4, 1),)),
    "columns": (lambda x: [x.relu()], lambda: (R(8, 8)[:, ::3],)),
    "empty": (lambda x: [x * 2, x.sum()], lambda: (R(0, 3),)),
    "dtypes": (
        lambda x, i: [x.half(), i // 2, x > 0],
        lambda: (R(6), torch.arange(6)),
    ),
    "an input": (lambda x, y: [y, x + y], lambda: (R(3), R(3))),
    "views of inputs": (
        lambda x: [x[1:], x.t(), x.view(-1), x.view(torch.int32)],
        lambda: (R(9, 4)[1:],),
    ),
    "views of one": (outputs_in_one_memory, lambda: (R(4, 4),)),
    "an expanded output": (lambda x: [(x * 2).expand(4, 3)], lambda: (R(3),)),
    "a part of an output": (lambda x: [(x * 2)[1:, ::2]], lambda: (R(5, 6),)),
    "complex": (lambda x: [torch.fft.fft(x)], lambda: (R(8),)),
    "numbers": (lambda x, n, a: [x[:n] * a], lambda: (R(8), 5, 0.5)),
    "random": (lambda x: [x + torch.rand_like(x), F.dropout(x)], lambda: (R(16),)),
    "many steps": (lambda x: [F.layer_norm(x, (8,)).softmax(-1).cumsum(0)], lambda: (R(4, 8),)),
}


@pytest.mark.parametrize("name", PARTS)
def test_replays_give_what_calls_give(name):
    """Also in the same memory as what was given before, with the same random numbers."""
    function, make = PARTS[name]
    part, device = captured(lambda inputs: function(*inputs))
    held = []
    for call in range(5):
        inputs = make()
        torch.manual_seed(call)
        wanted = function(*inputs)
        state = torch.get_rng_state()
        torch.manual_seed(call)
        found = part(inputs)
        assert torch.equal(torch.get_rng_state(), state)
        same(found, wanted)
        held.append((found, [w.clone() if torch.is_tensor(w) else w for w in wanted], inputs))
        # What lies in one memory does so here, too.
        for i, a in enumerate(wanted):
            for others, mine in ((wanted, found), (inputs, inputs)):
                for j, b in enumerate(others):
                    if torch.is_tensor(a) and torch.is_tensor(b):
                        of_both = [found[i], mine[j]]
                        assert is_shared(a, b) == is_shared(*of_both), (i, j)
                        if is_shared(a, b):
                            assert a.data_ptr() - b.data_ptr() == offset(*of_both)
    assert counts(device) == (1, 1, 4)
    for found, wanted, _ in held:  # no later call has changed them
        same([f.clone() if torch.is_tensor(f) else f for f in found],
             [w for w in wanted])  # fmt: skip


def is_shared(a, b):
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def offset(a, b):
    return a.data_ptr() - b.data_ptr()


def test_there_is_one_capture_for_each_shape():
    part, device = captured(lambda inputs: [inputs[0] * 2])
    for size in (3, 4, 3, 4, 3, 4):
        x = R(size)
        same(part([x]), [x * 2])
    assert counts(device) == (2, 2, 4)
    for _ in range(2):
        x = R(4, 2).t()[0]  # other strides
        same(part([x]), [x * 2])
    assert counts(device) == (3, 3, 5)


@pytest.mark.parametrize(
    "values", [(1, 2), (1, True), (0.0, -0.0), (1, 1.0), (float("inf"), -float("inf"))]
)
def test_numbers_are_part_of_a_capture(values):
    part, device = captured(lambda inputs: [torch.full((2,), 1.0) / inputs[0], inputs[0]])
    for value in values * 3:
        if value == 0 and type(value) is int:
            continue
        wanted = torch.full((2,), 1.0) / value
        found = part([value])
        same(found, [wanted, value])
    assert device.captured == 2


def test_a_number_that_is_always_another_is_never_captured():
    part, device = captured(lambda inputs: [inputs[0] * inputs[1]])
    for call in range(captures._MOST_SEEN + 10):
        part([R(1), call * 0.1])
    assert device.captured == 0 and len(part._seen) <= captures._MOST_SEEN


def test_static_inputs_are_read_where_they_are():
    weight = R(3, 3)
    part, device = captured(lambda inputs: [inputs[0] @ inputs[1], inputs[1].t()], static=[1])
    for _ in range(4):
        x = R(2, 3)
        same(part([x, weight]), [x @ weight, weight.t()])
        weight.add_(1)
    assert counts(device) == (1, 1, 3)
    # Others are read where those are.
    other = R(3, 3)
    for _ in range(3):
        x = R(2, 3)
        same(part([x, other]), [x @ other, other.t()])
        same(part([x, weight]), [x @ weight, weight.t()])
    assert device.captured == 2


@pytest.mark.parametrize("static", [(), (0,)])
@pytest.mark.parametrize("inference", [False, True])
def test_inputs_that_the_code_changes(static, inference):
    def run(inputs):
        x, y = inputs
        x.add_(y)
        return [x, x * 2]

    part, device = captured(run, static, (0,))
    with torch.inference_mode(inference):
        x = R(6)
        mine = x.clone()
        for _ in range(4):
            y = R(6)
            version = None if inference else x._version
            found = part([x, y])
            mine.add_(y)
            same(found, [mine, mine * 2])
            assert torch.equal(x, mine) and found[0].data_ptr() == x.data_ptr()
            if not inference and device.replayed and not static:
                assert x._version == version  # the graph's call tells of it
    assert counts(device) == (1, 1, 3)


def test_parameters_can_be_given():
    part, device = captured(lambda inputs: [inputs[0].detach() * 2])
    p = torch.nn.Parameter(R(3))
    for _ in range(3):
        (found,) = part([p])
        assert torch.equal(found, p.detach() * 2) and not found.requires_grad
    assert device.replayed == 2


@pytest.mark.parametrize(
    "run, reason",
    [
        (lambda inputs: [inputs[0] * inputs[0].sum().item()], "operation not permitted when st"),
        (lambda inputs: [inputs[0].to("meta")], "it has tensors on cpu and meta"),
        (lambda inputs: [inputs[0].to(torch.cfloat).conj()], "it gives tensors that are conj"),
    ],
)
def test_what_cannot_be_captured_is_launched(run, reason):
    said = []
    part, device = captured(run, said=said)
    for size in (2, 2, 3, 3, 2):
        x = R(size)
        found, wanted = part([x]), run([x])
        assert found[0].device == wanted[0].device
        if found[0].device.type == "cpu":
            same(found, wanted)
    assert device.captured == 1 and device.replayed == 0
    (line,) = said
    assert line.startswith(f"a graph is launched without a capture: {reason}")
    assert "\n" not in line


def test_inputs_of_several_devices_are_not_captured():
    said = []
    part, device = captured(lambda inputs: [inputs[0] * 2], said=said)
    for _ in range(3):
        part([R(2), torch.empty(2, device="meta")])
    assert device.captured == 0
    assert said == ["a graph is launched without a capture: it has tensors on cpu and meta"]


def test_only_so_many_are_captured(monkeypatch):
    monkeypatch.setattr(captures, "MOST", 2)
    said = []
    part, device = captured(lambda inputs: [inputs[0] * 2], said=said)
    for size in (1, 2, 3, 4) * 3:
        x = R(size)
        same(part([x]), [x * 2])
    assert device.captured == 2 and device.replayed == 4
    assert said == ["a graph has 2 captures; other shapes and weights get none"]


def test_a_program_that_captures_gets_launches():
    part, device = captured(lambda inputs: [inputs[0] * 2])
    x = R(3)
    part([x]), part([x])
    device.capturing = True
    same(part([x]), [x * 2])
    assert counts(device) == (1, 1, 1)


def test_settings_of_libraries_are_part_of_a_capture():
    part, device = captured(lambda inputs: [inputs[0] * 2])
    for setting in (0, 1, 0, 1):
        device.setting = setting
        part([R(3)])
    assert device.captured == 2


def test_a_call_inside_a_replay_is_launched():
    """As from a finalizer."""
    part, device = captured(lambda inputs: [inputs[0] * 2])
    x, y = R(3), R(3)
    part([x])
    inner = []

    def call():
        if not inner:
            inner.append(None)
            inner[0] = part([y])

    device.before_replay = call
    same(part([x]), [x * 2])
    same(inner[0], [y * 2])
    assert device.replayed == 1


def test_threads_wait_for_each_other():
    part, device = captured(lambda inputs: [inputs[0] * 2 + inputs[1]])
    wrong, start = [], threading.Barrier(4)

    def work(number):
        start.wait()
        for step in range(50):
            x, y = torch.full((8,), float(number)), torch.full((8,), float(step))
            (found,) = part([x, y])
            if not torch.equal(found, x * 2 + y):
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and device.captured == 1


# -- forward and backward ----------------------------------------------------------------------


def forward(inputs):
    x, w, b = inputs
    y = x @ w
    return [(y + b).tanh(), y, w, x, w.t(), b]


def backward(inputs):
    y, w, x, wt, b, tangent = inputs
    d = tangent * (1 - (y + b).tanh() ** 2)
    return [d @ wt, x.t() @ d, d.sum(0)]


PLAN = Plan(
    "", 0, 1, outputs=(Output(NEW, requires_grad=True, gradient=True),),
    tangents=(Layout("contiguous_format"),), python=True, static=(1, 2),
)  # fmt: skip


def test_training():
    """Results and gradients are eager's, whatever is kept; weights are read in place in both."""
    device = StandIn()
    names = {"forward": forward, "backward": backward}
    parts = captured_parts(PLAN, names, device, "a graph")
    call = training_call(PLAN, parts["forward"], parts["backward"])
    w, b = R(4, 4).requires_grad_(), R(4).requires_grad_()
    held = []
    for _ in range(6):
        x = R(3, 4).requires_grad_()
        # Two calls before the first one's gradients.
        first, second = call((x, w, b))[0], call((x * 2, w, b))[0]
        wanted = (x @ w + b).tanh(), (x * 2 @ w + b).tanh()
        same([first, second], wanted)
        g = R(3, 4)
        found = torch.autograd.grad([first, second], [x, w, b], [g, g * 2])
        those = torch.autograd.grad(wanted, [x, w, b], [g, g * 2])
        for a, c in zip(found, those):
            torch.testing.assert_close(a, c)
        held.append((found, those))
        with torch.no_grad():
            w -= 0.1 * found[1]
            b -= 0.1 * found[2]
    for found, those in held:
        for a, c in zip(found, those):
            torch.testing.assert_close(a, c)
    assert parts["backward"].static == {1, 3, 4}
    assert device.captured == 2
    assert device.run_aside == 2 and device.replayed == 22
