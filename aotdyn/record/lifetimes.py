"""Where the program sees that an object ends: code of its own runs then. A variant's body holds its
frame's values to its end; a frame of Python lets go of each as it drops it."""

from collections.abc import Iterator
from typing import Any

from ..package.lifetimes import has_end as _has_end
from ..package.lifetimes import is_plain
from ..package.source import Bound
from .signals import SkipFrame
from .variables import (
    Constant,
    GeneratorVariable,
    Known,
    Lazy,
    MadeReference,
    ObjectVariable,
    Opaque,
    Symbolic,
    TensorVariable,
    Variable,
)
from .variables.mirrors import MirrorVariable

# Whoever holds more than so many objects is taken to hold none that the program sees go.
_MOST_HELD = 2000


def is_held(t, variable: Variable) -> bool:
    """Whether a frame that goes on in another entry holds a value that it makes no use of: one that
    came in, as others may not hold it, or of which the program sees when it goes. A variant that
    relies on a value without an end is guarded."""
    variable = _known(variable)
    if isinstance(variable, Constant | Symbolic):
        return False
    if isinstance(variable, TensorVariable):
        return bool(variable.attributes) or _ends(t, variable)
    plain = isinstance(variable, Lazy | Opaque) and is_plain(variable.value)
    if _came_in(variable) and not plain:
        return True
    if any(_ends(t, each) for each in _reached(t, variable)):
        return True
    for each in _reached(t, variable):
        if isinstance(each, Lazy | Opaque) and _came_in(each):
            t.guard("NO_END", each.source)
    return False


def _known(variable: Variable) -> Variable:
    """What has been found out about a value, if it has been looked at."""
    return variable.known or variable if isinstance(variable, Lazy) else variable


def _came_in(variable: Variable) -> bool:
    return variable.source is not None and not isinstance(variable.source, Bound)


def _ends(t, variable: Variable) -> bool:
    """Whether the program sees when this very value goes, or something goes with it that the value
    held when it came in."""
    if isinstance(variable, GeneratorVariable):
        # Eager code may begin it.
        return not variable.finished
    if isinstance(variable, MirrorVariable):
        # A view keeps what it looks at from being resized.
        return variable.type is memoryview
    if isinstance(variable, ObjectVariable) and hasattr(variable.type, "__del__"):
        return True
    if isinstance(variable, Lazy | Opaque):
        return _has_end(variable.value)
    return _came_in(variable) and _has_end(t.live_of(variable))


def _reached(t, variable: Variable) -> Iterator[Variable]:
    """A value, and those that go with it if nothing else holds them."""
    pending, seen = [variable], {id(variable)}
    while pending and len(seen) < _MOST_HELD:
        each = pending.pop()
        yield each
        if isinstance(each, Constant | Known | Lazy | Opaque | MadeReference):
            # What it has is the program's own.
            continue
        for inner in map(_known, _held_by(each)):
            if id(inner) not in seen:
                seen.add(id(inner))
                pending.append(inner)


def _held_by(variable: Variable) -> Iterator[Variable]:
    """The variables that one is made of."""
    for base in type(variable).__mro__:
        for name in getattr(base, "__slots__", ()):
            if name != "live":  # the program's own
                yield from _variables_in(getattr(variable, name, None))
    yield from _variables_in(list(getattr(variable, "__dict__", {}).values()))


def _variables_in(value: Any) -> Iterator[Variable]:
    kind = type(value)  # live objects are not asked for what they are
    if issubclass(kind, Variable):
        yield value
    elif kind in (list, tuple):
        for each in value:
            yield from _variables_in(each)
    elif kind is dict:
        yield from _variables_in(list(value.values()))


def dropped(t, variable: Variable | None) -> None:
    """The root frame lets go of a value: of a variable, or of what is on its stack.

    Raises SkipFrame where the program may see it, for a frame that goes on after a break; what it
    has been called with its caller holds.
    """
    if t.entry.point is None or variable is None:
        return
    variable = _known(variable)
    for each in _reached(t, variable):
        if not _came_in(each):
            continue
        if _ends(t, each):
            raise SkipFrame("lifetimes", f"a {variable.describe()} is dropped")
        if isinstance(each, Lazy | Opaque):
            t.guard("NO_END", each.source)


def frame_ends(t, frame) -> None:
    """The root frame ends: it lets go of its variables in their order, a body all at once.

    Raises SkipFrame where the program sees that.
    """
    if t.entry.point is None:
        return
    held = (*frame.locals.values(), *(cell.content for cell in frame.cells.values()))
    came_in = {id(each): each for value in held if value is not None
               for each in _reached(t, _known(value)) if _came_in(each)}  # fmt: skip
    if sum(_ends(t, each) for each in came_in.values()) > 1:
        raise SkipFrame("lifetimes", "several objects end with the frame")
