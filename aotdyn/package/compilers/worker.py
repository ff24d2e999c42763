"""Worker processes: jobs go in as bytes, results come out as bytes, one at a time.

A worker is a fresh interpreter, so that nothing a program has done to this process reaches its
jobs, and a job that crashes takes no more than its worker along.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from ..errors import AotdynError

_LENGTH = 8


class WorkerDied(AotdynError):
    """A worker ended in the middle of a job. The message says how."""


class WorkersClosed(AotdynError):
    """There are no workers any more: what they were wanted for was interrupted."""


def _send(channel: BinaryIO, data: bytes) -> None:
    channel.write(len(data).to_bytes(_LENGTH, "little"))
    channel.write(data)
    channel.flush()


def _receive(channel: BinaryIO) -> bytes | None:
    head = channel.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    data = channel.read(int.from_bytes(head, "little"))
    return data


def serve(handle: Callable[[bytes], bytes]) -> None:
    """The worker's side: handles jobs until there are no more. `print` goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (job := _receive(sys.stdin.buffer)) is not None:
        _send(answers, handle(job))


class Worker:
    """One process that runs a module which calls `serve`."""

    def __init__(self, module: str, environment: dict[str, str] | None = None):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        path = os.pathsep.join(part or os.getcwd() for part in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": path, **(environment or {})},
            start_new_session=True,  # an interrupt from the keyboard is for us, not for it
        )

    def run(self, job: bytes) -> bytes:
        """The result of a job. Raises WorkerDied."""
        try:
            _send(self._process.stdin, job)
            found = _receive(self._process.stdout)
        except (OSError, ValueError):  # ValueError: `close` has closed the pipes meanwhile
            found = None
        if found is None:
            raise WorkerDied(self._end())
        return found

    def _end(self) -> str:
        code = self._process.wait()
        try:
            self._errors.seek(0)
            lines = self._errors.read().decode(errors="replace").strip().splitlines()
        except ValueError:
            return "the process was ended"
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"the process died of {signal.Signals(-code).name}"
        return f"the process ended: {lines[-1][:200] if lines else f'exit status {code}'}"

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()


class Workers:
    """Workers of one module; started when they are needed, kept for the next job."""

    def __init__(self, module: str, environment: dict[str, str] | None = None):
        self._module = module
        self._environment = environment
        self._idle: list[Worker] = []
        self._all: list[Worker] = []
        self._lock = threading.Lock()
        self._closed = False

    def run(self, job: bytes) -> bytes:
        """The result of a job, by a worker that has nothing else to do.

        Raises WorkerDied; WorkersClosed once they are closed, also in the middle of a job.
        """
        worker = self._free()
        try:
            return worker.run(job)
        except WorkerDied:
            if self._closed:
                raise WorkersClosed("interrupted") from None
            raise
        finally:
            if worker.alive:
                with self._lock:
                    self._idle.append(worker)

    def _free(self) -> Worker:
        with self._lock:
            if self._closed:
                raise WorkersClosed("interrupted")
            worker = self._idle.pop() if self._idle else None
            if worker is None or not worker.alive:
                worker = Worker(self._module, self._environment)
                self._all.append(worker)
            return worker

    def close(self) -> None:
        """Ends all of them, for good."""
        with self._lock:
            self._closed = True
            workers, self._all, self._idle = self._all, [], []
        for worker in workers:
            worker.close()

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
