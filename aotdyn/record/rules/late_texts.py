"""Text that is made after the graph, because numbers or strings in it differ between calls: a
variant for each of them would serve nobody. Where the text itself decides something it is fixed."""

import operator
from collections.abc import Callable, Iterable
from typing import Any

from ..body import BodyWriter, rebuilds
from ..operation import apply, truth
from ..variables import (
    Constant,
    IdentityVariable,
    Lazy,
    Symbolic,
    TextVariable,
    Variable,
    Varying,
)
from .table import rule


def joined(t, *parts: str | Variable) -> Variable:
    """The parts, strings all of them, as one."""
    found: list[Variable] = []
    for part in parts:
        part = Constant(part) if isinstance(part, str) else realized(t, part)
        inner = part.args if isinstance(part, TextVariable) and part.operation is _all else [part]
        for each in inner:
            if isinstance(each, Constant) and found and isinstance(found[-1], Constant):
                found[-1] = Constant(found[-1].value + each.value)
            else:
                found.append(each)
    if len(found) == 1:
        return found[0]
    return t.new(TextVariable(_all, found)) if found else Constant("")


def separated(t, separator: str, parts: Iterable[Variable]) -> Variable:
    """`separator.join(parts)`."""
    found: list[str | Variable] = []
    for part in parts:
        found += [separator, part] if found else [part]
    return joined(t, *found)


def late(t, operation: Callable, *args: Variable) -> Variable:
    """The text that an operation gives for arguments of which some are not fixed; NotImplemented
    where that may raise."""
    made = TextVariable(operation, list(args))
    if not all(_is_written_out(t, arg) for arg in args):
        return NotImplemented
    try:
        made.value(like)
    except (TypeError, ValueError, OverflowError):
        return NotImplemented
    return t.new(made)


def _is_written_out(t, value: Variable) -> bool:
    """Whether a number is none of those that Python refuses to write out, for their length; its
    text may be needed by nobody, and then nothing would refuse. Guarded."""
    if not isinstance(value, Symbolic) or not t.shapes.is_of_any_length(value.value):
        return True
    bounds = ((operator.lt, _SHORT), (operator.gt, -_SHORT))
    return all(truth(t, apply(t, holds, [value, Constant(bound)])) for holds, bound in bounds)


# Far more than sizes are, and as much as a guard on a number may tell.
_SHORT = 1 << 62


def realized(t, value: Variable) -> Variable:
    """The value looked at, except for a string that differs between calls: of that only the type
    is relied on."""
    untouched = type(value) is Lazy and value.known is None and type(value.value) is str
    if untouched and t.shapes.history.differs(value.source, value.value):
        t.guard("TYPE", value.source, t.references.to(str))
        return TextVariable(str, [value])
    value = t.realize(value)
    return TextVariable(str, [value]) if _is_text(value) else value


def _is_text(value: Variable) -> bool:
    return isinstance(value, Varying) and value.type is str


def like(value: Variable) -> Any:
    """A value with which operations do what they do with all others that the variable may have."""
    if isinstance(value, IdentityVariable):
        return 2
    if isinstance(value, Constant):
        return value.value
    return {int: 2, float: 2.5, bool: True, str: "text"}[value.type if type(value) is not Lazy
                                                         else type(value.value)]  # fmt: skip


@rule((format, str, repr, ascii), Symbolic, IdentityVariable)
def text_of_symbolic(t, self, spec=None):
    """A number is only symbolic once it has been seen to differ; an id() differs always."""
    if spec is None:
        return late(t, str, self)
    spec = t.realize(spec)
    if not isinstance(spec, Constant) or spec.type is not str or spec.value[-1:] == "c":
        # Which numbers are those of characters?
        return NotImplemented
    return late(t, format, self, spec)


def _in_base(function: Callable) -> None:
    @rule(function, Symbolic, IdentityVariable)
    def in_base(t, self):
        return late(t, function, self)


_in_base(hex)
_in_base(oct)
_in_base(bin)


@rule(format, TextVariable, Varying)
def format_text(t, self, spec):
    self, spec = realized(t, self), t.realize(spec)
    if not isinstance(self, TextVariable) or not isinstance(spec, Constant):
        return NotImplemented
    return self if spec.value == "" else late(t, format, self, spec)


@rule(str, TextVariable, Varying)
def str_text(t, self):
    self = realized(t, self)
    return self if isinstance(self, TextVariable) else NotImplemented


def _quoted(function: Callable) -> None:
    @rule(function, TextVariable)
    def quoted(t, self):
        return late(t, function, self)


_quoted(repr)
_quoted(ascii)


@rule(operator.add, TextVariable, Varying)
def add_text(t, self, other):
    self, other = realized(t, self), realized(t, other)
    if isinstance(self, TextVariable) and other.type is str and isinstance(other, _TEXTS):
        return joined(t, self, other)
    return NotImplemented


@rule(operator.add, Constant, after=True)
def add_to_plain(t, self, other):
    other = realized(t, other) if self.type is str else other
    return joined(t, self, other) if isinstance(other, TextVariable) else NotImplemented


_TEXTS = (Constant, TextVariable)


def _register(method: Callable) -> None:
    @rule(method, TextVariable)
    def by_method(t, self, *args):
        given = [t.realize(arg) for arg in args]
        if not all(isinstance(arg, Constant) for arg in given):
            return NotImplemented
        return late(t, method, self, *given)


# Methods of text that give text, whatever the text is.
_METHODS = [
    str.capitalize, str.casefold, str.center, str.expandtabs, str.ljust, str.lower, str.lstrip,
    str.removeprefix, str.removesuffix, str.replace, str.rjust, str.rstrip, str.strip,
    str.swapcase, str.title, str.upper, str.zfill,
]  # fmt: skip
for each in _METHODS:
    _register(each)


def formatted(t, template: str, values: list[Variable]) -> Variable:
    """`template % (*values,)`, for a template of which each place takes the next value."""
    return late(t, _percent, Constant(template), *values)


def _all(*parts: str) -> str:
    return "".join(parts)


def _percent(template: str, *values: Any) -> str:
    return template % values


# operation -> how it is written, given the texts of its arguments.
_WRITTEN: dict[Callable, Callable[[list[str]], str]] = {
    _all: lambda args: f"''.join(({', '.join(args)}))",
    _percent: lambda args: f"{args[0]} % ({', '.join(args[1:])},)",
}


@rebuilds(TextVariable)
def _rebuild(w: BodyWriter, v: TextVariable) -> str:
    args = [w.value(arg) for arg in v.args]
    written = _WRITTEN.get(v.operation)
    if written is not None:
        text = written(args)
    elif v.operation in _METHODS:
        text = f"{args[0]}.{v.operation.__name__}({', '.join(args[1:])})"
    else:
        text = f"{v.operation.__name__}({', '.join(args)})"
    return w.bind("text", text)
