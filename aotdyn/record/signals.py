"""What interrupts the interpreter. Imported by everything in `record`, imports nothing of it."""


class Signal(Exception):
    """Base: never an error of the user's program, always caught inside the tracer."""


class GraphBreak(Signal):
    """Something cannot be traced. reason: a key of `reasons.REASONS`; detail: about what.

    origin: the step of the root frame at which to break instead of the current one (where a value
    was made that cannot be rebuilt), None for the current one. places: where the program stood,
    from the entry's frame inwards; noted by the interpreter where they are not given.
    """

    def __init__(
        self, reason: str, detail: str = "", origin: int | None = None, places: tuple[str, ...] = ()
    ):
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.origin = origin
        self.places = places


class Raised(Signal):
    """The traced program raises. value: the exception as a Variable. refused: the operands, where
    an operator is not defined on their types."""

    def __init__(self, value, refused: tuple = ()):
        super().__init__(value)
        self.value = value
        self.refused = refused


class SkipFrame(Signal):
    """The frame cannot even be broken: it runs as plain Python. places: as for a break."""

    def __init__(self, reason: str, detail: str = "", places: tuple[str, ...] = ()):
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
        self.places = places


class NotConstant(Signal):
    """A constant was asked for and the value is not known while tracing."""
