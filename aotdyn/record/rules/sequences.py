"""Lists, tuples, ranges and slices."""

import contextlib
import ctypes
import operator
import sys

import torch

from ...package.arrays import SCALARS
from ..folding import comparable
from ..iteration import chunks, iterate
from ..operation import apply, call, is_none, truth
from ..signals import GraphBreak, NotConstant, Raised
from ..special_methods import has_special
from ..variables import (
    Constant,
    DictVariable,
    Known,
    ListVariable,
    LiveListVariable,
    ObjectVariable,
    OpenRange,
    RangeVariable,
    Sequence,
    SetVariable,
    SliceVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from ..wrap import require_few
from .table import rule

NONE = Constant(None)


@rule((len, list.__len__, tuple.__len__), Sequence)
def length(t, self):
    return Constant(len(self.items))


@rule(len, RangeVariable)
def range_length(t, self):
    try:
        return Constant(len(self.value))
    except OverflowError as error:
        t.raise_exception(OverflowError, *error.args)


_TYPED = (Constant, Symbolic, Known, ObjectVariable, Sequence, DictVariable, SetVariable,
          RangeVariable)  # fmt: skip


def _index(t, self: Variable, key: Variable):
    """A subscript as a Python int or slice."""
    key = t.realize(key)
    if isinstance(key, ObjectVariable) and has_special(t, key, "__index__"):
        key = t.realize(apply(t, operator.index, [key]))
    if isinstance(key, SliceVariable):
        return _slice(t, key)
    if isinstance(key, _TYPED) and not hasattr(key.type, "__index__"):
        t.raise_exception(
            TypeError,
            f"{self.type.__name__} indices must be integers or slices, not {key.type.__name__}",
        )
    index = operator.index(t.constant(key))
    if abs(index) > sys.maxsize:
        t.raise_exception(IndexError, "cannot fit 'int' into an index-sized integer")
    return index


def _slice(t, key: SliceVariable) -> slice:
    """A slice that sequences take: of numbers, with a step other than 0."""
    part = slice(*(t.constant(_bound(t, part)) for part in key.items))
    try:
        part.indices(0)
    except (TypeError, ValueError) as error:
        t.raise_exception(type(error), *error.args)
    return part


def _bound(t, part: Variable) -> Variable:
    """A bound of a slice, or how often a sequence is repeated, as a number."""
    part = t.realize(part)
    if isinstance(part, ObjectVariable) and has_special(t, part, "__index__"):
        return apply(t, operator.index, [part])
    return part


def _like(t, self: Sequence, items: list[Variable]) -> Variable:
    """A new sequence of the same kind; a named tuple gives a plain one."""
    if isinstance(self, ListVariable):
        return t.wrap_list(items)
    cls = torch.Size if getattr(self, "cls", tuple) is torch.Size else tuple
    return t.new(TupleVariable(items, cls=cls))


def _is_plain_tuple(value: Variable) -> bool:
    """Whether an operation that changes nothing about a sequence gives the sequence itself."""
    return isinstance(value, TupleVariable) and value.cls is tuple


@rule((operator.getitem, list.__getitem__), ListVariable)
@rule(operator.getitem, TupleVariable)
def getitem(t, self, key):
    if not isinstance(t.realize(key), Constant | Symbolic | SliceVariable | ObjectVariable):
        return NotImplemented
    index = _index(t, self, key)
    if isinstance(index, slice):
        items = self.items[index]
        whole = len(items) == len(self.items) and (index.step is None or index.step == 1)
        return self if whole and _is_plain_tuple(self) else _like(t, self, items)
    if not -len(self.items) <= index < len(self.items):
        t.raise_exception(IndexError, f"{self.type.__name__} index out of range")
    return self.items[index]


@rule(operator.getitem, Constant, after=True)
def text_slice(t, self, key):
    """A part of a text whose bounds are objects with `__index__`."""
    key = t.realize(key)
    if not isinstance(key, SliceVariable):
        return NotImplemented
    parts = [t.realize(part) for part in key.items]
    if not any(isinstance(part, ObjectVariable) for part in parts):
        return NotImplemented
    return apply(t, operator.getitem, [self, SliceVariable([_bound(t, part) for part in parts])])


@rule((operator.setitem, list.__setitem__), ListVariable)
def setitem(t, self, key, value):
    index = _index(t, self, key)
    if isinstance(index, slice):
        new = _assigned(t, value)
        items = list(self.items)
        try:
            items[index] = new
        except ValueError as error:
            t.raise_exception(ValueError, *error.args)
    elif -len(self.items) <= index < len(self.items):
        items = list(self.items)
        items[index] = value
    else:
        t.raise_exception(IndexError, "list assignment index out of range")
    t.effects.set_items(self, items)
    return NONE


def _assigned(t, value: Variable) -> list[Variable]:
    """What is assigned to a slice."""
    value = t.realize(value)
    if isinstance(value, Constant) and not hasattr(value.type, "__iter__"):
        t.raise_exception(TypeError, "can only assign an iterable")
    return iterate(t, value)


@rule((operator.delitem, list.__delitem__), ListVariable)
def delitem(t, self, key):
    index = _index(t, self, key)
    items = list(self.items)
    try:
        del items[index]
    except IndexError:
        t.raise_exception(IndexError, "list assignment index out of range")
    t.effects.set_items(self, items)
    return NONE


@rule(operator.add, ListVariable, TupleVariable)
def add(t, self, other):
    other = t.realize(other)
    if not isinstance(other, ListVariable if isinstance(self, ListVariable) else TupleVariable):
        return NotImplemented
    items = [*self.items, *other.items]
    if torch.Size in (self.type, other.type):
        return make_size(t, t.new(TupleVariable(items)))
    for part, rest in ((self, other), (other, self)):
        if not rest.items and _is_plain_tuple(part):
            return part
    return _like(t, self, items)


@rule((operator.iadd, list.__iadd__), LiveListVariable)
def iadd_live(t, self, other):
    extend_live(t, self, other)
    return self


@rule((operator.iadd, list.__iadd__), ListVariable)
def iadd(t, self, other):
    extend(t, self, other)
    return self


@rule(operator.iadd, TupleVariable)
def iadd_tuple(t, self, other):
    return apply(t, operator.add, [self, other])


@rule(operator.mul, ListVariable, TupleVariable)
def mul(t, self, count):
    count = _repetitions(t, count)
    if not isinstance(count, Constant | Symbolic):
        return NotImplemented
    items = _repeated(t, self, count)
    unchanged = len(items) == len(self.items) and _is_plain_tuple(self)
    return self if unchanged else _like(t, self, items)


def _repetitions(t, count: Variable) -> Variable:
    """How often a sequence is repeated; an object with a `__rmul__` decides what that means, which
    leaves it to the sequence where it is a whole number of NumPy."""
    count = t.realize(count)
    if isinstance(count, Constant) and type(count.value) in SCALARS:
        whole = hasattr(count.value, "__index__")
        return Constant(operator.index(count.value)) if whole else count
    return count if hasattr(count.type, "__rmul__") else _bound(t, count)


def _repeated(t, self: Sequence, count: Variable) -> list[Variable]:
    times = t.constant(count)
    if not isinstance(times, int):
        name = type(times).__name__
        t.raise_exception(TypeError, f"can't multiply sequence by non-int of type {name!r}")
    if times > sys.maxsize:
        t.raise_exception(OverflowError, "cannot fit 'int' into an index-sized integer")
    if len(self.items) * max(times, 0) * ctypes.sizeof(ctypes.c_void_p) > sys.maxsize:
        t.raise_exception(MemoryError)
    require_few(len(self.items) * times)
    return self.items * times


@rule(operator.imul, ListVariable)
def imul(t, self, count):
    t.effects.set_items(self, _repeated(t, self, _repetitions(t, count)))
    return self


@rule(operator.mul, Constant)
def mul_reversed(t, self, other):
    other = t.realize(other)
    count = _repetitions(t, self)
    if isinstance(other, ListVariable | TupleVariable) and count.type is int:
        return _like(t, other, _repeated(t, other, count))
    if isinstance(other, ObjectVariable) and self.type in (str, bytes):
        count = _repetitions(t, other)
        if count is not other:
            return apply(t, operator.mul, [self, count])
    return NotImplemented


def _compare_sequences(operation):
    @rule(operation, ListVariable, TupleVariable)
    def compare(t, self, other):
        other = t.realize(other)
        equality = operation in (operator.eq, operator.ne)
        same_kind = isinstance(other, ListVariable) == isinstance(self, ListVariable)
        if not isinstance(other, ListVariable | TupleVariable) or not same_kind:
            if equality and isinstance(other, Sequence | Constant):
                return Constant(operation is operator.ne)
            return NotImplemented
        if equality and len(self.items) != len(other.items):
            return Constant(operation is operator.ne)
        try:
            return Constant(operation(comparable(self), comparable(other)))
        except (NotConstant, TypeError, RecursionError):
            pass  # item by item, which also tells what cannot be compared
        position = 0
        # `__eq__` of an item may change the lists.
        while position < min(len(self.items), len(other.items)):
            left, right = t.realize(self.items[position]), t.realize(other.items[position])
            if not same_or_equal(t, left, right):
                break
            position += 1
        if position >= min(len(self.items), len(other.items)):
            return Constant(operation(len(self.items), len(other.items)))
        if equality:
            return Constant(operation is operator.ne)
        return apply(t, operation, [self.items[position], other.items[position]])


for _operation in (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
):  # fmt: skip
    _compare_sequences(_operation)


def same_or_equal(t, left: Variable, right: Variable) -> bool:
    """Whether a container takes two values for the same."""
    left, right = t.realize(left), t.realize(right)
    if left is right:
        return True
    if _is_nan(left) and _is_nan(right):
        return truth(t, apply(t, operator.is_, [left, right]))
    return truth(t, apply(t, operator.eq, [left, right]))


def _is_nan(value: Variable) -> bool:
    """Whether a value is a constant that does not equal itself."""
    return isinstance(value, Constant) and value.value != value.value


@rule((operator.contains, list.__contains__, tuple.__contains__), ListVariable, TupleVariable)
def contains(t, self, item):
    return Constant(find_item(t, self, item) is not None)


# -- methods ------------------------------------------------------------


@rule(list.append, LiveListVariable)
def append_live(t, self, item):
    t.effects.touch(self)
    self.append([item])
    return NONE


@rule(list.append, ListVariable)
def append(t, self, item):
    t.effects.touch(self)
    self.items.append(item)
    return NONE


@rule(list.extend, LiveListVariable)
def extend_live(t, self, items):
    for chunk in chunks(t, items, counted=True):
        t.effects.touch(self)
        self.append(chunk)
    return NONE


@rule(list.extend, ListVariable)
def extend(t, self, items):
    for chunk in chunks(t, items, counted=True):
        t.effects.touch(self)
        self.items.extend(chunk)
    return NONE


@rule(list.insert, ListVariable)
def insert(t, self, index, item):
    position = t.constant(apply(t, operator.index, [index]))
    t.effects.touch(self)
    self.items.insert(position, item)
    return NONE


@rule(list.pop, ListVariable)
def pop(t, self, index=None):
    position = -1 if index is None else t.constant(apply(t, operator.index, [index]))
    if not -len(self.items) <= position < len(self.items):
        t.raise_exception(IndexError, "pop index out of range" if self.items else
                          "pop from empty list")  # fmt: skip
    t.effects.touch(self)
    return self.items.pop(position)


@rule(list.remove, ListVariable)
def remove(t, self, item):
    position = find_item(t, self, item)
    if position is None:
        t.raise_exception(ValueError, "list.remove(x): x not in list")
    t.effects.touch(self)
    del self.items[position : position + 1]
    return NONE


@rule(list.clear, ListVariable)
def clear(t, self):
    t.effects.set_items(self, [])
    return NONE


@rule(list.reverse, ListVariable)
def reverse(t, self):
    t.effects.set_items(self, self.items[::-1])
    return NONE


@rule(list.copy, ListVariable)
def copy(t, self):
    return t.wrap_list(list(self.items))


def find_item(
    t, self: Sequence, item: Variable, start: int = 0, stop: int | None = None
) -> int | None:
    """The position of an item that equals the given one, None if there is none."""
    item = t.realize(item)
    for position in range(*slice(start, stop).indices(len(self.items))):
        if position >= len(self.items):
            # `__eq__` of an item has removed some.
            return None
        if same_or_equal(t, self.items[position], item):
            return position
    return None


def position_of(t, bound: Variable) -> int:
    """Where a search begins or ends."""
    bound = t.realize(bound)
    if not hasattr(bound.type, "__index__"):
        t.raise_exception(TypeError,
                          "slice indices must be integers or have an __index__ method")  # fmt: skip
    return t.constant(_bound(t, bound))


@rule((list.index, tuple.index), Sequence)
def index(t, self, item, start=None, stop=None):
    first = 0 if start is None else position_of(t, start)
    last = None if stop is None else position_of(t, stop)
    position = find_item(t, self, item, first, last)
    if position is None:
        if isinstance(self, TupleVariable):
            t.raise_exception(ValueError, "tuple.index(x): x not in tuple")
        t.raise_exception(ValueError, f"{t.constant(apply(t, repr, [item]))} is not in list")
    return Constant(position)


@rule((list.count, tuple.count), Sequence)
def count(t, self, item):
    item = t.realize(item)
    position = found = 0
    while position < len(self.items):
        found += same_or_equal(t, self.items[position], item)
        position += 1
    return Constant(found)


class _Sorted:
    """An item and its key while they are sorted."""

    __slots__ = ("t", "key", "item")

    def __init__(self, t, key: Variable, item: Variable):
        self.t = t
        self.key = key
        self.item = item

    def __lt__(self, other: "_Sorted") -> bool:
        with contextlib.suppress(NotConstant, TypeError, RecursionError):
            return _is_less(self.t, self.key, other.key)
        return truth(self.t, apply(self.t, operator.lt, [self.key, other.key]))


def _is_less(t, left: Variable, right: Variable) -> bool:
    """Whether one list or tuple is less than the other, by the first items that differ: others
    are not looked at. Raises NotConstant or TypeError where C alone does not decide that."""
    kinds = {left.type, right.type}
    if kinds not in ({list}, {tuple}) or not isinstance(left, Sequence):
        raise NotConstant(left.describe())
    for pair in zip(left.items, right.items):
        first, second = (comparable(t.realize(item)) for item in pair)
        if first != second:
            return first < second
    return len(left.items) < len(right.items)


def _sort_plainly(pairs: list[_Sorted], backwards: bool) -> bool:
    """Sorts by keys that are compared without code of the program; False for any other."""
    try:
        keys = {id(pair): comparable(pair.key) for pair in pairs}
        order = sorted(pairs, key=lambda pair: keys[id(pair)], reverse=backwards)
    except (NotConstant, TypeError, RecursionError):
        return False
    pairs[:] = order
    return True


class _Hidden(list):
    """What the program sees of a list that is being sorted. changed: it has put something there."""

    changed = False

    def append(self, item) -> None:
        self.changed = True
        super().append(item)

    def extend(self, items) -> None:
        self.changed = True
        super().extend(items)

    def insert(self, place, item) -> None:
        self.changed = True
        super().insert(place, item)


@rule(list.sort, ListVariable)
def sort(t, self, *, key=None, reverse=None):
    """Python's own sort, which asks for `<` in an order that the program can see. It sees an empty
    list meanwhile, and what has been sorted so far if a comparison raises."""
    backwards = reverse is not None and t.constant(apply(t, operator.index, [reverse])) != 0
    items = [t.realize(item) for item in self.items]
    hidden = _Hidden()
    t.effects.set_items(self, hidden)
    pairs: list[_Sorted] = []
    try:
        if key is None or is_none(t, key):
            pairs = [_Sorted(t, item, item) for item in items]
        else:
            pairs = [_Sorted(t, t.realize(call(t, key, [item])), item) for item in items]
        if not _sort_plainly(pairs, backwards):
            pairs.sort(reverse=backwards)
    except Raised:
        t.effects.set_items(self, [pair.item for pair in pairs] or items)
        raise
    changed = self.items is not hidden or hidden.changed
    t.effects.set_items(self, [pair.item for pair in pairs])
    if changed:
        t.raise_exception(ValueError, "list modified during sort")
    return NONE


# -- making ------------------------------------------------------------


@rule(list)
def make_list(t, self=None):
    return t.wrap_list([] if self is None else iterate(t, self, counted=True))


@rule(tuple)
def make_tuple(t, self=None):
    if isinstance(self, TupleVariable) and self.cls is tuple:
        return self
    return t.new(TupleVariable([] if self is None else iterate(t, self, counted=True)))


@rule(torch.Size)
def make_size(t, self=None):
    items = [] if self is None else list(map(t.realize, iterate(t, self, counted=True)))
    for index, item in enumerate(items):
        if isinstance(item, TensorVariable | ObjectVariable):
            raise GraphBreak("tensor_value", f"a size from {item.describe()}")
        if not issubclass(item.type, int):
            told = f"(item {index} is {item.type.__name__!r})"
            t.raise_exception(TypeError, f"torch.Size() takes an iterable of 'int' {told}")
    return t.new(TupleVariable(items, cls=torch.Size))


@rule(torch.Size.numel, TupleVariable)
def size_numel(t, self):
    total = Constant(1)
    for item in self.items:
        total = apply(t, operator.mul, [total, item])
    return total


@rule(slice)
def make_slice(t, *parts):
    given = list(parts)
    if not 1 <= len(given) <= 3:
        least = "at least 1 argument" if not given else "at most 3 arguments"
        t.raise_exception(TypeError, f"slice expected {least}, got {len(given)}")
    if len(given) == 1:
        given = [NONE, *given]
    return t.new(SliceVariable([*given, NONE][:3]))


@rule(slice.indices, SliceVariable)
def slice_indices(t, self, size):
    try:
        return t.wrap_result(t.constant(self).indices(t.constant(size)))
    except (TypeError, ValueError) as error:
        raise Raised(t.exception(type(error), *error.args)) from None


@rule(range)
def make_range(t, *parts):
    bounds = [_bound(t, part) for part in parts]
    opened = _open_range(t, bounds)
    if opened is not None:
        return opened
    values = [t.constant(bound) for bound in bounds]
    try:
        return RangeVariable(range(*values))
    except (TypeError, ValueError) as error:
        raise Raised(t.exception(type(error), *error.args)) from None


def _open_range(t, bounds: list[Variable]) -> OpenRange | None:
    """A range of ints of which some are symbolic, but not the step; None for any other."""
    if not 1 <= len(bounds) <= 3:
        return None
    given = bounds if len(bounds) > 1 else [Constant(0), *bounds]
    start, stop, step = [*given, Constant(1)][:3]
    numbers = (start, stop)
    is_open = any(isinstance(number, Symbolic) for number in numbers)
    if not is_open or not isinstance(step, Constant):
        return None
    if any(number.type is not int for number in numbers) or type(step.value) is not int:
        return None
    if not step.value or any(t.unbacked.depends_on_data(each.value) for each in numbers):
        return None
    return t.new(OpenRange(start, stop, step.value, t.constant))


@rule(operator.getitem, RangeVariable)
def range_getitem(t, self, key):
    index = _index(t, self, key)
    try:
        return t.wrap_result(self.value[index])
    except IndexError:
        t.raise_exception(IndexError, "range object index out of range")


@rule(operator.setitem, TupleVariable, RangeVariable)
def no_setitem(t, self, key, value):
    t.raise_exception(TypeError, f"{self.type.__name__!r} object does not support item assignment")


@rule(operator.contains, RangeVariable)
def range_contains(t, self, item):
    return Constant(t.constant(item) in self.value)
