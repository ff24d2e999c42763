"""Instances of subclasses of list and tuple, and deques."""

from collections import deque
from typing import Any

from ...package.source import Source
from .containers import ListVariable, Sequence, Unread
from .objects import ObjectVariable


class HeldList(ListVariable):
    """What an instance of a list subclass holds. owner: that instance."""

    __slots__ = ("owner",)
    owner: "SequenceObject"


class SequenceObject(ObjectVariable):
    """An instance of a subclass of list or tuple.

    contents: what it holds, whatever methods its class overrides. attributes: as for any object.
    """

    __slots__ = ("contents",)

    def __init__(self, cls: type, contents: Sequence, live: Any = None,
                 source: Source | None = None):  # fmt: skip
        super().__init__(cls, live, source)
        self.contents = contents
        if isinstance(contents, HeldList):
            contents.owner = self

    @property
    def base(self) -> type:
        """The class of C that holds the items."""
        return list if issubclass(self.cls, list) else tuple


class DequeVariable(Sequence):
    """A `collections.deque`; `maxlen` is an int or None. moves: how often items have come, gone or
    moved along, which ends its iterators; new items in their places do not."""

    __slots__ = ("maxlen", "moves")
    python = deque

    def __init__(self, items, maxlen: int | None, source: Source | None = None):
        super().__init__(items, source)
        self.maxlen = maxlen
        self.moves = 0

    def constant(self) -> deque:
        return deque((item.constant() for item in self.items), self.maxlen)


class LiveDequeVariable(Unread, DequeVariable):
    """A deque without a maximum that existed before the frame."""

    __slots__ = ("look", "known", "appended")

    def __init__(self, look, source: Source):
        Unread.__init__(self, look, source)
        self.maxlen = None
        self.moves = 0
