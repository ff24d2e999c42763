"""Entries at run time, and the dispatcher's loop: the first variant whose guards hold serves a
call; its body may continue in another entry, as a tail call at constant stack depth."""

from collections.abc import Callable
from types import CodeType
from typing import Any

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.point import Point
from ..package.variant import EntryKey, code_hash
from . import misses
from .cpython import internal, native, released
from .hook import hookless, pass_over
from .link import Linked
from .support import Next, Rest

# (entry, hits, misses) of entries that are no more, with the callable they belonged to.
retired: list[tuple[EntryKey, int, int]] = []


# What an entry without variants tries.
_NONE = internal(lambda *values: None), internal(lambda inputs, *values: None)


class Entry:
    """A code object that can be entered at a point.

    first: the check and body that are tried first. variants: those of all variants, in the order
    in which they are tried. linked: the same with their data, the newest first. skipped: the reason
    for which it always runs as plain Python, "" if it does not.
    """

    __slots__ = (
        "code", "globals", "point", "settings", "first", "variants", "late", "linked", "skipped",
        "history", "generation", "hits", "missed", "plain", "_released", "_key", "parent",
        "children", "asked_for", "pending", "dropped", "computed",
    )  # fmt: skip

    def __init__(
        self, code: CodeType, globals_: dict, settings, point: Point | None, parent: "Entry | None"
    ):
        self.code = code
        self.globals = globals_
        self.settings = settings
        self.point = point
        self.first: tuple[Callable, Callable] = _NONE
        self.variants: tuple[tuple[Callable, Callable], ...] = ()
        self.late: dict[Callable, int] = {}
        self.linked: list[Linked] = []
        self.skipped = ""
        self.history: Any = None
        self.generation = 0
        self.hits = 0
        self.missed = 0
        self._released: Callable | None = None
        self._key: EntryKey | None = None
        self.parent = parent
        self.children: dict[Point, Entry] = {}
        # Whether the user compiled it; a nested frame was only met on the way.
        self.asked_for = False
        # Variants of packages that have not been linked: (package, place, variant).
        self.pending: list[tuple] = []
        # How many variants others have taken the place of.
        self.dropped = 0
        # What the traces of the frame say of its variables; see `Request`.
        self.computed: set[str] = set() if parent is None else parent.computed

    def __del__(self) -> None:
        if self._key is not None and (self.hits or self.missed):
            retired.append((self._key, self.hits, self.missed))

    @property
    def key(self) -> EntryKey:
        """The entry's name in every process."""
        if self._key is None:
            module = self.globals.get("__name__", "")
            self._key = EntryKey(module, self.code.co_qualname, code_hash(self.code), self.point)
        return self._key

    def __getattr__(self, name: str) -> Callable:
        """`plain`, which runs the frame as plain Python, given its frame values: made when it is
        first asked for, and an attribute like all others from then on."""
        if name != "plain":
            raise AttributeError(name)
        self.plain = native(self.code, self.globals, self.point, pass_over)
        pass_over(self.plain.__code__)
        return self.plain

    @property
    def released(self) -> Callable:
        """As `plain`, given a list of the frame values that it empties."""
        if self._released is None:
            self._released = released(self.code, self.globals, self.point, pass_over)
        return self._released

    def at(self, point: Point) -> "Entry":
        """The entry for another point of the same frame."""
        root = self.parent or self
        found = root.children.get(point)
        if found is None:
            found = Entry(self.code, self.globals, self.settings, point, root)
            found = root.children.setdefault(point, found)
        return found

    def add(self, linked: Linked, first: bool = True) -> None:
        """A variant from now on. The newest is tried first: it is the most general one."""
        self.linked.insert(0 if first else len(self.linked), linked)
        self.refresh()

    def refresh(self) -> None:
        """Takes over what has changed in a linked variant."""
        self._order([(each.check, each.body) for each in self.linked])

    def forget(self) -> None:
        """Has no variants from now on."""
        self.linked, self.dropped = [], 0
        self.refresh()

    def covering(self, values: tuple, behind: int = 0) -> tuple[tuple, Callable] | None:
        """The graph's inputs and the body of the variant that covers a call, of those behind the
        first few; None if none does."""
        for check, body in self.variants[behind:]:
            inputs = check(*values)
            if inputs is not None:
                self._prefer(check)
                return inputs, body
        return None

    def _prefer(self, check: Callable) -> None:
        """A variant that has served some calls after others had been tried comes first: in a loop
        it serves the next turns too."""
        self.late[check] = count = self.late.get(check, 0) + 1
        if count >= _LATE:
            self._order(sorted(self.variants, key=lambda pair: pair[0] is not check))

    def _order(self, variants: list[tuple]) -> None:
        self.variants = tuple(variants)
        self.first = variants[0] if variants else _NONE
        self.late = {}


# So many calls are served by a later variant before it is tried first.
_LATE = 4


@hookless
def _raised_in(entry: Entry, error: BaseException, values: tuple) -> Any:
    """What comes of a frame that an error is raised in where it was to go on: while it was traced,
    or because nothing covers it."""
    try:
        rest = entry.settings.interrupted(entry, error, values)
    finally:
        del error, values  # see `dispatch`
    return entry.settings.run_rest(rest.entry, rest.values)


@hookless
def dispatch(entry: Entry, values: tuple) -> Any:
    """Runs a frame from its values to its end.

    What it has run lets go of the values: an exception among them whose traceback leads here would
    keep itself, and all of them, alive.
    """
    while True:
        check, body = entry.first
        inputs = check(*values)
        if inputs is not None:
            entry.hits += 1
        else:
            failed = None
            try:
                found = misses.handle(entry, values)
            except BaseException as error:
                failed = error
            if failed is not None:
                try:
                    return _raised_in(entry, failed, values)
                finally:
                    del failed, values
            if found is None:
                held = [*values]
                del values
                return entry.settings.run_rest(entry, held)
            inputs, body = found
        try:
            result = body(inputs, *values)
        except BaseException:
            # In the traceback only the body holds them: it lets go of them in the frame's order.
            inputs = values = None
            raise
        if type(result) is not Next:
            del inputs, values
            if type(result) is Rest and result.alone:
                return result.entry.released(result.values)
            if type(result) is Rest:
                return entry.settings.run_rest(result.entry, result.values)
            return result
        entry, values = result
        del result
