"""Package files: all that serving needs, in one immutable file. Pack writes them, load reads them.

| bytes      | what                                                                               |
|------------|------------------------------------------------------------------------------------|
| 64         | magic, format version, size and SHA-256 of the manifest                            |
| as it says | the manifest, a plain value (`values.py`); zeros up to a multiple of 64            |
| as it says | the blobs, each from a multiple of 64 on; the manifest has their sizes and SHA-256 |

Blobs other than files are plain values, compressed by zlib where that makes them smaller.
"""

import contextlib
import hashlib
import mmap
import os
import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from .errors import AotdynError, PackageError
from .frozen import frozen
from .graph import Graph
from .guard import Guard
from .reference import Reference
from .schema import CODEC, FORMAT_VERSION, decode_record, encode_record, this_python, this_torch
from .values import decode, encode, from_bytes, to_bytes
from .variant import EntryKey, Variant

MAGIC = b"\x89aotdyn package\n"
ALIGNMENT = 64
_HEADER = struct.Struct("<16sIQ32s4x")

T = TypeVar("T")


@frozen
class Artifact:
    """A graph compiled for a target.

    text: Python source that is run to get at the function. names: what its free names are bound
    to. files: what else it needs, by name. Read from a package, they are views into its memory.
    notes: for people; `way` is how the graph was compiled, `why` says why not in a better way.
    """

    target: str
    text: str
    names: dict[str, Reference] = field(default_factory=dict)
    files: Mapping[str, bytes | memoryview] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


@frozen
class PackageContents:
    """What a package is made of.

    graphs: by the id that variants call them by. artifacts: by graph id, then by target. targets:
    for each target what an artifact of it needs, as in `{"torch": "2.13.0"}`. python: what variants
    need; their entries are named by hashes of bytecode, so that none is for another Python. Graphs
    and artifacts are for any. torch, device, script: as in the header of the recording.
    """

    python: str
    torch: str
    device: str = "cpu"
    script: str = ""
    variants: tuple[Variant, ...] = ()
    graphs: dict[str, Graph] = field(default_factory=dict)
    artifacts: dict[str, dict[str, Artifact]] = field(default_factory=dict)
    targets: dict[str, dict[str, str]] = field(default_factory=dict)


# Blobs have names, as files in a folder have: the kind and what distinguishes it in its kind, as a
# stored tuple. Opening a package is then reading a few flat lists, however many entries it has.


def _blob_name(kind: str, *parts: str | EntryKey) -> bytes:
    return to_bytes(CODEC.encode((kind, *parts)))


def _variants_of(key: EntryKey) -> bytes:
    """The blob with a list of the variants of an entry, without their guards."""
    return _blob_name("variants", key)


def _guards_of(key: EntryKey) -> bytes:
    """The blob with a list of the guards of each of these variants."""
    return _blob_name("guards", key)


def _graph_of(id: str) -> bytes:
    """The blob with the data of a graph."""
    return _blob_name("graph", id)


def _artifact_of(id: str, target: str) -> bytes:
    """The blob with text, names and names of files of an artifact."""
    return _blob_name("artifact", id, target)


def _file_of(id: str, target: str, name: str) -> bytes:
    """The blob with the bytes of one file of an artifact."""
    return _blob_name("file", id, target, name)


def write_package(path: str | os.PathLike, contents: PackageContents) -> int:
    """Writes a package and returns its size in bytes. The same contents give the same bytes.

    The file appears whole under its name or not at all. Raises TypeError for contents that cannot
    be stored, and AotdynError when the file cannot be written.
    """
    blobs = _Blobs()
    for name, data in _named_blobs(contents):
        blobs.add(name, data)
    manifest = to_bytes(encode(_manifest(contents, blobs)))
    digest = hashlib.sha256(manifest).digest()
    header = _HEADER.pack(MAGIC, FORMAT_VERSION, len(manifest), digest)
    try:
        return _write_whole(Path(path), [header, manifest, *blobs.parts])
    except (OSError, ValueError) as error:  # ValueError: what cannot be the name of a file
        what = getattr(error, "strerror", None) or error
        raise AotdynError(f"cannot write the package {path}: {what}") from error


def is_same_file(path: str | os.PathLike, other: str | os.PathLike) -> bool:
    """Whether writing one would overwrite the other."""
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


