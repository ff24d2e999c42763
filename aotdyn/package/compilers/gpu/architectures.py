"""The GPU architectures that there are targets for, and what Inductor's heuristics ask of a device.

The numbers decide how kernels are cut, never what they compute. Limits per multiprocessor are those
of the table "Technical Specifications per Compute Capability" in NVIDIA's CUDA C++ Programming
Guide and, for AMD, of the instruction set guides (wave size, LDS) and LLVM's AMDGPU user guide. The
number of multiprocessors and the memory are those of one usual product of the architecture, from
its maker's data sheet; that product is named.
"""

from dataclasses import dataclass
from types import SimpleNamespace

from ...errors import AotdynError
from ...launch import CUDA, HIP

_KIB, _GIB = 1 << 10, 1 << 30


@dataclass(frozen=True)
class Architecture:
    """name: as in a target, after the colon. product: whose size the numbers describe. registers:
    32-bit ones of a multiprocessor. shared: most bytes that a block may ask for. memory, cache: in
    bytes."""

    kind: str
    name: str
    major: int
    minor: int
    product: str
    multiprocessors: int
    threads: int
    shared: int
    shared_per_multiprocessor: int
    memory: int
    cache: int
    registers: int = 65536
    warp: int = 32

    @property
    def target(self) -> str:
        """`cuda:sm_90`"""
        return f"{self.kind}:{self.name}"

    @property
    def exact(self) -> bool:
        """Whether its code, as Triton makes it, is for this architecture and no other: from 9.0 on
        NVIDIA's is for the architecture's own features (`sm_90a`)."""
        return self.kind == HIP or self.major >= 9

    @property
    def number(self) -> int | str:
        """What Triton and Inductor call it: 90, "gfx942"."""
        return self.major * 10 + self.minor if self.kind == CUDA else self.name

    def properties(self) -> SimpleNamespace:
        """What `torch.cuda.get_device_properties` gives for such a device."""
        return SimpleNamespace(
            name=self.product,
            major=self.major,
            minor=self.minor,
            multi_processor_count=self.multiprocessors,
            regs_per_multiprocessor=self.registers,
            max_threads_per_multi_processor=self.threads,
            max_threads_per_block=1024,
            warp_size=self.warp,
            shared_memory_per_block=min(self.shared, 48 * _KIB),
            shared_memory_per_block_optin=self.shared,
            shared_memory_per_multiprocessor=self.shared_per_multiprocessor,
            total_memory=self.memory,
            L2_cache_size=self.cache,
            is_integrated=0,
            is_multi_gpu_board=0,
            gcnArchName=self.name if self.kind == HIP else "",
        )


def _cuda(name, major, minor, product, multiprocessors, threads, shared, memory, cache):
    # A block may use all of a multiprocessor's shared memory but one KiB, which is the system's.
    return Architecture(
        CUDA, name, major, minor, product, multiprocessors, threads, (shared - 1) * _KIB,
        shared * _KIB, memory * _GIB, cache << 20,
    )  # fmt: skip


_ALL = (
    _cuda("sm_80", 8, 0, "A100", 108, 2048, 164, 80, 40),
    _cuda("sm_86", 8, 6, "A10", 72, 1536, 100, 24, 6),
    _cuda("sm_89", 8, 9, "L40S", 142, 1536, 100, 48, 96),
    _cuda("sm_90", 9, 0, "H100 SXM", 132, 2048, 228, 80, 50),
    _cuda("sm_100", 10, 0, "B200", 148, 2048, 228, 180, 126),
    _cuda("sm_120", 12, 0, "RTX PRO 6000 Blackwell", 188, 1536, 100, 96, 128),
    Architecture(
        HIP, "gfx942", 9, 4, "MI300X", 304, 2048, 64 * _KIB, 64 * _KIB, 192 * _GIB, 4 << 20,
        warp=64,
    ),
)  # fmt: skip

ARCHITECTURES = {architecture.target: architecture for architecture in _ALL}


def architecture_of(target: str) -> Architecture:
    """Raises AotdynError for one that there is no target for."""
    found = ARCHITECTURES.get(target)
    if found is None:
        known = ", ".join(ARCHITECTURES)
        raise AotdynError(f"there is no GPU target {target!r}; there are {known}")
    return found
