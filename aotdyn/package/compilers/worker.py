"""Worker processes: jobs go in as bytes, results come out as bytes, one at a time.

A worker is a fresh interpreter, or was forked from one, so that nothing a program has done to this
process reaches its jobs, and a job that crashes takes no more than its worker along.
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
from .forks import Forked, ForkServer, WorkerDied, module_path

_LENGTH = 8


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
    """One process that runs the `main` of a module, which calls `serve`."""

    def __init__(
        self, module: str, environment: dict[str, str], server: ForkServer | None = None
    ):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        theirs, stdin = os.pipe()
        stdout, ours = os.pipe()
        self._stdin, self._stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        files = (theirs, ours, self._errors.fileno())
        try:
            if server is None:
                self._process: Forked | subprocess.Popen = _fresh(module, environment, files)
            else:
                self._process = server.fork(module, files, environment)
        except BaseException:
            self._close_files()
            raise
        finally:
            os.close(theirs)
            os.close(ours)

    def run(self, job: bytes) -> bytes:
        """The result of a job. Raises WorkerDied."""
        try:
            _send(self._stdin, job)
            found = _receive(self._stdout)
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
        self._process.kill()
        self._process.wait()
        self._close_files()

    def _close_files(self) -> None:
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stdout.close()
        self._errors.close()


def _fresh(module: str, environment: dict[str, str], files: tuple[int, ...]) -> subprocess.Popen:
    stdin, stdout, stderr = files
    return subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(module_path()), **environment},
        start_new_session=True,  # an interrupt from the keyboard is for us, not for it
    )


class Workers:
    """Workers of one module; started when they are needed, kept for the next job.

    server: what they are forked from; fresh interpreters without.
    """

    def __init__(
        self,
        module: str,
        environment: dict[str, str] | None = None,
        server: ForkServer | None = None,
    ):
        self._module = module
        self._environment = environment or {}
        self._server = server
        self._idle: list[Worker] = []
        self._all: list[Worker] = []
        self._lock = threading.Lock()
        self._closed = False

    def run(self, job: bytes) -> bytes:
        """The result of a job, by a worker that has nothing else to do.

        Raises WorkerDied; WorkersClosed once they are closed, also in the middle of a job.
        """
        try:
            worker = self._free()
        except WorkerDied:
            with self._lock:
                self._check_open()
            raise
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
            self._check_open()
            worker = self._idle.pop() if self._idle else None
        if worker is not None and worker.alive:
            return worker
        worker = Worker(self._module, self._environment, self._server)
        with self._lock:
            self._all.append(worker)
            if not self._closed:
                return worker
        worker.close()
        raise WorkersClosed("interrupted")

    def _check_open(self) -> None:
        if self._closed:
            raise WorkersClosed("interrupted")

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
