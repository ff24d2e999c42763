"""Text that depends on values which differ between calls."""

from collections.abc import Callable
from typing import Any

from .base import Variable


class TextVariable(Variable):
    """A string that `operation(*args)` gives, of which some arguments are symbolic numbers, strings
    that differ between calls, or such text again: made after the graph.

    operation: a function of C without effects. args: variables, of plain types.
    """

    __slots__ = ("operation", "args")

    def __init__(self, operation: Callable, args: list[Variable]):
        super().__init__()
        self.operation = operation
        self.args = args

    @property
    def type(self) -> type:
        return str

    def value(self, of: Callable[[Variable], Any]) -> str:
        """The text, given how the arguments' values are found."""
        return self.operation(*(
            arg.value(of) if isinstance(arg, TextVariable) else of(arg) for arg in self.args
        ))  # fmt: skip

    def describe(self) -> str:
        return "text of a value that differs between calls"
