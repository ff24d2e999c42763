"""Whether machine code fits this process: it was compiled against one torch's headers, for one
architecture and for a C library that is not older than the compiler's."""

import os

import torch


def unmet(needs: dict[str, str]) -> str:
    """What is not as a target needs it, or nothing. Needs that are not known are left to the
    loader."""
    version = str(torch.__version__)
    # Code for a GPU is for all builds of a release, that for CPUs for the very same one.
    if "+" not in needs.get("torch", "+"):
        version = version.partition("+")[0]
    here = {"torch": version, "machine": os.uname().machine}
    for name, value in here.items():
        if needs.get(name, value) != value:
            return f"it is for {name} {needs[name]}, this is {value}"
    wanted, there = needs.get("glibc", ""), _glibc()
    if wanted and there and _numbers(there) < _numbers(wanted):
        return f"it needs glibc {wanted}, this is {there}"
    return ""


def _glibc() -> str:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").removeprefix("glibc ")
    except (AttributeError, ValueError, OSError):
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))
