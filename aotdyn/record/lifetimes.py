"""Where the program sees that an object ends: code of its own runs then. A variant's body holds its
frame's values to its end; a frame of Python lets go of each as it drops it."""

from types import GeneratorType
from typing import Any

from .signals import SkipFrame
from .variables import Lazy, ObjectVariable, Opaque, Variable


def has_end(variable: Variable) -> bool:
    """Whether the program sees when a value that came in goes: code of it runs, or may run, or a
    buffer can be resized again."""
    if isinstance(variable, Lazy | Opaque):
        value = variable.value
        if type(value) is GeneratorType:
            return _waits(value)
        return type(value) is memoryview or hasattr(type(value), "__del__")
    return isinstance(variable, ObjectVariable) and hasattr(variable.type, "__del__")


def _waits(generator: Any) -> bool:
    """Whether a generator waits in blocks that it leaves when it ends."""
    return generator.gi_suspended and bool(generator.gi_code.co_exceptiontable)


def dropped(t, frame, variable: Variable | None) -> None:
    """The frame lets go of a value: of a variable, or of what is on its stack.

    Raises SkipFrame where the program may see it, for a frame that goes on after a break; what it
    has been called with its caller holds.
    """
    if frame is not t.root or t.entry.point is None or variable is None:
        return
    if variable.source is not None and has_end(variable):
        raise SkipFrame("lifetimes", f"a {variable.describe()} is dropped")
