"""A GPU for programs that are recorded where there is none: tensors can be on `cuda`, their memory
is the CPU's, operators compute what the CPU computes, and `torch.cuda` answers as one usual product
of the architecture would. Nothing of this is timed or asynchronous.

Called while recording. The process must have been started with `made_up_environment`.
"""

import contextlib
import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from types import FunctionType, SimpleNamespace
from typing import Any
from unittest import mock

import torch

from ...errors import AotdynError
from ..cache import Cache
from ..toolchain import Toolchain
from .architectures import HIP, Architecture, architecture_of
from .made_up import forget_environment, is_made_up, made_up_environment
from .recurrent_cells import cells

DEVICE, RUNS_ON = "cuda:0", "cpu"
_MARK = "AOTDYN_EMULATED"  # set in a process that was started anew: once is enough


def is_there(target: str) -> bool:
    """Whether tensors can be on the target's device: there is a GPU, or it is emulated here."""
    architecture_of(target)
    return is_made_up() or torch.cuda.is_available()


def start_anew() -> None:
    """Runs the same command again in a process that can emulate the device. Does not return.

    Raises AotdynError where that is impossible, Unavailable where there is no C++ compiler."""
    if torch.cuda._is_compiled():
        raise AotdynError(
            "there is no GPU here, and only a build of torch for CPUs can record without: use one"
        )
    if os.environ.get(_MARK):
        raise AotdynError("the library that emulates a GPU could not be loaded before torch")
    environment = made_up_environment(Toolchain.find(Cache()))
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(
        sys.executable,
        [sys.executable, *sys.orig_argv[1:]],
        # Kernels of Triton that the program launches are interpreted.
        {**os.environ, **environment, _MARK: "1", "TRITON_INTERPRET": "1"},
    )


@contextlib.contextmanager
def emulated(target: str) -> Iterator[tuple[tuple[str, str], ...]]:
    """Inside, there is a device of the target's architecture. Gives what became of which device:
    (named by the program, that computed); nothing where there is a GPU.

    Raises AotdynError in a process that was not prepared for it.
    """
    architecture = architecture_of(target)
    if not is_made_up():
        if torch.cuda.is_available():
            yield ()
            return
        raise AotdynError(
            f"this process has no device for {target}: use `aotdyn record --device {target} SCRIPT`"
        )
    if os.environ.pop(_MARK, None):
        forget_environment()
    with contextlib.ExitStack() as stack:
        for owner, name, value in _replacements(architecture):
            stack.enter_context(mock.patch.object(owner, name, value, create=True))
        library = cells()
        stack.callback(library._destroy)
        yield ((DEVICE, RUNS_ON),)


def _named_as_torchs(cls: type) -> type:
    """A class in place of one of `torch.cuda.streams`: a recording names it, and its methods, as
    those that are there on a machine with a GPU."""
    name = cls.__name__.removeprefix("_")
    for method in vars(cls).values():
        method = getattr(method, "__func__", method)
        if isinstance(method, FunctionType):
            method.__module__ = torch.cuda.streams.__name__
            method.__qualname__ = f"{name}.{method.__name__}"
    cls.__module__, cls.__name__, cls.__qualname__ = torch.cuda.streams.__name__, name, name
    return cls


@_named_as_torchs
class _Stream:
    """Work is done when it is asked for: there is nothing to wait for."""

    cuda_stream = stream_id = device_index = 0
    device_type = 1
    device = torch.device(DEVICE)

    def __new__(cls, *args: Any, **kwargs: Any) -> "_Stream":
        return object.__new__(cls)

    def record_event(self, event: "_Event | None" = None) -> "_Event":
        event = event or _Event()
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def wait_stream(self, stream: "_Stream") -> None:
        pass

    def wait_event(self, event: "_Event") -> None:
        pass

    def synchronize(self) -> None:
        pass

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


@_named_as_torchs
class _Event:
    """A moment of the CPU's clock."""

    _time = 0.0

    def __new__(cls, *args: Any, **kwargs: Any) -> "_Event":
        return object.__new__(cls)

    def record(self, stream: _Stream | None = None) -> None:
        self._time = time.perf_counter()

    def wait(self, stream: _Stream | None = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: "_Event") -> float:
        return (end._time - self._time) * 1e3


_plain_storage_to = torch.storage._to


def _storage_to(storage: torch.UntypedStorage, device: Any, non_blocking: bool = False) -> Any:
    """As torch's own, which knows only the devices that it was built for. For `torch.load`."""
    if torch.device(device).type != "cuda" or storage.device.type == "cuda":
        return _plain_storage_to(storage, device, non_blocking)
    made = torch.empty(storage.nbytes(), dtype=torch.uint8, device=DEVICE).untyped_storage()
    return made.copy_(storage, non_blocking)


def _replacements(architecture: Architecture) -> Iterator[tuple[Any, str, Any]]:
    """What `torch.cuda` asks torch's C++ for. Its own functions stay what they are: a recording
    names them."""
    properties = architecture.properties()
    nothing: Any = lambda *args, **kwargs: None  # noqa: E731
    zero: Any = lambda *args, **kwargs: 0  # noqa: E731
    place: Any = lambda *args: (0, 0, 1)  # noqa: E731
    answers = {
        "DeviceCount": lambda: 1, "Device": zero, "CurrentStream": place, "DefaultStream": place,
        "CurrentRawStream": zero, "ArchFlags": lambda: architecture.name,
        "MemoryInfo": lambda device=0: (properties.total_memory, properties.total_memory),
    }  # fmt: skip
    yield from ((torch._C, f"_cuda_get{name}", answer) for name, answer in answers.items())
    for name in (
        "init", "setDevice", "synchronize", "setStream", "emptyCache", "ipc_collect",
        "resetPeakMemoryStats", "resetAccumulatedMemoryStats", "clearCublasWorkspaces",
    ):  # fmt: skip
        yield torch._C, f"_cuda_{name}", nothing
    yield torch._C, "_cuda_isInBadFork", lambda: False
    yield torch.cuda.graphs, "_cuda_isCurrentStreamCapturing", lambda: False
    yield torch.cuda.nvtx, "_nvtx", SimpleNamespace(
        rangePushA=zero, rangePop=zero, rangeStartA=zero, rangeEnd=nothing, markA=nothing,
        deviceRangeStart=nothing, deviceRangeEnd=nothing,
    )
    yield torch._C, "_cuda_memoryStats", lambda device=0: {}
    yield torch._C, "_has_cuda", True
    yield torch.cuda, "_initialized", True
    yield torch.cuda, "_cached_device_count", None
    yield torch.cuda, "_exchange_device", zero
    yield torch.cuda, "_maybe_exchange_device", zero
    yield torch.cuda, "_get_device_properties", lambda device=0: properties
    yield torch.cuda, "_cudart", SimpleNamespace(
        cudaMemGetInfo=lambda device=0: (properties.total_memory, properties.total_memory)
    )
    yield torch.cuda, "default_generators", (torch.default_generator,)
    yield torch.storage, "_to", _storage_to
    for owner in (torch.cuda, torch.cuda.streams):
        yield owner, "Stream", _Stream
        yield owner, "Event", _Event
    if architecture.kind == HIP:
        yield torch.version, "hip", "7.0"
    if importlib.util.find_spec("triton") is not None:
        from triton.runtime.autotuner import Autotuner

        # Times of an interpreter mean nothing: the first configuration is taken.
        yield Autotuner, "do_bench", lambda self, call, quantiles: [1.0, 1.0, 1.0]
