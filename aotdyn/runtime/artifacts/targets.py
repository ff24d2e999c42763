"""Which targets of a package have code for this process' devices, best first."""

from collections.abc import Iterable

import torch

from ...package.launch import ASSEMBLY, BINARY, CUDA, HIP


def ordered(targets: Iterable[str]) -> list[str]:
    """The targets whose artifacts may be loaded here, best first."""
    found = [(rank, target) for target in targets if (rank := _rank(target)) is not None]
    return [target for _, target in sorted(found)]


def gpu_form(target: str) -> str | None:
    """In which form this process' GPU runs the code of a target, None if in neither."""
    kind, _, name = target.partition(":")
    if kind == HIP:
        return BINARY if torch.version.hip and name == _amd_name() else None
    if kind != CUDA or not torch.cuda.is_available() or torch.version.hip:
        return None
    return cuda_form(name, torch.cuda.get_device_capability())


def cuda_form(name: str, capability: tuple[int, int]) -> str | None:
    """For `sm_80` and a device's compute capability. NVIDIA's rules (CUDA C++ Programming Guide,
    "Binary Compatibility" and "PTX Compatibility"): a binary runs on devices of the same major
    capability and no smaller minor one, PTX on all later devices. From 9.0 on Triton uses features
    that only the architecture itself has."""
    number = int(name.removeprefix("sm_"))
    built = divmod(number, 10)
    if built == capability:
        return BINARY
    if built[0] >= 9 or capability < built:
        return None
    return BINARY if built[0] == capability[0] else ASSEMBLY


def _rank(target: str) -> tuple[int, int] | None:
    """Smaller is better: the device's own architecture, the nearest one, assembly. Of that the
    lowest asks least of a device that nobody knows yet."""
    if target == "cpu":
        return 0, 0
    form = gpu_form(target)
    if form is None:
        return None
    digits = target.rpartition("_")[2]
    number = int(digits) if digits.isdecimal() else 0
    return (1, -number) if form == BINARY else (2, number)


def _amd_name() -> str:
    if not torch.cuda.is_available():
        return ""
    return torch.cuda.get_device_properties().gcnArchName.partition(":")[0]
