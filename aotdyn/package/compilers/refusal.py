"""Why one way of compiling a graph is not open to it."""

from dataclasses import dataclass

from ..errors import AotdynError


class Refused(AotdynError):
    """This way cannot take the graph; the next one is tried. The message is the reason."""


@dataclass(frozen=True)
class Refusal:
    """The stored form of `Refused`."""

    reason: str
