"""The guard on classes: what a trace has looked up in their namespaces is still what was there.

As long as no namespace has changed at all, only version numbers are compared. Functions and
descriptors must be the very objects that they were when the variant was linked; other values are
guarded where they are used.
"""

import gc
import operator
from collections.abc import Callable
from typing import Any

import torch

from ..package.reference import Classes, ClassFacts, Reference, class_name

_mro = operator.attrgetter("__mro__")
# The version number of a dict, which CPython 3.11 changes with every change of the dict.
_version = torch._C._dynamo.guards.dict_version


def class_check(reference: Classes, resolve: Callable[[Reference], Any]) -> Callable[[], bool]:
    """Whether the facts about classes hold; `resolve` gives the class of a reference. Its attribute
    `broken` tells the first fact that does not, in words."""
    found = [(resolve(facts.cls), facts) for facts in reference.facts]
    classes = [cls for cls, _ in found]
    known: tuple[list, list] = ([], [])

    def check() -> bool:
        mros, versions = known
        if [*map(_mro, classes)] == mros and [*map(_version, namespaces)] == versions:
            return True
        return slow()

    def slow() -> bool:
        versions = [*map(_version, namespaces)]
        if broken():
            return False
        known[0][:], known[1][:] = map(_mro, classes), versions
        return True

    def broken() -> str:
        told = (broken_fact(cls, facts, held) for (cls, facts), held in zip(found, linked))
        return next(filter(None, told), "")

    namespaces = _namespaces(found)
    linked = [_behaviour(cls, facts) for cls, facts in found]
    check.broken = broken
    return check


def _namespaces(found: list[tuple[type, ClassFacts]]) -> list[dict]:
    """The namespaces that any fact is about."""
    result: dict[int, dict] = {}
    for cls, facts in found:
        for index in {index for index, _, _ in facts.members}:
            if index < len(cls.__mro__):
                # A class shows its namespace through a read-only proxy only.
                (namespace,) = gc.get_referents(cls.__mro__[index].__dict__)
                result[id(namespace)] = namespace
    return list(result.values())


def _behaviour(cls: type, facts: ClassFacts) -> dict[tuple[int, str], Any]:
    """The functions and descriptors among the members, by (index into the MRO, name)."""
    mro = cls.__mro__
    members = {
        (index, name): mro[index].__dict__.get(name)
        for index, name, _ in facts.members
        if index < len(mro)
    }
    return {place: held for place, held in members.items() if hasattr(type(held), "__get__")}


def broken_fact(cls: type, facts: ClassFacts, linked: dict[tuple[int, str], Any]) -> str:
    """The first fact about a class that does not hold, in words; "" if all do. linked: what
    `_behaviour` was."""
    mro = tuple(map(class_name, cls.__mro__))
    if mro != facts.order:
        return f"{class_name(cls)} inherits from {', '.join(mro[1:])}"
    for index, name, kind in facts.members:
        base = cls.__mro__[index]
        held = base.__dict__.get(name, _ABSENT)
        actual = "" if held is _ABSENT else class_name(type(held))
        if actual != kind:
            before = f"a {kind.rpartition(':')[2]}" if kind else "not there"
            now = f"a {actual.rpartition(':')[2]}" if actual else "not there"
            return f"{name} of {class_name(base)} was {before} and is {now}"
        if linked.get((index, name), held) is not held:
            return f"{name} of {class_name(base)} is another {actual.rpartition(':')[2]}"
    return ""


_ABSENT = object()
