"""Variables: what the tracer knows of a value.

    unknown  (Lazy: a live value nobody has looked at; no guard yet)
       |
     type    (Tensor, Symbolic, Object: exact type known, value only at run time)
       |
   structure (List, Tuple, Dict, Function, Cell, iterators: made of other variables)
       |
    constant (Constant, Known: the value itself)

What is known only grows: a Lazy is realized once and never goes back.
"""

from types import BuiltinFunctionType
from typing import Any

from ...package.source import Source
from ..signals import GraphBreak, NotConstant


class Variable:
    """A value in the traced program.

    source: how it is reached from the frame, None for what the frame made itself.
    origin: the step of the root frame that made it, -1 for what came in.
    """

    __slots__ = ("source", "origin")

    def __init__(self, source: Source | None = None):
        self.source = source
        self.origin = -1

    @property
    def type(self) -> type:
        """The exact Python type. Raises GraphBreak where it is not known."""
        raise GraphBreak("unknown_type", type(self).__name__)

    def constant(self) -> Any:
        """The Python value. Raises NotConstant where it is not known while tracing."""
        raise NotConstant(type(self).__name__)

    def describe(self) -> str:
        """For messages to the user."""
        return type(self).__name__.lower()


class Lazy(Variable):
    """A live value that nobody has looked at: passing it on needs no guard."""

    __slots__ = ("value", "known")

    def __init__(self, value: Any, source: Source):
        super().__init__(source)
        self.value = value
        self.known: Variable | None = None

    def describe(self) -> str:
        return type(self.value).__name__


class Null(Variable):
    """CPython's NULL on the stack, below a callable."""

    __slots__ = ()


class Opaque(Variable):
    """A live value of a kind without rules: it can be passed on, and every use breaks."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source):
        super().__init__(source)
        self.value = value

    @property
    def type(self) -> type:
        return type(self.value)

    def describe(self) -> str:
        kind = type(self.value)
        named = self.value if kind is BuiltinFunctionType else kind
        return named.__qualname__


class Varying(Opaque):
    """A value that had another one at most calls: a variant for each would serve nobody."""

    __slots__ = ()

    def describe(self) -> str:
        return f"{type(self.value).__qualname__} that differs between calls"


class Constant(Variable):
    """A plain immutable value, known entirely."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None):
        super().__init__(source)
        self.value = value

    @property
    def type(self) -> type:
        return type(self.value)

    def constant(self) -> Any:
        return self.value

    def describe(self) -> str:
        kind = type(self.value).__name__
        if type(self.value) is int and self.value.bit_length() > 1000:
            return f"{kind} of {self.value.bit_length()} bits"
        return f"{kind} {self.value!r}"


class Known(Variable):
    """An object that is known by identity: a class, a module, a function of C or torch, an
    enum member. Its attributes are followed, its contents never copied."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None):
        super().__init__(source)
        self.value = value

    @property
    def type(self) -> type:
        return type(self.value)

    def constant(self) -> Any:
        return self.value

    def describe(self) -> str:
        value = self.value
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        if name:
            return name
        # A member of an enum may still be without a name.
        kind = type(value).__qualname__
        member = getattr(value, "__dict__", {}).get("_name_")
        return f"{kind}.{member}" if member else f"a {kind}"


class Alias(Known):
    """`list[int]`, `int | None`, `Optional[int]`, a `NewType`, a pattern of `re`: known entirely,
    by what it is made of."""

    __slots__ = ()
