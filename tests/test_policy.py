"""Which code is traced, and which frames are entries: the program's own, and what is worth it of
libraries."""

import collections
import functools
import json

import hypothesis
import msgpack
import numpy as np
import pytest
import sympy
import torch

import aotdyn
from aotdyn import policy
from tests.conftest import assert_same


def own(x):
    return x


FOREIGN = [
    np.broadcast_shapes, np.linalg.norm.__wrapped__, sympy.factorint, msgpack.packb,
    hypothesis.settings.register_profile, torch.fx.Graph.erase_node, torch.hub.load,
    torch.utils.data.DataLoader.__init__, json.dumps,
]  # fmt: skip
TRACED = [
    own, collections.UserDict.copy, functools.wraps, torch.nn.Linear.forward,
    torch.no_grad.__enter__, torch.nn.functional.dropout,
]  # fmt: skip


@pytest.mark.parametrize("function", FOREIGN, ids=lambda each: each.__qualname__)
def test_foreign_code_is_neither_inlined_nor_an_entry(function):
    code = function.__code__
    assert policy.is_foreign(code)
    assert not policy.is_worth_an_entry(code)


@pytest.mark.parametrize("function", TRACED, ids=lambda each: each.__qualname__)
def test_other_code_is_inlined(function):
    assert not policy.is_foreign(function.__code__)


ENTRIES = {own: True, torch.nn.Linear.forward: True, torch.nn.Linear.__init__: False,
           torch.nn.Module._call_impl: False, functools.wraps: False}  # fmt: skip


@pytest.mark.parametrize("function", ENTRIES, ids=lambda each: each.__qualname__)
def test_what_eager_code_calls_is_an_entry_where_that_is_worth_it(function):
    assert policy.is_worth_an_entry(function.__code__) is ENTRIES[function]


def test_foreign_frames_run_as_they_are():
    """The break is at the call; below it nothing is traced, and the result is the library's."""

    def program(x):
        shape = np.broadcast_shapes(tuple(x.shape), (1,))
        return x.expand(shape) * msgpack.unpackb(msgpack.packb(2))

    with torch.no_grad():
        told = aotdyn.explain(program, torch.ones(3))
        entries = {str(each) for each in told.breaks}
        assert_same(program(torch.ones(3)), aotdyn.compile(program, backend="eager")(torch.ones(3)))
    assert entries
    assert all("test_policy.py" in each for each in entries)
