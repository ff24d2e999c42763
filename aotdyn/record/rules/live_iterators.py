"""Iterators of C that came into the frame, such as that of a loop in which the graph broke: what is
ahead of them is looked up without advancing them, the body advances them afterwards."""

import operator
from collections.abc import Iterator
from typing import Any

from ...package.iterators import OVER_SEQUENCES, OVER_TABLES, ahead, left, over
from ...package.source import Ahead, Attribute, Called, Item, Over, Source
from ..attributes import has_own_dict, own_dict_of, own_dict_source
from ..body import BodyWriter
from ..operation import apply
from ..signals import GraphBreak
from ..variables import (
    ITSELF,
    Constant,
    DictVariable,
    ListVariable,
    LiveEnumerate,
    LiveIterator,
    LiveZip,
    ObjectVariable,
    Opaque,
    SetVariable,
    TupleVariable,
    Variable,
)
from ..wrap import wraps
from ..write_back import EFFECTS
from .table import advances

_RANGES = type(iter(range(0)))
_OVER_LISTS = (type(iter([])), type(reversed([])))

# -- what comes in ------------------------------------------------------------


@wraps(*OVER_SEQUENCES, *OVER_TABLES, enumerate, zip)
def wrap_iterator(t, value: Any, source: Source) -> Variable:
    t.guard("TYPE", source, t.references.to(type(value)))
    # How much is left decides how far a trace goes: where that has differed too often each step
    # is one of its own.
    if t.entry.crowded or not _is_followed(value):
        return Opaque(value, source)
    if type(value) in OVER_TABLES:
        t.guard("LEFT_MOST", source, _MOST)
    made = _WRAPPED.get(type(value), LiveIterator)(*_wrapped(t, value, source))
    t.remember(value, made)
    return made


_WRAPPED: dict[type, type[LiveIterator]] = {enumerate: LiveEnumerate, zip: LiveZip}


def _is_followed(value: Any) -> bool:
    """Whether an iterator, and all within it, is over sequences and small tables."""
    kind = type(value)
    if kind is enumerate:
        return _is_followed(value.__reduce__()[1][0])
    if kind is zip:
        return all(map(_is_followed, value.__reduce__()[1]))
    if kind in OVER_TABLES:
        return value.__length_hint__() <= _MOST
    return kind in OVER_SEQUENCES


# To look ahead in a table takes as long as all that is left of it.
_MOST = 64


def _wrapped(t, value: Any, source: Source) -> Iterator[Any]:
    """What the variable of an iterator is made of."""
    yield from (value, source)
    kind = type(value)
    if kind not in _WRAPPED:
        return
    _, parts, *more = value.__reduce__()
    inside = _parts(source)
    if kind is enumerate:
        yield t.realize(t.lazy(parts[0], Item(inside, 0)))
        yield t.lazy(parts[1], Item(inside, 1))
    else:
        t.guard("LENGTH", Called(Attribute(source, "__reduce__")), 2 + len(more))
        t.guard("LENGTH", inside, len(parts))
        yield [t.realize(t.lazy(each, Item(inside, i))) for i, each in enumerate(parts)]
        yield bool(more)


def _parts(source: Source) -> Source:
    """What an iterator is around, as its `__reduce__` tells."""
    return Item(Called(Attribute(source, "__reduce__")), 1)


# -- advancing ------------------------------------------------------------


@advances(LiveIterator, LiveEnumerate, LiveZip)
def advance_live(t, self):
    if self.driver in (None, ITSELF):
        self.steps += 1
    return _next(t, self, self)


def _next(t, self: LiveIterator, driver: LiveIterator) -> Variable | None:
    """The next value. Raises GraphBreak where an iterator is advanced both by itself and by the
    one around it."""
    known = ITSELF if driver is self else driver
    if self.driver not in (None, known):
        raise GraphBreak("live_iterator", f"{self.describe()}, advanced from two sides")
    self.driver = known
    t.effects.touch(self)
    return _NEXT[type(self)](t, self)


