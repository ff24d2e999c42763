"""Building and unpacking containers, and the instructions of pattern matching."""

import collections.abc
import operator
from typing import Any

from ..iteration import is_iterable, iterate
from ..keys import key_of
from ..operation import apply, call_method, truth
from ..polyfills.matching import keys_of
from ..signals import Raised
from ..variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    Known,
    ListVariable,
    ObjectVariable,
    SetVariable,
    TupleVariable,
    Variable,
)
from .calls import name_of_called
from .table import opcode


@opcode
def BUILD_TUPLE(t, frame, ins):
    frame.push(t.new(TupleVariable(frame.pop_many(ins.arg))))


@opcode
def BUILD_LIST(t, frame, ins):
    frame.push(t.new(ListVariable(frame.pop_many(ins.arg))))


@opcode
def BUILD_SET(t, frame, ins):
    items: dict = {}
    for item in frame.pop_many(ins.arg):
        items.setdefault(key_of(t, item), item)
    frame.push(t.new(SetVariable(items)))


@opcode
def BUILD_MAP(t, frame, ins):
    flat = frame.pop_many(2 * ins.arg)
    frame.push(_new_dict(t, flat[::2], flat[1::2]))


def _new_dict(t, keys: list[Variable], values: list[Variable]) -> DictVariable:
    """A dict in which of equal keys the first one stays."""
    result = t.new(DictVariable())
    for key, value in zip(keys, values, strict=True):
        apply(t, operator.setitem, [result, key, value])
    return result


@opcode
def BUILD_CONST_KEY_MAP(t, frame, ins):
    keys = frame.pop().items
    frame.push(_new_dict(t, keys, frame.pop_many(ins.arg)))


@opcode
def LIST_APPEND(t, frame, ins):
    item = frame.pop()
    apply(t, list.append, [frame.stack[-ins.arg], item])


@opcode
def LIST_EXTEND(t, frame, ins):
    items = frame.pop()
    if not is_iterable(t, items):
        kind = t.realize(items).type.__name__
        t.raise_exception(TypeError, f"Value after * must be an iterable, not {kind}")
    apply(t, list.extend, [frame.stack[-ins.arg], items])


@opcode
def SET_ADD(t, frame, ins):
    item = frame.pop()
    apply(t, set.add, [frame.stack[-ins.arg], item])


@opcode
def SET_UPDATE(t, frame, ins):
    items = frame.pop()
    apply(t, set.update, [frame.stack[-ins.arg], items])


@opcode
def MAP_ADD(t, frame, ins):
    key, value = frame.pop_many(2)
    apply(t, operator.setitem, [frame.stack[-ins.arg], key, value])


@opcode
def DICT_UPDATE(t, frame, ins):
    other = frame.pop()
    if not _is_mapping(t, other):
        kind = t.realize(other).type.__name__
        t.raise_exception(TypeError, f"{kind!r} object is not a mapping")
    apply(t, dict.update, [frame.stack[-ins.arg], other])


@opcode
def DICT_MERGE(t, frame, ins):
    """As DICT_UPDATE, for `**kwargs` of a call: a key that is there already is an error."""
    other = frame.pop()
    target = t.realize(frame.stack[-ins.arg])
    function = frame.stack[-ins.arg - 2]
    if not _is_mapping(t, other):
        told = f"argument after ** must be a mapping, not {t.realize(other).type.__name__}"
        t.raise_exception(TypeError, f"{name_of_called(t, function)} {told}")
    keys = iterate(t, call_method(t, other, "keys"))
    for key in keys:
        if truth(t, apply(t, operator.contains, [target, key])):
            told = f"got multiple values for keyword argument '{t.constant(key)}'"
            t.raise_exception(TypeError, f"{name_of_called(t, function)} {told}")
        apply(t, operator.setitem, [target, key, apply(t, operator.getitem, [other, key])])


def _is_mapping(t, value) -> bool:
    """Whether a value has what it takes to be unpacked as one."""
    value = t.realize(value)
    if hasattr(value.type, "keys"):
        return True
    found = isinstance(value, ObjectVariable) and apply(t, hasattr, [value, Constant("keys")])
    return bool(found) and truth(t, found)


def _unpack(t, value, limit=None) -> list:
    value = t.realize(value)
    if isinstance(value, Constant | FunctionVariable) and not hasattr(value.type, "__iter__"):
        t.raise_exception(TypeError, f"cannot unpack non-iterable {value.type.__name__} object")
    return iterate(t, value, limit)


