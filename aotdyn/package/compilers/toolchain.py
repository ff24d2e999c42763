"""The C++ compiler: C++ texts -> object files -> a shared library. All flags are written down, so
that what comes out does not depend on the machine it is made on."""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from . import Unavailable
from .cache import Cache, digest
from .isa import ISAS, Isa
from .refusal import Refused

CONTAINER_FOLDER = Path(__file__).parent / "cpu"
_TORCH = Path(torch.__file__).parent
_CONTAINER_TEXTS = ("container.h", "container.cpp")

_COMMON = (
    "-std=c++20", "-fPIC", "-fopenmp", "-w", "-fvisibility=hidden", "-fvisibility-inlines-hidden",
    "-DTORCH_INDUCTOR_CPP_WRAPPER", "-DSTANDALONE_TORCH_HEADER",
    "-DC10_USING_CUSTOM_GENERATED_MACROS", "-DNDEBUG",
)  # fmt: skip

# As Inductor compiles its kernels: floating-point results must not depend on the way.
_KERNEL_MATH = (
    "-fno-trapping-math", "-fno-signed-zeros", "-fmath-errno", "-fno-finite-math-only",
    "-fno-unsafe-math-optimizations", "-ffp-contract=off", "-fexcess-precision=fast",
    "-fno-tree-loop-vectorize",
)  # fmt: skip

# What a process without AVX can run: wrappers are the same for all ISAs.
_BASELINE = ISAS["scalar"]


class NoCompiler(Unavailable):
    """There is no C++ compiler on this machine."""


@dataclass(frozen=True)
class Source:
    """A C++ text and how it is compiled. isa: for a kernel; None for what calls kernels."""

    text: str
    isa: Isa | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        if self.isa is None:
            return ("-O1", "-ffunction-sections", *_BASELINE.flags, *_COMMON)
        return ("-O3", *self.isa.flags, *_KERNEL_MATH, *_COMMON)

    @property
    def header(self) -> str:
        """The header whose compiled form saves most of the time."""
        return "container.h" if self.isa is None else "torch/csrc/inductor/cpp_prefix.h"


class Toolchain:
    """One compiler. version: its own name and version, part of every key."""

    def __init__(self, compiler: str, cache: Cache):
        self.compiler = compiler
        self.cache = cache
        self.version = _version(compiler)
        texts = [(CONTAINER_FOLDER / name).read_bytes() for name in _CONTAINER_TEXTS]
        self._base = digest(self.version, torch.__version__, *texts)

    @classmethod
    def find(cls, cache: Cache) -> "Toolchain":
        """The compiler `CXX`, else g++, else clang++. Raises NoCompiler if there is none."""
        named = os.environ.get("CXX", "")
        for name in [named] if named else ["g++", "clang++"]:
            if shutil.which(name):
                return cls(name, cache)
        raise NoCompiler(
            f"no C++ compiler was found ({named or 'g++, clang++'}); install one or set CXX"
        )

    def key(self, source: Source) -> str:
        """The key of a source's object file."""
        return digest(self._base, *source.flags, source.text)

    def compile(self, source: Source) -> Path:
        """The object file of a source. Raises Refused if the compiler does not take it."""
        key = self.key(source)
        found = self.cache.path("object", key)
        if found is None:
            with self.cache.adding("object", key) as scratch:
                text = scratch.with_name("source.cpp")
                text.write_text(source.text)
                command = [*source.flags, *_includes(), "-c", str(text), "-o", str(scratch)]
                self._run_with(self._prefix(source), command)
            found = self.cache.path("object", key)
        if found is None:
            raise Refused("an object file was removed from the cache while it was needed")
        return found

    def library_path(self, key: str) -> Path | None:
        """The file of a library that has been linked, if it is still there."""
        return self.cache.path("library", digest(self._base, key))

    def link(self, objects: Sequence[Path], key: str) -> bytes:
        """A shared library of object files. key: of the sources they come from."""
        key = digest(self._base, key)
        found = self.cache.get("library", key)
        if found is not None:
            return found
        with self.cache.adding("library", key) as scratch:
            # `now` and `defs`: a missing symbol is an error here or when the library is loaded,
            # never in the middle of a call.
            options = [
                "-shared", "-fPIC", "-fopenmp", "-Wl,--gc-sections", "-Wl,-s", "-Wl,-z,now",
                "-Wl,-z,defs", "-Wl,-z,noexecstack", "-o", str(scratch),
            ]  # fmt: skip
            torch_libraries = [f"-L{_TORCH / 'lib'}", "-ltorch_cpu", "-lc10"]
            self._run([*options, *map(str, objects), *torch_libraries])
            made = scratch.read_bytes()
        return made

    def _prefix(self, source: Source) -> list[str]:
        """The compiled header as options; made when it is first needed."""
        if "Free Software Foundation" not in self.version:
            return []  # other compilers have other ways; the sources include what they need
        key = digest(self._base, *source.flags, source.header)
        folder = self.cache.folder / "headers" / key[:2] / key[2:]
        compiled = folder.with_name(f"{folder.name}.h.gch")
        if not compiled.exists():
            with self.cache.alone(f"header-{key}"):
                if not compiled.exists():
                    self._compile_header(source, folder.with_name(f"{folder.name}.h"), compiled)
        try:
            os.utime(compiled)
        except OSError:  # another process has just made room in the cache
            return []
        return ["-include", str(compiled.with_suffix(""))]

    def _run_with(self, prefix: list[str], command: list[str]) -> None:
        """Runs the compiler with a compiled header; without, should that be damaged."""
        try:
            self._run([*prefix, *command])
        except Refused:
            if not prefix:
                raise
            self._run(command)
            # It is the header that was wrong.
            Path(f"{prefix[1]}.gch").unlink(missing_ok=True)

    def _compile_header(self, source: Source, header: Path, compiled: Path) -> None:
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(f"#include <{source.header}>\n")
        handle, scratch = tempfile.mkstemp(dir=header.parent, prefix=".new-")
        os.close(handle)
        try:
            command = [*source.flags, *_includes(), "-x", "c++-header", str(header), "-o", scratch]
            self._run(command)
            os.replace(scratch, compiled)
        except BaseException:
            os.unlink(scratch)
            raise

    def _run(self, arguments: list[str]) -> None:
        done = subprocess.run(
            [self.compiler, *arguments], capture_output=True, text=True, errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        if done.returncode:
            errors = re.findall(r"error: .*|undefined reference .*", done.stderr)
            reason = (errors or done.stderr.strip().splitlines() or ["without a message"])[0]
            raise Refused(f"{self.compiler} failed: {reason[:200]}")


def _includes() -> list[str]:
    include = _TORCH / "include"
    return [f"-I{CONTAINER_FOLDER}", f"-I{include}", f"-I{include / 'torch/csrc/api/include'}"]


@functools.lru_cache
def _version(compiler: str) -> str:
    try:
        done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoCompiler(f"the C++ compiler {compiler} does not run: {error}") from error
    return done.stdout


def needs(library: bytes) -> dict[str, str]:
    """The newest versions of the system's libraries that a library asks for."""
    found = {}
    for name in ("GLIBC", "GLIBCXX"):
        texts = set(re.findall(rf"{name}_(\d+(?:\.\d+)+)".encode(), library))
        if texts:
            newest = max(tuple(map(int, text.split(b"."))) for text in texts)
            found[name.lower()] = ".".join(map(str, newest))
    return found
