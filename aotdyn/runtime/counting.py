"""How often variants that break their graph are used while something is being recorded."""

from collections.abc import Callable
from typing import Any

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from .cpython import internal
from .link import Linked


class Counted:
    """Takes the place of a variant's body while its uses are counted."""

    def __init__(self, entry, linked: Linked):
        self.entry = entry
        self.linked = linked
        self.count = 0
        self._body: Callable[..., Any] = linked.body
        linked.body = self

    @internal
    def __call__(self, inputs: tuple, *values: Any) -> Any:
        self.count += 1
        try:
            return self._body(inputs, *values)
        finally:
            del inputs, values  # see `entry.dispatch`

    def end(self) -> None:
        """Puts the body back."""
        if self.linked.body is self:
            self.linked.body = self._body
            self.entry.refresh()
