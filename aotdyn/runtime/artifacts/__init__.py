"""Compiled artifacts in this process: libraries, kernels, and the Python around them. Needs torch
only."""

from .compiled import load_graph
from .needs import unmet
from .targets import ordered

__all__ = ["load_graph", "ordered", "unmet"]
