"""Objects of C from `functools`, `operator` and `itertools`: made, called and advanced by
polyfills, rebuilt as what they are."""

import bisect
import collections
import functools
import heapq
import inspect
import itertools
import operator
import os
import sys
from collections.abc import Iterable
from typing import Any

from ...package.reference import Import
from ...package.source import Attribute, Called, Item, Source
from ..body import BodyWriter, rebuilds
from ..iteration import advance, iterate
from ..live_dicts import dict_item
from ..operation import apply, call, call_method
from ..polyfills import bisection, callables, heaps, iterators
from ..signals import GraphBreak, Raised
from ..variables import (
    Constant,
    DictVariable,
    GeneratorVariable,
    ListVariable,
    LiveListVariable,
    ObjectVariable,
    TupleVariable,
    Variable,
)
from ..variables.library import (
    BuiltVariable,
    LibraryIterator,
    PartialVariable,
    PoolIterator,
)
from ..wrap import opaque, require_few, wraps
from .table import advances, calls, rule

NONE = Constant(None)
ONE = Constant(1)

# -- functools.partial ------------------------------------------------------------


@wraps(functools.partial)
def wrap_partial(t, value: functools.partial, source) -> Variable:
    t.guard("TYPE", source, Import("functools", "partial"))
    function = t.lazy(value.func, Attribute(source, "func"))
    args = t.realize(t.lazy(value.args, Attribute(source, "args")))
    keywords = t.realize(t.lazy(value.keywords, Attribute(source, "keywords")))
    t.complete(keywords)
    kwargs = {key: item for key, (_, item) in keywords.items.items()}
    variable = PartialVariable(functools.partial, function, args.items, kwargs, source, value)
    t.remember(value, variable)
    return variable


@rule(functools.partial)
def make_partial(t, function, /, *args, **kwargs):
    function = t.realize(function)
    if type(function) is PartialVariable:
        args = (*function.args, *args)
        kwargs = {**function.kwargs, **kwargs}
        function = function.function
    return t.new(PartialVariable(functools.partial, function, list(args), kwargs))


@calls(PartialVariable)
def call_partial(t, self, args, kwargs):
    return call(t, self.function, [*self.args, *args], {**self.kwargs, **kwargs})


@rule(getattr, PartialVariable)
def partial_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key in self.attributes:
        return self.attributes[key]
    if key == "func":
        return self.function
    if key == "args":
        return t.new(TupleVariable(self.args))
    if key == "keywords":
        items = {name: (Constant(name), value) for name, value in self.kwargs.items()}
        return t.new(DictVariable(items))
    if key == "__class__":
        return t.wrap_result(functools.partial)
    if any(key in vars(base) for base in functools.partial.__mro__):
        raise GraphBreak("attribute", f"partial.{key}")
    if self.source is not None:
        own = t.realize(t.lazy(self.live.__dict__, Attribute(self.source, "__dict__")))
        found = dict_item(t, own, key)
        if found is not None:
            return found
    if default is not None:
        return default
    t.raise_exception(AttributeError, f"'functools.partial' object has no attribute {key!r}")


@rule(setattr, PartialVariable)
def partial_setattr(t, self, name, value):
    if self.source is not None:
        raise GraphBreak("mutation", f"partial.{t.constant(name)}")
    t.effects.touch(self)
    self.attributes[t.constant(name)] = value
    return NONE


@rebuilds(PartialVariable)
def rebuild_partial(w: BodyWriter, v: PartialVariable) -> str:
    parts = [w.value(v.function), *map(w.value, v.args)]
    maker = w.ref(Import("functools", "partial"))
    made = w.bind("partial", f"{maker}({_call(w, parts, v.kwargs)})")
    w.known(v, made)
    for name, value in v.attributes.items():
        w.lines.append(f"setattr({made}, {name!r}, {w.value(value)})")
    return made


def _call(w: BodyWriter, args: list[str], kwargs: dict[str, Variable]) -> str:
    named = ", ".join(f"{name!r}: {w.value(value)}" for name, value in kwargs.items())
    return ", ".join([*args, *([f"**{{{named}}}"] if named else [])])


# -- objects that are called ------------------------------------------------------------


