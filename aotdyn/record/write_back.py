"""Writes side effects back: the lines that bring objects that existed before to the state that they
have in the trace."""

from collections.abc import Callable
from typing import Any

from ..package.reference import Import, Reference
from ..package.source import Source
from .body import (
    BodyWriter,
    delete_attribute,
    dict_base,
    require_same_hashes,
    set_attribute,
)
from .set_tables import changed_again, is_long, since_replaced
from .variables import (
    DELETED,
    CellVariable,
    DictVariable,
    ExceptionVariable,
    GroupVariable,
    ListVariable,
    LiveListVariable,
    MappingObject,
    ObjectVariable,
    SetVariable,
    TensorVariable,
    Variable,
)


def write_effects(w: BodyWriter) -> list[str]:
    """The lines that bring objects that existed before to the state they have in the trace.

    All values are computed (into `w.lines`) before any of these lines runs.
    """
    lines: list[str] = []
    for variable in list(w.t.effects.changed.values()):
        target = w.value(variable)
        lines += EFFECTS[type(variable)](w, variable, target)
    for (cls, name), value in w.t.effects.members.items():
        holder = w.ref(w.t.references.to(cls))
        if value is not DELETED:
            lines.append(f"setattr({holder}, {name!r}, {w.value(value)})")
        elif name in vars(cls):
            lines.append(f"delattr({holder}, {name!r})")
    for source, name, value in w.t.effects.global_stores():
        lines.append(f"{w.load(source)}[{name!r}] = {w.value(value)}")
    for function, args in w.t.effects.calls:
        lines.append(f"{w.runtime(function)}({', '.join(_argument(w, arg) for arg in args)})")
    for handle in w.t.effects.hooks:
        if handle.active:
            w.value(handle)
    return lines


def _argument(w: BodyWriter, value: Variable | Reference | Source) -> str:
    if isinstance(value, Variable):
        return w.value(value)
    return w.load(value) if isinstance(value, Source) else w.ref(value)


def _list_effect(w: BodyWriter, v: ListVariable, target: str) -> list[str]:
    if isinstance(v, LiveListVariable) and v.look is not None:
        return [f"{target}.extend(({''.join(f'{w.value(item)}, ' for item in v.appended)}))"]
    if not v.items:
        # `sort` empties its list, and tells by its storage whether a key function has used it.
        return [f"{target}[:] = (None,); {target}.clear()"]
    return [f"{target}[:] = [{', '.join(map(w.value, v.items))}]"]


def _dict_effect(w: BodyWriter, v: DictVariable, target: str) -> list[str]:
    """Replays the changes in order. A key's final value is stored at the first store after its
    last removal: that store decides its place in the dict's order. What was stored and is removed
    again is stored as well, as long as that is not much: it takes a place in the table, which
    decides what iterators over the dict go on with."""
    clear, remove, store = _DICT_WRITES
    if v.owner is not None:
        # Without running methods that the class overrides.
        base = w.ref(dict_base(v.owner.cls))
        clear, remove, store = (f"{base}.{text}" for text in _MAPPING_WRITES)
    require_same_hashes(v.items, v.origin)
    lines = []
    stored: set = set()
    for index, change in enumerate(v.changes):
        if change[0] == "clear":
            lines.append(clear.format(target))
            continue
        removal = _removal(v, change[1], index)
        if change[0] == "del":
            stored.discard(change[1])
            lines.append(remove.format(target, w.value(change[2])))
        elif change[0] in ("first", "last"):
            if removal is None:
                move = w.ref(MOVE)
                lines.append(f"{move}({target}, {w.value(change[2])}, {change[0] == 'last'})")
        elif change[1] in stored:
            continue
        elif removal is None:
            stored.add(change[1])
            key, item = v.items[change[1]]
            lines.append(store.format(target, w.value(key), w.value(item)))
        elif removal[0] == "del" and not is_long(v.changes):
            stored.add(change[1])
            lines.append(store.format(target, w.value(removal[2]), "None"))
    return lines


MOVE = Import("collections", "OrderedDict.move_to_end")

# How a dict is cleared, loses a key that it may not have, and gets an item; the second by the
# methods of a class of C.
_DICT_WRITES = "{}.clear()", "{}.pop({}, None)", "{}[{}] = {}"
_MAPPING_WRITES = "clear({})", "pop({}, {}, None)", "__setitem__({}, {}, {})"


def _removal(v: DictVariable, key: Any, index: int) -> tuple | None:
    """The change, after the one with this index, after which a key is not there any more: the last
    that clears the dict, or the next that removes the key."""
    later = [
        change for change in v.changes[index + 1 :]
        if change[0] == "clear" or change[:2] == ("del", key)
    ]  # fmt: skip
    cleared = [change for change in later if change[0] == "clear"]
    return (*cleared, *later, None)[0]


def _set_effect(w: BodyWriter, v: SetVariable, target: str) -> list[str]:
    require_same_hashes(v.items, v.origin)
    base, changes = since_replaced(v)
    lines = []
    if base is not v.base or is_long(changes):
        base = v.items if is_long(changes) else base
        items = "".join(f"{w.value(item)}, " for item in base.values())
        lines.append(f"{target}.clear(); {target}.update(({items}))")
    return lines + ([] if is_long(changes) else changed_again(w, v, target, changes))


def object_effect(w: BodyWriter, v: ObjectVariable, target: str) -> list[str]:
    lines = []
    for name, value in v.attributes.items():
        if value is DELETED or w.t.effects.is_renewed(v, name):
            lines.append(delete_attribute(w, v.cls, target, name))
        if value is not DELETED:
            lines.append(set_attribute(w, v.cls, target, name, w.value(value)))
    return lines


def tensor_effect(w: BodyWriter, v: TensorVariable, target: str) -> list[str]:
    return [
        f"delattr({target}, {name!r})" if value is DELETED
        else f"setattr({target}, {name!r}, {w.value(value)})"
        for name, value in v.attributes.items()
    ]  # fmt: skip


def _cell_effect(w: BodyWriter, v: CellVariable, target: str) -> list[str]:
    return [f"{target}.cell_contents = {w.value(v.content)}"]


EFFECTS: dict[type, Callable] = {
    ListVariable: _list_effect,
    LiveListVariable: _list_effect,
    DictVariable: _dict_effect,
    SetVariable: _set_effect,
    ObjectVariable: object_effect,
    ExceptionVariable: object_effect,
    GroupVariable: object_effect,
    MappingObject: object_effect,
    CellVariable: _cell_effect,
    TensorVariable: tensor_effect,
}
