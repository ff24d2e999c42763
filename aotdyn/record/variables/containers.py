"""Containers: structure known, elements are variables. Mutable ones are changed in place; the
tracer's `effects` says which of them lived before the frame and must be written back."""

from collections.abc import Callable, Iterable
from typing import Any

from ...package.source import Source
from ..signals import NotConstant
from .base import Constant, Variable


class Sequence(Variable):
    """Base of lists, tuples and slices: `items` in order."""

    __slots__ = ("items",)
    python: type = object

    def __init__(self, items: Iterable[Variable], source: Source | None = None):
        super().__init__(source)
        self.items = list(items)

    @property
    def type(self) -> type:
        return self.python

    def constant(self):
        return self.python(item.constant() for item in self.items)

    def describe(self) -> str:
        return f"{self.type.__name__} of {len(self.items)}"


class ListVariable(Sequence):
    """A list."""

    __slots__ = ()
    python = list


class Unread:
    """Mixed into a sequence that existed before the frame. Nothing but its type is known, and
    guarded, until something asks for its items.

    look: () -> the items it came in with; None once they are known. appended: what the frame has
    put at its end before that.
    """

    __slots__ = ()
    look: Callable[[], list[Variable]] | None
    known: list[Variable]
    appended: list[Variable]

    def __init__(self, look: Callable[[], list[Variable]], source: Source):
        Variable.__init__(self, source)  # type: ignore[arg-type]
        self.look = look
        self.known = []
        self.appended = []

    @property
    def items(self) -> list[Variable]:
        if self.look is not None:
            self.known = [*self.look(), *self.appended]
            self.look = None
        return self.known

    @items.setter
    def items(self, items: list[Variable]) -> None:
        if self.look is not None:
            # What it held, and how much, decides what replacing it means.
            self.items  # noqa: B018
        self.known = items

    def append(self, items: list[Variable]) -> None:
        """Puts items at the end without looking at the others."""
        (self.known if self.look is None else self.appended).extend(items)


class LiveListVariable(Unread, ListVariable):
    """A list that existed before the frame."""

    __slots__ = ("look", "known", "appended")

    def describe(self) -> str:
        return "list"


class TupleVariable(Sequence):
    """A tuple, or an instance of a tuple subclass `cls` without attributes of its own
    (torch.Size, a namedtuple, torch's named results)."""

    __slots__ = ("cls",)
    python = tuple

    def __init__(self, items, source: Source | None = None, cls: type = tuple):
        super().__init__(items, source)
        self.cls = cls

    @property
    def type(self) -> type:
        return self.cls

    def constant(self):
        values = tuple(item.constant() for item in self.items)
        if self.cls is tuple:
            return values
        if hasattr(self.cls, "_fields"):
            return tuple.__new__(self.cls, values)
        if self.cls.__new__ is tuple.__new__:
            # `sys.version_info` is the only one of its class.
            raise NotConstant(self.describe())
        return self.cls(values)


class SliceVariable(Sequence):
    """A slice: start, stop, step."""

    __slots__ = ()
    python = slice

    def constant(self):
        return slice(*(item.constant() for item in self.items))


class DictVariable(Variable):
    """A dict. items: key -> (key variable, value variable), in order; the keys are the Python
    values (constants and objects known by identity).

    live: the dict itself where it existed before the frame. Such a dict is looked into key by
    key (`complete` is False) until something needs all of it. absent: keys known to be missing.
    changes: what was done to it since, in order: ("set", key), ("del", key, its variable),
    ("first" or "last", key, its variable) for what was moved there, ("clear", None).
    below: the keys in the order of the dict itself, where an OrderedDict that the frame made has
    moved some.
    owner: the object whose contents these are, for an instance of a subclass of dict.
    by_program: whether it came in with keys that code of the program compares, once that is known.
    """

    __slots__ = ("items", "live", "complete", "absent", "changes", "owner", "cls", "by_program",
                 "below")  # fmt: skip

    def __init__(self, items: dict | None = None, source: Source | None = None, live=None):
        super().__init__(source)
        self.items: dict = {} if items is None else items
        self.live = live
        self.complete = live is None
        self.absent: set = set()
        self.changes: list[tuple] = []
        self.below: dict | None = None
        self.owner: Variable | None = None
        self.cls: type = dict
        self.by_program: bool | None = None

    @property
    def type(self) -> type:
        return self.cls

    def constant(self):
        return {key: value.constant() for key, (_, value) in self.items.items()}

    def describe(self) -> str:
        return f"dict of {len(self.items)}"