def _built(maker, polyfill, cls=None) -> None:
    @rule(maker)
    def make(t, *args, **kwargs):
        args = [t.realize(arg) for arg in args]
        if not args:
            return NotImplemented
        if maker is operator.attrgetter and not all(issubclass(arg.type, str) for arg in args):
            t.raise_exception(TypeError, "attribute name must be a string")
        if maker is operator.methodcaller and not issubclass(args[0].type, str):
            t.raise_exception(TypeError, "method name must be a string")
        return t.new(BuiltVariable(maker, cls or maker, args, kwargs, polyfill))


_GETTERS = {
    operator.itemgetter: callables.itemgetter, operator.attrgetter: callables.attrgetter,
    operator.methodcaller: callables.methodcaller,
}  # fmt: skip
for _maker, _polyfill in _GETTERS.items():
    _built(_maker, _polyfill)
_built(functools.cmp_to_key, callables.cmp_to_key, type(functools.cmp_to_key(len)))


@wraps(operator.itemgetter, operator.attrgetter, operator.methodcaller)
def _getter(t, value: Any, source: Source) -> Variable:
    """What it was made of is what it is copied by."""
    maker, args = value.__reduce__()
    if maker is not type(value):
        # A call of a method with keywords.
        return opaque(t, value, source)
    t.guard("TYPE", source, t.references.to(maker))
    found = t.realize(t.lazy(args, Item(Called(Attribute(source, "__reduce__")), 1)))
    variable = BuiltVariable(maker, maker, found.items, {}, _GETTERS[maker], source)
    t.remember(value, variable)
    return variable


@calls(BuiltVariable)
def call_built(t, self, args, kwargs):
    named = {name: (Constant(name), value) for name, value in self.kwargs.items()}
    made = [TupleVariable(self.args), DictVariable(named)]
    return t.inline_live(self.polyfill, [*made, *args], kwargs)


@rebuilds(BuiltVariable)
def rebuild_built(w: BodyWriter, v: BuiltVariable) -> str:
    maker = w.ref(w.t.references.to(v.maker))
    return w.bind(v.maker.__name__, f"{maker}({_call(w, list(map(w.value, v.args)), v.kwargs)})")


# -- iterators ------------------------------------------------------------


def _iterator(cls, polyfill) -> None:
    takes = inspect.signature(polyfill)

    @rule(cls)
    def make(t, *args, **kwargs):
        try:
            takes.bind(*args, **kwargs)
        except TypeError:
            _refuse_arguments(t, cls, len(args), kwargs)
        return make_iterator(t, cls, polyfill, list(args), kwargs)


def _refuse_arguments(t, maker, count: int, names: Iterable[str]) -> None:
    """Raises what C says to so many arguments, and those with these names."""
    try:
        maker(*((),) * count, **dict.fromkeys(names, ()))
    except TypeError as error:
        t.raise_exception(TypeError, *error.args)
    raise GraphBreak("bad_arguments", maker.__name__)


def make_iterator(t, cls: type, polyfill, args: list[Variable], kwargs: dict) -> LibraryIterator:
    """An iterator of a C class that a polyfill stands for."""
    inner = t.realize(t.inline_live(polyfill, args, kwargs))
    return t.new(LibraryIterator(cls, args, kwargs, inner))


for _name in ("chain", "islice", "count", "cycle", "repeat", "accumulate", "takewhile",
              "dropwhile", "starmap", "filterfalse", "compress", "pairwise", "zip_longest",
              "groupby"):  # fmt: skip
    _iterator(getattr(itertools, _name), getattr(iterators, _name))


# Iterators that read what they are given to its end when they are made. They give tuples of what
# was there in an order in which the values play no part.


@rule(itertools.product)
def product(t, *iterables, repeat=ONE):
    pools = [iterate(t, each) for each in iterables]
    times = t.constant(apply(t, operator.index, [repeat]))
    ranges = [range(len(pool)) for pool in pools]
    places = _native(t, itertools.product, *ranges, repeat=times)
    made = PoolIterator(pools * times, places)
    args = [t.new(TupleVariable(pool)) for pool in pools]
    return t.new(LibraryIterator(itertools.product, args, {"repeat": repeat}, t.new(made)))


