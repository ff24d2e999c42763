"""Changes one thing at a time in the programs of the test tables, in what they reach, and compares
what was traced before with plain Python. Slow, so a command and no test:

    python -m tests.record.mutate_programs [--sample N] [--limit SECONDS] [--in-place]
        [TABLE ...]

--in-place: every call is of the same objects, so that what guards remember of them counts.
TABLE: a module of tests/record that fills a table of programs, all of them by default. Some of what
it prints is no fault of the tracer: where a program changes what was changed before it ends, where
the library keeps an answer of its own (the implementation that single dispatch has found before,
the `__slotnames__` of a class, what is inside the aliases of `typing`), where two objects tell
their addresses, where an iterator that has ended is copied as one of another type.
"""

import argparse
import contextlib
import copy
import importlib
import io
import random
import signal
import sys
import warnings
from pathlib import Path

import pytest
import torch

from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings
from tests.conftest import perform
from tests.record.mutations import always_by_version, changes_to_what_is_reached, stale
from tests.record.programs import Programs

# Without an end, once they are something else, in plain Python as well.
_ENDLESS = ("__getitem__", "__iter__", "__next__")


class TooLong(BaseException):
    """A program with a change runs on and on."""


def _alarm(signum, frame):
    raise TooLong


def check(row, sample: int, limit: int, in_place: bool) -> tuple[int, list[str]]:
    """How many changes were made to what a program reaches, and those not noticed."""
    function, calls, *_ = row.values
    args = copy.deepcopy(list(calls[0]))
    torch.manual_seed(0)
    random.seed(0)
    served = compiled(function, Settings("eager"))
    found: list[str] = []
    with contextlib.redirect_stdout(io.StringIO()):
        perform(served, tuple(args), {})
        made = [change for change in changes_to_what_is_reached([args, function], sample)
                if not any(name in change.what for name in _ENDLESS)]  # fmt: skip
        for change in made:
            signal.alarm(limit)
            try:
                found += stale(function, served, args, [change], in_place)
            except TooLong:
                found.append(f"{change.what}: no end after {limit} s")
            finally:
                signal.alarm(0)
    return len(made), found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=30)
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("tables", nargs="*")
    args = parser.parse_args()
    if args.in_place:
        always_by_version(pytest.MonkeyPatch())
    warnings.filterwarnings("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    names = args.tables or sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))
    total = 0
    for name in names:
        module = importlib.import_module(f"tests.record.{name}")
        tables = [value for value in vars(module).values() if type(value) is Programs]
        made = 0
        for row in (row for table in tables for row in table.rows):
            count, found = check(row, args.sample, args.limit, args.in_place)
            made, total = made + count, total + len(found)
            for line in found:
                print(f"{name} {row.id} {line[:300]}", flush=True)
        if tables:
            print(f"{name}: {made} changes", flush=True)
    sys.exit(bool(total))


if __name__ == "__main__":
    main()
