"""Where the program sees that an object ends: code of its own runs then. A variant's body holds its
frame's values to its end; a frame of Python lets go of each as it drops it."""

from collections.abc import Iterator
from typing import Any

from ..package.lifetimes import ends_in, is_plain
from ..package.lifetimes import has_end as _has_end
from ..package.source import Bound, Local, Source
from .signals import GraphBreak, SkipFrame
from .variables import (
    Constant,
    DictVariable,
    GeneratorVariable,
    Known,
    Lazy,
    ListVariable,
    MadeReference,
    ObjectVariable,
    Opaque,
    SetVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from .variables.mirrors import MirrorVariable

# Whoever holds more than so many objects is taken to hold none that the program sees go.
_MOST_HELD = 2000


def is_held(t, variable: Variable, others: list[Variable]) -> bool:
    """Whether a frame that goes on in another entry holds a value that it makes no use of: one that
    came in, as others may not hold it, or of which the program sees when it goes, or may see: it
    holds one of the objects that the frame goes on with, the others, which may get what has an
    end. A variant that relies on a value without an end is guarded."""
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
    if not _came_in(variable) and _holds_one_of(t, variable, others):
        return True
    for each in _reached(t, variable):
        if isinstance(each, Lazy | Opaque) and _came_in(each):
            t.guard("NO_END", each.source)
    return False


_OPEN = (ListVariable, DictVariable, SetVariable, ObjectVariable)


def _holds_one_of(t, variable: Variable, others: list[Variable]) -> bool:
    """Whether a container or object holds another one of these."""
    opened = {id(each) for each in map(_known, others) if isinstance(each, _OPEN)}
    return isinstance(variable, (TupleVariable, *_OPEN)) and any(
        id(each) in opened for each in _reached(t, variable) if each is not variable
    )


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
    return _came_in(variable) and _has_end(_live(t, variable))


def _live(t, variable: Variable) -> Any:
    """The object that came in and that a variable stands for; None if that is not known."""
    if isinstance(variable, Lazy | Opaque):
        return variable.value
    if type(variable.source) is Local:
        return t.entry.values[t.entry.params.index(variable.source.name)]
    return t.live_of(variable)


def _reached(t, *variables: Variable) -> Iterator[Variable]:
    """Values, and those that go with them if nothing else holds them."""
    pending, seen = [*variables], {*map(id, variables)}
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


def note_given(t, frame, stack: list[Variable]) -> None:
    """Notes what a frame that goes on is given: on its stack, and in its variables."""
    t.on_stack = [each for each in stack if isinstance(each, Lazy)]
    t.given = [*t.on_stack, *frame.locals.values()]
    t.ending = [each for each in t.given if _has_end(each.value)]


def require_held(t, frame) -> None:
    """After an instruction of the root frame, what it was given and has an end is still there:
    in its variables, on its stack, or where the instruction has put it.

    Raises GraphBreak.
    """
    direct = {id(_known(each)) for each in (*frame.stack, *frame.locals.values())}
    lost = [each for each in map(_known, t.ending) if id(each) not in direct and _ends(t, each)]
    if not lost:
        return
    there: set[int] = set()
    for each in _reached(t, *_roots(t, frame)):
        there.add(id(each))
        if _came_in(each):
            there.update(ends_in(_live(t, each)))
    for each in lost:
        if id(each) not in there and not there.issuperset(ends_in(_live(t, each))):
            raise GraphBreak("lifetimes", f"a {each.describe()} is dropped")


def holds_more(t, frame, watched: bool) -> bool:
    """Whether the entry that runs still holds what the frame does not hold any more itself, of
    which the program sees the end. watched: it may see that of any object."""
    direct = {id(_known(each)) for each in (*frame.stack, *frame.locals.values())}
    gone = [each for each in map(_known, t.given) if id(each) not in direct]
    if watched and not all(is_plain(_live(t, each)) for each in gone):
        return True
    return any(_ends(t, each) for each in gone)


def ends_with_call(t, frame, operand: Lazy) -> bool:
    """Whether an operand of a call has an end, and nothing else holds it. A variant that relies on
    its having none is guarded."""
    if not any(operand is each for each in t.on_stack):
        return False
    if any(_known(operand) is _known(each) for each in frame.locals.values()):
        return False
    guard_no_end(t, operand.value, operand.source)
    return _ends(t, _known(operand))


def _roots(t, frame) -> Iterator[Variable]:
    """The variables through which what the root frame still has is reached."""
    effects = t.effects
    held = [*frame.stack, *frame.locals.values(), *frame.cells.values(), t.handled]
    held += effects.changed.values()
    held += [value for _, _, value in effects.global_stores()]
    held += [arg for _, args in effects.calls for arg in args]
    held += effects.members.values()
    return (_known(each) for each in held if isinstance(each, Variable))


def guard_no_end(t, value: Any, source: Source) -> None:
    """The variant relies on a value without an end, if it had none now."""
    if not is_plain(value) and not _has_end(value):
        t.guard("NO_END", source)


def guard_consumed(t, frame) -> None:
    """A variant of a frame that goes on after a break relies on no end of what has gone from its
    stack."""
    if t.entry.point is None:
        return
    held = {id(_known(each)) for each in (*frame.stack, *frame.locals.values())}
    for each in t.on_stack:
        _guard_gone(t, _known(each), held)


def _guard_gone(t, variable: Variable, held: set[int]) -> None:
    if id(variable) in held or isinstance(variable, Constant | Symbolic | TensorVariable | Known):
        return
    if isinstance(variable, TupleVariable | ListVariable) and variable.source is not None:
        for each in variable.items:
            _guard_gone(t, _known(each), held)
    else:
        guard_no_end(t, _live(t, variable), variable.source)


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
