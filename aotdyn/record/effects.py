"""Side effects: one journal of what the frame has changed in objects that existed before it.

Rules change variables in place and note it here; `codegen` writes the changes back after the
graph. Objects that the frame made itself need no write-back: they are built in their final state.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..package.reference import Reference
from ..package.source import Source
from .set_tables import apply_change
from .signals import GraphBreak
from .variables import (
    DELETED,
    CellVariable,
    DictVariable,
    FunctionVariable,
    ListVariable,
    ObjectVariable,
    SetVariable,
    Variable,
)
from .variables.containers import table_of


def _whole(variable: Variable) -> Variable:
    """The object whose contents a variable is, for an instance of a builtin container's subclass;
    else the variable itself."""
    return getattr(variable, "owner", None) or variable


class Effects:
    """changed: every variable that was changed and lived before, in order of the first change.

    count: how many changes there were, to objects of any age; the root loop compares it to see
    whether an instruction has done anything.
    """

    def __init__(self, step: Callable[[], int]) -> None:
        self.changed: dict[int, Variable] = {}
        # The step of the root frame at which each of these, or a global variable or an attribute of
        # a class, was changed first.
        self.since: dict[Any, int] = {}
        self._step = step
        self.count = 0
        # Attributes that were deleted and set again: (id of the object, name).
        self.renewed: set[tuple[int, str]] = set()
        # (globals dict's id, name) -> (globals, its source, value)
        self.globals: dict[tuple[int, str], tuple] = {}
        # (class that existed before, name) -> what was set there last, or DELETED
        self.members: dict[tuple[type, str], Any] = {}
        # Calls that are made for their effect alone: the name of a function of the runtime, and
        # what it gets, in order.
        self.calls: list[tuple[str, tuple[Variable | Reference | Source, ...]]] = []
        # The handles of hooks on tensors and modules that came in, in order.
        self.hooks: list[Any] = []
        # Objects that are a cache's in the program: it may give them again.
        self.kept: dict[int, Variable] = {}
        # Within a function that runs at another time, or again: what it has made itself, the
        # only things that it may change.
        self._own: dict[int, Variable] | None = None

    @contextlib.contextmanager
    def only_own(self, *more: Variable) -> Iterator[None]:
        """What is made from here on, and these variables, may be changed, and nothing else.

        A change of anything else raises GraphBreak.
        """
        outer, self._own = self._own, {id(variable): variable for variable in more}
        try:
            yield
        finally:
            self._own = outer

    @property
    def only_own_changes(self) -> bool:
        """Whether a function is traced that runs at another time, or again."""
        return self._own is not None

    @property
    def is_seen(self) -> bool:
        """Whether anything has been done so far that others than the frame see."""
        return bool(self.changed or self.globals or self.members or self.calls or self.hooks)

    def made(self, variable: Variable) -> None:
        """Notes an object that the frame makes."""
        if self._own is not None:
            self._own[id(variable)] = variable

    def touch(self, variable: Variable) -> None:
        """Notes a change that is about to be made."""
        if self._own is not None and id(_whole(variable)) not in self._own:
            raise GraphBreak("mutation", "a function that runs at another time changes an object")
        if id(variable) in self.kept:
            raise GraphBreak("mutation", "an object that a cache holds")
        self.count += 1
        if variable.source is not None:
            self.changed.setdefault(id(variable), variable)
            self.since.setdefault(id(variable), self._step())

    def set_cell(self, cell: CellVariable, content: Variable | None) -> None:
        """Stores into a closure cell; None empties it."""
        if content is None and cell.source is not None:
            raise GraphBreak("mutation", "a variable shared with a function outside is deleted")
        self.touch(cell)
        cell.content = content

    def set_attribute(self, target: ObjectVariable, name: str, value: Variable) -> None:
        """Sets an attribute in an object's own dictionary or slot."""
        self.touch(target)
        # The first write decides the place in the order of attributes, unless it was deleted.
        if target.attributes.get(name) is DELETED:
            del target.attributes[name]
            self.renewed.add((id(target), name))
        target.attributes[name] = value

    def delete_attribute(self, target: ObjectVariable, name: str, came_in: bool) -> None:
        """Deletes an attribute of an object's own. came_in: the object had it before the frame."""
        self.touch(target)
        if came_in:
            target.attributes[name] = DELETED
        else:
            target.attributes.pop(name, None)

    def is_renewed(self, target: ObjectVariable, name: str) -> bool:
        """Whether an attribute was deleted and set again: it is the last one now."""
        return (id(target), name) in self.renewed

    def set_function_attribute(self, target: FunctionVariable, name: str, value: Variable) -> None:
        """Sets an attribute on a function that the frame made."""
        self.touch(target)
        target.attributes[name] = value

    def set_items(self, target: ListVariable, items: list[Variable]) -> None:
        """Gives a list new contents."""
        self.touch(target)
        target.items = items

    def set_item(self, target: DictVariable, key, key_variable: Variable, value: Variable) -> None:
        """Sets a dict's item; a new key goes to the end."""
        self.touch(target)
        old = target.items.get(key)
        target.items[key] = (key_variable if old is None else old[0], value)
        target.absent.discard(key)
        target.changes.append(("set", key))
        if target.below is not None:
            target.below.setdefault(key)

    def delete_item(self, target: DictVariable, key) -> None:
        """Removes a dict's item that is there."""
        self.touch(target)
        target.changes.append(("del", key, target.items[key][0]))
        del target.items[key]
        target.absent.add(key)
        if target.below is not None:
            del target.below[key]

    def move(self, target: DictVariable, key, last: bool) -> None:
        """Makes an item of an OrderedDict its last, or its first."""
        self.touch(target)
        if target.below is None and target.live is None:
            target.below = dict.fromkeys(target.items)
        held = target.items.pop(key)
        target.items = {**target.items, key: held} if last else {key: held, **target.items}
        target.changes.append(("last" if last else "first", key, held[0]))

    def clear(self, target: DictVariable) -> None:
        """Empties a dict."""
        self.touch(target)
        target.items.clear()
        target.absent.clear()
        target.below = None
        target.complete = True
        target.changes.append(("clear", None))

    def change_members(self, target: SetVariable, change: tuple) -> None:
        """Adds members to a set, or removes some: a row of its `changes`."""
        self.touch(target)
        kind, members = change[:2]
        if kind in ("add", "merge"):
            target.items.update({k: v for k, v in members.items() if k not in target.items})
        else:
            for token in members:
                target.items.pop(token, None)
        if target.table is not None and table_of(members, set) is None:
            target.table = None
        if target.table is not None:
            apply_change(target.table, change)
        target.changes.append(change)

    def replace_members(self, target: SetVariable, items: dict, table: Any) -> None:
        """Gives a set new contents. table: see `SetVariable`."""
        self.touch(target)
        target.items = items
        target.table = table if target.source is None else None
        target.changes.append(("replace", dict(items)))

    def call(self, function: str, *args: Variable | Reference | Source) -> None:
        """Notes that a function of the runtime is to be called when the effects are written."""
        if self._own is not None:
            raise GraphBreak("mutation", "a function that runs at another time has an effect")
        self.count += 1
        self.calls.append((function, args))

    def set_global(self, globals_: dict, source, name: str, value: Variable) -> None:
        """Stores a global variable."""
        if self._own is not None:
            raise GraphBreak("mutation", "a function that runs at another time sets a global")
        self.count += 1
        self.globals[id(globals_), name] = (globals_, source, value)
        self.since.setdefault((id(globals_), name), self._step())

    def set_member(self, cls: type, name: str, value: Any) -> None:
        """Sets an attribute of a class that existed before; DELETED removes it."""
        self.count += 1
        self.members[cls, name] = value
        self.since.setdefault((cls, name), self._step())

    def member(self, cls: type, name: str) -> Any:
        """What a lookup that starts at a class finds among the attributes that were set; None
        where it ends before, or nowhere."""
        for base in cls.__mro__ if self.members else ():
            found = self.members.get((base, name))
            if found is not None and found is not DELETED:
                return found
            if found is None and name in base.__dict__:
                return None
        return None

    def global_stores(self) -> list[tuple]:
        """(source of the globals, name, value) of every global variable that was stored."""
        return [(source, key[1], value) for key, (_, source, value) in self.globals.items()]
