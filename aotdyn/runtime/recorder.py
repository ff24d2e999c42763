"""The recording that is being written, if any: the JIT hands every new variant to it."""

from typing import Any

from ..package.graph import Graph
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.recording import Obstacle, RecordingWriter
from ..package.variant import Variant
from ..package.weights import Weight, can_be_stored, weight_of
from .counting import Counted
from .link import Linked

_writers: list[RecordingWriter] = []
_with_weights: list[RecordingWriter] = []
_counted: list[Counted] = []


def start(writer: RecordingWriter, weights: bool = False) -> None:
    """Variants are written to this recording from now on. weights: and the values of parameters and
    buffers that graphs without gradients take."""
    _writers.append(writer)
    if weights:
        _with_weights.append(writer)


def stop(writer: RecordingWriter) -> None:
    """The recording is complete."""
    for each in _counted:
        writer.hits(each.linked.variant.id, each.count)
    _writers.remove(writer)
    if writer in _with_weights:
        _with_weights.remove(writer)
    if not _writers:
        for each in _counted:
            each.end()
        _counted.clear()


def active() -> bool:
    """Whether anything is being recorded: graphs then run eagerly."""
    return bool(_writers)


def record(entry: Any, traced: Any, linked: Linked, inputs: tuple | None) -> None:
    """A new variant and its graph; its uses are counted from now on if it breaks. inputs: those
    that the graph is called with."""
    if _writers and linked.variant.breaks is not None:
        _counted.append(Counted(entry, linked))
    variant: Variant = traced.variant
    for writer in _writers:
        if traced.graph is not None:
            writer.graph(traced.graph)
            symbols = {symbol.name: symbol.hint for symbol in traced.graph.symbols}
            writer.example(traced.graph.id, symbols)
            if writer in _with_weights and not traced.graph.grad:
                writer.weights(traced.graph.id, _weights(traced.graph, inputs))
        writer.variant(variant)


def _weights(graph: Graph, inputs: tuple) -> dict[str, Weight]:
    return {
        item.name: weight_of(value)
        for item, value in zip(graph.inputs, inputs, strict=True)
        if (item.parameter or item.buffer) and can_be_stored(value)
    }


def obstacle(entry: Any, reason: str) -> None:
    """Something that could not be recorded."""
    code = entry.code
    for writer in _writers:
        writer.obstacle(Obstacle(entry.key.qualname, reason, code.co_filename, code.co_firstlineno))
