"""Iterators: those that the frame itself made, and those that came in and tell where they are.
Advancing any other that came in breaks."""

import array
import types
from typing import Any

from ...package.source import Source
from .base import Variable


class IteratorVariable(Variable):
    """Base of all iterators. `next` is a rule; how to rebuild one is in `codegen`."""

    __slots__ = ()


def iterator_type(cls: type, backwards: bool = False) -> type:
    """The type of `iter(value)`, or `reversed(value)`, for the values of a builtin type."""
    if issubclass(cls, tuple):
        # One with fields is not made without them.
        cls = tuple
    empty = range(0) if cls is range else _EMPTY_VIEWS[cls] if cls in _EMPTY_VIEWS else cls()
    return type(reversed(empty) if backwards else iter(empty))


_EMPTY_VIEWS = {
    type(view): view
    for view in ({}.keys(), {}.values(), {}.items(), memoryview(b""), array.array("b"))
}


class SequenceIterator(IteratorVariable):
    """Over a list, tuple, range, or the unpacked items of something iterated once.

    of: the variable that is iterated; its `items` are read as they are at each step, as
    CPython does. index: the next position. exhausted: it has raised StopIteration before.
    """

    __slots__ = ("of", "index", "exhausted")

    def __init__(self, of: Variable):
        super().__init__()
        self.of = of
        self.index = 0
        self.exhausted = False

    @property
    def type(self) -> type:
        return iterator_type(self.of.type)


class FixedIterator(IteratorVariable):
    """Over values that are fixed when it is made: keys, values or items of a dict, characters of
    a string, a set. of: what is iterated, to rebuild it. view: the view of a dict that gives the
    items for the keys in `values`; seen: how many changes of the dict are known; members: what the
    set held. backwards: it was made by `reversed`. ended: it has said that nothing is left."""

    __slots__ = (
        "of", "values", "index", "size", "view", "seen", "members", "backwards", "ended",
    )  # fmt: skip

    def __init__(
        self, of: Variable, values: list, size: int | None = None, backwards: bool = False
    ):
        super().__init__()
        self.of = of
        self.values = values
        self.index = 0
        self.size = size
        self.view: Any = None
        self.seen = 0
        self.members: dict | None = None
        self.backwards = backwards
        self.ended = False

    @property
    def type(self) -> type:
        return iterator_type(self.of.type, self.backwards)


class BackwardsIterator(IteratorVariable):
    """`reversed()` of a list, a tuple or a range. index: the next position, -1 at the end."""

    __slots__ = ("of", "index")

    def __init__(self, of: Variable, index: int):
        super().__init__()
        self.of = of
        self.index = index

    @property
    def type(self) -> type:
        return iterator_type(self.of.type, True)


# In place of the iterator: one that knew itself would keep what it goes over alive.
ITSELF = object()


class LiveIterator(IteratorVariable):
    """An iterator of C over a sequence, that existed before the frame.

    taken: how many values the frame has got from it. ended: it has said that nothing is left.
    driver: what advances it, ITSELF or the iterator around it; None as long as nothing has.
    steps: how often the frame has advanced it, which the body repeats.
    """

    __slots__ = ("live", "taken", "ended", "driver", "steps")

    def __init__(self, live: Any, source: Source):
        super().__init__(source)
        self.live = live
        self.taken = 0
        self.ended = False
        self.driver: LiveIterator | object | None = None
        self.steps = 0

    @property
    def type(self) -> type:
        return type(self.live)

    def describe(self) -> str:
        return type(self.live).__qualname__


class LiveEnumerate(LiveIterator):
    """An `enumerate` around such an iterator. count: the number that it gives next."""

    __slots__ = ("inner", "count")

    def __init__(self, live: Any, source: Source, inner: LiveIterator, count: Variable):
        super().__init__(live, source)
        self.inner = inner
        self.count = count


class LiveZip(LiveIterator):
    """A `zip` around such iterators."""

    __slots__ = ("inner", "strict")

    def __init__(self, live: Any, source: Source, inner: list[LiveIterator], strict: bool):
        super().__init__(live, source)
        self.inner = inner
        self.strict = strict


class EnumerateVariable(IteratorVariable):
    """`enumerate(inner, count)`."""

    __slots__ = ("inner", "count")

    def __init__(self, inner: Variable, count: Variable):
        super().__init__()
        self.inner = inner
        self.count = count

    @property
    def type(self) -> type:
        return enumerate


class ZipVariable(IteratorVariable):
    """`zip(*inner, strict=strict)`."""

    __slots__ = ("inner", "strict")

    def __init__(self, inner: list[Variable], strict: bool):
        super().__init__()
        self.inner = inner
        self.strict = strict

    @property
    def type(self) -> type:
        return zip


class MapVariable(IteratorVariable):
    """`map(function, *inner)`."""

    __slots__ = ("function", "inner")

    def __init__(self, function: Variable, inner: list[Variable]):
        super().__init__()
        self.function = function
        self.inner = inner

    @property
    def type(self) -> type:
        return map


class FilterVariable(IteratorVariable):
    """`filter(function, inner)`."""

    __slots__ = ("function", "inner")

    def __init__(self, function: Variable, inner: Variable):
        super().__init__()
        self.function = function
        self.inner = inner

    @property
    def type(self) -> type:
        return filter


class GeneratorVariable(IteratorVariable):
    """A generator whose frame the tracer runs step by step. function, args: to make it anew
    when it has not started."""

    __slots__ = (
        "frame", "started", "finished", "function", "args", "running", "result", "handled", "outer",
    )  # fmt: skip

    def __init__(self, frame, function: Variable, args):
        super().__init__()
        self.frame = frame
        self.function = function
        self.args = args
        self.started = False
        self.finished = False
        self.running = False
        self.result: Variable | None = None
        # What its frame is handling while it waits, and what was handled outside when it began.
        self.handled: Variable | None = None
        self.outer: Variable | None = None

    @property
    def type(self) -> type:
        return types.GeneratorType
