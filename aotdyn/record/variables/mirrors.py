"""Objects of C that hold nothing but plain data, and change."""

import array
import io
import random
from typing import Any

from ...package.source import Source
from .base import Constant, Variable

# Their objects are mirrored.
MIRRORED = (bytearray, memoryview, array.array, io.StringIO, io.BytesIO, random.Random)


class MirrorVariable(Variable):
    """A bytearray, a memoryview, an array, a text or bytes in memory, a random generator.

    value: an object of the same type with the same contents, to which is done what the program does
    to its own. made: for a view, the expression that gives it and the variables that fill it.
    """

    __slots__ = ("value", "made")

    def __init__(
        self, value: Any, source: Source | None = None,
        made: tuple[str, tuple[Variable, ...]] | None = None,
    ):  # fmt: skip
        super().__init__(source)
        self.value = value
        self.made = made

    @property
    def type(self) -> type:
        return type(self.value)

    @property
    def memory(self) -> "MirrorVariable":
        """What holds the contents: a view's is that of what it was made of."""
        first = self.made[1][0] if self.made is not None else None
        return first.memory if isinstance(first, MirrorVariable) else self

    @property
    def items(self) -> list[Variable]:
        """What going through it gives."""
        return [Constant(item) for item in self.value]

    def describe(self) -> str:
        return self.type.__name__
