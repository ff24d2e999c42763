"""Where a frame is entered: at its start, or in the middle after a graph break.

The tracer makes points, the runtime builds a function from one (`runtime/cpython.py`), packages
store them. A point together with a code object is all that a resume function is made of.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A place inside a code object and the shape of the frame there.

    offset: byte offset in `co_code` of the first instruction that runs.
    stack: the operand stack from bottom to top; False where it holds CPython's NULL.
    unbound: the names of local variables that have no value there.

    The *frame values* that go with a point are one flat tuple: every name of `co_varnames` in order
    (None for an unbound one and for one that is kept in a cell), the cell objects of
    `co_cellvars`, the cell objects of `co_freevars`, then the stack's values from bottom to top
    (NULLs left out). At the start of a function (no point) they are the parameters in the order
    of `co_varnames` (`*args` as a tuple, `**kwargs` as a dict) and the cells of `co_freevars`.
    """

    offset: int
    stack: tuple[bool, ...] = ()
    unbound: tuple[str, ...] = ()
