"""Functions, methods and `super()`."""

from types import CodeType, FunctionType, MethodType

from ...package.reference import CodeOf, Import
from ...package.source import Source
from .base import Variable
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

    def __init__(self, cls: type, self_: Variable):
        super().__init__()
        self.cls = cls
        self.self_ = self_

    @property
    def type(self) -> type:
        return super
