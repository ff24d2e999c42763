"""As `triton_interpreter.py`, but every launch is captured by a stand-in for a GPU and replayed:
prints for each graph what is wrong with it, and how many parts were replayed, as JSON."""

import json
import sys
from unittest import mock

import triton_interpreter

from aotdyn.runtime.artifacts import captures, compiled, cuda_graphs, gpu_parts
from aotdyn.runtime.artifacts import replay as replays
from tests.runtime.artifacts.stand_in_device import StandIn

interpreted = triton_interpreter.interpreted


class Everything(set):
    """Shapes that have been seen: all, so that the first call is captured."""

    def __contains__(self, key):
        return True


class NotedKernel:
    """A kernel that a capture notes instead of running it."""

    def __init__(self, kernel, device):
        self.kernel = kernel
        self.device = device

    def run(self, *args, stream):
        self.device.launch(lambda: self.kernel.run(*args, stream=stream))


def main(*words):
    device, whole = StandIn(), compiled._parts

    class Captured(captures.Captured):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._seen = Everything()

    def noted(name, *args):
        name, kernel = interpreted(name, *args)
        return name, NotedKernel(kernel, device)

    def parts(artifact, plan, captured):
        names = whole(artifact, plan, captured)
        assert not plan.uncapturable, plan.uncapturable
        return {**names, **gpu_parts.gpu_parts("cuda:sm_90", plan, names, True)}

    with (
        mock.patch.object(triton_interpreter, "interpreted", noted),
        mock.patch.object(compiled, "_parts", parts),
        mock.patch.object(captures, "Captured", Captured),
        mock.patch.object(captures, "MOST", 1000),
        mock.patch.object(cuda_graphs, "cuda_device", lambda index: device),
    ):
        triton_interpreter.main(*words)
    assert replays.load_graph is compiled.load_graph
    print(json.dumps([device.run_aside, device.captured, device.replayed]))


if __name__ == "__main__":
    main(*sys.argv[1:])
