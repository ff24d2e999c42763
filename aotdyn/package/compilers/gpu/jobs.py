"""What goes into a compile job for a GPU and what comes out, as data that travels between processes
and lies in the cache."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import triton

from ...errors import PackageError
from ...plan import PLANS, Plan
from ...schema import CODEC
from ...values import from_bytes, to_bytes
from .. import Job
from ..cache import digest
from ..lowering.version import version_of
from ..options import Options
from ..refusal import Refusal, Refused
from .kernels import Compiled


@dataclass(frozen=True)
class GpuLowered:
    """A graph for one architecture. text: functions of the parts and what is around them. kernels:
    those that the text starts. files: its constants. conditions: what calls must fulfil beyond the
    guards. seconds: that making it took."""

    plan: Plan
    text: str
    kernels: tuple[Compiled, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    seconds: float = 0.0


_FOLDER = Path(__file__).parent
_JOBS = CODEC.extended(
    {
        **PLANS,
        "options": Options,
        "job": Job,
        "compiled_kernel": Compiled,
        "gpu_lowered": GpuLowered,
        "refusal": Refusal,
    }
)


def job_to_bytes(job: Job, target: str, options: Options) -> bytes:
    """For a worker."""
    return to_bytes(_JOBS.encode((job, target, options)))


def job_from_bytes(data: bytes) -> tuple[Job, str, Options]:
    """The mirror of `job_to_bytes`."""
    return _JOBS.decode(from_bytes(data))


def result_to_bytes(result: GpuLowered | Refusal) -> bytes:
    """For the cache."""
    return to_bytes(_JOBS.encode(result))


def result_from_bytes(data: bytes) -> GpuLowered:
    """The mirror of `result_to_bytes`. Raises Refused for a refusal."""
    found: Any = _JOBS.decode(from_bytes(data))
    if isinstance(found, Refusal):
        raise Refused(found.reason)
    if not isinstance(found, GpuLowered):
        raise PackageError("it is no result of a compile job")
    return found


def job_key(job: Job, target: str, options: Options) -> str:
    """What the result depends on."""
    hints = json.dumps([(symbol.name, symbol.hint) for symbol in job.graph.symbols])
    weights = repr([(name, weight.digest) for name, weight in job.weights])
    versions = (torch.__version__, triton.__version__, version_of(_FOLDER))
    return digest(job.graph.id, hints, weights, target, repr(options), *versions)
