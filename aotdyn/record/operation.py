"""The one place where things happen to values: `apply(t, operation, arguments)`.

In this order: a rule for (operation, kind); constants fold; a tensor or symbol goes to the graph;
the special method of a user's class; a Python function is inlined; else the graph breaks.
"""

import functools
import math
import operator
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import Any

import torch

from ..package.bare import BARE
from ..package.interruptions import require_own
from ..package.replaced import replaced_methods
from ..policy import is_random
from . import arrays
from .array_functions import ARRAY_FUNCTIONS
from .folding import FOLDABLE, operand, plain, rely_on_settings
from .graph_ops import is_factory, is_graph_operation
from .members import lookup
from .own_operators import names_for, own_method, rely_on_members
from .rules.table import CALLS, RULES, find
from .signals import GraphBreak, NotConstant, Raised
from .special_methods import (
    ABSENT_AS_NONE,
    BINARY_METHODS,
    COMPARISONS,
    INPLACE_METHODS,
    SYMBOLIC,
    UNARY_METHODS,
    has_special,
    methods_of,
)
from .stand_ins import native_argument_error, stand_in
from .unseen import unseen
from .variables import (
    ClassVariable,
    Constant,
    FunctionVariable,
    Known,
    Lazy,
    MethodVariable,
    ObjectVariable,
    Opaque,
    Sequence,
    SliceVariable,
    Symbolic,
    TensorVariable,
    TextVariable,
    TupleVariable,
    ValueObject,
    Variable,
    Varying,
    is_dense,
)

_OF_NUMBERS = {*BINARY_METHODS, operator.neg, operator.pos, abs}
# Of two truth values these give another one.
_OF_TRUTHS = {operator.and_, operator.or_, operator.xor}


_BY_NAME = (getattr, setattr, delattr, hasattr)


def _require_name(t, name: Variable) -> None:
    """Raises TypeError for an attribute whose name is no text."""
    name = t.realize(name)
    if type(name) is not TextVariable and not issubclass(name.type, str):
        told = f"attribute name must be string, not {name.type.__name__!r}"
        t.raise_exception(TypeError, told)


def apply(
    t, operation: Any, args: list[Variable], kwargs: dict[str, Variable] | None = None
) -> Variable:
    """What `operation(*args, **kwargs)` gives.

    Raises GraphBreak where that cannot be traced, Raised where the program raises.
    """
    kwargs = kwargs or {}
    if is_unknown_native(operation):
        # Its arguments are only passed on: nothing about them needs a guard.
        raise GraphBreak(*refusal(operation, args))
    first = None
    if args:
        found = unseen(t, operation, args)
        if found is not None:
            return found
        first = t.realize(args[0])
        args = [first, *args[1:]]
        if operation in _BY_NAME and len(args) > 1:
            _require_name(t, args[1])
    if replaced_methods():
        method = _replacement(t, operation, args)
        if method is not None:
            return method()
    if type(first) in (Known, ClassVariable) and not kwargs:
        result = _by_own_method(t, operation, first, args[1:])
        if result is not None:
            return result
    if operation in BINARY_METHODS and len(args) == 2 and arrays.has_a_say(args[1]):
        computed = arrays.compute(t, operation, args, kwargs)
        if computed is not None:
            return computed
    rule = find(operation, first)
    if rule is not None:
        if kwargs or rule.misfit(args, kwargs):
            refuse_arguments(t, operation, args, kwargs)
        result = rule(t, args, kwargs)
        if result is not NotImplemented:
            return result
    args = [t.realize(arg) for arg in args]
    kwargs = {key: t.realize(arg) for key, arg in kwargs.items()}
    if operation in FOLDABLE:
        folded = fold(t, operation, args, kwargs)
        if folded is not None:
            return folded
    of_object = any(isinstance(arg, ObjectVariable) for arg in args)
    if of_object:
        plain_args = bare_operands(t, operation, args)
        if plain_args is not None:
            return _of_bare(t, operation, plain_args, kwargs)
        # A tensor gives way to the reflected method of an object that it does not know.
        result = special(t, operation, args)
        if result is not None:
            return result
    if goes_to_graph(t, operation, args, kwargs):
        numbers = _without_truths(t, operation, args)
        if numbers is not args:
            return apply(t, operation, numbers, kwargs)
        return t.graph.call(operation, args, kwargs)
    if not of_object:
        result = special(t, operation, args)
        if result is not None:
            return result
    return _by_protocol(t, operation, args, kwargs)


