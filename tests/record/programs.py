"""What the tables of programs share: how a row is written and run, and helpers that break."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

import aotdyn
from tests.conftest import assert_same


class Programs:
    """A table of small programs, filled by its decorator.

    A row has the program's calls (one with a tensor of three where none are given), how many
    graph breaks it has, and how many graphs; None for any.
    """

    def __init__(self):
        self.rows: list = []

    def __call__(
        self, *calls: tuple, breaks: int | None = 0, graphs: int | None = None
    ) -> Callable:
        """Adds the decorated function to the table."""

        def add(function: Callable) -> Callable:
            row = calls or ((torch.arange(3.0) + 1,),)
            name = function.__name__[2:]
            self.rows.append(pytest.param(function, row, breaks, graphs, id=name))
            return function

        return add

    def test(self) -> Callable:
        """The test of the table."""

        @pytest.mark.parametrize(("function", "calls", "breaks", "graphs"), self.rows)
        def test_agrees(agree, function, calls, breaks, graphs):
            agree(function, *calls, breaks=breaks, graphs=graphs)

        return test_agrees


def outcome_of(function: Callable, *args, **kwargs):
    """What a call gives, or the type and the text of what it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)


@aotdyn.disable
def note(log, item):
    """Breaks the graph, and shows when."""
    log.append(item)
    return item


class Note:
    """A context manager that notes what happens to it."""

    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append(("enter", self.name))
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(("exit", self.name, kind, str(error), trace is not None))
        return self.swallow


def trained(function: Callable, args: tuple) -> list:
    """What a call gives, and the gradients that its results lead to: of the arguments, and of
    leaves among the results."""
    args = copy.deepcopy(args)
    torch.manual_seed(0)
    result = function(*args)
    results = [each for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
    sum((each**2).sum() for each in results if each.requires_grad).backward()
    leaves = [each for each in tree_leaves(args) if isinstance(each, torch.Tensor)]
    leaves += [each for each in results if each.is_leaf]
    return [result, [leaf.grad for leaf in leaves]]


def assert_trains(function: Callable, args: tuple, folder: Path, fullgraph: bool = True) -> None:
    """A call has eager's results and gradients, traced in this process and served from a package
    that is made in a folder."""
    expected = trained(function, args)

    def run() -> None:
        call = aotdyn.compile(function, backend="eager", fullgraph=fullgraph)
        assert_same(expected, trained(call, args))

    with aotdyn.record(folder / "a.rec"):
        run()
    aotdyn.pack([folder / "a.rec"], folder / "a.pkg")
    with aotdyn.load(folder / "a.pkg", on_miss="error"):
        run()
