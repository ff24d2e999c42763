"""`re` on plain text: computed while tracing."""

import operator
import re
import warnings
from typing import Any

from ...package.reference import Import
from ..body import BodyWriter, rebuilds
from ..folding import plain
from ..operation import apply, bare_value, truth
from ..polyfills import patterns
from ..signals import GraphBreak, NotConstant, Raised
from ..variables import (
    Alias,
    Constant,
    Known,
    SequenceIterator,
    TupleVariable,
    ValueObject,
    Variable,
)
from ..variables.mirrors import MirrorVariable
from .builtin_attributes import builtin_getattr
from .table import rule


class MatchVariable(Variable):
    """A match. value: the match; made: the name of the function of `re` that gives it, and what
    that was called with; index: its place among several, -1 for a single one."""

    __slots__ = ("value", "made", "index")

    def __init__(self, value: re.Match, made: tuple[str, list[Variable]], index: int = -1):
        super().__init__()
        self.value = value
        self.made = made
        self.index = index

    @property
    def type(self) -> type:
        return re.Match

    def describe(self) -> str:
        return "a match"


@rebuilds(MatchVariable)
def _rebuild(w: BodyWriter, v: MatchVariable) -> str:
    name, args = v.made
    text = f"{w.ref(Import('re', name))}({', '.join(map(w.value, args))})"
    return w.bind("match", text if v.index < 0 else f"[*{text}][{v.index}]")


def _plain(t, value: Variable) -> Any:
    value = t.realize(value)
    return value.value if isinstance(value, Known) else plain(bare_value(value))


def _computed(t, name: str, function: Any, args: tuple, kwargs: dict, subject: Any) -> Any:
    """What a function of `re` or a method of a pattern gives; NotImplemented for other text."""
    try:
        given = [t.realize(arg) for arg in (*args, *kwargs.values())]
        if name not in _SEARCHES and any(isinstance(each, ValueObject) for each in given):
            # It may give the text itself.
            return NotImplemented
        if any(isinstance(each, MirrorVariable) for each in given):
            # What is found in a text that can change holds on to it.
            return NotImplemented
        values = [_plain(t, arg) for arg in args]
        named = {key: _plain(t, arg) for key, arg in kwargs.items()}
    except NotConstant:
        return NotImplemented
    if _shows(name, values, named):
        return NotImplemented
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = function(*values, **named)
        except (TypeError, ValueError, IndexError) as error:
            raise Raised(t.exception(type(error), *error.args)) from None
        except Exception:
            # An error of `re` knows the pattern and the place in it. Python raises it itself.
            return NotImplemented
    if told:
        # What has been compiled is not warned of again: the program has yet to be.
        re.purge()
        return NotImplemented
    given = [*args] if subject is None else [subject, *args]
    if isinstance(found, re.Match):
        simple = not kwargs and len(given) <= 3 - (subject is not None)
        return t.new(MatchVariable(found, (name, given))) if simple else NotImplemented
    if isinstance(found, re.Pattern):
        return Alias(found)
    if name == "finditer":
        matches = [MatchVariable(each, (name, given), i) for i, each in enumerate(found)]
        return t.new(SequenceIterator(TupleVariable(matches)))
    return t.wrap_result(found)


_SEARCHES = ("match", "search", "fullmatch")
# Where the functions take flags.
_FLAGS_AT = {"compile": 1, "match": 2, "search": 2, "fullmatch": 2, "findall": 2, "finditer": 2,
             "split": 3}  # fmt: skip


def _shows(name: str, values: list, named: dict[str, Any]) -> bool:
    """Whether a call prints what it compiles, or depends on more than its arguments."""
    at = _FLAGS_AT.get(name, len(values))
    flags = named.get("flags", values[at] if at < len(values) else 0)
    return isinstance(flags, int) and bool(flags & (re.DEBUG | re.LOCALE))


def _function(name: str) -> None:
    function = getattr(re, name)

    @rule(function)
    def computed(t, *args, **kwargs):
        return _computed(t, name, function, args, kwargs, None)


for _name in ("match", "search", "fullmatch", "findall", "split", "finditer", "escape", "compile"):
    _function(_name)


ZERO = Constant(0)


def _substitution(name: str) -> None:
    function, method = getattr(re, name), getattr(re.Pattern, name)

    @rule(function)
    def by_pattern(t, pattern, repl, string, count=ZERO, flags=ZERO):
        compiled = apply(t, re.compile, [pattern, flags])
        return apply(t, method, [compiled, repl, string, count])

    @rule(method, Alias)
    def by_method(t, self, repl, string, count=ZERO):
        repl = t.realize(repl)
        if truth(t, apply(t, callable, [repl])):
            found = t.inline_live(patterns.substitute, [self, repl, string, count], {})
            return found if name == "subn" else t.realize(found).items[0]
        return _computed(t, name, getattr(self.value, name), (repl, string, count), {}, self)


for _name in ("sub", "subn"):
    _substitution(_name)


def _method(name: str) -> None:
    method = getattr(re.Pattern, name)

    @rule(method, Alias)
    def computed(t, self, *args, **kwargs):
        return _computed(t, name, getattr(self.value, name), args, kwargs, self)


for _name in ("match", "search", "fullmatch", "findall", "split", "finditer"):
    _method(_name)


def _of_match(name: str, operations: tuple) -> None:
    @rule(operations, MatchVariable)
    def computed(t, self, *args, **kwargs):
        return _computed(t, name, getattr(self.value, name), args, kwargs, None)


for _name in ("group", "groups", "groupdict", "start", "end", "span", "expand"):
    _of_match(_name, (getattr(re.Match, _name),))
_of_match("__getitem__", (re.Match.__getitem__, operator.getitem))


@rule((bool, operator.truth), MatchVariable)
def truth_(t, self):
    return Constant(True)


@rule(getattr, MatchVariable)
def match_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "string" and any(isinstance(t.realize(a), ValueObject) for a in self.made[1]):
        raise GraphBreak("attribute", "Match.string")
    if key in ("string", "pos", "endpos", "lastindex", "lastgroup"):
        return t.wrap_result(getattr(self.value, key))
    if key == "re":
        return Alias(self.value.re)
    return builtin_getattr(t, self, name, default)


@rule((repr, str), MatchVariable)
def match_text(t, self):
    raise GraphBreak("builtin_call", "the text of a match")
