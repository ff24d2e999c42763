"""Operations on a number that nobody has looked at: its type, or which variable it is, is enough.

So numbers are copied (by `copy.deepcopy`, for one), stored and passed on without being guarded:
hashes and ids, which differ between processes, are held by many configurations.
"""

import operator
from typing import Any

from ..package.reference import Import
from ..package.source import Bound
from .variables import Constant, IdentityVariable, Known, Lazy, Variable


def unseen(t, operation: Any, args: list[Variable]) -> Variable | None:
    """What an operation gives without its first argument being looked at; None if it must be."""
    value = args[0]
    if type(value) is not Lazy or value.known is not None or type(value.value) not in _NUMBERS:
        return None
    if operation is type and len(args) == 1:
        kind = Import("builtins", type(value.value).__name__)
        t.guard("TYPE", value.source, kind)
        return Known(type(value.value), Bound(kind))
    if operation is id:
        return t.new(IdentityVariable(value))
    if (operation is operator.is_ or operation is operator.is_not) and args[1] is value:
        return Constant(operation is operator.is_)
    return None


_NUMBERS = (int, float)
