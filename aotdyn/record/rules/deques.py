"""`collections.deque`: its methods are those of a list, with an end to grow beyond."""

import operator
from collections import deque
from typing import NoReturn

from ...package.reference import Import
from ...package.source import Attribute, Item
from ..body import BodyWriter, rebuilds
from ..iteration import chunks, iterate
from ..operation import apply
from ..signals import GraphBreak
from ..variables import Constant, SequenceIterator, SliceVariable, Variable
from ..variables.sequences import DequeVariable, LiveDequeVariable
from ..wrap import wraps
from ..write_back import EFFECTS
from .builtin_attributes import builtin_getattr
from .sequences import find_item, position_of
from .table import advances, rule

NONE = Constant(None)


@wraps(deque)
def _wrap(t, value: deque, source) -> Variable:
    t.guard("TYPE", source, Import("collections", "deque"))
    t.guard("EQUALS", Attribute(source, "maxlen"), value.maxlen)

    def look() -> list[Variable]:
        t.guard("LENGTH", source, len(value))
        return [t.lazy(item, Item(source, index)) for index, item in enumerate(value)]

    variable: Variable
    if value.maxlen is None:
        variable = LiveDequeVariable(look, source)
    else:
        variable = DequeVariable(look(), value.maxlen, source)
    t.remember(value, variable)
    return variable


@rebuilds(DequeVariable)
def _rebuild(w: BodyWriter, v: DequeVariable) -> str:
    name = w.bind("queue", f"{w.ref(Import('collections', 'deque'))}((), {v.maxlen})")
    w.known(v, name)
    w.lines.append(f"{name}.extend([{', '.join(map(w.value, v.items))}])")
    return name


def _effect(w: BodyWriter, v: DequeVariable, target: str) -> list[str]:
    if isinstance(v, LiveDequeVariable) and v.look is not None:
        return [f"{target}.extend(({''.join(f'{w.value(item)}, ' for item in v.appended)}))"]
    items = list(map(w.value, v.items))
    if not v.moves:
        return [f"{target}[{index}] = {item}" for index, item in enumerate(items)]
    if not items:
        # Iterators end, even where it has been empty before.
        return [f"{target}.append(None)", f"{target}.clear()"]
    return [f"{target}.clear()", f"{target}.extend([{', '.join(items)}])"]


EFFECTS[DequeVariable] = EFFECTS[LiveDequeVariable] = _effect


@rule(deque)
def make(t, self=None, maxlen=None):
    limit = None if maxlen is None else t.constant(maxlen)
    if limit is not None and not isinstance(limit, int):
        t.raise_exception(TypeError, "an integer is required")
    if limit is not None and limit < 0:
        t.raise_exception(ValueError, "maxlen must be non-negative")
    items = [] if self is None else iterate(t, self)
    return t.new(DequeVariable(_bounded(items, limit), limit))


def _bounded(items: list[Variable], limit: int | None, left: bool = False) -> list[Variable]:
    if limit is None or len(items) <= limit:
        return items
    return items[:limit] if left else items[len(items) - limit :]


def _set(t, self: DequeVariable, items: list[Variable], left: bool = False) -> Constant:
    t.effects.set_items(self, _bounded(items, self.maxlen, left))
    self.moves += 1
    return NONE


@rule(deque.append, LiveDequeVariable)
def append_live(t, self, item):
    t.effects.touch(self)
    self.moves += 1
    self.append([item])
    return NONE


@rule(deque.extend, LiveDequeVariable)
def extend_live(t, self, items):
    for chunk in chunks(t, items):
        t.effects.touch(self)
        self.moves += len(chunk)
        self.append(chunk)
    return NONE


@rule(deque.append, DequeVariable)
def append(t, self, item):
    return _set(t, self, [*self.items, item])


@rule(deque.appendleft, DequeVariable)
def appendleft(t, self, item):
    return _set(t, self, [item, *self.items], left=True)


@rule(deque.extend, DequeVariable)
def extend(t, self, items):
    for chunk in chunks(t, items):
        if chunk and self.maxlen != 0:
            _set(t, self, [*self.items, *chunk])
    return NONE


@rule(deque.extendleft, DequeVariable)
def extendleft(t, self, items):
    for chunk in chunks(t, items):
        if chunk and self.maxlen != 0:
            _set(t, self, [*reversed(chunk), *self.items], left=True)
    return NONE


@rule((operator.add, deque.__add__), DequeVariable)
def add(t, self, other):
    other = t.realize(other)
    if not isinstance(other, DequeVariable):
        return NotImplemented
    items = _bounded([*self.items, *other.items], self.maxlen)
    return t.new(DequeVariable(items, self.maxlen))


@rule((operator.mul, deque.__mul__, deque.__rmul__), DequeVariable)
def mul(t, self, count):
    count = t.realize(count)
    if not isinstance(count, Constant) or not isinstance(count.value, int):
        return NotImplemented
    items = _bounded(list(self.items) * count.value, self.maxlen)
    return t.new(DequeVariable(items, self.maxlen))


