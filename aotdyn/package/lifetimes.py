"""Values of which the program sees when they go: variants are guarded by it."""

from types import GeneratorType
from typing import Any

from .own_builtins import BUILTINS as __builtins__  # noqa: F401


def has_end(value: Any) -> bool:
    """Whether code of the program runs, or may run, when a value goes, or a buffer can be resized
    again."""
    kind = type(value)
    if kind is GeneratorType:
        # It may wait in blocks that it leaves, or run others that do.
        return value.gi_frame is not None
    return kind is memoryview or hasattr(kind, "__del__")