def _over_one_pool(cls) -> None:
    @rule(cls)
    def make(t, iterable, r=None):
        pool = iterate(t, iterable)
        size = [] if r is None else [t.constant(r)]
        made = t.new(PoolIterator([pool], _native(t, cls, range(len(pool)), *size)))
        args = [t.new(TupleVariable(pool)), *([] if r is None else [r])]
        return t.new(LibraryIterator(cls, args, {}, made))


for _name in ("permutations", "combinations", "combinations_with_replacement"):
    _over_one_pool(getattr(itertools, _name))


def _native(t, function, *args, **kwargs):
    """What C makes of these plain arguments, whose errors are the program's."""
    try:
        return function(*args, **kwargs)
    except (TypeError, ValueError, OverflowError) as error:
        t.raise_exception(type(error), *error.args)


@advances(PoolIterator)
def advance_pools(t, self):
    row = next(self.places, None)
    if row is None:
        return None
    t.effects.count += 1
    self.count += 1
    require_few(self.count)
    pools = self.pools * len(row) if len(self.pools) == 1 else self.pools
    return t.new(TupleVariable(pool[place] for pool, place in zip(pools, row)))


@rule(itertools.chain.from_iterable)
def chain_from_iterable(t, iterable):
    made = make_iterator(t, itertools.chain, iterators.chain_from_iterable, [iterable], {})
    made.maker = "chain.from_iterable"
    return made


@rule(itertools.tee)
def tee(t, iterable, n=None):
    iterable = t.realize(iterable)
    if iterable.type is itertools._tee:
        return NotImplemented  # it is copied, as far as it has come
    return t.inline_live(iterators.tee, [iterable, *([] if n is None else [n])], {})


def _handed_out(cls, marker) -> None:
    """Iterators that others hand out, and that nothing else makes."""

    @rule(marker)
    def hand_out(t, inner):
        made = t.new(LibraryIterator(cls, [], {}, t.realize(inner)))
        made.started = True
        return made


_handed_out(itertools._tee, iterators.teed)
_handed_out(itertools._grouper, iterators.grouper)


def _chosen(function, polyfill) -> None:
    @rule(function)
    def chosen(t, n, iterable, key=NONE):
        return t.inline_live(polyfill, [n, iterable, key], {})


def _heap(function, polyfill) -> None:
    @rule(function)
    def on_heap(t, heap, *args):
        if type(heap) not in (ListVariable, LiveListVariable):
            return NotImplemented
        return t.inline_live(polyfill, [heap, *args], {})


def _bisection(function, polyfill) -> None:
    @rule(function)
    def bisected(t, *args, **kwargs):
        return t.inline_live(polyfill, list(args), kwargs)


for _name in ("bisect_left", "bisect_right", "insort_left", "insort_right"):
    _bisection(getattr(bisect, _name), getattr(bisection, _name))

for _function in (heapq.nsmallest, heapq.nlargest):
    _chosen(_function, getattr(heaps, _function.__name__))

for _name in ("heappush", "heappop", "heapreplace", "heappushpop", "heapify"):
    _heap(getattr(heapq, _name), getattr(heaps, _name))


@rule(os.fspath)
def fspath(t, path):
    if issubclass(path.type, str | bytes):
        return path
    if isinstance(path, ObjectVariable) and hasattr(path.type, "__fspath__"):
        return call_method(t, path, "__fspath__", on_class=True)
    if isinstance(path, Constant):
        told = f"expected str, bytes or os.PathLike object, not {path.type.__name__}"
        t.raise_exception(TypeError, told)
    return NotImplemented


@rule(sys.intern)
def intern(t, text):
    """The text is the same; that it is one object with others of its kind is for Python to see."""
    if text.type is not str:
        return NotImplemented
    return Constant(sys.intern(t.constant(text)))


@rule(collections._count_elements)
def count_elements(t, mapping, iterable):
    return t.inline_live(iterators.count_elements, [mapping, iterable], {})


@advances(LibraryIterator)
def advance_library(t, self):
    if not self.started:
        self.started, self.origin = True, t.step
    running = isinstance(self.inner, GeneratorVariable) and self.inner.running
    if self.over or running:
        raise GraphBreak("reconstruct", f"a {self.cls.__name__} that goes on", self.origin)
    try:
        item = advance(t, self.inner)
    except Raised:
        self.over = True
        raise
    self.over = item is None and self.cls not in _AT_END
    return item


