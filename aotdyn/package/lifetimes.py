"""Values of which the program sees when they go: variants are guarded by it."""

import array
import gc
import io
import logging
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    ModuleType,
    TracebackType,
)
from typing import Any
from weakref import ReferenceType, getweakrefcount, getweakrefs

import torch

from .own_builtins import BUILTINS as __builtins__  # noqa: F401

# What holds nothing that goes with it.
_PLAIN = frozenset((
    int, float, complex, str, bool, bytes, bytearray, type(None), range, torch.dtype, torch.device,
    torch.Size, io.StringIO, io.BytesIO,
))  # fmt: skip
_TENSORS = frozenset((torch.Tensor, torch.nn.Parameter))
# By identity: a metaclass may refuse to hash its classes.
_PLAIN_IDS = frozenset(map(id, _PLAIN))
_TENSOR_IDS = frozenset(map(id, _TENSORS))
# What others are sure to hold as well, with all that it holds.
_OF_OTHERS = (type, ModuleType, CodeType, logging.Logger, logging.Handler)
# Of these too, which may be keys of anybody's tables.
_OF_TABLES = (*_OF_OTHERS, FunctionType, BuiltinFunctionType)


def _is_bare(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds nothing but its class, and nobody waits for its end."""
    return len(gc.get_referents(tensor)) <= 1 and not getweakrefcount(tensor)


def is_plain(value: Any) -> bool:
    """Whether a value is of a type whose values hold nothing."""
    return id(type(value)) in _PLAIN_IDS


# So far down it is looked, and at so many values.
_DEEPEST = 8
_MOST = 2000


def has_end(value: Any) -> bool:
    """Whether code of the program runs, or may run, when a value goes, or what goes with it if
    nothing else holds that; or a buffer can be resized again then.

    Instances of classes of Python are looked into where the value is one or holds it within another
    one, and tensors and modules where the value is one: what is further away has owners of its own.
    """
    kind = id(type(value))
    if kind in _PLAIN_IDS or kind in _TENSOR_IDS and _is_bare(value):
        return False
    return next(_ends(value), None) is not None


def has_view(value: bytearray | array.array | io.BytesIO) -> bool:
    """Whether somebody has a view of a value, which cannot be resized then."""
    try:
        if isinstance(value, io.BytesIO):
            value.truncate(value.getbuffer().nbytes)
        elif value:
            # In this order it keeps its room, which `sys.getsizeof` tells.
            value.append(value.pop())
        else:
            value.append("a" if getattr(value, "typecode", "") == "u" else 0)
            value.pop()
    except BufferError:
        return True
    return False


def ends_in(value: Any) -> list[int]:
    """The ids of what has an end itself, of a value and what goes with it. See `has_end`."""
    return [*map(id, _ends(value))]


def _ends(value: Any) -> Iterator[Any]:
    level: list[Any] = [value]
    looked_at = 0
    for depth in range(_DEEPEST):
        kinds = {id(kind): kind for kind in map(type, level) if id(kind) not in _PLAIN_IDS}
        ending = {key for key, kind in kinds.items() if _kind_has_end(kind)}
        if ending or id(GeneratorType) in kinds or any(map(getweakrefcount, level)):
            yield from (each for each in level if id(type(each)) in ending or _is_seen(each))
        opened = {key for key, kind in kinds.items() if _is_opened(kind, depth)}
        looked_at += len(level)
        if not opened or looked_at > _MOST:
            return
        level = _held_by([each for each in level if id(type(each)) in opened])


def _kind_has_end(kind: type) -> bool:
    if id(kind) in _TENSOR_IDS:
        return False
    return kind is memoryview or kind is not GeneratorType and hasattr(kind, "__del__")


def _is_seen(value: Any) -> bool:
    """Whether something is told when a value goes, or runs then: a generator may wait in blocks
    that it leaves, or run others that do."""
    if type(value) is GeneratorType:
        return value.gi_frame is not None
    if issubclass(type(value), _OF_TABLES):
        return False
    return any(map(_tells, getweakrefs(value)))


def _tells(reference: Any) -> bool:
    """Whether a weak reference tells the program; those of torch's tables and ours do not, and of
    proxies that cannot be known."""
    if not issubclass(type(reference), ReferenceType):
        return False
    told = _CALLBACK(reference)
    return told is not None and not str(getattr(told, "__module__", "")).startswith(_SILENT)


# Not by way of the reference, which a class of the program may define.
_CALLBACK = vars(ReferenceType)["__callback__"].__get__
_SILENT = ("torch.utils.weak", "aotdyn.")


def _is_opened(kind: type, depth: int) -> bool:
    if id(kind) in _TENSOR_IDS:
        return depth == 0
    if issubclass(kind, _OF_OTHERS):
        return False
    if issubclass(kind, (torch.Tensor, torch.nn.Module)):
        return depth == 0
    return depth < 4 or not kind.__flags__ & _MADE_BY_PYTHON


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
