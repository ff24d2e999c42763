"""Whether one variant serves every call that another one does, from their guards alone: what a
dynamic variant makes superfluous."""

import math
from collections.abc import Sequence
from typing import Any

from .guard import Guard
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .reference import Import, Literal, TensorMeta
from .source import Size, Source, Stride
from .variant import EntryKey, Variant

_INT, _FLOAT = Import("builtins", "int"), Import("builtins", "float")


class Unknown(Exception):
    """A value that guards do not fix."""


def covers(general: Sequence[Guard], special: Sequence[Guard]) -> bool:
    """Whether the guards of `special` imply those of `general`. False where that is not plain, and
    without any guard, of which every variant has some."""
    given = _Facts(special)
    return bool(general) and all(given.imply(guard) for guard in general)


def needed(variants: Sequence[Variant]) -> list[Variant]:
    """The variants of recordings without those that another one covers, in their order."""
    by_entry: dict[EntryKey, list[Variant]] = {}
    for variant in variants:
        by_entry.setdefault(variant.entry, []).append(variant)
    dropped: set[int] = set()
    for group in by_entry.values():
        for index, variant in enumerate(group):
            for other_index, other in enumerate(group):
                if other is variant or id(other) in dropped:
                    continue
                # Of two that cover each other the newer one stays.
                if _replaces(other, variant) and (
                    other_index > index or not _replaces(variant, other)
                ):
                    dropped.add(id(variant))
                    break
    return [variant for variant in variants if id(variant) not in dropped]


def _replaces(general: Variant, special: Variant) -> bool:
    """Whether one variant of a recording covers another one, and needs no other code."""
    return (
        goes_as_far(general, special)
        and set(general.codes) <= set(special.codes)
        and covers(general.guards, special.guards)
    )


def goes_as_far(general: Variant, special: Variant) -> bool:
    """Whether a variant breaks nowhere that another one does not. What it calls at a break of its
    own was recorded for other values."""
    if general.breaks is None:
        return True
    return special.breaks is not None and general.breaks.stack == special.breaks.stack


class _Facts:
    """What is known where some guards hold."""

    def __init__(self, guards: Sequence[Guard]):
        self.guards = {_identity(guard) for guard in guards}
        self.values: dict[Source | None, Any] = {}
        self.metas: dict[Source, TensorMeta] = {}
        for guard in guards:
            if guard.kind == "EQUALS":
                self.values[guard.source] = guard.expected
            elif guard.kind == "TENSORS":
                self.metas.update(zip(*guard.expected, strict=True))

    def imply(self, guard: Guard) -> bool:
        if _identity(guard) in self.guards:
            return True
        if guard.kind == "TENSORS":
            return all(
                source in self.metas and _fits(self.metas[source], meta)
                for source, meta in zip(*guard.expected, strict=True)
            )
        if guard.kind == "TYPE" and guard.expected in (_INT, _FLOAT):
            kind = int if guard.expected == _INT else float
            return type(self.values.get(guard.source)) is kind
        return guard.kind == "SHAPE" and self._imply_shape(guard)

    def _imply_shape(self, guard: Guard) -> bool:
        try:
            text = guard.text(str, lambda source: f"({self._value(source)!r})")
            return eval(text, {"math": math}) is True
        except (Unknown, ArithmeticError, NameError, TypeError, ValueError):
            return False

    def _value(self, source: Source) -> Any:
        """A number that the guards fix. Raises Unknown where they do not."""
        if isinstance(source, Size | Stride):
            meta = self.metas.get(source.of)
            parts = () if meta is None else meta.size if type(source) is Size else meta.stride
            value = parts[source.dim] if source.dim < len(parts) else None
        else:
            value = self.values.get(source)
        if type(value) not in (int, float):
            raise Unknown(source)
        return value


def _identity(guard: Guard) -> tuple[str, Source | None, Literal]:
    # Values that are equal need not be the same, 1 and True or 0.0 and -0.0.
    return guard.kind, guard.source, Literal(guard.expected)


def _fits(special: TensorMeta, general: TensorMeta) -> bool:
    """Whether all tensors of the one description are of the other."""
    for name in ("size", "stride"):
        ours, theirs = getattr(special, name), getattr(general, name)
        if len(ours) != len(theirs):
            return False
        if any(g is not None and s != g for s, g in zip(ours, theirs, strict=True)):
            return False
    facts = ("dtype", "device", "requires_grad", "cls", "layout", "keys")
    return all(getattr(special, name) == getattr(general, name) for name in facts)
