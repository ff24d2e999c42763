"""Exceptions as objects: making them, their attributes and their text."""

import builtins
import types
from typing import Any

from ...package.source import Attribute
from ..attributes import generic_setattr, object_getattr
from ..invoke import CONSTRUCTORS, initialize
from ..members import C_MEMBERS, lookup
from ..operation import apply, call
from ..signals import GraphBreak
from ..variables import (
    DELETED,
    Constant,
    ExceptionVariable,
    GroupVariable,
    TupleVariable,
    Variable,
)
from .late_texts import joined, separated
from .table import rule
from .texts import text_of

NONE = Constant(None)
_CLASSES = [cls for cls in vars(builtins).values()
            if isinstance(cls, type) and issubclass(cls, BaseException)]  # fmt: skip

# Keyword arguments that exceptions of C take, by class.
_KEYWORDS: dict[type, tuple[str, ...]] = {
    AttributeError: ("name", "obj"),
    NameError: ("name",),
    ImportError: ("name", "path"),
}
# Classes whose arguments become attributes, or that hold other exceptions: not modelled.
_STRUCTURED = (OSError, UnicodeError, SyntaxError)


def construct_exception(t, cls: type, args: list[Variable], kwargs: dict) -> Variable:
    """An instance of an exception class, by its own `__init__` where it has one."""
    if isinstance(cls.__new__, types.FunctionType):
        raise GraphBreak("exception", f"{cls.__qualname__} has a __new__ of its own")
    if issubclass(cls, _STRUCTURED) and len(args) > 1:
        raise GraphBreak("exception", cls.__qualname__)
    kind = GroupVariable if issubclass(cls, BaseExceptionGroup) else ExceptionVariable
    made = t.new(kind(cls, t.new(TupleVariable(args))))
    init, _ = lookup(t, cls, "__init__")
    if isinstance(init, types.WrapperDescriptorType):
        _init(t, made, args, kwargs)
    else:
        initialize(t, made, args, kwargs)
    return made


def _init(t, self: ExceptionVariable, args: list[Variable], kwargs: dict) -> None:
    """What `BaseException.__init__` and the like do."""
    taken = next((names for cls, names in _KEYWORDS.items() if issubclass(self.cls, cls)), ())
    if set(kwargs) - set(taken):
        name = self.cls.__name__
        t.raise_exception(TypeError, f"{name}() takes no keyword arguments")
    self.args = t.new(TupleVariable(args))
    self.attributes.update({name: t.realize(kwargs.get(name, NONE)) for name in taken})
    if issubclass(self.cls, StopIteration):
        self.attributes["value"] = args[0] if args else NONE


CONSTRUCTORS[BaseException] = construct_exception


@rule(tuple({vars(cls)["__init__"] for cls in _CLASSES if "__init__" in vars(cls)}),
      ExceptionVariable)  # fmt: skip
def init(t, self, *args, **kwargs):
    if self.live is not None:
        raise GraphBreak("mutation", f"{self.cls.__qualname__}.__init__")
    t.effects.count += 1
    _init(t, self, list(args), kwargs)
    return NONE


_CHAIN = ("__cause__", "__context__", "__traceback__", "__suppress_context__")


@rule(getattr, ExceptionVariable)
def exception_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "args":
        return self.args
    if key in _CHAIN and self.live is not None:
        return t.lazy(getattr(self.live, key), Attribute(self.source, key))
    if key == "__suppress_context__":
        return Constant(self.suppressed)
    if key == "__traceback__":
        # Only what Python itself raises has one.
        raise GraphBreak("attribute", f"{self.cls.__qualname__}.__traceback__", self.origin)
    if key == "__cause__":
        return self.cause or Constant(None)
    if key == "__context__":
        return self.context or Constant(None)
    ended = key == "value" and issubclass(self.cls, StopIteration) and self.live is None
    if ended and key not in self.attributes:
        # One that was raised by the tracer itself.
        args = t.realize(self.args).items
        return args[0] if args else Constant(None)
    return object_getattr(t, self, name, default)


