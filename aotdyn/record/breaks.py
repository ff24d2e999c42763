"""How a frame goes on after its graph: it returns, or it breaks at an instruction.

An instruction that has a plan is executed by the body on rebuilt operands, and the frame goes on
behind it in an entry of its own, or, if it raises where the frame has a handler, in one that begins
with the exception. Any other is left to the frame itself: it continues there as plain Python.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import CodeType, FunctionType, MethodDescriptorType, MethodType
from typing import Any

from ..markers import is_disabled
from ..package.point import RAISE, RESUME, STEP, Point
from ..package.reference import EntryAt
from ..policy import (
    asks_for_gradients,
    drops_parameters,
    keeps_locals,
    looks_for_callers,
    sees_lifetimes,
)
from .body import BodyWriter
from .bytecode import Instruction, live_locals
from .frame import Frame
from .lifetimes import ends_with_call, frame_ends, holds_more, is_held
from .references import importable
from .signals import GraphBreak, SkipFrame
from .variables import (
    Constant,
    FunctionVariable,
    HandledVariable,
    Known,
    Lazy,
    MadeReference,
    MethodVariable,
    Null,
    ObjectVariable,
    Opaque,
    Symbolic,
    TensorVariable,
    Variable,
)
from .write_back import write_effects

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
        handlers = [value for value in frame.stack if is_active(value)]
        # What sys.exc_info() tells while the instruction runs.
        self.handled = self.expression(handlers[-1]) if handlers else None

    # -- operands ------------------------------------------------------------------------------

    def take(self, count: int) -> list[Variable | str]:
        """The topmost operands, in the order in which they were pushed."""
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def expression(self, value: Variable | str) -> str:
        """A stack value as an expression."""
        if isinstance(value, HandledVariable):
            return self.w.value(value.exception) if value.active else "None"
        return value if isinstance(value, str) else self.w.value(value)

    def step(self, operands: list[Variable | str], everything: bool = False) -> str:
        """The expression that runs the instruction alone, in a frame like the frame's own.

        everything: it may look at all local variables.
        """
        values, point = self.continuation(self.ins.start, operands, everything, kind=STEP)
        entry = self.w.ref(EntryAt(point))
        if self._starts_no_entries(operands):
            return self.run(f"{entry}.plain", values.removesuffix(", "))
        return self.run(self.w.runtime("run_plain"), entry, f"({values})")

    def _starts_no_entries(self, operands: list[Variable | str]) -> bool:
        """Whether no frame that the instruction starts could be an entry: the hook may stay off."""
        values = [v.known if isinstance(v, Lazy) else v for v in operands]
        if self.ins.opname.startswith(("POP_JUMP", "JUMP_IF", "UNARY_NOT")):
            return isinstance(values[-1], TensorVariable)
        if self.ins.opname != "CALL":
            return False
        callee = next((v for v in values if not isinstance(v, Null)), None)
        if isinstance(callee, FunctionVariable):
            return callee.live is not None and is_disabled(callee.live)
        # A method of C: what it is given is made of tensors and plain values.
        function = callee.function if isinstance(callee, MethodVariable) else None
        return (
            isinstance(function, Known)
            and isinstance(function.value, MethodDescriptorType)
            and all(isinstance(v, Null | TensorVariable | Constant) for v in
                    (callee.self_, *(v for v in values if v is not callee)))
        )  # fmt: skip

    def run(self, function: str, *args: str) -> str:
        """A call, made while what the frame handles is being handled."""
        if self.handled is not None:
            function, args = self.w.runtime("handling"), (self.handled, function, *args)
        return f"{function}({', '.join(args)})"

    def callables(self) -> Iterator[Any]:
        """The live objects among a call's operands: the callee and its arguments."""
        if self.ins.opname not in ("CALL", "CALL_FUNCTION_EX"):
            return
        for value in self.stack:
            yield from self.callable(value)

    def callable(self, value: Variable | str) -> Iterator[Any]:
        """The live object that is called where a value is, if it can be."""
        known = value.known if isinstance(value, Lazy) else value
        if isinstance(known, MethodVariable):
            known = self.t.realize(known.function)
        if isinstance(known, Known):
            yield known.value
        elif known is None:
            yield value.value
        elif isinstance(known, FunctionVariable):
            yield known.live if known.live is not None else known

    # -- going on ------------------------------------------------------------------------------

    def resume(self, offset: int, pushed: list[str] | None = None) -> str:
        """The expression for the continuation at an offset, with these values pushed."""
        values, point = self.continuation(offset, [*self.stack, *(pushed or [])])
        return f"{self.w.runtime('Next')}(({self.w.ref(EntryAt(point))}, ({values})))"

    def plain(self, offset: int, alone: bool = False) -> str:
        """The expression that runs the rest of the frame as plain Python. alone: and all that it
        calls."""
        values, point = self.continuation(offset, list(self.stack), everything=True)
        given = f"{self.w.ref(EntryAt(point))}, [{values}]{', True' if alone else ''}"
        return f"{self.w.runtime('Rest')}({given})"

    def raising(self, error: str) -> str | None:
        """The expression for the continuation that begins with an exception of the instruction;
        None if the frame does not handle it."""
        handler = self.frame.decoded.handler(self.ins.offset)
        if handler is None:
            return None
        # The handler's variables are live, not those behind the instruction.
        values, point = self.continuation(handler.target, self.frame.stack[: handler.depth])
        point = replace(point, offset=self.ins.start, kind=RAISE)
        values = f"{values}{self.w.runtime('thrown')}({error}), "
        return f"{self.w.runtime('Next')}(({self.w.ref(EntryAt(point))}, ({values})))"

    def continuation(
        self,
        offset: int,
        stack: list[Variable | str],
        everything: bool = False,
        kind: str = RESUME,
    ) -> tuple[str, Point]:
        """The frame values for an offset, as one expression, and the point."""
        code = self.frame.code
        live = self.live(offset, everything, kind)
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
                self._note_computed(name, variable)
        for name in (*code.co_cellvars, *code.co_freevars):
            values.append(self.w.value(self.frame.cells[name]))
        mask = tuple(not isinstance(value, Null) for value in stack)
        values += [self.expression(value) for value in stack if not isinstance(value, Null)]
        handled = () if kind == STEP else tuple(i for i, v in enumerate(stack) if is_active(v))
        point = Point(offset, mask, tuple(unbound), handled, kind)
        return "".join(f"{value}, " for value in values), point

    def _note_computed(self, name: str, variable: Variable) -> None:
        """What an eager step has computed is another number each time, wherever it is used."""
        untouched = isinstance(variable, Lazy) and variable.known is None
        known = variable.known if isinstance(variable, Lazy) else variable
        is_number = isinstance(known, Symbolic) and known.type is float
        if is_number or untouched and variable.source in self.t.shapes.computed:
            self.t.entry.computed.add(name)

    def live(self, offset: int, everything: bool, kind: str) -> set[str] | frozenset[str]:
        """The local variables that a continuation needs."""
        if everything:
            return set(self.frame.code.co_varnames)
        if kind == STEP:
            return set()
        live = live_locals(self.frame.decoded, self.frame.decoded.at[offset])
        return live | self._held(live)

    @property
    def sees_lifetimes(self) -> bool:
        """Whether the frame may tell which objects are still there."""
        values = self.frame.locals.values()
        return sees_lifetimes(self.frame.code) or any(map(_refers_weakly, values))

    def _held(self, live: frozenset[str]) -> set[str]:
        """The other local variables whose end the program may see: a frame holds them to its
        own."""
        values = self.frame.locals
        if self.sees_lifetimes:
            return set(self.frame.code.co_varnames)
        used = [value for name, value in values.items() if name in live]
        used += [value for value in self.stack if isinstance(value, Variable)]
        return {
            name for name, value in values.items()
            if name not in live and (_is_frames_class(value) or is_held(self.t, value, used))
        }

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


