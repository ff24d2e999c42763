"""A typed grammar of small programs. Templates have holes: `{int}` is any expression of a type,
`{int!}` a variable of it, `{new:int:v}` binds a variable that `{v}` means in the same template,
`{hidden:v}` one that nothing else uses, `{param:int:v}` a parameter; a line `{block}` is a block of
statements, `{body}` that of a function. A doubled brace is one.

Most programs run without an error; those that raise must raise the same compiled.
"""

import re
from dataclasses import dataclass, field
from typing import Protocol

from .templates import EXPRESSIONS, LITERALS, RISKY, RISKY_STATEMENTS, SIMPLE, STATEMENTS

_HOLE = re.compile(r"\{\{|\}\}|\{(new|hidden|param)?:?([a-z_]+)(!?)(?::([a-z]+))?\}")

# What needs no parentheses.
_ATOM = re.compile(r"[\w.]+|\([^()]*\)|\[[^\[\]]*\]|'[^']*'")
_PARAMETER = re.compile(r"\{param:[a-z]+:([a-z]+)\}")
_REBINDS = re.compile(r"(\{\w+!\}|COUNT) [+|]?=")


class Choices(Protocol):
    """Where a program's choices come from."""

    def below(self, count: int) -> int:
        """An int from 0 to count - 1; 0 is the simplest choice."""


@dataclass
class Scope:
    """The variables that can be read, by type, and how deep statements stand in what."""

    names: dict[str, list[str]] = field(default_factory=dict)
    loops: int = 0
    functions: int = 0
    blocks: int = 0

    def inner(self, **changes) -> "Scope":
        names = {kind: list(names) for kind, names in self.names.items()}
        fields = {"loops": self.loops, "functions": self.functions, "blocks": self.blocks}
        return Scope(names, **{**fields, **changes})

    def forget(self, gone: list[str]) -> None:
        """These names are not bound any more."""
        for names in self.names.values():
            names[:] = [name for name in names if name not in gone]


ARGUMENTS = {
    "x": "tensor", "y": "tensor", "n": "int", "m": "int", "flag": "bool", "word": "str",
    "ints": "ints", "table": "table", "box": "box", "members": "set", "vector": "vector",
}  # fmt: skip


