"""Shared libraries of a package: which one fits this machine, and how it gets into the process."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ...package.errors import PackageError
from ...package.plan import Plan

# For each of torch's answers the ISAs that this machine can run, best first.
_RUNS = {
    "AVX512": ("avx512", "avx2", "scalar"),
    "AVX2": ("avx2", "scalar"),
    "DEFAULT": ("scalar",),
}

_paths: dict[str, str] = {}  # of what is loaded, by content; a library stays until the process ends


def usable_isas() -> tuple[str, ...]:
    """The vector ISAs whose code this process may run, best first."""
    return _RUNS.get(torch.backends.cpu.get_cpu_capability(), ())


def pick_isa(files: Mapping[str, Any]) -> str:
    """The best ISA that there is a library for. Raises PackageError if there is none."""
    for isa in usable_isas():
        if f"{isa}.so" in files:
            return isa
    there = ", ".join(name.removesuffix(".so") for name in files if name.endswith(".so"))
    capability = torch.backends.cpu.get_cpu_capability()
    raise PackageError(f"there is code for {there or 'nothing'}, this machine has {capability}")


def load_parts(plan: Plan, files: Mapping[str, Any]) -> list[Callable[[Any], list]]:
    """The functions of the parts of a graph: from a sequence of tensors to a list of tensors.

    Nothing is checked when they are called. Raises PackageError if the library does not load.
    """
    path = library_path(plan, files)
    parts = [plan.forward] + ([plan.backward] if plan.trains else [])
    runner = torch._C._aoti.AOTIModelContainerRunnerCpu
    try:
        # The number of models tells our container which of its graphs is wanted.
        return [runner(path, number + 1).run for number in parts]
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise PackageError(f"the library does not load here: {reason[:200]}") from error


def library_path(plan: Plan, files: Mapping[str, Any]) -> str:
    """Where the library of a graph can be loaded from; always the same place."""
    isa = pick_isa(files)
    external = bytes(files["external.json"]) if plan.external else b""
    return _path(f"{plan.library}-{isa}", files[f"{isa}.so"], external)


def _path(key: str, data: bytes | memoryview, external: bytes) -> str:
    """A path that the library can be loaded from; the same one each time."""
    if external:
        key += hashlib.sha256(external).hexdigest()
    found = _paths.get(key)
    if found is None:
        # Operators behind the dispatcher are described in a file that must lie beside the library.
        found = _private_file(data, external) if external else _in_memory(data)
        _paths[key] = found
    return found


def _in_memory(data: bytes | memoryview) -> str:
    """A file without a name. It stays open: the loader knows libraries by their path."""
    try:
        descriptor = os.memfd_create("aotdyn", os.MFD_CLOEXEC)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
    except (AttributeError, OSError):
        return _private_file(data, b"")
    path = f"/proc/self/fd/{descriptor}"
    return path if os.path.exists(path) else _private_file(data, b"")


def _private_file(data: bytes | memoryview, external: bytes) -> str:
    """A file named by its contents, in a folder that nobody else can write to."""
    digest = hashlib.sha256(data).hexdigest()[:32]
    folder = _private_folder()
    library = folder / f"{digest}.so"
    write_file(library, data)
    if not external:
        return str(library)
    digest = hashlib.sha256(digest.encode() + external).hexdigest()[:32]
    write_file(folder / f"{digest}.json", external)
    return str(_linked(library, folder / f"{digest}.so", data))


def _linked(library: Path, path: Path, data: bytes | memoryview) -> Path:
    """A second name for a library, which is in memory once whatever it is called."""
    if not path.exists() or not path.samefile(library):
        handle, scratch = tempfile.mkstemp(dir=path.parent)
        os.close(handle)
        os.unlink(scratch)
        try:
            os.link(library, scratch)
        except OSError:  # not all file systems have links
            write_file(path, data)
        else:
            os.replace(scratch, path)
    return path


def _private_folder() -> Path:
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    folder = Path(base) / f"aotdyn-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o77 or folder.is_symlink():
        raise PackageError(f"the folder {folder} for libraries is not private to this user")
    return folder


def write_file(path: Path, data: bytes | memoryview) -> None:
    """Writes a file whole. One that is there is read: it may have been cut off or changed."""
    if path.exists() and path.read_bytes() == bytes(data):
        return
    handle, scratch = tempfile.mkstemp(dir=path.parent)
    with open(handle, "wb") as file:
        file.write(data)
    os.replace(scratch, path)
