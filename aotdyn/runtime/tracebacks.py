"""What a program sees of a traceback: its own frames. Those of the runtime that stand between them
are taken out where an exception leaves a frame, and where a handler gets it."""

import os
from types import TracebackType

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PROGRAMS = os.path.join(_PACKAGE, "examples") + os.sep
# So far down it is looked: what is below has left a frame before.
_DEEPEST = 64


def is_ours(filename: str) -> bool:
    """Whether code from a file stands between a program's frames: the runtime, generated text."""
    return filename.startswith(("<aotdyn ", _PACKAGE)) and not filename.startswith(_PROGRAMS)


def without_ours(error: BaseException) -> None:
    """Takes the runtime's frames out of the traceback of what the program has raised. An error of
    our own tells where it comes from."""
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None and len(frames) < _DEEPEST:
        frames.append(trace)
        trace = trace.tb_next
    kept = [each for each in frames if not is_ours(each.tb_frame.f_code.co_filename)]
    if not kept or trace is None and kept[-1] is not frames[-1]:
        return
    for each, following in zip(kept, kept[1:]):
        if each.tb_next is not following:
            each.tb_next = following
    error.__traceback__ = kept[0]


def thrown(error: BaseException) -> BaseException:
    """An exception that a step of a body has raised, as the frame's handlers are to find it: as if
    the frame itself had raised it."""
    without_ours(error)
    return error
