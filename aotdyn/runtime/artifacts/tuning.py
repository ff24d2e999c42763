"""Kernels that a package has in several configurations: the first call on a device times them and
takes the fastest from then on. What was found is kept for the next process.

What must hold: timing changes nothing that the program can see, and any configuration may be taken.
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from ...package.errors import PackageError
from ...package.folders import cache_folder
from .driver import DriverError, Kernel, driver
from .library import write_file

# A candidate is launched so often before it counts, then in so many series of so many.
_WARM, _SERIES, _LAUNCHES = 2, 3, 10


class Clock(Protocol):
    """Times launches on the current stream."""

    def runs(self) -> bool:
        """Whether there can be times: not while launches are captured."""

    def milliseconds(self, launch: Callable[[], None]) -> float:
        """Of one launch, the least that was seen."""

    def device(self) -> str:
        """What the times hold for: the device and its driver."""


class Tuned:
    """A kernel to be chosen from several, with the interface of one. written: which of the
    arguments the kernel may write to, by their places."""

    def __init__(self, candidates: Sequence[Kernel], written: Sequence[int], clock: Clock):
        self.candidates = candidates
        self.written = frozenset(written)
        self.clock = clock
        self._chosen: Kernel | None = None
        self._lock = threading.RLock()
        self._measuring = False

    def run(self, *args: Any, stream: int) -> None:
        kernel = self._chosen or self._choose(args, stream)
        kernel.run(*args, stream=stream)

    def _choose(self, args: tuple, stream: int) -> Kernel:
        with self._lock:
            # A finalizer that runs during the measurements may call the kernel, too.
            if self._chosen is None and not self._measuring and self.clock.runs():
                self._measuring = True
                try:
                    self._chosen = self.candidates[self._fastest(args, stream)]
                finally:
                    self._measuring = False
            return self._chosen or self.candidates[0]

    def _fastest(self, args: tuple, stream: int) -> int:
        place = self._place()
        known = _recall(place, len(self.candidates))
        if known is not None:
            return known
        times = self._times(args, stream)
        ran = [(time, index) for index, time in enumerate(times) if time is not None]
        if not ran:
            return 0  # whose error the caller gets
        fastest = min(ran)[1]
        _remember(place, fastest, times)
        return fastest

    def _times(self, args: tuple, stream: int) -> list[float | None]:
        """Of each candidate, in milliseconds; None of those that do not run here."""
        try:
            given = [
                _copied(arg) if index in self.written and isinstance(arg, torch.Tensor) else arg
                for index, arg in enumerate(args)
            ]
        except torch.OutOfMemoryError:
            return [None] * len(self.candidates)
        times: list[float | None] = []
        for kernel in self.candidates:
            try:
                times.append(
                    self.clock.milliseconds(lambda kernel=kernel: kernel.run(*given, stream=stream))
                )
            except DriverError:
                times.append(None)
        return times

    def _place(self) -> Path:
        facts = hashlib.sha256(self.clock.device().encode())
        for kernel in self.candidates:
            facts.update(hashlib.sha256(kernel.code).digest())
        key = facts.hexdigest()
        return cache_folder() / "tuned" / key[:2] / key[2:]


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """All of its memory: a kernel may write beyond what a view shows."""
    memory = tensor.untyped_storage().clone()
    made = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return made.set_(memory, tensor.storage_offset(), tensor.size(), tensor.stride())


def _recall(place: Path, count: int) -> int | None:
    try:
        found = json.loads(place.read_bytes())["choice"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return found if type(found) is int and 0 <= found < count else None


def _remember(place: Path, choice: int, times: list[float | None]) -> None:
    text = json.dumps({"choice": choice, "milliseconds": times})
    with contextlib.suppress(OSError):  # the folder cannot be written to: this process knows it
        place.parent.mkdir(parents=True, exist_ok=True)
        write_file(place, text.encode())


class DeviceClock:
    """The clock of a GPU. kind: "cuda" or "hip"."""

    def __init__(self, kind: str, index: int = 0):
        self.kind = kind
        self.index = index

    def runs(self) -> bool:
        return not torch.cuda.is_current_stream_capturing()

    def milliseconds(self, launch: Callable[[], None]) -> float:
        for _ in range(_WARM):
            launch()
        least = float("inf")
        for _ in range(_SERIES):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(_LAUNCHES):
                launch()
            end.record()
            end.synchronize()
            least = min(least, start.elapsed_time(end) / _LAUNCHES)
        return least

    def device(self) -> str:
        try:
            version = driver(self.kind).version()
        except PackageError:  # no launch will come
            version = 0
        return f"{torch.cuda.get_device_name(self.index)}, {self.kind} driver {version}"
