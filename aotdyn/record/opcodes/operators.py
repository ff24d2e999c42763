"""Operators: each is one call of `apply` with the function of Python that means the same."""

import operator

from ..operation import apply
from ..rules.late_texts import joined, realized
from ..variables import Constant, SliceVariable
from .table import named, opcode


def _unary(function):
    def handler(t, frame, ins):
        frame.push(apply(t, function, [frame.pop()]))

    return handler


for _name, _function in {
    "UNARY_POSITIVE": operator.pos,
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_INVERT": operator.invert,
}.items():
    named(_name, _unary(_function))

# In the order of CPython's NB_* numbers.
BINARY = (
    operator.add, operator.and_, operator.floordiv, operator.lshift, operator.matmul,
    operator.mul, operator.mod, operator.or_, operator.pow, operator.rshift, operator.sub,
    operator.truediv, operator.xor, operator.iadd, operator.iand, operator.ifloordiv,
    operator.ilshift, operator.imatmul, operator.imul, operator.imod, operator.ior,
    operator.ipow, operator.irshift, operator.isub, operator.itruediv, operator.ixor,
)  # fmt: skip

COMPARE = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@opcode
def BINARY_OP(t, frame, ins):
    left, right = frame.pop_many(2)
    frame.push(apply(t, BINARY[ins.arg], [left, right]))


@opcode
def COMPARE_OP(t, frame, ins):
    left, right = frame.pop_many(2)
    frame.push(apply(t, COMPARE[ins.argval], [left, right]))


@opcode
def UNARY_NOT(t, frame, ins):
    frame.push(apply(t, operator.not_, [frame.pop()]))


@opcode
def IS_OP(t, frame, ins):
    left, right = frame.pop_many(2)
    frame.push(apply(t, operator.is_not if ins.arg else operator.is_, [left, right]))


@opcode
def CONTAINS_OP(t, frame, ins):
    item, container = frame.pop_many(2)
    found = apply(t, operator.contains, [container, item])
    frame.push(apply(t, operator.not_, [found]) if ins.arg else found)


@opcode
def BINARY_SUBSCR(t, frame, ins):
    container, key = frame.pop_many(2)
    frame.push(apply(t, operator.getitem, [container, key]))


@opcode
def STORE_SUBSCR(t, frame, ins):
    value, container, key = frame.pop_many(3)
    apply(t, operator.setitem, [container, key, value])


@opcode
def DELETE_SUBSCR(t, frame, ins):
    container, key = frame.pop_many(2)
    apply(t, operator.delitem, [container, key])


@opcode
def BUILD_SLICE(t, frame, ins):
    parts = frame.pop_many(ins.arg)
    frame.push(t.new(SliceVariable([*parts, Constant(None)][:3])))


@opcode
def FORMAT_VALUE(t, frame, ins):
    spec = frame.pop() if ins.arg & 4 else Constant("")
    value = realized(t, frame.pop())
    convert = (None, str, repr, ascii)[ins.arg & 3]
    if convert is not None:
        value = apply(t, convert, [value])
    frame.push(apply(t, format, [value, spec]))


@opcode
def BUILD_STRING(t, frame, ins):
    parts = frame.pop_many(ins.arg)
    frame.push(joined(t, *parts))