def bare_operands(t, operation: Any, args: list[Variable]) -> list[Variable] | None:
    """The operands with instances of subclasses of int, str and the like as the plain values that
    they are to C; None where there are none, or where their classes have a say."""
    of_values = [arg for arg in args if isinstance(arg, ValueObject)]
    others = [arg for arg in args if isinstance(arg, ObjectVariable) and arg not in of_values]
    if not of_values or others:
        # Other objects are given them as they are.
        return None
    if isinstance(operation, MethodDescriptorType | WrapperDescriptorType):
        if operation.__objclass__ not in BARE or operation in _ASKS_FOR_TEXTS:
            return None
        return [bare_value(arg) for arg in args]
    if operation is operator.index and of_values[0].contents.type is int:
        return [of_values[0].contents]
    if operation in (operator.mod, operator.imod) and _formats(args):
        return None
    is_number = of_values[0].contents.type in (int, float, complex)
    if is_number and operation in BINARY_METHODS and isinstance(args[0], TensorVariable):
        # The tensor comes first, and knows numbers.
        return [bare_value(arg) for arg in args]
    names = _told_by(operation)
    if not names or any(_has_own(t, arg.cls, name) for arg in of_values for name in names):
        return None
    return [bare_value(arg) for arg in args]


def _formats(args: list[Variable]) -> bool:
    """Whether an operation formats a text: it may give the object itself."""
    return isinstance(args[0], ValueObject) and args[0].contents.type in (str, bytes)


def _of_bare(t, operation: Any, args: list[Variable], kwargs: dict) -> Variable:
    """What an operation gives on plain values. Raises GraphBreak where it refuses them: Python then
    names their classes."""
    try:
        return apply(t, operation, args, kwargs)
    except Raised as raised:
        if issubclass(raised.value.type, TypeError):
            raise GraphBreak("exception", raised.value.describe()) from None
        raise


def bare_value(value: Variable) -> Variable:
    return value.contents if isinstance(value, ValueObject) else value


def _told_by(operation: Any) -> tuple[str, ...]:
    """The special methods with which an operand decides what an operator gives."""
    if operation in INPLACE_METHODS:
        name, plain_operator = INPLACE_METHODS[operation]
        return (name, *(methods_of(plain_operator) or ()))
    return _MORE_METHODS.get(operation) or methods_of(operation) or ()


_TEXTS = ("__str__", "__repr__")
_MORE_METHODS: dict[Any, tuple[str, ...]] = {
    str: _TEXTS, format: ("__format__", *_TEXTS), hash: (), bytes: ("__bytes__", "__index__"),
    bool: ("__bool__", "__len__"), operator.truth: ("__bool__", "__len__"),
    int: ("__int__", "__index__", "__trunc__"), float: ("__float__", "__index__"),
    complex: ("__complex__", "__float__", "__index__"), ascii: ("__repr__",),
}  # fmt: skip
# They ask the object or their arguments for texts.
_ASKS_FOR_TEXTS = {str.format, str.format_map, str.__mod__, bytes.__mod__, str.__format__,
                   int.__format__, float.__format__, complex.__format__}  # fmt: skip


def _has_own(t, cls: type, name: str) -> bool:
    """Whether a class of Python says what a method is, or that there is none. Guarded."""
    held, owner = lookup(t, cls, name)
    if owner is None or held is None and name in ABSENT_AS_NONE:
        return False
    return bool(owner.__flags__ & 1 << 9)


def _without_truths(t, operation: Any, args: list[Variable]) -> list[Variable]:
    """The operands of an operator on symbolic numbers, with truth values as the numbers that they
    are: algebra does not mix the two. The same list where there are none."""
    if operation not in _OF_NUMBERS or not any(isinstance(arg, Symbolic) for arg in args):
        return args
    truths = [arg.type is bool for arg in args if isinstance(arg, Symbolic | Constant)]
    if not any(truths):
        return args
    if operation in _OF_TRUTHS and len(truths) == len(args) and all(truths):
        if operation is operator.xor:
            # torch does not know it.
            return [Constant(bool(_as_whole(t, arg).value)) for arg in args]
        return args
    return [_as_whole(t, arg) for arg in args]


