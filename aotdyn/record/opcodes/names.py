"""Globals, attributes and imports."""

import builtins

from ..operation import apply
from ..signals import GraphBreak
from ..variables import Constant, DictVariable, Known, Null
from .stack import LOAD_DEREF, unbound_name
from .table import opcode


@opcode
def LOAD_GLOBAL(t, frame, ins):
    if ins.arg & 1:
        frame.push(Null())
    frame.push(t.namespaces.load_global(frame, ins.argval))


@opcode
def STORE_GLOBAL(t, frame, ins):
    t.namespaces.store_global(frame, ins.argval, frame.pop())


@opcode
def DELETE_GLOBAL(t, frame, ins):
    raise GraphBreak("opcode", "a global variable is deleted")


@opcode
def LOAD_ATTR(t, frame, ins):
    frame.push(apply(t, getattr, [frame.pop(), Constant(ins.argval)]))


@opcode
def LOAD_METHOD(t, frame, ins):
    method = apply(t, getattr, [frame.pop(), Constant(ins.argval)])
    frame.push(Null())
    frame.push(method)


@opcode
def STORE_ATTR(t, frame, ins):
    value, target = frame.pop_many(2)
    apply(t, setattr, [target, Constant(ins.argval), value])


@opcode
def DELETE_ATTR(t, frame, ins):
    apply(t, delattr, [frame.pop(), Constant(ins.argval)])


@opcode
def IMPORT_NAME(t, frame, ins):
    level, names = map(t.constant, frame.pop_many(2))
    frame.push(t.namespaces.import_name(frame, ins.argval, level, names))


@opcode
def IMPORT_FROM(t, frame, ins):
    frame.push(t.namespaces.import_from(frame.stack[-1], ins.argval))


@opcode
def LOAD_ASSERTION_ERROR(t, frame, ins):
    frame.push(Known(builtins.AssertionError))


@opcode
def GET_LEN(t, frame, ins):
    frame.push(apply(t, len, [frame.stack[-1]]))


@opcode
def GET_ITER(t, frame, ins):
    frame.push(apply(t, iter, [frame.pop()]))


@opcode
def GET_YIELD_FROM_ITER(t, frame, ins):
    frame.push(apply(t, iter, [frame.pop()]))


@opcode
def LIST_TO_TUPLE(t, frame, ins):
    frame.push(apply(t, tuple, [frame.pop()]))


# -- bodies of class statements ------------------------------------------------------------


@opcode
def LOAD_BUILD_CLASS(t, frame, ins):
    frame.push(Known(builtins.__build_class__))


def _names(frame) -> dict:
    if frame.names is None:
        raise GraphBreak("class_body", "the namespace of a module")
    return frame.names


@opcode
def LOAD_NAME(t, frame, ins):
    found = _names(frame).get(ins.argval)
    frame.push(found or t.namespaces.load_global(frame, ins.argval))


@opcode
def LOAD_CLASSDEREF(t, frame, ins):
    found = _names(frame).get(ins.argval)
    if found is None:
        LOAD_DEREF(t, frame, ins)
    else:
        frame.push(found)


@opcode
def STORE_NAME(t, frame, ins):
    _names(frame)[ins.argval] = frame.pop()


@opcode
def DELETE_NAME(t, frame, ins):
    if _names(frame).pop(ins.argval, None) is None:
        unbound_name(t, ins.argval, f"name {ins.argval!r} is not defined")


@opcode
def SETUP_ANNOTATIONS(t, frame, ins):
    if "__annotations__" not in _names(frame):
        frame.names["__annotations__"] = t.new(DictVariable())
