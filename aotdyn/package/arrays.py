"""NumPy as far as packages know it: its scalars are plain values. Without NumPy there are none."""

from typing import Any

try:
    import numpy as np  # torch has imported it already
except ImportError:  # torch does without it
    np = None

from .own_builtins import BUILTINS as __builtins__  # noqa: F401

# The names of the types whose values are stored, by their bits. Never change or reuse one.
_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip

SCALARS: dict[type, str] = {} if np is None else {np.dtype(name).type: name for name in _NAMES}


def scalar_of(name: str, bits: bytes) -> Any:
    """The scalar with the bits that its `tobytes` gives. Raises ValueError where there is none."""
    if np is None:
        raise ValueError("NumPy is not installed")
    if name not in _NAMES or len(bits) != np.dtype(name).itemsize:
        raise ValueError("damaged data of a NumPy scalar")
    return np.frombuffer(bits, name)[0]


def same_scalar(a: Any, b: Any) -> bool:
    """Whether two scalars of one type have the same bits."""
    return a.tobytes() == b.tobytes()
