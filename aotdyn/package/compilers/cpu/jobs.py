"""What goes into a compile job and what comes out, as data that travels between processes and lies
in the cache."""

import json
from dataclasses import replace
from pathlib import Path

import torch

from ...errors import PackageError
from ...plan import PLANS
from ...schema import CODEC
from ...values import from_bytes, to_bytes
from ...weights import Weight
from .. import Job
from ..cache import digest
from ..lowering.lowered import Lowered, PartCode
from ..lowering.version import version_of
from ..options import Options
from ..refusal import Refusal, Refused

_FOLDER = Path(__file__).parent
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
    return digest(graph.id, hints, chosen, weights, way, torch.__version__, version_of(_FOLDER))
