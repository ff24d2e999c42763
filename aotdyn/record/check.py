"""Writes the `check` function of a variant: all guards in one walk that also gathers the graph's
inputs. Paths that several guards share are read once."""

from collections.abc import Iterable

from ..package.guard import Guard
from ..package.reference import Import, Tensors, Verified
from ..package.source import (
    Ahead,
    Attribute,
    Bound,
    Called,
    Contents,
    FromArray,
    Item,
    Listed,
    Local,
    Ordered,
    Over,
    OwnDict,
    Referent,
    Source,
    TypeOf,
    ValueAt,
    WaitsAt,
)
from .graph import source_name
from .naming import Names
from .unchanged import Unchanged, above, own_dict_of, unchanged

# Paths that are bound to a name when several guards share them.
_NAMED = (
    Attribute | Item | OwnDict | Contents | ValueAt | Called | Referent | TypeOf | Ahead | Over
    | FromArray | WaitsAt | Listed | Ordered
)  # fmt: skip

_DICT = Import("builtins", "dict")

# In this order: the process' state, then what tells whether paths exist, then tensors, sizes; and
# what calls code of the program, which has no effect once all that it reads is known.
_STAGES = {"STATE": 0, "CLASSES": 0, "CODES": 0, "TENSORS": 2, "SHAPE": 3, "FOUND": 4, "SAME": 1}


class CheckWriter:
    """Collects the lines of one check function."""

    def __init__(self, names: Names, params: tuple[str, ...]):
        self.names = names
        self.params = params
        self.lines: list[str] = []
        self._read: dict[Source, str] = {}
        self._uses: dict[Source, int] = {}

    def write(
        self, guards: list[Guard], inputs: list[Source], written: Iterable[Source] = ()
    ) -> str:
        """The text of `def check(<params>)`, which returns a tuple of inputs or None. written: the
        sources of what the variant changes."""
        self._count_uses(guards, inputs)
        dicts = {g.source for g in guards if g.kind == "TYPE" and g.expected == _DICT}
        guards = [g for g in guards if not self._is_implied(g, dicts)]
        groups = unchanged(guards, written)
        followed = {id(guard) for group in groups for guard in group.guards}
        rest = sorted(
            (guard for guard in guards if id(guard) not in followed),
            key=lambda guard: _STAGES.get(guard.kind, 1),
        )
        first, last = _parted(rest, groups)
        for guard in first:
            self._require(guard)
        for group in groups:
            self._ask(group)
        gathered = ""
        for guard in last:
            if guard.kind == "TENSORS" and list(guard.expected[0]) == inputs:
                gathered = self._gather(guard)
            else:
                self._require(guard)
        self.lines.append(f"return {gathered or self._tuple(inputs)}")
        body = "\n".join(f"        {line}" for line in self.lines)
        # A path that is not there any more is a miss, not an error.
        return (
            f"def check({', '.join(self.params)}):\n    try:\n{body}\n"
            "    except (AttributeError, LookupError, TypeError, ValueError):\n"
            "        return None\n"
        )

    def _require(self, guard: Guard) -> None:
        condition = guard.text(self.names.of, self.value)
        self.lines.append(f"if not ({condition}): return None")

    def _gather(self, guard: Guard) -> str:
        """The tensors of a guard as one tuple, which is checked; it is handed on as it is."""
        sources, metas = guard.expected
        name = self.names.fresh("tensors")
        self.lines.append(f"{name} = {self._tuple(sources)}")
        self.lines.append(f"if not {self.names.of(Tensors(metas))}(*{name}): return None")
        return name

    def _tuple(self, sources: Iterable[Source]) -> str:
        return f"({''.join(f'{self.value(source)}, ' for source in sources)})"

    def _ask(self, group: Unchanged) -> None:
        """Evaluates guards only where the dictionaries that decide them have changed."""
        root = group.root.text(self.names.of)
        verified = self.names.of(Verified(root))
        dicts = self.names.fresh("dicts")
        self.lines.append(f"{dicts} = {self._tuple(group.dicts)}")
        self.lines.append(f"if not {verified}.before({dicts}):")
        # What is read there is not read on the other way.
        outer, self.lines, read = self.lines, [], dict(self._read)
        for guard in group.guards:
            self._require(guard)
        noted = f"{self.value(group.owner)}, {dicts}, {self._tuple(group.modules)}"
        self.lines.append(f"{verified}.now({noted})")
        outer += [f"    {line}" for line in self.lines]
        self.lines, self._read = outer, read

    def _is_implied(self, guard: Guard, dicts: set[Source | None]) -> bool:
        """Whether a guard asks for what is read anyhow, a slot or a key of a dict: without it that
        is a miss."""
        key = guard.expected
        if guard.kind == "SLOT":
            return Attribute(guard.source, key) in self._uses
        if guard.kind != "HAS" or type(key) is not str:
            return False
        is_dict = guard.source in dicts or own_dict_of(guard.source) is not None
        return is_dict and Item(guard.source, key) in self._uses

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


def _parted(guards: list[Guard], groups: list[Unchanged]) -> tuple[list[Guard], list[Guard]]:
    """The guards that come before dictionaries are asked for their versions, and those after."""
    way = {source for group in groups for of in group.dicts for source in (of, *above(of))}
    before = [
        _STAGES.get(g.kind, 1) == 0 or g.source in way and g.kind != "FOUND" for g in guards
    ]
    return (
        [guard for guard, is_first in zip(guards, before, strict=True) if is_first],
        [guard for guard, is_first in zip(guards, before, strict=True) if not is_first],
    )
