"""What becomes of a warning, or of what is logged, as far as it decides how a program goes on."""

import logging
import warnings
from types import BuiltinMethodType, FunctionType
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


def is_only_told(category: type[Warning], text: str, listed: bool) -> bool:
    """Whether a warning is shown, or passed over, and nothing else comes of it. listed: whether a
    list gets it."""
    return not may_raise(category, text) and not _is_given_away() and listed is _is_listed()


def _is_given_away() -> bool:
    """Whether code of the program is called for a warning."""
    shown = warnings.showwarning
    own = type(shown) is FunctionType and shown.__module__ in ("warnings", "logging")
    return not own or not _is_listed() and type(warnings._showwarnmsg_impl) is not FunctionType


def _is_listed() -> bool:
    return type(list_of_warnings()) is list


def list_of_warnings() -> Any:
    """The list that gets warnings, as within `catch_warnings(record=True)`; None if none does."""
    receiver = warnings._showwarnmsg_impl
    return receiver.__self__ if type(receiver) is BuiltinMethodType else None


def receivers(logger: logging.Logger) -> list[Any]:
    """The handlers that get what is logged, and what they hold, which they may change then."""
    found: list[Any] = []
    each: Any = logger
    while each is not None:
        found += each.handlers
        each = each.parent if each.propagate else None
    return [*found, *(held for handler in found for held in vars(handler).values())]


def _matches(pattern: Any, text: str) -> bool:
    if pattern is None:
        return True
    return pattern == text if type(pattern) is str else pattern.match(text) is not None
