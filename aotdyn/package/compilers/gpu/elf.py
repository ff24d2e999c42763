"""Kernel binaries read back: the architecture they are for and the sizes of a kernel's parameters.

Formats: ELF-64; NVIDIA's `.nv.info.<kernel>` sections (attributes EIATTR_KPARAM_INFO), as
`cuobjdump -elf` prints them; the AMD GPU code object's flags and metadata note, as LLVM's "User
Guide for AMDGPU Backend" describes them.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import msgpack

from ...errors import PackageError

_CUDA_MACHINE, _AMD_MACHINE = 190, 224
_CUDA_ABI_WIDE = 8  # from this ABI version on the architecture is in the second byte of the flags
_AMD_FLAGS = {0x4C: "gfx942"}
_SECTION_NOTE = 7
_AMD_METADATA = 32  # NT_AMDGPU_METADATA
_FORMAT_SIZED = 4  # an attribute with a size and that many bytes
_PARAMETER = 0x17
_SIZE_SHIFT, _SIZE_MASK = 18, 0x3FFF


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    data: bytes


def architecture_in(binary: bytes) -> str:
    """`sm_90` or `gfx942`. Raises PackageError for what is no kernel binary of a known kind."""
    machine, abi, flags = _header(binary)
    if machine == _CUDA_MACHINE:
        number = flags >> 8 & 0xFF if abi >= _CUDA_ABI_WIDE else flags & 0xFF
        return f"sm_{number}"
    if machine == _AMD_MACHINE and flags & 0xFF in _AMD_FLAGS:
        return _AMD_FLAGS[flags & 0xFF]
    raise PackageError(f"a binary for machine {machine}, flags {flags:#x}")


def parameter_sizes(binary: bytes, kernel: str) -> tuple[int, ...]:
    """Bytes of each parameter of a kernel, in order. Raises PackageError if it is not in there."""
    machine, _, _ = _header(binary)
    read = _cuda_parameters if machine == _CUDA_MACHINE else _amd_parameters
    return read(binary, kernel)


def _header(binary: bytes) -> tuple[int, int, int]:
    """Machine, ABI version and flags."""
    if len(binary) < 64 or binary[:5] != b"\x7fELF\x02":
        raise PackageError("a kernel binary that is no 64-bit ELF file")
    (machine,) = struct.unpack_from("<H", binary, 18)
    (flags,) = struct.unpack_from("<I", binary, 48)
    return machine, binary[8], flags


def _sections(binary: bytes) -> Iterator[_Section]:
    try:
        (table,) = struct.unpack_from("<Q", binary, 40)
        size, count, names = struct.unpack_from("<HHH", binary, 58)
        headers = [struct.unpack_from("<IIQQQQ", binary, table + i * size) for i in range(count)]
        _, _, _, _, start, length = headers[names]
        texts = binary[start : start + length]
        for name, kind, _, _, start, length in headers:
            text = texts[name : texts.index(b"\0", name)].decode()
            yield _Section(text, kind, binary[start : start + length])
    except (struct.error, IndexError, ValueError) as error:
        raise PackageError(f"a damaged kernel binary: {error}") from error


def _cuda_parameters(binary: bytes, kernel: str) -> tuple[int, ...]:
    for section in _sections(binary):
        if section.name == f".nv.info.{kernel}":
            sizes = dict(_kparams(section.data))
            if sorted(sizes) != list(range(len(sizes))):
                raise PackageError(f"the parameters of {kernel} are not told completely")
            return tuple(sizes[index] for index in range(len(sizes)))
    raise PackageError(f"there is no kernel {kernel} in the binary")


def _kparams(data: bytes) -> Iterator[tuple[int, int]]:
    """(number, size in bytes) of each parameter."""
    position = 0
    try:
        while position + 4 <= len(data):
            form, attribute, value = struct.unpack_from("<BBH", data, position)
            position += 4
            if form != _FORMAT_SIZED:
                continue
            if attribute == _PARAMETER:
                _, number, _, word = struct.unpack_from("<IHHI", data, position)
                yield number, word >> _SIZE_SHIFT & _SIZE_MASK
            position += value
    except struct.error as error:
        raise PackageError(f"a damaged kernel binary: {error}") from error


def _amd_parameters(binary: bytes, kernel: str) -> tuple[int, ...]:
    for section in _sections(binary):
        if section.kind == _SECTION_NOTE:
            for found in _amd_metadata(section.data).get("amdhsa.kernels", ()):
                if found.get(".name") == kernel:
                    explicit = (
                        argument
                        for argument in found.get(".args", ())
                        if not argument.get(".value_kind", "").startswith("hidden_")
                    )
                    return tuple(argument[".size"] for argument in explicit)
    raise PackageError(f"there is no kernel {kernel} in the binary")


def _amd_metadata(note: bytes) -> dict:
    try:
        name_size, size, kind = struct.unpack_from("<III", note)
        if kind != _AMD_METADATA:
            return {}
        start = 12 + (name_size + 3 & ~3)
        return msgpack.unpackb(note[start : start + size])
    except (struct.error, ValueError) as error:
        raise PackageError(f"a damaged kernel binary: {error}") from error
