"""Recordings: everything that was recorded, before any compilation.

A recording is a file of msgpack objects that only grows: the magic, then records of three parts
(size, CRC-32, payload), the first of them the header. Each is written at once, so that a killed
run leaves all but its last record. The tracer writes recordings; pack and inspect read them.
"""

import os
import struct
import threading
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from .errors import AotdynError, PackageError
from .graph import Graph
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .schema import CODEC, FORMAT_VERSION, minor, this_python, this_torch
from .values import from_bytes, to_bytes
from .variant import Variant
from .weights import GraphWeights, Weight

MAGIC = to_bytes("aotdyn recording")

# A msgpack array of size, CRC-32 of the payload, and the payload, which repeats the size: a damaged
# size cannot pass for a record that was cut off.
_FRAME = struct.Struct(">BBIBIBI")
_ARRAY, _UINT32, _BIN32 = 0x93, 0xCE, 0xC6


@dataclass(frozen=True, slots=True)
class Header:
    """Where a recording comes from. device: what it was made for, as in `cuda:sm_90`. devices: of
    each device that the program named and that was not there, the one that computed instead."""

    format: int
    python: str
    torch: str
    device: str
    script: str
    devices: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that could not be recorded. what: an entry, a variant, a graph, in words."""

    what: str
    reason: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        at = f"{self.file}:{self.line}: " if self.file else ""
        return f"{at}{self.what}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Example:
    """Sizes that a graph has been called with: a value for each of its symbols."""

    graph: str
    symbols: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Hits:
    """How often a variant that breaks its graph was used while it was recorded, by its id."""

    variant: str
    count: int


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """A graph under the id that variants call it by.

    The id is not computed anew by readers: it may depend on the process (the order of a set).
    """

    id: str
    graph: Graph


_CODEC = CODEC.extended(
    {
        "header": Header, "obstacle": Obstacle, "example": Example, "stored_graph": StoredGraph,
        "hits": Hits, "weight": Weight, "graph_weights": GraphWeights,
    }
)  # fmt: skip


@dataclass(frozen=True)
class Recording:
    """What `read_recording` and `merge` return.

    variants: in the order of recording. graphs: by the id that variants call them by. hits: how
    often variants were used, by id. truncated: the last record was cut off, and is lost. weights:
    by their digests; graph_weights: which of them graphs were recorded with.
    """

    header: Header
    variants: tuple[Variant, ...] = ()
    graphs: dict[str, Graph] = field(default_factory=dict)
    obstacles: tuple[Obstacle, ...] = ()
    examples: tuple[Example, ...] = ()
    hits: dict[str, int] = field(default_factory=dict)
    truncated: bool = False
    weights: dict[str, Weight] = field(default_factory=dict)
    graph_weights: tuple[GraphWeights, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to pack."""
        return not self.variants

    def summary(self) -> str:
        """One line: how much of what, and where it comes from."""
        entries = len({variant.entry for variant in self.variants})
        breaks = sum(variant.breaks is not None for variant in self.variants)
        parts = [
            counted(entries, "entry", "entries"),
            counted(len(self.variants), "variant"),
            counted(len(self.graphs), "graph"),
            counted(breaks, "graph break"),
        ]
        if self.obstacles:
            parts.append(f"{len(self.obstacles)} not recorded")
        if self.truncated:
            parts.append("last record cut off")
        for named, _ in self.header.devices:
            if all(item.device != named for g in self.graphs.values() for item in g.inputs):
                parts.append(f"no tensor on {named}")
        head = self.header
        instead = "".join(f"; {named} was {computed}" for named, computed in head.devices)
        origin = f"Python {head.python}, torch {head.torch}, {head.device}{instead}"
        return f"{', '.join(parts)} ({f'{head.script}; ' if head.script else ''}{origin})"


