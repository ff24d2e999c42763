"""Classes that have no name in other processes: made in a function, or by a library around another
class. A variant knows such a class by where it met it, and by what the trace has relied on in it.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..package.guard import Guard
from ..package.reference import ClassFacts, ClassLike, Live, class_name
from ..package.source import Attribute, Bound, Derived, Item, ReferredItem, Source, TypeOf
from .references import importable


def by_their_facts(
    guards: list[Guard], inputs: list[Source], live: list[Any], fixed: Iterable[Any]
) -> tuple[list[Guard], list[Source]]:
    """The guards and sources in which such classes are reached from the frame.

    live: the objects without a name. fixed: references that generated text uses already: these
    must be the very objects.
    """
    found = _Meetings(guards, live, {ref.index for ref in fixed if isinstance(ref, Live)})
    if not found.sources:
        return guards, inputs
    return found.guards(), [found.source(each) for each in inputs]


class _Meetings:
    """sources: how each class is reached, by its index among the live objects."""

    def __init__(self, guards: list[Guard], live: list[Any], fixed: set[int]):
        self.before = guards
        self.live = live
        self.sources: dict[int, Source] = {}
        self.facts: dict[int, ClassFacts] = {}
        for guard in guards:
            if guard.kind == "CLASSES":
                for facts in guard.expected:
                    if isinstance(facts.cls, Live):
                        self.facts[facts.cls.index] = facts
        left = [
            index for index, cls in enumerate(live)
            if isinstance(cls, type) and importable(type(cls)) and index not in fixed
        ]  # fmt: skip
        while met := [index for index in left if self._meet(index)]:
            left = [index for index in left if index not in met]
        self._drop_those_still_named()

    def _meet(self, index: int) -> bool:
        """Whether there is a way to a class, through none but those that were met before."""
        for guard in self.before:
            meets = guard.kind in ("TYPE", "IS") and isinstance(guard.expected, Live)
            if meets and guard.expected.index == index:
                source = guard.source
                if _live_in(source) <= self.sources.keys():
                    self.sources[index] = TypeOf(source) if guard.kind == "TYPE" else source
                    return True
        for other in self.sources:
            order = self.live[other].__mro__
            if self.live[index] in order:  # a base of one that was met
                place = order.index(self.live[index])
                self.sources[index] = Item(Attribute(self.sources[other], "__mro__"), place)
                return True
        return False

    def _drop_those_still_named(self) -> None:
        """A class that some guard needs as an object stays one, and so do all classes whose path
        leads through it, and those that inherit from one: what stands for them tells bases by
        their names."""
        while self.sources:
            kept = [cls for index, cls in enumerate(self.live)
                    if index not in self.sources and isinstance(cls, type)]  # fmt: skip
            named = {
                index for index in self.sources
                if any(base is cls for base in self.live[index].__mro__ for cls in kept)
            }  # fmt: skip
            for guard in self.guards():
                named.update(_live_in(guard.source), _live_in(guard.expected))
            dropped = named & self.sources.keys()
            if not dropped:
                return
            for index in dropped:
                del self.sources[index]

    def guards(self) -> list[Guard]:
        """The guards, rewritten."""
        found: list[Guard] = []
        told: set[int] = set()
        for guard in self.before:
            if guard.kind == "CLASSES":
                kept = tuple(f for f in guard.expected if not self._is_met(f.cls))
                found += [replace(guard, expected=kept)] if kept else []
            elif guard.kind in ("TYPE", "IS") and self._is_met(guard.expected):
                found += self._same_class(guard, told)
            else:
                source = guard.source and self.source(guard.source)
                found.append(replace(guard, source=source, expected=self._expected(guard)))
        for index in self.sources.keys() - told:
            found.append(self._like(index, ""))
        if len(self.sources) > 1:
            found.append(Guard("DIFFERENT", None, tuple(map(self.source, self.sources.values()))))
        return found

    def _is_met(self, reference: Any) -> bool:
        return isinstance(reference, Live) and reference.index in self.sources

    def _same_class(self, guard: Guard, told: set[int]) -> list[Guard]:
        index = guard.expected.index
        source = self.source(guard.source)
        source = TypeOf(source) if guard.kind == "TYPE" else source
        if index not in told:
            told.add(index)
            found = [self._like(index, guard.user)]
        else:
            found = []
        reached = self.source(self.sources[index])
        if source != reached:
            found.append(Guard("SAME", source, reached, guard.user))
        return found

    def _like(self, index: int, user: str) -> Guard:
        cls = self.live[index]
        order = tuple(importable(base) or class_name(base) for base in cls.__mro__)
        members = self.facts[index].members if index in self.facts else ()
        metaclass = importable(type(cls))
        assert metaclass is not None
        expected = ClassLike(order, metaclass, members, bool(cls.__dictoffset__))
        return Guard("CLASS_LIKE", self.source(self.sources[index]), expected, user)

    def source(self, source: Source) -> Source:
        """A source that starts at none of the classes that are met."""
        if isinstance(source, Bound):
            if not self._is_met(source.reference):
                return source
            return self.source(self.sources[source.reference.index])
        return replace(source, of=self.source(source.of)) if isinstance(source, Derived) else source

    def _expected(self, guard: Guard) -> Any:
        """What a guard expects, where sources are among it."""
        if isinstance(guard.expected, Source):
            return self.source(guard.expected)
        if guard.kind == "DIFFERENT":
            return tuple(map(self.source, guard.expected))
        if guard.kind == "TENSORS":
            sources, metas = guard.expected
            return tuple(map(self.source, sources)), metas
        if guard.kind == "SHAPE":
            template, sources = guard.expected
            return template, tuple(map(self.source, sources))
        return guard.expected


def _live_in(value: Any) -> set[int]:
    """The indices of all live objects that something stored names."""
    if isinstance(value, Live):
        return {value.index}
    if isinstance(value, Bound):
        return _live_in(value.reference)
    if isinstance(value, ClassFacts):
        return _live_in(value.cls)
    if isinstance(value, ReferredItem):
        return _live_in(value.key) | _live_in(value.of)
    if isinstance(value, Derived):
        return _live_in(value.of)
    if isinstance(value, tuple | list):
        return set().union(*map(_live_in, value))
    return set()
