"""A GPU driver whose launches are run by Triton's interpreter: what the runtime hands to the driver
(binary, grid, threads, bytes of the parameters) decides what is computed. With `emulated` around
it, a package for a GPU is served on the CPU as on the device.

For a process with TRITON_INTERPRET=1; see `served_on_emulated.py`.
"""

import ctypes
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .noting_worker import noted

NAMES = ("libcuda.so.1", "libamdhip64.so")
LARGEST = (2**31 - 1, 65535, 65535)  # grid, by CUDA's "Technical Specifications"
# Bytes and struct's letter of what is passed by value, in Triton's words.
_NUMBERS = {
    "i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u1": "?", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "fp32": "f", "fp64": "d",
}  # fmt: skip


class _Launch(ctypes.Structure):
    """As in `mock_driver.c`."""

    _fields_ = [
        ("module", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("grid", ctypes.c_uint * 3),
        ("threads", ctypes.c_uint), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
        ("parameters", ctypes.c_void_p), ("size", ctypes.c_size_t),
    ]  # fmt: skip


@dataclass(frozen=True)
class Launched:
    """values: of the parameters by name, pointers as addresses. pointers: which are. constants: of
    the others."""

    symbol: str
    grid: tuple[int, int, int]
    values: dict[str, int | float]
    pointers: set[str]
    constants: dict[str, object]


class InterpretingDriver:
    """folder: where the libraries of the mock driver are. kernels: the folder that
    `noting_worker` has filled. codes: all binaries and assemblies that may be loaded, by where they
    are from. loaded: where those are from that were."""

    def __init__(self, folder, kernels, codes):
        self.launched: list[Launched] = []
        self.wrong: list[str] = []
        self._noted = Path(kernels)
        self.loaded: list[tuple] = []
        self._codes = {bytes(code): place for code, place in codes}
        self._modules: list[dict] = []
        self._kernels: dict[str, object] = {}
        self._kept = (
            ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(self._loads),
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Launch))(self._launches),
        )
        for name in NAMES:
            ctypes.CDLL(str(Path(folder) / name)).mock_driver_listen(*self._kept)

    def _loads(self, image):
        for code, place in self._codes.items():
            if ctypes.string_at(image, min(len(code), 64)) == code[:64] and (
                ctypes.string_at(image, len(code)) == code
            ):
                self._modules.append(noted(self._noted, code))
                self.loaded.append(place)
                return len(self._modules)
        self.wrong.append("a module is loaded that is not in the package")
        return 0

    def _launches(self, launch):
        launch = launch.contents
        try:
            self._run(self._modules[launch.module - 1], launch)
        except Exception as error:
            self.wrong.append(f"{launch.symbol.decode()}: {type(error).__name__}: {error}"[:300])
        return 0

    def _run(self, facts, launch):
        data = ctypes.string_at(launch.parameters, launch.size)
        values = parameters(facts, data)
        grid = tuple(launch.grid)
        self.wrong += [f"{facts['symbol']}: {text}" for text in _wrong_with(facts, launch, values)]
        kinds = facts["signature"]
        pointers = {name for name in values if kinds[name][0] == "*"}
        constants = facts["constants"]
        self.launched.append(Launched(facts["symbol"], grid, values, pointers, constants))
        given = {name: _as_triton(value, kinds[name]) for name, value in values.items()}
        self._kernel(facts)[grid](**given, **constants)

    def _kernel(self, facts):
        from torch._inductor.codecache import PyCodeCache

        found = self._kernels.get(facts["text"])
        if found is None:
            module = PyCodeCache.load(facts["text"])
            found = self._kernels[facts["text"]] = getattr(module, facts["function"]).fn
        return found


def parameters(facts, data):
    """The values of a kernel's parameters from the bytes that it is given, by name. They lie one
    after the other, each at a multiple of its own size; only null pointers follow."""
    found, position = {}, 0
    for name in facts["arguments"]:
        if name in facts["constants"]:
            continue
        letter = _NUMBERS.get(facts["signature"][name], "Q")
        size = struct.calcsize(letter)
        position += -position % size
        (found[name],) = struct.unpack_from(letter, data, position)
        position += size
    position += -position % 8
    if any(data[position:]) or len(data) - position not in (0, 8, 16):
        raise ValueError(f"{len(data)} bytes of parameters, {position} of them known")
    return found


def _wrong_with(facts, launch, values):
    """What the code takes for granted, and is not so."""
    if launch.symbol.decode() != facts["symbol"]:
        yield f"it is started as {launch.symbol.decode()}"
    for what in ("threads", "shared"):
        if getattr(launch, what) != facts[what]:
            yield f"{what} are {getattr(launch, what)} instead of {facts[what]}"
    if not all(0 < size <= largest for size, largest in zip(launch.grid, LARGEST)):
        yield f"a grid of {tuple(launch.grid)}"
    for name, attributes in facts["attributes"].items():
        for kind, number in attributes:
            if kind == "tt.divisibility" and name in values and values[name] % number:
                yield f"{name} = {values[name]} is no multiple of {number}"


