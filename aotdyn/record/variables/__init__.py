"""The kinds of values that the tracer distinguishes."""

from .base import Alias, Constant, Known, Lazy, Null, Opaque, Variable, Varying
from .callables import FunctionVariable, MethodVariable, SuperVariable
from .containers import (
    CellVariable,
    DictVariable,
    ListVariable,
    LiveListVariable,
    RangeVariable,
    Sequence,
    SetVariable,
    SliceVariable,
    TupleVariable,
    ViewVariable,
)
from .iterators import (
    BackwardsIterator,
    EnumerateVariable,
    FilterVariable,
    FixedIterator,
    GeneratorVariable,
    IteratorVariable,
    MapVariable,
    SequenceIterator,
    ZipVariable,
)
from .mappings import IdentityVariable, InstanceDict, MappingObject, ProxyVariable
from .objects import DELETED, ExceptionVariable, GroupVariable, HandledVariable, ObjectVariable
from .tensor import Symbolic, TensorVariable

__all__ = [
    "DELETED",
    "Alias",
    "BackwardsIterator",
    "CellVariable",
    "Constant",
    "DictVariable",
    "EnumerateVariable",
    "ExceptionVariable",
    "FilterVariable",
    "FixedIterator",
    "FunctionVariable",
    "GeneratorVariable",
    "GroupVariable",
    "HandledVariable",
    "IdentityVariable",
    "InstanceDict",
    "IteratorVariable",
    "Known",
    "Lazy",
    "ListVariable",
    "LiveListVariable",
    "MapVariable",
    "MappingObject",
    "MethodVariable",
    "Null",
    "ObjectVariable",
    "Opaque",
    "ProxyVariable",
    "RangeVariable",
    "Sequence",
    "SequenceIterator",
    "SetVariable",
    "SliceVariable",
    "SuperVariable",
    "Symbolic",
    "TensorVariable",
    "TupleVariable",
    "Variable",
    "Varying",
    "ViewVariable",
    "ZipVariable",
]
