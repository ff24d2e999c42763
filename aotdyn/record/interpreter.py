"""The interpreter's loop and the unwinding of exceptions; the instructions are in `opcodes/`.

A handler moves values and returns None (go on), a byte offset (jump), `Return` or `Yield`.
"""

from .bytecode import Instruction
from .frame import Frame
from .lifetimes import dropped, require_held
from .opcodes import HANDLERS, REFUSED
from .opcodes.control import Return, Yield
from .signals import GraphBreak, Raised, SkipFrame
from .variables import Constant, ExceptionVariable

# A trace this long is an unrolled loop that nobody wants compiled.
INSTRUCTION_LIMIT = 2_000_000


def run(t, frame: Frame, first: Raised | None = None) -> Return | Yield:
    """Runs a frame until it returns or yields. first: what the instruction at which it stands
    has raised.

    Raises GraphBreak, and Raised for an exception that the frame does not handle.
    """
    instructions = frame.decoded.instructions
    at = frame.decoded.at
    while True:
        ins = instructions[frame.index]
        t.before_instruction(frame, ins)
        try:
            try:
                if first is not None:
                    pending, first = first, None
                    raise pending
                outcome = step(t, frame, ins)
            except Raised as raised:
                pending = None  # its traceback leads here: it would keep itself
                outcome = unwind(t, frame, ins, raised.value)
                if outcome is None:
                    raise
            if t.ending and frame is t.root and type(outcome) is not Return:
                require_held(t, frame)
        except (GraphBreak, SkipFrame) as cause:
            cause.places = cause.places or frame.places()
            raise
        if outcome is None:
            frame.index += 1
        elif type(outcome) is int:
            frame.index = at[outcome]
        else:
            if type(outcome) is Yield:
                frame.index += 1
            return outcome


def step(t, frame: Frame, ins: Instruction) -> Return | Yield | int | None:
    """Executes one instruction."""
    handler = HANDLERS.get(ins.opname)
    if handler is None:
        reason, detail = REFUSED[ins.opname]
        raise GraphBreak(reason, detail)
    return handler(t, frame, ins)


def unwind(t, frame: Frame, ins: Instruction, raised: ExceptionVariable) -> int | None:
    """Moves to the handler of an exception, as the exception table says; returns its offset, or
    None where the frame has none."""
    raised.raised = raised.raised or t.step
    entry = frame.decoded.handler(ins.offset)
    if entry is None:
        return None
    if frame.caller is None and ins.opname != "RERAISE":
        frame.raised_at = t.step
    if frame is t.root:
        for value in frame.stack[entry.depth :]:
            dropped(t, value)
    del frame.stack[entry.depth :]
    if entry.lasti:
        frame.push(Constant(ins.offset))
    frame.push(raised)
    return entry.target
