"""The environment of a process that works with fake tensors of a GPU, where torch is a build for
CPUs: it can differentiate and write to them with a library in front of torch's own."""

import os
from pathlib import Path

import torch

from ..cache import digest
from ..cpu.toolchain import Source, Toolchain

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


def forget_environment() -> None:
    """Called in that process: compilers that it starts are not to load torch."""
    for name in _VARIABLES:
        os.environ.pop(name, None)
