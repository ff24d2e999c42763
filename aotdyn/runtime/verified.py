"""What guards found in dictionaries, remembered by the versions of these dictionaries.

CPython 3.11 gives a dict a new version number with every change of what it holds, and no number
twice in a process: where the versions are those of an earlier call, the dicts hold the very same
objects, and guards that depend on nothing else hold again.
"""

import weakref
from typing import Any

import torch

from ..package.modules import hook_registries
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401

_version = torch._C._dynamo.guards.dict_version

# How many objects (layers of one class, say) are remembered at once.
CAPACITY = 128
# So often are others remembered instead; dicts that change between all calls are not worth it.
ROUNDS = 3


class VerifiedDicts:
    """The dicts that one variant's guards look at from one root: `before` asks, `now` notes.

    Nothing of the program is kept alive but the registries of hooks of its modules, which are
    empty when they are noted: hooks are put in them without a change of the modules' own dicts.
    """

    def __init__(self) -> None:
        # The first version -> (all versions, registries of hooks, the root's end)
        self._known: dict[int, tuple[list[int], list[dict], Any]] = {}
        self._rounds = 0

    def before(self, dicts: tuple) -> bool:
        """Whether these dicts held the same when guards about them held, and hooks are none."""
        known = self._known
        if not known:
            return False
        try:
            versions = [*map(_version, dicts)]
        except RuntimeError:  # one is no dict, which the guards will say
            return False
        found = known.get(versions[0])
        return found is not None and found[0] == versions and not any(found[1])

    def now(self, root: Any, dicts: tuple, modules: tuple) -> None:
        """Notes that the guards hold. root: where all are reached from; what is known of them goes
        with it. modules: the own dicts of those modules that have no hooks."""
        if any(type(each) is not dict for each in dicts):
            # An OrderedDict in place of an object's own dict has no new version for a new order.
            return
        known = self._known
        if len(known) == CAPACITY:
            known.clear()
            self._rounds += 1
        if self._rounds == ROUNDS:
            return
        versions = [*map(_version, dicts)]
        registries = [registry for own in modules for registry in hook_registries(own)]
        first = versions[0]
        known[first] = versions, registries, _at_end(root, lambda _: known.pop(first, None))


def _at_end(root: Any, forget: Any) -> Any:
    try:
        return weakref.ref(root, forget)
    except TypeError:
        return None
