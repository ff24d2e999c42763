"""What bodies call at a graph break: exceptions handed to the frame's handlers, operations run
while an exception is being handled. Offered to generated text by `support.py`."""

import os
from collections.abc import Callable
from typing import Any

from .hook import hookless

_RUNTIME = os.path.dirname(os.path.abspath(__file__)) + os.sep


def thrown(error: BaseException) -> BaseException:
    """An exception that a step of a body has raised, without the runtime's frames in its
    traceback: the frame's handlers are to find it as the frame itself had raised it."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return error.with_traceback(trace)


def _is_ours(filename: str) -> bool:
    return filename.startswith(("<aotdyn ", _RUNTIME))


@hookless
def handling(error: BaseException, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Calls a function while an exception is being handled."""
    context, trace = error.__context__, error.__traceback__
    try:
        raise error
    except BaseException:
        error.__context__, error.__traceback__ = context, trace
        return function(*args, **kwargs)
