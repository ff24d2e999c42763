"""Parameters and buffers as data: recorded where they are wanted, folded into compiled graphs at
pack, and compared with those of the served model."""

import ctypes
import hashlib
from dataclasses import field
from typing import Any

import torch

from .errors import PackageError
from .frozen import frozen


@frozen
class Weight:
    """A tensor's contents, contiguous. digest: over dtype, size and contents."""

    digest: str
    dtype: str
    size: tuple[int, ...]
    data: bytes = field(repr=False)


@frozen
class GraphWeights:
    """The weights that a graph was recorded with: digests by the names of its inputs."""

    graph: str
    inputs: tuple[tuple[str, str], ...]


@frozen
class FrozenInput:
    """An input whose value compiled code has taken for a constant."""

    input: int
    digest: str


def can_be_stored(value: Any) -> bool:
    """Whether a tensor is nothing but its numbers."""
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )


def weight_digest(tensor: torch.Tensor) -> str:
    """The digest of a weight with this value."""
    return _digest(_plain(tensor))


def weight_of(tensor: torch.Tensor) -> Weight:
    """A tensor's value as data."""
    plain = _plain(tensor)
    dtype = str(plain.dtype).removeprefix("torch.")
    return Weight(_digest(plain), dtype, tuple(plain.shape), bytes(_memory(plain)))


def tensor_of(weight: Weight) -> torch.Tensor:
    """The mirror of `weight_of`. Raises PackageError for data that do not fit together."""
    dtype = getattr(torch, weight.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise PackageError(f"a weight of dtype {weight.dtype!r}")
    if not weight.data:
        return torch.empty(weight.size, dtype=dtype)
    try:
        return torch.frombuffer(bytearray(weight.data), dtype=dtype).view(weight.size)
    except (RuntimeError, ValueError) as error:
        raise PackageError(f"a weight that is damaged: {error}") from None


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _memory(plain: torch.Tensor) -> Any:
    size = plain.numel() * plain.element_size()
    return (ctypes.c_char * size).from_address(plain.data_ptr()) if size else b""


def _digest(plain: torch.Tensor) -> str:
    found = hashlib.sha256(f"{plain.dtype} {tuple(plain.shape)} ".encode())
    found.update(_memory(plain))
    return found.hexdigest()[:32]