def _as_whole(t, value: Variable) -> Variable:
    if isinstance(value, Symbolic) and value.type is bool:
        return Constant(int(t.shapes.decide(value)))
    if isinstance(value, Constant) and value.type is bool:
        return Constant(int(value.value))
    return value


def _by_own_method(t, operation: Any, self: Known, others: list[Variable]) -> Variable | None:
    """An operator on a class or a member of an enum, by a method of Python; None for all others."""
    try:
        names = names_for(operation)
    except TypeError:  # an unhashable callable
        return None
    method = own_method(t, names, self) if names else None
    if method is None:
        return None
    result = t.realize(call(t, method, others))
    if _not_implemented(t, result):
        return None
    return Constant(truth(t, result)) if operation in (bool, operator.truth) else result


def _replacement(t, operation: Any, args: list[Variable]) -> Callable[[], Variable] | None:
    """Calls the special method for an operator on tensors, if the program has replaced torch's
    own."""
    pair = BINARY_METHODS.get(operation) or INPLACE_METHODS.get(operation)
    name, reflected = pair or (UNARY_METHODS.get(operation), None)
    replaced = replaced_methods()
    args = [t.realize(arg) for arg in args]
    if args and isinstance(args[0], TensorVariable) and name in replaced:
        return lambda: call_method(t, args[0], name, args[1:], on_class=True)
    on_the_right = len(args) == 2 and isinstance(args[1], TensorVariable)
    if on_the_right and not isinstance(args[0], TensorVariable) and reflected in replaced:
        return lambda: call_method(t, args[1], reflected, args[:1], on_class=True)
    return None


def is_unknown_native(operation: Any) -> bool:
    """Whether an operation is one of C of which nothing is known, whatever it gets."""
    if not isinstance(operation, _NATIVE):
        return False
    try:
        return _is_unknown(operation)
    except TypeError:  # an unhashable callable
        return False


_NATIVE = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)


@functools.cache
def _is_unknown(operation: Any) -> bool:
    known = (RULES, FOLDABLE, SYMBOLIC, BINARY_METHODS, INPLACE_METHODS, UNARY_METHODS)
    if any(operation in table for table in known):
        return False
    return not (is_graph_operation(operation) or is_factory(operation))


def _by_protocol(t, operation: Any, args: list[Variable], kwargs: dict) -> Variable:
    """Symbols that must become constants, Python functions, objects as numbers; else a break."""
    if any(isinstance(arg, Symbolic | TextVariable) for arg in (*args, *kwargs.values())) and (
        operation in FOLDABLE or find(operation, Constant(0)) is not None
    ):
        return apply(t, operation, *t.specialized(args, kwargs))
    if isinstance(operation, FunctionType):
        return t.inline_live(operation, args, kwargs)
    # What is subscribed is no number.
    kept = args[:1] if operation is operator.getitem else []
    rest = args[len(kept) :]
    if operation in _TAKES_NUMBERS and any(
        _is_number_like(t, arg) for arg in (*rest, *kwargs.values())
    ):
        real = getattr(operation, "__module__", None) == "math" and operation not in _WHOLE
        convert = float if real or operation is complex else None
        numbers = [_as_number(t, arg, convert) for arg in rest]
        named = {key: _as_number(t, arg, convert) for key, arg in kwargs.items()}
        return apply(t, operation, [*kept, *numbers], named)
    if not kwargs:
        refuse_types(t, operation, args)
    raise GraphBreak(*refusal(operation, args))


# Functions of `math` that take whole numbers.
_WHOLE = {math.factorial, math.gcd, math.lcm, math.comb, math.perm, math.isqrt}


# Functions of C that turn an object into the number that they need.
_TAKES_NUMBERS = FOLDABLE - {
    *BINARY_METHODS, *INPLACE_METHODS, *UNARY_METHODS, pow, bool, ascii, sum, min, max,
    operator.truth, operator.not_, operator.countOf, operator.indexOf, operator.concat,
    *ARRAY_FUNCTIONS,
} | {int, float, complex, bytes, round, operator.getitem}  # fmt: skip


def _is_number_like(t, value: Variable) -> bool:
    return isinstance(value, ObjectVariable) and (
        has_special(t, value, "__index__") or has_special(t, value, "__float__")
    )


