"""What `copy` asks of values: how objects are taken apart, and copies of tensors."""

import copyreg
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import torch

from ...package.reference import Import
from ...package.source import Attribute, Bound, Called, Source
from ..attributes import has_own_dict
from ..hazards import storage_of
from ..iteration import iterate
from ..live_dicts import dict_item
from ..members import static_lookup
from ..operation import apply, call_method
from ..signals import GraphBreak, Raised
from ..variables import (
    Constant,
    DictVariable,
    ExceptionVariable,
    InstanceDict,
    Known,
    ListVariable,
    MappingObject,
    ObjectVariable,
    SetVariable,
    TensorVariable,
    TupleVariable,
    Variable,
)
from ..variables.sequences import DequeVariable, SequenceObject
from .instance_dicts import snapshot
from .table import rule

NONE = Constant(None)

# -- objects ------------------------------------------------------------


@rule(object.__reduce_ex__, ObjectVariable, SetVariable, DequeVariable, TupleVariable)
def reduce_ex(t, self, protocol):
    """How `copy` takes a value apart: what makes it, state, items."""
    cls = self.type
    for name in ("__reduce__", "__getnewargs_ex__", "__getnewargs__", "__getstate__"):
        t.classes.lookup(cls, name)
    if cls.__reduce__ is not object.__reduce__:
        return call_method(t, self, "__reduce__")
    number = t.constant(protocol)
    if not isinstance(number, int):
        return NotImplemented
    if number < 2 or hasattr(cls, "__getnewargs_ex__"):
        raise GraphBreak("unknown_operation", f"{cls.__qualname__}.__reduce_ex__")
    given = []
    if hasattr(cls, "__getnewargs__"):
        told = t.realize(call_method(t, self, "__getnewargs__"))
        if not issubclass(told.type, tuple):
            name = told.type.__name__
            t.raise_exception(TypeError, f"__getnewargs__ should return a tuple, not {name!r}")
        given = iterate(t, told)
    items = pairs = NONE
    if isinstance(self, SequenceObject) and self.base is list:
        items = apply(t, iter, [self])
    if isinstance(self, MappingObject):
        pairs = apply(t, iter, [call_method(t, self, "items")])
    make = t.lazy(copyreg.__newobj__, Bound(Import("copyreg", "__newobj__")))
    args = t.new(TupleVariable([_class(t, cls), *given]))
    return t.new(TupleVariable([make, args, _state(t, self), items, pairs]))


def _class(t, cls: type) -> Known:
    return Known(cls, Bound(t.references.to(cls)))


def _taken_apart(t, self: Variable, args: list[Variable], *more: Variable) -> TupleVariable:
    """A class, what it is called with, and more."""
    return t.new(TupleVariable([_class(t, self.type), t.new(TupleVariable(args)), *more]))


def _state(t, self: Variable) -> Variable:
    cls = self.type
    if not isinstance(static_lookup(cls, "__getstate__")[0], types.MethodDescriptorType):
        return call_method(t, self, "__getstate__")
    if not isinstance(self, ObjectVariable):
        return NONE
    state: Variable = NONE
    if has_own_dict(cls):
        own = snapshot(t, InstanceDict(self))
        state = own if own.items else NONE
    slots = {}
    names = copyreg._slotnames(cls)  # type: ignore[attr-defined]
    if type(names) is not list or any(type(name) is not str for name in names):
        # What the program has put in the place of those that are looked for once.
        raise GraphBreak("attribute", f"{cls.__qualname__}.__slotnames__")
    for name in names:
        value = _slot(t, self, name)
        if value is not None:
            slots[name] = (Constant(name), value)
    return t.new(TupleVariable([state, t.new(DictVariable(slots))])) if slots else state


def _slot(t, self: ObjectVariable, name: str) -> Variable | None:
    """What a slot holds, None if that is nothing."""
    try:
        return apply(t, getattr, [self, Constant(name)])
    except Raised as raised:
        if not issubclass(raised.value.type, AttributeError):
            raise
        return None


@rule((set.__reduce__, frozenset.__reduce__), SetVariable)
def reduce_set(t, self):
    order = self.items if self.table is None else self.table
    items = t.new(ListVariable([self.items[token] for token in order]))
    return _taken_apart(t, self, [items], NONE)


@rule(deque.__reduce__, DequeVariable)
def reduce_deque(t, self):
    args = [] if self.maxlen is None else [t.new(TupleVariable([])), Constant(self.maxlen)]
    return _taken_apart(t, self, args, NONE, apply(t, iter, [self]))


