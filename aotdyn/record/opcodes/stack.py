"""Moving values: constants, locals, cells, and the operand stack itself."""

from ..variables import CellVariable, Null
from .table import named, opcode


def _nothing(t, frame, ins):
    """NOP and friends: no effect on what is traced."""


for _name in ("NOP", "CACHE", "RESUME", "EXTENDED_ARG", "PRECALL", "COPY_FREE_VARS"):
    named(_name, _nothing)


@opcode
def LOAD_CONST(t, frame, ins):
    frame.push(t.wrap_constant(ins.argval))


@opcode
def LOAD_FAST(t, frame, ins):
    value = frame.locals.get(ins.argval)
    if value is None:
        t.raise_exception(UnboundLocalError, f"local variable {ins.argval!r}")
    frame.push(value)


@opcode
def STORE_FAST(t, frame, ins):
    frame.locals[ins.argval] = frame.pop()


@opcode
def DELETE_FAST(t, frame, ins):
    if ins.argval not in frame.locals:
        t.raise_exception(UnboundLocalError, f"local variable {ins.argval!r}")
    del frame.locals[ins.argval]


@opcode
def MAKE_CELL(t, frame, ins):
    content = frame.locals.pop(ins.argval, None)
    frame.cells[ins.argval] = t.new(CellVariable(content))


@opcode
def LOAD_CLOSURE(t, frame, ins):
    frame.push(frame.cells[ins.argval])


@opcode
def LOAD_DEREF(t, frame, ins):
    content = frame.cells[ins.argval].content
    if content is None:
        t.raise_exception(NameError, f"free variable {ins.argval!r} is not set")
    frame.push(content)


@opcode
def STORE_DEREF(t, frame, ins):
    t.effects.set_cell(frame.cells[ins.argval], frame.pop())


@opcode
def DELETE_DEREF(t, frame, ins):
    cell = frame.cells[ins.argval]
    if cell.content is None:
        t.raise_exception(NameError, f"free variable {ins.argval!r} is not set")
    t.effects.set_cell(cell, None)


@opcode
def POP_TOP(t, frame, ins):
    frame.pop()


@opcode
def PUSH_NULL(t, frame, ins):
    frame.push(Null())


@opcode
def COPY(t, frame, ins):
    frame.push(frame.stack[-ins.arg])


@opcode
def SWAP(t, frame, ins):
    stack = frame.stack
    stack[-1], stack[-ins.arg] = stack[-ins.arg], stack[-1]
