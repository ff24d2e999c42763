"""A GPU for programs that are recorded where there is none: tensors can be on `cuda`, their memory
is the CPU's, operators compute what the CPU computes, and `torch.cuda` answers as one usual product
of the architecture would. Nothing of this is timed or asynchronous.

Called while recording. The process must have been started with `made_up_environment`.
"""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from ...errors import AotdynError
from ..cache import Cache
from ..toolchain import Toolchain
from .architectures import HIP, Architecture, architecture_of
from .emulated_streams import DEVICE, Event, ExternalStream, Stream
from .made_up import forget_environment, is_made_up, made_up_environment
from .recurrent_cells import cells

RUNS_ON = "cpu"
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


_plain_storage_to = torch.storage._to


def _storage_to(storage: torch.UntypedStorage, device: Any, non_blocking: bool = False) -> Any:
    """As torch's own, which knows only the devices that it was built for. For `torch.load`."""
    if torch.device(device).type != "cuda" or storage.device.type == "cuda":
        return _plain_storage_to(storage, device, non_blocking)
    made = torch.empty(storage.nbytes(), dtype=torch.uint8, device=DEVICE).untyped_storage()
    return made.copy_(storage, non_blocking)


def _memory_stats() -> dict[str, Any]:
    """What `torch.cuda.memory_stats` flattens: nothing of the device's memory is in use."""
    changes = dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
    of_pools = {pool: changes for pool in ("all", "small_pool", "large_pool")}
    pooled = (
        "allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
        "active_bytes", "inactive_split_bytes", "requested_bytes",
    )  # fmt: skip
    counts = (
        "num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
        "num_device_free", "max_split_size",
    )  # fmt: skip
    whole = dict.fromkeys(("oversize_allocations", "oversize_segments"), changes)
    return {**dict.fromkeys(pooled, of_pools), **whole, **dict.fromkeys(counts, 0)}


def _nothing(*args: Any, **kwargs: Any) -> None:
    pass


def _zero(*args: Any, **kwargs: Any) -> int:
    return 0


def _answers(architecture: Architecture) -> dict[str, Any]:
    """What `torch.cuda` asks torch's C++ for, by the names after `_cuda_`."""
    properties = architecture.properties()
    place: Any = lambda *args: (0, 0, 1)  # noqa: E731
    done = (
        "init", "setDevice", "synchronize", "setStream", "emptyCache", "ipc_collect",
        "resetPeakMemoryStats", "resetAccumulatedMemoryStats", "clearCublasWorkspaces",
        "setMemoryFraction", "record_memory_history", "set_sync_debug_mode", "sleep",
    )  # fmt: skip
    return {
        **dict.fromkeys(done, _nothing),
        **dict.fromkeys(("getDevice", "getCurrentRawStream", "get_sync_debug_mode"), _zero),
        "getDeviceCount": lambda: 1,
        "getCurrentStream": place,
        "getDefaultStream": place,
        "getArchFlags": lambda: architecture.name,
        "getMemoryInfo": lambda device=0: (properties.total_memory, properties.total_memory),
        "getMemoryFraction": lambda device=0: 1.0,
        "getAllocatorBackend": lambda: "native",
        "memoryStats": lambda device=0: _memory_stats(),
        "memorySnapshot": lambda *args: dict.fromkeys(("segments", "device_traces"), []),
        "canDeviceAccessPeer": lambda device, peer: False,
        "isInBadFork": lambda: False,
    }


def _replacements(architecture: Architecture) -> Iterator[tuple[Any, str, Any]]:
    """What `torch.cuda` asks torch's C++ for. Its own functions stay what they are: a recording
    names them."""
    properties = architecture.properties()
    for name, answer in _answers(architecture).items():
        yield torch._C, f"_cuda_{name}", answer
    yield torch.cuda.graphs, "_cuda_isCurrentStreamCapturing", lambda: False
    yield torch.cuda.nvtx, "_nvtx", SimpleNamespace(
        rangePushA=_zero, rangePop=_zero, rangeStartA=_zero, rangeEnd=_nothing, markA=_nothing,
        deviceRangeStart=_nothing, deviceRangeEnd=_nothing,
    )
    yield torch._C, "_has_cuda", True
    yield torch.cuda, "_initialized", True
    yield torch.cuda, "_cached_device_count", None
    yield torch.cuda, "_exchange_device", _zero
    yield torch.cuda, "_maybe_exchange_device", _zero
    yield torch.cuda, "_get_device_properties", lambda device=0: properties
    yield torch.cuda, "_cudart", SimpleNamespace(
        cudaMemGetInfo=lambda device=0: (properties.total_memory, properties.total_memory),
        cudaProfilerStart=_zero,
        cudaProfilerStop=_zero,
        cudaError=SimpleNamespace(success=0),
    )
    yield torch.cuda, "default_generators", (torch.default_generator,)
    yield torch.storage, "_to", _storage_to
    for owner in (torch.cuda, torch.cuda.streams):
        for cls in (Stream, ExternalStream, Event):
            yield owner, cls.__name__, cls
    if architecture.kind == HIP:
        yield torch.version, "hip", "7.0"
    if importlib.util.find_spec("triton") is not None:
        from triton.runtime.autotuner import Autotuner

        # Times of an interpreter mean nothing: the first configuration is taken.
        yield Autotuner, "do_bench", lambda self, call, quantiles: [1.0, 1.0, 1.0]
