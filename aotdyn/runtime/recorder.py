"""The recording that is being written, if any: the JIT hands every new variant to it."""

from typing import Any

from ..package.recording import Obstacle, RecordingWriter
from ..package.variant import Variant
from .counting import Counted
from .link import Linked

_writers: list[RecordingWriter] = []
_counted: list[Counted] = []


def start(writer: RecordingWriter) -> None:
    """Variants are written to this recording from now on."""
    _writers.append(writer)


def stop(writer: RecordingWriter) -> None:
    """The recording is complete."""
    for each in _counted:
        writer.hits(each.linked.variant.id, each.count)
    _writers.remove(writer)
    if not _writers:
        for each in _counted:
            each.end()
        _counted.clear()


def active() -> bool:
    """Whether anything is being recorded: graphs then run eagerly."""
    return bool(_writers)


def record(entry: Any, traced: Any, linked: Linked) -> None:
    """A new variant and its graph; its uses are counted from now on if it breaks."""
    if _writers and linked.variant.breaks is not None:
        _counted.append(Counted(entry, linked))
    variant: Variant = traced.variant
    for writer in _writers:
        if traced.graph is not None:
            writer.graph(traced.graph)
            symbols = {symbol.name: symbol.hint for symbol in traced.graph.symbols}
            writer.example(traced.graph.id, symbols)
        writer.variant(variant)


def obstacle(entry: Any, reason: str) -> None:
    """Something that could not be recorded."""
    code = entry.code
    for writer in _writers:
        writer.obstacle(Obstacle(entry.key.qualname, reason, code.co_filename, code.co_firstlineno))
