"""Kernels of Triton that a program launches itself: how a graph starts one, what it is made of.

Kernels are told by the shape of the objects, so that the stand-in for a missing Triton is as good
as the library: each layer (`@triton.autotune`, `@triton.heuristics`, `@triton.jit`) has the next
one in `fn`, down to the Python function.
"""

import dis
import hashlib
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from .frozen import frozen
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .variant import code_hash

_HOME = "triton.runtime"


@frozen
class UserKernel:
    """kernel: where the program has it, `module:qualname`. name: of the innermost layer in `text`,
    a module of its own that defines it."""

    kernel: str
    name: str
    text: str


def is_kernel(value: Any) -> bool:
    """Whether an object is what a decorator of Triton makes of a function that runs on a GPU."""
    return _is_of(value, "KernelInterface")


def is_host_function(value: Any) -> bool:
    """Whether an object is a function of Triton for grids and constants, such as `triton.cdiv`."""
    return _is_of(value, "ConstexprFunction")


def is_dtype(value: Any) -> bool:
    """Whether an object is one of Triton's types, such as `triton.language.float32`."""
    return type(value).__name__ == "dtype" and type(value).__module__.startswith("triton.language")


def dtype_name(value: Any) -> str:
    """What one of Triton's types is called in `triton.language`; "" for a type without a name."""
    names = vars(sys.modules["triton.language"]).items()
    return next((name for name, each in names if each is value), "")


def _is_of(value: Any, name: str) -> bool:
    return any(
        base.__name__ == name and base.__module__.startswith(_HOME) for base in type(value).__mro__
    )


def layers(kernel: Any) -> Iterator[Any]:
    """The kernel's layers from the outermost to the one that only wraps the Python function."""
    while not isinstance(kernel, FunctionType):
        yield kernel
        kernel = kernel.fn


def function_of(kernel: Any) -> FunctionType:
    """The Python function that a kernel is made of."""
    *_, innermost = layers(kernel)
    return innermost.fn


def start(kernel: Any, grid: Any, args: tuple, named: dict[str, Any]) -> None:
    """Starts a kernel, past the layers that choose: what they choose is in `named`."""
    *_, innermost = layers(kernel)
    innermost[grid](*args, **named)


def launcher(kernel: Any, grid: Any) -> Any:
    """`kernel[grid]`."""
    return kernel[grid]


def kernel_hash(kernel: Any) -> str:
    """A hash of all that a kernel computes: its code, that of the functions that it calls, the
    constants that it uses, and its configurations."""
    return hashlib.sha256(repr(_facts(kernel, ())).encode()).hexdigest()[:16]


def _facts(value: Any, above: tuple) -> Any:
    """What an object that a kernel refers to is, in plain data, the same in all processes."""
    if is_kernel(value):
        if any(value is each for each in above):
            return "itself"
        return [_layer(layer, (*above, value)) for layer in layers(value)]
    if isinstance(value, ModuleType):
        return value.__name__
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if type(value).__name__ == "constexpr":
        return _facts(value.value, above)
    # Triton's own functions and types: their names are in the code, and a stand-in has no others.
    return "another object"


def _layer(layer: Any, above: tuple) -> Any:
    if hasattr(layer, "configs"):
        return [sorted(config.all_kwargs().items()) for config in layer.configs]
    if hasattr(layer, "values"):
        return [(name, code_hash(each.__code__)) for name, each in sorted(layer.values.items())]
    function = layer.fn
    loaded = {i.argval for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL"}
    used = {
        name: _facts(function.__globals__[name], above)
        for name in sorted(loaded & function.__globals__.keys())
    }
    return code_hash(function.__code__), repr(function.__defaults__), used