# Iterators of C that do not ask for more once they have ended.
_AT_END = {
    itertools.chain, itertools.islice, itertools.repeat, itertools.takewhile, itertools.zip_longest,
    itertools.pairwise, itertools.product, itertools.permutations, itertools.combinations,
    itertools.combinations_with_replacement, reversed, type(iter(int, 0)),
}  # fmt: skip


@rebuilds(LibraryIterator)
def rebuild_iterator(w: BodyWriter, v: LibraryIterator) -> str:
    if v.started and v.cls is itertools.count and not v.inner.finished:
        # It goes on as one that begins at the next number.
        last, step = (w.value(v.inner.frame.locals[name]) for name in ("value", "step"))
        return w.bind("iterator", f"{w.ref(Import('itertools', 'count'))}({last} + {step}, {step})")
    if v.started or v.cls.__module__ != "itertools":
        raise GraphBreak("reconstruct", f"a {v.cls.__name__} that has started", v.origin)
    name, dot, method = v.maker.partition(".")
    maker = f"{w.ref(Import('itertools', name))}{dot}{method}"
    args = [w.value(_as_iterated(w, v, place, arg)) for place, arg in enumerate(v.args)]
    named = {name: _as_iterated(w, v, name, arg) for name, arg in v.kwargs.items()}
    return w.bind("iterator", f"{maker}({_call(w, args, named)})")


# Which arguments are made into iterators at once, and the names that a polyfill has for these.
_ITERATED: dict[type, dict[int | str, str]] = {
    itertools.islice: {0: "iterator"}, itertools.cycle: {0: "iterator"},
    itertools.accumulate: {0: "iterator", "iterable": "iterator"},
    itertools.takewhile: {1: "iterator"}, itertools.dropwhile: {1: "iterator"},
    itertools.filterfalse: {1: "iterator"}, itertools.starmap: {1: "iterator"},
    itertools.compress: {0: "data", 1: "selectors", "data": "data", "selectors": "selectors"},
    itertools.pairwise: {0: "iterator"}, itertools.groupby: {0: "iterator", "iterable": "iterator"},
}  # fmt: skip


def _as_iterated(w: BodyWriter, v: LibraryIterator, place: int | str, arg: Variable) -> Variable:
    """An argument of an iterator, or the iterator that was made of it: to ask an object for one
    again would run code of the program again, and what it goes through may have changed since."""
    arg = w.t.realize(arg)
    iterator = None
    if v.maker == "chain.from_iterable":
        iterator = v.inner.frame.locals["iterables"]
    elif v.cls is itertools.zip_longest and isinstance(place, int):
        iterator = v.inner.frame.locals["iterators"].items[place]
    elif place in _ITERATED.get(v.cls, ()):
        local = _ITERATED[v.cls][place]
        known = isinstance(v.inner, GeneratorVariable)
        iterator = v.inner.frame.locals[local] if known else v.inner.attributes[local]
    if iterator is None:
        return arg
    iterator = w.t.realize(iterator)
    if isinstance(iterator, ObjectVariable):
        raise GraphBreak("reconstruct", f"a {v.cls.__name__} over an object", v.origin)
    return iterator


def by_index(t, value: ObjectVariable) -> Variable:
    """`iter()` of an object that has only `__getitem__`."""
    cls = type(iter(_ByIndex()))
    inner = t.inline_live(iterators.by_index, [value], {})
    return t.new(LibraryIterator(cls, [value], {}, t.realize(inner)))


class _ByIndex:
    def __getitem__(self, index):
        raise IndexError


def until(t, function: Variable, sentinel: Variable) -> Variable:
    """`iter(function, sentinel)`."""
    cls = type(iter(int, 0))
    inner = t.inline_live(iterators.call_until, [function, sentinel], {})
    return t.new(LibraryIterator(cls, [function, sentinel], {}, t.realize(inner)))


def backwards(t, value: ObjectVariable) -> Variable:
    """`reversed()` of an object that has only `__len__` and `__getitem__`."""
    inner = t.inline_live(iterators.backwards, [value, apply(t, len, [value])], {})
    return t.new(LibraryIterator(reversed, [value], {}, t.realize(inner)))