class HashedToken:
    """Stands for an object as a key where code of the program computes its hash. steady: whether
    that is the same in every process. exact: whether `hash()` of the token is that hash, here."""

    __slots__ = ("steady", "exact")
    steady: bool
    exact: bool


# Their hashes are the same in every process; and those of which sets have tables, whose order is
# looked at.
_STEADY = frozenset((int, bool, float, complex))
_IN_TABLES = _STEADY | {str, bytes}


def is_steady(token: Any, kinds: frozenset = _STEADY) -> bool:
    """Whether what stands for a key has the same hash in every process."""
    kind = type(token)
    if kind in (tuple, frozenset):
        return all(is_steady(part, kinds) for part in token)
    if isinstance(token, HashedToken):
        return token.exact if kinds is _IN_TABLES else token.steady
    return kind in kinds and token == token


def is_of_contents(token: Any) -> bool:
    """Whether the hash of what stands for a key depends on what it holds alone, not on where it is
    in memory."""
    if type(token) in (tuple, frozenset):
        return all(map(is_of_contents, token))
    return token.exact if isinstance(token, HashedToken) else not isinstance(token, Variable)


def table_of(tokens: Iterable, cls: type) -> Any:
    """A set with these members, put into it one after the other, for its order; None where that of
    some depends on where they are in memory."""
    tokens = list(tokens)
    return cls(tokens) if all(is_steady(token, _IN_TABLES) for token in tokens) else None


class SetVariable(Variable):
    """A set or frozenset. items: value -> variable, in order of insertion.

    table: a set with the same history, for its order; None for one that came in, and where that
    is not known of some members. base: what it held when it was made.
    changes: what was done to it since, in order: ("add", members), ("discard", members), ("merge",
    members, set or dict) for what was added from one, ("difference", members), ("replace", members)
    for new contents.
    placed: whether it came in with members that are known by their places in its order.
    """

    __slots__ = ("items", "cls", "table", "base", "changes", "placed")

    def __init__(self, items: dict, source: Source | None = None, cls: type = set, table=None):
        super().__init__(source)
        self.items = items
        self.cls = cls
        self.table = table
        if table is None and source is None:
            self.table = table_of(items, cls)
        self.base = dict(items)
        self.placed = False
        self.changes: list[tuple] = []

    @property
    def type(self) -> type:
        return self.cls

    def constant(self):
        # Not a copy, which may have another order.
        return self.cls(self.items) if self.table is None else self.table


class RangeVariable(Variable):
    """A range, known entirely."""

    __slots__ = ("value",)

    def __init__(self, value: range, source: Source | None = None):
        super().__init__(source)
        self.value = value

    @property
    def type(self) -> type:
        return range

    def constant(self) -> range:
        return self.value

    @property
    def items(self) -> list[Variable]:
        return [Constant(i) for i in self.value]


class OpenRange(RangeVariable):
    """A range of whose bounds some are symbolic: as long as it is only iterated, and for few
    steps, nothing needs to know them.

    start, stop: as variables. step: as an int. fix: (variable) -> the number that it is from then
    on, guarded.
    """

    __slots__ = ("start", "stop", "step", "fix", "known")

    def __init__(self, start: Variable, stop: Variable, step: int, fix: Callable[[Variable], int]):
        Variable.__init__(self)
        self.start = start
        self.stop = stop
        self.step = step
        self.fix = fix
        self.known: range | None = None

    @property
    def value(self) -> range:  # type: ignore[override]
        if self.known is None:
            self.known = range(self.fix(self.start), self.fix(self.stop), self.step)
        return self.known


class ViewVariable(Variable):
    """`dict.keys()`, `.values()` or `.items()` of a dict."""

    __slots__ = ("of", "kind")

    def __init__(self, of: DictVariable, kind: str):
        super().__init__()
        self.of = of
        self.kind = kind

    @property
    def type(self) -> type:
        return type(getattr({}, self.kind)())


class CellVariable(Variable):
    """A closure cell. content: None while it is empty. live: the cell where it existed before."""

    __slots__ = ("content", "live")

    def __init__(self, content: Variable | None = None, source: Source | None = None, live=None):
        super().__init__(source)
        self.content = content
        self.live = live
