"""Which callables of NumPy do nothing but compute: what they give depends on their arguments alone,
and the only things that they may change are the arrays among these."""

from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any

from ..package.arrays import SCALARS, np

# Modules that implement such functions. Not among them: those that print, read files, set how
# NumPy computes or draw random numbers.
_COMPUTING = (
    "numpy._core.fromnumeric", "numpy._core.numeric", "numpy._core.shape_base",
    "numpy._core.function_base", "numpy._core.numerictypes", "numpy._core.einsumfunc",
    "numpy.lib._arraysetops_impl", "numpy.lib._function_base_impl", "numpy.lib._histograms_impl",
    "numpy.lib._index_tricks_impl", "numpy.lib._nanfunctions_impl", "numpy.lib._arraypad_impl",
    "numpy.lib._polynomial_impl", "numpy.lib._shape_base_impl", "numpy.lib._stride_tricks_impl",
    "numpy.lib._twodim_base_impl", "numpy.lib._type_check_impl", "numpy.lib._ufunclike_impl",
    "numpy.linalg._linalg", "numpy.fft._helper", "numpy.fft._pocketfft",
)  # fmt: skip

# Functions of C that do more: one reads files, others make what calls code of the program.
_ACTING = {"fromfile", "frompyfunc", "nested_iters", "from_dlpack"}

# Methods that write files, or depend on what else knows the array.
_ACTING_METHODS = {
    "tofile", "dump", "dumps", "setflags", "resize", "__setstate__", "__reduce__", "__reduce_ex__",
    "__init__", "__new__", "__array_ufunc__", "__array_function__", "__getattribute__",
    "__setattr__", "__delattr__", "__dlpack__", "__hash__", "__buffer__", "__release_buffer__",
}  # fmt: skip


def _computes(value: Any) -> bool:
    if isinstance(value, np.ufunc):
        return True
    # Most functions dispatch to one of Python, or of C, that does the work.
    made_of = getattr(value, "_implementation", value)
    if isinstance(made_of, FunctionType):
        return made_of.__globals__["__name__"] in _COMPUTING
    return isinstance(made_of, BuiltinFunctionType) and value.__name__ not in _ACTING


def _functions() -> set[Any]:
    if np is None:
        return set()
    found = set(SCALARS) | {np.dtype, np.finfo, np.iinfo}
    for space in (np, np.linalg, np.fft):
        for name in space.__all__:
            value = getattr(space, name)
            if callable(value) and _computes(value):
                found.add(value)
    kinds = {np.ndarray, *(base for kind in SCALARS for base in kind.__mro__)}
    for kind in kinds:
        for name, member in vars(kind).items() if kind.__module__ == "numpy" else ():
            is_method = isinstance(member, MethodDescriptorType | WrapperDescriptorType)
            if is_method and name not in _ACTING_METHODS:
                found.add(member)
    return found


def numpy_parts(value: Any) -> tuple[str, tuple[Any, ...]] | None:
    """How an object that tells of a type of numbers is made; None for any other of NumPy."""
    if np is None:
        return None
    if isinstance(value, np.dtype) and value.type in SCALARS and value.isnative:
        return "call", (np.dtype, value.str)
    if isinstance(value, np.finfo | np.iinfo) and value.dtype.type in SCALARS:
        return "call", (type(value), value.dtype.type)
    return None


ARRAY_FUNCTIONS = frozenset(_functions())
