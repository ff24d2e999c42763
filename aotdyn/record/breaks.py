"""How a frame goes on after its graph: it returns, or it breaks at an instruction.

An instruction that has a plan is executed by the body on rebuilt operands, and the frame goes on
behind it in an entry of its own. Any other (and any inside try or with) is left to the frame
itself: it continues there as plain Python.
"""

import inspect
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any

from ..package.point import Point
from ..package.reference import EntryAt, Import
from .body import BodyWriter, write_effects
from .bytecode import Instruction, live_locals
from .frame import Frame
from .opcodes.operators import BINARY, COMPARE
from .signals import GraphBreak
from .variables import FunctionVariable, Known, Lazy, Null, Variable

PLANS: dict[str, Callable] = {}


def plan(*names: str) -> Callable[[Callable], Callable]:
    """Registers how an instruction is executed by the body: f(ending) writes its lines."""

    def register(function: Callable) -> Callable:
        for name in names:
            PLANS[name] = function
        return function

    return register


class Ending:
    """The end of one body: operands taken from the root frame's stack, lines written in order.

    `stack` shrinks as a plan takes its operands; what is left is carried over.
    """

    def __init__(self, t, writer: BodyWriter, frame: Frame, ins: Instruction):
        self.t = t
        self.w = writer
        self.frame = frame
        self.ins = ins
        self.stack: list[Variable | str] = list(frame.stack)
        self.tail: list[str] = []
        self.carried: tuple[dict[str, str], list[str]] | None = None

    # -- operands ------------------------------------------------------------------------------

    def take(self, count: int) -> list[str]:
        """The topmost operands as expressions, in the order in which they were pushed."""
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return [self.expression(value) for value in values]

    def expression(self, value: Variable | str) -> str:
        """A stack value as an expression."""
        return value if isinstance(value, str) else self.w.value(value)

    def eager(self, function: Any, *args: str) -> str:
        """The expression that calls a function with the hook on."""
        target = function if isinstance(function, str) else self.w.ref(self.name(function))
        return f"{self.w.runtime('eager')}({', '.join((target, *args))})"

    def name(self, function: Any):
        """A reference to a function of Python's own."""
        if function.__module__ == "_operator":
            return Import("operator", function.__name__)
        return Import(function.__module__, function.__name__)

    # -- going on ------------------------------------------------------------------------------

    def resume(self, offset: int, pushed: list[str] | None = None) -> str:
        """The expression for the continuation at an offset, with these values pushed."""
        values, point = self.continuation(offset, [*self.stack, *(pushed or [])])
        return f"{self.w.runtime('Continue')}({self.w.ref(EntryAt(point))}, ({values}))"

    def plain(self, offset: int) -> str:
        """The expression that runs the rest of the frame as plain Python."""
        values, point = self.continuation(offset, list(self.stack), everything=True)
        return f"{self.w.runtime('run_plain')}({self.w.ref(EntryAt(point))}, ({values}))"

    def continuation(
        self, offset: int, stack: list[Variable | str], everything: bool = False
    ) -> tuple[str, Point]:
        """The frame values for an offset, as one expression, and the point."""
        code = self.frame.code
        index = self.frame.decoded.at[offset]
        live = set(code.co_varnames) if everything else live_locals(self.frame.decoded, index)
        values: list[str] = []
        unbound: list[str] = []
        for name in code.co_varnames:
            variable = self.frame.locals.get(name)
            if name in self.frame.cells:
                values.append("None")
            elif variable is None or name not in live:
                unbound.append(name)
                values.append("None")
            else:
                values.append(self.w.value(variable))
        for name in (*code.co_cellvars, *code.co_freevars):
            values.append(self.w.value(self.frame.cells[name]))
        mask = tuple(not isinstance(value, Null) for value in stack)
        values += [self.expression(value) for value in stack if not isinstance(value, Null)]
        return "".join(f"{value}, " for value in values), Point(offset, mask, tuple(unbound))

    @property
    def next_offset(self) -> int:
        """The offset of the instruction behind the one that breaks."""
        return self.frame.decoded.instructions[self.ins.index + 1].offset

    def then(self, line: str) -> None:
        """A line that runs after the side effects."""
        self.tail.append(line)

    def then_bind(self, wanted: str, expression: str) -> str:
        """Binds, after the side effects, an expression to a name."""
        name = self.w.names.fresh(wanted)
        self.then(f"{name} = {expression}")
        return name

    def push_and_resume(self, *pushed: str) -> None:
        """Goes on behind the instruction with these values pushed."""
        self.then(f"return {self.resume(self.next_offset, list(pushed))}")


