"""The gate: compiled artifacts are run against their graphs in clean processes, one for each
vector ISA that this machine can run. What does not agree is not shipped.

The comparison itself is the runtime's (`aotdyn/runtime/artifacts/replay.py`): it loads artifacts
as a served program does.
"""

from collections.abc import Sequence
from pathlib import Path

from ...archive import Artifact
from ...schema import CODEC
from ...values import decode, encode, from_bytes, to_bytes
from .. import Job
from ..cache import Cache, digest
from ..forks import ForkServer
from ..isa import runnable_here
from ..worker import WorkerDied, Workers

# What passes is what this text lets pass.
_REPLAY = (Path(__file__).parents[3] / "runtime" / "artifacts" / "replay.py").read_bytes()

# What makes torch, and with it the runtime, use an ISA.
_CAPABILITY = {"avx512": "avx512", "avx2": "avx2", "scalar": "default"}


def check_artifacts(
    artifacts: dict[str, tuple[Job, Artifact]],
    isas: Sequence[str],
    cache: Cache,
    server: ForkServer,
) -> dict[str, str | int]:
    """The graphs that fail, and how. A pass is remembered for the same code. Code for ISAs that
    this machine does not have is not run. An int is an output that has to be copied.

    server: forks processes that have imported torch and nothing else.
    """
    failed: dict[str, str | int] = {}
    here = runnable_here()
    for isa in isas:
        if isa not in here:
            continue
        environment = {"ATEN_CPU_CAPABILITY": _CAPABILITY[isa]}
        with Workers("aotdyn.runtime.artifacts.replay", environment, server) as workers:
            for id, (job, artifact) in artifacts.items():
                if id in failed:
                    continue
                key = _key(job, artifact, isa)
                # Operators of the user's may have changed since.
                if cache.path("passed", key) is not None and not job.graph.providers:
                    continue
                answer = _ask(workers, job, artifact, isa)
                if answer == "":
                    cache.put("passed", key, b"")
                elif answer is not None:
                    failed[id] = answer if type(answer) is int else f"{answer} (with {isa})"
    return failed


def _key(job: Job, artifact: Artifact, isa: str) -> str:
    parts = [artifact.files[name] for name in sorted(artifact.files) if not name.endswith(".so")]
    return digest(_REPLAY, job.graph.id, isa, artifact.text, *map(bytes, parts))


def _ask(workers: Workers, job: Job, artifact: Artifact, isa: str) -> str | int | None:
    """What is wrong, "" if nothing is, None if this machine cannot run the ISA."""
    files = {name: bytes(data) for name, data in artifact.files.items()}
    files = {n: d for n, d in files.items() if not n.endswith(".so") or n == f"{isa}.so"}
    graph = CODEC.encode(job.graph)
    weights = [(name, w.dtype, w.size, w.data, w.digest) for name, w in job.weights]
    stored = encode((artifact.text, files, to_bytes(graph), weights))
    try:
        answer = decode(from_bytes(workers.run(to_bytes(stored))))
    except WorkerDied as died:
        return f"running it: {died}"
    return answer


