"""Recorded weights: which there are, that they come back, and what pack makes of them."""

import pytest
import torch

import aotdyn
from aotdyn.package.errors import AotdynError, PackageError
from aotdyn.package.pack import frozen_weights
from aotdyn.package.plan import Plan
from aotdyn.package.recording import merge, read_recording
from aotdyn.package.weights import (
    FrozenInput,
    Weight,
    can_be_stored,
    tensor_of,
    weight_digest,
    weight_of,
)
from aotdyn.runtime.artifacts.frozen import weights_as_frozen
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings


class Scaled(torch.nn.Module):
    def __init__(self, value=2.0):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((3,), value))
        self.register_buffer("offset", torch.arange(3.0))
        self.other = torch.ones(3)

    def forward(self, x):
        return x * self.weight + self.offset + self.other


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(2, 3).t(),
        torch.randn(4, dtype=torch.bfloat16),
        torch.tensor(3, dtype=torch.int8),
        torch.randn(3, dtype=torch.complex64).conj(),
        torch.empty(0, 2),
        torch.tensor([True, False]),
        torch.randn(8)[::2],
    ],
)
def test_weights_come_back(tensor):
    weight = weight_of(tensor)
    assert torch.equal(tensor_of(weight), tensor)
    assert weight.digest == weight_digest(tensor) == weight_digest(tensor.clone())


def test_digests_tell_weights_apart():
    tensors = [torch.zeros(4), torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32), torch.ones(4)]
    assert len(set(map(weight_digest, tensors))) == 4


def test_damaged_weights():
    for weight in (
        Weight("", "float33", (1,), b"abcd"),
        Weight("", "float32", (2,), b"abcd"),
        Weight("", "float32", (1,), b"abc"),
    ):
        with pytest.raises(PackageError):
            tensor_of(weight)


def test_what_can_be_stored():
    assert can_be_stored(torch.nn.Parameter(torch.ones(1))) and not can_be_stored(3)
    assert not can_be_stored(torch.ones(2, 2).to_sparse())
    assert not can_be_stored(torch.empty(2, device="meta"))


def recorded(path, calls, weights=True):
    with aotdyn.record(path, weights=weights):
        for module, grad in calls:
            with torch.set_grad_enabled(grad):
                compiled(module, Settings("eager"))(torch.ones(3))
    return read_recording(path)


def test_parameters_and_buffers_are_recorded_where_there_are_no_gradients(tmp_path):
    recording = recorded(tmp_path / "a.rec", [(Scaled(), False), (Scaled(), True)])
    (found,) = recording.graph_weights
    assert not recording.graphs[found.graph].grad
    values = {name: tensor_of(recording.weights[digest]).tolist() for name, digest in found.inputs}
    assert values == {"self_weight": [2.0] * 3, "self_offset": [0.0, 1.0, 2.0]}


def test_weights_are_only_recorded_on_request(tmp_path):
    recording = recorded(tmp_path / "a.rec", [(Scaled(), False)], weights=False)
    assert not recording.weights and not recording.graph_weights
    with pytest.raises(AotdynError, match="record with --weights"):
        frozen_weights(recording, ["cpu"])
    with pytest.raises(AotdynError, match="name it as target"):
        frozen_weights(recording, ["eager"])


def test_graphs_whose_recorded_weights_differ_are_not_frozen(tmp_path):
    one = recorded(tmp_path / "a.rec", [(Scaled(), False)])
    other = recorded(tmp_path / "b.rec", [(Scaled(5.0), False)])
    assert len(frozen_weights(one, ["cpu"])) == 1
    assert len(frozen_weights(merge([one, one]), ["cpu"])) == 1
    assert frozen_weights(merge([one, other]), ["cpu"]) == {}


def test_served_weights_are_compared_with_those_frozen(monkeypatch):
    count = []

    def counted(tensor):
        count.append(tensor)
        return weight_digest(tensor)

    monkeypatch.setattr("aotdyn.runtime.artifacts.frozen.weight_digest", counted)
    weight = torch.arange(4.0)
    same = weights_as_frozen(Plan("", 0, frozen=(FrozenInput(1, weight_digest(weight)),)))
    assert same((0, weight)) and same((0, weight)) and len(count) == 1
    weight += 1
    assert not same((0, weight)) and not same((0, weight)) and len(count) == 2
    weight -= 1
    assert same((0, weight)) and len(count) == 3
    weight.data = torch.ones(4)
    assert not same((0, weight))
    assert same((0, torch.arange(4.0))) and not same((0, torch.ones(4)))
