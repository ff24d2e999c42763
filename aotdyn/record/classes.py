"""What a trace has relied on in classes: which of them holds a name, and as what kind of value.

The values themselves are guarded where they are used; this says that lookups still end there.
"""

from typing import Any

from ..package.guard import Guard
from ..package.reference import ClassFacts, Import, Live, class_name
from .polyfills import is_polyfill

# Looked up on the type whenever an operation meets an instance: noted for every class at once.
_SPECIAL = (
    "__getattribute__", "__getattr__", "__setattr__", "__delattr__", "__call__", "__bool__",
    "__len__", "__eq__", "__ne__", "__hash__", "__iter__", "__next__", "__getitem__",
    "__setitem__", "__delitem__", "__contains__", "__new__", "__init__", "__class__",
)  # fmt: skip

_IMMUTABLE = 1 << 8


class ClassReliance:
    """Collects facts, by the class at which a lookup starts."""

    def __init__(self, references) -> None:
        self.references = references
        self._members: dict[type, dict[tuple[int, str], str]] = {}
        self._noted: set[type] = set()

    def note(self, cls: type) -> None:
        """An instance of a class came in or was made: its special methods matter."""
        if cls in self._noted or not _may_change(cls):
            return
        self._noted.add(cls)
        for name in _SPECIAL:
            self.lookup(cls, name)

    def lookup(self, cls: type, name: str, first: int = 0) -> None:
        """A name was looked up along the MRO of a class, from its item `first` on."""
        if self.references.is_made(cls):
            self._lookup_on_bases(cls, name, first)
            return
        members = self._members.setdefault(cls, {})
        for index, base in enumerate(cls.__mro__[first:], first):
            if _may_change(base):
                members[index, name] = _kind_held(base, name)
            if name in base.__dict__:
                return

    def _lookup_on_bases(self, cls: type, name: str, first: int) -> None:
        """For a class that the trace has made: each of its bases has the name, or lacks it."""
        for base in cls.__mro__[first:]:
            if not self.references.is_made(base) and _may_change(base):
                self._members.setdefault(base, {})[0, name] = _kind_held(base, name)
            if name in base.__dict__:
                return

    def guards(self) -> list[Guard]:
        """One guard for all classes."""
        facts = tuple(self._facts(cls) for cls, found in self._members.items() if found)
        return [Guard("CLASSES", None, facts)] if facts else []

    def _facts(self, cls: type) -> ClassFacts:
        reference: Any = self.references.to(cls)
        assert isinstance(reference, Import | Live)
        members = tuple((index, name, kind) for (index, name), kind in self._members[cls].items())
        return ClassFacts(reference, tuple(map(class_name, cls.__mro__)), members)


def _kind_held(cls: type, name: str) -> str:
    """The kind of value that a class itself holds under a name; "" where it holds none."""
    return class_name(type(cls.__dict__[name])) if name in cls.__dict__ else ""


def _may_change(cls: type) -> bool:
    """Whether attributes of a class can be set: classes of C are fixed."""
    return not cls.__flags__ & _IMMUTABLE and not is_polyfill(cls.__module__)
