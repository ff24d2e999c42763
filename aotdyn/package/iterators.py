"""What is ahead of iterators of C over sequences and tables: variants are guarded by it, and read
it, without advancing them."""

import gc
from types import MappingProxyType
from typing import Any

from .own_builtins import BUILTINS as __builtins__  # noqa: F401

# Types of iterators that tell what they run over, and where they are.
OVER_SEQUENCES = tuple(type(each) for each in (iter([]), iter(()), iter(range(0)), reversed([])))
_BACKWARDS = type(reversed([]))

# Types of iterators that only tell all that they have left.
OVER_TABLES = tuple(
    type(each) for each in (iter({}), iter({}.values()), iter({}.items()), iter(set()))
)  # fmt: skip


def over(iterator: Any) -> Any:
    """What one of these iterators runs over; None where a table has no more to give. And what a
    `MappingProxyType` reads."""
    if type(iterator) in OVER_TABLES or type(iterator) is MappingProxyType:
        return next(iter(gc.get_referents(iterator)), None)
    return iterator.__reduce__()[1][0]


def left(iterator: Any) -> int:
    """How many values an iterator over a table will give; -1 where it will raise, because the
    table has grown or shrunk."""
    try:
        return len(iterator.__reduce__()[1][0])
    except RuntimeError:
        return -1


def ahead(iterator: Any, index: int) -> Any:
    """The value that one of these iterators gives after so many others. Raises IndexError where
    it gives fewer."""
    _, (sequence, *_), *position = iterator.__reduce__()
    at = position[0] if position else 0
    if type(iterator) is not _BACKWARDS:
        return sequence[at + index]
    if at < index:
        raise IndexError(index)
    return sequence[at - index]
