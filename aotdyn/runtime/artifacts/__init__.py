"""Compiled artifacts in this process: libraries, and the Python around them. Needs torch only."""

from .compiled import load_graph
from .needs import unmet

COMPILED = ("cpu",)  # the targets whose artifacts are loaded here, best first

__all__ = ["COMPILED", "load_graph", "unmet"]
