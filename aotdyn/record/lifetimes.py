"""Where the program sees that an object ends: code of its own runs then. A variant's body holds its
frame's values to its end; a frame of Python lets go of each as it drops it."""

from ..package.lifetimes import has_end as _has_end
from ..package.source import Bound
from .signals import SkipFrame
from .variables import GeneratorVariable, Lazy, ObjectVariable, Opaque, Variable


def has_end(t, variable: Variable) -> bool:
    """Whether the program sees when a value goes that came in, or a generator made meanwhile that
    has begun. A variant that relies on a value without an end is guarded."""
    variable = _known(variable)
    if _ends(variable):
        return True
    if isinstance(variable, Lazy | Opaque) and not isinstance(variable.source, Bound):
        t.guard("NO_END", variable.source)
    return False


def _known(variable: Variable) -> Variable:
    """What has been found out about a value, if it has been looked at."""
    return variable.known or variable if isinstance(variable, Lazy) else variable


def _ends(variable: Variable) -> bool:
    if isinstance(variable, Lazy | Opaque):
        return _has_end(variable.value)
    if isinstance(variable, GeneratorVariable):
        return variable.started and not variable.finished
    return isinstance(variable, ObjectVariable) and hasattr(variable.type, "__del__")


def dropped(t, variable: Variable | None) -> None:
    """The root frame lets go of a value: of a variable, or of what is on its stack.

    Raises SkipFrame where the program may see it, for a frame that goes on after a break; what it
    has been called with its caller holds.
    """
    if t.entry.point is None or variable is None or variable.source is None:
        return
    if has_end(t, variable):
        raise SkipFrame("lifetimes", f"a {variable.describe()} is dropped")


def frame_ends(t, frame) -> None:
    """The root frame ends: it lets go of its variables in their order, a body all at once.

    Raises SkipFrame where the program sees that.
    """
    if t.entry.point is None:
        return
    held = (*frame.locals.values(), *(cell.content for cell in frame.cells.values()))
    came_in = [_known(each) for each in held if each is not None and each.source is not None]
    if sum(map(_ends, came_in)) > 1:
        raise SkipFrame("lifetimes", "several objects end with the frame")