@rule(setattr, ExceptionVariable)
def set_(t, self, name, value):
    key = t.constant(name)
    setter = self.cls.__setattr__
    if not isinstance(setter, types.WrapperDescriptorType):
        call(t, t.class_attribute(self, "__setattr__"), [name, value])
    elif key == "args" and self.live is None:
        t.effects.count += 1
        self.args = t.realize(value)
        if not isinstance(self.args, TupleVariable):
            raise GraphBreak("exception", "args that are no tuple")
    elif key in ("__traceback__", "__cause__", "__context__") and self.live is None:
        held = t.realize(value)
        if key == "__traceback__":
            # Exceptions that the frame made have none while tracing.
            _require_traceback(t, held)
        else:
            t.effects.count += 1
            missing = isinstance(held, Constant) and held.value is None
            setattr(self, key.strip("_"), None if missing else held)
            self.suppressed = self.suppressed or key == "__cause__"
    elif key in ("args", "__cause__", "__context__", "__traceback__", "__suppress_context__"):
        raise GraphBreak("mutation", f"{self.cls.__qualname__}.{key}")
    else:
        generic_setattr(t, self, key, value)
    return NONE


def _require_traceback(t, value: Variable) -> None:
    if isinstance(value, Constant) and value.value is not None:
        t.raise_exception(TypeError, "__traceback__ must be a traceback or None")
    if not isinstance(value, Constant) and type(value) is not Variable:
        # Not one that is handed on from a handler.
        raise GraphBreak("mutation", "the traceback of an exception")


@rule(BaseException.__setattr__, ExceptionVariable)
def set_plain(t, self, name, value):
    generic_setattr(t, self, t.constant(name), value)
    return NONE


@rule(BaseException.with_traceback, ExceptionVariable)
def with_traceback(t, self, traceback):
    _require_traceback(t, t.realize(traceback))
    if self.live is not None:
        raise GraphBreak("mutation", "the traceback of an exception")
    return self


@rule(BaseException.add_note, ExceptionVariable)
def add_note(t, self, note):
    held = self.attributes.get("__notes__")
    if self.live is not None or (held is not None and held is not DELETED):
        raise GraphBreak("mutation", "the notes of an exception")
    t.effects.set_attribute(self, "__notes__", t.wrap_list([note]))
    return NONE


# Their text is not that of their arguments alone.
_TELLS_MEMBERS = (ImportError, OSError, SyntaxError, UnicodeError)


def _text(function: Any, method: str, plain_text: Any) -> None:
    @rule(function, ExceptionVariable)
    def text(t, self):
        held, _ = lookup(t, self.cls, method)
        if isinstance(held, types.FunctionType):
            return NotImplemented
        if self.live is not None:
            # Its message may differ each time.
            raise GraphBreak("builtin_call", f"the text of a {self.cls.__qualname__}")
        if held in (getattr(BaseException, method), KeyError.__str__):
            return plain_text(t, self)
        if issubclass(self.cls, _TELLS_MEMBERS) and any(
            isinstance(lookup(t, self.cls, name)[0], C_MEMBERS) for name in self.attributes
        ):
            # Its text is made of what the program has set, too.
            raise GraphBreak("builtin_call", f"the text of a {self.cls.__qualname__}")
        items = t.realize(self.args).items
        try:
            values = [t.constant(item) for item in items]
            by_code = isinstance(self.cls.__init__, types.FunctionType)
            made = self.cls.__new__(self.cls, *values) if by_code else self.cls(*values)
            result = getattr(made, method)()
        except (TypeError, AttributeError):
            raise GraphBreak("exception", f"the text of a {self.cls.__qualname__}") from None
        return Constant(result)


def _items(t, self: ExceptionVariable) -> list[Variable]:
    return [t.realize(item) for item in t.realize(self.args).items]


def _str(t, self: ExceptionVariable) -> Variable:
    items = _items(t, self)
    if not items:
        return Constant("")
    if len(items) > 1:
        return apply(t, repr, [TupleVariable(items)])
    quoted = self.cls.__str__ is KeyError.__str__
    return apply(t, repr if quoted else str, [items[0]])


def _repr(t, self: ExceptionVariable) -> Variable:
    parts = [text_of(t, item) for item in _items(t, self)]
    return joined(t, f"{self.cls.__name__}(", separated(t, ", ", parts), ")")


_text(str, "__str__", _str)
_text(repr, "__repr__", _repr)
