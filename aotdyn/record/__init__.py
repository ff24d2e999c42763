"""The tracer. Reading order: `trace`, `tracer`, `interpreter`, `opcodes/`, `operation`, `rules/`,
then `check` and `body` for what comes out.

Its name is also that of the public function `aotdyn.record(path)`; importing this package hides
that function, so the package itself can be called in its place.
"""

import sys
from types import ModuleType


class _CallablePackage(ModuleType):
    """A package that is called as `aotdyn.record(path)`."""

    def __call__(self, *args, **kwargs):
        # Not at the top: the tracer does not depend on the runtime.
        from ..runtime.session import record

        return record(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
