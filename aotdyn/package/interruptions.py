"""Exceptions that come from outside of what is run: a time limit that a handler of a signal raises,
or that another thread puts into this one. Nobody may take them for a failure of the work."""

import os
import signal
import sys
import threading
import traceback
from types import CodeType
from typing import Any

import torch

from .own_builtins import BUILTINS as __builtins__  # noqa: F401

_OURS = os.path.dirname(os.path.abspath(__file__))
_OWN = tuple(os.path.dirname(path) + os.sep for path in (os.path.abspath(torch.__file__), _OURS))


def require_own(error: BaseException) -> None:
    """Raises an exception again that has come from outside while code of ours or of torch ran."""
    if is_interruption(error):
        raise error


def is_interruption(error: BaseException) -> bool:
    """Whether an exception has come from outside while code of ours or of torch ran."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    if threading.current_thread() is threading.main_thread():
        # Handlers run in the main thread, on top of whatever it does.
        handlers = {_code_of(signal.getsignal(each)) for each in signal.valid_signals()} - {None}
        if not handlers.isdisjoint(codes):
            return True
    return bool(codes) and _is_of_program(type(error)) and _is_own(codes[-1])


def _code_of(handler: Any) -> CodeType | None:
    """The code that runs when a handler is called; None for those of C."""
    for _ in range(4):
        code = getattr(handler, "__code__", None)
        if isinstance(code, CodeType):
            return code
        inner = getattr(handler, "func", None) or getattr(handler, "__func__", None)
        handler = inner if callable(inner) else vars(type(handler)).get("__call__")
    return None


def _is_of_program(kind: type) -> bool:
    """Whether neither Python, nor torch and what it stands on, has such exceptions."""
    root = str(kind.__module__).partition(".")[0]
    return root not in ("torch", "sympy", "numpy", "aotdyn") and root not in sys.stdlib_module_names


def _is_own(code: CodeType) -> bool:
    """Whether code of ours or of torch, which raises nothing of the program's, has raised."""
    return code.co_filename.startswith(("<aotdyn ", *_OWN))
