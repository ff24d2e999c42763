"""Of the code that lowers graphs: results of another one are not used."""

import functools
from pathlib import Path

from ..cache import digest

_COMPILERS = Path(__file__).parents[1]
_PACKAGE = _COMPILERS.parent


@functools.lru_cache
def version_of(folder: Path) -> str:
    """A hash of what makes the results of the compilers in a folder."""
    sources = [
        *sorted(folder.glob("*.py")), *sorted((_COMPILERS / "lowering").glob("*.py")),
        *sorted(_COMPILERS.glob("*.py")), _PACKAGE / "plan.py", _PACKAGE / "launch.py",
    ]  # fmt: skip
    return digest(*(path.read_bytes() for path in sources))
