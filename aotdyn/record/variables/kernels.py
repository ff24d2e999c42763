"""What Triton makes of functions of the program."""

from .base import Known


class KernelVariable(Known):
    """A kernel: known by identity, and by what it is made of."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the kernel {getattr(self.value, '__name__', '') or 'of Triton'}"


class HostFunctionVariable(Known):
    """A function of Triton that computes grids and constants."""

    __slots__ = ()
