"""The process that lowers graphs for GPUs: `python -m aotdyn.package.compilers.gpu.worker`."""

import logging
import os
import time
import warnings
from dataclasses import replace

# Triton reads it when it is imported. File names and lines would be in the code, which would then
# differ from machine to machine.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import torch

from ..refusal import Refusal, Refused
from ..worker import serve
from .architectures import architecture_of
from .jobs import job_from_bytes, result_to_bytes
from .lower import lower_gpu
from .made_up import forget_environment


def handle(data: bytes) -> bytes:
    """One job; a refusal is a result like any other."""
    job, target, options = job_from_bytes(data)
    start = time.perf_counter()
    try:
        lowered = lower_gpu(job, architecture_of(target), options)
        return result_to_bytes(replace(lowered, seconds=time.perf_counter() - start))
    except Refused as refused:
        return result_to_bytes(Refusal(str(refused)))
    finally:
        torch._dynamo.reset()


if __name__ == "__main__":
    forget_environment()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    serve(handle)
