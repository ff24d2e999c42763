"""`aotdyn.record`: records what compiled callables do inside a with block."""

import contextlib
import os
from collections.abc import Iterator

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.recording import RecordingWriter, read_recording
from . import recorder


class Session:
    """A recording that is being written, or has been."""

    def __init__(self, writer: RecordingWriter):
        self._writer = writer

    @property
    def empty(self) -> bool:
        """Whether nothing that could be packed has been recorded so far."""
        return self._writer.empty

    def summary(self) -> str:
        """One line: how much was recorded, and where."""
        return read_recording(self._writer.path).summary()


@contextlib.contextmanager
def record(
    path: str | os.PathLike, *, script: str = "", device: str = "cpu", weights: bool = False
) -> Iterator[Session]:
    """Records what compiled callables do inside to the file `path`; graphs run eagerly.

    device: a GPU target that the recording is for, such as `cuda:sm_90`; the process must have a
    GPU, or have been started to emulate it."""
    with contextlib.ExitStack() as stack:
        devices: tuple[tuple[str, str], ...] = ()
        if device != "cpu":
            # Not at the top: it belongs to the compilers.
            from ..package.compilers.gpu.emulated import emulated

            devices = stack.enter_context(emulated(device))
        writer = stack.enter_context(
            RecordingWriter(path, script=script, device=device, devices=devices)
        )
        recorder.start(writer, weights)
        try:
            yield Session(writer)
        finally:
            recorder.stop(writer)
