"""Line tables and exception tables of code objects, read and written.

Their formats: Objects/locations.md and Objects/exception_handling_notes.txt of CPython 3.11.
"""

from collections.abc import Iterator
from opcode import opmap
from types import CodeType
from typing import NamedTuple

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401

_NOP, _POP_EXCEPT, _PUSH_EXC_INFO = opmap["NOP"], opmap["POP_EXCEPT"], opmap["PUSH_EXC_INFO"]
_REARRANGING = frozenset(opmap[name] for name in ("SWAP", "COPY", "POP_TOP", "NOP"))


def first_line(units: int) -> bytes:
    """Line table entries that put so many code units on the function's first line.

    They leave the table's running line where it starts, so that the entries behind them keep
    their meaning.
    """
    return _line_entries(13, b"\0", units)


def no_line(units: int) -> bytes:
    """Line table entries for code units that are on no line, so that no tracer stops at them."""
    return _line_entries(15, b"", units)


def _line_entries(kind: int, payload: bytes, units: int) -> bytes:
    sizes = (min(8, units - done) for done in range(0, units, 8))
    return b"".join(bytes((0x80 | kind << 3 | size - 1,)) + payload for size in sizes)


def delta_line(delta: int, units: int) -> bytes:
    """Line table entries for code units so many lines below the table's running line."""
    number = -delta << 1 | 1 if delta < 0 else delta << 1
    first = bytearray()
    while number >= 64:
        first.append(number & 63 | 64)
        number >>= 6
    first.append(number)
    size = min(8, units)
    rest = _line_entries(13, b"\0", units - size)
    return bytes((0x80 | 13 << 3 | size - 1,)) + bytes(first) + rest


def line_of(code: CodeType, offset: int) -> int:
    """The line of an instruction, or that of the function if it is on none."""
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


class Handled(NamedTuple):
    """A row of the exception table, in code units: a raise in start..end goes to `target`.

    `depth` is the stack's depth there, `lasti` whether the raising offset is pushed too.
    """

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def exception_table(table: bytes) -> Iterator[Handled]:
    numbers = _varints(table)
    for start, size, target, packed in zip(numbers, numbers, numbers, numbers, strict=True):
        yield Handled(start, start + size, target, packed >> 1, bool(packed & 1))


def _varints(table: bytes) -> Iterator[int]:
    number = 0
    for byte in table:
        number = number << 6 | byte & 63
        if not byte & 64:
            yield number
            number = 0


def _varint(number: int) -> bytearray:
    sixes = bytearray((number & 63,))
    while number := number >> 6:
        sixes.append(number & 63 | 64)
    sixes.reverse()
    return sixes


def shifted(table: bytes, units: int) -> bytes:
    """The exception table of the same code moved by so many code units."""
    return b"".join(
        row_of(Handled(r.start + units, r.end + units, r.target + units, r.depth, r.lasti))
        for r in exception_table(table)
    )


def row_of(row: Handled) -> bytes:
    first = _varint(row.start)
    first[0] |= 128  # marks where a row starts
    rest = _varint(row.end - row.start) + _varint(row.target)
    return bytes(first + rest + _varint(row.depth << 1 | row.lasti))


def handles_exception(code: CodeType, offset: int) -> bool:
    """Whether an exception is being handled at that offset.

    Each handler is covered by a row that leads to its cleanup, `COPY 3; POP_EXCEPT; RERAISE 1`,
    all but the instructions right before a `POP_EXCEPT`. Rows that lead elsewhere are followed
    outward: a `try` may stand in the handler of another one.
    """
    while code.co_code[offset] == _NOP:
        offset += 2  # not covered itself where a `try` begins
    if _leads_to_pop_except(code.co_code, offset):
        return True
    rows, unit = list(exception_table(code.co_exceptiontable)), offset // 2
    for _ in rows:
        if code.co_code[2 * unit] == _PUSH_EXC_INFO and (row := covering(rows, unit)):
            unit = row.target  # the cleanup of a handler that is not entered yet
        row = covering(rows, unit)
        if row is None:
            return False
        unit = row.target
        if _leads_to_pop_except(code.co_code, 2 * unit):
            return True
    return False


def _leads_to_pop_except(bytecode: bytes, offset: int) -> bool:
    """Whether only instructions that rearrange the stack come before a `POP_EXCEPT`."""
    while bytecode[offset] in _REARRANGING:
        offset += 2
    return bytecode[offset] == _POP_EXCEPT


def covering(rows: list[Handled], unit: int) -> Handled | None:
    return next((row for row in rows if row.start <= unit < row.end), None)
