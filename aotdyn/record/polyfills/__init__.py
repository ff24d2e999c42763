"""Plain Python that is traced in place of code in C. It is part of the tracer: it cannot change,
so nothing in a variant is guarded or named because of it."""

from ...package.reference import Import
from ...package.source import Bound, Source


def is_polyfill(module: object) -> bool:
    """Whether this is the name of a module that holds polyfills. Programs give their modules and
    classes any name, or none."""
    return isinstance(module, str) and module.startswith(__name__)


def in_polyfill(source: Source | None) -> bool:
    """Whether a source starts in a module of polyfills."""
    while source is not None and source.base is not None:
        source = source.base
    if not isinstance(source, Bound) or not isinstance(source.reference, Import):
        return False
    return is_polyfill(source.reference.module)
