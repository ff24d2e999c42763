"""Decodes a code object once: instructions by index, jump targets, exception table."""

import dis
import functools
from dataclasses import dataclass
from types import CodeType
from typing import Any

# A call is three instructions that share interpreter state; it is entered at the first.
_CALL_GROUP = ("KW_NAMES", "PRECALL", "CALL")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    index: its place in `Decoded.instructions`. offset: in bytes. start: the offset at which to
    enter so that this instruction runs completely (its EXTENDED_ARGs, its call's KW_NAMES).
    """

    index: int
    offset: int
    start: int
    opname: str
    arg: int | None
    argval: Any
    line: int


@dataclass(frozen=True, slots=True)
class ExceptionEntry:
    """Instructions in [start, end) (byte offsets) unwind to `target` with `depth` values kept."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


@dataclass(frozen=True, eq=False)
class Decoded:
    """A code object's instructions; `at` maps byte offsets to indices."""

    code: CodeType
    instructions: tuple[Instruction, ...]
    at: dict[int, int]
    exceptions: tuple[ExceptionEntry, ...]

    def handler(self, offset: int) -> ExceptionEntry | None:
        """The innermost exception table entry that covers an instruction."""
        for entry in self.exceptions:
            if entry.start <= offset < entry.end:
                return entry
        return None


@functools.lru_cache(maxsize=4096)
def _decode(key: "_ById") -> Decoded:
    code = key.code
    raw = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    line = code.co_firstlineno
    instructions: list[Instruction] = []
    at: dict[int, int] = {}
    prefix: int | None = None
    group: int | None = None
    for ins in raw:
        line = ins.starts_line or line
        start = ins.offset if prefix is None else prefix
        if ins.opname in _CALL_GROUP:
            group = start if group is None else group
            start = group
        elif ins.opname != "EXTENDED_ARG":
            group = None
        if ins.opname == "CALL":
            group = None
        prefix = start if ins.opname == "EXTENDED_ARG" else None
        at[ins.offset] = len(instructions)
        instructions.append(
            Instruction(len(instructions), ins.offset, start, ins.opname, ins.arg, ins.argval, line)
        )
    table = tuple(
        ExceptionEntry(e.start, e.end, e.target, e.depth, e.lasti)
        for e in dis._parse_exception_table(code)
    )
    return Decoded(code, tuple(instructions), at, table)


class _ById:
    """A cache key by identity: code objects compare by value, ignoring where they stand."""

    __slots__ = ("code",)

    def __init__(self, code: CodeType):
        self.code = code

    def __hash__(self) -> int:
        return id(self.code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.code is other.code


def decode(code: CodeType) -> Decoded:
    """The decoded form of a code object, cached."""
    return _decode(_ById(code))
