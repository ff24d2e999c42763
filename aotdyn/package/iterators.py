"""What is ahead of iterators of C over sequences: variants are guarded by it, and read it, without
advancing them."""

from typing import Any

# Types of iterators that tell what they run over, and where they are.
OVER_SEQUENCES = tuple(
    type(each) for each in (iter([]), iter(()), iter(range(0)), reversed([]))
)  # fmt: skip
_BACKWARDS = type(reversed([]))


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
