"""NumPy: its scalars are constants; arrays are known by what they hold, or by how they are laid
out as long as they only become tensors. Without NumPy nothing is registered here."""

import operator
import types
from typing import Any

from ...package.arrays import SCALARS, np
from ...package.reference import Import
from ..arrays import compute, owner_of, require_layout
from ..body import BodyWriter, rebuilds
from ..members import lookup, no_attribute
from ..signals import GraphBreak
from ..variables import Constant, Variable
from ..variables.arrays import ArrayVariable
from ..wrap import WRAPPERS, add_predicate, known_by_identity, opaque, wraps
from .builtin_attributes import builtin_getattr
from .library import by_index
from .table import rule

# -- what comes in ------------------------------------------------------------


@wraps(*SCALARS)
def _scalar(t, value: Any, source) -> Variable:
    t.guard("EQUALS", source, value)
    return Constant(value, source)


def _array(t, value: Any, source) -> Variable:
    if value.dtype.type not in SCALARS or not value.dtype.isnative:
        return opaque(t, value, source)
    t.guard("TYPE", source, Import("numpy", "ndarray"))
    variable = ArrayVariable(None, source, value)
    t.remember(value, variable)
    return variable


if np is not None:
    WRAPPERS[np.ndarray] = _array
    for _kind in (np.ufunc, type(np.sum)):
        WRAPPERS[_kind] = known_by_identity
    add_predicate(lambda value: issubclass(type(value), (np.dtype, np.finfo, np.iinfo)),
                  known_by_identity)  # fmt: skip

# -- what arrays are asked for ------------------------------------------------------------

# Of one that came in it is enough to know how it is laid out.
_OF_LAYOUT = {"shape", "ndim", "size", "dtype", "nbytes", "itemsize", "strides"}
# How the memory is held: the trace's own arrays may hold it in another way.
_OF_MEMORY = {"base", "flags", "data", "ctypes", "__array_interface__", "__array_struct__", "flat"}


@rule(getattr, ArrayVariable)
def array_getattr(t, self, name, default=None):
    key = t.constant(name)
    value, _ = lookup(t, self.type, key)
    if key in _OF_MEMORY:
        raise GraphBreak("attribute", f"ndarray.{key}")
    if key in _OF_LAYOUT and self.value is None:
        require_layout(t, self)
        return t.wrap_result(getattr(self.live, key))
    if isinstance(value, types.GetSetDescriptorType):
        return t.wrap_result(getattr(t.arrays.look(t, self), key))
    if key == "__class__" or isinstance(value, _METHODS):
        return builtin_getattr(t, self, name, default)
    if default is not None:
        return default
    no_attribute(t, self, key, f"'numpy.ndarray' object has no attribute {key!r}")


_METHODS = types.MethodDescriptorType | types.WrapperDescriptorType


@rule((setattr, delattr), ArrayVariable)
def array_setattr(t, self, name, value=None):
    if t.constant(name) == "shape" and value is not None:
        changed = compute(t, setattr, [self, name, t.realize(value)], {})
        if changed is not None:
            return changed
    raise GraphBreak("mutation", f"ndarray.{t.constant(name)}")


@rule(len, ArrayVariable)
def array_len(t, self):
    if self.value is not None or not self.live.ndim:
        return NotImplemented
    require_layout(t, self)
    return Constant(len(self.live))


@rule(iter, ArrayVariable)
def array_iter(t, self):
    if not t.arrays.look(t, self).ndim:
        t.raise_exception(TypeError, "iteration over a 0-d array")
    return by_index(t, self)


@rule((operator.setitem, operator.delitem), ArrayVariable)
def array_setitem(t, self, *rest):
    operation = operator.setitem if len(rest) == 2 else operator.delitem
    result = compute(t, operation, [self, *map(t.realize, rest)], {})
    if result is None:
        raise GraphBreak("tensor_value", "an item of an ndarray is set")
    return result


# -- arrays that leave the trace ------------------------------------------------------------


@rebuilds(ArrayVariable)
def _rebuild(w: BodyWriter, v: ArrayVariable) -> str:
    value = v.value
    owner = owner_of(value)
    home = w.t.arrays.known(owner)
    w.t.arrays.require_own(owner)
    lasting = type(owner) is np.ndarray and owner.flags.c_contiguous and owner.flags.writeable
    if not lasting or owner.nbytes > _MOST_REBUILT or home is not None and home.live is not None:
        raise GraphBreak("reconstruct", "an ndarray", v.origin)
    if owner is not value:
        if not value.flags.writeable:
            raise GraphBreak("reconstruct", "an ndarray", v.origin)
        return _rebuild_view(w, value, w.value(w.t.arrays.variable(w.t, owner)))
    made = f"{w.ref(Import('numpy', 'frombuffer'))}({owner.tobytes()!r}, {owner.dtype.str!r})"
    return w.bind("array", f"{made}.reshape({owner.shape}).copy()")


def _rebuild_view(w: BodyWriter, value: Any, owner: str) -> str:
    offset = _address(value) - _address(owner_of(value))
    parts = f"{value.shape}, {value.dtype.str!r}, {owner}, {offset}, {value.strides}"
    return w.bind("array", f"{w.ref(Import('numpy', 'ndarray'))}({parts})")


def _address(value: Any) -> int:
    return value.__array_interface__["data"][0]


# Of arrays that are written out in a body.
_MOST_REBUILT = 2048
