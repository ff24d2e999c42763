"""Writes the `check` function of a variant: all guards in one walk that also gathers the graph's
inputs. Paths that several guards share are read once."""

from ..package.guard import Guard
from ..package.reference import Import
from ..package.source import (
    Attribute,
    Bound,
    Called,
    Contents,
    Item,
    Local,
    OwnDict,
    Referent,
    Source,
    TypeOf,
    ValueAt,
)
from .graph import source_name
from .naming import Names

# In this order: the process' state, then what tells whether paths exist, then tensors, sizes.
# Paths that are bound to a name when several guards share them.
_NAMED = Attribute | Item | OwnDict | Contents | ValueAt | Called | Referent | TypeOf

_DICT = Import("builtins", "dict")

_STAGES = {"STATE": 0, "CLASSES": 0, "CODES": 0, "TENSORS": 2, "SHAPE": 3, "SAME": 1}


class CheckWriter:
    """Collects the lines of one check function."""

    def __init__(self, names: Names, params: tuple[str, ...]):
        self.names = names
        self.params = params
        self.lines: list[str] = []
        self._read: dict[Source, str] = {}
        self._uses: dict[Source, int] = {}

    def write(self, guards: list[Guard], inputs: list[Source]) -> str:
        """The text of `def check(<params>)`, which returns a tuple of inputs or None."""
        ordered = sorted(guards, key=lambda guard: _STAGES.get(guard.kind, 1))
        self._count_uses(ordered, inputs)
        dicts = {g.source for g in guards if g.kind == "TYPE" and g.expected == _DICT}
        for guard in ordered:
            is_dict = guard.source in dicts or _is_own_dict(guard.source)
            if guard.kind == "HAS" and is_dict and self._is_read(guard):
                continue
            condition = guard.text(self.names.of, self.value)
            self.lines.append(f"if not ({condition}): return None")
        values = [self.value(source) for source in inputs]
        self.lines.append(f"return ({''.join(f'{value}, ' for value in values)})")
        body = "\n".join(f"        {line}" for line in self.lines)
        # A path that is not there any more is a miss, not an error.
        return (
            f"def check({', '.join(self.params)}):\n    try:\n{body}\n"
            "    except (AttributeError, LookupError, TypeError, ValueError):\n"
            "        return None\n"
        )

    def _is_read(self, guard: Guard) -> bool:
        """Whether a dict's item is read anyhow: without the key that is a miss."""
        key = guard.expected
        return type(key) is str and Item(guard.source, key) in self._uses

    def _count_uses(self, guards: list[Guard], inputs: list[Source]) -> None:
        def count(source: Source) -> str:
            first = source not in self._uses
            self._uses[source] = self._uses.get(source, 0) + 1
            if first and source.base is not None:
                count(source.base)
            return ""

        for guard in guards:
            guard.text(lambda reference: "", count)
        for source in inputs:
            count(source)

    def value(self, source: Source) -> str:
        """The expression for a source; one that is used again is bound to a name."""
        known = self._read.get(source)
        if known is not None:
            return known
        base = source.base
        text = source.step("" if base is None else self.value(base), self.names.of)
        if isinstance(source, Local | Bound):
            return text
        if self._uses.get(source, 0) < 2 or not isinstance(source, _NAMED):
            return text
        name = self.names.fresh(source_name(source))
        self.lines.append(f"{name} = {text}")
        self._read[source] = name
        return name


def _is_own_dict(source: Source | None) -> bool:
    """Whether a source is an object's own dictionary, which is an exact dict."""
    return isinstance(source, OwnDict) or (
        isinstance(source, Attribute) and source.name == "__dict__"
    )
