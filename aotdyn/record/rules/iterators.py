"""Making and advancing iterators, and the builtins that consume them."""

import operator
import types
from collections import OrderedDict

import torch

from ..generators import (
    close_generator,
    exception_to_throw,
    step_generator,
    throw_into,
)
from ..iteration import advance
from ..operation import apply, call, call_method, truth
from ..signals import GraphBreak, Raised
from ..special_methods import has_special, is_refused
from ..variables import (
    BackwardsIterator,
    Constant,
    DictVariable,
    EnumerateVariable,
    FilterVariable,
    FixedIterator,
    GeneratorVariable,
    IteratorVariable,
    MapVariable,
    ObjectVariable,
    OpenRange,
    OwnItems,
    RangeVariable,
    Sequence,
    SequenceIterator,
    SetVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
    ViewVariable,
    ZipVariable,
)
from ..variables.containers import is_steady, table_of
from . import library
from .builtin_attributes import builtin_getattr
from .table import advances, rule

# -- iter() ------------------------------------------------------------


@rule((iter, list.__iter__, tuple.__iter__), Sequence, RangeVariable)
def iter_sequence(t, self):
    return t.new(SequenceIterator(self))


@rule(iter)
def iter_until(t, self, sentinel=None):
    return NotImplemented if sentinel is None else library.until(t, self, sentinel)


@rule(iter, IteratorVariable)
def iter_iterator(t, self):
    return self


@rule((iter, dict.__iter__), DictVariable)
def iter_dict(t, self):
    return iter_view(t, ViewVariable(self, "keys"), self)


@rule(iter, ViewVariable)
def iter_view(t, self, of=None):
    t.complete(self.of)
    made = t.new(FixedIterator(of or self, list(self.of.items), len(self.of.items)))
    made.view = self
    made.seen = len(self.of.changes)
    return made


@rule(iter, SetVariable)
def iter_set(t, self):
    """The order is that of the hash table. It is the same in every process for small ints; of
    strings, no program can rely on more than that it is the one of this process."""
    values = list(self.items)
    if self.source is None:
        is_known = self.table is not None or table_of(values, set) is not None
    else:
        is_known = self.placed or all(map(is_steady, values))
    if len(values) > 1 and not is_known:
        raise GraphBreak("hash", "the order of a set")
    if self.source is not None and len(values) > 1:
        # Equal sets may be iterated differently: it depends on what was in them before.
        if id(self) in t.effects.changed:
            raise GraphBreak("hash", "the order of a set that was changed")
        if not self.placed:
            t.guard("KEYS", self.source, tuple(values))
        ordered = list(self.items.values())
    else:
        order = values if self.table is None else self.table
        ordered = [self.items[value] for value in order]
    made = t.new(FixedIterator(self, ordered, len(ordered)))
    made.seen = len(self.changes)
    return made


@rule(iter, Constant)
def iter_constant(t, self):
    value = self.value
    if not isinstance(value, str | bytes):
        t.raise_exception(TypeError, f"{type(value).__name__!r} object is not iterable")
    return t.new(FixedIterator(self, [Constant(part) for part in value]))


@rule(iter, TensorVariable)
def iter_tensor(t, self):
    if self.fake.dim() == 0:
        t.raise_exception(TypeError, "iteration over a 0-d tensor")
    parts = t.graph.call(torch.Tensor.unbind, [self], {})
    return t.new(SequenceIterator(parts))


@rule(iter, ObjectVariable)
def iter_object(t, self, sentinel=None):
    if sentinel is not None:
        return library.until(t, self, sentinel)
    if has_special(t, self, "__iter__"):
        return t.realize(call_method(t, self, "__iter__", on_class=True))
    if has_special(t, self, "__getitem__") and not is_refused(t, self, "__iter__"):
        return library.by_index(t, self)
    t.raise_exception(TypeError, f"{self.cls.__name__!r} object is not iterable")


@rule(reversed, Sequence, RangeVariable)
def reversed_(t, self):
    return t.new(BackwardsIterator(self, _size(self) - 1))


def _size(of: Variable) -> int:
    return len(of.value) if isinstance(of, RangeVariable) else len(of.items)


@advances(BackwardsIterator)
def advance_backwards(t, self):
    index = self.index
    if not 0 <= index < _size(self.of):
        self.index = -1
        return None
    t.effects.count += 1
    self.index -= 1
    of = self.of
    return Constant(of.value[index]) if isinstance(of, RangeVariable) else of.items[index]


@rule(reversed, Constant)
def reversed_text(t, self):
    if self.type not in (str, bytes):
        return NotImplemented
    return reversed_(t, t.new(TupleVariable(map(Constant, self.value))))


