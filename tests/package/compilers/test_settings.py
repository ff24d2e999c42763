"""Inductor's settings: who wins, what is fixed, and what is refused in one line."""

from dataclasses import replace

import pytest

from aotdyn.package.compilers.lowering.settings import (
    check_settings,
    settings_of,
    wants_captures,
    without_effect,
)
from aotdyn.package.errors import AotdynError


def settings(samples, options, given=()):
    return settings_of(dict(given), replace(samples.GRAPH, options=tuple(options)), 4)


def test_pack_wins_over_the_program_which_wins_over_the_defaults(samples):
    assert settings(samples, ())["fallback_random"] is True
    program = [("fallback-random", False), ("epilogue_fusion", False)]
    found = settings(samples, program, {"epilogue_fusion": True})
    assert found["fallback_random"] is False and found["epilogue_fusion"] is True
    assert found["cpp.threads"] == 4


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_modes_that_change_nothing(samples, mode):
    assert settings(samples, [("mode", mode)]) == settings(samples, ())


@pytest.mark.parametrize("mode", ["max-autotune", "max-autotune-no-cudagraphs"])
def test_no_candidates_are_timed_on_the_machine_that_packs(samples, mode):
    found = settings(samples, [("mode", mode)])
    assert found["max_autotune"] and found["max_autotune_gemm_backends"] == "ATEN"
    assert not found["triton.cudagraphs"]


def test_what_is_fixed(samples):
    asked = [("cpp.dynamic_threads", False), ("triton.cudagraphs", True), ("debug", False)]
    found = settings(samples, asked)
    assert found["cpp.dynamic_threads"] is True
    assert without_effect(asked) == ["cpp.dynamic_threads", "triton.cudagraphs"]


@pytest.mark.parametrize(
    "program, given, wanted",
    [
        ([], {}, False),
        ([("mode", "reduce-overhead")], {}, True),
        ([("mode", "max-autotune")], {}, True),
        ([("mode", "max-autotune-no-cudagraphs")], {}, False),
        ([("cudagraphs", True)], {}, True),
        ([("triton.cudagraphs", True)], {}, True),
        ([("cudagraphs", True)], {"cudagraphs": False}, False),
        ([("mode", "reduce-overhead")], {"triton.cudagraphs": False}, False),
        ([], {"cudagraphs": True}, True),
    ],
)
def test_who_wants_captures(samples, program, given, wanted):
    assert wants_captures(given, replace(samples.GRAPH, options=tuple(program))) is wanted
    check_settings(program, "me")
    check_settings(given.items(), "me")
    # Inductor's own are off in any case.
    assert not settings(samples, program, given)["triton.cudagraphs"]
    assert "cudagraphs" not in settings(samples, program, given)


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("max_autotun", True, "no option 'max_autotun', asked for by me; did you mean 'max_autotu"),
        ("no_such_thing_at_all", 1, "no option 'no_such_thing_at_all'"),
        ("max_autotune", "yes", "the option 'max_autotune' takes bool, not str"),
        ("cpp.threads", True, "takes int, not bool"),
        ("cudagraphs", "yes", "the option 'triton.cudagraphs' takes bool, not str"),
        ("mode", "fast", "unknown mode 'fast'; the known ones are: default"),
    ],
)
def test_unknown_settings_are_refused_in_one_line(name, value, words):
    with pytest.raises(AotdynError, match=words) as caught:
        check_settings([(name, value)], "me")
    assert "\n" not in str(caught.value)


def test_known_settings():
    check_settings([("max-autotune", True), ("mode", "max-autotune"), ("cpp.simdlen", 8)], "me")