def _as_number(t, value: Variable, convert: Any) -> Variable:
    """An object as the number that a function of C asks it for."""
    if not _is_number_like(t, value):
        return value
    if isinstance(value, ValueObject):
        return value.contents
    if convert is float and has_special(t, value, "__float__"):
        return apply(t, float, [value])
    if has_special(t, value, "__index__"):
        return apply(t, operator.index, [value])
    raise GraphBreak("unknown_operation", f"{value.describe()} as a number")


# Operators that only look for methods of their own name; `*` repeats sequences, `%` formats text.
_ARITHMETIC = {*BINARY_METHODS, *INPLACE_METHODS} - {
    operator.mul, operator.imul, operator.mod, operator.imod,
}  # fmt: skip


def refuse_types(t, operation: Any, args: list[Variable]) -> None:
    """Raises the TypeError with which Python refuses an operator on values of these types."""
    if operation not in BINARY_METHODS | INPLACE_METHODS | UNARY_METHODS:
        return
    try:
        values = [stand_in(arg, operation in _ARITHMETIC) for arg in args]
    except NotConstant:
        return
    try:
        operation(*values)
    except TypeError as error:
        raise Raised(t.exception(TypeError, *error.args), tuple(args)) from None
    except Exception:
        return


def refuse_arguments(t, operation: Any, args: list[Variable], kwargs: dict) -> None:
    """Raises the TypeError with which a function of C refuses arguments by their number and
    names, where that is known."""
    error = native_argument_error(operation, len(args), list(kwargs))
    if error is not None:
        t.raise_exception(TypeError, *error.args)


def refusal(operation: Any, args: list[Variable]) -> tuple[str, str]:
    """The reason for which an operation without a rule breaks the graph."""
    name = getattr(operation, "__qualname__", None) or getattr(operation, "__name__", "call")
    # A function that pybind11 has made has the name of what keeps it in front of its own.
    name = name.partition(".")[2] if name.startswith("pybind11_") else name
    kinds = ", ".join(t.describe() for t in args)
    if any(isinstance(arg, Varying) for arg in args):
        return "varies", f"{name}({kinds})"
    opaque = [arg.value for arg in args if isinstance(arg, Opaque)]
    if any(issubclass(type(value), torch.Tensor) and not is_dense(value) for value in opaque):
        return "layout", f"{name}({kinds})"
    if opaque:
        return "unknown_type", f"{name}({kinds})"
    if getattr(operation, "__module__", None) == "_operator" or operation in UNARY_METHODS:
        return "unknown_operation", f"{name}({kinds})"
    return "builtin_call", name


def fold(t, operation: Any, args: list[Variable], kwargs: dict) -> Variable | None:
    """Computes an operation whose arguments are all plain constants; None where they are not."""
    if arrays.concerns(operation, args, kwargs):
        return arrays.compute(t, operation, args, kwargs)
    if operation in INPLACE_METHODS and not isinstance(args[0], Constant | TupleVariable):
        # What it gives is the object itself, changed.
        return None
    try:
        methods = methods_of(operation)
        for arg in args:
            _look_inside(t, arg)
        if operation is str.translate:
            args = [t.deep(arg) for arg in args]
        values = [operand(arg, methods) for arg in args]
        named = {key: plain(arg) for key, arg in kwargs.items()}
    except NotConstant:
        return None
    rely_on_members(t, operation, values)
    rely_on_settings(t, operation, values)
    try:
        result = operation(*values, **named)
    except Exception as error:
        require_own(error)
        # The traced program would raise the same: its own handlers may catch it.
        refused = tuple(args) if isinstance(error, TypeError) else ()
        raise Raised(t.exception(type(error), *error.args), refused) from None
    return t.wrap_result(result)


def _look_inside(t, value: Variable) -> None:
    """Plain values that came in with a slice or a tuple are looked at."""
    if isinstance(value, SliceVariable | TupleVariable):
        for item in value.items:
            if type(item) is Lazy and type(item.value) in _LOOKED_AT:
                t.realize(item)
        value.items = [item.known or item if type(item) is Lazy else item for item in value.items]


_LOOKED_AT = (int, float, bool, str, bytes, type(None))


def goes_to_graph(t, operation: Any, args: list[Variable], kwargs: dict) -> bool:
    """Whether an operation becomes a node."""
    if operation in INPLACE_METHODS and not isinstance(args[0], TensorVariable):
        return False  # only a tensor has a method of that name; see `_inplace`
    tensors, symbols = holds(t, (*args, *kwargs.values()))
    if tensors:
        return is_graph_operation(operation)
    if symbols and operation in SYMBOLIC:
        # What Python says of a number and something else names their types; to a symbol no complex
        # number is equal.
        told = any(isinstance(arg, Constant) and arg.type is complex for arg in args)
        by_value = operation in (operator.eq, operator.ne) and not told
        return by_value or all(map(_is_number, args))
    return is_factory(operation)


