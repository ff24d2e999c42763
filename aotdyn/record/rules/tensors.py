"""Tensors: attributes, properties that follow from what is guarded, and what is refused."""

import math
import operator
import types

import torch

from ...package.graph import Value
from ...package.replaced import replaced_methods
from ...package.source import Attribute, Bound, StorageOffset
from ..attributes import bind_member
from ..graph_ops import REFUSED_METHODS
from ..hazards import storage_of
from ..members import MISSING, is_property, lookup, member
from ..operation import apply, call
from ..signals import GraphBreak
from ..variables import (
    Constant,
    Known,
    MethodVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from ..wrap import live_function
from .checked_numbers import number_to_check
from .gradients import OF_AUTOGRAD, of_autograd, set_before
from .table import find, rule

# Properties that are a constant of the guarded metadata.
_METADATA = {
    "dtype", "device", "layout", "ndim", "requires_grad", "is_cuda", "is_cpu", "is_sparse",
    "is_quantized", "is_meta", "is_mps", "is_xpu", "is_nested", "is_mkldnn", "is_xla", "is_hpu",
    "itemsize", "is_sparse_csr", "is_vulkan", "is_ipu", "is_ort", "is_maia", "is_mtia",
}  # fmt: skip

# Properties that give another tensor.
_VIEWS = {"T", "mT", "H", "mH", "real", "imag", "data"}


@rule(getattr, TensorVariable)
def tensor_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key in replaced_methods():
        return _replaced(t, self, key)
    if self.attributes:
        held = set_before(t, self, key)
        if held is not None:
            return held
    if key == "shape":
        return size_of(t, self)
    if key in _METADATA:
        return t.wrap_result(getattr(self.fake, key))
    if key in _VIEWS:
        return _view(t, self, key)
    if key in OF_AUTOGRAD:
        return of_autograd(t, self, key)
    if key == "nbytes":
        return apply(t, operator.mul, [numel(t, self), Constant(self.fake.element_size())])
    return _other(t, self, key, default)


def _replaced(t, self: TensorVariable, key: str) -> Variable:
    """A method or property that the program has put in place of torch's own."""
    value, owner = lookup(t, self.cls, key)
    if is_property(value):
        reference = t.references.to(value.fget)
        return call(t, live_function(t, value.fget, Bound(reference), reference), [self])
    return bind_member(t, self, key, value, owner)


def _view(t, self: TensorVariable, key: str) -> Variable:
    if key in ("real", "imag") and not self.fake.is_complex():
        if key == "real":
            return self
        raise GraphBreak("fake_failed", "imag of a real tensor")
    if key == "data" and t.graph.is_nested:
        # Transforms know this one.
        return t.graph.call(torch.Tensor.detach, [self], {})
    getter = getattr(torch.Tensor, key).__get__
    result = t.graph.run(getter, [self.fake], {})
    node = t.graph.add(key, t.references.to(getattr), (Value(t.graph.tensor_name(self)), key))
    return t.graph.wrap(result, node)


def _other(t, self: TensorVariable, key: str, default: Variable | None) -> Variable:
    """A method, or an attribute that the program has put on the tensor."""
    if key in REFUSED_METHODS and find(getattr(torch.Tensor, key, None), self) is None:
        raise GraphBreak(REFUSED_METHODS[key], f"Tensor.{key}")
    if key == "__class__":
        return Known(self.cls, Bound(t.references.to(self.cls)))
    if self.live is not None and key in getattr(self.live, "__dict__", ()):
        return t.lazy(getattr(self.live, key), Attribute(self.source, key))
    value, _ = lookup(t, self.cls, key)
    if value is MISSING:
        if self.live is not None:
            t.guard("LACKS", Attribute(self.source, "__dict__"), key)
        if default is not None:
            return default
        t.raise_exception(AttributeError, f"'Tensor' object has no attribute {key!r}")
    if isinstance(value, property | types.GetSetDescriptorType):
        raise GraphBreak("attribute", f"Tensor.{key}")
    if not hasattr(type(value), "__get__"):
        return member(t, self.cls, key, value)
    function = getattr(self.cls, key)
    return MethodVariable(self, Known(function, Bound(t.references.to(function))))


# -- sizes ------------------------------------------------------------


def size_of(t, self: TensorVariable) -> TupleVariable:
    """`self.shape`, with symbolic sizes where they are dynamic."""
    sizes = [_size(t, self, dim) for dim in range(self.fake.dim())]
    return t.new(TupleVariable(sizes, cls=torch.Size))


def _size(t, self: TensorVariable, dim: int) -> Variable:
    value = self.fake.shape[dim]
    if type(value) is int:
        return Constant(value)

    return t.new(Symbolic(value, make=lambda: t.graph.add_size(self, dim)))


@rule(torch.Tensor.size, TensorVariable)
def size(t, self, dim=None):
    if dim is None or t.constant(dim) is None:
        return size_of(t, self)
    index = t.constant(dim)
    if not -self.fake.dim() <= index < self.fake.dim():
        t.raise_exception(IndexError, "Dimension out of range")
    return _size(t, self, index % self.fake.dim())


@rule(len, TensorVariable)
def tensor_len(t, self):
    if self.fake.dim() == 0:
        t.raise_exception(TypeError, "len() of a 0-d tensor")
    return _size(t, self, 0)


@rule((torch.Tensor.numel, torch.Tensor.nelement, torch.numel), TensorVariable)
def numel(t, self):
    total: Variable = Constant(1)
    for item in size_of(t, self).items:
        total = apply(t, operator.mul, [total, item])
    return total


@rule(torch.Tensor.stride, TensorVariable)
def stride(t, self, dim=None):
    """Tensors without data may be given other strides than real ones where the size is 1, which is
    where they mean nothing, once any tensor has others there than it would have been made with."""
    sizes = self.fake.shape if dim is None else (self.fake.size(t.constant(dim)),)
    ambiguous = any(type(size) is int and size == 1 for size in sizes)
    came_in = {storage_of(variable.fake) for variable in t.tensors}
    if storage_of(self.fake) in came_in or t.frame.is_polyfill:
        return NotImplemented
    if ambiguous and any(map(_is_oddly_strided, t.graph.known())):
        raise GraphBreak("fake_failed", "stride() where the size is 1")
    return NotImplemented


def _is_oddly_strided(variable: TensorVariable) -> bool:
    """Whether a tensor has a size of 1 with another stride than that of one newly made."""
    due = 1
    for size, step in zip(reversed(variable.fake.shape), reversed(variable.fake.stride())):
        if type(size) is int and size == 1 and str(step) != str(due):
            return True
        due = due * size
    return False


@rule(torch.Tensor.storage_offset, TensorVariable)
def storage_offset(t, self):
    if self.source is None:
        value = self.fake.storage_offset()
        if type(value) is not int:
            raise GraphBreak("attribute", "a symbolic storage_offset()")
        return Constant(value)
    value = self.live.storage_offset()
    t.guard("EQUALS", StorageOffset(self.source), value)
    return Constant(value)


@rule(torch.Tensor.is_contiguous, TensorVariable)
def is_contiguous(t, self, memory_format=None):
    format_ = torch.contiguous_format if memory_format is None else t.constant(memory_format)
    if any(t.unbacked.depends_on_data(part) for part in (*self.fake.shape, *self.fake.stride())):
        # Sizes of 0 and 1 would decide it, and torch assumes that there are none.
        raise GraphBreak("data_dependent", "is_contiguous")
    return Constant(bool(t.graph.run(self.fake.is_contiguous, [], {"memory_format": format_})))


@rule(torch.Tensor.type, TensorVariable)
def tensor_type(t, self, dtype=None):
    if dtype is None or t.constant(dtype) is None:
        return Constant(self.fake.type())
    return NotImplemented


@rule((torch.is_tensor, torch.overrides.is_tensor_like))
def is_tensor(t, self):
    return Constant(isinstance(self, TensorVariable))


def _refuse(name: str, reason: str) -> None:
    method = getattr(torch.Tensor, name, None)
    if method is None:
        return

    @rule(method, TensorVariable)
    def refused(t, self, *args, **kwargs):
        raise GraphBreak(reason, f"Tensor.{name}")


_WITH_RULES = ("__init__", "__new__", "__repr__", "__str__", "__hash__", "item", "tolist",
               "__deepcopy__", "detach_", "retain_grad", "register_hook",
               "register_post_accumulate_grad_hook")  # fmt: skip

for _name, _reason in REFUSED_METHODS.items():
    if _name not in _WITH_RULES:
        _refuse(_name, _reason)


@rule(torch.Tensor.item, TensorVariable)
def item(t, self):
    """The number that a tensor holds: one that depends on data."""
    if not t.entry.options.capture or self.fake.dtype.is_complex:
        number = number_to_check(t, self)
        if number is not None:
            return number
        raise GraphBreak("tensor_value", "Tensor.item")
    return t.graph.call(torch.Tensor.item, [self], {})


@rule(torch.Tensor.tolist, TensorVariable)
def tolist(t, self):
    """The numbers of a short tensor, one by one."""
    sizes = tuple(self.fake.shape)
    if not all(type(size) is int for size in sizes) or math.prod(sizes) > _MOST_ITEMS:
        raise GraphBreak("tensor_value", "Tensor.tolist")
    if not sizes:
        return item(t, self)
    rows = [apply(t, operator.getitem, [self, Constant(index)]) for index in range(sizes[0])]
    return t.wrap_list([tolist(t, row) for row in rows])


_MOST_ITEMS = 32


@rule(int, TensorVariable)
def int_of_tensor(t, self):
    return _number(t, self, int)


@rule(float, TensorVariable)
def float_of_tensor(t, self):
    return _number(t, self, float)


def _number(t, self: TensorVariable, kind: type) -> Variable:
    if self.fake.dtype is torch.bool:
        return _not_a_number()
    return apply(t, kind, [item(t, self)])


def _not_a_number() -> Variable:
    raise GraphBreak("tensor_value", "the value of a tensor as a number")


@rule(complex, TensorVariable)
def complex_of_tensor(t, self):
    return _not_a_number()


@rule(hash, TensorVariable)
def hash_tensor(t, self):
    raise GraphBreak("hash", "a tensor")
