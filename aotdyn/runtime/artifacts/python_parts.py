"""What the text of a graph whose parts are Python functions refers to: operators of torch, and
compiled kernels, which are called through ctypes."""

import ctypes
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from ...package.errors import PackageError
from ...package.plan import Kernel, Plan

_TYPES = {
    "tensor": ctypes.c_void_p,
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "bool": ctypes.c_bool,
}


def _bias_addmm(bias: Any, a: Any, b: Any, *, out: Any, alpha: Any = 1, beta: Any = 1) -> Any:
    """A bias that is a single row, repeated, is taken as that row."""
    if bias.size(0) == 1 or (bias.stride(0) == 0 and bias.size(0)):
        bias = bias[0]
    return torch.addmm(bias, a, b, out=out, alpha=alpha, beta=beta)


_EXTERN = SimpleNamespace(
    mm=torch.mm, bmm=torch.bmm, addmm=torch.addmm, baddbmm=torch.baddbmm, _int_mm=torch._int_mm,
    bias_addmm=_bias_addmm, convolution=torch.convolution,
)  # fmt: skip

# The names are Inductor's.
_guards = torch._C._dynamo.guards
NAMES: dict[str, Any] = {
    "torch": torch, "math": math, "inf": math.inf, "nan": math.nan, "device": torch.device,
    "aten": torch.ops.aten, "inductor_ops": torch.ops.inductor, "_quantized": torch.ops._quantized,
    "extern_kernels": _EXTERN, "empty_strided": torch.empty_strided,
    "assert_size_stride": _guards.assert_size_stride,
    "assert_alignment": _guards.assert_alignment,
    "empty_strided_cpu": _guards._empty_strided_cpu,
    "reinterpret_tensor": _guards._reinterpret_tensor,
    "alloc_from_pool": torch.ops.inductor._alloc_from_pool,
}  # fmt: skip


def python_names(plan: Plan, path: str) -> dict[str, Any]:
    """What is free in the text. path: of the library with the kernels.

    Raises PackageError if the library does not load or lacks a kernel.
    """
    try:
        library = ctypes.CDLL(path)
        kernels = {kernel.name: _kernel(library, kernel) for kernel in plan.kernels}
    except (OSError, AttributeError, KeyError) as error:
        raise PackageError(f"the library does not load here: {str(error)[:200]}") from error
    return {**NAMES, **kernels}


def _kernel(library: ctypes.CDLL, kernel: Kernel) -> Callable[..., None]:
    """A kernel as a function of tensors and numbers. It answers with the text of an error."""
    function = getattr(library, kernel.symbol)
    function.argtypes = [_TYPES[each] for each in kernel.types]
    function.restype = ctypes.c_char_p
    names = [f"a{index}" for index in range(len(kernel.types))]
    passed = [
        f"{name}.data_ptr()" if each == "tensor" else name
        for name, each in zip(names, kernel.types)
    ]
    text = (
        f"def kernel({', '.join(names)}):\n"
        f"    error = function({', '.join(passed)})\n"
        f"    if error is not None: raise RuntimeError(error.decode(errors='replace'))\n"
    )
    scope: dict[str, Any] = {"function": function}
    exec(compile(text, f"<aotdyn {kernel.name}>", "exec"), scope)
    return scope["kernel"]
