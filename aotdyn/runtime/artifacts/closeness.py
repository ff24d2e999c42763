"""How far the numbers of compiled code may be from eager's: as far as rounding reaches, and no
further. Used by `replay.py` only.

Each tensor has its own measure, so that a wrong gradient is found however small it is beside the
others. First that of its dtype; where the program itself amplifies rounding errors, its answers to
inputs that were moved by as little as its least precise dtype can tell are the measure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

# In units of the dtype's own precision, by the size of the largest element: compilers sum up in
# another order and round less often. Half precision is rounded once, at the end.
_UNITS, _UNITS_OF_HALF = 16, 1
# Of the program's own noise. Eager sums up in double precision here and there (batch norm), which
# compiled code does not; in half precision it is the compiled code that rounds less often.
_TIMES, _TIMES_OF_HALF = 64, 4
# Beside the largest of all tensors, what is this many units small is nothing: it cancels out in
# one of the two orders of summation only.
_NOTHING = 1e-3

_SEEDS = (1, 2, 3)


def unit(dtype: torch.dtype) -> float:
    """The relative distance of two neighbouring numbers."""
    return float(torch.finfo(dtype).eps)


def is_float(value: Any) -> bool:
    """Whether it is a tensor whose numbers are rounded."""
    return isinstance(value, torch.Tensor) and (
        value.dtype.is_floating_point or value.dtype.is_complex
    )


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest difference of two elements; of ints, how many differ."""
    if not a.numel():
        return 0.0
    if not is_float(b):
        return float((a != b).sum())
    a, b = _plain(a), _plain(b)
    same = (a == b) | (a.isnan() & b.isnan())
    gap = (a - b).abs().masked_fill(same, 0.0)
    return float(gap.nan_to_num(nan=float("inf")).max())


def size(tensor: torch.Tensor) -> float:
    """The largest element that is a number."""
    if not tensor.numel() or not is_float(tensor):
        return 0.0
    return float(_plain(tensor).abs().nan_to_num(0.0, 0.0, 0.0).max())


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    wide = torch.complex128 if tensor.dtype.is_complex else torch.float64
    return tensor.detach().resolve_conj().resolve_neg().to(wide)


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are equal but for rounding in their own dtype."""
    if not is_float(b):
        return torch.equal(a, b)
    units = _UNITS_OF_HALF if b.dtype in (torch.float16, torch.bfloat16) else _UNITS
    return distance(a, b) <= units * unit(b.dtype) * size(b)


class _Precision(TorchFunctionMode):
    """Notes the least precise dtype of all that is computed. (A mode of the dispatcher would see
    more, and import torch's compiler.)"""

    def __init__(self) -> None:
        super().__init__()
        self.unit = 0.0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for part in found if isinstance(found, tuple | list) else (found,):
            if is_float(part):
                self.unit = max(self.unit, unit(part.dtype))
        return found


Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Noise:
    """What the program's own numbers are worth. unit: of its least precise dtype. moved: its
    tensors for inputs that are moved by that much."""

    unit: float
    moved: list[Tensors]

    @classmethod
    def of(cls, run: Callable[[float, int], Tensors]) -> "Noise":
        """run: (by how much, a seed) -> the program's tensors for moved inputs."""
        with _Precision() as precision:
            run(0.0, 0)
        return cls(precision.unit, [run(precision.unit, seed) for seed in _SEEDS])

    def explains(
        self, what: str, actual: torch.Tensor, expected: Tensors, exact: torch.Tensor | None
    ) -> bool:
        """Whether one of the tensors is no further from eager's than the noise. exact: eager's in
        double precision, if it can be told."""
        b = expected[what]
        noise = [distance(moved[what], b) for moved in self.moved if moved[what].shape == b.shape]
        floor = 0.0
        if is_float(b):
            largest = max(map(size, expected.values()))
            floor = self.unit * (size(b) + _NOTHING * largest)
        half = self.unit > 1e-4
        if exact is not None and exact.shape == b.shape and is_float(b):
            if half:
                return distance(actual, exact) <= floor + _TIMES_OF_HALF * distance(b, exact)
            noise.append(distance(b, exact))
        times = _TIMES_OF_HALF if half else _TIMES
        return distance(actual, b) <= floor + times * max(noise, default=0.0)
