"""A process that has imported what jobs need, and forks workers that have it from their start:
`python -m aotdyn.package.compilers.forks`.

What must hold: it is a fresh interpreter, or was forked from one, and has run nothing but imports;
it has no threads of its own. Workers of several servers can share the first one's `import torch`.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from typing import Any

from ..errors import AotdynError

_LENGTH = 8
_STANDARD = 3  # stdin, stdout, stderr

# Threads of OpenMP that wait for work do not spin: jobs compute little, and share the processors.
_PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}


class WorkerDied(AotdynError):
    """A worker ended in the middle of a job. The message says how."""


def module_path() -> list[str]:
    """Where this process finds modules, so that another one finds the same."""
    return [part or os.getcwd() for part in sys.path]


class Forked:
    """A process that a server has forked; as much of `subprocess.Popen` as is wanted."""

    def __init__(self, server: "ForkServer", pid: int):
        self._server = server
        self._status: int | None = None
        self.pid = pid

    def poll(self) -> int | None:
        """How it has ended, None while it has not."""
        if self._status is None:
            self._status = self._server.status(self.pid, wait=False)
        return self._status

    def wait(self) -> int:
        """Returns when it has ended; how."""
        if self._status is None:
            self._status = self._server.status(self.pid, wait=True)
        return self._status

    def kill(self) -> None:
        """Ends it. Its number is its own until the server has told of its end."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class ForkServer:
    """Started when it is first wanted.

    preload: a module that it imports before it forks anything; its `prepare` is called if there is
    one. parent: the server that it is forked from itself, else it is a fresh interpreter.
    """

    def __init__(self, preload: str = "", parent: "ForkServer | None" = None):
        self._preload = preload
        self._parent = parent
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: Forked | subprocess.Popen | None = None
        self._errors: Any = None
        self._closed = False

    def fork(
        self, module: str, files: Sequence[int], environment: dict[str, str], argument: str = ""
    ) -> Forked:
        """A process that runs `main` of a module, with these files as stdin, stdout and stderr.

        environment: what is added to that of this process. Raises WorkerDied.
        """
        request = {
            "module": module,
            "argument": argument,
            "path": module_path(),
            "environment": {**os.environ, **environment},
        }
        return Forked(self, self._ask(request, files))

    def status(self, pid: int, wait: bool) -> int | None:
        """How a forked process has ended; None while it has not."""
        try:
            return self._ask({"pid": pid, "wait": wait})
        except WorkerDied:
            return -signal.SIGKILL  # nobody is there to tell

    def close(self) -> None:
        """Ends the server for good, whatever it is doing; not what it has forked."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()  # whoever is waiting for its answer has the lock
        with self._lock:
            self._close()

    def _close(self) -> None:
        control, process, self._control, self._process = self._control, self._process, None, None
        if control is not None:
            control.close()
        if process is not None:
            process.kill()
            process.wait()
            self._errors.close()

    def _ask(self, request: dict[str, Any], files: Sequence[int] = ()) -> Any:
        with self._lock:
            if self._control is None:
                if self._closed or "pid" in request:
                    raise WorkerDied("the process that forks workers has ended")
                self._start()
            try:
                _send(self._control, request, files)
                answer = _receive(self._control)[0]
            except OSError:
                answer = None
            if answer is None:
                reason = self._last_words()
                self._close()
                raise WorkerDied(f"no process could be started: {reason}")
            return answer["answer"]

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `_close`
        with theirs:
            if self._parent is not None:
                files = (theirs.fileno(), self._errors.fileno(), self._errors.fileno())
                self._process = self._parent.fork(__name__, files, {}, self._preload)
            else:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, self._preload],
                    stdin=theirs,
                    stdout=self._errors,
                    stderr=self._errors,
                    env={**os.environ, **_PATIENT, "PYTHONPATH": os.pathsep.join(module_path())},
                    start_new_session=True,  # an interrupt from the keyboard is not for it
                )
        self._control = ours

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "without a message"


def _send(channel: socket.socket, message: Any, files: Sequence[int] = ()) -> None:
    data = json.dumps(message).encode()
    head = len(data).to_bytes(_LENGTH, "little")
    if files:
        socket.send_fds(channel, [head], files)
    else:
        channel.sendall(head)
    channel.sendall(data)


def _receive(channel: socket.socket) -> tuple[Any, list[int]]:
    """A message, None if there will be no more, and the files that came with it."""
    head, files, _, _ = socket.recv_fds(channel, _LENGTH, _STANDARD)
    head += _exactly(channel, _LENGTH - len(head)) if head else b""
    data = _exactly(channel, int.from_bytes(head, "little"))
    return json.loads(data) if data else None, files


def _exactly(channel: socket.socket, size: int) -> bytes:
    """So many bytes; fewer if there are no more."""
    found = b""
    while len(found) < size and (part := channel.recv(size - len(found))):
        found += part
    return found


# -- the server's side -----------------------------------------------------------------------------


def main(preload: str) -> None:
    """Forks for whoever holds the other end of stdin, until it is closed."""
    control = socket.socket(fileno=os.dup(0))
    if preload:
        prepare = getattr(importlib.import_module(preload), "prepare", None)
        if prepare is not None:
            prepare()
    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    ended: dict[int, int] = {}
    while True:
        request, files = _receive(control)
        if request is None:
            return
        if "pid" in request:
            _send(control, {"answer": _status(request["pid"], request["wait"], ended)})
            continue
        pid = os.fork()
        ended.pop(pid, None)
        if not pid:
            control.close()
            _run(request, files)
        for file in files:
            os.close(file)
        _send(control, {"answer": pid})


def _status(pid: int, wait: bool, ended: dict[int, int]) -> int | None:
    """How a process has ended, also if it has been told before; None while it has not."""
    if pid not in ended:
        done, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
        if not done:
            return None
        ended[pid] = os.waitstatus_to_exitcode(status)
    return ended[pid]


def _run(request: dict[str, Any], files: list[int]) -> None:
    """A forked process from its start to its end."""
    code = 1
    try:
        for standard, file in enumerate(files):
            os.dup2(file, standard)
            os.close(file)
        sys.path[:] = request["path"]
        os.environ.clear()
        os.environ.update(request["environment"])
        module = importlib.import_module(request["module"])
        argument = request["argument"]
        module.main(argument) if argument else module.main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    import torch  # noqa: F401 - what all workers need

    main(sys.argv[1])