def write_return(t, writer: BodyWriter, value: Variable) -> None:
    """The frame returns."""
    result = writer.value(value)
    effects = write_effects(writer)
    writer.lines += [*effects, f"return {result}"]


def write_break(t, writer: BodyWriter, frame: Frame, ins: Instruction) -> None:
    """The frame breaks at an instruction of the root frame.

    Raises GraphBreak("reconstruct") with the instruction at which to break instead.
    """
    for variable, index in t.contexts.values():
        if any(value is variable for value in frame.stack):
            raise GraphBreak("context_active", "", index)
    if t.handled is not None:
        raise GraphBreak("exception_handling", "", frame.raised_at)
    ending = Ending(t, writer, frame, ins)
    planned = PLANS.get(ins.opname)
    if planned is None or frame.decoded.handler(ins.offset) is not None or looks_at_frame(ending):
        ending.then(f"return {ending.plain(ins.start)}")
    else:
        planned(ending)
    effects = write_effects(writer)
    writer.lines += [*effects, *ending.tail]


def looks_at_frame(ending: Ending) -> bool:
    """Whether the instruction calls a function that looks at the frame it is called from."""
    if ending.ins.opname not in ("CALL", "CALL_FUNCTION_EX"):
        return False
    for value in ending.stack:
        known = ending.t.realize(value) if isinstance(value, Lazy) else value
        if isinstance(known, Known) and known.value in _FRAME_FUNCTIONS:
            return True
        live = getattr(known, "live", None)
        if isinstance(known, FunctionVariable) and live in _FRAME_FUNCTIONS:
            return True
    return False


_FRAME_FUNCTIONS = (
    super, locals, vars, dir, eval, exec, globals, breakpoint, sys._getframe,
    inspect.currentframe, inspect.stack, warnings.warn,
)  # fmt: skip


# -- plans: one per instruction that can be executed outside of the frame ---------------------


@plan("CALL")
def _call(e: Ending) -> None:
    names = e.frame.kw_names
    args = e.take(e.ins.arg)
    function, below = e.stack.pop(), e.stack.pop()
    if isinstance(below, Null):
        target = e.expression(function)
    else:
        target, args = e.expression(below), [e.expression(function), *args]
    count = len(args) - len(names)
    args[count:] = [f"{name}={arg}" for name, arg in zip(names, args[count:], strict=True)]
    e.push_and_resume(e.then_bind("result", e.eager(target, *args)))


@plan("CALL_FUNCTION_EX")
def _call_ex(e: Ending) -> None:
    keywords = e.take(1) if e.ins.arg & 1 else []
    (args,) = e.take(1)
    (target,) = e.take(1)
    e.stack.pop()
    spread = [f"*{args}", *(f"**{each}" for each in keywords)]
    e.push_and_resume(e.then_bind("result", e.eager(target, *spread)))


@plan("BINARY_OP")
def _binary(e: Ending) -> None:
    e.push_and_resume(e.then_bind("result", e.eager(BINARY[e.ins.arg], *e.take(2))))


@plan("COMPARE_OP")
def _compare(e: Ending) -> None:
    e.push_and_resume(e.then_bind("result", e.eager(COMPARE[e.ins.argval], *e.take(2))))


@plan("IS_OP")
def _is(e: Ending) -> None:
    left, right = e.take(2)
    e.push_and_resume(e.then_bind("result", f"{left} is {'not ' if e.ins.arg else ''}{right}"))


@plan("CONTAINS_OP")
def _contains(e: Ending) -> None:
    item, container = e.take(2)
    found = e.eager(operator.contains, container, item)
    e.push_and_resume(e.then_bind("result", f"not {found}" if e.ins.arg else found))


@plan("BINARY_SUBSCR")
def _subscript(e: Ending) -> None:
    e.push_and_resume(e.then_bind("result", e.eager(operator.getitem, *e.take(2))))


@plan("STORE_SUBSCR")
def _store_subscript(e: Ending) -> None:
    value, container, key = e.take(3)
    e.then(e.eager(operator.setitem, container, key, value))
    e.push_and_resume()