class _Blobs:
    """The blobs of a package that is being written; equal ones are kept once."""

    def __init__(self) -> None:
        self.names: dict[bytes, int] = {}
        self.parts: list[bytes | memoryview] = []
        self.digests: list[bytes] = []
        self._index: dict[bytes, int] = {}

    def add(self, name: bytes, data: bytes | memoryview) -> None:
        digest = hashlib.sha256(data).digest()
        index = self._index.setdefault(digest, len(self.parts))
        if index == len(self.parts):
            self.parts.append(data)
            self.digests.append(digest)
        if self.names.setdefault(name, index) != index:
            raise TypeError(f"two blobs with the name {name!r} cannot be stored")


def _manifest(contents: PackageContents, blobs: _Blobs) -> dict[str, Any]:
    return {
        "python": contents.python,
        "torch": contents.torch,
        "device": contents.device,
        "script": contents.script,
        "targets": contents.targets,
        "names": list(blobs.names),
        "blobs": list(blobs.names.values()),
        "sizes": list(map(len, blobs.parts)),
        "digests": b"".join(blobs.digests),
    }


def _named_blobs(contents: PackageContents) -> Iterator[tuple[bytes, bytes | memoryview]]:
    entries: dict[EntryKey, list[Variant]] = {}
    for variant in contents.variants:
        entries.setdefault(variant.entry, []).append(variant)
    for key, variants in entries.items():
        bare = [encode_record(replace(variant, guards=())) for variant in variants]
        guards = [[encode_record(guard) for guard in variant.guards] for variant in variants]
        yield _variants_of(key), _compressed(bare)
        yield _guards_of(key), _compressed(guards)
    for id, graph in contents.graphs.items():
        yield _graph_of(id), _compressed(encode_record(graph))
        for target, artifact in contents.artifacts.get(id, {}).items():
            stored = (artifact.text, artifact.names, tuple(artifact.files))
            notes = (artifact.notes,) if artifact.notes else ()
            yield _artifact_of(id, target), _compressed(encode(stored + notes))
            for name, data in artifact.files.items():
                yield _file_of(id, target, name), data


# What zlib writes begins with this; no list or map of msgpack does.
_ZLIB = b"\x78"
# Less is not worth it.
_SMALL = 1024
# So large may a plain value be; no value of a real program comes near.
_MOST_BYTES = 1 << 30


def _compressed(value: Any) -> bytes:
    """A plain value, a list or a map, as a blob."""
    data = to_bytes(value)
    return data if len(data) < _SMALL else min(data, zlib.compress(data), key=len)


def _plain(data: memoryview) -> Any:
    """The plain value of a blob. Raises PackageError."""
    if data[:1] != _ZLIB:
        return from_bytes(data)
    unpacking = zlib.decompressobj()
    try:
        whole = unpacking.decompress(data, _MOST_BYTES)
    except zlib.error as error:
        raise PackageError(f"it cannot be unpacked: {error}") from None
    if not unpacking.eof or unpacking.unused_data:
        raise PackageError("it is cut off, or too large")
    return from_bytes(whole)


def _read_artifact(
    data: memoryview,
) -> tuple[str, dict[str, Reference], tuple[str, ...], dict[str, str]]:
    stored = decode(_plain(data))
    if type(stored) is tuple and len(stored) == 3:
        stored += ({},)
    if type(stored) is not tuple or [*map(type, stored)] != [str, dict, tuple, dict]:
        raise PackageError("it is no text with names and files")
    text, names, files, notes = stored
    if not {*map(type, notes), *map(type, notes.values())} <= {str}:
        raise PackageError("its notes are damaged")
    if not {*map(type, names), *map(type, files)} <= {str}:
        raise PackageError("its names are damaged")
    if not all(isinstance(reference, Reference) for reference in names.values()):
        raise PackageError("its references are damaged")
    return text, names, files, notes


def _write_whole(path: Path, parts: list[bytes | memoryview]) -> int:
    """Writes the parts, each padded to the alignment, under another name; then renames."""
    scratch = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    try:
        with open(scratch, "xb") as file:
            for part in parts:
                file.write(part)
                file.write(bytes(-len(part) % ALIGNMENT))
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)
    return size


