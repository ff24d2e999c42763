"""A frame that is being traced: code, locals, cells, operand stack, position."""

from collections.abc import Iterator
from types import CodeType

from ..package.source import Source
from .bytecode import Decoded, Instruction, decode
from .polyfills import is_polyfill
from .variables import CellVariable, DictVariable, FunctionVariable, Variable

# Instructions that need what the one before them has just made.
_ENTERED_BEFORE = frozenset(
    ("MAKE_CELL", "COPY_FREE_VARS", "POP_EXCEPT", "MAKE_FUNCTION", "BUILD_CONST_KEY_MAP")
)


class Frame:
    """One activation of a code object.

    locals: name -> Variable; a name that is missing is unbound. cells: cell and free variables.
    globals_source: how the globals are reached, None if they cannot be.
    caller: the frame that inlined this one, None for the entry's own frame.
    """

    def __init__(
        self,
        code: CodeType,
        globals_: dict,
        globals_source: Source | None,
        function: FunctionVariable | None = None,
        caller: "Frame | None" = None,
    ):
        self.decoded: Decoded = decode(code)
        self.code = code
        self.globals = globals_
        self.globals_source = globals_source
        self.function = function
        self.caller = caller
        self.locals: dict[str, Variable] = {}
        self.cells: dict[str, CellVariable] = {}
        # The namespace of the body of a class statement, None in any other frame.
        self.names: dict[str, Variable] | None = None
        # What `locals()` has given.
        self.namespace: DictVariable | None = None
        self.stack: list[Variable] = []
        self.index = 0
        self.kw_names: tuple[str, ...] = ()
        # The step that raised what an except block of the root frame is handling.
        self.raised_at = -1

    def push(self, value: Variable) -> None:
        self.stack.append(value)

    def pop(self) -> Variable:
        return self.stack.pop()

    def pop_many(self, count: int) -> list[Variable]:
        """The topmost `count` values, in the order in which they were pushed."""
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def bound(self) -> Iterator[tuple[str, Variable | None]]:
        """All names of variables, in Python's order, with their values; None for unbound ones."""
        code = self.code
        for name in dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars)):
            cell = self.cells.get(name)
            yield name, self.locals.get(name) if cell is None else cell.content

    @property
    def instruction(self) -> Instruction:
        return self.decoded.instructions[self.index]

    @property
    def can_be_entered(self) -> bool:
        """Whether an entry can begin at the present instruction."""
        ins = self.instruction
        return ins.start == ins.offset and ins.opname not in _ENTERED_BEFORE

    @property
    def is_polyfill(self) -> bool:
        """Whether the code is the tracer's, in place of code in C."""
        return is_polyfill(self.globals.get("__name__"))

    @property
    def place(self) -> str:
        """Where the frame stands, for people: file, line and function."""
        return f"{self.code.co_filename}:{self.instruction.line} in {self.code.co_name}"

    def places(self) -> tuple[str, ...]:
        """The place of every frame from the entry's inwards."""
        outer = self.caller.places() if self.caller is not None else ()
        return outer if self.is_polyfill else (*outer, self.place)
