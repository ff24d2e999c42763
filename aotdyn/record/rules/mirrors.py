"""Objects of C that hold nothing but plain data: what the program does to one is done to a mirror
of it while tracing; the body makes, or changes, one that is equal then."""

import array
import io
import operator
import random
from types import FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

from ...package.interruptions import require_own
from ...package.lifetimes import has_view
from ...package.reference import Import
from ...package.source import Attribute, Called, Source
from ..body import BodyWriter, rebuilds
from ..folding import plain
from ..invoke import CONSTRUCTORS
from ..iteration import iterate
from ..members import C_MEMBERS, static_lookup
from ..signals import GraphBreak, NotConstant, Raised
from ..variables import (
    Constant,
    ListVariable,
    RangeVariable,
    Sequence,
    SequenceIterator,
    Variable,
    Varying,
)
from ..variables.mirrors import MIRRORED, MirrorVariable
from ..wrap import opaque, wraps
from ..write_back import EFFECTS
from .builtin_attributes import builtin_getattr
from .table import advances, rule

NONE = Constant(None)

# The names of the methods that only look.
_LOOKS = {
    bytearray: set(dir(bytes)) | {"copy", "__alloc__"},
    memoryview: set(dir(memoryview)) - {"__setitem__", "__delitem__", "release", "__enter__",
                                        "__exit__"},
    array.array: {"buffer_info", "count", "index", "tobytes", "tolist", "tounicode",
                  "__getitem__", "__len__", "__contains__", "__add__", "__mul__", "__rmul__",
                  "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__copy__",
                  "__deepcopy__"},
    io.StringIO: {"getvalue", "tell", "readable", "writable", "seekable"},
    io.BytesIO: {"getvalue", "tell", "readable", "writable", "seekable"},
    random.Random: {"getstate"},
}  # fmt: skip
# What the body does not know how to follow: where it is in memory, another object over it.
_REFUSED = {"getbuffer", "buffer_info", "fromfile", "tofile", "readinto", "readinto1", "detach"}

_OPERATORS = {
    "__setitem__": operator.setitem, "__delitem__": operator.delitem, "__iadd__": operator.iadd,
    "__imul__": operator.imul, "__getitem__": operator.getitem, "__len__": len,
    "__contains__": operator.contains,
}  # fmt: skip
_C_METHODS = (MethodDescriptorType, WrapperDescriptorType)


def _methods(cls: type) -> dict[str, Any]:
    """The methods of a class and its bases, by name; of two under a name the one that counts."""
    found: dict[str, Any] = {}
    for base in cls.__mro__[:-1]:
        for name, held in vars(base).items():
            if isinstance(held, (*_C_METHODS, FunctionType)):
                found.setdefault(name, held)
    return {name: held for name, held in found.items() if name not in _BY_OTHERS}


_BY_OTHERS = {"__init__", "__new__", "__getattribute__", "__setattr__", "__delattr__", "__iter__",
              "__hash__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
              "__class_getitem__", "shuffle", "choice", "sample"}  # fmt: skip


# -- what is done to one ------------------------------------------------------------


def _perform(t, operation: Any, name: str, self: MirrorVariable, args, kwargs) -> Any:
    """Does an operation to the mirror. NotImplemented where something about it is not known."""
    kind = self.type
    if name in _REFUSED:
        raise GraphBreak("unknown_call", f"{kind.__qualname__}.{name}")
    try:
        values, named = _given(t, args, kwargs, kind)
    except NotConstant:
        return NotImplemented
    if name not in _LOOKS[kind]:
        t.effects.touch(self.memory)
    size = _size(self.value)
    try:
        result = operation(self.value, *values, **named)
    except BufferError:
        # A view that has gone in the program may still be known here.
        raise GraphBreak("unknown_call", f"{kind.__qualname__}.{name} below a view") from None
    except Exception as error:
        require_own(error)
        raise Raised(t.exception(type(error), *error.args)) from None
    if name not in _LOOKS[kind] and (kind is io.BytesIO or _size(self.value) != size):
        _rely_on_no_view(t, self, name)
    if result is self.value:
        return self
    if type(result) is memoryview:
        return _view(t, self, name, values, result)
    return t.wrap_result(result)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, bytearray | array.array) else 0


