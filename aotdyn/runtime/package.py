"""`aotdyn.load`: an open package that entries take their variants from."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..package.archive import PackageFile
from ..package.errors import AotdynError
from ..package.variant import EntryKey, Variant
from . import logs, registry
from .link import link_text
from .settings import all_settings


@dataclass
class Stats:
    """How calls were served since the package was opened.

    hits, misses: over all entries of the process. refused: variants that do not fit here, and why.
    """

    hits: int = 0
    misses: int = 0
    entries: list[tuple[str, int, int]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [f"{name}: {hits} hits, {misses} misses" for name, hits, misses in self.entries]
        return "\n".join([*rows, *(f"refused: {reason}" for reason in self.refused)])


class Package:
    """An open package. Closing it stops entries from taking further variants from it."""

    def __init__(self, path: str | os.PathLike, on_miss: str):
        if on_miss not in registry.ON_MISS:
            choices = ", ".join(registry.ON_MISS)
            raise AotdynError(f"on_miss is one of {choices}, not {on_miss!r}")
        self.on_miss = on_miss
        self.file = PackageFile.open(path)
        try:
            self.file.check_process()
        except BaseException:
            self.file.close()
            raise
        self.refused: list[str] = []
        self._graphs: dict[str, Callable[..., tuple]] = {}
        registry.add(self)

    def has(self, key: EntryKey) -> bool:
        """Whether the package has variants for an entry."""
        return key in self.file

    def variants(self, key: EntryKey) -> tuple[Variant, ...]:
        """The variants of an entry, as stored."""
        return self.file.variants(key, guards=True)

    def graph(self, id: str) -> Callable[..., tuple]:
        """The callable of a graph, made when it is first needed."""
        found = self._graphs.get(id)
        if found is None:
            artifact = self.file.artifact(id, "eager")
            found = self._graphs[id] = link_text(artifact.text, "graph", artifact.names)
        return found

    def refuse(self, variant: Variant, reason: str) -> None:
        """Says once that a variant is not used, and why."""
        line = f"a variant of {variant.entry.qualname} is not used: {reason}"
        if line not in self.refused:
            self.refused.append(line)
            logs.warn(line)

    def stats(self) -> Stats:
        """How calls were served so far."""
        stats = Stats(refused=list(self.refused))
        for settings in all_settings():
            for entry in settings.entries():
                stats.hits += entry.hits
                stats.misses += entry.missed
                if entry.hits or entry.missed:
                    stats.entries.append((str(entry.key), entry.hits, entry.missed))
        return stats

    def close(self) -> None:
        """Takes the package out of service; variants that are linked stay linked."""
        registry.remove(self)
        self.file.close()

    def __enter__(self) -> "Package":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
