"""Entries and variants as data: what a recording and a package are made of."""

import hashlib
from dataclasses import field
from types import CodeType

from .frozen import frozen, plain_text
from .guard import Guard
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .point import Point
from .reference import CodeOf, Import, Reference


@frozen
class EntryKey:
    """A code object that can be entered, and where.

    hash: over bytecode, constants and names, not over line numbers or paths.
    """

    module: str
    qualname: str
    hash: str
    point: Point | None = None

    def __str__(self) -> str:
        at = "" if self.point is None else f"@{self.point.offset}"
        return f"{self.module}:{self.qualname}#{self.hash}{at}"


@frozen
class Break:
    """A graph break. reason: a key of `record/reasons.py`; detail: what it was about.

    stack: `file:line in function` from the entry's frame inwards.
    """

    reason: str
    detail: str
    hint: str
    stack: tuple[str, ...]


@frozen
class Variant:
    """One specialization of an entry.

    check: text of `def check(<frame values>)`, which returns the graph's inputs or None.
    body: text of `def body(inputs, <frame values>)`, which returns the frame's result or a
    continuation. names: what the free names of both texts are bound to.
    codes: the functions whose code was inlined, with the hash that each must have.
    """

    entry: EntryKey
    check: str
    body: str
    names: dict[str, Reference]
    guards: tuple[Guard, ...]
    graph: str | None
    codes: tuple[tuple[Import | CodeOf, str], ...] = ()
    breaks: Break | None = None
    file: str = ""
    line: int = 0
    params: tuple[str, ...] = ()
    obstacles: tuple[str, ...] = field(default=())

    @property
    def id(self) -> str:
        """A hash of what the variant does; recordings drop a second variant with the same one."""
        facts = (self.entry, self.check, self.body, sorted(self.names.items(), key=lambda i: i[0]))
        return hashlib.sha256(plain_text(facts).encode()).hexdigest()[:16]


# id of a code object -> it and its hash.
known_hashes: dict[int, tuple[CodeType, str]] = {}


def code_hash(code: CodeType) -> str:
    """The identity of a code object across processes: what it does, not where it stands.

    Raises nothing: constants of unknown type (only made by tools) count by their `repr`. It is
    remembered; the code object is kept alive, so that its id stays its own.
    """
    known = known_hashes.get(id(code))
    if known is None:
        digest = hashlib.sha256()
        _feed(code, digest)
        known = known_hashes[id(code)] = (code, digest.hexdigest()[:16])
    return known[1]


def _feed(code: CodeType, digest) -> None:
    shape = (
        code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_cellvars,
        code.co_freevars, code.co_flags, code.co_argcount, code.co_posonlyargcount,
        code.co_kwonlyargcount, code.co_name,
    )  # fmt: skip
    digest.update(repr(shape).encode())
    for constant in code.co_consts:
        _feed_constant(constant, digest)


def _feed_constant(constant, digest) -> None:
    if isinstance(constant, CodeType):
        _feed(constant, digest)
    elif isinstance(constant, frozenset):
        # The order of a frozenset differs between processes.
        digest.update(repr(sorted(map(plain_text, constant))).encode())
    elif isinstance(constant, tuple):
        digest.update(b"(")
        for part in constant:
            _feed_constant(part, digest)
        digest.update(b")")
    else:
        digest.update(f"{type(constant).__name__}:{plain_text(constant)}".encode())
