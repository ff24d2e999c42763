"""Sums of symbolic numbers, put right. For the sides that trace and compile only.

torch 2.13 remembers of a number that it is a sum of different symbols, to insert the next one by
its place (`torch.fx.experimental.sym_node`, "Note [optimized_summation]"). A guard such as
`a + b == 2` makes another expression of the sum; the next symbol is then inserted among what that
one happens to consist of: `(a + b) + b` is `b`, where it is `2 + b`.
"""

from collections.abc import Callable
from typing import Any

from torch.fx.experimental import sym_node

_NAME = "_optimized_add"


def mend_sums() -> None:
    """From now on torch adds as if each number were looked at again. Does nothing the second time,
    nor where torch has no such shortcut."""
    add = getattr(sym_node, _NAME, None)
    if add is not None and not isinstance(add, _Add):
        setattr(sym_node, _NAME, _Add(add))


class _Add:
    def __init__(self, add: Callable):
        self.add = add

    def __call__(self, left: Any, right: Any, left_is_sum: bool, right_is_sum: bool) -> tuple:
        return self.add(
            left, right, left_is_sum and _is_sum(left), right_is_sum and _is_sum(right)
        )  # fmt: skip


def _is_sum(expression: Any) -> bool:
    """Whether an expression is a sum of symbols."""
    return expression.is_Add and all(part.is_Symbol for part in expression.args)
