"""Going through the values of an iterable: one by one, or all that are known at once."""

from collections.abc import Iterator

from .operation import apply, call_method
from .rules.table import ADVANCE
from .signals import GraphBreak, Raised
from .variables import (
    FixedIterator,
    IteratorVariable,
    ObjectVariable,
    Sequence,
    SequenceIterator,
    Variable,
)


def advance(t, iterator: Variable) -> Variable | None:
    """The next value of an iterator, or None when it is exhausted."""
    iterator = t.realize(iterator)
    rule = ADVANCE.get(type(iterator))
    if rule is not None:
        return rule(t, iterator)
    if isinstance(iterator, ObjectVariable):
        try:
            return call_method(t, iterator, "__next__", on_class=True)
        except Raised as raised:
            if issubclass(raised.value.type, StopIteration):
                return None
            raise
    raise GraphBreak("live_iterator", iterator.describe())


def iterate(t, value: Variable, limit: int | None = None) -> list[Variable]:
    """The values of an iterable, at most `limit` of them where that is given."""
    value = t.realize(value)
    if isinstance(value, Sequence) and not isinstance(value, IteratorVariable):
        return list(value.items)
    iterator = apply(t, iter, [value])
    values: list[Variable] = []
    while limit is None or len(values) < limit:
        item = advance(t, iterator)
        if item is None:
            break
        values.append(item)
    return values


def chunks(t, value: Variable) -> Iterator[list[Variable]]:
    """The values of an iterable as a container takes them that is filled from it: all at once where
    they are known, one by one where code of the program may run in between."""
    value = t.realize(value)
    if isinstance(value, Sequence) and not isinstance(value, IteratorVariable):
        yield list(value.items)
        return
    iterator = t.realize(apply(t, iter, [value]))
    if isinstance(iterator, SequenceIterator | FixedIterator):
        yield iterate(t, iterator)
        return
    while (item := advance(t, iterator)) is not None:
        yield [item]


def each(t, value: Variable) -> Iterator[Variable]:
    """The values of an iterable, each taken only when it is asked for."""
    for chunk in chunks(t, value):
        yield from chunk
