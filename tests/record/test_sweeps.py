"""Every program of the tables with its tensors in all sizes: what is traced with symbolic sizes is
right for each of them, and few variants serve all.

The quick part takes some programs of each table, others on each day of the month; `-m slow` takes
all of them.
"""

import copy
import datetime
import importlib
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.conftest import assert_agree, perform
from tests.record.programs import Programs

SIZES = (7, 8, 3, 0, 1, 2, 9, 64, 65)
FEW_SIZES = (7, 8, 0, 1, 3)
# Of a table, in the quick part.
SAMPLE = 2
# In general, for none, for one, and for the length that programs have of their own: tensors of
# three that they make.
VARIANTS = 4

# What has more variants, for a reason that lies in the program.
OF_THEIR_SIZES = {
    "in_loops": "a loop over the rows of a tensor",
    "a_loop_over_dicts": "a loop over the rows of a tensor",
    "functions_of_sizes": "NumPy computes with the sizes",
    "keys_of_all_kinds": "the shape is a key",
    "caches_by_size_and_device": "the shape is a key",
    "keys_that_are_named_tuples": "the shape is a key",
    "whole_numbers_as_indices": "the index 2 is there or not",
    "views": "the index 8 is there or not",
    "cached_of_an_object_and_sizes": "reshape asks whether one size divides the other",
    "numbers": "reshape asks whether three divides the numbers",
    "unions_with_aliases_of_the_program": "each copy of the argument is another type",
}


def tables() -> dict[str, list]:
    """The rows of each module's tables whose calls begin with a tensor that has a size."""
    found: dict[str, list] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.stem == Path(__file__).stem:
            continue
        module = importlib.import_module(f"tests.record.{path.stem}")
        rows = [row for table in vars(module).values() if type(table) is Programs
                for row in table.rows if _length(row.values[1][0]) is not None]  # fmt: skip
        if rows:
            found[path.stem] = rows
    return found


def _length(args: tuple) -> int | None:
    """The first size of the first tensor, which is the one that is varied."""
    first = next((arg for arg in args if type(arg) is torch.Tensor), None)
    return first.shape[0] if first is not None and first.dim() and first.shape[0] > 1 else None


def resized(value: Any, before: int, after: int) -> Any:
    """A value with all sizes of tensors that are `before` changed, as far as the tensors are found
    in lists, tuples and dicts."""
    if type(value) is torch.Tensor and value.layout is torch.strided:
        made = value.detach()
        for dim, size in enumerate(value.shape):
            if size == before:
                made = made.index_select(dim, torch.arange(after) % before)
        return made.requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(resized(item, before, after) for item in value)
    if type(value) is dict:
        return {key: resized(item, before, after) for key, item in value.items()}
    return value


def sweep(function, args: tuple, sizes: tuple[int, ...]) -> int:
    """Calls a program with all sizes, and compares with plain Python. Gives how many variants its
    first entry has."""
    before = _length(args)
    settings = Settings("eager", dynamic=True)
    traced = compiled(function, settings)
    for size in sizes:
        given = resized(copy.deepcopy(args), before, size)
        expected = perform(function, given, {})
        actual = perform(traced, given, {})
        try:
            assert_agree(expected, actual)
        except AssertionError as error:
            raise AssertionError(f"size {size}: {error}") from error
    return len(settings.entries()[0].linked)


TABLES = tables()


def check(rows: list, sizes: tuple[int, ...]) -> None:
    for row in rows:
        function, calls, *_ = row.values
        variants = sweep(function, calls[0], sizes)
        assert variants <= VARIANTS or row.id in OF_THEIR_SIZES, f"{row.id} has {variants} variants"


@pytest.mark.parametrize("name", TABLES)
def test_some_programs_in_few_sizes(name):
    day = datetime.date.today().day
    rows = TABLES[name]
    check(random.Random(day).sample(rows, min(SAMPLE, len(rows))), FEW_SIZES)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_all_programs_in_all_sizes(name):
    check(TABLES[name], SIZES)
