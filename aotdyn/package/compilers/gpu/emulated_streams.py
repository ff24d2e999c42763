"""Streams and events of a GPU that is emulated: work is done when it is asked for, and there is
nothing to wait for."""

import time
from types import FunctionType
from typing import Any

import torch

DEVICE = "cuda:0"


def _named_as_torchs(cls: type) -> type:
    """A class in place of one of `torch.cuda.streams`: a recording names it, and its methods, as
    those that are there on a machine with a GPU."""
    for method in vars(cls).values():
        method = getattr(method, "__func__", method)
        if isinstance(method, FunctionType):
            method.__module__ = torch.cuda.streams.__name__
            method.__qualname__ = f"{cls.__name__}.{method.__name__}"
    cls.__module__, cls.__qualname__ = torch.cuda.streams.__name__, cls.__name__
    return cls


@_named_as_torchs
class Stream(torch.Stream):
    """There is one, whatever it is called. As torch's own it can be given to tensors."""

    cuda_stream = priority = 0

    def __new__(cls, *args: Any, **kwargs: Any) -> "Stream":
        return torch.Stream.__new__(cls, stream_id=0, device_index=0, device_type=1)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, 0

    def record_event(self, event: "Event | None" = None) -> "Event":
        event = event or Event()
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def wait_stream(self, stream: torch.Stream) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


@_named_as_torchs
class ExternalStream(Stream):
    """Of another library."""


@_named_as_torchs
class Event:
    """A moment of the CPU's clock."""

    cuda_event = 0
    device = torch.device(DEVICE)
    _time = 0.0

    def __new__(cls, *args: Any, **kwargs: Any) -> "Event":
        return object.__new__(cls)

    def record(self, stream: torch.Stream | None = None) -> None:
        self._time = time.perf_counter()

    def wait(self, stream: torch.Stream | None = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: "Event") -> float:
        return (end._time - self._time) * 1e3
