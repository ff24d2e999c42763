"""`id()` and weak references."""

import _weakrefset
import operator
import weakref
from collections.abc import Iterator
from typing import Any

from ...package.reference import Import
from ...package.source import Local, Referent
from ..attributes import has_own_dict, own_dict_of
from ..body import BodyWriter, rebuilds
from ..invoke import CONSTRUCTORS, WATCHED
from ..keys import SPECIAL_KEYS, key_of
from ..signals import GraphBreak, SkipFrame
from ..variables import (
    Constant,
    DictVariable,
    IdentityVariable,
    Lazy,
    MadeReference,
    ObjectVariable,
    SetVariable,
    TensorVariable,
    Variable,
)
from ..variables.containers import Unread
from ..wrap import wraps
from .builtins import identical
from .table import calls, rule

NONE = Constant(None)


# -- id() ------------------------------------------------------------


@rule(id)
def id_(t, self):
    return t.new(IdentityVariable(self))


@rebuilds(IdentityVariable)
def _identity(w: BodyWriter, v: IdentityVariable) -> str:
    if isinstance(v.of, Constant | Lazy):
        raise GraphBreak("reconstruct", "the id() of a constant", v.origin)
    return w.bind("identity", f"id({w.value(v.of)})")


def _compare(operation, wanted: bool) -> None:
    @rule(operation, IdentityVariable)
    def compare(t, self, other):
        other = t.realize(other)
        if not isinstance(other, IdentityVariable):
            return NotImplemented
        same = identical(t, self.of, other.of)
        # What the frame makes may have gone, and its place be that of another one.
        stay = all(each.of.source is not None for each in (self, other))
        return Constant(same is wanted) if same or same is False and stay else NotImplemented


_compare(operator.eq, True)
_compare(operator.ne, False)


# -- weak references ------------------------------------------------------------


class WeakReference(Variable):
    """A weak reference that came in."""

    __slots__ = ("live",)

    def __init__(self, live, source):
        super().__init__(source)
        self.live = live

    @property
    def type(self) -> type:
        return type(self.live)


@wraps(weakref.ref, weakref.KeyedRef)
def _weak_reference(t, value: weakref.ref, source) -> Variable:
    """One of a `WeakValueDictionary` is of a class of its own."""
    t.guard("TYPE", source, Import("weakref", type(value).__name__.replace("ReferenceType", "ref")))
    variable = WeakReference(value, source)
    t.remember(value, variable)
    return variable


@calls(WeakReference)
def _dereference(t, self: WeakReference, args, kwargs) -> Variable:
    if self.live() is not None and not _is_in_use(t, self.live()):
        _require_held(t)
    return t.lazy(self.live(), Referent(self.source))


def _require_held(t) -> None:
    """Raises GraphBreak, or SkipFrame, where objects that the frame has let go of may be gone by
    now, of which weak references and tables of them tell."""
    effects = t.effects
    if _has_let_go(t):
        # A part of the frame would hold what it was given.
        raise SkipFrame("lifetimes", "a weak reference, after a variable was set anew")
    if effects.globals or effects.members or any(map(_lets_go, effects.changed.values())):
        # The object may be gone; that is seen when the changes are made.
        raise GraphBreak("unknown_call", "a weak reference, after objects were let go")


WATCHED.update({id(vars(module)): _require_held for module in (weakref, _weakrefset)})


def _is_in_use(t, value: Any) -> bool:
    """Whether a variable of a frame holds an object, which keeps it alive whatever else is let
    go."""
    known, frame = t.remembered_as(value), t.frame
    while known is not None and frame is not None:
        held = (each.known if type(each) is Lazy else each for each in frame.locals.values())
        if any(each is known for each in held):
            return True
        frame = frame.caller
    return False


def _has_let_go(t) -> bool:
    """Whether a local variable that held something when the frame was entered does not any more,
    or something has gone from its stack, and no frame holds that."""
    frame, request = t.root, t.entry
    named = zip(frame.code.co_varnames, request.params, request.values)
    held = {id(each) for each in _held_by_frames(t)}
    return any(_is_held(each.value) and id(each) not in held for each in t.on_stack) or any(
        _is_held(value) and getattr(frame.locals.get(name), "source", None) != Local(param)
        for name, param, value in named
        if name not in frame.code.co_cellvars
        and not (request.point and name in request.point.unbound)
    )


def _held_by_frames(t) -> Iterator[Variable]:
    frame = t.frame
    while frame is not None:
        yield from frame.stack
        yield from frame.locals.values()
        frame = frame.caller


def _lets_go(variable: Variable) -> bool:
    """Whether what the frame has done to an object that came in may have taken the last reference
    from another one."""
    if isinstance(variable, Unread):
        return variable.look is None
    if isinstance(variable, DictVariable):
        kinds = {change[0] for change in variable.changes}
        replaced = any(_is_held(variable.live.get(change[1])) for change in variable.changes)
        return "clear" in kinds or replaced
    if isinstance(variable, SetVariable):
        members = [change[1].values() for change in variable.changes if change[0] != "add"]
        return any(member.source is not None for each in members for member in each)
    if type(variable) is ObjectVariable and has_own_dict(variable.cls):
        own = own_dict_of(variable)
        return any(
            _is_held(own[name]) if name in own else hasattr(variable.cls, name)
            for name in variable.attributes
        )
    return True


def _is_held(value: Any) -> bool:
    """Whether a value may be, or hold, an object that somebody refers to weakly."""
    return type(value) not in (type(None), bool, int, float, str)


def _make_weak_reference(t, cls, args, kwargs) -> Variable:
    """`weakref.ref(object)`: the same one each time for the same object."""
    of = t.realize(args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(of, ObjectVariable | TensorVariable) or not of.type.__weakrefoffset__:
        raise GraphBreak("builtin_call", "weakref.ref")
    found = t.weak_references.get(id(of))
    if found is None:
        found = t.weak_references[id(of)] = t.new(MadeReference(of))
    return found


CONSTRUCTORS[weakref.ref] = _make_weak_reference


@calls(MadeReference)
def _dereference_made(t, self: MadeReference, args, kwargs) -> Variable:
    """Whether an object is still there is for the frame itself to know, from where it has referred
    to it; unless a variable holds it now."""
    frame = t.frame
    while frame is not None:
        if any(value is self.of for value in (*frame.locals.values(), *frame.stack)):
            return self.of
        frame = frame.caller
    raise GraphBreak("unknown_call", "a weak reference that the frame has made", self.origin)


def _as_key(t, value: Variable) -> Any:
    """A weak reference has the hash of what it refers to, and equals another one to an equal."""
    of = t.realize(value.of if isinstance(value, MadeReference) else _dereference(t, value, [], {}))
    if isinstance(of, Constant):
        # What is gone has no hash any more.
        raise GraphBreak("hash", value.describe())
    return weakref.ref, key_of(t, of)


SPECIAL_KEYS.update({WeakReference: _as_key, MadeReference: _as_key})


@rule(operator.is_, MadeReference, WeakReference)
def is_weak_reference(t, self, other):
    other = t.realize(other)
    if other is self or not issubclass(other.type, weakref.ref):
        return Constant(other is self)
    raise GraphBreak("unknown_operation", "the identity of weak references")


@rebuilds(MadeReference)
def _rebuild_reference(w: BodyWriter, v: MadeReference) -> str:
    return w.bind("reference", f"{w.ref(Import('weakref', 'ref'))}({w.value(v.of)})")


@rule(bool, WeakReference, MadeReference)
def bool_weak_reference(t, self):
    return Constant(True)
