"""`contextvars`: reading, setting and resetting variables of the present context."""

import contextvars
import operator

from ...package.reference import Import
from ...package.source import Attribute, Called, ContextValue, Source
from ..body import BodyWriter, rebuilds
from ..invoke import CONSTRUCTORS
from ..operation import call
from ..signals import GraphBreak
from ..variables import Constant, Lazy, Symbolic, TensorVariable, Variable
from ..wrap import wraps
from ..write_back import EFFECTS
from .builtin_attributes import builtin_getattr
from .table import rule

NONE = Constant(None)


class ContextVariable(Variable):
    """A `ContextVar` that came in.

    content: what it is set to, None where it is not set. tokens: of the calls of `set` that have
    not been reset, in order.
    """

    __slots__ = ("live", "content", "first", "tokens")

    def __init__(self, live: contextvars.ContextVar, content: Variable | None, source: Source):
        super().__init__(source)
        self.live = live
        self.content = self.first = content
        self.tokens: list[TokenVariable] = []

    @property
    def type(self) -> type:
        return contextvars.ContextVar

    def describe(self) -> str:
        return f"ContextVar {self.live.name!r}"


class ContextCopy(Variable):
    """What `copy_context()` gave, or an empty `Context()`. held: id of a variable -> the variable,
    and what it is set to there; any other is as it came in, or is not set where that is empty."""

    __slots__ = ("held", "is_empty")

    def __init__(self, held: dict[int, tuple["ContextVariable", Variable | None]], empty: bool):
        super().__init__()
        self.held = held
        self.is_empty = empty

    @property
    def type(self) -> type:
        return contextvars.Context

    def content(self, variable: "ContextVariable") -> Variable | None:
        if id(variable) in self.held:
            return self.held[id(variable)][1]
        return None if self.is_empty else variable.first


class TokenVariable(Variable):
    """What `of.set(content)` gave. before: what was set then, None for nothing."""

    __slots__ = ("of", "content", "before", "used")

    def __init__(self, of: ContextVariable, content: Variable, before: Variable | None):
        super().__init__()
        self.of = of
        self.content = content
        self.before = before
        self.used = False

    @property
    def type(self) -> type:
        return contextvars.Token


@wraps(contextvars.ContextVar)
def wrap_variable(t, value: contextvars.ContextVar, source: Source) -> Variable:
    t.guard("TYPE", source, Import("contextvars", "ContextVar"))
    context = contextvars.copy_context()
    content = None
    if value in context:
        content = t.lazy(context[value], ContextValue(source))
    variable = ContextVariable(value, content, source)
    t.remember(value, variable)
    return variable


def _rely_on_being_set(t, self: ContextVariable) -> None:
    """What came in may never be looked at, but it was there, or was not."""
    if self.content is self.first:
        t.guard("UNSET" if self.first is None else "SET", self.source)


@rule(contextvars.ContextVar.get, ContextVariable)
def get(t, self, default=None):
    _rely_on_being_set(t, self)
    if self.content is not None:
        return self.content
    if default is not None:
        return default
    try:
        fallback = contextvars.Context().run(self.live.get)
    except LookupError:
        t.raise_exception(LookupError, self)
    return t.lazy(fallback, Called(Attribute(self.source, "get")))


@rule(contextvars.ContextVar.set, ContextVariable)
def set_(t, self, value):
    t.effects.touch(self)
    _rely_on_being_set(t, self)
    token = t.new(TokenVariable(self, value, self.content))
    self.tokens.append(token)
    self.content = value
    return token


@rule(contextvars.ContextVar.reset, ContextVariable)
def reset(t, self, token):
    token = t.realize(token)
    if not isinstance(token, TokenVariable):
        return NotImplemented
    if token.of is not self:
        raise GraphBreak("unknown_operation", f"a token of {token.of.describe()}")
    if token.used:
        raise GraphBreak("unknown_operation", f"a used token of {self.describe()}")
    if not any(token is each for each in self.tokens):
        raise GraphBreak("unknown_operation", "a token of another Context")
    t.effects.touch(self)
    token.used = True
    self.content = token.before
    return NONE


# -- contexts ------------------------------------------------------------


def _variables(t) -> list[ContextVariable]:
    """Those that came in and have been looked at."""
    return [each for each in t.remembered() if isinstance(each, ContextVariable)]