class RecordingWriter:
    """Writes a recording while a program runs. Safe to call from several threads.

    The file is made, and an existing one emptied, when the writer is made; to append, record to
    another file and merge. What a forked child of the process calls does nothing. Raises
    AotdynError when the file cannot be written; after that all further records are dropped.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        script: str = "",
        device: str = "cpu",
        devices: tuple[tuple[str, str], ...] = (),
    ):
        self.path = Path(path)
        self._process = os.getpid()
        # Reentrant, because a signal handler or a finalizer may record in the middle of a record.
        self._lock = threading.RLock()
        self._seen: set[tuple[type, Any]] = set()
        try:
            # Unbuffered: a record is in the file when it is written, and a fork has no copy of it.
            self._file: BinaryIO | None = open(self.path, "wb", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise AotdynError(f"cannot write the recording {path}: {error.strerror}") from error
        header = Header(FORMAT_VERSION, this_python(), this_torch(), device, script, devices)
        self._write(MAGIC + _framed(to_bytes(_CODEC.encode(header))))

    def variant(self, variant: Variant) -> bool:
        """Whether it was written: not if it is known; as an obstacle if it cannot be stored."""
        obstacle = Obstacle(f"variant of {variant.entry}", "", variant.file, variant.line)
        return self._add(variant, lambda: variant.id, obstacle)

    def graph(self, graph: Graph) -> bool:
        """Like `variant`. To be called before the variants that use the graph."""
        obstacle = Obstacle("graph", "", *_place(graph.nodes[0].user if graph.nodes else ""))
        return self._add(graph, lambda: graph.id, obstacle)

    def example(self, graph: str, symbols: dict[str, int]) -> bool:
        example = Example(graph, tuple(symbols.items()))
        return self._add(example, lambda: example, Obstacle(f"example of graph {graph}", ""))

    def hits(self, variant: str, count: int) -> bool:
        hits = Hits(variant, count)
        return self._add(hits, lambda: hits, Obstacle(f"hits of variant {variant}", ""))

    def weights(self, graph: str, weights: dict[str, Weight]) -> None:
        """What a graph's inputs of these names are while it is recorded."""
        for name, weight in weights.items():
            place = Obstacle(f"weight {name}", "")
            self._add(weight, lambda weight=weight: weight.digest, place)
        found = GraphWeights(graph, tuple((name, w.digest) for name, w in weights.items()))
        self._add(found, lambda: found, Obstacle(f"weights of graph {graph}", ""))

    def obstacle(self, obstacle: Obstacle) -> bool:
        return self._add(obstacle, lambda: obstacle, obstacle)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to pack so far."""
        return not any(kind is Variant for kind, _ in self._seen)

    def close(self) -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def __enter__(self) -> "RecordingWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _add(self, record: Any, identity: Any, obstacle: Obstacle) -> bool:
        if os.getpid() != self._process:  # before the lock, which a fork may have copied locked
            return False
        try:
            # ValueError: an int of more than 4300 digits has no text, and so no identity
            key = (type(record), identity())
            if key in self._seen:
                return False
            stored = StoredGraph(key[1], record) if type(record) is Graph else record
            data = to_bytes(_CODEC.encode(stored))
        except (TypeError, ValueError) as error:
            if type(record) is not Obstacle:
                self.obstacle(replace(obstacle, reason=str(error)))
            return False
        with self._lock:
            if key in self._seen or self._file is None:
                return False
            self._seen.add(key)
            self._write(_framed(data))
        return True

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except BaseException as error:
            # Anything after half a record could not be read.
            self._file.close()
            self._file = None
            if not isinstance(error, OSError):
                raise
            what = error.strerror or error
            raise AotdynError(f"cannot write the recording {self.path}: {what}") from error


def _framed(data: bytes) -> bytes:
    size = len(data)
    return _FRAME.pack(_ARRAY, _UINT32, size, _UINT32, zlib.crc32(data), _BIN32, size) + data


def _place(user: str) -> tuple[str, int]:
    """`file:line` taken apart."""
    file, _, line = user.rpartition(":")
    return (file, int(line)) if line.isdecimal() else (user, 0)


def read_recording(path: str | os.PathLike) -> Recording:
    """Reads a recording whole.

    A last record that was cut off is left out. Raises PackageError for any other damage, and for
    a file that is no recording or has another format.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise PackageError(f"cannot read {path}: {error.strerror}") from error
    if not data.startswith(MAGIC):
        raise PackageError(f"{path} is not a recording of aotdyn")
    try:
        return _parse(memoryview(data))
    except PackageError as error:
        raise PackageError(f"the recording {path} cannot be used: {error}") from None


