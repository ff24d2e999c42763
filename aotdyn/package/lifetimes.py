"""Values of which the program sees when they go: variants are guarded by it."""

import gc
import io
from types import CodeType, FrameType, FunctionType, GeneratorType, ModuleType, TracebackType
from typing import Any

import torch

from .own_builtins import BUILTINS as __builtins__  # noqa: F401

# What holds nothing that goes with it.
_PLAIN = frozenset((
    int, float, complex, str, bool, bytes, bytearray, type(None), range, torch.dtype, torch.device,
    torch.Size, io.StringIO, io.BytesIO,
))  # fmt: skip
# What others are sure to hold as well, with all that it holds.
_OF_OTHERS = (type, ModuleType, CodeType)


def is_plain(value: Any) -> bool:
    """Whether a value is of a type whose values hold nothing."""
    return type(value) in _PLAIN


# So far down it is looked.
_DEEPEST = 4


def has_end(value: Any) -> bool:
    """Whether code of the program runs, or may run, when a value goes, or what goes with it if
    nothing else holds that; or a buffer can be resized again then.

    Instances of classes of Python are looked into where the value is one or directly holds it, and
    tensors and modules where the value is one: what is further away has owners of its own.
    """
    kind = type(value)
    if kind in _PLAIN:
        return False
    level: list[Any] = [value]
    kinds = {kind}
    for depth in range(_DEEPEST):
        if any(map(_kind_has_end, kinds)):
            return True
        if GeneratorType in kinds and any(map(_is_suspended, level)):
            return True
        opened = {kind for kind in kinds if _is_opened(kind, depth)}
        if not opened:
            return False
        level = _held_by([each for each in level if type(each) in opened])
        kinds = {*map(type, level)} - _PLAIN
    return False


def _kind_has_end(kind: type) -> bool:
    return kind is memoryview or kind is not GeneratorType and hasattr(kind, "__del__")


def _is_suspended(value: Any) -> bool:
    # It may wait in blocks that it leaves, or run others that do.
    return type(value) is GeneratorType and value.gi_frame is not None


def _is_opened(kind: type, depth: int) -> bool:
    if issubclass(kind, _OF_OTHERS):
        return False
    if issubclass(kind, torch.Tensor | torch.nn.Module):
        return depth == 0
    return depth < 2 or not kind.__flags__ & _MADE_BY_PYTHON


# Of classes that a class statement has made.
_MADE_BY_PYTHON = 1 << 9


def _held_by(values: list[Any]) -> list[Any]:
    held: list[Any] = []
    others = []
    for value in values:
        if type(value) is FunctionType:
            # Not the globals.
            held += [value.__closure__, value.__defaults__, value.__kwdefaults__]
        elif type(value) is TracebackType:
            held += _held_by_frames(value)
        else:
            others.append(value)
    return held + gc.get_referents(*others)


def _held_by_frames(trace: TracebackType | None) -> list[Any]:
    """What the frames hold that an exception has left. Of one that still runs nothing is told."""
    held: list[Any] = []
    while trace is not None:
        held += gc.get_referents(trace.tb_frame)
        trace = trace.tb_next
    return [value for value in held if type(value) is not FrameType]
