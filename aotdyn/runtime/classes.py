"""The guard on classes: what a trace has looked up in their namespaces is still what was there.

As long as no namespace has changed at all, only version numbers are compared. Functions and
descriptors must be the very objects that they were when the variant was linked; other values are
guarded where they are used.
"""

import gc
import operator
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.reference import Classes, ClassFacts, ClassLike, Reference, class_name

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
    linked = [_behaviour(cls.__mro__, facts.members) for cls, facts in found]
    check.broken = broken
    return check


def class_like(reference: ClassLike, resolve: Callable[[Reference], Any]) -> Callable[..., bool]:
    """Whether a class is what a `ClassLike` says; `broken` tells of a class what is not so.

    Nothing of a class is kept alive.
    """
    order = [each if isinstance(each, str) else resolve(each) for each in reference.order]
    metaclass = resolve(reference.metaclass)
    unnamed = [index for index, each in enumerate(order) if isinstance(each, str)]
    named = [_namespace(each) for each in order if not isinstance(each, str)]
    linked = _behaviour(order, reference.members)
    known: WeakKeyDictionary[type, tuple[tuple, list[int]]] = WeakKeyDictionary()

    def check(cls: type) -> bool:
        mro = cls.__mro__
        if len(mro) != len(order) or type(cls) is not metaclass:
            return False
        own = [_namespace(mro[index]) for index in unnamed]
        state = (mro[1:], [*map(_version, own), *map(_version, named)])
        if known.get(cls) == state:
            return True
        if broken(cls):
            return False
        known[cls] = state
        return True

    def broken(cls: type) -> str:
        if type(cls) is not metaclass:
            return f"it is a {type(cls).__name__}"
        mro = cls.__mro__
        same = (class_name(a) == b if isinstance(b, str) else a is b for a, b in zip(mro, order))
        if len(mro) != len(order) or not all(same):
            return f"it is {class_name(cls)}, which inherits from {', '.join(map(class_name, mro))}"
        if bool(cls.__dictoffset__) is not reference.own_dict:
            return "its instances have a dictionary or have none"
        return _broken_member(cls, reference.members, linked)

    check.broken = broken
    return check


def _namespace(cls: type) -> dict:
    """A class shows its namespace through a read-only proxy only."""
    (namespace,) = gc.get_referents(cls.__dict__)
    return namespace


def _namespaces(found: list[tuple[type, ClassFacts]]) -> list[dict]:
    """The namespaces that any fact is about."""
    result: dict[int, dict] = {}
    for cls, facts in found:
        for index in {index for index, _, _ in facts.members}:
            if index < len(cls.__mro__):
                namespace = _namespace(cls.__mro__[index])
                result[id(namespace)] = namespace
    return list(result.values())


def _behaviour(order: Sequence[type | str], members: tuple) -> dict[tuple[int, str], Any]:
    """The functions and descriptors among the members, by (index into the order, name). order: the
    MRO, with texts in place of classes that are not known."""
    found = {
        (index, name): order[index].__dict__.get(name)
        for index, name, _ in members
        if index < len(order) and not isinstance(order[index], str)
    }
    return {place: held for place, held in found.items() if hasattr(type(held), "__get__")}


def broken_fact(cls: type, facts: ClassFacts, linked: dict[tuple[int, str], Any]) -> str:
    """The first fact about a class that does not hold, in words; "" if all do. linked: what
    `_behaviour` was."""
    mro = tuple(map(class_name, cls.__mro__))
    if mro != facts.order:
        return f"{class_name(cls)} inherits from {', '.join(mro[1:])}"
    return _broken_member(cls, facts.members, linked)


def _broken_member(cls: type, members: tuple, linked: dict[tuple[int, str], Any]) -> str:
    """The first name that is not held as it was."""
    for index, name, kind in members:
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
