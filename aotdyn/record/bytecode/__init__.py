"""What the tracer knows of CPython 3.11: instructions, jumps, exception table, liveness."""

from .decode import Decoded, ExceptionEntry, Instruction, decode
from .liveness import live_locals

__all__ = ["Decoded", "ExceptionEntry", "Instruction", "decode", "live_locals"]
