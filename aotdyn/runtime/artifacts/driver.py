"""Launches GPU kernels through the vendor's driver library: neither Triton nor a compiler is there.

The driver's functions are those of CUDA's driver API and of their HIP twins. torch has made the
context: a tensor on the device exists before a kernel is launched.
"""

import ctypes
import struct
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

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
SHARED_WITHOUT_ASKING = 48 << 10


class DriverError(RuntimeError):
    """The driver refused a call. The message has its name for the reason."""


class Driver(Protocol):
    """A vendor's driver. What it refuses is an answer that is not 0; `check` raises DriverError
    for one."""

    def load(self, code: bytes, symbol: str) -> Any:
        """A kernel loaded into the current context, where it stays. Raises DriverError."""

    def allow_shared(self, function: Any, size: int) -> int:
        """A block of the kernel may ask for so many bytes of shared memory; the answer."""

    def launch(
        self, function: Any, grid: tuple, threads: int, shared: int, stream: int, packed: bytes
    ) -> int:
        """Starts a kernel; the answer. packed: its parameters."""

    def version(self) -> int:
        """Of the driver. Raises DriverError."""

    def check(self, answer: int, what: str) -> None:
        """Raises DriverError for an answer that is not success."""


def packed_parameters(packed: bytes, end: int) -> tuple[Any, Any]:
    """What a launch is given to find its parameters; end: the mark that ends it. The second value
    must live as long."""
    size = ctypes.c_size_t(len(packed))
    extra = (ctypes.c_void_p * 5)(
        1, ctypes.cast(packed, ctypes.c_void_p), 2, ctypes.addressof(size), end
    )
    return extra, size


class LibraryDriver:
    """A driver's library through ctypes. kind: "cuda" or "hip"."""

    _NAMES = {
        "cuda": ("libcuda.so.1", "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel",
                 "cuFuncSetAttribute", "cuDriverGetVersion"),
        "hip": ("libamdhip64.so", "hipModuleLoadData", "hipModuleGetFunction",
                "hipModuleLaunchKernel", "hipFuncSetAttribute", "hipDriverGetVersion"),
    }  # fmt: skip
    _ENDS = {"cuda": 0, "hip": 3}  # CU_LAUNCH_PARAM_END, HIP_LAUNCH_PARAM_END

    def __init__(self, kind: str):
        """Raises PackageError if there is no driver."""
        self.kind = kind
        library, load, find, launch, attribute, version = self._NAMES[kind]
        try:
            self._library = ctypes.CDLL(library)
            self._load = self._library[load]
            self._find = self._library[find]
            self._launch = self._library[launch]
            self._attribute = self._library[attribute]
            self._version = self._library[version]
        except (OSError, AttributeError) as error:
            raise PackageError(f"there is no {kind} driver here: {error}") from error
        pointer, number = ctypes.c_void_p, ctypes.c_uint
        self._launch.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
        self._load.argtypes = [pointer, ctypes.c_char_p]
        self._find.argtypes = [pointer, pointer, ctypes.c_char_p]
        self._attribute.argtypes = [pointer, ctypes.c_int, ctypes.c_int]
        self._end = self._ENDS[kind]

    def load(self, code: bytes, symbol: str) -> int:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        # PTX is text, which must end with a null byte.
        self.check(self._load(ctypes.byref(module), code + b"\0"), f"loading {symbol}")
        found = self._find(ctypes.byref(function), module, symbol.encode())
        self.check(found, f"finding {symbol}")
        return function.value

    def allow_shared(self, function: int, size: int) -> int:
        return self._attribute(function, _DYNAMIC_SHARED, size)

    def launch(
        self, function: int, grid: tuple, threads: int, shared: int, stream: int, packed: bytes
    ) -> int:
        extra, _size = packed_parameters(packed, self._end)
        return self._launch(function, *grid, threads, 1, 1, shared, stream, None, extra)

    def version(self) -> int:
        found = ctypes.c_int()
        self.check(self._version(ctypes.byref(found)), "asking for the driver's version")
        return found.value

    def check(self, answer: int, what: str) -> None:
        if answer:
            raise DriverError(f"{what}: {self._reason(answer)}")

    def _reason(self, answer: int) -> str:
        if self.kind == "hip":
            texts = []
            for get in (self._library.hipGetErrorName, self._library.hipGetErrorString):
                get.restype = ctypes.c_char_p
                texts.append((get(answer) or b"unknown").decode())
            return f"HIP error {answer}: {texts[0]} ({texts[1]})"
        texts = []
        for get in (self._library.cuGetErrorName, self._library.cuGetErrorString):
            text = ctypes.c_char_p()
            get(answer, ctypes.byref(text))
            texts.append((text.value or b"unknown").decode())
        return f"CUDA error {answer}: {texts[0]} ({texts[1]})"


@cache
def driver(kind: str) -> Driver:
    """The driver of this process. Raises PackageError if there is none."""
    if kind == "cuda":
        from .bindings import BindingsDriver, bindings  # which stands on this file

        module = bindings()
        if module is not None:
            return BindingsDriver(module)
    return LibraryDriver(kind)


class Kernel:
    """One kernel on one device. Loaded when it is first run; may be run by several threads."""

    def __init__(self, kind: str, launch: Launch, code: bytes, sizes: Callable[..., tuple]):
        """sizes: from what the text hands over to the grid and what is passed."""
        self._kind = kind
        self._facts = launch
        self.code = code
        self._sizes = sizes
        letters = "".join(_POINTER if kind[0] == "*" else _LETTERS[kind] for kind in launch.types)
        self._pack = struct.Struct("@" + letters + _POINTER * launch.padding).pack
        self._pointers = [index for index, kind in enumerate(launch.types) if kind[0] == "*"]
        self._nulls = (0,) * launch.padding
        self._function: Any = None
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

    def _loaded(self) -> Any:
        with self._lock:
            if self._function is None:
                used, facts = driver(self._kind), self._facts
                function = used.load(self.code, facts.symbol)
                if facts.shared > SHARED_WITHOUT_ASKING:
                    answer = used.allow_shared(function, facts.shared)
                    used.check(answer, f"{facts.shared} bytes of shared memory for {facts.symbol}")
                self._function = function
            return self._function
