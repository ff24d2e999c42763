"""The process that lowers graphs: `python -m aotdyn.package.compilers.cpu.worker`."""

import logging
import warnings

import torch

from ..worker import serve
from .jobs import Refusal, job_from_bytes, result_to_bytes
from .lower import lower
from .refusal import Refused


def handle(data: bytes) -> bytes:
    """One job; a refusal is a result like any other."""
    job, options = job_from_bytes(data)
    torch.set_num_threads(options.threads)
    try:
        return result_to_bytes(lower(job.graph, options))
    except Refused as refused:
        return result_to_bytes(Refusal(str(refused)))
    finally:
        torch._dynamo.reset()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    serve(handle)
