"""The process that lowers graphs: `python -m aotdyn.package.compilers.cpu.worker`."""

import logging
import warnings

import torch

from ..worker import serve
from .jobs import CONTAINER, PYTHON, Refusal, job_from_bytes, result_to_bytes
from .lower import lower
from .lower_python import lower_python
from .refusal import Refused

_LOWER = {CONTAINER: lower, PYTHON: lower_python}


def handle(data: bytes) -> bytes:
    """One job; a refusal is a result like any other."""
    job, options, way = job_from_bytes(data)
    torch.set_num_threads(options.threads)
    try:
        return result_to_bytes(_LOWER[way](job, options))
    except Refused as refused:
        return result_to_bytes(Refusal(str(refused)))
    finally:
        torch._dynamo.reset()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    serve(handle)
