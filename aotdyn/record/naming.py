"""Names in generated text: parameters, references, intermediate values; no two the same."""

import builtins
import keyword
import re
from types import CodeType

from ..package.point import RAISE, RESUME, STEP, Point
from ..package.reference import (
    Classes,
    ClassLike,
    CodeOf,
    EntryAt,
    Globals,
    GraphOf,
    Import,
    Reference,
    Runtime,
    State,
    Tensors,
    Verified,
)

_PREFERRED: dict[type, str] = {
    Classes: "classes",
    ClassLike: "like",
    CodeOf: "code",
    EntryAt: "resume",
    Globals: "G",
    GraphOf: "graph",
    State: "state",
    Tensors: "tensors",
    Verified: "verified",
}

# What generated text means by these names is never what a program calls so.
_RESERVED = frozenset({"inputs", "check", "body", "math", *dir(builtins)})

_CONTINUATION = {RESUME: "resume", RAISE: "raise", STEP: "step"}


class Names:
    """The names of one variant. `references` maps the free names of its texts to references."""

    def __init__(self, params: tuple[str, ...]):
        self._taken = {*params, *_RESERVED}
        self._by_reference: dict[Reference, str] = {}
        self.references: dict[str, Reference] = {}

    def fresh(self, wanted: str) -> str:
        """An unused name close to the wanted one."""
        wanted = re.sub(r"\W", "_", wanted) or "value"
        if wanted[0].isdigit() or keyword.iskeyword(wanted):
            wanted = f"_{wanted}"
        name, count = wanted, 1
        while name in self._taken:
            name, count = f"{wanted}_{count}", count + 1
        self._taken.add(name)
        return name

    def of(self, reference: Reference) -> str:
        """The name that a reference is bound to."""
        found = self._by_reference.get(reference)
        if found is None:
            found = self.fresh(self._wanted(reference))
            self._by_reference[reference] = found
            self.references[found] = reference
        return found

    def _wanted(self, reference: Reference) -> str:
        if isinstance(reference, Import):
            return (reference.qualname or reference.module).rpartition(".")[2]
        if isinstance(reference, Runtime):
            return reference.name
        if isinstance(reference, EntryAt):
            return f"{_CONTINUATION[reference.point.kind]}_at_{reference.point.offset}"
        return _PREFERRED.get(type(reference), "const")


def parameter_names(code: CodeType, point: Point | None) -> tuple[str, ...]:
    """The parameters of `check` and `body` for an entry, in the order of the frame values."""
    count = len(code.co_varnames)
    if point is None:
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    wanted = list(code.co_varnames[:count])
    cells = code.co_freevars if point is None else (*code.co_cellvars, *code.co_freevars)
    wanted += [f"{name}_cell" for name in cells]
    if point is not None:
        wanted += [f"stack_{i}" for i in range(sum(point.stack))]
        wanted += ["raised"] * (point.kind == RAISE)
    names: list[str] = []
    taken = {*_RESERVED}
    for each in wanted:
        each = re.sub(r"\W", "_", each)
        name, number = each, 1
        while name in taken or keyword.iskeyword(name):
            name, number = f"{each}_{number}", number + 1
        taken.add(name)
        names.append(name)
    return tuple(names)
