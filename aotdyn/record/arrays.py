"""NumPy while tracing: what is computed of constants and arrays that are known is computed at once,
on arrays of the trace's own, which share memory as those of the program would."""

import contextlib
import operator
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from ..package.arrays import SCALARS, np
from ..package.interruptions import require_own
from ..package.reference import Import
from ..package.source import Bound, Called
from .array_functions import ARRAY_FUNCTIONS
from .folding import plain
from .hazards import storage_of
from .signals import GraphBreak, NotConstant, Raised
from .special_methods import INPLACE_METHODS
from .variables import (
    Constant,
    Known,
    Lazy,
    ListVariable,
    LiveListVariable,
    SliceVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from .variables.arrays import ArrayVariable

# Of arrays that came in the contents are guarded as a whole.
MOST_BYTES = 2048


class Arrays:
    """The arrays of one trace, by their identity. Where a tensor of the graph shares the memory of
    one that the trace has made, the array cannot be written to from there on, nor rebuilt."""

    def __init__(self) -> None:
        self._known: dict[int, ArrayVariable] = {}
        # Array that owns memory -> the tensors that share it, and the step that made the first.
        self._given_away: dict[int, tuple[list[TensorVariable], int]] = {}

    def variable(self, t, value: Any) -> ArrayVariable:
        """The variable of an array that was computed."""
        known = self._known.get(id(value))
        if known is None:
            if type(value) is not np.ndarray or value.dtype.type not in SCALARS:
                raise GraphBreak("unknown_type", f"a {type(value).__name__} of {value.dtype}")
            known = t.new(ArrayVariable(value))
            self._known[id(value)] = known
        return known

    def known(self, value: Any) -> ArrayVariable | None:
        """The variable of an array that was met; None for any other object."""
        return self._known.get(id(value))

    def look(self, t, variable: ArrayVariable) -> Any:
        """The trace's own array. Raises GraphBreak where what the program's holds is not known."""
        if variable.value is None:
            variable.value = _copied(t, variable)
            self._known[id(variable.value)] = variable
        owner = owner_of(variable.value)
        sharing, step = self._given_away.get(id(owner), ((), -1))
        if any(storage_of(each.fake) in t.shapes.hazards.changed for each in sharing):
            raise GraphBreak("mutation", "an array after a tensor that shares its memory", step)
        home = self._known.get(id(owner))
        if home is not None and home.live is not None:
            _require_untouched(t)
        return variable.value

    def give_away(self, t, value: Any, tensor: TensorVariable) -> None:
        """Notes that a tensor shares the memory of an array that the trace has made."""
        owner = owner_of(value)
        self._given_away.setdefault(id(owner), ([], t.step))[0].append(tensor)
        for variable in self._known.values():
            if variable.value is not None and owner_of(variable.value) is owner:
                variable.value.setflags(write=False)

    def require_own(self, owner: Any) -> None:
        """Raises GraphBreak for memory that a tensor shares: to break where that was made."""
        if id(owner) in self._given_away:
            step = self._given_away[id(owner)][1]
            raise GraphBreak("reconstruct", "an array whose memory a tensor shares", step)


def _copied(t, variable: ArrayVariable) -> Any:
    """A copy of an array that came in, whose contents are guarded; it cannot be written to."""
    live = variable.live
    if live.nbytes > MOST_BYTES:
        raise GraphBreak("unknown_type", f"an ndarray of {live.nbytes} bytes")
    if t.shapes.history.differs(variable.source, live.tobytes()) and t.shapes.crowded:
        raise GraphBreak("varies", "what an ndarray holds")
    require_layout(t, variable)
    t.guard("HOLDS", variable.source, live.tobytes())
    value = np.array(live, order="K")
    value.setflags(write=False)
    return value


def require_layout(t, variable: ArrayVariable) -> None:
    """Guards how an array that came in is laid out."""
    live = variable.live
    layout = (live.dtype.str, live.shape, live.strides, live.flags.writeable)
    t.guard("ARRAY", variable.source, layout)


def _require_untouched(t) -> None:
    """A tensor that came in may share the memory of an array that did: once one is written to,
    nothing is known of what arrays hold."""
    changed = t.shapes.hazards.changed
    if changed and any(storage_of(tensor.fake) in changed for tensor in t.tensors):
        raise GraphBreak("mutation", "an ndarray after a tensor that came in was changed")


def owner_of(value: Any) -> Any:
    """What owns the memory of an array."""
    while type(value) is np.ndarray and value.base is not None:
        value = value.base
    return value


# -- computing ------------------------------------------------------------


def concerns(operation: Any, args: list[Variable], kwargs: dict[str, Variable]) -> bool:
    """Whether an operation is one of NumPy, or on a value of it."""
    return operation in ARRAY_FUNCTIONS or any(map(_is_of_numpy, (*args, *kwargs.values())))


def _is_of_numpy(value: Variable) -> bool:
    if isinstance(value, Constant):
        return type(value.value) in SCALARS
    return isinstance(value, ArrayVariable)


def has_a_say(right: Variable) -> bool:
    """Whether the right operand of an operator is a value of NumPy: all that it does not know is an
    array to it."""
    if type(right) is Lazy:
        kind = type(right.value)
        return kind in SCALARS or np is not None and kind is np.ndarray
    return _is_of_numpy(right)


def compute(
    t, operation: Any, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable | None:
    """What an operation on known values gives; None where not all of them are known.

    Raises GraphBreak for what warns, which the program does at each call.
    """
    every = (*args, *kwargs.values())
    if operation in INPLACE_METHODS and not isinstance(args[0], _CHANGED_BY_NUMPY):
        return None
    if not all(_is_known(t, value) for value in every):
        return None
    changed = args[0] if operation in INPLACE_METHODS or operation in _CHANGES_FIRST else None
    if isinstance(changed, ArrayVariable) and changed.live is not None:
        raise GraphBreak("mutation", f"{_name(operation)} of an ndarray")
    values = [_value(t, value) for value in args]
    named = {key: _value(t, value) for key, value in kwargs.items()}
    if any(isinstance(value, ArrayVariable) for value in every):
        t.effects.count += 1  # it may be changed
    try:
        with np.errstate(all="raise"), _warnings_raised():
            result = operation(*values, **named)
    except (FloatingPointError, Warning) as error:
        raise GraphBreak("builtin_call", f"{_name(operation)}: {error}") from None
    except Exception as error:
        require_own(error)
        if type(error).__module__ != "builtins":
            raise GraphBreak("exception", f"{_name(operation)}: {error}") from None
        if "read-only" in str(error):
            raise GraphBreak("mutation", f"{_name(operation)} of an ndarray") from None
        raise Raised(t.exception(type(error), *error.args)) from None
    if type(result) is str and not (operation is format and values[-1] and _is_scalar(values[0])):
        _rely_on_print_options(t)
    return t.wrap_result(result)


_CHANGES_FIRST = (operator.setitem, operator.delitem, setattr)
_CHANGED_BY_NUMPY = Constant | TupleVariable | ArrayVariable


def _name(operation: Any) -> str:
    return getattr(operation, "__name__", "call")


def _is_scalar(value: Any) -> bool:
    return type(value) in SCALARS


def _is_known(t, value: Variable) -> bool:
    """Whether a value is known, or can be by fixing symbolic numbers."""
    value = t.realize(value)
    if isinstance(value, ArrayVariable | Symbolic):
        return True
    if isinstance(value, Known):
        return _is_kind(value.value)
    if type(value) in _LISTS or isinstance(value, TupleVariable | SliceVariable):
        return all(_is_known(t, item) for item in value.items)
    try:
        plain(value)
    except NotConstant:
        return False
    return True


_LISTS = (ListVariable, LiveListVariable)


def _is_kind(value: Any) -> bool:
    """Whether an object says of which type something is to be."""
    if isinstance(value, type):
        return value in (bool, int, float, complex) or issubclass(value, np.generic)
    return isinstance(value, np.dtype)


def _value(t, value: Variable) -> Any:
    value = t.realize(value)
    if isinstance(value, Symbolic):
        return t.constant(value)
    if isinstance(value, ArrayVariable):
        return t.arrays.look(t, value)
    if isinstance(value, Known):
        return value.value
    if isinstance(value, SliceVariable):
        return slice(*(_value(t, item) for item in value.items))
    if isinstance(value, TupleVariable) and value.type in (tuple, torch.Size):
        return value.type(_value(t, item) for item in value.items)
    if type(value) in _LISTS:
        return [_value(t, item) for item in value.items]
    return plain(value)


@contextlib.contextmanager
def _warnings_raised() -> Iterator[None]:
    """Within it every warning is raised. The filters are exchanged, not changed, for which Python
    would forget what it has shown."""
    outer, warnings.filters = warnings.filters, [("error", None, Warning, None, 0)]
    try:
        yield
    finally:
        warnings.filters = outer


def _rely_on_print_options(t) -> None:
    t.guard("EQUALS", Called(_PRINT_OPTIONS), np.get_printoptions())


_PRINT_OPTIONS = Bound(Import("numpy", "get_printoptions"))
