"""Which local variables are still read after an instruction."""

import dis
import functools
from types import CodeType

from .decode import Decoded

_STOPS = {"RETURN_VALUE", "RAISE_VARARGS", "RERAISE"}
_JUMPS_ALWAYS = {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}

# Code that may look at all local variables by name.
_INTROSPECTION = {"locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe"}


@functools.lru_cache(maxsize=1024)
def _live_before(decoded: Decoded) -> tuple[frozenset[str], ...]:
    """For every instruction the names that are live before it: one fixed point per function."""
    instructions = decoded.instructions
    live: list[frozenset[str]] = [frozenset()] * len(instructions)
    changed = True
    while changed:
        changed = False
        for ins in reversed(instructions):
            after: frozenset[str] = frozenset()
            for successor in _successors(decoded, ins.index):
                after |= live[successor]
            if ins.opname in ("STORE_FAST", "DELETE_FAST"):
                after -= {ins.argval}
            if ins.opname in ("LOAD_FAST", "DELETE_FAST"):
                after |= {ins.argval}
            if after != live[ins.index]:
                live[ins.index] = after
                changed = True
    return tuple(live)


def _successors(decoded: Decoded, index: int) -> list[int]:
    ins = decoded.instructions[index]
    found = []
    if ins.opname not in _STOPS and ins.opname not in _JUMPS_ALWAYS:
        found.append(index + 1)
    if ins.opname in _JUMPING:
        found.append(decoded.at[ins.argval])
    handler = decoded.handler(ins.offset)
    if handler is not None:
        found.append(decoded.at[handler.target])
    return [i for i in found if i < len(decoded.instructions)]


_JUMPING = {dis.opname[op] for op in (*dis.hasjrel, *dis.hasjabs)}


@functools.lru_cache(maxsize=4096)
def _looks_at_locals(code: CodeType) -> bool:
    """Whether code, or that of a function in it, may look at the frame's variables by name."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return bool(_INTROSPECTION.intersection(code.co_names)) or any(map(_looks_at_locals, inner))


def live_locals(decoded: Decoded, index: int) -> frozenset[str]:
    """The names of `co_varnames` whose value the frame may still read from `index` on."""
    code: CodeType = decoded.code
    if _looks_at_locals(code):
        return frozenset(code.co_varnames)
    live = _live_before(decoded)[index]
    if "super" in code.co_names and code.co_varnames:
        # Without arguments it reads the frame's first variable.
        return live | {code.co_varnames[0]}
    return live
