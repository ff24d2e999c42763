"""The order of sets: that of a hash table, which depends on how it came to be. While tracing, a set
of values with hashes that are known has a table with the same history; here is how a body makes, or
changes, a set so that it goes on with an equal one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from .signals import GraphBreak
from .variables import DictVariable, SetVariable, Variable
from .variables.containers import is_steady, table_of

# So many changes are made again, one after the other.
_MOST_CHANGES = 200


class Making(NamedTuple):
    """How a set is made: of these members, in this order. copied: as the copy of a set, whose table
    has another size. changes: what is done to it then."""

    members: list[Any]
    copied: bool = False
    changes: tuple = ()

    def table(self, cls: type) -> Any:
        """The table that comes of it."""
        made = cls(set(self.members) if self.copied else self.members)
        for change in self.changes:
            apply_change(made, change)
        return made


def making(v: SetVariable) -> Making:
    """How a body makes a set that the frame has made.

    Raises GraphBreak where no way is known that gives it the order that it has, to break where it
    was made.
    """
    first = Making(list(v.items))
    if v.table is None:
        return first
    ways = [first, Making(list(v.table)), Making(list(v.table), copied=True)]
    base, changes = since_replaced(v)
    if changes and v.cls is set and len(changes) <= _MOST_CHANGES:
        ways += [Making(list(base), copied, changes) for copied in (False, True)]
    tables = [way.table(v.cls) for way in ways]
    alike = [way for way, table in zip(ways, tables, strict=True) if list(table) == list(v.table)]
    size = v.table.__sizeof__()
    exact = [way for way in alike if way.table(v.cls).__sizeof__() == size]
    if not alike and all(map(is_steady, v.items)):
        raise GraphBreak("reconstruct", "the order of a set", v.origin)
    return (*exact, *alike, first)[0]


def since_replaced(v: SetVariable) -> tuple[dict, tuple]:
    """What a set held when it was made, or was last given new contents, and its changes since."""
    base, begin = v.base, 0
    for index, change in enumerate(v.changes):
        if change[0] == "replace":
            base, begin = change[1], index + 1
    return base, tuple(v.changes[begin:])


def apply_change(table: set, change: tuple) -> None:
    """Does to a table what was done to a set."""
    kind, tokens = change[:2]
    if kind == "add":
        table.update(list(tokens))
    elif kind == "merge":
        table.update(set(tokens) if change[2] is set else dict.fromkeys(tokens))
    elif kind == "discard":
        for token in tokens:
            table.discard(token)
    else:
        table.difference_update(list(tokens))


def changed_again(w, v: SetVariable, name: str, changes: Iterable[tuple]) -> list[str]:
    """The lines that do changes again to the set under a name. What was added and is not there any
    more need not be a plain value: it is left out."""
    lines = []
    known = {**since_replaced(v)[0], **v.items}
    for kind, members, *of in changes:
        held = [(token, item) for token, item in members.items()
                if token in known or table_of([token], set) is not None]  # fmt: skip
        values = "".join(f"{w.value(item)}, " for _, item in held)
        if not held:
            continue
        if kind == "add":
            lines.append(f"{name}.update(({values}))")
        elif kind == "merge":
            given = f"{{{values}}}" if of[0] is set else f"dict.fromkeys(({values}))"
            lines.append(f"{name}.update({given})")
        elif kind == "discard":
            lines += [f"{name}.discard({w.value(item)})" for _, item in held]
        else:
            lines.append(f"{name}.difference_update(({values}))")
    return lines


def is_long(changes: tuple) -> bool:
    """Whether so much was done to a set that giving it its contents anew is less."""
    return len(changes) > _MOST_CHANGES


def known_table(v: SetVariable) -> Any:
    """The table of a set; for one that came in, one like it, in its order if that is that of a new
    set or of a copy; None where members are not plain."""
    table = v.table if v.table is not None else table_of(v.items, v.cls)
    if table is None or list(table) == list(v.items):
        return table
    copied = Making(list(v.items), copied=True).table(v.cls)
    return copied if v.table is None and list(copied) == list(v.items) else table


def filling(other: Variable, tokens: dict) -> tuple:
    """The change by which a set takes all members of an iterable."""
    if type(other) in (SetVariable, DictVariable):
        return "merge", tokens, set if type(other) is SetVariable else dict
    return "add", tokens


def given(other: Variable, tokens: dict) -> Any:
    """What stands for an iterable where the table of a set is filled from it; None where that is
    not known. Sets and dicts tell beforehand how much they hold."""
    if isinstance(other, SetVariable):
        return known_table(other)
    if table_of(tokens, set) is None:
        return None
    return dict.fromkeys(tokens) if type(other) is DictVariable else list(tokens)