def _rely_on_no_view(t, self: MirrorVariable, name: str) -> None:
    """What came in is resized, which it cannot be as long as somebody has a view of it."""
    if self.source is None:
        return
    if has_view(t.live_of(self)):
        raise GraphBreak("unknown_call", f"{self.type.__qualname__}.{name} below a view")
    t.guard("NO_VIEW", self.source)


def _given(t, args, kwargs: dict, kind: type) -> tuple[list, dict]:
    """Arguments as plain values."""
    values = [_plain(t, arg, kind) for arg in args]
    return values, {name: plain(t.realize(arg)) for name, arg in kwargs.items()}


def _plain(t, value: Variable, kind: type) -> Any:
    """An argument as a plain value; numbers that are given one by one as a list."""
    value = t.specialize(t.deep(value))
    try:
        return plain(value)
    except NotConstant:
        if kind not in (bytearray, array.array) or value.type is list:
            raise
        return [plain(t.specialize(t.realize(item))) for item in iterate(t, value)]


def _register(cls: type) -> None:
    for name, method in _methods(cls).items():
        _rule(method, name, cls)
    for name, operation in _OPERATORS.items():
        if hasattr(cls, name):
            _rule(operation, name, cls)


def _rule(operation: Any, name: str, cls: type) -> None:
    def perform(t, self, *args, **kwargs):
        if not isinstance(self.value, cls):
            return NotImplemented
        return _perform(t, operation, name, self, args, kwargs)

    rule(operation, MirrorVariable, after=True)(perform)


for _cls in MIRRORED:
    _register(_cls)


@rule(getattr, MirrorVariable)
def mirror_getattr(t, self, name, default=None):
    held, _ = static_lookup(self.type, t.constant(name))
    if isinstance(held, C_MEMBERS):
        return t.wrap_result(getattr(self.value, t.constant(name)))
    return builtin_getattr(t, self, name, default)


def _view(t, self: MirrorVariable, name: str, args: list, made: memoryview) -> Variable:
    """A view that a view gives."""
    if name == "__getitem__":
        text = f"[{args[0].start}:{args[0].stop}:{args[0].step}]"
    else:
        text = f".{name}({', '.join(map(repr, args))})"
    return t.new(MirrorVariable(made, None, (f"{{}}{text}", (self,))))


@rule(random.Random.shuffle, MirrorVariable)
def shuffle(t, self, items):
    """Which items go where does not depend on what they are."""
    items = t.realize(items)
    if not isinstance(items, ListVariable):
        return NotImplemented
    t.effects.touch(self)
    order = [*range(len(items.items))]
    self.value.shuffle(order)
    t.effects.set_items(items, [items.items[index] for index in order])
    return NONE


@rule(random.Random.choice, MirrorVariable)
def choice(t, self, items):
    items = t.realize(items)
    if not isinstance(items, Sequence | RangeVariable) or not items.items:
        return NotImplemented
    t.effects.touch(self)
    return items.items[self.value.choice(range(len(items.items)))]


@rule(random.Random.sample, MirrorVariable)
def sample(t, self, population, k):
    items, count = t.realize(population), t.constant(k)
    if not isinstance(items, Sequence | RangeVariable) or not 0 <= count <= len(items.items):
        return NotImplemented
    t.effects.touch(self)
    chosen = self.value.sample(range(len(items.items)), count)
    return t.wrap_list([items.items[index] for index in chosen])


# -- making one ------------------------------------------------------------


def _maker(cls: type) -> None:
    def make(t, cls, args, kwargs):
        try:
            values, named = _given(t, args, kwargs, cls)
        except NotConstant:
            raise GraphBreak("builtin_call", cls.__qualname__) from None
        if cls is random.Random and (not args or values[0] is None):
            raise GraphBreak("random", "a generator with a seed of its own")
        try:
            made = cls(*values, **named)
        except Exception as error:
            require_own(error)
            raise Raised(t.exception(type(error), *error.args)) from None
        view = ("memoryview({})", tuple(map(t.realize, args))) if cls is memoryview else None
        return t.new(MirrorVariable(made, None, view))

    CONSTRUCTORS[cls] = make