@opcode
def UNPACK_SEQUENCE(t, frame, ins):
    items = _unpack(t, frame.pop(), ins.arg + 1)
    if len(items) > ins.arg:
        t.raise_exception(ValueError, f"too many values to unpack (expected {ins.arg})")
    if len(items) < ins.arg:
        t.raise_exception(
            ValueError, f"not enough values to unpack (expected {ins.arg}, got {len(items)})"
        )
    frame.stack.extend(reversed(items))


@opcode
def UNPACK_EX(t, frame, ins):
    before, after = ins.arg & 0xFF, ins.arg >> 8
    items = _unpack(t, frame.pop())
    if len(items) < before + after:
        t.raise_exception(
            ValueError,
            f"not enough values to unpack (expected at least {before + after}, got {len(items)})",
        )
    middle = items[before : len(items) - after]
    tail = items[len(items) - after :]
    frame.stack.extend(reversed(tail))
    frame.push(t.new(ListVariable(middle)))
    frame.stack.extend(reversed(items[:before]))


# -- pattern matching ------------------------------------------------------------


@opcode
def MATCH_MAPPING(t, frame, ins):
    # Guarded; the class says itself which of the two it is, never both.
    apply(t, isinstance, [frame.stack[-1], Known(collections.abc.Mapping)])
    frame.push(Constant(bool(t.realize(frame.stack[-1]).type.__flags__ & _MAPPING)))


@opcode
def MATCH_SEQUENCE(t, frame, ins):
    frame.push(Constant(bool(t.realize(frame.stack[-1]).type.__flags__ & _SEQUENCE)))


# CPython's flags of classes that patterns of sequences and of mappings match.
_SEQUENCE, _MAPPING = 1 << 5, 1 << 6


@opcode
def MATCH_KEYS(t, frame, ins):
    subject, keys = frame.stack[-2:]
    values: list[Variable] = []
    wanted = t.realize(keys).items
    by_get = not isinstance(t.realize(subject), DictVariable)
    for place, key in enumerate(wanted):
        if any(truth(t, apply(t, operator.eq, [key, other])) for other in wanted[:place]):
            told = t.constant(apply(t, repr, [key]))
            t.raise_exception(ValueError, f"mapping pattern checks duplicate key ({told})")
        if by_get:
            continue
        if not apply(t, operator.contains, [subject, key]).constant():
            frame.push(Constant(None))
            return
        values.append(apply(t, operator.getitem, [subject, key]))
    if by_get and wanted:
        frame.push(t.inline_live(keys_of, [subject, keys], {}))
        return
    frame.push(t.new(TupleVariable(values)))


@opcode
def MATCH_CLASS(t, frame, ins):
    subject, cls, names = frame.pop_many(3)
    if not apply(t, isinstance, [subject, cls]).constant():
        frame.push(Constant(None))
        return
    values, attributes = [], []
    if ins.arg:
        matched = _match_args(t, cls, ins.arg)
        if matched is None:
            values.append(subject)
        else:
            attributes += matched
    wanted = [*attributes, *t.constant(names)]
    for place, name in enumerate(wanted):
        if name in wanted[:place]:
            told = f"got multiple sub-patterns for attribute {name!r}"
            t.raise_exception(TypeError, f"{t.realize(cls).constant().__name__}() {told}")
        try:
            values.append(t.realize(apply(t, getattr, [subject, Constant(name)])))
        except Raised as raised:
            if not issubclass(raised.value.type, AttributeError):
                raise
            frame.push(Constant(None))
            return
    frame.push(t.new(TupleVariable(values)))


# The flag of classes whose single positional pattern matches the subject itself (PEP 634).
_MATCHES_SELF = 1 << 22


def _match_args(t, cls: Variable, count: int) -> list[str] | None:
    """The attributes that the positional patterns of a class mean; None for the subject itself."""
    kind = t.realize(cls).constant()
    matched: list[Any] = []
    itself = False
    if truth(t, apply(t, hasattr, [cls, Constant("__match_args__")])):
        given = t.realize(apply(t, getattr, [cls, Constant("__match_args__")]))
        if given.type is not tuple:
            told = given.type.__name__
            t.raise_exception(
                TypeError, f"{kind.__name__}.__match_args__ must be a tuple (got {told})"
            )
        matched = [t.constant(name) for name in iterate(t, given)]
    else:
        itself = bool(kind.__flags__ & _MATCHES_SELF)
    allowed = 1 if itself else len(matched)
    if allowed < count:
        plural = "" if allowed == 1 else "s"
        t.raise_exception(TypeError, f"{kind.__name__}() accepts {allowed} positional "
                                     f"sub-pattern{plural} ({count} given)")  # fmt: skip
    for name in matched[:count]:
        if not isinstance(name, str):
            told = type(name).__name__
            t.raise_exception(TypeError, f"__match_args__ elements must be strings (got {told})")
    return None if itself else matched[:count]
