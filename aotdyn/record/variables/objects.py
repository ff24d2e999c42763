"""Instances of user-defined classes, modules among them, and exceptions."""

import weakref
from typing import Any

from ...package.source import Source
from .base import Constant, Variable

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


class ValueObject(ObjectVariable):
    """An instance of a subclass of int, float, complex, str or bytes. contents: the plain value."""

    __slots__ = ("contents",)

    def __init__(
        self, cls: type, contents: Constant, live: Any = None, source: Source | None = None
    ):
        super().__init__(cls, live, source)
        self.contents = contents

    def constant(self) -> Any:
        """What C sees."""
        return self.contents.value


class ExceptionVariable(ObjectVariable):
    """An exception. args: a tuple variable (a Lazy for one that existed before the frame, whose
    cause and context are not modelled). suppressed: `raise … from` has hidden the context.
    raised: the step of the root frame in which it first was, 0 where it was not."""

    __slots__ = ("args", "cause", "context", "suppressed", "raised")

    def __init__(
        self, cls: type, args: Variable, live: Any = None, source: Source | None = None
    ):
        super().__init__(cls, live, source)
        self.args: Any = args
        self.cause: Variable | None = None
        self.context: Variable | None = None
        self.suppressed = False
        self.raised = 0


class GroupVariable(ExceptionVariable):
    """An exception group. message, exceptions: its parts, the latter a tuple."""

    __slots__ = ("message", "exceptions")


class MadeReference(Variable):
    """A weak reference that the frame has made to an object."""

    __slots__ = ("of",)

    def __init__(self, of: Variable):
        super().__init__()
        self.of = of

    @property
    def type(self) -> type:
        return weakref.ref

    def describe(self) -> str:
        return f"weak reference to {self.of.describe()}"


class HandledVariable(Variable):
    """What a handler keeps on the stack: the exception that was handled before it began.

    exception: what the handler handles; previous: what was handled before, or None. step: the
    step of the root frame that raised. active: until the handler ends.
    """

    __slots__ = ("exception", "previous", "step", "active")

    def __init__(
        self, exception: ExceptionVariable, previous: ExceptionVariable | None, step: int
    ):
        super().__init__()
        self.exception = exception
        self.previous = previous
        self.step = step
        self.active = True