@rule(reversed, ObjectVariable)
def reversed_object(t, self):
    if is_refused(t, self, "__reversed__"):
        t.raise_exception(TypeError, f"{self.cls.__name__!r} object is not reversible")
    if has_special(t, self, "__reversed__") or not has_special(t, self, "__getitem__"):
        return NotImplemented
    return library.backwards(t, self)


@rule(reversed, DictVariable)
def reversed_dict(t, self):
    return reversed_view(t, ViewVariable(self, "keys"), self)


@rule(reversed, ViewVariable)
def reversed_view(t, self, of=None):
    t.complete(self.of)
    keys = list(self.of.items)[::-1]
    made = t.new(FixedIterator(of or self, keys, len(keys), backwards=True))
    made.view = self
    made.seen = len(self.of.changes)
    return made


@rule(enumerate)
def make_enumerate(t, self, start=None):
    inner = apply(t, iter, [self])
    start = Constant(0) if start is None else t.realize(start)
    if not isinstance(start, Symbolic):
        start = apply(t, int, [apply(t, operator.index, [start])])
    return t.new(EnumerateVariable(inner, start))


@rule(zip)
def make_zip(t, *iterables, strict=None):
    inner = [apply(t, iter, [each]) for each in iterables]
    return t.new(ZipVariable(inner, strict is not None and truth(t, strict)))


@rule(map)
def make_map(t, function, *iterables):
    return t.new(MapVariable(function, [apply(t, iter, [each]) for each in iterables]))


@rule(filter)
def make_filter(t, function, iterable):
    return t.new(FilterVariable(function, apply(t, iter, [iterable])))


# -- advancing ------------------------------------------------------------


@advances(SequenceIterator)
def advance_sequence(t, self):
    if isinstance(self.of, OpenRange) and self.of.known is None and self.index < _OPEN_STEPS:
        return _advance_open(t, self, self.of)
    items = self.of.items if not isinstance(self.of, RangeVariable) else None
    size = len(self.of.value) if items is None else len(items)
    if self.exhausted or self.index >= size:
        self.exhausted = True
        return None
    t.effects.count += 1
    self.index += 1
    return Constant(self.of.value[self.index - 1]) if items is None else items[self.index - 1]


# So many steps of a loop are traced before the bounds of its range become constants: one that goes
# on is unrolled, for which they must be known.
_OPEN_STEPS = 4


def _advance_open(t, self: SequenceIterator, of: OpenRange) -> Variable | None:
    item = apply(t, operator.add, [of.start, Constant(self.index * of.step)])
    is_before = operator.lt if of.step > 0 else operator.gt
    if self.exhausted or not truth(t, apply(t, is_before, [item, of.stop])):
        self.exhausted = True
        return None
    t.effects.count += 1
    self.index += 1
    return item


@advances(FixedIterator)
def advance_fixed(t, self):
    source = self.of.of if isinstance(self.of, ViewVariable) else self.of
    if self.ended:
        return None
    is_table = isinstance(source, DictVariable | SetVariable) and self.size is not None
    if is_table and _is_ordered(source):
        # C asks no more of one whose items have all been given.
        is_table = self.index < len(self.values)
        if is_table and len(source.items) != self.size:
            raise GraphBreak("mutation", "an OrderedDict changes as it is iterated", self.origin)
    if is_table and len(source.items) != self.size:
        kind = "dictionary" if isinstance(source, DictVariable) else "Set"
        # It stays that way, whatever the size becomes.
        self.size = -2
        t.raise_exception(RuntimeError, f"{kind} changed size during iteration")
    if is_table:
        _require_unmoved(self, source)
    if self.index >= len(self.values):
        self.ended = True
        return None
    t.effects.count += 1
    self.index += 1
    value = self.values[self.index - 1]
    return value if self.view is None else _viewed(t, self, value)


def _is_ordered(table: DictVariable | SetVariable) -> bool:
    owner = table.owner if isinstance(table, DictVariable) else None
    return owner is not None and issubclass(owner.type, OrderedDict)


def _require_unmoved(self: FixedIterator, table: DictVariable | SetVariable) -> None:
    """Where the entries of a table are decides what its iterators see when others take the place
    of those that have been removed."""
    if isinstance(table, OwnItems):
        if [*table.items][:: -1 if self.backwards else 1] != self.values:
            raise GraphBreak("mutation", "attributes change as they are iterated", self.origin)
        return
    if isinstance(table, SetVariable):
        if self.seen != len(table.changes):
            raise GraphBreak("mutation", "a set changes as it is iterated", self.origin)
        return
    if any(change[0] != "set" for change in table.changes[self.seen :]):
        raise GraphBreak("mutation", "the keys of a dict change as it is iterated", self.origin)
    self.seen = len(table.changes)


