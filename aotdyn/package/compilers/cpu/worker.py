"""The process that lowers graphs. Its server imports this module and calls `prepare`."""

import gc
import logging
import warnings

import torch

from ...graph import Graph, GraphInput, Node, Value
from .. import Job
from ..options import CONTAINER, PYTHON, Options
from ..refusal import Refusal, Refused
from ..worker import serve
from .jobs import job_from_bytes, result_to_bytes
from .lower_container import lower
from .lower_python import lower_python

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


def prepare() -> None:
    """Does what Inductor does once in a process, before its first graph."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    x = GraphInput("x", "float32", "cpu", size=(64,), stride=(1,))
    graph = Graph((x,), (Node("y", "relu", (Value("x"),), ()),), ("y",), grad=False)
    lower(Job(graph), Options(isas=("avx2",)))
    torch._dynamo.reset()
    # Compilers make many objects, most of which stay: looking for garbage is a tenth of the time.
    gc.set_threshold(50_000, 20, 20)


def main() -> None:
    """Lowers graphs until there are no more."""
    serve(handle)