def _parse(data: memoryview) -> Recording:
    payloads, truncated = _unframed(data)
    if not payloads:
        raise PackageError("its header is cut off")
    header = _header(from_bytes(payloads[0]))
    variants: dict[str, Variant] = {}
    graphs: dict[str, Graph] = {}
    obstacles: dict[Obstacle, None] = {}
    examples: dict[Example, None] = {}
    hits: Counter[str] = Counter()
    weights: dict[str, Weight] = {}
    graph_weights: dict[GraphWeights, None] = {}
    for payload in payloads[1:]:
        record = _CODEC.decode(from_bytes(payload))
        match record:
            case Variant():
                variants.setdefault(record.id, record)
            case StoredGraph():
                graphs.setdefault(record.id, record.graph)
            case Obstacle():
                obstacles[record] = None
            case Example():
                examples[record] = None
            case Hits():
                hits[record.variant] += record.count
            case Weight():
                weights.setdefault(record.digest, record)
            case GraphWeights():
                graph_weights[record] = None
            case _:
                raise PackageError(f"it has a record of type {type(record).__name__}")
    return Recording(
        header, tuple(variants.values()), graphs, tuple(obstacles), tuple(examples), dict(hits),
        truncated, weights, tuple(graph_weights),
    )  # fmt: skip


def _unframed(data: memoryview) -> tuple[list[memoryview], bool]:
    """The payloads, and whether the last record is cut off."""
    payloads = []
    at = len(MAGIC)
    while at < len(data):
        if len(data) - at < _FRAME.size:
            return payloads, True
        array, mark, size, mark_2, checksum, binary, size_2 = _FRAME.unpack_from(data, at)
        if (array, mark, mark_2, binary, size) != (_ARRAY, _UINT32, _UINT32, _BIN32, size_2):
            raise PackageError(f"it is damaged at byte {at}")
        start, at = at + _FRAME.size, at + _FRAME.size + size
        if at > len(data):
            return payloads, True
        if zlib.crc32(data[start:at]) != checksum:
            raise PackageError(f"it is damaged between bytes {start} and {at}")
        payloads.append(data[start:at])
    return payloads, False


def _header(data: Any) -> Header:
    # The format first: nothing else about a header of another format is known.
    stored = data[1] if type(data) is list and len(data) == 2 and data[0] == "header" else None
    found = stored.get("format") if type(stored) is dict else None
    if type(found) is not int:
        raise PackageError("it has no header")
    if found != FORMAT_VERSION:
        raise PackageError(f"it has format {found}, and this aotdyn reads format {FORMAT_VERSION}")
    return _CODEC.decode(data)


def merge(recordings: Sequence[Recording]) -> Recording:
    """All of several recordings in order, equal records once.

    Raises PackageError when they come from different minor versions of Python or torch, or when
    there are none.
    """
    if not recordings:
        raise PackageError("there are no recordings to merge")
    first = recordings[0].header
    for recording in recordings[1:]:
        other = recording.header
        for what, a, b in (
            ("Python", first.python, other.python),
            ("torch", minor(first.torch), minor(other.torch)),
        ):
            if a != b:
                raise PackageError(f"recordings of {what} {a} and {what} {b} cannot be merged")
    header = replace(
        first,
        device=_joined([recording.header.device for recording in recordings]),
        script=_joined([recording.header.script for recording in recordings]),
        devices=tuple(dict.fromkeys(pair for r in recordings for pair in r.header.devices)),
    )
    variants: dict[str, Variant] = {}
    graphs: dict[str, Graph] = {}
    for recording in recordings:
        for variant in recording.variants:
            variants.setdefault(variant.id, variant)
        for id, graph in recording.graphs.items():
            graphs.setdefault(id, graph)
    return Recording(
        header,
        tuple(variants.values()),
        graphs,
        tuple(dict.fromkeys(o for r in recordings for o in r.obstacles)),
        tuple(dict.fromkeys(e for r in recordings for e in r.examples)),
        dict(sum((Counter(recording.hits) for recording in recordings), Counter())),
        any(recording.truncated for recording in recordings),
        {digest: w for recording in recordings for digest, w in recording.weights.items()},
        tuple(dict.fromkeys(w for recording in recordings for w in recording.graph_weights)),
    )


def counted(count: int, one: str, many: str = "") -> str:
    """`1 graph`, `2 graphs`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def _joined(texts: list[str]) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))
