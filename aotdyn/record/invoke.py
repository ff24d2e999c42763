"""Calling Python functions and classes: binding arguments, inlining, constructing objects."""

import enum
from types import CodeType, FunctionType
from typing import Any, NoReturn

import torch
from torch.nn.modules.lazy import LazyModuleMixin

from ..package.bare import BARE
from ..package.reference import Import
from ..package.source import Attribute, Bound, Source
from ..policy import only_tags, refusal_to_inline
from .array_functions import ARRAY_FUNCTIONS
from .dispatch import dispatch, is_dispatch, is_recursive_repr, recursive_repr
from .frame import Frame
from .graph_ops import is_graph_operation
from .interpreter import run
from .iteration import iterate
from .live_dicts import dict_item
from .members import is_from, lookup
from .namespaces import globals_source
from .opcodes.stack import MAKE_CELL
from .operation import apply, call, fold, goes_to_graph
from .own_operators import can_be_asked
from .rules.table import RULES, find
from .signals import GraphBreak, Raised, SkipFrame
from .stand_ins import argument_error
from .variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    GeneratorVariable,
    Known,
    MappingObject,
    MethodVariable,
    ObjectVariable,
    TupleVariable,
    Variable,
)
from .wrap import live_function

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
    watch = WATCHED.get(id(function.globals))
    if watch is not None:
        watch(t)
    if len(args) == 1 and is_dispatch(t, function):
        return dispatch(t, function, args[0])
    if len(args) == 1 and is_recursive_repr(function):
        return recursive_repr(t, function, args[0])
    if t.depth > MAXIMUM_DEPTH:
        _refuse_depth(t, code)
    frame = new_frame(t, function, args, kwargs)
    if code.co_flags & _GENERATOR:
        # Runs up to RETURN_GENERATOR, which only sets up the object.
        frame.index = _after_return_generator(frame)
        generator = t.new(GeneratorVariable(frame, function, (args, kwargs)))
        t.generators.append((generator, t.frame is t.root))
        return generator
    return run_inlined(t, frame).value


# id of the globals of a module -> what must be asked before one of its functions is inlined.
WATCHED: dict[int, Any] = {}


def _refuse_depth(t, code: CodeType) -> NoReturn:
    """Functions are inlined too deeply. One that calls itself so often gains nothing where each
    call is an entry of its own: it runs as plain Python."""
    frame = t.frame
    while frame.caller is not None:
        if frame.code is t.root.code:
            raise SkipFrame("recursion", code.co_qualname)
        frame = frame.caller
    raise GraphBreak("recursion", code.co_qualname)


def run_inlined(t, frame: Frame, raised: Raised | None = None):
    """Runs a frame below the present one, from where it stands or from what is raised there;
    returns how it ended."""
    outer = t.frame
    t.depth += 1
    try:
        return run(t, frame, raised)
    finally:
        raised = None  # its traceback leads here: it would keep itself
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
    source = rely_on_function(t, function)
    frame = Frame(code, function.globals, source, function, t.frame)
    try:
        frame.locals.update(bind(t, function, args, kwargs))
    except GraphBreak as misfit:
        if misfit.reason == "bad_arguments":
            _refuse_arguments(t, function, args, kwargs)
        raise
    for name, cell in zip(code.co_freevars, function.closure, strict=True):
        frame.cells[name] = t.realize(cell)
    if code.co_flags & _GENERATOR:
        _make_cells(t, frame)
    return frame


def rely_on_function(t, function: FunctionVariable) -> Source | None:
    """Notes that the code of a function is run; gives how its globals are reached."""
    if function.live is not None and isinstance(function.code_reference, Import):
        t.references.rely_on_code(function.live, function.code_reference)
    source = globals_source(function.globals, t.entry.globals)
    if source is None and function.source is not None:
        return Attribute(function.source, "__globals__")
    return source


