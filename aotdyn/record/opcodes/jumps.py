"""Jumps and loops. A handler returns the target's offset, or None to fall through."""

import operator

from ..assumptions import assume
from ..iteration import advance
from ..operation import apply, truth
from ..variables import Constant
from .table import named, opcode


def _jump(t, frame, ins):
    return ins.argval


for _name in ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"):
    named(_name, _jump)


def _jump_if(wanted: bool):
    def handler(t, frame, ins):
        value = frame.pop()
        assumed = assume(t, frame, ins, value, wanted)
        found = truth(t, value) if assumed is None else assumed
        return ins.argval if found is wanted else None

    return handler


def _jump_if_none(wanted: bool):
    def handler(t, frame, ins):
        is_none = apply(t, operator.is_, [frame.pop(), Constant(None)])
        return ins.argval if is_none.constant() is wanted else None

    return handler


for _direction in ("FORWARD", "BACKWARD"):
    named(f"POP_JUMP_{_direction}_IF_TRUE", _jump_if(True))
    named(f"POP_JUMP_{_direction}_IF_FALSE", _jump_if(False))
    named(f"POP_JUMP_{_direction}_IF_NONE", _jump_if_none(True))
    named(f"POP_JUMP_{_direction}_IF_NOT_NONE", _jump_if_none(False))


def _jump_if_or_pop(wanted: bool):
    def handler(t, frame, ins):
        if truth(t, frame.stack[-1]) is wanted:
            return ins.argval
        frame.pop()
        return None

    return handler


named("JUMP_IF_TRUE_OR_POP", _jump_if_or_pop(True))
named("JUMP_IF_FALSE_OR_POP", _jump_if_or_pop(False))


@opcode
def FOR_ITER(t, frame, ins):
    value = advance(t, frame.stack[-1])
    if value is None:
        frame.pop()
        return ins.argval
    frame.push(value)
    return None
