"""How graphs are compiled, for all compilers."""

from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import AotdynError
from .isa import ISAS

# The ways in which a graph is compiled, best first: C++ for our container; Python that calls
# compiled kernels. What none of them takes is shipped as the eager graph.
CONTAINER, PYTHON = WAYS = ("container", "python")


@dataclass(frozen=True)
class Options:
    """How graphs are compiled.

    isas: the vector ISAs that there is code for. threads: how many the loops are cut for; any
    number may run them. inductor: settings of Inductor, by name. ways: those that are tried, in
    this order. imports: modules and files that register operators which graphs call. tune: whether
    kernels for GPUs come in several configurations, of which the device takes the fastest.
    """

    isas: tuple[str, ...] = tuple(ISAS)
    threads: int = 4
    inductor: dict[str, Any] = field(default_factory=dict)
    ways: tuple[str, ...] = WAYS
    imports: tuple[str, ...] = ()
    tune: bool = False

    @classmethod
    def of(cls, given: dict[str, Any]) -> "Options":
        """Options from a flat dict: ours by their names, the rest is Inductor's."""
        own = {name: given[name] for name in {f.name for f in fields(cls)} & given.keys()}
        if "isas" in own:
            own["isas"] = tuple(own["isas"])
            unknown = set(own["isas"]) - set(ISAS)
            if unknown or not own["isas"]:
                raise AotdynError(f"isas are some of {', '.join(ISAS)}, not {sorted(unknown)}")
        own["imports"] = tuple(own.get("imports", ()))
        if type(own.get("tune", False)) is not bool:
            raise AotdynError(f"tune is true or false, not {own['tune']!r}")
        own["ways"] = tuple(own.get("ways", WAYS))
        if not own["ways"] or set(own["ways"]) - set(WAYS):
            raise AotdynError(f"ways are some of {', '.join(WAYS)}, not {list(own['ways'])}")
        rest = {name: value for name, value in given.items() if name not in own}
        return cls(**{**own, "inductor": {**own.get("inductor", {}), **rest}})