def _is_number(value: Variable) -> bool:
    return isinstance(value, Symbolic | Constant) and value.type in (int, float, bool)


def holds(t, args) -> tuple[bool, bool]:
    """Whether there are tensors, and symbols, in arguments and the containers among them."""
    tensors = symbols = False
    for arg in args:
        if type(arg) is Lazy:
            arg = t.realize(arg)
        if isinstance(arg, TensorVariable):
            tensors = True
        elif isinstance(arg, Symbolic):
            symbols = True
        elif isinstance(arg, Sequence):
            inner = holds(t, arg.items)
            tensors, symbols = tensors or inner[0], symbols or inner[1]
    return tensors, symbols


# -- special methods ------------------------------------------------------------


def special(t, operation: Any, args: list[Variable]) -> Variable | None:
    """The operation by the special methods of a user's class; None if none is involved."""
    if operation in BINARY_METHODS and len(args) == 2:
        return _binary(t, operation, *args)
    if operation in INPLACE_METHODS and len(args) == 2:
        return _inplace(t, operation, *args)
    if operation in UNARY_METHODS and args and isinstance(args[0], ObjectVariable):
        name = UNARY_METHODS[operation]
        if has_special(t, args[0], name):
            result = call_method(t, args[0], name, args[1:], on_class=True)
            if operation is operator.contains:
                return Constant(truth(t, result))
            return _of_due_type(t, name, args[0], result) if name in _DUE_TYPES else result
    return None


# special method -> what it must return, and what Python says where it returns another type
_DUE_TYPES: dict[str, tuple[type, str]] = {
    "__str__": (str, "__str__ returned non-string (type {result})"),
    "__repr__": (str, "__repr__ returned non-string (type {result})"),
    "__format__": (str, "__format__ must return a str, not {result}"),
    "__bytes__": (bytes, "__bytes__ returned non-bytes (type {result})"),
    "__int__": (int, "__int__ returned non-int (type {result})"),
    "__index__": (int, "__index__ returned non-int (type {result})"),
    "__len__": (int, "{result!r} object cannot be interpreted as an integer"),
    "__hash__": (int, "__hash__ method should return an integer"),
    "__float__": (float, "{self}.__float__ returned non-float (type {result})"),
    "__complex__": (complex, "__complex__ returned non-complex (type {result})"),
}


def _of_due_type(t, name: str, self: Variable, result: Variable) -> Variable:
    """The result of a special method that CPython checks."""
    due, problem = _DUE_TYPES[name]
    result = t.realize(result)
    if result.type is due:
        if name == "__len__" and truth(t, apply(t, operator.lt, [result, Constant(0)])):
            t.raise_exception(ValueError, "__len__() should return >= 0")
        return result
    if issubclass(result.type, due) or name == "__len__" and has_special(t, result, "__index__"):
        # Some are taken with a warning, some are converted.
        raise GraphBreak("unknown_operation", f"{name} that returns a {result.type.__name__}")
    told = problem.format(self=self.type.__name__, result=result.type.__name__)
    t.raise_exception(TypeError, told)


def _inplace(t, operation: Any, left: Variable, right: Variable) -> Variable | None:
    """`left OP= right`: the in-place method, else what `left OP right` gives."""
    name, plain_operator = INPLACE_METHODS[operation]
    if isinstance(left, ObjectVariable) and has_special(t, left, name):
        result = call_method(t, left, name, [right], on_class=True)
        if not _not_implemented(t, result):
            return result
    try:
        return apply(t, plain_operator, [left, right])
    except Raised as raised:
        if raised.refused == (left, right):
            # Python names the operator that the program has used.
            refuse_types(t, operation, [left, right])
        raise


