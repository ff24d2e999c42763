"""Functions, methods and `super()`."""

from types import CodeType, FunctionType, MethodType
from typing import Any

from ...package.reference import CodeOf, Import
from ...package.source import Source
from .base import Known, Variable
from .containers import CellVariable


class FunctionVariable(Variable):
    """A Python function.

    live: the function where it existed before the frame. code_reference: how the code object is
    found again, for a function that the frame made. closure: one cell per free variable.
    defaults: a variable (tuple) or None; kwdefaults: a variable (dict) or None.
    attributes: what was set on a function that the frame made.
    """

    __slots__ = (
        "code", "globals", "name", "qualname", "defaults", "kwdefaults", "closure", "live",
        "code_reference", "attributes", "annotations",
    )  # fmt: skip

    def __init__(
        self,
        code: CodeType,
        globals_: dict,
        name: str,
        qualname: str,
        closure: tuple[CellVariable, ...] = (),
        defaults: Variable | None = None,
        kwdefaults: Variable | None = None,
        source: Source | None = None,
        live: FunctionType | None = None,
        code_reference: Import | CodeOf | None = None,
    ):
        super().__init__(source)
        self.code = code
        self.globals = globals_
        self.name = name
        self.qualname = qualname
        self.closure = closure
        self.defaults = defaults
        self.kwdefaults = kwdefaults
        self.live = live
        self.code_reference = code_reference
        self.attributes: dict[str, Variable] = {}
        self.annotations: Variable | None = None

    @property
    def type(self) -> type:
        return FunctionType

    def describe(self) -> str:
        return self.qualname


class MethodVariable(Variable):
    """A callable bound to its first argument: a Python method, or a C method such as
    `list.append` of a list that the tracer knows."""

    __slots__ = ("self_", "function")

    def __init__(self, self_: Variable, function: Variable, source: Source | None = None):
        super().__init__(source)
        self.self_ = self_
        self.function = function

    @property
    def type(self) -> type:
        return MethodType

    def describe(self) -> str:
        return f"method {self.function.describe()}"


class SuperVariable(Variable):
    """`super(cls, self)`."""

    __slots__ = ("cls", "self_")

    def __init__(self, cls: type, self_: Variable, source: Source | None = None):
        super().__init__(source)
        self.cls = cls
        self.self_ = self_

    @property
    def type(self) -> type:
        return super


class ClassVariable(Known):
    """A class that the frame has made.

    value: a stand-in, a class with the same bases and members; what has no Python value while
    tracing is a stand-in there too. bases: variables. namespace: the members in order, as they
    were when it was made. steps: what was done to it since, in order: ("set", name, variable),
    ("delete", name, None), ("dataclass", "", flags). late: names of members that have been told by
    the traced program that the class has them. named: for one that a call of `maker` made, what it
    was called with. options: what a class statement gives to `enum` or `typing`. meta: what it is
    made by. quiet: that its bases are told has been traced. anew: for a dataclass with slots, the
    class that it is made of, and the flags.
    """

    __slots__ = (
        "bases", "namespace", "steps", "late", "named", "maker", "options", "meta", "quiet",
        "anew",
    )  # fmt: skip

    def __init__(self, value: type, bases: list[Variable], namespace: dict[str, Variable]):
        super().__init__(value)
        self.bases = bases
        self.namespace = namespace
        self.steps: list[tuple] = []
        self.late: set[str] = set()
        self.named: dict[str, Any] = {}
        self.maker: Any = None
        self.options: dict[str, Variable] | None = None
        self.meta: type = type(value)
        self.quiet = False
        self.anew: tuple[ClassVariable, dict] | None = None


class HolderVariable(Variable):
    """A `property`, `staticmethod` or `classmethod` of these functions. live: one that came in."""

    __slots__ = ("cls", "functions", "live")

    def __init__(
        self, cls: type, functions: dict[str, Variable], source: Source | None = None,
        live: Any = None,
    ):  # fmt: skip
        super().__init__(source)
        self.cls = cls
        self.functions = functions
        self.live = live

    @property
    def type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return self.cls.__name__
