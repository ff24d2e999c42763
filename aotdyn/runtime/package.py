"""`aotdyn.load`: an open package that entries take their variants from."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..package.archive import PackageFile
from ..package.errors import AotdynError, PackageError
from ..package.guard import Guard
from ..package.options import CUDAGRAPHS, load_options
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.variant import EntryKey, Variant
from . import logs, registry
from .eager_text import link_text
from .entry import Entry, retired
from .settings import all_settings


@dataclass
class Stats:
    """How calls were served since the package was opened.

    hits, misses: over all entries of the process. refused: what does not fit here, and why.
    """

    hits: int = 0
    misses: int = 0
    entries: list[tuple[str, int, int]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = [f"{name}: {hits} hits, {misses} misses" for name, hits, misses in self.entries]
        return "\n".join([*rows, *(f"refused: {reason}" for reason in self.refused)])


def _entries() -> list[Entry]:
    return [entry for settings in all_settings() for entry in settings.entries()]


class Package:
    """An open package. Closing it stops entries from taking further variants from it."""

    def __init__(
        self, path: str | os.PathLike, on_miss: str, options: dict[str, Any] | None = None
    ):
        if on_miss not in registry.ON_MISS:
            choices = ", ".join(registry.ON_MISS)
            raise AotdynError(f"on_miss is one of {choices}, not {on_miss!r}")
        self.on_miss = on_miss
        self.options = load_options(options)
        self.file = PackageFile.open(path)
        try:
            self.file.check_process()
        except BaseException:
            self.file.close()
            raise
        self.refused: list[str] = []
        self._graphs: dict[str, Callable[..., tuple]] = {}
        self._unmet: dict[str, str] = {}
        self._retired_before = len(retired)
        self._counts_before = {entry: (entry.hits, entry.missed) for entry in _entries()}
        registry.add(self)

    def has(self, key: EntryKey) -> bool:
        """Whether the package has variants for an entry."""
        return key in self.file

    def variants(self, key: EntryKey) -> tuple[Variant, ...]:
        """The variants of an entry, without their guards."""
        return self.file.variants(key)

    def guards(self, key: EntryKey, index: int) -> tuple[Guard, ...]:
        """The guards of one of these variants."""
        return self.file.variants(key, guards=True)[index].guards

    def graph(self, id: str) -> Callable[..., tuple]:
        """The callable of a graph, made when it is first needed."""
        found = self._graphs.get(id)
        if found is None:
            artifact = self.file.artifact(id, "eager")
            eager = cache(lambda: link_text(artifact.text, "graph", artifact.names))
            found = self._graphs[id] = self._compiled(id, eager) or eager()
        return found

    def _compiled(self, id: str, eager: Callable[[], Callable]) -> Callable[..., tuple] | None:
        """A graph as machine code, if the package has some that fits."""
        targets = [target for target in self.file.artifacts(id) if target != "eager"]
        if not targets:
            return None
        # Not at the top: a package without machine code starts without what runs it.
        from .artifacts import load_graph, ordered

        for target in ordered(targets):
            try:
                if self._fits(target):
                    artifact = self.file.artifact(id, target)
                    if artifact.notes.get("way") != "eager":
                        return load_graph(artifact, eager, self.options.get(CUDAGRAPHS))
            except PackageError as error:
                self._say(f"code for {target} is not used: {error}")
        return None

    def _fits(self, target: str) -> bool:
        from .artifacts import unmet

        found = self._unmet.get(target)
        if found is None:
            found = self._unmet[target] = unmet(self.file.targets[target])
            if found:
                self._say(f"the package {self.file.path} has code for {target}, not used: {found}")
        return not found

    def refuse(self, variant: Variant, reason: str) -> None:
        """Says once that a variant is not used, and why."""
        self._say(f"a variant of {variant.entry.qualname} is not used: {reason}")

    def _say(self, line: str) -> None:
        if line not in self.refused:
            self.refused.append(line)
            logs.warn(line)

    def stats(self) -> Stats:
        """How calls were served so far."""
        stats = Stats(refused=list(self.refused))
        counts = list(retired[self._retired_before :])
        for entry in _entries():
            before = self._counts_before.get(entry, (0, 0))
            counts.append((entry.key, entry.hits - before[0], entry.missed - before[1]))
        for key, hits, misses in counts:
            stats.hits += hits
            stats.misses += misses
            if hits or misses:
                stats.entries.append((str(key), hits, misses))
        return stats

    def why(self, function: Callable, /, *args: Any, **kwargs: Any) -> Any:
        """Whether a call of a compiled or plain callable is covered, and if not, each guard that
        fails in the nearest variant and what would cover the call: an object that prints well.

        The call is not made. Raises TypeError where the callable does not take the arguments.
        """
        # Not imported to serve.
        from .why import explain_miss

        return explain_miss(self, function, args, kwargs)

    def close(self) -> None:
        """Takes the package out of service; variants that are linked stay linked."""
        registry.remove(self)
        self.file.close()

    def __enter__(self) -> "Package":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
