"""What a handler can answer other than None or a jump target."""

from dataclasses import dataclass

from ..variables import Variable


@dataclass(frozen=True, slots=True)
class Return:
    """The frame is finished with this value."""

    value: Variable


@dataclass(frozen=True, slots=True)
class Yield:
    """The generator frame hands out this value and waits."""

    value: Variable
