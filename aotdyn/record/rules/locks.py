"""Locks: taking one breaks, so that what the frame reads under it is read then; leaving its `with`
is an effect, and comes after all that the frame has changed."""

import threading
from typing import Any

from ...package.source import Attribute, Called
from ..signals import GraphBreak
from ..variables import Constant, ObjectVariable
from .table import rule

_LOCK, _RLOCK = type(threading.Lock()), type(threading.RLock())


@rule((_LOCK.__exit__, _RLOCK.__exit__), ObjectVariable)
def leave(t, self: ObjectVariable, *exc_info: Any) -> Constant:
    """The lock is held a little longer: until the graph has been run, and the effects written."""
    held = "locked" if isinstance(self.live, _LOCK) else "_is_owned"
    if self.source is None or id(self) in t.left or not getattr(self.live, held)():
        raise GraphBreak("unknown_call", f"{self.describe()}.__exit__")
    t.guard("EQUALS", Called(Attribute(self.source, held)), True)
    t.left.add(id(self))
    t.effects.call("leave", self)
    return Constant(None)
