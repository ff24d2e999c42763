"""Launches GPU kernels through the vendor's driver library: neither Triton nor a compiler is there.

The driver's functions are those of CUDA's driver API and of their HIP twins. torch has made the
context: a tensor on the device exists before a kernel is launched.
"""

import ctypes
import struct
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from ...package.errors import PackageError
from ...package.launch import Launch

# struct's letters for what is passed by value. Natural alignment is also that of kernel parameters.
_LETTERS = {
    "i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u1": "?", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "fp32": "f", "fp64": "d",
}  # fmt: skip
_POINTER = "P"
_DYNAMIC_SHARED = 8  # ..._FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_SHARED_WITHOUT_ASKING = 48 << 10


class DriverError(RuntimeError):
    """The driver refused a call. The message has its name for the reason."""


class Driver:
    """One vendor's library. kind: "cuda" or "hip"."""

    _NAMES = {
        "cuda": ("libcuda.so.1", "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel",
                 "cuFuncSetAttribute"),
        "hip": ("libamdhip64.so", "hipModuleLoadData", "hipModuleGetFunction",
                "hipModuleLaunchKernel", "hipFuncSetAttribute"),
    }  # fmt: skip

    def __init__(self, kind: str):
        """Raises PackageError if there is no driver."""
        self.kind = kind
        library, load, find, launch, attribute = self._NAMES[kind]
        try:
            self._library = ctypes.CDLL(library)
            self._load = self._library[load]
            self._find = self._library[find]
            self._launch = self._library[launch]
            self._attribute = self._library[attribute]
        except (OSError, AttributeError) as error:
            raise PackageError(f"there is no {kind} driver here: {error}") from error
        pointer, number = ctypes.c_void_p, ctypes.c_uint
        self._launch.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
        self._load.argtypes = [pointer, ctypes.c_char_p]
        self._find.argtypes = [pointer, pointer, ctypes.c_char_p]
        self._attribute.argtypes = [pointer, ctypes.c_int, ctypes.c_int]

    def function(self, code: bytes, symbol: str, shared: int) -> int:
        """A kernel loaded into the current context; it stays there. shared: bytes that a block
        will ask for. Raises DriverError."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        # PTX is text, which must end with a null byte.
        self.check(self._load(ctypes.byref(module), code + b"\0"), f"loading {symbol}")
        found = self._find(ctypes.byref(function), module, symbol.encode())
        self.check(found, f"finding {symbol}")
        if shared > _SHARED_WITHOUT_ASKING:
            found = self._attribute(function, _DYNAMIC_SHARED, shared)
            self.check(found, f"{shared} bytes of shared memory for {symbol}")
        return function.value

    def launch(
        self, function: int, grid: tuple, threads: int, shared: int, stream: int, packed: bytes
    ) -> int:
        """Starts a kernel; the driver's answer, 0 for success. packed: its parameters."""
        size = ctypes.c_size_t(len(packed))
        end = 0 if self.kind == "cuda" else 3
        extra = (ctypes.c_void_p * 5)(
            1, ctypes.cast(packed, ctypes.c_void_p), 2, ctypes.addressof(size), end
        )
        return self._launch(function, *grid, threads, 1, 1, shared, stream, None, extra)

    def check(self, answer: int, what: str) -> None:
        """Raises DriverError for an answer that is not success."""
        if answer:
            raise DriverError(f"{what}: {self._reason(answer)}")

    def _reason(self, answer: int) -> str:
        if self.kind == "hip":
            get = self._library.hipGetErrorString
            get.restype = ctypes.c_char_p
            return f"HIP error {answer} ({(get(answer) or b'unknown').decode()})"
        texts = []
        for get in (self._library.cuGetErrorName, self._library.cuGetErrorString):
            text = ctypes.c_char_p()
            get(answer, ctypes.byref(text))
            texts.append((text.value or b"unknown").decode())
        return f"CUDA error {answer}: {texts[0]} ({texts[1]})"


@cache
def driver(kind: str) -> Driver:
    """The driver of this process. Raises PackageError if there is none."""
    return Driver(kind)


class Kernel:
    """One kernel on one device. Loaded when it is first run; may be run by several threads."""

    def __init__(self, kind: str, launch: Launch, code: bytes, sizes: Callable[..., tuple]):
        """sizes: from what the text hands over to the grid and what is passed."""
        self._kind = kind
        self._facts = launch
        self._code = code
        self._sizes = sizes
        letters = "".join(_POINTER if kind[0] == "*" else _LETTERS[kind] for kind in launch.types)
        self._pack = struct.Struct("@" + letters + _POINTER * launch.padding).pack
        self._pointers = [index for index, kind in enumerate(launch.types) if kind[0] == "*"]
        self._nulls = (0,) * launch.padding
        self._function: int | None = None
        self._lock = threading.Lock()

    def run(self, *args: Any, stream: int) -> None:
        """Launches it, unless its grid is empty. Raises DriverError; RuntimeError for a number that
        its parameter cannot hold."""
        grid, passed = self._sizes(*args)
        if 0 in grid:
            return
        values = list(passed)
        for index in self._pointers:
            tensor = values[index]
            values[index] = 0 if tensor is None else tensor.data_ptr()
        facts = self._facts
        try:
            packed = self._pack(*values, *self._nulls)
        except struct.error as error:
            raise RuntimeError(f"{facts.name} cannot be given {values}: {error}") from error
        function = self._function or self._loaded()
        used = driver(self._kind)
        answer = used.launch(function, grid, facts.threads, facts.shared, stream, packed)
        if answer:
            used.check(answer, f"launching {facts.name} with a grid of {grid}")

    def _loaded(self) -> int:
        with self._lock:
            if self._function is None:
                facts = self._facts
                self._function = driver(self._kind).function(
                    self._code, facts.symbol, facts.shared
                )
            return self._function
