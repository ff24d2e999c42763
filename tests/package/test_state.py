"""The state of a process as text: a worker that compiles brings it about, and leaves none of it."""

import json

import pytest

from aotdyn.package.errors import AotdynError
from aotdyn.package.state import process_state, process_state_is


@pytest.mark.parametrize(
    "name, value",
    [
        ("allow_tf32", True),  # of `set_float32_matmul_precision("high")`, too
        ("allow_fp16_reduce", 1),
        ("allow_bf16_reduce", 2),
        ("grad_mode", False),
        ("default_dtype", 7),
        ("deterministic_algorithms", True),
        ("attention_kernels", [True, False, True, True, True, [1, 2, 0, 3, 4]]),
    ],
)
def test_a_recorded_state_is_brought_about(name, value):
    before = process_state()
    wanted = json.dumps({**json.loads(before), name: value}, sort_keys=True)
    assert wanted != before
    with process_state_is(wanted):
        assert process_state() == wanted
    assert process_state() == before


def test_what_is_unknown_is_named():
    before = process_state()
    wanted = json.dumps({**json.loads(before), "later": 1, "allow_tf32": True})
    with pytest.raises(AotdynError, match="unknown: later=1$"), process_state_is(wanted):
        pytest.fail("there is no such state")
    assert process_state() == before
