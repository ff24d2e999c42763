"""The vector ISAs of x86-64 that there is code for: how Inductor vectorizes, how g++ compiles."""

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Isa:
    """name: as in a package. vector: the name of Inductor's class, "" for none. flags: of the
    compiler, complete, so that nothing depends on the machine that compiles."""

    name: str
    vector: str
    flags: tuple[str, ...]

    def inductor(self) -> Any:
        """Inductor's description. It says that it is there without asking this machine."""
        from torch._inductor import cpu_vec_isa  # imported by workers only

        if not self.vector:
            return cpu_vec_isa.invalid_vec_isa
        base = getattr(cpu_vec_isa, self.vector)

        class Pinned(base):
            def __bool__(self) -> bool:
                return True

            __hash__ = base.__hash__

        return Pinned()


# What torch can be told to use, and what it says of a machine. Told more than the machine has, it
# obeys, and dies.
_LEVELS = {"scalar": "DEFAULT", "avx2": "AVX2", "avx512": "AVX512"}


def runnable_here() -> list[str]:
    """The ISAs that this machine can run, by torch's judgement."""
    names, levels = list(_LEVELS), list(_LEVELS.values())
    found = torch.backends.cpu.get_cpu_capability()
    return names[: levels.index(found) + 1] if found in levels else []


# AMX, AVX512-FP16 and -BF16 are left out: torch's capability "AVX512" does not promise them.
ISAS = {
    isa.name: isa
    for isa in (
        Isa("avx512", "VecAVX512", ("-DCPU_CAPABILITY_AVX512", "-march=x86-64-v4")),
        Isa("avx2", "VecAVX2", ("-DCPU_CAPABILITY_AVX2", "-march=x86-64-v3")),
        Isa("scalar", "", ("-march=x86-64-v2",)),
    )
}
