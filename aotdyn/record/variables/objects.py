"""Instances of user-defined classes, modules among them, and exceptions."""

from typing import Any

from ...package.source import Source
from .base import Variable
from .containers import TupleVariable

DELETED = object()


class ObjectVariable(Variable):
    """An instance of a Python class.

    live: the object where it existed before the frame, else None: the frame made it.
    attributes: what was set while tracing, by name; DELETED where it was deleted.
    """

    __slots__ = ("cls", "live", "attributes")

    def __init__(self, cls: type, live: Any = None, source: Source | None = None):
        super().__init__(source)
        self.cls = cls
        self.live = live
        self.attributes: dict[str, Any] = {}

    @property
    def type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"{self.cls.__qualname__} object"


class ExceptionVariable(ObjectVariable):
    """An exception that the traced program made. args: a tuple variable."""

    __slots__ = ("args", "cause", "context")

    def __init__(self, cls: type, args: TupleVariable):
        super().__init__(cls)
        self.args = args
        self.cause: Variable | None = None
        self.context: Variable | None = None
