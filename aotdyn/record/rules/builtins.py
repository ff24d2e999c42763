"""Rules for builtin functions and operators that are the same for many kinds of values."""

import abc
import math
import operator
import typing
from collections.abc import Iterable, Iterator
from types import NoneType, UnionType
from typing import Any, NoReturn

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...package.arrays import SCALARS
from ...package.source import Bound
from ..attributes import own_dict_source
from ..iteration import each, iterate
from ..members import lookup, rely_on_subclass
from ..operation import apply, call, call_method, is_none, truth
from ..own_operators import may_compare, own_method
from ..references import ALIASES
from ..signals import GraphBreak, Raised
from ..special_methods import has_special, is_refused
from ..variables import (
    Alias,
    CellVariable,
    Constant,
    DictVariable,
    FunctionVariable,
    GradientFunction,
    InstanceDict,
    IteratorVariable,
    Known,
    MethodVariable,
    ObjectVariable,
    Opaque,
    RangeVariable,
    Sequence,
    SetVariable,
    SliceVariable,
    SuperVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
    ViewVariable,
)
from . import class_statements, symbolic
from .sequences import same_or_equal
from .table import rule

# -- types ------------------------------------------------------------


# C gives up on tuples in tuples, too, but not where the tracer does.
_DEEPEST = 100


def classes_of(
    t, kinds: Variable, function: str = "isinstance", depth: int = 0
) -> Iterator[type]:
    """The classes named by the second argument of isinstance or issubclass: a class, a union, or
    tuples of them. What comes behind the first that fits is not looked at."""
    kinds = t.realize(kinds)
    if depth > _DEEPEST:
        raise GraphBreak("recursion", f"the classes of {function}()")
    if isinstance(kinds, TupleVariable):
        for item in kinds.items:
            yield from classes_of(t, item, function, depth + 1)
        return
    value = t.constant(kinds)
    if isinstance(value, type):
        yield value
    elif typing.get_origin(value) in (typing.Union, UnionType):
        members = (Alias(m) if isinstance(m, ALIASES) else Known(m) for m in value.__args__)
        # All of them are looked at before the first is asked.
        yield from [cls for member in members for cls in classes_of(t, member, function)]
    elif isinstance(value, typing._BaseGenericAlias) and not hasattr(value, "__args__"):
        yield value.__origin__
    else:
        refused(t, isinstance if function == "isinstance" else issubclass, value)


def refused(t, check: Any, kind: Any) -> NoReturn:
    """Raises what `isinstance` or `issubclass` does for a second argument that it does not take."""
    try:
        check(object() if check is isinstance else object, kind)
    except TypeError as error:
        t.raise_exception(TypeError, *error.args)
    raise GraphBreak("unknown_operation", f"{check.__name__}(…, {kind!r})")


@rule(isinstance)
def isinstance_(t, self, kinds):
    if type(self) is Variable:
        return NotImplemented
    kind = self.type
    classes = []
    for cls in classes_of(t, kinds):
        classes.append(cls)
        if _is_instance(t, self, kind, cls):
            return Constant(True)
    if _tells_class(t, self):
        told = t.realize(apply(t, getattr, [self, Constant("__class__")]))
        if isinstance(told, Known) and isinstance(told.value, type) and told.value is not kind:
            return Constant(_issubclass(t, told.value, classes))
    return Constant(False)


def _tells_class(t, value: Variable) -> bool:
    """Whether an object may call itself an instance of another class than its own."""
    return isinstance(value, ObjectVariable) and (
        lookup(t, value.type, "__class__")[1] is not object
        or has_special(t, value, "__getattribute__")
    )


def _issubclass(t, kind: type, classes: Iterable[type]) -> bool:
    """`issubclass`, guarded where a class of Python may answer otherwise later."""
    for cls in classes:
        own = _own_check(t, cls, "subclass")
        if own is not None:
            if truth(t, call(t, own, [Known(kind, Bound(t.references.to(kind)))])):
                return True
            continue
        answer = _ask_subclass(t, kind, cls)
        rely_on_subclass(t, kind, cls, answer)
        if answer:
            return True
    return False


