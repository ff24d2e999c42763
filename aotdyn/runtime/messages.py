"""Warnings and messages of logs, told from the place in the program that they come from."""

import functools
import logging
import sys
import warnings
from types import CodeType
from typing import Any

from torch.nn import Module
from torch.nn.modules import module as torch_module

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from .cpython import is_internal


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


def filters_changed() -> None:
    """What `warnings` notes where its filters change: what was shown once may be shown again."""
    warnings._filters_mutated()  # type: ignore[attr-defined]


def warn_above(message: Any, category: type[Warning], level: int) -> None:
    """As `warnings.warn` from so far above the entry that is being run. Where the runtime calls a
    module's `forward` itself, the frames of torch that are not there count as if they were."""
    frame, last = sys._getframe(1), None
    while frame is not None and level > 0:
        code = frame.f_code
        if code in module_calls:
            missing = _torchs_places()[last is Module._call_impl.__code__ :]
            if level <= len(missing):
                registry = vars(torch_module).setdefault("__warningregistry__", {})
                file, name = Module._call_impl.__code__.co_filename, torch_module.__name__
                line = missing[level - 1]
                warnings.warn_explicit(message, category, file, line, name, registry)
                return
            level -= len(missing)
        elif not is_internal(code):
            level, last = level - 1, code
        frame = frame.f_back if level else frame
    while frame is not None and is_internal(frame.f_code):
        frame = frame.f_back
    if frame is None:
        # As Python does from above the outermost frame.
        warnings.warn_explicit(message, category, "sys", 1)
        return
    warn_at(message, category, frame.f_code, frame.f_lasti, frame.f_globals)


# The code of what calls `forward` without the frames of torch.
module_calls: set[CodeType] = set()


@functools.cache
def _torchs_places() -> list[int]:
    """The lines at which torch calls a module's `forward`, from the inside to the outside."""

    class Probe(Module):
        def forward(self) -> list[int]:
            inner = sys._getframe(1)
            return [inner.f_lineno, inner.f_back.f_lineno]

    return Probe()()


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
