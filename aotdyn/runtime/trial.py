"""Frames that gain nothing: entries that break without a graph before, in or after the break.

The JIT puts such a variant on trial; after some calls, if no continuation of the frame has got a
graph either, its calls run as plain Python. Frames below are still offered to the hook.
"""

from collections.abc import Callable
from typing import Any

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from . import logs
from .cpython import internal
from .link import Linked

CALLS = 8


class Trial:
    """The body of a variant on trial. Replaces itself in the entry when the trial ends."""

    def __init__(self, entry, linked: Linked):
        self.entry = entry
        self.linked = linked
        self.body: Callable[..., Any] = linked.body
        self.left = CALLS
        linked.body = self

    @internal
    def __call__(self, inputs: tuple, *values: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            self.linked.body = self._conclude()
            self.entry.refresh()
        try:
            return self.body(inputs, *values)
        finally:
            del inputs, values  # see `entry.dispatch`

    def _conclude(self) -> Callable[..., Any]:
        entry = self.entry
        entries = (entry, *entry.children.values())
        if any(linked.variant.graph is not None for each in entries for linked in each.linked):
            return self.body
        logs.log("graph_breaks", f"{entry.key} runs as plain Python: it gains nothing")
        run_plain = entry.settings.run_plain
        return internal(lambda inputs, *values: run_plain(entry, values))


def put_on_trial(entry, linked: Linked) -> None:
    """Starts a trial where a variant at the start of a frame breaks and has no graph."""
    variant = linked.variant
    if entry.point is None and variant.breaks is not None and variant.graph is None:
        Trial(entry, linked)