def _kind(variable: Variable) -> type:
    """The class of an object, if it may be one of Python's; `object` for any other value."""
    if isinstance(variable, Lazy | Opaque):
        return type(variable.value)
    return variable.type if isinstance(variable, ObjectVariable | MadeReference) else object


def _is_frames_class(variable: Variable) -> bool:
    """Whether a value is a class that nothing but frames may hold. Its bases tell of it, and ask
    it which classes are registered with it, for as long as it is there."""
    known = variable.known or variable if isinstance(variable, Lazy) else variable
    value = known.value if isinstance(known, Known | Lazy) else None
    return issubclass(type(value), type) and importable(value) is None


def _refers_weakly(variable: Variable) -> bool:
    """Whether a value tells which objects are still there."""
    return _kind(variable).__module__ in ("weakref", "_weakrefset")


def write_return(t, writer: BodyWriter, value: Variable) -> None:
    """The frame returns."""
    frame_ends(t, t.root)
    result = writer.value(value)
    effects = write_effects(writer)
    writer.lines += [*effects, f"return {result}"]


def write_break(
    t, writer: BodyWriter, frame: Frame, ins: Instruction, execute: bool = True
) -> None:
    """The frame breaks at an instruction of the root frame, or before it without `execute`.

    Raises GraphBreak("reconstruct") with the instruction at which to break instead, SkipFrame for
    a frame of which no part can be run by itself.
    """
    if keeps_locals(frame.code):
        raise SkipFrame("locals", frame.code.co_name)
    require_real_exceptions(frame, ins)
    _require_gradients(t, frame)
    ending = Ending(t, writer, frame, ins)
    planned = PLANS.get(ins.opname)
    guarded = None
    if ins.opname in _STEPS and holds_more(t, frame, ending.sees_lifetimes):
        execute = False
    if not execute:
        ending.then(f"return {ending.resume(ins.start)}")
    elif hands_over(ending):
        ending.then(f"return {ending.plain(ins.start, alone=True)}")
    elif planned is None or calls(ending, _KEEP_FRAME):
        ending.then(f"return {ending.plain(ins.start)}")
    else:
        planned(ending)
        error = writer.names.fresh("error")
        guarded = ending.raising(error)
    effects = write_effects(writer)
    writer.lines += effects
    if ending.sees_lifetimes:
        writer.let_go(ending.tail)
    if guarded is None:
        writer.lines += ending.tail
    else:
        writer.lines += ["try:", *(f"    {line}" for line in ending.tail)]
        writer.lines += [f"except BaseException as {error}:", f"    return {guarded}"]
        # The traceback of what was raised leads to this frame, which must not keep what it held.
        writer.lines += ["finally:", f"    {' = '.join(('inputs', *writer.held))} = None"]