def _own_check(t, cls: type, what: str) -> Variable | None:
    """`__instancecheck__` or `__subclasscheck__` of a class, where the program has written it."""
    return own_method(t, (f"__{what}check__",), Known(cls, Bound(t.references.to(cls))))


def _ask_subclass(t, kind: type, cls: type) -> bool:
    """`issubclass` by C, or by the hooks of an abstract class."""
    try:
        return issubclass(kind, cls)
    except TypeError as error:
        t.raise_exception(TypeError, *error.args)
    except Exception as error:
        raise GraphBreak("subclass", f"issubclass(…, {cls.__qualname__}): {error!r}") from None


def _is_instance(t, self: Variable, kind: type, cls: type) -> bool:
    if kind is cls:
        return True
    if isinstance(self, TensorVariable):
        # What stands for it is seen by nobody; but parameters and buffers are marked as such.
        marked = isinstance(self.fake, cls) and not issubclass(cls, FakeTensor)
        return marked or issubclass(kind, cls)
    own = _own_check(t, cls, "instance")
    if own is not None:
        return truth(t, call(t, own, [self]))
    if isinstance(self, Known):
        return isinstance(self.value, cls)
    metaclass = type(cls)
    checker = metaclass.__instancecheck__
    if checker is type.__instancecheck__ or checker is abc.ABCMeta.__instancecheck__:
        return _issubclass(t, kind, (cls,))
    if metaclass.__module__ not in _KNOWN_CHECKS:
        raise GraphBreak("subclass", f"isinstance(…, {cls.__qualname__})")
    if cls is typing.Any or getattr(cls, "_is_protocol", False):
        if cls is typing.Any or not getattr(cls, "_is_runtime_protocol", False):
            refused(t, isinstance, cls)
        return _follows(t, self, kind, cls)
    return _issubclass(t, kind, (cls,))


def _follows(t, self: Variable, kind: type, protocol: type) -> bool:
    """Whether an object has all that a protocol names, or its class says that it has."""
    names = sorted(typing._get_protocol_attrs(protocol))
    of_methods = all(callable(getattr(protocol, name, None)) for name in names)
    if of_methods and _issubclass(t, kind, (protocol,)):
        return True
    if all(_has_member(t, self, protocol, name) for name in names):
        return True
    return protocol in kind.__mro__


def _has_member(t, self: Variable, protocol: type, name: str) -> bool:
    """Whether an object has what a protocol names; a method that is None says that it has not."""
    asked = [self, Constant(name)]
    if not truth(t, apply(t, hasattr, asked)):
        return False
    is_method = callable(getattr(protocol, name, None))
    return not is_method or not is_none(t, apply(t, getattr, asked))


# Metaclasses whose check depends on the class alone, or is that of protocols.
_KNOWN_CHECKS = {"abc", "_abc", "typing", "enum", "torch.nn.parameter", "torch._C", "torch"}


@rule(issubclass, Known)
def issubclass_(t, self, kinds):
    if not isinstance(self.value, type):
        t.raise_exception(TypeError, "issubclass() arg 1 must be a class")
    return Constant(_issubclass(t, self.value, classes_of(t, kinds, "issubclass")))


@rule(type)
def type_(t, self, bases=None, namespace=None, /):
    if bases is not None:
        return class_statements.make_by_type(t, self, bases, namespace)
    if isinstance(self, Known):
        kind = type(self.value)
    else:
        kind = self.type
    return Known(kind, Bound(t.references.to(kind)))


@rule(callable)
def callable_(t, self):
    if isinstance(self, FunctionVariable | MethodVariable):
        return Constant(True)
    if isinstance(self, Known):
        return Constant(callable(self.value))
    return Constant(lookup(t, self.type, "__call__")[1] is not None)


