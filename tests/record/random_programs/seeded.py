"""Random programs from seeds. In a file of its own: processes that are spawned do not see what
stands in `__main__`."""

import random

import torch

from .compare import Case, check
from .grammar import Writer


class Seeded:
    """Choices from a seed."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def below(self, count: int) -> int:
        return self.random.randrange(count)


def case_of(seed: int) -> Case:
    """The program with a seed."""
    choices = Seeded(seed)
    text = Writer(choices).program()
    every = choices.below(6) == 0 and 1 + choices.below(30)
    return Case(text, (choices.below(1000), choices.below(1000)), int(every))


def run_chunk(seeds: range) -> list[tuple[int, str]]:
    """The programs that differ, with what differs."""
    torch.set_num_threads(1)
    found = []
    for seed in seeds:
        try:
            check(case_of(seed))
        except Exception as error:
            found.append((seed, f"{type(error).__name__}: {error}"))
    return found
