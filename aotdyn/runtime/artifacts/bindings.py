"""CUDA's driver through NVIDIA's `cuda.bindings`, which CUDA builds of torch bring along: a launch
costs less than through ctypes. Same interface as `driver.Driver`."""

import ctypes
import sys
from typing import Any

from .driver import DriverError, packed_parameters

_NAME = "cuda.bindings.driver"
_NEEDED = (
    "cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute", "cuLaunchKernel",
    "cuGetErrorName", "cuGetErrorString", "cuDriverGetVersion", "CUfunction_attribute",
)  # fmt: skip


def bindings() -> Any:
    """The module, if this process has imported it: to import it takes a quarter of a second, which
    launches would have to win back. None if it has not, or it lacks something."""
    module = sys.modules.get(_NAME)
    return module if all(hasattr(module, name) for name in _NEEDED) else None


class BindingsDriver:
    """module: `cuda.bindings.driver`, whose functions give the driver's answer before all else."""

    kind = "cuda"

    def __init__(self, module: Any):
        self._module = module
        self._launch = module.cuLaunchKernel
        attributes = module.CUfunction_attribute
        self._shared = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

    def load(self, code: bytes, symbol: str) -> Any:
        # PTX is text, which must end with a null byte, as this does.
        image = ctypes.create_string_buffer(code)
        answer, module = self._module.cuModuleLoadData(ctypes.addressof(image))
        self.check(int(answer), f"loading {symbol}")
        answer, function = self._module.cuModuleGetFunction(module, symbol.encode())
        self.check(int(answer), f"finding {symbol}")
        return function

    def allow_shared(self, function: Any, size: int) -> int:
        (answer,) = self._module.cuFuncSetAttribute(function, self._shared, size)
        return int(answer)

    def launch(
        self, function: Any, grid: tuple, threads: int, shared: int, stream: int, packed: bytes
    ) -> int:
        extra, _size = packed_parameters(packed, 0)
        (answer,) = self._launch(
            function, *grid, threads, 1, 1, shared, stream, 0, ctypes.addressof(extra)
        )
        return int(answer)

    def version(self) -> int:
        answer, version = self._module.cuDriverGetVersion()
        self.check(int(answer), "asking for the driver's version")
        return version

    def check(self, answer: int, what: str) -> None:
        if answer:
            raise DriverError(f"{what}: {self._reason(answer)}")

    def _reason(self, answer: int) -> str:
        try:
            error = self._module.CUresult(answer)
        except ValueError:  # newer than the bindings
            return f"CUDA error {answer}: unknown"
        texts = [
            (get(error)[1] or b"unknown").decode()
            for get in (self._module.cuGetErrorName, self._module.cuGetErrorString)
        ]
        return f"CUDA error {answer}: {texts[0]} ({texts[1]})"