@rule(hasattr)
def hasattr_(t, self, name):
    try:
        t.realize(apply(t, getattr, [self, name]))
    except Raised as raised:
        if issubclass(raised.value.type, AttributeError):
            return Constant(False)
        raise
    return Constant(True)


@rule(super)
def super_(t, self=None, receiver=None):
    if self is None:
        return _implicit_super(t)
    cls = t.constant(self)
    if receiver is None:
        raise GraphBreak("unknown_call", "super(cls) without an object")
    if not isinstance(cls, type):
        told = type(cls).__name__
        t.raise_exception(TypeError, f"super() argument 1 must be a type, not {told}")
    return _super_of(t, cls, t.realize(receiver))


def _super_of(t, cls: type, receiver: Variable) -> Variable:
    of_class = isinstance(receiver, Known) and isinstance(receiver.value, type)
    mro = receiver.value.__mro__ if of_class else ()
    if cls not in receiver.type.__mro__ and cls not in mro:
        if _tells_class(t, receiver):
            raise GraphBreak("unknown_call", "super() of an object that is no instance")
        told = "super(type, obj): obj must be an instance or subtype of type"
        t.raise_exception(TypeError, told)
    return t.new(SuperVariable(cls, receiver))


def _implicit_super(t) -> Variable:
    """`super()`: the class from the frame's `__class__` cell, the object is its first argument."""
    frame = t.frame
    cell = frame.cells.get("__class__")
    code = frame.code
    if cell is None or cell.content is None or not code.co_argcount:
        t.raise_exception(RuntimeError, "super(): no arguments")
    first = code.co_varnames[0]
    receiver = frame.locals.get(first)
    if receiver is None and first in frame.cells:
        receiver = frame.cells[first].content
    if receiver is None:
        t.raise_exception(RuntimeError, "super(): arg[0] deleted")
    cls = t.constant(cell.content)
    if not isinstance(cls, type):
        told = type(cls).__name__
        t.raise_exception(RuntimeError, f"super(): __class__ is not a type ({told})")
    return _super_of(t, cls, t.realize(receiver))


# -- identity, truth, equality ------------------------------------------------------------


@rule(operator.is_)
def is_(t, self, other):
    other = t.realize(other)
    same = identical(t, self, other)
    if same is None:
        raise GraphBreak("unknown_operation", f"{self.describe()} is {other.describe()}")
    return Constant(same)


@rule(operator.is_not)
def is_not(t, self, other):
    return Constant(not is_(t, self, other).value)


def identical(t, left: Variable, right: Variable) -> bool | None:
    """Whether two values are one object; None where that is not known."""
    left, right = t.realize(left), t.realize(right)
    if left is right:
        return True
    kept = t.effects.kept
    if (id(left) in kept or id(right) in kept) and left.type is right.type:
        return None
    if isinstance(left, InstanceDict) and isinstance(right, InstanceDict):
        return identical(t, left.owner, right.owner)
    for own, other in ((left, right), (right, left)):
        if isinstance(own, InstanceDict) and isinstance(other, DictVariable):
            return _identical_to_own(t, own, other)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _identical_constants(t, left, right)
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        return _identical_numbers(t, left, right)
    if isinstance(left, Known) and isinstance(right, Known):
        return left.value is right.value
    if _is_singleton(left) or _is_singleton(right):
        return _identical_types(left, right)
    if isinstance(left, Opaque) and isinstance(right, Known | Constant) or (
        isinstance(left, Known | Constant) and isinstance(right, Opaque)
    ):
        return None if left.type is right.type else False
    if isinstance(left, Known | Constant) != isinstance(right, Known | Constant):
        return False if _never_constant(left) or _never_constant(right) else None
    if isinstance(left, Known) or isinstance(right, Known):
        return False
    if isinstance(left, FunctionVariable) and isinstance(right, FunctionVariable):
        return left.live is not None and left.live is right.live or t.differ(left, right)
    if isinstance(left, GradientFunction) and isinstance(right, GradientFunction):
        return left.function is right.function
    if isinstance(left, Opaque) and isinstance(right, Opaque):
        if left.value is not right.value:
            return t.differ(left, right)
        t.guard("SAME", left.source, right.source)
        return True
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        # That of a fake is not of the type that the program's is.
        of_autograd = isinstance(left, GradientFunction) or isinstance(right, GradientFunction)
        return None if of_autograd or left.type is right.type else False
    if type(left) is Variable or type(right) is Variable:
        return None
    if isinstance(left, TupleVariable) and isinstance(right, TupleVariable):
        return _identical_tuples(t, left, right)
    untracked = isinstance(left, _UNTRACKED) and isinstance(right, _UNTRACKED)
    if untracked and (isinstance(left, TupleVariable) or None not in (left.source, right.source)):
        return None
    # Two different variables stand for two objects: what came in is known by identity, what the
    # frame made is new.
    return t.differ(left, right)


