"""Traces a function around every operator of torch's own test database and compares with eager:

    python benchmarks/operators.py [--samples N] [--json FILE] [NAME ...]

CPU, float32 and one more type that the operator takes, the first samples, with sizes as they are
and with dynamic ones. The table lists what differs, and what breaks the graph with the reason.
Operators whose result has no defined values (`empty` and the like) are compared by type and shape.
torch's database imports the package `expecttest`.
"""

import argparse
import copy
import itertools
import json
import os
import random
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

import torch

import aotdyn
from aotdyn.runtime import logs

FURTHER_TYPES = (torch.int64, torch.complex64, torch.bool, torch.float64)

# Their results are whatever was in the memory.
UNDEFINED = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided",
             "empty_permuted", "resize_", "resize_as_")  # fmt: skip


@dataclass
class Row:
    """One operator, type and setting. state: equal, whole (no graph break) or the reason."""

    name: str
    dtype: str
    dynamic: bool
    equal: bool
    broken: str = ""
    detail: str = ""


def main() -> None:
    args = _arguments()
    os.environ["AOTDYN_STRICT"] = "1"
    warnings.filterwarnings("ignore")
    # Importing it costs seconds.
    from torch.testing._internal.common_methods_invocations import op_db

    rows: list[Row] = []
    for op in op_db:
        if args.names and op.name not in args.names:
            continue
        for dtype in _types(op):
            for dynamic in (False, True):
                rows += _rows(op, dtype, dynamic, args.samples)
    _print(rows)
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(row) for row in rows], indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="operators of the database; all by default")
    parser.add_argument("--samples", type=int, default=2, help="how many inputs of each")
    parser.add_argument("--json", help="a file to write the rows to")
    return parser.parse_args()


def _types(op: Any) -> list[torch.dtype]:
    known = op.supported_dtypes("cpu")
    further = [dtype for dtype in FURTHER_TYPES if dtype in known][:1]
    return [dtype for dtype in (torch.float32, *further) if dtype in known]


def _rows(op: Any, dtype: torch.dtype, dynamic: bool, count: int) -> list[Row]:
    name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
    text = str(dtype).removeprefix("torch.")
    rows = []
    try:
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype), count))
    except Exception as error:
        return [Row(name, text, dynamic, True, "no samples", _line(error))]
    for sample in samples:
        row = Row(name, text, dynamic, True)
        try:
            _compare(row, op, sample)
        except Exception as error:
            row.equal, row.detail = False, _line(error)
        rows.append(row)
    return rows


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:150]


def _own(function: Any) -> Any:
    """The database's lambdas as if they stood in this file: torch's tests are not traced."""
    if not isinstance(function, FunctionType) or "testing" not in function.__code__.co_filename:
        return function
    code = function.__code__.replace(co_filename=__file__)
    cells = tuple(CellType(_own(cell.cell_contents)) for cell in function.__closure__ or ())
    names = {**function.__globals__, "wrapper_set_seed": _with_seed}
    made = FunctionType(code, names, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _with_seed(function: Any, *args: Any, **kwargs: Any) -> Any:
    """In place of what the database calls operators by that draw random numbers: each run of ours
    begins with a seed."""
    return function(*args, **kwargs)


def _around(function: Any) -> Any:
    def call(given, args, kwargs):
        return function(given, *args, **kwargs)

    return call


def _compare(row: Row, op: Any, sample: Any) -> None:
    given = (sample.input, sample.args, sample.kwargs)
    call = _around(_own(op.op))
    try:
        expected = _run(call, given)
    except Exception:
        return  # such inputs are refused by the program itself
    broken: list[str] = []
    logs.sinks["graph_breaks"].append(broken.append)
    try:
        traced = aotdyn.compile(call, backend="eager", dynamic=row.dynamic or None)
        actual = _run(traced, given)
    finally:
        logs.sinks["graph_breaks"].remove(broken.append)
        aotdyn.reset()
    row.broken = _reason(broken[0]) if broken else ""
    row.equal = _same(expected, actual, op.name not in UNDEFINED)


def _reason(text: str) -> str:
    return text.splitlines()[0].partition(": ")[2][:150]


def _run(call: Any, given: tuple) -> Any:
    torch.manual_seed(0)
    random.seed(0)
    given = copy.deepcopy(given)
    return call(*given), given


def _same(expected: Any, actual: Any, values: bool) -> bool:
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, torch.Tensor):
        if expected.shape != actual.shape or expected.dtype != actual.dtype:
            return False
        if expected.layout is not torch.strided or not values:
            return expected.layout is actual.layout
        return expected.stride() == actual.stride() and _same_bits(expected, actual)
    if isinstance(expected, dict):
        return list(expected) == list(actual) and all(
            _same(value, actual[key], values) for key, value in expected.items()
        )
    if isinstance(expected, list | tuple):
        return len(expected) == len(actual) and all(
            _same(e, a, values) for e, a in zip(expected, actual)
        )
    return expected != expected or not isinstance(expected, float | int | str) or expected == actual


def _same_bits(expected: torch.Tensor, actual: torch.Tensor) -> bool:
    if expected.dtype is torch.complex32:
        expected, actual = torch.view_as_real(expected), torch.view_as_real(actual)
    if expected.is_floating_point() or expected.is_complex():
        return torch.equal(expected.nan_to_num(7.5), actual.nan_to_num(7.5))
    return torch.equal(expected, actual)


def _print(rows: list[Row]) -> None:
    for row in rows:
        if not row.equal:
            print(f"WRONG   {row.name:44} {row.dtype:10} {'dynamic' if row.dynamic else '':8} "
                  f"{row.detail}")  # fmt: skip
    seen: Counter = Counter((row.broken, row.name) for row in rows if row.broken)
    for reason in sorted({reason for reason, _ in seen}):
        names = sorted(name for why, name in seen if why == reason)
        print(f"BROKEN  {reason}: {', '.join(names)}")
    whole = sum(row.equal and not row.broken for row in rows)
    names = {row.name for row in rows}
    broken = {row.name for row in rows if row.broken}
    print(f"{len(names)} operators, {len(rows)} calls: {sum(row.equal for row in rows)} equal, "
          f"{whole} of them whole; {len(broken)} operators break")  # fmt: skip


if __name__ == "__main__":
    main()