def _require_gradients(t, frame: Frame) -> None:
    """Where a frame may give hooks to its tensors after the break, none of these has a gradient
    within the graph: to autograd a compiled one is a single step.

    Raises GraphBreak to break where the tensor is made.
    """
    if not asks_for_gradients(frame.code):
        return
    for value in (*frame.locals.values(), *frame.stack):
        value = (value.known or value) if type(value) is Lazy else value
        made = isinstance(value, TensorVariable) and value.source is None
        if made and value.fake.grad_fn is not None and t.graph.is_used(value):
            raise GraphBreak("inner_gradient", "a hook may come after a break", value.origin)


def is_active(value: Variable | str) -> bool:
    """Whether a stack value is that of a handler that is being run."""
    return isinstance(value, HandledVariable) and value.active


def require_real_exceptions(frame: Frame, ins: Instruction) -> None:
    """An exception that the frame handles, or that leaves it, has its traceback and context.

    Raises GraphBreak for an exception that exists in the trace only: to break where it is raised.
    """
    for value in frame.stack:
        if is_active(value) and value.exception.source is None:
            raise GraphBreak("exception_handling", "", value.step)
    if ins.opname in ("RERAISE", "PUSH_EXC_INFO") and frame.stack[-1].source is None:
        raise GraphBreak("exception", "", frame.raised_at)


def calls(ending: Ending, functions: tuple) -> bool:
    """Whether the instruction calls one of these functions."""
    return any(any(live is each for each in functions) for live in ending.callables())


def looks_at_locals(ending: Ending) -> bool:
    """Whether the instruction calls what looks at the variables of its caller."""
    if calls(ending, _LOOK_AT_FRAME):
        return True
    return any(looks_for_callers(code) for code in map(_code, ending.callables()) if code)


def _code(function: Any) -> CodeType | None:
    """The code of a Python function, live or made in the frame."""
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is FunctionType:
        return function.__code__
    # Not `isinstance`, which asks an object for its class.
    return function.code if issubclass(type(function), FunctionVariable) else None


