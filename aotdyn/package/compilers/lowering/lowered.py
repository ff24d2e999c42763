"""What lowering a graph gives."""

from dataclasses import dataclass

from ...plan import Plan


@dataclass(frozen=True)
class PartCode:
    """One part, ready to be compiled. name: of the graph's class, a hash of the contents.

    kernels: for each ISA, "" where there are none. external: the operators that are called through
    the dispatcher, as JSON texts.
    """

    name: str
    wrapper: str
    kernels: dict[str, str]
    external: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """A graph as code. plan: without the library's name and numbers. text: the Python around the
    parts. files: its constants. conditions: what calls must fulfil beyond the guards."""

    plan: Plan
    text: str
    parts: tuple[PartCode, ...]
    files: dict[str, bytes]
    conditions: tuple[str, ...] = ()