@rule(OrderedDict.__reduce__, MappingObject)
def reduce_ordered(t, self):
    pairs = apply(t, iter, [call_method(t, self, "items")])
    return _taken_apart(t, self, [], _state(t, self), NONE, pairs)


@rule(defaultdict.__reduce__, MappingObject)
def reduce_defaultdict(t, self):
    factory = t.realize(apply(t, getattr, [self, Constant("default_factory")]))
    missing = isinstance(factory, Constant) and factory.value is None
    pairs = apply(t, iter, [call_method(t, self, "items")])
    return _taken_apart(t, self, [] if missing else [factory], NONE, NONE, pairs)


@rule(types.SimpleNamespace.__reduce__, ObjectVariable)
def reduce_namespace(t, self):
    return _taken_apart(t, self, [], snapshot(t, InstanceDict(self)))


@rule(BaseException.__reduce__, ExceptionVariable)
def reduce_exception(t, self):
    args = t.realize(self.args)
    own = snapshot(t, InstanceDict(self))
    return t.new(TupleVariable([_class(t, self.cls), args, *([own] if own.items else [])]))


@rule(object.__reduce_ex__, Constant)
def reduce_constant(t, self, protocol):
    """Some constants name themselves, or their class and what it is called with."""
    found: Any = self.value.__reduce_ex__(t.constant(protocol))
    if isinstance(found, str):
        return Constant(found)
    if isinstance(found, tuple) and len(found) == 2 and found[0] is type(self.value):
        return _taken_apart(t, self, [t.wrap_result(arg) for arg in found[1]])
    return NotImplemented


# -- tensors ------------------------------------------------------------


@rule(torch.Tensor.__deepcopy__, TensorVariable)
def deepcopy_tensor(t, self, memo):
    """A tensor that is all of its storage is cloned; `memo` knows that the storage was copied."""
    mapping = t.realize(memo)
    if not isinstance(mapping, DictVariable) or self.cls is not torch.Tensor:
        raise GraphBreak("autograd", f"a deep copy of a {self.cls.__qualname__}")
    if self.fake.requires_grad or not _is_whole(self.fake) or _carries_more(t, self):
        raise GraphBreak("autograd", "a deep copy of a view, or of what has a gradient")
    known = dict_item(t, mapping, _STORAGES)
    if known is None:
        known = t.new(DictVariable())
        apply(t, dict.__setitem__, [mapping, Constant(_STORAGES), known])
    storage = _storage_key(self)
    if storage.value in known.items:
        raise GraphBreak("autograd", "deep copies of tensors that share memory")
    _require_own_memory(t, self, known)
    made = t.graph.call(torch.Tensor.clone, [self], {})
    # Nothing outside of the trace can go on with this.
    apply(t, dict.__setitem__, [known, storage, t.unmodelled("storage")])
    return made


_STORAGES = "torch"


def _storage_key(self: TensorVariable) -> Constant:
    """What stands for a tensor's storage in the memo: not its number, which no `id()` is told
    apart from."""
    return Constant(f"storage {storage_of(self.fake)}")


def _require_own_memory(t, self: TensorVariable, copied: DictVariable) -> None:
    """A tensor that came in shares no memory with those whose storages were copied before."""
    if self.live is None:
        return
    for other in t.tensors:
        if other is self or _storage_key(other).value not in copied.items:
            continue
        if other.live.untyped_storage().data_ptr() == self.live.untyped_storage().data_ptr():
            raise GraphBreak("autograd", "deep copies of tensors that share memory")
        t.guard("SHAPE", None, ("{0} != {1}", (_address(self.source), _address(other.source))))


def _address(tensor: Source) -> Source:
    """Where the memory of a tensor begins."""
    return Called(Attribute(Called(Attribute(tensor, "untyped_storage")), "data_ptr"))


def _is_whole(fake: torch.Tensor) -> bool:
    """Whether a tensor is dense and all of its storage, for certain."""
    if not all(type(part) is int for part in (*fake.shape, *fake.stride())):
        return False
    expected = 1
    for stride, size in sorted(zip(fake.stride(), fake.shape)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return fake.untyped_storage().nbytes() == expected * fake.element_size()


def _carries_more(t, self: TensorVariable) -> bool:
    """Whether there are attributes of the program on the tensor, or a gradient."""
    live = self.live
    if live is None:
        return False
    if live.__dict__ or live.grad is not None:
        return True
    t.guard("EMPTY", Attribute(self.source, "__dict__"))
    t.guard("EQUALS", Attribute(self.source, "grad"), None)
    return live.untyped_storage().nbytes() != live.numel() * live.element_size()
