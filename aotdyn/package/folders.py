"""Where this user's files lie that outlive a process and may be removed at any time."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`AOTDYN_CACHE`, else the user's cache folder."""
    named = os.environ.get("AOTDYN_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "aotdyn"
