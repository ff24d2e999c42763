"""Why one way of compiling a graph is not open to it."""

from ...errors import AotdynError


class Refused(AotdynError):
    """This way cannot take the graph; the next one is tried. The message is the reason."""