def _binary(t, operation: Any, left: Variable, right: Variable) -> Variable | None:
    """`left OP right`, with the reflected method tried first where CPython does so."""
    name, reflected = BINARY_METHODS[operation]
    if _decides(left, name):
        return None
    tries = []
    if isinstance(left, ObjectVariable) and _defines(t, left, operation, name):
        tries.append((left, name, right))
    if isinstance(right, ObjectVariable) and reflected and _defines(t, right, operation, reflected):
        newer = right.type is not left.type and left.type in right.type.__mro__
        if operation not in COMPARISONS:
            held = [lookup(t, each.type, reflected)[0] for each in (left, right)]
            newer = newer and held[0] is not held[1]
        if newer:
            tries.insert(0, (right, reflected, left))
        elif right.type is not left.type or operation in COMPARISONS:
            tries.append((right, reflected, left))
    for self_, method, other in tries:
        if operation is operator.ne and not has_special(t, self_, "__ne__"):
            # What `object` derives from `__eq__`.
            result = call_method(t, self_, "__eq__", [other], on_class=True)
            if not _not_implemented(t, result):
                return apply(t, operator.not_, [result])
            continue
        result = call_method(t, self_, method, [other], on_class=True)
        if not _not_implemented(t, result):
            return result
    if reflected and _decides(right, reflected):
        return None
    if operation in (operator.eq, operator.ne) and (
        isinstance(left, ObjectVariable) or isinstance(right, ObjectVariable)
    ):
        return apply(t, operator.is_ if operation is operator.eq else operator.is_not,
                     [left, right])  # fmt: skip
    return None


def _decides(value: Variable, name: str) -> bool:
    """Whether a method of C that no rule knows has a say in what an operator gives."""
    if not isinstance(value, Opaque):
        return False
    method = getattr(type(value.value), name, None)
    return method is not None and method is not getattr(object, name, None)


def _defines(t, value: ObjectVariable, operation: Any, name: str) -> bool:
    """Whether the class of an object has the method for an operator, or what it derives from."""
    derived = operation is operator.ne and has_special(t, value, "__eq__")
    return derived or has_special(t, value, name)


def _not_implemented(t, value: Variable) -> bool:
    value = t.realize(value)
    return isinstance(value, Constant) and value.value is NotImplemented


def special_method(t, value: Variable, name: str) -> Variable:
    """A special method, looked up on the type as CPython does, bound to the value."""
    value = t.realize(value)
    if isinstance(value, ObjectVariable):
        return t.class_attribute(value, name)
    return apply(t, getattr, [value, Constant(name)])


def call_method(
    t, value: Variable, name: str, args: list[Variable] | None = None, on_class: bool = False
) -> Variable:
    """`value.name(*args)`; with `on_class` the method is looked up on the type."""
    value = t.realize(value)
    method = (
        special_method(t, value, name) if on_class else apply(t, getattr, [value, Constant(name)])
    )
    return call(t, method, args or [])


# -- calls ------------------------------------------------------------


def call(
    t, function: Variable, args: list[Variable], kwargs: dict[str, Variable] | None = None
) -> Variable:
    """What calling a variable gives."""
    kwargs = kwargs or {}
    function = t.realize(function)
    if isinstance(function, MethodVariable):
        return call(t, function.function, [function.self_, *args], kwargs)
    if isinstance(function, FunctionVariable):
        if function.live is not None:
            return t.call_live(function, args, kwargs)
        return t.inline(function, args, kwargs)
    rule = CALLS.get(type(function))
    if rule is not None:
        return rule(t, function, args, kwargs)
    if isinstance(function, Known):
        value = function.value
        if isinstance(value, type):
            return t.construct(value, args, kwargs)
        if isinstance(value, MethodType):
            bound = t.wrap_bound(value)
            return call(t, bound, args, kwargs)
        return apply(t, value, args, kwargs)
    if isinstance(function, ObjectVariable):
        return t.call_object(function, args, kwargs)
    if isinstance(function, Constant):
        t.raise_exception(TypeError, f"{function.type.__name__!r} object is not callable")
    drawn = isinstance(function, Opaque) and is_random(function.value)
    raise GraphBreak("random" if drawn else "unknown_call", function.describe())


# -- truth ------------------------------------------------------------


def is_none(t, value: Variable) -> bool:
    """Whether a value is known to be None."""
    value = t.realize(value)
    return isinstance(value, Constant) and value.value is None


def truth(t, value: Variable) -> bool:
    """`bool(value)` for a branch. Raises GraphBreak("tensor_branch") for a tensor."""
    result = t.realize(apply(t, bool, [value]))
    if isinstance(result, Symbolic):
        return t.shapes.decide(result)
    return bool(result.constant())