def _refuse_arguments(t, function: FunctionVariable, args: list, kwargs: dict) -> None:
    """Raises the TypeError that Python raises for arguments that do not fit."""
    defaults = t.realize(function.defaults).items if function.defaults is not None else ()
    named: list[str] = []
    if function.kwdefaults is not None:
        mapping = t.realize(function.kwdefaults)
        t.complete(mapping)
        named = list(mapping.items)
    error = argument_error(
        function.code, function.qualname, len(defaults), named, len(args), list(kwargs)
    )
    if error is not None:
        t.raise_exception(TypeError, *error.args)


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
    if live in RULES:
        if find(live, t.realize(args[0]) if args else None) is not None:
            return apply(t, live, args, kwargs)
    elif is_graph_operation(live):
        args = [t.realize(arg) for arg in args]
        kwargs = {key: t.realize(arg) for key, arg in kwargs.items()}
        # A function of torch that gets a callable of the program is no single operator.
        objects = any(isinstance(arg, _OBJECTS) for arg in (*args, *kwargs.values()))
        if not objects and goes_to_graph(t, live, args, kwargs):
            found = _as_node(t, live, args, kwargs)
            if found is not None:
                return found
    elif live in ARRAY_FUNCTIONS:
        found = fold(t, live, args, kwargs)
        if found is not None:
            return found
    if only_tags(live.__code__):
        return call(t, t.realize(function.closure[0]).content, args, kwargs)
    reason = refusal_to_inline(live)
    if reason is not None:
        raise GraphBreak(reason, live.__qualname__)
    if args and _has_generated_new(live):
        return _named_tuple(t, t.constant(args[0]), args[1:], kwargs)
    return inline(t, function, args, kwargs)


_OBJECTS = ObjectVariable | FunctionVariable | MethodVariable


def _as_node(t, live: FunctionType, args: list[Variable], kwargs: dict) -> Variable | None:
    """What a Python function of torch gives as one operator; None where it looks at the data: a
    check in it that raises may be an assumption."""
    try:
        return t.graph.call(live, args, kwargs)
    except GraphBreak as error:
        if error.reason != "data_dependent" or refusal_to_inline(live) is not None:
            raise
    return None


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
    if lookup(t, value.cls, "__call__")[1] is None:
        t.raise_exception(TypeError, f"{value.cls.__name__!r} object is not callable")
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
    has_rule = cls is type or find(cls, t.realize(args[0]) if args else None) is not None
    is_plain = has_rule or cls in ARRAY_FUNCTIONS or cls.__module__ == "builtins"
    if is_plain and not issubclass(cls, BaseException):
        return apply(t, cls, args, kwargs)
    if issubclass(cls, torch.Tensor):
        raise GraphBreak("unknown_call", f"making a {cls.__qualname__}")
    if isinstance(cls, enum.EnumMeta):
        return CONSTRUCTORS[enum.Enum](t, cls, args, kwargs)
    metaclass = type(cls)
    if can_be_asked(cls):
        lookup(t, metaclass, "__call__")
    if metaclass.__call__ is not type.__call__:
        caller = metaclass.__call__
        if caller is dict:
            # A TypedDict.
            return apply(t, dict, args, kwargs)
        reference = Bound(t.references.to(metaclass))
        if not isinstance(caller, FunctionType) or is_from(metaclass, "torch"):
            raise GraphBreak("subclass", f"the metaclass of {cls.__qualname__}")
        made = t.lazy(caller, Attribute(reference, "__call__"))
        return call(t, made, [Known(cls, Bound(t.references.to(cls))), *args], kwargs)
    return construct_plainly(t, cls, args, kwargs)


def construct_plainly(t, cls: type, args: list[Variable], kwargs: dict) -> Variable:
    """`type.__call__`."""
    if issubclass(cls, BaseExceptionGroup):
        return CONSTRUCTORS[BaseExceptionGroup](t, cls, args, kwargs)
    if issubclass(cls, BaseException):
        return CONSTRUCTORS[BaseException](t, cls, args, kwargs)
    if issubclass(cls, tuple) and hasattr(cls, "_fields") and _has_generated_new(cls.__new__):
        made = _named_tuple(t, cls, args, kwargs)
        if isinstance(made, ObjectVariable) and isinstance(cls.__init__, FunctionType):
            initialize(t, made, args, kwargs)
        return made
    return _object(t, cls, args, kwargs)


def _named_tuple(t, cls: type, args: list[Variable], kwargs: dict) -> Variable:
    new = cls.__new__
    fields = dict(zip(cls._fields, args, strict=False))
    if len(args) > len(cls._fields) or set(kwargs) - set(cls._fields) or set(kwargs) & set(fields):
        _refuse_fields(t, cls, args, kwargs)
    fields.update(kwargs)
    if len(fields) < len(cls._fields):
        # The function's own ones: programs set them, and `_field_defaults` only tells of them.
        made = t.lazy(new, t.references.member_source(cls, "__new__"))
        defaults = t.realize(apply(t, getattr, [made, Constant("__defaults__")]))
        given = iterate(t, defaults) if isinstance(defaults, TupleVariable) else []
        named = dict(zip(cls._fields[::-1], given[::-1], strict=False))
        if any(name not in fields and name not in named for name in cls._fields):
            _refuse_fields(t, cls, args, kwargs)
        fields = {**named, **fields}
    items = t.new(TupleVariable([fields[name] for name in cls._fields]))
    return apply(t, tuple.__new__, [Known(cls, Bound(t.references.to(cls))), items])


