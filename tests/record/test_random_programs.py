"""Random programs run as plain Python and compiled; nothing tells the two apart.

1,500 of them here; `AOTDYN_RANDOM_PROGRAMS=50000` is the switch for more, and
`python -m tests.record.random_programs` runs any number, in several processes, without shrinking.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.record.random_programs.compare import Case, check
from tests.record.random_programs.grammar import Writer

COUNT = int(os.environ.get("AOTDYN_RANDOM_PROGRAMS", "1500"))
# So that the processes of the test command share the work.
PARTS = 10


class Drawn:
    """Choices that hypothesis makes, and shrinks."""

    def __init__(self, draw):
        self.draw = draw

    def below(self, count: int) -> int:
        return self.draw(st.integers(0, count - 1))


@st.composite
def cases(draw) -> Case:
    """A program with two calls; one in six is broken after a few instructions everywhere."""
    choices = Drawn(draw)
    text = Writer(choices).program()
    calls = tuple(choices.below(1000) for _ in range(2))
    every = 1 + choices.below(30) if choices.below(6) == 5 else 0
    return Case(text, calls, every)


@pytest.mark.parametrize("part", range(PARTS))
def test_compiled_and_plain_cannot_be_told_apart(part):
    # The part is in the name of the function, which seeds a derandomized run.
    def run(case):
        check(case)

    run.__qualname__ = run.__name__ = f"run_{part}"
    limits = settings(
        max_examples=COUNT // PARTS, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(HealthCheck), print_blob=False,
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    limits(given(case=cases())(run))()


def test_most_programs_end_without_an_error():
    """Otherwise they would test little."""
    from tests.record.random_programs.compare import load, observe
    from tests.record.random_programs.seeded import case_of

    errors = 0
    for seed in range(100):
        case = case_of(seed)
        module = load(case.text)
        errors += observe(module, module.program, case.calls[0])["error"] != ("NoneType", "None")
    assert errors < 50
