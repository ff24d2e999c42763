"""Runs graphs that were lowered for a GPU on the CPU: the text as it is, the kernels' sources in
Triton's interpreter. A process of its own, started with `environment()`:

`python triton_interpreter.py RECORDING TARGET [ID ...]` prints for each graph what is wrong with it
compared to eager, gradients included, "" for nothing, as JSON.
"""

import json
import os
import sys
from contextlib import nullcontext
from unittest import mock

import torch

from tests.package.compilers.interpreting_driver import complete_interpreter

CPU_TO_GPU = {"cpu": "cuda:0"}


def environment() -> dict[str, str]:
    """The environment for the process."""
    from aotdyn.package.compilers.cache import Cache
    from aotdyn.package.compilers.gpu.made_up import made_up_environment
    from aotdyn.package.compilers.toolchain import Toolchain

    return {**os.environ, **made_up_environment(Toolchain.find(Cache())), "TRITON_INTERPRET": "1"}


# -- lowering and running ----------------------------------------------------------------------


def interpreted(name, defined, source, architecture):
    """In place of `compile_kernel`: the kernel as the interpreter runs it."""
    from torch._inductor.codecache import PyCodeCache

    kernel = getattr(PyCodeCache.load(source), defined)
    return name, UserKernel(kernel) if kernel.inductor_meta.get("extra_launcher_args") else kernel


class UserKernel:
    """A kernel that is given its grid, which torch does not pass on to the interpreter."""

    def __init__(self, kernel):
        self.kernel = kernel
        meta = kernel.triton_meta
        self.names = [name for name, kind in meta["signature"].items() if kind != "constexpr"]
        self.constants = {
            key if isinstance(key, str) else kernel.fn.arg_names[key[0]]: value
            for key, value in meta["constants"].items()
        }

    def run(self, *args, stream):
        count = len(self.kernel.inductor_meta["extra_launcher_args"])
        named = dict(zip(self.names, args[:-count], strict=True))
        constants = {**self.constants, **self.kernel.configs[0].kwargs}
        self.kernel.fn[args[-count:]](**named, **constants)


def wrong_with(graph, architecture) -> str:
    """What is wrong with the code for a graph that was recorded on the CPU."""
    from aotdyn.package.archive import Artifact
    from aotdyn.package.compilers import Job
    from aotdyn.package.compilers.gpu import lower, wrapper
    from aotdyn.package.compilers.options import Options
    from aotdyn.package.devices import moved_graph
    from aotdyn.package.plan import plan_to_bytes
    from aotdyn.package.state import process_state_is
    from aotdyn.runtime.artifacts import compiled, python_parts
    from aotdyn.runtime.artifacts.replay import Mismatch, replay

    moved = moved_graph(graph, CPU_TO_GPU)
    options = Options(isas=("scalar",), threads=1)
    with mock.patch.object(wrapper, "compile_kernel", interpreted):
        lowered = lower.lower_gpu(Job(moved), architecture, options)
    names = {
        **python_parts.NAMES,
        "copy_if_misaligned": lambda tensor: tensor,
        "device_guard": lambda index: nullcontext(),
        "empty_strided_cuda": torch._C._dynamo.guards._empty_strided_cpu,
        "get_raw_stream": lambda index: 0,
        **dict(lowered.kernels),
    }
    text = lowered.text.replace("device='cuda:0'", "device='cpu'")
    text = text.replace("device(type='cuda', index=0)", "device(type='cpu')")
    artifact = Artifact("cpu", text, {}, {"plan": plan_to_bytes(lowered.plan), **lowered.files})
    with (
        mock.patch.object(compiled, "_runs", lambda plan, artifact: names),
        process_state_is(graph.state),
    ):
        try:
            replay(graph, artifact, {})
        except Mismatch as error:
            return str(error)
    return ""


def main(recording, target, *ids):
    from aotdyn.package.compilers.gpu.architectures import architecture_of
    from aotdyn.package.compilers.gpu.made_up import forget_environment
    from aotdyn.package.errors import AotdynError
    from aotdyn.package.recording import read_recording

    forget_environment()
    complete_interpreter(architecture_of(target))
    answers = {}
    for id, graph in read_recording(recording).graphs.items():
        if ids and id not in ids:
            continue
        try:
            answers[id] = wrong_with(graph, architecture_of(target))
        except AotdynError as error:
            answers[id] = f"refused: {error}"
        except Exception as error:
            answers[id] = f"{type(error).__name__}: {error}"
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
