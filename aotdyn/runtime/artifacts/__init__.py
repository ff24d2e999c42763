"""Compiled artifacts in this process: libraries, and the Python around them. Needs torch only."""

from .compiled import load_graph

__all__ = ["load_graph"]
