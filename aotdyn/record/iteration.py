"""Going through the values of an iterable: one by one, or all that are known at once."""

import operator
from collections.abc import Iterator

from .members import static_lookup
from .operation import apply, call_method, truth
from .rules.table import ADVANCE
from .signals import GraphBreak, Raised
from .special_methods import has_special
from .variables import (
    Constant,
    FixedIterator,
    IteratorVariable,
    ObjectVariable,
    ProxyVariable,
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


def is_iterable(t, value: Variable) -> bool:
    """Whether a value is of a type that can be iterated over, as far as C can see."""
    value = t.realize(value)
    names = ("__iter__", "__getitem__")
    return any(static_lookup(value.type, name)[1] is not None for name in names)


def iterate(
    t, value: Variable, limit: int | None = None, counted: bool = False
) -> list[Variable]:
    """The values of an iterable, at most `limit` of them where that is given. counted: as a list or
    tuple takes them that makes room for them."""
    value = t.realize(value)
    if isinstance(value, Sequence) and not isinstance(value, IteratorVariable):
        return list(value.items)
    iterator = _begin(t, value, counted)
    values: list[Variable] = []
    while limit is None or len(values) < limit:
        item = advance(t, iterator)
        if item is None:
            break
        values.append(item)
    return values


def chunks(t, value: Variable, counted: bool = False) -> Iterator[list[Variable]]:
    """The values of an iterable as a container takes them that is filled from it: all at once where
    they are known, one by one where code of the program may run in between. counted: as for
    `iterate`."""
    value = t.realize(value)
    if isinstance(value, Sequence) and not isinstance(value, IteratorVariable):
        yield list(value.items)
        return
    iterator = t.realize(_begin(t, value, counted))
    if isinstance(iterator, SequenceIterator | FixedIterator):
        yield iterate(t, iterator)
        return
    while (item := advance(t, iterator)) is not None:
        yield [item]


def _begin(t, value: Variable, counted: bool) -> Variable:
    """The iterator of an iterable. counted: an object is then asked how many values it has, or may
    have; nothing depends on the answer."""
    iterator = apply(t, iter, [value])
    if not counted or not isinstance(value, ObjectVariable | ProxyVariable):
        return iterator
    try:
        if isinstance(value, ProxyVariable) or has_special(t, value, "__len__"):
            apply(t, len, [value])
        elif has_special(t, value, "__length_hint__"):
            _ask_hint(t, value)
    except Raised as raised:
        if not issubclass(raised.value.type, TypeError):
            raise
    return iterator


def _ask_hint(t, value: ObjectVariable) -> None:
    found = t.realize(call_method(t, value, "__length_hint__", on_class=True))
    if found.type is int and truth(t, apply(t, operator.lt, [found, Constant(0)])):
        t.raise_exception(ValueError, "__length_hint__() should return >= 0")
    if found.type not in (int, type(NotImplemented)):
        raise GraphBreak("unknown_operation", f"a length of type {found.type.__name__}")


def each(t, value: Variable) -> Iterator[Variable]:
    """The values of an iterable, each taken only when it is asked for."""
    for chunk in chunks(t, value):
        yield from chunk