def _has_generated_new(new: Any) -> bool:
    """Whether a `__new__` is the one that `namedtuple` makes."""
    names = getattr(new, "__globals__", {})
    return str(names.get("__name__", "")).startswith("namedtuple_") and "_tuple_new" in names


def _refuse_fields(t, cls: type, args: list[Variable], kwargs: dict) -> None:
    """The arguments do not fit the fields of a named tuple: raises what its `__new__` does."""
    try:
        cls.__new__(cls, *(None,) * len(args), **dict.fromkeys(kwargs))
    except TypeError as error:
        t.raise_exception(TypeError, *error.args)
    raise GraphBreak("bad_arguments", cls.__qualname__)


def _object(t, cls: type, args: list[Variable], kwargs: dict) -> Variable:
    """An instance of a class with Python's own allocation, or that of dict."""
    _refuse_finalizer(t, cls)
    if issubclass(cls, LazyModuleMixin):
        raise GraphBreak("lazy", cls.__qualname__)
    is_mapping = issubclass(cls, dict)
    if not cls.__flags__ & (1 << 9) and not is_mapping:
        raise GraphBreak("builtin_call", cls.__qualname__)
    if cls.__new__ is object.__new__ or is_mapping and not isinstance(cls.__new__, FunctionType):
        made = allocate(t, cls)
    elif cls.__new__ in _BUILTIN_NEWS:
        made = apply(t, cls.__new__, [Known(cls, Bound(t.references.to(cls))), *args], kwargs)
    else:
        new = cls.__new__
        if not isinstance(new, FunctionType):
            raise GraphBreak("unknown_call", f"{cls.__qualname__}.__new__")
        function = t.lazy(new, t.references.member_source(cls, "__new__"))
        made = call(t, function, [Known(cls, Bound(t.references.to(cls))), *args], kwargs)
        made = t.realize(made)
        if not issubclass(made.type, cls):
            return made
    if made.type.__init__ is object.__init__:
        if (args or kwargs) and cls.__new__ is object.__new__:
            t.raise_exception(TypeError, f"{cls.__name__}() takes no arguments")
        return made
    initialize(t, made, args, kwargs)
    return made


_BUILTIN_NEWS = (list.__new__, tuple.__new__, *(base.__new__ for base in BARE))


def _refuse_finalizer(t, cls: type) -> None:
    """When an object with `__del__` goes is seen; only the frame itself knows when it drops its
    last reference."""
    # Of what torch has for a device there are others where it has none.
    of_torch = is_from(cls, "torch")
    held = getattr(cls, "__del__", None) if of_torch else lookup(t, cls, "__del__")[0]
    if isinstance(held, FunctionType):
        if t.frame is t.root:
            raise SkipFrame("finalizer", cls.__qualname__)
        raise GraphBreak("finalizer", cls.__qualname__)


def initialize(t, made: Variable, args: list[Variable], kwargs: dict) -> None:
    """Calls `__init__` of a new object, as `type.__call__` does."""
    result = t.realize(call(t, t.class_attribute(made, "__init__"), args, kwargs))
    if result.type is not type(None):
        name = result.type.__name__
        t.raise_exception(TypeError, f"__init__() should return None, not {name!r}")


def allocate(t, cls: type) -> ObjectVariable:
    """`object.__new__(cls)`, or `dict.__new__(cls)`."""
    _refuse_finalizer(t, cls)
    if issubclass(cls, dict) and cls is not dict:
        return t.new(MappingObject(cls, DictVariable()))
    if any(not base.__flags__ & (1 << 9) and base is not object for base in cls.__mro__):
        raise GraphBreak("subclass", cls.__qualname__)
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if hasattr(cls, "__abstractmethods__") and not t.references.is_made(cls):
        source = Attribute(Bound(t.references.to(cls)), "__abstractmethods__")
        t.guard("MEMBERS" if missing else "EMPTY", source, tuple(missing) or None)
    if missing:
        what = f"abstract method{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
        t.raise_exception(TypeError, f"Can't instantiate abstract class {cls.__name__} with {what}")
    return t.new(ObjectVariable(cls))