def _sync_folder(folder: Path) -> None:
    """Makes the renaming last. Not every file system can; the file is whole in any case."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    with contextlib.suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


class PackageFile:
    """A package file that is open.

    Opening reads and checks header and manifest; variants, graphs and artifacts are read, checked
    against their hash and decoded when they are asked for. Everything raises PackageError for a
    damaged file. The file is mapped into memory, so it must be replaced, never changed in place
    (`write_package` does so).
    """

    def __init__(self, path: str | os.PathLike, data: "mmap.mmap | bytes"):
        """For `open`. data: the bytes of the whole file."""
        self.path = Path(path)
        self.size = len(data)
        self._data = data
        self._view = memoryview(data)
        self._verified: set[int] = set()
        self._read_manifest()

    @classmethod
    def open(cls, path: str | os.PathLike) -> "PackageFile":
        try:
            with open(path, "rb") as file:
                if not os.fstat(file.fileno()).st_size:  # which cannot be mapped
                    raise PackageError(f"{path} is not a package of aotdyn: it is empty")
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            what = getattr(error, "strerror", None) or error
            raise PackageError(f"cannot read {path}: {what}") from error
        return cls(path, data)

    def close(self) -> None:
        """Gives the file back. Views of it that are still in use keep it mapped."""
        self._view.release()
        if isinstance(self._data, mmap.mmap):
            with contextlib.suppress(BufferError):  # then the last view closes it
                self._data.close()

    def __enter__(self) -> "PackageFile":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def check_process(self) -> None:
        """Raises PackageError when this process cannot use the package.

        Another Python has other bytecode. Graphs as Python text run under any torch that has the
        operators, so that another one is only warned about.
        """
        if self.python != this_python():
            raise PackageError(
                f"the package {self.path} is for Python {self.python}, this is {this_python()}"
            )
        if _release(self.torch) != _release(this_torch()):
            warnings.warn(
                f"the package {self.path} was recorded with torch {self.torch}, "
                f"this is torch {this_torch()}",
                stacklevel=2,
            )

    @property
    def entries(self) -> list[EntryKey]:
        """The entries in the order of recording. To look one up, ask `key in package`."""
        return list(self._named("variants", EntryKey))

    def __contains__(self, key: EntryKey) -> bool:
        return _variants_of(key) in self._blobs

    def variants(self, key: EntryKey, guards: bool = False) -> tuple[Variant, ...]:
        """The variants of an entry, none if there is no such entry.

        Serving needs their texts only; the guards, by far the larger part, explain misses. They
        are left empty unless `guards`.
        """
        if key not in self:
            return ()
        try:
            stored = _list(_plain(self._blob(_variants_of(key))))
            variants = [decode_record(data, Variant) for data in stored]
            if any(variant.entry != key for variant in variants):
                raise PackageError("the variants of another entry")
            if guards:
                lists = _list(_plain(self._blob(_guards_of(key))))
                if len(lists) != len(variants):
                    raise PackageError("the guards of other variants")
                variants = [
                    replace(variant, guards=tuple(decode_record(g, Guard) for g in _list(part)))
                    for variant, part in zip(variants, lists)
                ]
        except PackageError as error:
            raise self._damaged(f"entry {key}: {error}") from None
        return tuple(variants)

    @property
    def graphs(self) -> list[str]:
        """The ids of the graphs."""
        return list(self._named("graph", str))

    def graph(self, id: str) -> Graph:
        """The data of a graph, which serving does not need."""
        name = _graph_of(id)
        if name not in self._blobs:
            raise PackageError(f"the package {self.path} has no graph {id}")
        try:
            return decode_record(_plain(self._blob(name)), Graph)
        except PackageError as error:
            raise self._damaged(f"graph {id}: {error}") from None

    def artifact(self, id: str, target: str) -> Artifact:
        """A graph's artifact for a target. Raises PackageError when there is none."""
        name = _artifact_of(id, target)
        if name not in self._blobs:
            raise PackageError(f"the package {self.path} has no graph {id} for {target}")
        try:
            text, names, files, notes = _read_artifact(self._blob(name))
            views = {file: self._blob(_file_of(id, target, file)) for file in files}
        except PackageError as error:
            raise self._damaged(f"graph {id} for {target}: {error}") from None
        return Artifact(target, text, names, views, notes)

    def artifacts(self, id: str) -> list[str]:
        """The targets that a graph has artifacts for."""
        return [target for target in self.targets if _artifact_of(id, target) in self._blobs]

    def contents(self) -> PackageContents:
        """Everything, decoded."""
        return PackageContents(
            self.python,
            self.torch,
            self.device,
            self.script,
            tuple(v for key in self.entries for v in self.variants(key, guards=True)),
            {id: self.graph(id) for id in self.graphs},
            {id: {t: self.artifact(id, t) for t in self.artifacts(id)} for id in self.graphs},
            self.targets,
        )

    def _named(self, kind: str, cls: type[T]) -> Iterator[T]:
        """What distinguishes each blob of a kind, which is a `cls`."""
        start = _blob_name(kind, "")[1:-1]  # without the length, and without the empty text
        for name in self._blobs:
            if name.startswith(start, 1):
                try:
                    found = CODEC.decode(from_bytes(name))
                except PackageError as error:
                    raise self._damaged(f"the name of {kind}: {error}") from None
                if [*map(type, found)] != [str, cls] or _blob_name(*found) != name:
                    raise self._damaged(f"the name of {kind} is none")
                yield found[1]

    def _blob(self, name: bytes) -> memoryview:
        """The bytes of a blob, checked when they are first asked for."""
        index = self._blobs.get(name)
        if index is None:
            raise PackageError("a part is missing")
        start = self._starts[index]
        view = self._view[start : start + self._sizes[index]]
        if index not in self._verified:
            digest = hashlib.sha256(view).digest()
            if digest != self._digests[32 * index : 32 * index + 32]:
                raise PackageError(f"the {len(view)} bytes from {start} on are damaged")
            self._verified.add(index)
        return view

    def _damaged(self, what: str) -> PackageError:
        return PackageError(f"the package {self.path} is damaged: {what}")

    def _read_manifest(self) -> None:
        if self.size < _HEADER.size or self._view[: len(MAGIC)] != MAGIC:
            raise PackageError(f"{self.path} is not a package of aotdyn")
        _, version, size, digest = _HEADER.unpack_from(self._view)
        if version != FORMAT_VERSION:
            raise PackageError(
                f"the package {self.path} has format {version}, "
                f"and this aotdyn reads format {FORMAT_VERSION}"
            )
        manifest = self._view[_HEADER.size : _HEADER.size + size]
        if len(manifest) != size:
            raise self._damaged("it is cut off")
        if hashlib.sha256(manifest).digest() != digest:
            raise self._damaged("the manifest has another hash")
        try:
            self._take_manifest(_Manifest(decode(from_bytes(manifest))), size)
        except PackageError as error:
            raise self._damaged(str(error)) from None

    def _take_manifest(self, manifest: "_Manifest", size: int) -> None:
        self.python = manifest.take("python", str)
        self.torch = manifest.take("torch", str)
        self.device = manifest.take("device", str)
        self.script = manifest.take("script", str)
        self.targets = manifest.take("targets", dict)
        names = manifest.take_list("names", bytes)
        blobs = manifest.take_list("blobs", int)
        self._sizes = manifest.take_list("sizes", int)
        self._digests = manifest.take("digests", bytes)
        manifest.finish()
        self._blobs = dict(zip(names, blobs))
        ends = [*accumulate(map(_aligned, self._sizes), initial=_aligned(_HEADER.size + size))]
        self._starts = ends[:-1]
        if ends[-1] != self.size:
            raise PackageError(f"it has {self.size} bytes instead of {ends[-1]}")
        if (
            not len(self._blobs) == len(names) == len(blobs)
            or not 0 <= min(blobs, default=0) <= max(blobs, default=-1) + 1 <= len(self._sizes)
            or min(self._sizes, default=0) < 0
            or len(self._digests) != 32 * len(self._sizes)
        ):
            raise PackageError("the list of blobs is inconsistent")
        for target, needs in self.targets.items():
            if type(target) is not str or type(needs) is not dict:
                raise PackageError("a target without name or needs")
            if {*map(type, needs), *map(type, needs.values())} - {str}:
                raise PackageError(f"damaged needs of target {target!r}")


class _Manifest:
    """A decoded manifest that is taken apart; what is not taken is not known, and refused."""

    def __init__(self, manifest: Any):
        if type(manifest) is not dict:
            raise PackageError("the manifest is no dict")
        self._left = dict(manifest)

    def take(self, name: str, kind: type) -> Any:
        found = self._left.pop(name, None)
        if type(found) is not kind:
            raise PackageError(f"{name!r} of the manifest is missing or of a wrong type")
        return found

    def take_list(self, name: str, kind: type) -> list:
        found = self.take(name, list)
        if not {*map(type, found)} <= {kind}:
            raise PackageError(f"{name!r} of the manifest has items of a wrong type")
        return found

    def finish(self) -> None:
        if self._left:
            unknown = ", ".join(map(repr, self._left))
            raise PackageError(f"the manifest has unknown parts: {unknown[:80]}")


def _list(data: Any) -> list:
    if type(data) is not list:
        raise PackageError(f"{type(data).__name__} instead of a list")
    return data


def _aligned(size: int) -> int:
    return size + -size % ALIGNMENT


def _release(torch_version: str) -> str:
    """`2.13.0` of `2.13.0+cpu`."""
    return torch_version.partition("+")[0]