def hands_over(ending: Ending) -> bool:
    """Whether the instruction calls a function that may let go of a parameter before it ends, and
    the program sees that: nothing but the function's own frame may hold the argument."""
    if ending.ins.opname != "CALL":
        return False
    method, callee, *operands = ending.stack[-(ending.ins.arg or 0) - 2 :]
    code = _code(next(ending.callable(callee if isinstance(method, Null) else method), None))
    if code is None or not drops_parameters(code):
        return False
    given = [each for each in operands if isinstance(each, Lazy)]
    return any([ends_with_call(ending.t, ending.frame, each) for each in given])


# They look at all variables of the frame they are called from; they may keep that frame.
_LOOK_AT_FRAME = (super, locals, vars, dir, eval, exec, globals)
_KEEP_FRAME = (breakpoint, sys._getframe, inspect.currentframe, inspect.stack)


# -- plans: one per instruction that can be executed outside of the frame ---------------------


# (operands taken, whether a result is pushed) of instructions that are executed as steps: in a
# frame, so that a callee finds its caller's code, globals and line, whatever it is.
_STEPS: dict[str, Callable[[int], tuple[int, bool]]] = {
    "CALL": lambda arg: (arg + 2, True),
    "CALL_FUNCTION_EX": lambda arg: (3 + (arg & 1), True),
    "BINARY_OP": lambda arg: (2, True),
    "COMPARE_OP": lambda arg: (2, True),
    "IS_OP": lambda arg: (2, True),
    "CONTAINS_OP": lambda arg: (2, True),
    "BINARY_SUBSCR": lambda arg: (2, True),
    "STORE_SUBSCR": lambda arg: (3, False),
    "DELETE_SUBSCR": lambda arg: (2, False),
    "UNARY_NEGATIVE": lambda arg: (1, True),
    "UNARY_POSITIVE": lambda arg: (1, True),
    "UNARY_INVERT": lambda arg: (1, True),
    "UNARY_NOT": lambda arg: (1, True),
    "GET_ITER": lambda arg: (1, True),
    "LOAD_ATTR": lambda arg: (1, True),
    "STORE_ATTR": lambda arg: (2, False),
    "DELETE_ATTR": lambda arg: (1, False),
    "FORMAT_VALUE": lambda arg: (1 + bool(arg & 4), True),
    "IMPORT_NAME": lambda arg: (2, True),
    "LOAD_BUILD_CLASS": lambda arg: (0, True),
    "LOAD_DEREF": lambda arg: (0, True),
    "STORE_DEREF": lambda arg: (1, False),
    "DELETE_DEREF": lambda arg: (0, False),
    "STORE_GLOBAL": lambda arg: (1, False),
    "DELETE_GLOBAL": lambda arg: (0, False),
    "BUILD_SET": lambda arg: (arg, True),
    "BUILD_MAP": lambda arg: (2 * arg, True),
    "BUILD_STRING": lambda arg: (arg, True),
    "LIST_TO_TUPLE": lambda arg: (1, True),
    "GET_YIELD_FROM_ITER": lambda arg: (1, True),
    "MATCH_CLASS": lambda arg: (3, True),
}

# The same for instructions that leave operands behind: (looked at, taken, whether one is pushed).
_LOOKS: dict[str, Callable[[int], tuple[int, int, bool]]] = {
    "IMPORT_FROM": lambda arg: (1, 0, True),
    "GET_LEN": lambda arg: (1, 0, True),
    "MATCH_MAPPING": lambda arg: (1, 0, True),
    "MATCH_SEQUENCE": lambda arg: (1, 0, True),
    "MATCH_KEYS": lambda arg: (2, 0, True),
    "CHECK_EXC_MATCH": lambda arg: (2, 1, True),
    "WITH_EXCEPT_START": lambda arg: (4, 0, True),
    "LIST_APPEND": lambda arg: (arg + 1, 1, False),
    "LIST_EXTEND": lambda arg: (arg + 1, 1, False),
    "SET_ADD": lambda arg: (arg + 1, 1, False),
    "SET_UPDATE": lambda arg: (arg + 1, 1, False),
    "MAP_ADD": lambda arg: (arg + 2, 2, False),
    "DICT_UPDATE": lambda arg: (arg + 1, 1, False),
    "DICT_MERGE": lambda arg: (arg + 3, 1, False),
}