def _viewed(t, self: FixedIterator, key) -> Variable:
    """What a view gives for a key, as the dict is now."""
    view = self.view
    row = view.of.items[key]
    if view.kind == "items":
        return t.new(TupleVariable(row))
    return row[view.kind == "values"]


@advances(EnumerateVariable)
def advance_enumerate(t, self):
    item = advance(t, self.inner)
    if item is None:
        return None
    count = self.count
    self.count = apply(t, operator.add, [count, Constant(1)])
    return t.new(TupleVariable([count, item]))


@advances(ZipVariable)
def advance_zip(t, self):
    items = []
    for position, inner in enumerate(self.inner):
        item = advance(t, inner)
        if item is None:
            if self.strict:
                _check_strict(t, self, position)
            return None
        items.append(item)
    return t.new(TupleVariable(items)) if items else None


def _check_strict(t, self: ZipVariable, position: int) -> None:
    """One iterator has ended: all the others must have ended too."""
    if position:
        t.raise_exception(ValueError, f"zip() argument {position + 1} is shorter than argument 1")
    for other, inner in enumerate(self.inner[1:], 2):
        if advance(t, inner) is not None:
            t.raise_exception(ValueError, f"zip() argument {other} is longer than argument 1")


@advances(MapVariable)
def advance_map(t, self):
    items = []
    for inner in self.inner:
        item = advance(t, inner)
        if item is None:
            return None
        items.append(item)
    return call(t, self.function, items)


@advances(FilterVariable)
def advance_filter(t, self):
    while True:
        item = advance(t, self.inner)
        if item is None:
            return None
        function = t.realize(self.function)
        keep = item
        if not (isinstance(function, Constant) and function.value is None):
            keep = call(t, function, [item])
        if truth(t, keep):
            return item


@advances(GeneratorVariable)
def advance_generator(t, self):
    t.effects.count += 1
    return step_generator(t, self, Constant(None))


# `__next__` of the iterators of C that have one of their own.
_NEXT = tuple(
    type(each).__next__
    for each in (iter([]), iter(()), iter(range(0)), iter({}), iter({}.values()), iter({}.items()),
                 iter(set()), iter(""), iter(b""), reversed([]), reversed({}), reversed(()),
                 reversed({}.values()), reversed({}.items()), enumerate(()), zip(),
                 map(len, ()), filter(None, ()), (_ for _ in ()))
)  # fmt: skip


@rule((next, *_NEXT), IteratorVariable)
def next_(t, self, default=None):
    item = advance(t, self)
    if item is not None:
        return item
    if default is not None:
        return default
    if isinstance(self, GeneratorVariable):
        _stop(t, self)
    t.raise_exception(StopIteration)


@rule(next, ObjectVariable)
def next_object(t, self, default=None):
    try:
        return call_method(t, self, "__next__", on_class=True)
    except Raised as raised:
        if default is None or not issubclass(raised.value.type, StopIteration):
            raise
        return default


@rule(types.GeneratorType.send, GeneratorVariable)
def send(t, self, value):
    t.effects.count += 1
    if not self.started and t.constant(value) is not None:
        t.raise_exception(TypeError, "can't send non-None value to a just-started generator")
    item = step_generator(t, self, value)
    if item is None:
        _stop(t, self)
    return item


def _stop(t, generator: GeneratorVariable):
    """The generator has returned: StopIteration with its value."""
    exception = t.exception(StopIteration)
    result = t.realize(generator.result)
    if not (isinstance(result, Constant) and result.value is None):
        exception.args = TupleVariable([result])
    raise Raised(exception)


@rule(types.GeneratorType.throw, GeneratorVariable)
def throw(t, self, kind, value=None, traceback=None):
    t.effects.count += 1
    item = throw_into(t, self, exception_to_throw(t, kind, value))
    if item is None:
        _stop(t, self)
    return item


@rule(types.GeneratorType.close, GeneratorVariable)
def close(t, self):
    t.effects.count += 1
    close_generator(t, self)
    return Constant(None)


@rule(getattr, GeneratorVariable)
def generator_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key in ("__name__", "__qualname__"):
        return Constant(getattr(self.function, key.strip("_")))
    if key.startswith("gi_"):
        raise GraphBreak("attribute", f"{key} of a generator")
    return builtin_getattr(t, self, name, default)
