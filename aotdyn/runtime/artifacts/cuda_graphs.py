"""Captures on a GPU by torch's CUDA graphs, which on AMD's devices are HIP's."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import cache

import torch


class CudaDevice:
    """One device. Replays of all graphs come one after another, whatever streams they are asked for
    on: they may share the workspaces of libraries, which belong to the stream that captured."""

    def __init__(self, index: int):
        self.index = index
        self.lock = threading.RLock()
        self._busy = False
        self._stream: torch.cuda.Stream | None = None
        self._last: torch.cuda.Stream | None = None
        self._done: torch.cuda.Event | None = None

    def settings(self) -> tuple:
        return torch._C._get_cudnn_allow_tf32(), torch._C._get_cudnn_deterministic()

    def free(self) -> bool:
        """Not while the program captures itself, nor in a finalizer that runs inside a replay."""
        return not self._busy and not torch.cuda.is_current_stream_capturing()

    def aside(self, run: Callable[[], list]) -> list:
        with torch.cuda.device(self.index):
            current, stream = torch.cuda.current_stream(), self._capturing_stream()
            stream.wait_stream(current)
            with torch.cuda.stream(stream):
                found = run()
            current.wait_stream(stream)
        for value in found:
            if isinstance(value, torch.Tensor) and value.is_cuda:
                value.record_stream(current)
        return found

    def capture(self, run: Callable[[], list]) -> tuple[Callable[[], None], list]:
        graph = torch.cuda.CUDAGraph()
        self._busy = True
        try:
            with torch.cuda.device(self.index):
                torch.cuda.synchronize()
                # Not `torch.cuda.graph`: it leaves its stream current when a capture fails.
                with torch.cuda.stream(self._capturing_stream()):
                    found = _captured(graph, run)
        finally:
            self._busy = False
        return graph.replay, found

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        with torch.cuda.device(self.index):
            current = torch.cuda.current_stream()
            if self._done is None:
                self._done = torch.cuda.Event()
            elif current != self._last:
                current.wait_event(self._done)
            self._busy = True
            try:
                yield
            finally:
                self._busy = False
                self._last = current
                self._done.record(current)

    def _capturing_stream(self) -> torch.cuda.Stream:
        with self.lock:
            if self._stream is None:
                self._stream = torch.cuda.Stream()
            return self._stream


def _captured(graph: torch.cuda.CUDAGraph, run: Callable[[], list]) -> list:
    # Other threads may allocate and wait meanwhile.
    graph.capture_begin(capture_error_mode="thread_local")
    try:
        found = run()
    except BaseException:
        # The capture is spoilt, and the first error says by what.
        with contextlib.suppress(RuntimeError):
            graph.capture_end()
        raise
    graph.capture_end()
    return found


@cache
def cuda_device(index: int) -> CudaDevice:
    """The device, for all graphs."""
    return CudaDevice(index)
