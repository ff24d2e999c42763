"""Where a frame is entered: at its start, or in the middle after a graph break.

The tracer makes points, the runtime builds a function from one (`runtime/cpython.py`), packages
store them. A point together with a code object is all that a resume function is made of.
"""

from .frozen import frozen
from .own_builtins import BUILTINS as __builtins__  # noqa: F401

RESUME, RAISE, STEP = "", "raise", "step"


@frozen
class Point:
    """A place inside a code object and the shape of the frame there.

    offset: byte offset in `co_code` of the first instruction that runs.
    stack: the operand stack from bottom to top; False where it holds CPython's NULL.
    unbound: the names of local variables that have no value there.
    handled: the positions in `stack` of what an `except` or `finally` handler that is being run
    keeps there (the exception handled before, which it restores at its end). The frame value for
    such a position is the exception that the handler handles.
    kind: RESUME; RAISE: the instruction at `offset` has raised, and `stack` is what the frame's
    handler finds; STEP: the instruction at `offset` runs alone, and its outcome is the frame's
    result: what is then on top of the stack; a tuple of all it has pushed (BEFORE_WITH, UNPACK_*);
    the truth of what a jump has tested; the attribute (LOAD_METHOD); the item, or `END` (FOR_ITER).

    The *frame values* that go with a point are one flat tuple: every name of `co_varnames` in order
    (None for an unbound one and for one that is kept in a cell), the cell objects of
    `co_cellvars`, the cell objects of `co_freevars`, then the stack's values from bottom to top
    (NULLs left out), then for RAISE the exception. At the start of a function (no point) they are
    the parameters in the order of `co_varnames` (`*args` as a tuple, `**kwargs` as a dict) and the
    cells of `co_freevars`.
    """

    offset: int
    stack: tuple[bool, ...] = ()
    unbound: tuple[str, ...] = ()
    handled: tuple[int, ...] = ()
    kind: str = RESUME
