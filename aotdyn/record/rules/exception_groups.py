"""Exception groups as objects; what `except*` does with them is in the polyfills."""

from typing import Any

from ..invoke import CONSTRUCTORS
from ..iteration import iterate
from ..polyfills import groups
from ..signals import GraphBreak
from ..variables import Constant, ExceptionVariable, GroupVariable, TupleVariable, Variable
from .exceptions import construct_exception, exception_getattr, set_
from .table import rule


def construct_group(t, cls: type, args: list[Variable], kwargs: dict) -> Variable:
    """An instance of a class of exception groups."""
    if kwargs or len(args) != 2:
        _refuse(t, cls, len(args), bool(kwargs))
    message, listed = (t.realize(arg) for arg in args)
    if not isinstance(message, Constant) or message.type is not str:
        kind = message.type.__name__
        t.raise_exception(TypeError, f"{_NEW} argument 1 must be str, not {kind}")
    if not hasattr(listed.type, "__getitem__"):
        t.raise_exception(TypeError, "second argument (exceptions) must be a sequence")
    errors = [t.realize(error) for error in iterate(t, listed)]
    if not errors:
        t.raise_exception(
            ValueError, "second argument (exceptions) must be a non-empty sequence"
        )
    for index, error in enumerate(errors):
        if not isinstance(error, ExceptionVariable):
            t.raise_exception(
                ValueError, f"Item {index} of second argument (exceptions) is not an exception"
            )
    made = construct_exception(t, _class_for(t, cls, errors), args, kwargs)
    made.message, made.exceptions = message, t.new(TupleVariable(errors))
    return made


def _refuse(t, cls: type, count: int, named: bool) -> None:
    if named:
        raise GraphBreak("bad_arguments", cls.__qualname__)
    t.raise_exception(TypeError, f"{_NEW} takes exactly 2 arguments ({count} given)")


_NEW = "BaseExceptionGroup.__new__()"


def _class_for(t, cls: type, errors: list[Variable]) -> type:
    """A base group of exceptions is a group; a group holds exceptions only."""
    if all(issubclass(error.type, Exception) for error in errors):
        return ExceptionGroup if cls is BaseExceptionGroup else cls
    if cls is ExceptionGroup:
        t.raise_exception(TypeError, "Cannot nest BaseExceptions in an ExceptionGroup")
    if issubclass(cls, Exception):
        t.raise_exception(TypeError, f"Cannot nest BaseExceptions in {cls.__name__!r}")
    return cls


CONSTRUCTORS[BaseExceptionGroup] = CONSTRUCTORS[ExceptionGroup] = construct_group


@rule(setattr, GroupVariable)
def set_part(t, self, name, value):
    if t.constant(name) in ("message", "exceptions"):
        t.raise_exception(AttributeError, "readonly attribute")
    return set_(t, self, name, value)


@rule(getattr, GroupVariable)
def group_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key in ("message", "exceptions"):
        return getattr(self, key)
    return exception_getattr(t, self, name, default)


def _by_polyfill(method: Any, polyfill: Any) -> None:
    @rule(method, GroupVariable)
    def by_polyfill(t, self, argument):
        return t.inline_live(polyfill, [self, argument], {})


for _name in ("subgroup", "split", "derive"):
    _by_polyfill(getattr(BaseExceptionGroup, _name), getattr(groups, _name))


@rule((str, BaseExceptionGroup.__str__), GroupVariable)
def group_text(t, self):
    if self.cls.__str__ is not BaseExceptionGroup.__str__:
        return NotImplemented
    count = len(t.realize(self.exceptions).items)
    text = t.constant(self.message)
    return Constant(f"{text} ({count} sub-exception{'s' * (count > 1)})")