for _cls in MIRRORED:
    _maker(_cls)


@rebuilds(MirrorVariable)
def _rebuild(w: BodyWriter, v: MirrorVariable) -> str:
    kind = v.type
    if v.made is not None:
        text, parts = v.made
        return w.bind("view", text.format(*map(w.value, parts)))
    cls = w.ref(Import(kind.__module__.lstrip("_"), kind.__qualname__))
    if kind is bytearray:
        return w.bind("data", f"{cls}({bytes(v.value)!r})")
    if kind is array.array:
        return w.bind("data", f"{cls}({v.value.typecode!r}, {v.value.tobytes()!r})")
    name = w.bind(kind.__name__.lower(), f"{cls}()")
    w.lines.append(_set_state(w, v, name))
    return name


def _set_state(w: BodyWriter, v: MirrorVariable, target: str) -> str:
    if v.type is random.Random:
        return f"{target}.setstate({w.literal(v.value.getstate())})"
    if v.value.closed:
        return f"{target}.close()"
    return f"{target}.__setstate__({w.literal(v.value.__getstate__())})"


def _effect(w: BodyWriter, v: MirrorVariable, target: str) -> list[str]:
    if v.type is bytearray:
        return [f"{target}[:] = {bytes(v.value)!r}"]
    if v.type is array.array:
        again = f"{w.ref(Import('array', 'array'))}({v.value.typecode!r}, {v.value.tobytes()!r})"
        return [f"{target}[:] = {again}"]
    return [_set_state(w, v, target)]


EFFECTS[MirrorVariable] = _effect


# -- what came in ------------------------------------------------------------


def _came_in(t, value: Any, mirror: Any, source: Source, facts: dict[Source, Any]) -> Variable:
    """facts: what a call of it, or an attribute, must give again."""
    t.guard("TYPE", source, t.references.to(type(value)))
    seen = tuple(facts.values())
    if t.shapes.history.differs(source, seen) and t.shapes.crowded:
        return Varying(value, source)
    for at, fact in facts.items():
        t.guard("EQUALS", at, fact)
    variable = MirrorVariable(mirror, source)
    t.remember(value, variable)
    return variable


def _told(source: Source, method: str) -> Source:
    return Called(Attribute(source, method))


@wraps(bytearray)
def _bytearray(t, value: bytearray, source: Source) -> Variable:
    return _came_in(t, value, bytearray(value), source, {_told(source, "hex"): value.hex()})


@wraps(array.array)
def _array(t, value: array.array, source: Source) -> Variable:
    facts = {Attribute(source, "typecode"): value.typecode,
             _told(source, "tobytes"): value.tobytes()}  # fmt: skip
    return _came_in(t, value, value[:], source, facts)


@wraps(io.StringIO, io.BytesIO)
def _memory_file(t, value: Any, source: Source) -> Variable:
    if value.closed:
        return opaque(t, value, source)
    state = value.__getstate__()
    if state[-1]:
        # It has attributes of its own.
        return opaque(t, value, source)
    mirror = type(value)()
    mirror.__setstate__(state)
    return _came_in(t, value, mirror, source, {_told(source, "__getstate__"): state})


# -- going through one ------------------------------------------------------------


@rule(iter, MirrorVariable)
def iterate_mirror(t, self):
    """A file in memory is its own iterator; what else is gone through must stay as it is."""
    if isinstance(self.value, io.IOBase):
        return self
    if not isinstance(self.value, bytearray | memoryview | array.array):
        return NotImplemented
    return t.new(SequenceIterator(self))


@advances(MirrorVariable)
def next_line(t, self):
    if not isinstance(self.value, io.IOBase):
        raise GraphBreak("live_iterator", self.describe())
    t.effects.touch(self)
    line = next(self.value, None)
    return None if line is None else Constant(line)
