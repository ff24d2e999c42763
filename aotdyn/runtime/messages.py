"""Warnings and messages of logs, told from the place in the program that they come from."""

import logging
import warnings
from types import CodeType
from typing import Any

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401


def warn_at(
    message: Any, category: type[Warning], code: CodeType, offset: int, names: dict[str, Any]
) -> None:
    """As `warnings.warn` from an instruction of a function with these globals."""
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__")
    warnings.warn_explicit(
        message, category, code.co_filename, _line(code, offset),
        module if isinstance(module, str) else "<string>", registry,
    )  # fmt: skip


def warn_above(message: Any, category: type[Warning], level: int) -> None:
    """As `warnings.warn` from so far above the entry that is being run."""
    # The runtime's other frames do not count.
    warnings.warn(message, category, stacklevel=level + 1)


def log_at(
    logger: logging.Logger, level: int, message: str, args: tuple, code: CodeType, offset: int
) -> None:
    """As `logger.log` from an instruction of a function."""
    place = code.co_filename, _line(code, offset)
    record = logger.makeRecord(logger.name, level, *place, message, args, None, code.co_name)
    logger.handle(record)


def _line(code: CodeType, offset: int) -> int:
    """The line of an instruction, the function's first one where it has none."""
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno
