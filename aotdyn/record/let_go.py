"""What objects that existed before held until the frame changed them: it goes when the effects are
written, after all that the frame has done since. Where the program sees it go, the frame breaks."""

from collections.abc import Callable, Iterator
from types import MemberDescriptorType
from typing import Any

from ..package.lifetimes import has_end, is_plain
from ..package.source import Attribute, Item, Source
from .attributes import has_own_dict, own_dict_of, own_dict_source
from .live_dicts import is_plain_key
from .members import static_lookup
from .signals import GraphBreak
from .variables import (
    DELETED,
    CellVariable,
    Constant,
    DictVariable,
    Known,
    Lazy,
    ListVariable,
    ObjectVariable,
    Opaque,
    SetVariable,
    Symbolic,
    TensorVariable,
    Variable,
)
from .variables.containers import Unread
from .variables.sequences import DequeVariable

# From so many values on, one guard asks for all that their holder has.
_MANY = 8

# A value that is let go of, and the guard that relies on its having no end: kind, source, expected.
_Gone = tuple[Any, str, Source, Any]


def require_no_ends(t) -> None:
    """Nothing of which the program sees the end ends with the effects.

    Raises GraphBreak, to break where what held it is changed first.
    """
    effects = t.effects
    live = {id(variable): value for value, variable in t.by_identity()}
    for key, variable in effects.changed.items():
        gone: list[_Gone] = []
        for kind, replaced in _REPLACED.items():
            if isinstance(variable, kind):
                gone += replaced(variable, live)
        _require(t, gone, variable.source, effects.since[key])
    for (owner, name), (globals_, source, value) in effects.globals.items():
        if name in globals_ and globals_[name] is not _live(value, live):
            gone = [(globals_[name], "NO_END_AT", source, name)]
            _require(t, gone, source, effects.since[owner, name])
    for cls, name in effects.members:
        if has_end(vars(cls).get(name)):
            raise GraphBreak("lifetimes", f"{cls.__qualname__}.{name}", effects.since[cls, name])


def _require(t, gone: list[_Gone], holder: Source, since: int) -> None:
    unlike = [each for each in gone if not is_plain(each[0])]
    for value, *_ in unlike:
        if has_end(value):
            raise GraphBreak("lifetimes", f"a {type(value).__name__} is let go of", since)
    if len(unlike) >= _MANY:
        t.guard("NO_END", holder)
        return
    for _, kind, source, expected in gone:
        at = source if kind == "NO_END" else Item(source, expected)
        if not isinstance(t.known_at(at), TensorVariable | Constant | Known | Symbolic):
            t.guard(kind, source, expected)


def _live(variable: Variable | None, live: dict[int, Any]) -> Any:
    """The object that a variable stands for, if it came in."""
    if isinstance(variable, Lazy | Opaque | Constant | Known):
        return variable.value
    return live.get(id(variable))


def _of_sequence(variable: ListVariable | DequeVariable, live: dict[int, Any]) -> Iterator[_Gone]:
    if isinstance(variable, Unread) and variable.look is not None:
        return
    kept = {id(_live(item, live)) for item in variable.items}
    for index, value in enumerate(live.get(id(variable), ())):
        if id(value) not in kept:
            yield value, "NO_END", Item(variable.source, index), None


def _of_dict(variable: DictVariable, live: dict[int, Any]) -> Iterator[_Gone]:
    held, changed = variable.live, {change[1] for change in variable.changes}
    if held is None:
        return
    if any(change[0] == "clear" for change in variable.changes) or not all(
        is_plain_key(key) for key in changed
    ):
        yield held, "NO_END", variable.source, None
        return
    for key in changed:
        kept = variable.items.get(key, (None, None))[1]
        if key in held and held[key] is not _live(kept, live):
            yield held[key], "NO_END_AT", variable.source, key


def _of_set(variable: SetVariable, live: dict[int, Any]) -> Iterator[_Gone]:
    if any(change[0] not in ("add", "merge") for change in variable.changes):
        yield live.get(id(variable)), "NO_END", variable.source, None


def _of_cell(variable: CellVariable, live: dict[int, Any]) -> Iterator[_Gone]:
    try:
        held = variable.live.cell_contents
    except ValueError:
        return
    if held is not _live(variable.content, live):
        yield held, "NO_END", variable.source, None


def _in_slot(slot: MemberDescriptorType, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:
        return DELETED


def _of_object(variable: ObjectVariable, live: dict[int, Any]) -> Iterator[_Gone]:
    if variable.live is None:
        return
    own = own_dict_of(variable) if has_own_dict(variable.cls) else {}
    for name, value in variable.attributes.items():
        slot, _ = static_lookup(variable.cls, name)
        if isinstance(slot, MemberDescriptorType):
            held = _in_slot(slot, variable.live)
            if held is not DELETED and held is not _live(value, live):
                yield held, "NO_END", Attribute(variable.source, name), None
        elif name not in own or own[name] is not _live(value, live):
            yield own.get(name), "NO_END_AT", own_dict_source(variable), name


_REPLACED: dict[type, Callable] = {
    ListVariable: _of_sequence,
    DequeVariable: _of_sequence,
    DictVariable: _of_dict,
    SetVariable: _of_set,
    CellVariable: _of_cell,
    ObjectVariable: _of_object,
}