# Instructions that take one operand and push so many.
_SPREADS: dict[str, Callable[[int], int]] = {
    "BEFORE_WITH": lambda arg: 2,
    "UNPACK_SEQUENCE": lambda arg: arg,
    "UNPACK_EX": lambda arg: (arg & 0xFF) + (arg >> 8) + 1,
}


@plan(*_STEPS)
def _step(e: Ending) -> None:
    taken, pushes = _STEPS[e.ins.opname](e.ins.arg or 0)
    everything = looks_at_locals(e)
    operands = e.take(taken)
    following = e.frame.decoded.instructions[e.ins.index + 1]
    if pushes and following.opname == "POP_TOP":
        e.then(e.step(operands, everything))
        e.then(f"return {e.resume(e.frame.decoded.instructions[following.index + 1].offset)}")
    elif pushes:
        e.push_and_resume(e.then_bind("result", e.step(operands, everything)))
    else:
        e.then(e.step([Constant(None), *operands]))
        e.push_and_resume()


@plan(*_LOOKS)
def _look(e: Ending) -> None:
    seen, taken, pushes = _LOOKS[e.ins.opname](e.ins.arg or 0)
    operands = e.stack[len(e.stack) - seen :]
    e.take(taken)
    step = e.step(operands)
    if pushes:
        e.push_and_resume(e.then_bind("result", step))
    else:
        e.then(step)
        e.push_and_resume()


@plan(*_SPREADS)
def _spread(e: Ending) -> None:
    pushed = [e.w.names.fresh("item") for _ in range(_SPREADS[e.ins.opname](e.ins.arg or 0))]
    step = e.step(e.take(1))
    e.then(f"{''.join(f'{item}, ' for item in pushed) or '()'} = {step}")
    e.push_and_resume(*pushed)


@plan("LOAD_GLOBAL")
def _load_global(e: Ending) -> None:
    value = e.then_bind(e.ins.argval, e.step([]))
    if e.ins.arg & 1:
        e.stack.append(Null())
    e.push_and_resume(value)


# -- exceptions and contexts ------------------------------------------------------------


@plan("RAISE_VARARGS")
def _raise(e: Ending) -> None:
    if not e.ins.arg or e.frame.decoded.handler(e.ins.offset) is None:
        e.then(f"return {e.plain(e.ins.start)}")
    else:
        e.then(e.step(e.stack[-e.ins.arg :]))


@plan("LOAD_FAST", "DELETE_FAST")
def _unbound_local(e: Ending) -> None:
    """Only reading or deleting a variable without value does anything to be broken at."""
    if e.ins.argval in e.frame.locals:
        e.then(f"return {e.plain(e.ins.start)}")
    else:
        e.then(e.step([Constant(None)]))


@plan("LOAD_METHOD")
def _load_method(e: Ending) -> None:
    method = e.then_bind(e.ins.argval, e.step(e.take(1)))
    e.stack.append(Null())
    e.push_and_resume(method)


@plan("FOR_ITER")
def _for_iter(e: Ending) -> None:
    item = e.then_bind("item", e.step(e.stack[-1:]))
    body = e.resume(e.next_offset, [item])
    e.stack.pop()
    e.then(f"if {item} is {e.w.runtime('END')}: return {e.resume(e.ins.argval)}")
    e.then(f"return {body}")


def _branch(name: str, jumps_if: bool) -> None:
    @plan(name)
    def branch(e: Ending) -> None:
        condition = e.step(e.take(1))
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
        condition = e.step(e.take(1))
        fall = e.resume(e.next_offset)
        yes, no = (jump, fall) if jumps_if else (fall, jump)
        e.then(f"return {yes} if {condition} else {no}")


_branch_or_pop("JUMP_IF_TRUE_OR_POP", True)
_branch_or_pop("JUMP_IF_FALSE_OR_POP", False)

# Instructions that can be broken at whatever their operands are.
STEPPED = frozenset(PLANS) - {"LOAD_FAST", "DELETE_FAST"}
