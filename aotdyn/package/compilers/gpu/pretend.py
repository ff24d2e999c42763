"""A made-up GPU: while it is there, Inductor and Triton generate code for an architecture that this
machine does not have. Nothing ever runs on it; `torch.cuda.is_available()` stays false, which keeps
fake tensors and the random state away from the device."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import torch._dynamo.device_interface as device_interface
import torch.utils._triton
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.hints import DeviceProperties
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from .architectures import HIP, Architecture


class _Driver:
    """What Triton's front end asks of a driver."""

    def __init__(self, target: GPUTarget):
        self.target = target

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0


@contextlib.contextmanager
def pretended(architecture: Architecture) -> Iterator[GPUTarget]:
    """The device is there inside the with block. One process may use several, one after another."""
    target = GPUTarget(architecture.kind, architecture.number, architecture.warp)
    with contextlib.ExitStack() as stack:
        for owner, name, value in _replacements(architecture):
            stack.enter_context(mock.patch.object(owner, name, value, create=True))
        _forget_devices()
        before = driver._active
        driver.set_active(_Driver(target))
        try:
            yield target
        finally:
            driver._active = before
            _forget_devices()


def _replacements(architecture: Architecture) -> Iterator[tuple[Any, str, Any]]:
    properties = architecture.properties()
    answers = {
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (architecture.major, architecture.minor),
        # All of ours compute in it: from compute capability 8.0 on, and CDNA 3.
        "is_bf16_supported": lambda including_emulation=True: True,
        "_exchange_device": lambda device: 0,
        "_maybe_exchange_device": lambda device: 0,
    }
    interface = device_interface.CudaInterface
    for name, answer in answers.items():
        yield torch.cuda, name, answer
        if hasattr(interface, name):
            yield interface, name, staticmethod(answer)
    yield interface, "is_available", staticmethod(lambda: True)
    yield interface, "get_compute_capability", staticmethod(lambda device=None: architecture.number)
    yield interface, "exchange_device", staticmethod(lambda device: 0)
    yield interface, "maybe_exchange_device", staticmethod(lambda device: 0)
    # The CPU build has none, and generated modules import it.
    yield torch._C, "_cuda_getCurrentRawStream", lambda device: 0
    yield triton_helpers, "set_driver_to_gpu", lambda: None
    if architecture.kind == HIP:
        yield torch.version, "hip", "7.0"


def _forget_devices() -> None:
    """Torch keeps what it found out about a device: a second architecture would silently get the
    first one's code."""
    DeviceProperties.create.cache_clear()
    for function in vars(torch.utils._triton).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()