@rule(contextvars.copy_context)
def copy_context(t):
    return t.new(ContextCopy({id(v): (v, v.content) for v in _variables(t)}, False))


def _make_context(t, cls, args, kwargs) -> Variable:
    if args or kwargs:
        t.raise_exception(TypeError, "Context() does not accept any arguments")
    return t.new(ContextCopy({}, True))


CONSTRUCTORS[contextvars.Context] = _make_context


@rule(contextvars.Context.copy, ContextCopy)
def copy_copy(t, self):
    return t.new(ContextCopy(dict(self.held), self.is_empty))


@rule(contextvars.Context.run, ContextCopy)
def run(t, self, function, /, *args, **kwargs):
    """What is set meanwhile is set in the context alone."""
    outside = {id(v): (v.content, v.tokens) for v in _variables(t)}
    for variable in _variables(t):
        variable.content, variable.tokens = self.content(variable), []
    t.effects.count += 1
    try:
        return call(t, function, list(args), kwargs)
    finally:
        for variable in _variables(t):
            self.held[id(variable)] = variable, variable.content
            before = outside.get(id(variable), (variable.first, []))
            variable.content, variable.tokens = before


def _value(t, self: ContextCopy, key: Variable) -> Variable | None:
    key = t.realize(key)
    if not isinstance(key, ContextVariable):
        raise GraphBreak("unknown_operation", "a Context and what is no ContextVar")
    found = self.content(key)
    if not self.is_empty and found is key.first:
        t.guard("UNSET" if found is None else "SET", key.source)
    return found


@rule(operator.contains, ContextCopy)
def context_contains(t, self, key):
    return Constant(_value(t, self, key) is not None)


@rule(operator.getitem, ContextCopy)
def context_getitem(t, self, key):
    found = _value(t, self, key)
    if found is None:
        t.raise_exception(KeyError, key)
    return found


@rule(contextvars.Context.get, ContextCopy)
def context_get(t, self, key, default=NONE):
    found = _value(t, self, key)
    return default if found is None else found


@rebuilds(ContextCopy)
def _rebuild_context(w: BodyWriter, v: ContextCopy) -> str:
    """Only one in which nothing is other than in the present one before the effects."""
    if v.is_empty and not v.held:
        return w.bind("context", f"{w.ref(Import('contextvars', 'Context'))}()")
    changed = any(content is not each.first for each, content in v.held.values())
    # A token is made again by setting its variable.
    if v.is_empty or changed or any(each.tokens for each in _variables(w.t)):
        raise GraphBreak("reconstruct", "a Context in which variables were set", v.origin)
    return w.bind("context", f"{w.ref(Import('contextvars', 'copy_context'))}()")


@rule(getattr, ContextVariable)
def variable_getattr(t, self, name, default=None):
    if t.constant(name) == "name":
        return Constant(self.live.name)
    return builtin_getattr(t, self, name, default)


@rule(getattr, TokenVariable)
def token_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "var":
        return self.of
    if key == "old_value" and self.before is not None:
        return self.before
    if key == "old_value":
        raise GraphBreak("attribute", "old_value of a token for what was not set")
    return builtin_getattr(t, self, name, default)


@rebuilds(TokenVariable)
def rebuild_token(w: BodyWriter, v: TokenVariable) -> str:
    """The variable is set again, after what was set before; who resets it finds that."""
    if v.used:
        raise GraphBreak("reconstruct", "a used token of a context variable", v.origin)
    pending = [token for token in v.of.tokens if not token.used]
    if v not in pending:
        raise GraphBreak("reconstruct", "a token of another context", v.origin)
    _load_before(w, v)
    for token in pending[: pending.index(v)]:
        w.value(token)
    return w.bind("token", f"{w.value(v.of)}.set({w.value(v.content)})")


def _load_before(w: BodyWriter, v: TokenVariable) -> None:
    """What the variable came in with is not found there any more once a token is made."""
    first = v.of.first
    if first is None:
        return
    w.value(first)
    known = first.known if isinstance(first, Lazy) else first
    if not isinstance(known, None | Constant | Symbolic | TensorVariable):
        # Its parts are reached through the variable.
        raise GraphBreak("reconstruct", "a token of a context variable", v.origin)


def _effect(w: BodyWriter, v: ContextVariable, target: str) -> list[str]:
    if v.content is v.first or v.content is None:
        return []
    return [f"{target}.set({w.value(v.content)})"]


EFFECTS[ContextVariable] = _effect
