"""`logging`: a message that no logger wants leaves no trace; what is wanted breaks the graph."""

import logging

from ...package.reference import Import
from ...package.source import Attribute, Bound, Called
from ..variables import ObjectVariable
from .table import rule


@rule(logging.Logger.isEnabledFor, ObjectVariable)
def is_enabled_for(t, self, level):
    """Asked again at each call: levels change, and loggers keep the answer."""
    if self.live is None or self.source is None or self.attributes:
        return NotImplemented
    wanted = t.constant(level)
    source = Called(Attribute(self.source, "isEnabledFor"), (wanted,))
    return t.lazy(self.live.isEnabledFor(wanted), source)


@rule(logging.getLogger)
def get_logger(t, name=None):
    args = () if name is None else (t.constant(name),)
    source = Called(Bound(Import("logging", "getLogger")), args)
    return t.lazy(logging.getLogger(*args), source)
