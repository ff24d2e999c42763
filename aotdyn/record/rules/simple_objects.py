"""`types.SimpleNamespace` and bare `object()`: objects of classes in C that hold attributes or
nothing."""

import operator
import types

from ..attributes import generic_setattr
from ..operation import apply
from ..variables import Constant, InstanceDict, ObjectVariable
from ..wrap import WRAPPERS, wrap_object
from .instance_dicts import snapshot
from .table import rule

NONE = Constant(None)


@rule(object)
def make_object(t):
    return t.new(ObjectVariable(object))


WRAPPERS[types.SimpleNamespace] = wrap_object


@rule(types.SimpleNamespace)
def make_namespace(t, **kwargs):
    made = t.new(ObjectVariable(types.SimpleNamespace))
    for name, value in kwargs.items():
        generic_setattr(t, made, name, value)
    return made


@rule(types.SimpleNamespace.__init__, ObjectVariable)
def init_namespace(t, self, /, **kwargs):
    for name, value in kwargs.items():
        generic_setattr(t, self, name, value)
    return NONE




def _equality(operation) -> None:
    @rule(operation, ObjectVariable)
    def equal(t, self, other):
        other = t.realize(other)
        both = (self, other)
        if any(type(each) is not ObjectVariable or each.cls is not types.SimpleNamespace
               for each in both):  # fmt: skip
            return NotImplemented
        return apply(t, operation, [snapshot(t, InstanceDict(each)) for each in both])


_equality(operator.eq)
_equality(operator.ne)
