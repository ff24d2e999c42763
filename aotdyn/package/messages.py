"""What Python's filters make of a warning, as far as it decides how a program goes on."""

import warnings
from typing import Any

from .own_builtins import BUILTINS as __builtins__  # noqa: F401


def may_raise(category: type[Warning], text: str) -> bool:
    """Whether a warning may be raised as an exception: what depends on where it comes from counts
    as if it did."""
    for action, message, kind, module, line in warnings.filters:
        if not _matches(message, text) or not issubclass(category, kind):
            continue
        if action == "error":
            return True
        if module is None and not line:
            return False
    return warnings.defaultaction == "error"


def _matches(pattern: Any, text: str) -> bool:
    if pattern is None:
        return True
    return pattern == text if type(pattern) is str else pattern.match(text) is not None
