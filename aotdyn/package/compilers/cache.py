"""Results of compile jobs on disk, by what they were made from. Any number of processes may use it.

An entry appears whole or not at all, and never changes: it ends with a checksum, and one that was
damaged is none. The oldest are dropped when there is too much; an entry that is used counts as new.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..folders import cache_folder

DEFAULT_LIMIT = 4 << 30
CHECKSUM = 32  # bytes at the end of an entry
_ABANDONED = 24 * 3600.0  # seconds after which what a killed process was writing is in nobody's use


@dataclass(frozen=True)
class Usage:
    """How much there is of one kind of entry."""

    kind: str
    entries: int
    size: int


def digest(*facts: str | bytes) -> str:
    """The key of what is made from these facts."""
    found = hashlib.sha256()
    for fact in facts:
        data = fact.encode() if isinstance(fact, str) else fact
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


class Cache:
    """A folder with a folder for each kind. limit: bytes; `AOTDYN_CACHE_LIMIT` in MiB."""

    def __init__(self, folder: str | os.PathLike | None = None, limit: int | None = None):
        self.folder = cache_folder() if folder is None else Path(folder)
        if limit is None:
            named = os.environ.get("AOTDYN_CACHE_LIMIT", "")
            limit = int(named) << 20 if named.isdecimal() else DEFAULT_LIMIT
        self.limit = limit

    def path(self, kind: str, key: str) -> Path | None:
        """The file of an entry, marked as used; None if there is none. It ends with the checksum,
        which linkers do not mind."""
        found = self._place(kind, key)
        return None if self._read(found) is None else found

    def get(self, kind: str, key: str) -> bytes | None:
        """The contents of an entry."""
        return self._read(self._place(kind, key))

    def _read(self, place: Path) -> bytes | None:
        try:
            os.utime(place)
            data = place.read_bytes()
        except OSError:
            return None
        contents = data[:-CHECKSUM]
        if hashlib.sha256(contents).digest() == data[-CHECKSUM:]:
            return contents
        with contextlib.suppress(OSError):
            place.unlink()
        return None

    def put(self, kind: str, key: str, data: bytes) -> Path:
        """Adds an entry."""
        with self.adding(kind, key) as scratch:
            scratch.write_bytes(data)
        return self._place(kind, key)

    @contextlib.contextmanager
    def adding(self, kind: str, key: str) -> Iterator[Path]:
        """A path to write an entry to; it becomes one if the block succeeds."""
        place = self._place(kind, key)
        place.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
        try:
            scratch = folder / place.name
            yield scratch
            checksum = hashlib.sha256(scratch.read_bytes()).digest()
            with open(scratch, "ab") as file:
                file.write(checksum)
            os.replace(scratch, place)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """While the block runs, no other process is in one with the same key."""
        locks = self.folder / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        with open(locks / key, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def usage(self) -> list[Usage]:
        """How much there is of each kind."""
        found: dict[str, list[int]] = {}
        for _, size, path in self._entries():
            found.setdefault(path.relative_to(self.folder).parts[0], []).append(size)
        return [Usage(kind, len(sizes), sum(sizes)) for kind, sizes in sorted(found.items())]

    def trim(self) -> int:
        """Drops the oldest entries beyond the limit; how many."""
        self._sweep()
        entries = sorted(self._entries(), reverse=True)
        total = dropped = 0
        for _, size, path in entries:
            total += size
            if total > self.limit:
                with contextlib.suppress(OSError):
                    path.unlink()
                    dropped += 1
        return dropped

    def clear(self) -> int:
        """Drops everything; how many entries."""
        entries = self._entries()
        for _, _, path in entries:
            with contextlib.suppress(OSError):
                path.unlink()
        return len(entries)

    def _sweep(self) -> None:
        """Removes what processes that were killed have left unfinished."""
        for folder in self.folder.glob(".new-*"):
            with contextlib.suppress(OSError):
                if time.time() - folder.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(folder, ignore_errors=True)

    def _place(self, kind: str, key: str) -> Path:
        return self.folder / kind / key[:2] / key[2:]

    def _entries(self) -> list[tuple[float, int, Path]]:
        """(last use, size, path) of each. What other processes remove meanwhile is left out."""
        found = []
        for kind in self._folders(self.folder):
            if kind.name == "locks" or kind.name.startswith(".new-"):
                continue
            for group in self._folders(kind):
                with contextlib.suppress(FileNotFoundError):
                    for path in os.scandir(group):
                        with contextlib.suppress(OSError):
                            status = path.stat()
                            found.append((status.st_mtime, status.st_size, Path(path.path)))
        return found

    def _folders(self, folder: Path) -> list[Path]:
        try:
            return [Path(each.path) for each in os.scandir(folder) if each.is_dir()]
        except FileNotFoundError:
            return []
