"""Arrays of NumPy."""

from typing import Any

from ...package.source import Source
from .base import Variable


class ArrayVariable(Variable):
    """An array of numbers. value: an array of the trace's own that holds what the program's does,
    None as long as nobody has looked at one that came in. live: one that came in; shared: there is
    a tensor that shares its memory.

    Views share their memory with the same arrays as the program's do.
    """

    __slots__ = ("value", "live", "shared")

    def __init__(self, value: Any, source: Source | None = None, live: Any = None):
        super().__init__(source)
        self.value = value
        self.live = live
        self.shared = False

    @property
    def type(self) -> type:
        return type(self.live if self.live is not None else self.value)

    def describe(self) -> str:
        return "ndarray"