@plan("DELETE_SUBSCR")
def _delete_subscript(e: Ending) -> None:
    e.then(e.eager(operator.delitem, *e.take(2)))
    e.push_and_resume()


def _unary(name: str, function: Any) -> None:
    @plan(name)
    def unary(e: Ending) -> None:
        e.push_and_resume(e.then_bind("result", e.eager(function, *e.take(1))))


for _name, _function in (
    ("UNARY_NEGATIVE", operator.neg),
    ("UNARY_POSITIVE", operator.pos),
    ("UNARY_INVERT", operator.invert),
    ("UNARY_NOT", operator.not_),
    ("GET_ITER", iter),
):
    _unary(_name, _function)


@plan("LOAD_ATTR")
def _load_attribute(e: Ending) -> None:
    (target,) = e.take(1)
    e.push_and_resume(e.then_bind(e.ins.argval, e.eager(getattr, target, repr(e.ins.argval))))


@plan("LOAD_METHOD")
def _load_method(e: Ending) -> None:
    (target,) = e.take(1)
    method = e.then_bind(e.ins.argval, e.eager(getattr, target, repr(e.ins.argval)))
    e.stack.append(Null())
    e.push_and_resume(method)


@plan("STORE_ATTR")
def _store_attribute(e: Ending) -> None:
    value, target = e.take(2)
    e.then(e.eager(setattr, target, repr(e.ins.argval), value))
    e.push_and_resume()


@plan("DELETE_ATTR")
def _delete_attribute(e: Ending) -> None:
    e.then(e.eager(delattr, *e.take(1), repr(e.ins.argval)))
    e.push_and_resume()


@plan("FORMAT_VALUE")
def _format(e: Ending) -> None:
    spec = e.take(1)[0] if e.ins.arg & 4 else "''"
    (value,) = e.take(1)
    convert = (None, str, repr, ascii)[e.ins.arg & 3]
    if convert is not None:
        value = e.then_bind("text", e.eager(convert, value))
    e.push_and_resume(e.then_bind("text", e.eager(format, value, spec)))


@plan("UNPACK_SEQUENCE")
def _unpack(e: Ending) -> None:
    (value,) = e.take(1)
    items = [e.w.names.fresh("item") for _ in range(e.ins.arg)]
    e.then(f"{''.join(f'{item}, ' for item in items) or '()'} = {value}")
    e.push_and_resume(*reversed(items))


@plan("UNPACK_EX")
def _unpack_rest(e: Ending) -> None:
    (value,) = e.take(1)
    before, after = e.ins.arg & 0xFF, e.ins.arg >> 8
    items = [e.w.names.fresh("item") for _ in range(before + 1 + after)]
    targets = [f"*{item}" if at == before else item for at, item in enumerate(items)]
    e.then(f"{', '.join(targets)}, = {value}")
    e.push_and_resume(*reversed(items))


@plan("FOR_ITER")
def _for_iter(e: Ending) -> None:
    iterator = e.expression(e.stack[-1])
    end = e.w.runtime("END")
    item = e.then_bind("item", e.eager(next, iterator, end))
    body = e.resume(e.next_offset, [item])
    e.stack.pop()
    e.then(f"if {item} is {end}: return {e.resume(e.ins.argval)}")
    e.then(f"return {body}")


def _branch(name: str, jumps_if: bool) -> None:
    @plan(name)
    def branch(e: Ending) -> None:
        (value,) = e.take(1)
        condition = e.eager(bool, value)
        yes, no = e.resume(e.ins.argval), e.resume(e.next_offset)
        if not jumps_if:
            yes, no = no, yes
        e.then(f"return {yes} if {condition} else {no}")


for _direction in ("FORWARD", "BACKWARD"):
    _branch(f"POP_JUMP_{_direction}_IF_TRUE", True)
    _branch(f"POP_JUMP_{_direction}_IF_FALSE", False)


def _branch_or_pop(name: str, jumps_if: bool) -> None:
    @plan(name)
    def branch(e: Ending) -> None:
        jump = e.resume(e.ins.argval)
        (value,) = e.take(1)
        condition = e.eager(bool, value)
        fall = e.resume(e.next_offset)
        yes, no = (jump, fall) if jumps_if else (fall, jump)
        e.then(f"return {yes} if {condition} else {no}")


_branch_or_pop("JUMP_IF_TRUE_OR_POP", True)
_branch_or_pop("JUMP_IF_FALSE_OR_POP", False)
