"""The table of rules: how an operation acts on a kind of variable.

An operation is the Python callable itself (`operator.add`, `len`, `list.append`, `torch.relu`).
A rule is registered for the class of the first argument and found along that class' bases.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..signals import GraphBreak
from ..variables import Variable

RULES: dict[Any, dict[type, "Rule"]] = {}

# How each kind of variable is advanced as an iterator: -> the next value, or None at the end.
ADVANCE: dict[type, Callable] = {}

# What calling each kind of variable does, besides functions, methods, classes and instances.
CALLS: dict[type, Callable] = {}


class Rule:
    """A registered function `f(t, *args, **kwargs)` and which arguments it takes.

    It returns a Variable, or NotImplemented: this rule does not apply to these arguments. `after`
    is the rule that is tried then, None where there is no other.
    """

    __slots__ = ("function", "signature", "least", "most", "after", "hidden")

    def __init__(self, function: Callable):
        self.function = function
        self.signature = inspect.signature(function)
        parameters = list(self.signature.parameters.values())[1:]
        kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        positional = [p for p in parameters if p.kind in kinds]
        self.least = sum(p.default is p.empty for p in positional)
        self.most: float = len(positional)
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            self.most = float("inf")
        self.after: Rule | None = None
        # Names that a keyword may have, too, where any is taken; `bind` refuses those.
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        only = [p.name for p in self.signature.parameters.values() if p.kind is p.POSITIONAL_ONLY]
        self.hidden = frozenset(only if takes_any else ())

    def misfit(self, args: list[Variable], kwargs: dict[str, Variable]) -> str:
        """Why the rule does not take these arguments, "" if it does."""
        if not kwargs and self.least <= len(args) <= self.most:
            return ""
        try:
            named = {name: value for name, value in kwargs.items() if name not in self.hidden}
            self.signature.bind(None, *args, **named)
        except TypeError as error:
            return str(error)
        return ""

    def __call__(self, t, args: list[Variable], kwargs: dict[str, Variable]):
        misfit = self.misfit(args, kwargs)
        if misfit:
            raise GraphBreak("bad_arguments", misfit)
        result = self.function(t, *args, **kwargs)
        if result is NotImplemented and self.after is not None:
            return self.after(t, args, kwargs)
        return result


def rule(operation: Any, *kinds: type, after: bool = False) -> Callable[[Callable], Callable]:
    """Registers a rule for one operation, or a tuple of them, and the kinds of first arguments.

    after: there may be rules for these already; this one is tried where they do not apply.
    """
    operations: Iterable = operation if isinstance(operation, tuple) else (operation,)

    def register(function: Callable) -> Callable:
        for each in operations:
            rows = RULES.setdefault(each, {})
            for kind in kinds or (Variable,):
                made = Rule(function)
                first = rows.setdefault(kind, made)
                if first is made:
                    continue
                if not after:
                    raise ValueError(f"two rules for {each} on {kind.__name__}")
                while first.after is not None:
                    first = first.after
                first.after = made
        return function

    return register


def advances(*kinds: type) -> Callable[[Callable], Callable]:
    """Registers how iterators of these kinds are advanced."""

    def register(function: Callable) -> Callable:
        for kind in kinds:
            ADVANCE[kind] = function
        return function

    return register


def calls(*kinds: type) -> Callable[[Callable], Callable]:
    """Registers what calling variables of these kinds does: f(t, variable, args, kwargs)."""

    def register(function: Callable) -> Callable:
        for kind in kinds:
            CALLS[kind] = function
        return function

    return register


def find(operation: Any, first: Variable | None) -> Rule | None:
    """The rule for an operation on a first argument; the nearest base class wins."""
    try:
        rows = RULES.get(operation)
    except TypeError:  # an unhashable callable
        return None
    if rows is None:
        return None
    if first is None:
        return rows.get(Variable)
    for kind in type(first).__mro__:
        found = rows.get(kind)
        if found is not None:
            return found
    return None
