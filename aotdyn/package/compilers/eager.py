"""The target `eager`: a graph as Python source over torch operators. Runs wherever torch does."""

import ast

from ..archive import Artifact
from ..errors import AotdynError
from ..graph import Graph, python_source


def compile_graph(graph: Graph) -> Artifact:
    """Raises AotdynError when the graph has no text that Python takes."""
    try:
        text, names = python_source(graph)
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise AotdynError(f"the graph has no Python source: {error}") from error
    return Artifact("eager", text, names)
