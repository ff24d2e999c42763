"""What goes into a compile job and what comes out, as data that travels between processes and lies
in the cache."""

import functools
import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch

from ...errors import AotdynError, PackageError
from ...plan import PLANS, Plan
from ...schema import CODEC
from ...values import from_bytes, to_bytes
from ...weights import Weight
from .. import Job
from ..cache import digest
from .code import PartCode
from .isa import ISAS
from .refusal import Refused

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


@dataclass(frozen=True)
class Lowered:
    """A graph as code. plan: without the library's name and numbers. text: the Python around the
    parts. files: its constants. conditions: what calls must fulfil beyond the guards."""

    plan: Plan
    text: str
    parts: tuple[PartCode, ...]
    files: dict[str, bytes]
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """The stored form of `Refused`."""

    reason: str


_JOBS = CODEC.extended(
    {
        **PLANS,
        "options": Options,
        "job": Job,
        "weight": Weight,
        "part_code": PartCode,
        "lowered": Lowered,
        "refusal": Refusal,
    }
)


def job_to_bytes(job: Job, options: Options, way: str) -> bytes:
    """For a worker."""
    return to_bytes(_JOBS.encode((job, options, way)))


def job_from_bytes(data: bytes) -> tuple[Job, Options, str]:
    """The mirror of `job_to_bytes`."""
    return _JOBS.decode(from_bytes(data))


def result_to_bytes(result: Lowered | Refusal) -> bytes:
    """For the cache."""
    return to_bytes(_JOBS.encode(result))


def result_from_bytes(data: bytes) -> Lowered:
    """The mirror of `result_to_bytes`. Raises Refused for a refusal."""
    found = _JOBS.decode(from_bytes(data))
    if isinstance(found, Refusal):
        raise Refused(found.reason)
    if not isinstance(found, Lowered):
        raise PackageError("it is no result of a compile job")
    return found


def job_key(job: Job, options: Options, way: str) -> str:
    """What the result depends on."""
    graph = job.graph
    hints = json.dumps([(symbol.name, symbol.hint) for symbol in graph.symbols])
    chosen = repr(replace(options, imports=()))
    weights = repr([(name, weight.digest) for name, weight in job.weights])
    return digest(graph.id, hints, chosen, weights, way, torch.__version__, _own_version())


@functools.lru_cache
def _own_version() -> str:
    """A hash of the code that makes the results."""
    here = Path(__file__).parent
    sources = [*sorted(here.glob("*.py")), here.parent / "fx.py", here.parents[1] / "plan.py"]
    return digest(*(path.read_bytes() for path in sources))