def _identical_to_own(t, own: InstanceDict, other: DictVariable) -> bool:
    """Whether a dict is the own one of an object, which it is not known as."""
    if own.owner.live is not None and other.source is not None:
        t.guard("DISTINCT", other.source, own_dict_source(own.owner))
    return False


def _identical_tuples(t, left: TupleVariable, right: TupleVariable) -> bool | None:
    """Tuples with different items are different, and so are those that the frame makes; other
    equal ones may be one object."""
    if left.type is not right.type or len(left.items) != len(right.items):
        return False
    if left.type is tuple and not left.items:
        return True
    if left.origin >= 0 or right.origin >= 0:
        return False
    pairs = zip(left.items, right.items, strict=True)
    return False if any(identical(t, *pair) is False for pair in pairs) else None


# Values that may come in as two variables for one object.
_UNTRACKED = (TupleVariable, MethodVariable, SliceVariable, RangeVariable, ViewVariable,
              IteratorVariable)  # fmt: skip


def _is_singleton(value: Variable) -> bool:
    return isinstance(value, Constant) and type(value.value) in (
        NoneType, type(Ellipsis), type(NotImplemented)
    )  # fmt: skip


def _identical_types(left: Variable, right: Variable) -> bool | None:
    """For two variables, one of which is the only object of its type."""
    if type(left) is Variable or type(right) is Variable:
        return None
    return left.type is right.type


# One object each.
_UNIQUE = (bool, NoneType, type(Ellipsis), type(NotImplemented), torch.dtype, torch.layout,
           torch.memory_format,
           *(kind for kind, name in SCALARS.items() if name == "bool"))  # fmt: skip
_NUMBERS = (Constant, Symbolic)
# The ints of which CPython has one object each.
_SMALLEST, _LARGEST = -5, 256


def _identical_constants(t, left: Constant, right: Constant) -> bool | None:
    """Equal ints and strings may or may not be one object; CPython decides. Of two that came in it
    is guarded which they are."""
    one, other = left.value, right.value
    is_number = one == one
    if type(one) is not type(other) or is_number and one is not other and one != other:
        return False
    if type(one) in _UNIQUE or type(one) is int and _SMALLEST <= one <= _LARGEST:
        return one is other
    came_in = (left.source is not None) + (right.source is not None)
    if came_in == 1 and is_number:
        return None
    if one is other:
        if came_in == 2:
            t.guard("SAME", left.source, right.source)
        return True
    if came_in == 2:
        return t.differ(left, right)
    # A nan is another object each time that one is made.
    return None if is_number else False


def _identical_numbers(t, left: Variable, right: Variable) -> bool | None:
    """Numbers of which one is not fixed; see `_identical_constants`."""
    if left.type is not right.type or not t.shapes.holds(left.value == right.value):
        return False
    if left.type is not int or not t.shapes.holds(left.value <= _LARGEST):
        return None
    return True if t.shapes.holds(left.value >= _SMALLEST) else None


