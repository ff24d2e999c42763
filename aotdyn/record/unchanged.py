"""Which guards follow from dictionaries being unchanged since they last held: `check` asks for the
versions of the dictionaries instead (see `runtime/verified.py`).

A version tells which objects a dict holds. That decides a guard about keys; one about the value of
a key only where the object cannot change: a class of C is never changed, nor is the value of a
string. Everything else, the class of an instance to begin with, is looked at in each call.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import torch

from ..package.arrays import SCALARS
from ..package.guard import Guard
from ..package.reference import Import
from ..package.source import Attribute, Item, Local, OwnDict, ReferredItem, Source, TypeOf

_DICT, _TUPLE = Import("builtins", "dict"), Import("builtins", "tuple")
_ABOUT_KEYS = {"HAS", "LACKS", "KEYS", "LENGTH", "EMPTY", "NONEMPTY"}
_FIXED_TYPES = {
    Import("builtins", name)
    for name in ("dict", "list", "tuple", "set", "frozenset", "int", "float", "complex", "bool",
                 "str", "bytes")
}  # fmt: skip
_FIXED_VALUES = (
    type(None), type(...), bool, int, float, complex, str, bytes, torch.dtype, torch.device,
    torch.layout, torch.memory_format, *SCALARS,
)  # fmt: skip

# What things cost, in lookups of an item: the registries of a module's hooks, the version of a
# dict, and asking at all.
REGISTRIES, VERSION, ASKING = 5, 2.5, 6


@dataclass
class Unchanged:
    """The dictionaries reached from one root, and the guards that follow from their versions.

    modules: the own dictionaries of those whose hooks are among the guards.
    """

    root: Source
    dicts: list[Source] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    modules: list[Source] = field(default_factory=list)

    @property
    def owner(self) -> Source:
        """The object with whose end what is known of the dictionaries goes."""
        return own_dict_of(self.dicts[0]) or self.root


def unchanged(guards: list[Guard], written: Iterable[Source]) -> list[Unchanged]:
    """The roots for which asking for versions is cheaper than the guards. written: objects and
    dicts that the variant changes, so that their versions are never those of the call before."""
    by_root: dict[Source, Unchanged] = {}
    for of, decided in _by_dict(guards, set(written)).items():
        if _cost(decided) > VERSION:
            group = by_root.setdefault(_root(of), Unchanged(_root(of)))
            group.dicts.append(of)
            group.guards += decided
            group.modules += [of for guard in decided if guard.kind == "NO_HOOKS"]
    found = [
        group for group in by_root.values()
        if _cost(group.guards) > ASKING + VERSION * len(group.dicts)
    ]  # fmt: skip
    on_the_way = {source for group in found for of in group.dicts for source in above(of)}
    for group in found:
        # What a path leads through is looked at before the path is followed.
        group.guards = [
            g for g in group.guards
            if g.kind in _ABOUT_KEYS or g.kind == "NO_HOOKS" or g.source not in on_the_way
        ]  # fmt: skip
    return found


def _by_dict(guards: list[Guard], written: set[Source]) -> dict[Source, list[Guard]]:
    """The guards that an exact dict decides, by dict."""
    known = _Known(guards, written)
    result: dict[Source, list[Guard]] = {}
    for guard in guards:
        of = known.decider(guard)
        if of is not None:
            result.setdefault(of, []).append(guard)
    return result


class _Known:
    """What guards say of the types of things. written: see `unchanged`."""

    def __init__(self, guards: list[Guard], written: set[Source]):
        self.types = {g.source: g.expected for g in guards if g.kind == "TYPE"}
        self.instances = self.types.keys() | {
            g.source.of for g in guards if g.kind == "CLASS_LIKE" and isinstance(g.source, TypeOf)
        }
        self.written = written

    def decider(self, guard: Guard) -> Source | None:
        """The dict whose contents decide a guard, if there is one."""
        source = guard.source
        if source is None:
            return None
        if guard.kind == "NO_HOOKS":
            source = Attribute(source, "__dict__")
        elif guard.kind not in _ABOUT_KEYS:
            return self._holder(source) if _is_fixed(guard) else None
        if self._is_dict(source):
            return source
        return self._holder(source) if self.types.get(source) == _TUPLE else None

    def _is_dict(self, source: Source) -> bool:
        owner = own_dict_of(source)
        if source in self.written or owner in self.written:
            return False
        return self.types.get(source) == _DICT or owner is not None and owner in self.instances

    def _holder(self, source: Source) -> Source | None:
        """The dict that holds an object, itself or within tuples."""
        while isinstance(source, Item | ReferredItem):
            source = source.of
            if self._is_dict(source):
                return source
            if self.types.get(source) != _TUPLE:
                return None
        return None


def _is_fixed(guard: Guard) -> bool:
    """Whether a guard holds of an object for ever if it holds of it once."""
    return (
        guard.kind == "IS"
        or guard.kind == "TYPE" and guard.expected in _FIXED_TYPES
        or guard.kind == "EQUALS" and isinstance(guard.expected, _FIXED_VALUES)
    )


def above(source: Source) -> Iterator[Source]:
    """What a source is reached through, from the inside out."""
    while (base := source.base) is not None:
        yield base
        source = base


def own_dict_of(source: Source) -> Source | None:
    """The object whose own dictionary a source is."""
    if isinstance(source, OwnDict) or isinstance(source, Attribute) and source.name == "__dict__":
        return source.of
    return None


def _root(source: Source) -> Source:
    """The frame's value, or the global variable, that a source starts from."""
    path = [source, *above(source)]
    if isinstance(path[-1], Local):
        return path[-1]
    return next((each for each in reversed(path) if isinstance(each, Item)), path[-1])


def _cost(guards: list[Guard]) -> float:
    return sum(
        REGISTRIES if g.kind == "NO_HOOKS" else len(g.expected) / 4 if g.kind == "KEYS" else 1
        for g in guards
    )
