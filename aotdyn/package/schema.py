"""The stored form of the data model: which classes there are, under which names, in which format.

Recordings and packages are made of these records. A class or a field that is added to the model is
added here by name; the layout itself follows from the dataclass (see `Codec`).
"""

import string
import sys
from typing import Any, TypeVar

import torch

from .errors import PackageError
from .graph import Function, Graph, GraphInput, Node, Symbol, Value
from .guard import KINDS, Guard
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .reference import ClassFacts, ClassLike, Reference, TensorMeta
from .source import (
    Ahead,
    Attribute,
    Bare,
    Bound,
    Called,
    Contents,
    ContextValue,
    Derived,
    FromArray,
    Item,
    Listed,
    Local,
    Ordered,
    Over,
    OwnDict,
    Referent,
    ReferredItem,
    Size,
    StorageOffset,
    Stride,
    TypeOf,
    ValueAt,
    WaitsAt,
)
from .user_kernels import UserKernel
from .values import CHECKS, REFERENCES, Codec
from .variant import Break, EntryKey, Variant

# The format of recordings and packages. A reader takes its own format only.
#
# It grows by one when a file of the old format would be read wrongly or not at all: a stored name
# or field is renamed or removed, its meaning or its default changes, a field without default is
# added, a part of a file moves. A new class, a new kind of guard and a new field with a default
# need no new number: old readers refuse what they do not know. Golden files stand in
# tests/package/golden/.
#
# 1  the first
FORMAT_VERSION = 1

# The stored names. Never change or reuse one.
RECORDS: dict[str, type] = {
    **REFERENCES,
    # sources
    "local": Local,
    "bound": Bound,
    "attribute": Attribute,
    "item": Item,
    "referred_item": ReferredItem,
    "type_of": TypeOf,
    "size": Size,
    "stride": Stride,
    "storage_offset": StorageOffset,
    "own_dict": OwnDict,
    "contents": Contents,
    "value_at": ValueAt,
    "referent": Referent,
    "context_value": ContextValue,
    "called": Called,
    "from_array": FromArray,
    "waits_at": WaitsAt,
    "bare": Bare,
    "ahead": Ahead,
    "listed": Listed,
    "ordered": Ordered,
    "over": Over,
    # guards
    "guard": Guard,
    # graphs
    "graph": Graph,
    "input": GraphInput,
    "node": Node,
    "value": Value,
    "function": Function,
    "symbol": Symbol,
    "user_kernel": UserKernel,
    # variants
    "entry": EntryKey,
    "variant": Variant,
    "break": Break,
}


def check_guard(guard: Guard) -> None:
    """Raises ValueError unless the kind is known and the guard prints as a condition."""
    if guard.kind not in KINDS:
        raise ValueError(f"unknown kind of guard {guard.kind[:40]!r}")
    if guard.kind == "SHAPE":
        _check_template(guard.expected)
    if guard.kind == "TENSORS":
        _check_tensors(guard.expected)
    if guard.kind == "CLASSES":
        _check_classes(guard.expected)
    if guard.kind == "CLASS_LIKE" and not isinstance(guard.expected, ClassLike):
        raise ValueError("a CLASS_LIKE guard without a class")
    try:
        text = guard.text(_name)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"a {guard.kind} guard that cannot be printed: {error}") from None
    if type(text) is not str:
        raise ValueError(f"a {guard.kind} guard that cannot be printed")


def _check_template(expected: Any) -> None:
    """Only numbered fields: a width or a conversion in a damaged file must not be followed."""
    if type(expected) is not tuple or len(expected) != 2 or type(expected[0]) is not str:
        raise ValueError("a SHAPE guard without a template")
    for _, name, form, conversion in string.Formatter().parse(expected[0]):
        if name is not None and not (name.isdecimal() and not form and conversion is None):
            raise ValueError("a SHAPE guard with a damaged template")


def _check_tensors(expected: Any) -> None:
    if type(expected) is tuple and [*map(type, expected)] == [tuple, tuple]:
        sources, metas = expected
        if len(sources) == len(metas) and {*map(type, metas)} <= {TensorMeta}:
            return
    raise ValueError("a TENSORS guard without tensors")


def _check_classes(expected: Any) -> None:
    if type(expected) is not tuple or not {*map(type, expected)} <= {ClassFacts}:
        raise ValueError("a CLASSES guard without facts")


def _name(reference: Any) -> str:
    if not isinstance(reference, Reference):
        raise TypeError(f"{type(reference).__name__} instead of a reference")
    return "_"


CODEC = Codec(RECORDS, step=Derived, checks={**CHECKS, Guard: check_guard})

T = TypeVar("T")


def encode_record(record: Any) -> Any:
    """A record as msgpack's types. Raises TypeError naming what cannot be stored."""
    return CODEC.encode(record)


def decode_record(data: Any, cls: type[T] = object) -> T:
    """The mirror of `encode_record`.

    Raises PackageError for unknown names and fields, wrong types, and what is not a `cls`.
    """
    record = CODEC.decode(data)
    if not isinstance(record, cls):
        raise PackageError(f"{type(record).__name__} instead of {cls.__name__}")
    return record


def this_python() -> str:
    """The minor version of this process' Python, as files name it."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def this_torch() -> str:
    """The version of this process' torch, as files name it."""
    return str(torch.__version__)


def minor(version: str) -> str:
    """`2.13` of `2.13.0+cpu`."""
    return ".".join(version.split(".")[:2])
