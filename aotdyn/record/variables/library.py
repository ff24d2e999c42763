"""Objects of C classes that their constructor's arguments describe, and iterators of the library
whose work a polyfill does."""

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from ...package.source import Source
from .base import Variable
from .iterators import IteratorVariable


class BuiltVariable(Variable):
    """An immutable object that `maker(*args, **kwargs)` gives: `operator.itemgetter(0)`.

    cls: its type. polyfill: what calling it does, called with `args` in a tuple, `kwargs` in a
    dict, and the arguments of the call.
    """

    __slots__ = ("maker", "cls", "args", "kwargs", "polyfill")

    def __init__(
        self, maker: Any, cls: type, args: list[Variable], kwargs: dict[str, Variable],
        polyfill: FunctionType, source: Source | None = None,
    ):  # fmt: skip
        super().__init__(source)
        self.maker = maker
        self.cls = cls
        self.args = args
        self.kwargs = kwargs
        self.polyfill = polyfill

    @property
    def type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return self.cls.__qualname__


class PartialVariable(Variable):
    """`functools.partial`. args: variables; kwargs: by name. live: one that came in.
    attributes: what was set on one that the frame made."""

    __slots__ = ("cls", "function", "args", "kwargs", "live", "attributes")

    def __init__(
        self, cls: type, function: Variable, args: list[Variable], kwargs: dict[str, Variable],
        source: Source | None = None, live: Any = None,
    ):  # fmt: skip
        super().__init__(source)
        self.live = live
        self.attributes: dict[str, Variable] = {}
        self.cls = cls
        self.function = function
        self.args = args
        self.kwargs = kwargs

    @property
    def type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return "partial"


class LibraryIterator(IteratorVariable):
    """An iterator of a C class. inner: what a polyfill gave, advanced in its place.

    maker, args, kwargs: make it anew as long as it has not been advanced; the maker by its name in
    its module. over: it has ended, or raised; what one of C does then, the polyfill does not know.
    """

    __slots__ = ("cls", "maker", "args", "kwargs", "inner", "started", "over")

    def __init__(
        self, cls: type, args: list[Variable], kwargs: dict[str, Variable], inner: Variable
    ):
        super().__init__()
        self.cls = cls
        self.maker = cls.__name__
        self.args = args
        self.kwargs = kwargs
        self.inner = inner
        self.started = False
        self.over = False

    @property
    def type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return self.cls.__qualname__


class PoolIterator(IteratorVariable):
    """Rows of items of these pools, or of the one that there is. places: gives where each item of
    the next row is in its pool. count: how many rows were taken."""

    __slots__ = ("pools", "places", "count")

    def __init__(self, pools: list[list[Variable]], places: Iterator[tuple[int, ...]]):
        super().__init__()
        self.pools = pools
        self.places = places
        self.count = 0
