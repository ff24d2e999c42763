"""Instances of dict subclasses, and the own dictionary of an object."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from ...package.source import Source
from .base import Known, Variable
from .containers import DictVariable
from .objects import ObjectVariable


class MappingObject(ObjectVariable):
    """An instance of a subclass of dict, OrderedDict and defaultdict among them.

    contents: what it holds as a dict, whatever methods its class overrides. attributes: as for
    any object.
    """

    __slots__ = ("contents",)

    def __init__(self, cls: type, contents: DictVariable, live: Any = None,
                 source: Source | None = None):  # fmt: skip
        super().__init__(cls, live, source)
        self.contents = contents
        contents.owner = self


class IdentityVariable(Variable):
    """`id(of)`: its value is not known, but it can stand as a key for the object."""

    __slots__ = ("of",)

    def __init__(self, of: Variable):
        super().__init__()
        self.of = of

    @property
    def type(self) -> type:
        return int

    @property
    def key(self) -> tuple:
        """The same for the same object."""
        return (id, id(self.of.value)) if isinstance(self.of, Known) else (id, self.of)

    def describe(self) -> str:
        return "id()"


class InstanceDict(Variable):
    """`owner.__dict__`: reads and writes go to the attributes of the owner."""

    __slots__ = ("owner",)

    def __init__(self, owner: ObjectVariable):
        super().__init__()
        self.owner = owner

    @property
    def type(self) -> type:
        return dict

    def describe(self) -> str:
        return f"{self.owner.cls.__qualname__}.__dict__"


class OwnItems(DictVariable):
    """What an `InstanceDict` holds, as the table under its views and iterators: as it is each time
    that it is looked at. look: () -> its items."""

    __slots__ = ("look",)

    def __init__(self, owner: InstanceDict, look: Callable[[], dict]):
        self.look = look
        super().__init__({})
        self.owner = owner
        self.complete = True

    @property
    def items(self) -> dict:  # type: ignore[override]
        return self.look()

    @items.setter
    def items(self, items: dict) -> None:
        """There is nothing to set: attributes are set on the object."""


class ProxyVariable(Variable):
    """`types.MappingProxyType(of)`: reads what another mapping holds, and cannot be changed."""

    __slots__ = ("of",)

    def __init__(self, of: Variable, source: Source | None = None):
        super().__init__(source)
        self.of = of

    @property
    def type(self) -> type:
        return MappingProxyType
