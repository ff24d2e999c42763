"""Moving values: constants, locals, cells, and the operand stack itself."""

from ..lifetimes import dropped
from ..signals import Raised
from ..variables import CellVariable, Constant, Null
from .table import named, opcode


def _nothing(t, frame, ins):
    """NOP and friends: no effect on what is traced."""


for _name in ("NOP", "CACHE", "RESUME", "EXTENDED_ARG", "PRECALL", "COPY_FREE_VARS"):
    named(_name, _nothing)


@opcode
def LOAD_CONST(t, frame, ins):
    frame.push(t.wrap_constant(ins.argval))


def _unbound_local(t, name: str) -> None:
    t.raise_exception(
        UnboundLocalError,
        f"cannot access local variable {name!r} where it is not associated with a value",
    )


def _unbound_cell(t, frame, name: str) -> None:
    if name in frame.code.co_cellvars:
        _unbound_local(t, name)
    unbound_name(
        t, name, f"cannot access free variable {name!r} where it is not associated with a value "
        "in enclosing scope",
    )  # fmt: skip


def unbound_name(t, name: str, text: str) -> None:
    """Raises the NameError for a name that has no value."""
    error = t.exception(NameError, text)
    error.attributes["name"] = Constant(name)
    raise Raised(error)


@opcode
def LOAD_FAST(t, frame, ins):
    value = frame.locals.get(ins.argval)
    if value is None:
        _unbound_local(t, ins.argval)
    frame.push(value)


@opcode
def STORE_FAST(t, frame, ins):
    if frame is t.root:
        dropped(t, frame.locals.get(ins.argval))
    frame.locals[ins.argval] = frame.pop()


@opcode
def DELETE_FAST(t, frame, ins):
    if ins.argval not in frame.locals:
        _unbound_local(t, ins.argval)
    if frame is t.root:
        dropped(t, frame.locals[ins.argval])
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
        _unbound_cell(t, frame, ins.argval)
    frame.push(content)


@opcode
def STORE_DEREF(t, frame, ins):
    cell = frame.cells[ins.argval]
    dropped(t, cell.content)
    t.effects.set_cell(cell, frame.pop())


@opcode
def DELETE_DEREF(t, frame, ins):
    cell = frame.cells[ins.argval]
    if cell.content is None:
        _unbound_cell(t, frame, ins.argval)
    dropped(t, cell.content)
    t.effects.set_cell(cell, None)


@opcode
def POP_TOP(t, frame, ins):
    if frame is t.root:
        dropped(t, frame.stack[-1])
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
