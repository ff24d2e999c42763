"""The environment of a process in which a GPU is made up, where torch is a build for CPUs: with a
library in front of torch's own, tensors can be on it, fake ones and, in the CPU's memory, real
ones."""

import os
from pathlib import Path

import torch

from ..cache import digest
from ..toolchain import Source, Toolchain

_SOURCE = Path(__file__).with_name("made_up.cpp")
_VARIABLES = ("LD_PRELOAD", "LD_LIBRARY_PATH")


def made_up_environment(toolchain: Toolchain) -> dict[str, str]:
    """What to set for the process. Raises Refused where the library cannot be built."""
    if torch.cuda._is_compiled():
        return {}
    text = _SOURCE.read_text()
    key = digest(text)
    toolchain.link([toolchain.compile(Source(text))], key)
    values = (str(toolchain.library_path(key)), str(Path(torch.__file__).parent / "lib"))
    before = (os.environ.get(name) for name in _VARIABLES)
    return {
        name: os.pathsep.join(filter(None, (value, old)))
        for name, value, old in zip(_VARIABLES, values, before)
    }


def is_made_up() -> bool:
    """Whether this process has the library: operators have kernels for a GPU that is not there."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key("aten::convolution", "CUDA")
    return has and not torch.version.cuda and not torch.version.hip


def forget_environment() -> None:
    """Called in that process: what it starts is not to load torch. What the variables held besides
    is left."""
    for name in _VARIABLES:
        ours, _, rest = os.environ.get(name, "").partition(os.pathsep)
        if rest:
            os.environ[name] = rest
        else:
            os.environ.pop(name, None)