def _never_constant(value: Variable) -> bool:
    return isinstance(
        value,
        TensorVariable | Sequence | DictVariable | SetVariable | ObjectVariable | CellVariable
        | FunctionVariable | MethodVariable | IteratorVariable | RangeVariable | ViewVariable
        | GradientFunction,
    )  # fmt: skip


@rule(bool)
def bool_(t, self=None):
    if self is None:
        return Constant(False)
    return NotImplemented


@rule(bool, TensorVariable)
def bool_tensor(t, self):
    raise GraphBreak("tensor_branch", self.describe())


@rule((bool, operator.truth), Symbolic)
def bool_symbolic(t, self):
    return Constant(t.shapes.holds(self.value if self.type is bool else self.value != 0))


@rule((bool, operator.truth), Sequence)
def bool_sequence(t, self):
    return Constant(len(self.items) > 0)


@rule((bool, operator.truth), SetVariable)
def bool_set(t, self):
    return Constant(len(self.items) > 0)


@rule((bool, operator.truth), RangeVariable)
def bool_range(t, self):
    return Constant(bool(self.value))


@rule((bool, operator.truth), Known)
def bool_known(t, self):
    kind = type(self.value)
    if hasattr(kind, "__bool__") or hasattr(kind, "__len__"):
        return Constant(bool(self.value))
    return Constant(True)


@rule((bool, operator.truth), FunctionVariable, MethodVariable, IteratorVariable, CellVariable,
      SliceVariable)  # fmt: skip
def bool_always(t, self):
    return Constant(True)


@rule((bool, operator.truth), ObjectVariable)
def bool_object(t, self):
    if has_special(t, self, "__bool__"):
        result = t.realize(call_method(t, self, "__bool__", on_class=True))
        if result.type is not bool:
            name = result.type.__name__
            t.raise_exception(TypeError, f"__bool__ should return bool, returned {name}")
        return result
    if has_special(t, self, "__len__"):
        return apply(t, operator.ne, [apply(t, len, [self]), Constant(0)])
    return Constant(True)


@rule(operator.not_)
def not_(t, self):
    return Constant(not truth(t, self))


@rule(operator.not_, TensorVariable)
def not_tensor(t, self):
    raise GraphBreak("tensor_branch", self.describe())


def _equality(operation, wanted: bool):
    @rule(operation, Known)
    def equal(t, self, other):
        other = t.realize(other)
        if isinstance(other, Known) and _compares_by_identity(self, other):
            return Constant((self.value is other.value) is wanted)
        if isinstance(other, Known | Constant):
            return t.wrap_result(operation(self.value, other.value))
        return NotImplemented if may_compare(t, other) else Constant(not wanted)

    @rule(operation, FunctionVariable, MethodVariable)
    def equal_callable(t, self, other):
        other = t.realize(other)
        if may_compare(t, other):
            return NotImplemented
        same = identical(t, self, other)
        if isinstance(self, MethodVariable) and isinstance(other, MethodVariable):
            same = identical(t, self.self_, other.self_) and identical(
                t, t.realize(self.function), t.realize(other.function)
            )
        if same is None:
            return NotImplemented
        return Constant(same is wanted)

    return equal


def _compares_by_identity(left: Known, right: Known) -> bool:
    return type(left.value).__eq__ is object.__eq__ and type(right.value).__eq__ is object.__eq__


_equality(operator.eq, True)
_equality(operator.ne, False)


# -- aggregates ------------------------------------------------------------


def _extreme(operation, compare):
    @rule(operation)
    def extreme(t, self, *rest, key=None, default=None):
        """`min` and `max`: the first of equals wins, as in Python."""
        if isinstance(self, TensorVariable) and not rest:
            return NotImplemented
        ordered = key is not None and not is_none(t, key)
        items, keys = [], []
        for item in [self, *rest] if rest else each(t, self):
            items.append(item)
            keys.append(call(t, key, [item]) if ordered else item)
        if not items:
            if default is not None:
                return default
            t.raise_exception(ValueError, f"{operation.__name__}() arg is an empty sequence")
        if not ordered:
            found = symbolic.extreme(t, operation, items)
            if found is not None:
                return found
        best = 0
        for index in range(1, len(items)):
            if truth(t, apply(t, compare, [keys[index], keys[best]])):
                best = index
        return items[best]


