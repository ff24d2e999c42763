"""The builtins as they were when aotdyn was imported.

What runs between a program's frames must not call what the program has put in place of `len` or
`sorted`: it may count its calls, or refuse. CPython looks the builtins of a module's functions up
under the global name `__builtins__`, when it makes them; so such modules import it by that name.
"""

import builtins
from typing import Any

BUILTINS: dict[str, Any] = {**vars(builtins)}


def __getattr__(name: str) -> Any:
    """A builtin by its name, as references name those that the program has replaced."""
    try:
        return BUILTINS[name]
    except KeyError:
        raise AttributeError(name) from None
