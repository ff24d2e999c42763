"""Results and saved tensors of code for GPUs, which takes copies of what is not aligned: what it
says of the copy is meant of the original. (On the CPU nothing is copied: these say what is.)"""

import pytest
import torch

from aotdyn.package.launch import ALIGNMENT
from aotdyn.package.plan import Plan
from aotdyn.runtime.artifacts import results, saved
from aotdyn.runtime.artifacts.results import view_like

PLAN = Plan(
    library="", forward=0, backward=1, updated=(), outputs=(), bases=0, ints=0, unchecked=0,
    bumped=(), detached=(), tangents=(), partial=(), constants=(), grad_mode=None, autocast=False,
    mutates=(), external=False, python=True, kernels=(), frozen=(), launches=(),
)  # fmt: skip


@pytest.fixture(autouse=True)
def copies(monkeypatch):
    def may_be_copied(tensor):
        return tensor.data_ptr() % ALIGNMENT != 0

    monkeypatch.setattr(results, "may_be_copied", may_be_copied)
    monkeypatch.setattr(saved, "may_be_copied", may_be_copied)


@pytest.mark.parametrize("first", [0, 1, 3, 4])
@pytest.mark.parametrize(
    "view",
    [lambda x: x.view(-1), lambda x: x[1:], lambda x: x.t()[2:], lambda x: x.view(torch.int32)],
)
def test_views_of_copies_are_views_of_the_original(first, view):
    original = torch.arange(32.0)[first:][:24].view(4, 6)
    copied = original if original.data_ptr() % ALIGNMENT == 0 else original.clone()
    found = view_like(original, view(copied), False)
    assert found.untyped_storage()._cdata == original.untyped_storage()._cdata
    assert torch.equal(found, view(original)) and found.stride() == view(original).stride()


def test_saved_copies_stay_what_they_are():
    """Also where the first call had nothing to copy, and the other way round."""
    for order in ((0, 1, 0), (1, 0, 1)):
        tie = saved.Saved(PLAN, 1)
        for first in order:
            x = torch.arange(32.0)[first:][:24].view(4, 6)
            taken = x.clone() if first else x
            found = [torch.zeros(1), taken.t()]
            tie((x,), found, 2)
            assert torch.equal(found[1], x.t())
            x.add_(1)
            # Of what is no copy autograd sees that it was written to.
            assert torch.equal(found[1], x.t()) == (not first)
            assert found[1]._version == (0 if first else x._version)
