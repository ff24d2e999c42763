"""Calling Python functions and classes: binding arguments, inlining, constructing objects."""

from types import CodeType, FunctionType
from typing import Any

import torch

from ..package.reference import Import
from ..package.source import Attribute, Bound
from ..policy import refusal_to_inline
from .frame import Frame
from .graph_ops import is_graph_operation
from .interpreter import run
from .namespaces import globals_source
from .opcodes.control import Return
from .opcodes.stack import MAKE_CELL
from .operation import apply, call, goes_to_graph
from .rules.table import find
from .signals import GraphBreak
from .variables import (
    Constant,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    GeneratorVariable,
    Known,
    ObjectVariable,
    TupleVariable,
    Variable,
)
from .wrap import dict_value, live_function

_VARARGS, _VARKEYWORDS = 0x04, 0x08
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
MAXIMUM_DEPTH = 120


def inline(
    t, function: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """Runs a Python function symbolically."""
    code = function.code
    if code.co_flags & (_COROUTINE | _ASYNC_GENERATOR | _ITERABLE_COROUTINE):
        raise GraphBreak("generator", code.co_name)
    if t.depth > MAXIMUM_DEPTH:
        raise GraphBreak("recursion", code.co_qualname)
    frame = new_frame(t, function, args, kwargs)
    if code.co_flags & _GENERATOR:
        # Runs up to RETURN_GENERATOR, which only sets up the object.
        frame.index = _after_return_generator(frame)
        return t.new(GeneratorVariable(frame, function, (args, kwargs)))
    return run_inlined(t, frame).value


def run_inlined(t, frame: Frame):
    """Runs a frame below the present one; returns how it ended."""
    outer = t.frame
    t.depth += 1
    try:
        return run(t, frame)
    finally:
        t.depth -= 1
        t.frame = outer


def _after_return_generator(frame: Frame) -> int:
    """The index behind RETURN_GENERATOR and its POP_TOP; cells before it are made here."""
    for ins in frame.decoded.instructions:
        if ins.opname == "RETURN_GENERATOR":
            return ins.index + 2
    raise GraphBreak("generator", frame.code.co_name)


def new_frame(
    t, function: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> Frame:
    """A frame with the arguments bound and the cells in place."""
    code = function.code
    if function.live is not None and isinstance(function.code_reference, Import):
        t.references.rely_on_code(function.live, function.code_reference)
    source = globals_source(function.globals, t.entry.globals)
    frame = Frame(code, function.globals, source, function, t.frame)
    frame.locals.update(bind(t, function, args, kwargs))
    for name, cell in zip(code.co_freevars, function.closure, strict=True):
        frame.cells[name] = t.realize(cell)
    if code.co_flags & _GENERATOR:
        _make_cells(t, frame)
    return frame


def _make_cells(t, frame: Frame) -> None:
    for ins in frame.decoded.instructions:
        if ins.opname == "RETURN_GENERATOR":
            return
        if ins.opname == "MAKE_CELL":
            MAKE_CELL(t, frame, ins)


def bind(
    t, function: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> dict[str, Variable]:
    """The arguments by parameter name, as Python binds them.

    Raises GraphBreak("bad_arguments") where Python raises TypeError.
    """
    code = function.code
    positional, keyword_only, varargs, varkeywords = parameters(code)
    bound: dict[str, Variable] = dict(zip(positional, args, strict=False))
    rest = args[len(positional) :]
    if varargs:
        bound[varargs] = t.new(TupleVariable(rest))
    elif rest:
        raise GraphBreak("bad_arguments", f"{function.name}() takes fewer arguments")
    extra: dict[str, Variable] = {}
    named = {*positional[code.co_posonlyargcount :], *keyword_only}
    for name, value in kwargs.items():
        if name not in named:
            extra[name] = value
        elif name in bound:
            raise GraphBreak("bad_arguments", f"{function.name}() got {name!r} twice")
        else:
            bound[name] = value
    if varkeywords:
        items = {name: (Constant(name), value) for name, value in extra.items()}
        bound[varkeywords] = t.new(DictVariable(items))
    elif extra:
        raise GraphBreak("bad_arguments", f"{function.name}() got {next(iter(extra))!r}")
    _fill_defaults(t, function, positional, keyword_only, bound)
    return bound


def parameters(code: CodeType) -> tuple[tuple, tuple, str | None, str | None]:
    """Names of positional and keyword-only parameters, of *args and of **kwargs."""
    count, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    index = count + only
    varargs = varkeywords = None
    if code.co_flags & _VARARGS:
        varargs = names[index]
        index += 1
    if code.co_flags & _VARKEYWORDS:
        varkeywords = names[index]
    return names[:count], names[count : count + only], varargs, varkeywords


def _fill_defaults(t, function: FunctionVariable, positional, keyword_only, bound: dict) -> None:
    missing = [name for name in positional if name not in bound]
    if missing:
        defaults = t.realize(function.defaults).items if function.defaults is not None else []
        offset = len(positional) - len(defaults)
        for name in missing:
            index = positional.index(name) - offset
            if index < 0:
                raise GraphBreak("bad_arguments", f"{function.name}() misses {name!r}")
            bound[name] = defaults[index]
    for name in keyword_only:
        if name in bound:
            continue
        found = None
        if function.kwdefaults is not None:
            found = dict_item(t, t.realize(function.kwdefaults), name)
        if found is None:
            raise GraphBreak("bad_arguments", f"{function.name}() misses {name!r}")
        bound[name] = found


def dict_item(t, mapping: DictVariable, key: Any) -> Variable | None:
    """A dict's item, or None if the dict does not have it."""
    if key in mapping.items:
        return mapping.items[key][1]
    if mapping.complete or key in mapping.absent:
        return None
    return dict_value(t, mapping, key)


def inline_live(
    t, function: FunctionType, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """Inlines a live function that the tracer reached as an operation."""
    reference = t.references_to(function)
    if reference is None:
        raise GraphBreak("no_source", function.__qualname__)
    variable = live_function(t, function, Bound(reference), reference)
    return inline(t, variable, args, kwargs)


def call_live(
    t, function: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """Calls a function that existed before: by a rule, as an operator, or by inlining it."""
    live = function.live
    first = t.realize(args[0]) if args else None
    if find(live, first) is not None:
        return apply(t, live, args, kwargs)
    if is_graph_operation(live):
        args = [t.realize(arg) for arg in args]
        kwargs = {key: t.realize(arg) for key, arg in kwargs.items()}
        if goes_to_graph(t, live, args, kwargs):
            return t.graph.call(live, args, kwargs)
    reason = refusal_to_inline(live)
    if reason is not None:
        raise GraphBreak(reason, live.__qualname__)
    return inline(t, function, args, kwargs)


def call_object(
    t, value: ObjectVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """Calls an instance: by a rule for its class, or by its `__call__`."""
    for base in value.cls.__mro__:
        found = CALL_RULES.get(base)
        if found is not None:
            result = found(t, value, args, kwargs)
            if result is not NotImplemented:
                return result
    return call(t, t.class_attribute(value, "__call__"), args, kwargs)


# class -> f(t, value, args, kwargs) for calling its instances
CALL_RULES: dict[type, Any] = {}
# class -> f(t, cls, args, kwargs) for making instances
CONSTRUCTORS: dict[type, Any] = {}


def construct(t, cls: type, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """Makes an instance of a class."""
    maker = CONSTRUCTORS.get(cls)
    if maker is not None:
        return maker(t, cls, args, kwargs)
    has_rule = find(cls, t.realize(args[0]) if args else None) is not None
    if (has_rule or cls.__module__ == "builtins") and not issubclass(cls, BaseException):
        return apply(t, cls, args, kwargs)
    if issubclass(cls, torch.nn.Module | torch.Tensor):
        raise GraphBreak("unknown_call", f"making a {cls.__qualname__}")
    if type(cls) is not type and not _plain_metaclass(type(cls)):
        raise GraphBreak("subclass", f"the metaclass of {cls.__qualname__}")
    if issubclass(cls, BaseException):
        return _exception(t, cls, args, kwargs)
    if issubclass(cls, tuple) and hasattr(cls, "_fields") and cls.__bases__ == (tuple,):
        return _named_tuple(t, cls, args, kwargs)
    return _object(t, cls, args, kwargs)


def _plain_metaclass(metaclass: type) -> bool:
    """Whether a metaclass leaves the making of instances to `type`."""
    return metaclass.__call__ is type.__call__


def _exception(t, cls: type, args: list[Variable], kwargs: dict) -> Variable:
    if kwargs or cls.__init__ is not _python_free(cls, "__init__"):
        raise GraphBreak("exception", f"{cls.__qualname__} has an __init__ of its own")
    return t.new(ExceptionVariable(cls, TupleVariable(args)))


def _python_free(cls: type, name: str) -> Any:
    """The special method if it is implemented in C, else None."""
    method = getattr(cls, name)
    return None if isinstance(method, FunctionType) else method


def _named_tuple(t, cls: type, args: list[Variable], kwargs: dict) -> Variable:
    new = cls.__new__
    reference = t.references_to(cls)
    defaults = cls._field_defaults
    fields = dict(zip(cls._fields, args, strict=False))
    if len(args) > len(cls._fields) or set(kwargs) - set(cls._fields) or set(kwargs) & set(fields):
        raise GraphBreak("bad_arguments", cls.__qualname__)
    fields.update(kwargs)
    for name in cls._fields:
        if name not in fields:
            if name not in defaults:
                raise GraphBreak("bad_arguments", f"{cls.__qualname__} misses {name!r}")
            if reference is None or not isinstance(new, FunctionType):
                raise GraphBreak("no_source", f"a default of {cls.__qualname__}")
            fields[name] = t.wrap_result(defaults[name])
    return t.new(TupleVariable([fields[name] for name in cls._fields], cls=cls))


def _object(t, cls: type, args: list[Variable], kwargs: dict) -> Variable:
    """An instance of a class with Python's own allocation."""
    if not cls.__flags__ & (1 << 9):
        raise GraphBreak("builtin_call", cls.__qualname__)
    if cls.__new__ is object.__new__:
        made = allocate(t, cls)
    else:
        new = cls.__new__
        if not isinstance(new, FunctionType):
            raise GraphBreak("unknown_call", f"{cls.__qualname__}.__new__")
        source = Attribute(Bound(t.references.to(cls)), "__new__")
        made = call(
            t, t.lazy(new, source), [Known(cls, Bound(t.references.to(cls))), *args], kwargs
        )
        made = t.realize(made)
        if not issubclass(made.type, cls):
            return made
    if cls.__init__ is object.__init__:
        if args or kwargs:
            raise GraphBreak("bad_arguments", f"{cls.__qualname__}() takes no arguments")
        return made
    call(t, t.class_attribute(made, "__init__"), args, kwargs)
    return made


def allocate(t, cls: type) -> ObjectVariable:
    """`object.__new__(cls)`."""
    if any(not base.__flags__ & (1 << 9) and base is not object for base in cls.__mro__):
        raise GraphBreak("subclass", cls.__qualname__)
    if getattr(cls, "__abstractmethods__", None):
        t.raise_exception(TypeError, f"Can't instantiate abstract class {cls.__name__}")
    return t.new(ObjectVariable(cls))


def step_generator(t, generator: GeneratorVariable, sent: Variable) -> Variable | None:
    """Runs a generator to its next yield. Returns what it yields, None when it has returned;
    its return value is then in `generator.result`."""
    if generator.running:
        t.raise_exception(ValueError, "generator already executing")
    if generator.finished:
        generator.result = Constant(None)
        return None
    frame = generator.frame
    frame.caller = t.frame
    if generator.started:
        frame.push(sent)
    generator.started = generator.running = True
    try:
        outcome = run_inlined(t, frame)
    except BaseException:
        generator.finished = True
        raise
    finally:
        generator.running = False
    if type(outcome) is Return:
        generator.finished = True
        generator.result = outcome.value
        return None
    return outcome.value
