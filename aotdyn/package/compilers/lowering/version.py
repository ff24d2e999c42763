"""Of the code that lowers graphs: results of another one are not used."""

import functools
from pathlib import Path

from ..cache import digest

_COMPILERS = Path(__file__).parents[1]


@functools.lru_cache
def version_of(folder: Path) -> str:
    """A hash of what makes the results of the compilers in a folder: these, and whatever they use
    of the layer that they are in."""
    folders = (folder, _COMPILERS / "lowering", _COMPILERS, _COMPILERS.parent)
    sources = [path for each in folders for path in sorted(each.glob("*.py"))]
    return digest(*(path.read_bytes() for path in sources))