class Writer:
    """Writes one program from choices."""

    def __init__(self, choices: Choices, size: int = 8):
        self.choices = choices
        self.left = size
        self.count = 0

    # -- programs --------------------------------------------------------------------------------

    def program(self) -> str:
        """The text of a module that defines `program`."""
        scope = Scope({kind: [] for kind in EXPRESSIONS})
        for name, kind in ARGUMENTS.items():
            scope.names[kind].append(name)
        lines = self.block(scope, 2 + self.choices.below(5))
        results = self.results(scope)
        body = "\n".join(f"    {line}" for line in [*lines, f"return {results}"])
        parameters = ", ".join((*ARGUMENTS, "log"))
        return (
            "from tests.record.random_programs.prelude import *\n\nCOUNT = 0\nSTATE = {}\n\n\n"
            f"def program({parameters}):\n    global COUNT\n{body}\n"
        )

    def results(self, scope: Scope) -> str:
        """What a program returns: some of what it has made."""
        made = [name for names in scope.names.values() for name in names if name not in ARGUMENTS]
        kept = [made[self.choices.below(len(made))] for _ in range(min(len(made), 4))]
        return f"({', '.join([self.expression('tensor', scope, 1), *kept])}, x, ints)"

    def block(self, scope: Scope, count: int) -> list[str]:
        """Some statements."""
        lines: list[str] = []
        for _ in range(count):
            lines += self.statement(scope)
        return lines

    def statement(self, scope: Scope) -> list[str]:
        """One statement; a simple one where the program is long or deep enough."""
        self.left -= 1
        table = STATEMENTS if self.left > 0 and scope.blocks < 3 else SIMPLE
        if self.choices.below(14) == 13:
            table = RISKY_STATEMENTS
        template = table[self.choices.below(len(table))]
        if "{loop}" in template:
            if not scope.loops:
                return self.assignment(scope)
            template = template.replace("{loop}", "")
        if scope.functions and _REBINDS.match(template):
            # In a nested function that would be a variable of its own, and unbound.
            return self.assignment(scope)
        return self.lines(template, scope)

    def assignment(self, scope: Scope) -> list[str]:
        return self.lines("{new:int:v} = {int}", scope)

    def lines(self, template: str, scope: Scope) -> list[str]:
        """The lines of a template, filled in."""
        known: dict[str, str] = {}
        compound = "{block}" in template or "{body}" in template
        # What a compound statement binds may be unbound behind it.
        inside = scope.inner() if compound else scope
        found: list[str] = []
        looping = False
        parameters: list[str] = []
        for line in template.split("\n"):
            text = line.lstrip()
            indent = line[: len(line) - len(text)]
            if not indent:
                looping = text.startswith(("for ", "while "))
                inside.forget([known[label] for label in parameters])
                parameters = _PARAMETER.findall(text)
            elif text.startswith("def "):
                parameters += _PARAMETER.findall(text)
            if text in ("{block}", "{body}"):
                part = self._inner(text, inside, looping)
                found += [f"{indent}{each}" for each in part]
            else:
                found.append(indent + self.fill(text, inside, known, 2))
        for kind, names in inside.names.items():
            if compound and kind in _KEPT and "def {" in template:
                scope.names[kind] = names
        return found

    def _inner(self, marker: str, scope: Scope, looping: bool) -> list[str]:
        if marker == "{body}":
            inner = scope.inner(loops=0, functions=scope.functions + 1, blocks=3)
        else:
            inner = scope.inner(loops=scope.loops + looping, blocks=scope.blocks + 1)
        return self.block(inner, 1 + self.choices.below(2))

    # -- expressions -----------------------------------------------------------------------------

    def fill(self, text: str, scope: Scope, known: dict[str, str], depth: int) -> str:
        """A template's line with its holes filled, from left to right."""
        bound: list[tuple[str, str]] = []

        def replaced(match: re.Match) -> str:
            how, kind, variable, label = match.groups()
            if kind is None:
                return match[0][0]
            if how is None and kind in known:
                return known[kind]
            if how is None:
                return self.variable(kind, scope) if variable else self.hole(kind, scope, depth)
            self.count += 1
            name = f"{kind[0]}{self.count}"
            known[label or kind] = name
            if how != "hidden":
                bound.append((kind, name))
            return name

        # The right side of an assignment comes first: its target is not bound there.
        left, separator, right = text.partition(" = ")
        if separator and left.startswith("{new"):
            value = _HOLE.sub(replaced, right)
            found = _HOLE.sub(replaced, left) + separator + value
        else:
            found = _HOLE.sub(replaced, text)
        for kind, name in bound:
            scope.names.setdefault(kind, []).append(name)
        return found

    def hole(self, kind: str, scope: Scope, depth: int) -> str:
        """An expression in the place of a hole."""
        found = self.expression(kind, scope, depth)
        return found if _ATOM.fullmatch(found) else f"({found})"

    def expression(self, kind: str, scope: Scope, depth: int) -> str:
        """An expression of a type."""
        if kind == "any":
            kinds = list(ARGUMENTS.values())
            return self.variable(kinds[self.choices.below(len(kinds))], scope)
        which = self.choices.below(4)
        names = scope.names.get(kind, [])
        if depth <= 0 or which < 2:
            if names and which != 1:
                return self.variable(kind, scope)
            return self.pick(LITERALS[kind], scope, 0)
        risky = RISKY.get(kind)
        if risky and self.choices.below(12) == 11:
            return self.pick(risky, scope, depth - 1)
        return self.pick(EXPRESSIONS[kind], scope, depth - 1)

    def pick(self, table: list[str], scope: Scope, depth: int) -> str:
        return self.fill(table[self.choices.below(len(table))], scope, {}, depth)

    def variable(self, kind: str, scope: Scope) -> str:
        """A variable of a type; the newest ones come first."""
        names = scope.names.get(kind, [])
        if not names:
            return f"({self.pick(LITERALS[kind], scope, 0)})"
        return names[-1 - self.choices.below(len(names))]


# Functions and classes are bound by their statement in any case.
_KEPT = ("function", "generator")