@rule((operator.imul, deque.__imul__), DequeVariable)
def imul(t, self, count):
    times, size = t.constant(apply(t, operator.index, [count])), len(self.items)
    if self.maxlen is not None and size > 1 and times * size > self.maxlen:
        # Not more often than fills it.
        times = -(-self.maxlen // size)
    if size and times != 1:
        _set(t, self, list(self.items) * times)
    return self


@rule((operator.iadd, deque.__iadd__), DequeVariable)
def iadd(t, self, items):
    apply(t, deque.extend, [self, items])
    return self


def _pop(method, index: int) -> None:
    @rule(method, DequeVariable)
    def pop(t, self):
        if not self.items:
            t.raise_exception(IndexError, "pop from an empty deque")
        items = list(self.items)
        item = items.pop(index)
        _set(t, self, items)
        return item


_pop(deque.pop, -1)
_pop(deque.popleft, 0)


@rule(deque.clear, DequeVariable)
def clear(t, self):
    return _set(t, self, []) if self.items else NONE


@rule(deque.reverse, DequeVariable)
def reverse(t, self):
    t.effects.set_items(self, self.items[::-1])
    return NONE


@rule(deque.rotate, DequeVariable)
def rotate(t, self, steps=None):
    count = 1 if steps is None else t.constant(apply(t, operator.index, [steps]))
    if len(self.items) > 1:
        count %= len(self.items)
        _set(t, self, [*self.items[len(self.items) - count :],
                       *self.items[: len(self.items) - count]])  # fmt: skip
    return NONE


@rule(deque.insert, DequeVariable)
def insert(t, self, index, item):
    if self.maxlen is not None and len(self.items) >= self.maxlen:
        t.raise_exception(IndexError, "deque already at its maximum size")
    items = list(self.items)
    items.insert(t.constant(apply(t, operator.index, [index])), item)
    return _set(t, self, items)


@rule(deque.remove, DequeVariable)
def remove(t, self, item):
    before, size = self.items, len(self.items)
    position = find_item(t, self, item)
    if self.items is not before or len(before) != size:
        t.raise_exception(IndexError, "deque mutated during remove().")
    if position is None:
        raise GraphBreak("exception", "deque.remove(x): x not in deque")
    return _set(t, self, self.items[:position] + self.items[position + 1 :])


@rule(deque.count, DequeVariable)
def count(t, self, item):
    before, size = self.items, len(self.items)
    found = apply(t, list.count, [t.wrap_list(list(self.items)), item])
    if self.items is not before or len(before) != size:
        _refuse_mutated(t)
    return found


def _search(t, self: DequeVariable, item: Variable, *bounds: int) -> int | None:
    """As `find_item`; a comparison that finds nothing must not change the deque."""
    before, size = self.items, len(self.items)
    position = find_item(t, self, item, *bounds)
    if position is None and (self.items is not before or len(before) != size):
        _refuse_mutated(t)
    return position


def _refuse_mutated(t) -> NoReturn:
    t.raise_exception(RuntimeError, "deque mutated during iteration")



@rule(deque.index, DequeVariable)
def index(t, self, item, *bounds):
    position = _search(t, self, item, *(position_of(t, bound) for bound in bounds))
    if position is None:
        raise GraphBreak("exception", "an item that is not in the deque")
    return Constant(position)


@rule((deque.copy, deque.__copy__), DequeVariable)
def copy(t, self):
    return t.new(DequeVariable(list(self.items), self.maxlen))


@rule(getattr, DequeVariable)
def get(t, self, name, default=None):
    if t.constant(name) == "maxlen":
        return Constant(self.maxlen)
    return builtin_getattr(t, self, name, default)


@rule((operator.getitem, deque.__getitem__), DequeVariable)
def getitem(t, self, key):
    return self.items[_place(t, self, key)]


def _place(t, self: DequeVariable, key: Variable) -> int:
    key = t.realize(key)
    if isinstance(key, SliceVariable):
        t.raise_exception(TypeError, "sequence index must be integer, not 'slice'")
    position = t.constant(apply(t, operator.index, [key]))
    if not -len(self.items) <= position < len(self.items):
        t.raise_exception(IndexError, "deque index out of range")
    return position


@rule((operator.setitem, deque.__setitem__), DequeVariable)
def setitem(t, self, key, value):
    position, items = _place(t, self, key), list(self.items)
    items[position] = value
    t.effects.set_items(self, items)
    return NONE


@rule((operator.delitem, deque.__delitem__), DequeVariable)
def delitem(t, self, key):
    position, items = _place(t, self, key), list(self.items)
    del items[position]
    return _set(t, self, items)


@rule(operator.contains, DequeVariable)
def contains(t, self, item):
    return Constant(_search(t, self, item) is not None)


def _compare(operation) -> None:
    @rule(operation, DequeVariable)
    def compare(t, self, other):
        other = t.realize(other)
        if not isinstance(other, DequeVariable):
            return NotImplemented
        return apply(t, operation, [t.wrap_list(list(self.items)), t.wrap_list(list(other.items))])


for _operation in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
    _compare(_operation)


class DequeIterator(SequenceIterator):
    """Over a deque whose items must stay in their places meanwhile. moves: the deque's, when it
    was made."""

    __slots__ = ("moves",)


@rule(iter, DequeVariable)
def iterator(t, self):
    made = t.new(DequeIterator(self))
    made.moves = self.moves
    return made


@advances(DequeIterator)
def advance(t, self):
    if self.of.moves != self.moves:
        _refuse_mutated(t)
    if self.index >= len(self.of.items):
        self.exhausted = True
        return None
    t.effects.count += 1
    self.index += 1
    return self.of.items[self.index - 1]


@rebuilds(DequeIterator)
def _rebuild_iterator(w: BodyWriter, v: DequeIterator) -> str:
    if v.of.moves != v.moves:
        raise GraphBreak("reconstruct", "an iterator of a deque that has changed", v.origin)
    name = w.bind("iterator", f"iter({w.value(v.of)})")
    if v.index or v.exhausted:
        w.lines.append(f"for _ in range({v.index + v.exhausted}): next({name}, None)")
    return name