_extreme(max, operator.gt)
_extreme(min, operator.lt)


# What `sum` refuses to begin with, and how it says so.
_UNSUMMED = {
    str: "strings [use ''", bytes: "bytes [use b''", bytearray: "bytearray [use b''",
}  # fmt: skip


@rule(sum)
def sum_(t, self, start=None):
    total = Constant(0) if start is None else t.realize(start)
    unsummed = next((each for each in _UNSUMMED if issubclass(total.type, each)), None)
    if unsummed is not None:
        t.raise_exception(TypeError, f"sum() can't sum {_UNSUMMED[unsummed]}.join(seq) instead]")
    for item in each(t, self):
        total = apply(t, operator.add, [total, item])
    return total


@rule(math.prod)
def prod(t, self, *, start=None):
    result = Constant(1) if start is None else start
    for item in each(t, self):
        result = apply(t, operator.mul, [result, item])
    return result


@rule(any)
def any_(t, self):
    return Constant(any(truth(t, item) for item in each(t, self)))


@rule(all)
def all_(t, self):
    return Constant(all(truth(t, item) for item in each(t, self)))


@rule(sorted)
def sorted_(t, self, /, *, key=None, reverse=None):
    # The order in which a set is iterated does not matter here.
    known = isinstance(self, SetVariable)
    result = t.wrap_list(list(self.items.values()) if known else iterate(t, self, counted=True))
    kwargs = {}
    if key is not None:
        kwargs["key"] = key
    if reverse is not None:
        kwargs["reverse"] = reverse
    apply(t, list.sort, [result], kwargs)
    return result


@rule(globals)
def globals_(t):
    return t.namespaces.as_dict(t.frame)


@rule(locals)
def locals_(t):
    """The same dict each time, brought up to date."""
    frame = t.frame
    if frame.names is not None:
        return NotImplemented
    if frame.namespace is None:
        frame.namespace = t.new(DictVariable())
    held = frame.namespace
    for name, value in frame.bound():
        if value is not None:
            t.effects.set_item(held, name, Constant(name), value)
        elif name in held.items:
            t.effects.delete_item(held, name)
    return held


@rule(vars)
def vars_(t, self=None):
    return locals_(t) if self is None else NotImplemented


# -- containment and the rest ------------------------------------------------------------


@rule(pow)
def pow_(t, base, exponent, mod=None):
    base = t.realize(base)
    if mod is None or t.realize(mod).type is type(None):
        return apply(t, operator.pow, [base, exponent])
    if isinstance(base, ObjectVariable) and has_special(t, base, "__pow__"):
        result = t.realize(call_method(t, base, "__pow__", [exponent, mod], on_class=True))
        if not isinstance(result, Constant) or result.value is not NotImplemented:
            return result
    return NotImplemented


@rule(operator.contains, ObjectVariable)
def contains_object(t, self, item):
    """Without `__contains__` the items are compared one by one."""
    if has_special(t, self, "__contains__"):
        return NotImplemented
    if is_refused(t, self, "__contains__"):
        t.raise_exception(TypeError, f"{self.cls.__name__!r} object is not a container")
    if is_refused(t, self, "__iter__"):
        t.raise_exception(TypeError, f"argument of type {self.cls.__name__!r} is not iterable")
    if not has_special(t, self, "__iter__") and not has_special(t, self, "__getitem__"):
        return NotImplemented
    item = t.realize(item)
    for member in each(t, self):
        if same_or_equal(t, member, item):
            return Constant(True)
    return Constant(False)


@rule(typing.cast)
def cast(t, kind, value):
    return value