def _next_of_sequence(t, self: LiveIterator) -> Variable | None:
    if self.ended:
        return None
    _require_unchanged(t, self)
    index = self.taken
    history = t.shapes.history
    if index and history.length_differs(self.source):
        # One step serves every length.
        raise GraphBreak("live_iterator", f"a {self.describe()} of which more or less is left")
    is_table = type(self.live) in OVER_TABLES
    remains, ends = ("TABLE_LEFT", "TABLE_ENDS") if is_table else ("LEFT", "ENDS")
    count = left(self.live) if is_table else self.live.__length_hint__()
    if count < 0:
        raise GraphBreak("live_iterator", f"a {self.describe()} over what was changed")
    if count <= index:
        history.note_length(self.source, index)
        t.guard_more(ends, self.source, index, (remains, index))
        self.ended = True
        return None
    self.taken += 1
    t.guard_more(remains, self.source, self.taken, (remains, index))
    if type(self.live) is not _RANGES or not index:
        return t.lazy(ahead(self.live, index), Ahead(self.source, index))
    first = t.lazy(ahead(self.live, 0), Ahead(self.source, 0))
    step = over(self.live).step
    t.guard("EQUALS", Attribute(Over(self.source), "step"), step)
    return apply(t, operator.add, [first, Constant(index * step)])


def _require_unchanged(t, self: LiveIterator) -> None:
    """What the frame has done to a list or a table is not in it yet when the next values are looked
    up.

    Raises GraphBreak for an iterator over such a one; guards that it is over no other.
    """
    table = type(self.live) in OVER_TABLES
    if not table and type(self.live) not in _OVER_LISTS:
        return
    what = over(self.live)
    for changed in list(t.effects.changed.values()):
        source = changed.source
        if table and isinstance(changed, ObjectVariable) and has_own_dict(changed.cls):
            is_over = own_dict_of(changed) is what
            source = own_dict_source(changed)
        elif isinstance(changed, ListVariable | DictVariable | SetVariable):
            known = t.remembered_as(what)
            is_over = changed in (known, getattr(known, "contents", None))
        else:
            continue
        if is_over:
            raise GraphBreak("live_iterator", f"{self.describe()} over what was changed")
        t.guard("DISTINCT", source, Over(self.source))


def _next_of_enumerate(t, self: LiveEnumerate) -> Variable | None:
    item = _next(t, self.inner, self)
    if item is None:
        return None
    count = self.count
    self.count = apply(t, operator.add, [count, Constant(1)])
    return t.new(TupleVariable([count, item]))


def _next_of_zip(t, self: LiveZip) -> Variable | None:
    items = []
    for inner in self.inner:
        item = _next(t, inner, self)
        if item is None:
            _require_same_length(t, self, len(items))
            return None
        items.append(item)
    return t.new(TupleVariable(items)) if items else None


def _require_same_length(t, self: LiveZip, position: int) -> None:
    """Raises GraphBreak where a strict `zip` would raise: the body could not advance it."""
    if not self.strict:
        return
    others = self.inner[position + 1 :]
    if position or any(_next(t, inner, self) is not None for inner in others):
        raise GraphBreak("live_iterator", "a strict zip of different lengths")


_NEXT = {
    LiveIterator: _next_of_sequence,
    LiveEnumerate: _next_of_enumerate,
    LiveZip: _next_of_zip,
}


def _iterator_effect(w: BodyWriter, v: LiveIterator, target: str) -> list[str]:
    """Advances the iterator itself; those within it go with it."""
    step = f"next({target}, None)"
    if v.driver is not ITSELF:
        return []
    return [step if v.steps == 1 else f"for _ in range({v.steps}): {step}"]


EFFECTS.update(dict.fromkeys(_NEXT, _iterator_effect))
