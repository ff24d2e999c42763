"""What NVIDIA's own tool, which the wheel of Triton has, reads in a kernel binary."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

_FUNCTION = re.compile(
    r"Function (?P<name>\w+):\s+REG:(?P<registers>\d+) STACK:(?P<stack>\d+) SHARED:(?P<shared>\d+) "
    r"LOCAL:(?P<local>\d+)"
)
_PARAMETER = re.compile(r"Ordinal : 0x(\w+)\s+Offset\s+: 0x(\w+)\s+Size\s+: 0x(\w+)")
_ARCHITECTURE = re.compile(r"code for (sm_\w+)")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(@!?\w+ )?[A-Z]", re.MULTILINE)


@dataclass(frozen=True)
class Told:
    """architecture: `sm_90a`. parameters: (offset, size) of each. memory: bytes of its own that a
    thread uses besides registers. instructions: how many there are."""

    architecture: str
    name: str
    parameters: tuple[tuple[int, int], ...]
    registers: int
    memory: int
    instructions: int


def tool() -> Path | None:
    import triton

    found = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    return found if found.exists() else None


def told(code: bytes, folder: Path) -> Told:
    """About the only kernel in a binary."""
    path = folder / "kernel.cubin"
    path.write_bytes(code)

    def run(option):
        done = subprocess.run([tool(), option, path], capture_output=True, text=True, check=True)
        return done.stdout

    (used,) = _FUNCTION.finditer(run("-res-usage"))
    text = run("-sass")
    (architecture,) = _ARCHITECTURE.findall(text)
    found = {
        int(number, 16): (int(offset, 16), int(size, 16))
        for number, offset, size in _PARAMETER.findall(run("-elf"))
    }
    return Told(
        architecture, used["name"], tuple(found[index] for index in range(len(found))),
        int(used["registers"]), int(used["stack"]) + int(used["local"]),
        len(_INSTRUCTION.findall(text)),
    )  # fmt: skip
