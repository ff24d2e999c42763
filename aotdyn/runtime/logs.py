"""`AOTDYN_LOGS=graph_code,guards,…`: what is printed while tracing and serving, on stderr."""

import os
import sys
from collections.abc import Callable

from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401

CATEGORIES = (
    "graph_code", "graph_sizes", "guards", "recompiles", "graph_breaks", "bytecode",
    "output_code", "trace", "misses",
)  # fmt: skip


def _enabled() -> frozenset[str]:
    wanted = {name.strip() for name in os.environ.get("AOTDYN_LOGS", "").split(",")} - {""}
    if "all" in wanted:
        return frozenset(CATEGORIES)
    for name in sorted(wanted - set(CATEGORIES)):
        print(f"aotdyn: AOTDYN_LOGS knows {', '.join(CATEGORIES)}; not {name!r}", file=sys.stderr)
    return frozenset(wanted)


enabled = _enabled()
# By category, what is called with each text.
sinks: dict[str, list[Callable[[str], None]]] = {name: [] for name in CATEGORIES}


def wanted(category: str) -> bool:
    """Whether anybody wants to see a category, so that its text is worth making."""
    return category in enabled or bool(sinks[category])


def log(category: str, text: str) -> None:
    """Shows a text under a category."""
    for sink in sinks[category]:
        sink(text)
    if category in enabled:
        lines = text.rstrip("\n").split("\n")
        print("\n".join(f"[aotdyn {category}] {line}" for line in lines), file=sys.stderr)


def warn(text: str) -> None:
    """One line that the user should see in any case."""
    print(f"aotdyn: {text}", file=sys.stderr)