def _as_triton(value, kind):
    kind = tl.str_to_ty(kind, None)
    dtype = np.uint64 if kind.is_ptr() else interpreter._get_np_dtype(kind)
    return tl.tensor(TensorHandle(np.array([value], dtype), kind), kind)


# -- what the interpreter lacks ----------------------------------------------------------------

# Functions of libdevice, by the name of what computes the same on the CPU, where it has another.
_OTHER_NAMES = {"rint": "round", "nearbyint": "round", "fabs": "abs", "sqrt_rn": "sqrt"}
# What gives numbers of another kind than it takes.
_OF_OTHER_KINDS = {
    "isnan": (torch.isnan, tl.int1), "isinf": (torch.isinf, tl.int1),
    "finitef": (torch.isfinite, tl.int1), "signbit": (torch.signbit, tl.int1),
    "ilogb": (lambda x: x.frexp().exponent - 1, tl.int32),
}  # fmt: skip


class LibDevice:
    """libdevice for the interpreter, which cannot call machine code."""

    def __getattr__(self, name):
        function, kind = _OF_OTHER_KINDS.get(
            name, (getattr(torch, _OTHER_NAMES.get(name, name), None), None)
        )
        if function is None:
            raise AttributeError(f"libdevice.{name} has no stand-in")
        return lambda *args: _called(function, args, kind)


def _called(function, args, kind):
    like = next(arg for arg in args if isinstance(arg, tl.tensor))
    values = [
        torch.from_numpy(np.ascontiguousarray(arg.handle.data))
        if isinstance(arg, tl.tensor)
        else torch.tensor(arg)
        for arg in args
    ]
    shape = like.handle.data.shape
    kind = kind or like.handle.dtype
    found = np.broadcast_to(function(*values).numpy(), shape)
    found = found.astype(bool if kind is tl.int1 else interpreter._get_np_dtype(kind))
    whole = tl.block_type(kind, like.type.shape) if like.type.is_block() else kind
    return tl.tensor(TensorHandle(found, kind), whole)


def reduce_by_halves(self, input):
    """In place of the interpreter's loop over elements, which takes minutes: halves are combined
    until one element is left."""
    axis_given = self.axis
    input, axis = self.unravel(input, axis_given)
    rank = len(input[0].handle.data.shape)
    kinds = [part.dtype for part in input]
    values = [np.moveaxis(part.handle.data, axis, 0) for part in input]
    while len(values[0]) > 1:
        half = len(values[0]) // 2
        left, right = (
            [self.to_tensor(np.ascontiguousarray(v[cut]), k) for v, k in zip(values, kinds)]
            for cut in (slice(0, half), slice(half, 2 * half))
        )
        made = self.combine_fn.fn(*left, *right)
        made = made if isinstance(made, tuple) else (made,)
        values = [
            np.concatenate([np.broadcast_to(m.handle.data, v[:half].shape), v[2 * half :]])
            for m, v in zip(made, values)
        ]
    found = []
    for value, kind in zip(values, kinds):
        data = value[0]
        if self.keep_dims:
            whole = axis_given is None
            data = data.reshape((1,) * rank) if whole else np.expand_dims(data, axis)
        elif axis_given is None:
            data = data.item()
        found.append(self.to_tensor(data, kind))
    return found


_FLOATS = {tl.float32: torch.float32, tl.float16: torch.float16, tl.bfloat16: torch.bfloat16,
           tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2}  # fmt: skip
_convert_float = interpreter._convert_float


def convert_float(input, input_dtype, output_dtype, rounding_mode):
    """The interpreter's own does not round to 8 bits, but cuts off."""
    if input_dtype not in _FLOATS or output_dtype.primitive_bitwidth != 8:
        return _convert_float(input, input_dtype, output_dtype, rounding_mode)
    bits = getattr(np, f"uint{input_dtype.primitive_bitwidth}")
    values = torch.from_numpy(np.ascontiguousarray(input).view(bits)).view(_FLOATS[input_dtype])
    return values.to(_FLOATS[output_dtype]).view(torch.uint8).numpy()


class _Active:
    """What Triton asks of a driver where modules of kernels are loaded."""

    def __init__(self, target):
        self._target = target

    def get_current_target(self):
        return self._target

    def get_current_device(self):
        return 0


def complete_interpreter(architecture):
    """For this process."""
    from torch._inductor.runtime import triton_helpers
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    driver.set_active(
        _Active(GPUTarget(architecture.kind, architecture.number, architecture.warp))
    )
    triton_helpers.set_driver_to_gpu = lambda: None  # modules call it
    triton_helpers.libdevice = LibDevice()
    interpreter.ReduceOps.generic_reduce = reduce_by_halves
    interpreter._convert_float = convert_float
