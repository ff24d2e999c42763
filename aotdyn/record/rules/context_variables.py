"""`contextvars`: reading, setting and resetting variables of the present context."""

import contextvars

from ...package.reference import Import
from ...package.source import Attribute, Called, ContextValue, Source
from ..body import BodyWriter, rebuilds
from ..signals import GraphBreak
from ..variables import Constant, Variable
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
    t.effects.touch(self)
    token.used = True
    self.content = token.before
    return NONE


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
    for token in pending[: pending.index(v)]:
        w.value(token)
    return w.bind("token", f"{w.value(v.of)}.set({w.value(v.content)})")


def _effect(w: BodyWriter, v: ContextVariable, target: str) -> list[str]:
    if v.content is v.first or v.content is None:
        return []
    return [f"{target}.set({w.value(v.content)})"]


EFFECTS[ContextVariable] = _effect
