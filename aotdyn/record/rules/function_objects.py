"""Functions, methods and cells as objects, with their attributes; wrappers and caches of
`functools`; aliases in `operator`."""

import functools
import operator
import sys
import types

from ...package.reference import Import
from ...package.source import Attribute, Bound, Called
from ...package.variant import code_hash
from ..body import BodyWriter, rebuilds
from ..folding import plain
from ..members import no_attribute
from ..operation import apply, call
from ..own_operators import may_compare
from ..polyfills import caches
from ..signals import GraphBreak, NotConstant, Raised
from ..special_methods import COMPARISONS
from ..variables import (
    CellVariable,
    Constant,
    DictVariable,
    ExceptionVariable,
    FunctionVariable,
    Known,
    Lazy,
    ListVariable,
    MethodVariable,
    ObjectVariable,
    Symbolic,
    TupleVariable,
    Variable,
)
from ..wrap import wraps
from .table import calls, rule

NONE = Constant(None)

# -- cells and methods ------------------------------------------------------------


@rule(getattr, CellVariable)
def cell_getattr(t, self, name, default=None):
    if t.constant(name) != "cell_contents":
        return NotImplemented
    if self.content is None:
        t.raise_exception(ValueError, "Cell is empty")
    return self.content


@rule(setattr, CellVariable)
def cell_setattr(t, self, name, value):
    if t.constant(name) != "cell_contents":
        return NotImplemented
    t.effects.set_cell(self, value)
    return NONE


def _compare_cells(operation) -> None:
    @rule(operation, CellVariable)
    def compare(t, self, other):
        """By what they hold; an empty one comes first."""
        other = t.realize(other)
        if not isinstance(other, CellVariable):
            told = operation in (operator.eq, operator.ne) and not may_compare(t, other)
            return Constant(operation is operator.ne) if told else NotImplemented
        if self.content is None or other.content is None:
            return Constant(operation(self.content is not None, other.content is not None))
        return apply(t, operation, [self.content, other.content])


for _operation in COMPARISONS:
    _compare_cells(_operation)


@rule(types.MethodType)
def make_method(t, function, self_):
    return t.new(MethodVariable(t.realize(self_), t.realize(function)))


@rule(types.FunctionType.__get__, FunctionVariable)
def function_get(t, self, instance, owner=None):
    instance = t.realize(instance)
    if isinstance(instance, Constant) and instance.value is None:
        return self
    return t.new(MethodVariable(instance, self))


# -- attributes of functions and methods --------------------------------------------------


@rule(getattr, FunctionVariable)
def function_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key in self.attributes:
        return self.attributes[key]
    if key in ("__name__", "__qualname__") and self.live is None:
        return Constant(self.name if key == "__name__" else self.qualname)
    if key == "__get__":
        return MethodVariable(self, Known(types.FunctionType.__get__))
    if key == "__code__":
        return _code_of(t, self)
    if self.live is None:
        return _made_function_getattr(t, self, key, default)
    if not hasattr(self.live, key):
        t.guard("LACKS", Attribute(self.source, "__dict__"), key)
        if default is not None:
            return default
        t.raise_exception(AttributeError, key)
    return t.lazy(getattr(self.live, key), Attribute(self.source, key))


def _code_of(t, self: FunctionVariable) -> Variable:
    """A function's code object: all that it says is fixed by its hash."""
    if self.live is None:
        if self.code_reference is None:
            raise GraphBreak("attribute", f"the code of {self.qualname}")
        return Known(self.code, Bound(self.code_reference))
    if isinstance(self.code_reference, Import):
        t.references.rely_on_code(self.live, self.code_reference)
    else:
        t.guard("CODE", self.source, code_hash(self.code))
    return Known(self.code, Attribute(self.source, "__code__"))


def _made_function_getattr(
    t, self: FunctionVariable, key: str, default: Variable | None
) -> Variable:
    """An attribute of a function that the frame made."""
    if key == "__module__":
        return t.namespaces.module_name(self.globals) or Constant(None)
    if key == "__class__":
        return Known(types.FunctionType, Bound(t.references.to(types.FunctionType)))
    if key == "__globals__":
        return t.lazy(self.globals, t.globals_of(self))
    if key == "__doc__":
        consts = self.code.co_consts
        return Constant(consts[0] if consts and isinstance(consts[0], str) else None)
    if key in ("__defaults__", "__kwdefaults__"):
        return getattr(self, key.strip("_")) or Constant(None)
    if key == "__closure__":
        return t.new(TupleVariable(self.closure)) if self.closure else Constant(None)
    if key == "__annotations__":
        flat = t.realize(self.annotations).items if self.annotations is not None else []
        pairs = zip(flat[::2], flat[1::2], strict=True)
        made = {t.constant(name): (name, value) for name, value in pairs}
        self.attributes[key] = t.new(DictVariable(made))
        return self.attributes[key]
    is_of_all = key in vars(types.FunctionType) or key in vars(object)
    if default is not None and not is_of_all:
        return default
    if is_of_all:
        raise GraphBreak("attribute", f"{key} of a function made in the frame")
    no_attribute(t, self, key)
    raise AssertionError


@rule(setattr, FunctionVariable)
def function_setattr(t, self, name, value):
    if self.live is not None:
        raise GraphBreak("mutation", f"an attribute of the function {self.qualname}")
    key = t.constant(name)
    value = t.realize(value)
    if key in ("__defaults__", "__kwdefaults__"):
        _set_defaults(t, self, key, value)
    elif _has_meaning(key, value):
        raise GraphBreak("mutation", f"{self.qualname}.{key}")
    else:
        t.effects.set_function_attribute(self, key, value)
    return Constant(None)


def _has_meaning(key: str, value: Variable) -> bool:
    """Whether setting an attribute of a function does more than to keep a value, or is refused."""
    if key in ("__name__", "__qualname__"):
        return value.type is not str
    if key == "__annotations__":
        return value.type is not dict
    return key not in ("__doc__", "__module__") and hasattr(types.FunctionType, key)


def _set_defaults(t, self: FunctionVariable, key: str, value: Variable) -> None:
    kind, told = (TupleVariable, "tuple") if key == "__defaults__" else (DictVariable, "dict")
    is_none = isinstance(value, Constant) and value.value is None
    if not is_none and not isinstance(value, kind):
        t.raise_exception(TypeError, f"{key} must be set to a {told} object")
    t.effects.touch(self)
    setattr(self, key.strip("_"), None if is_none else value)


@rule(getattr, MethodVariable)
def method_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "__self__":
        return self.self_
    if key == "__func__":
        return self.function
    return apply(t, getattr, [self.function, name, *([] if default is None else [default])])


# -- functools ------------------------------------------------------------


@rule(functools.update_wrapper, FunctionVariable)
def update_wrapper(t, self, wrapped, assigned=None, updated=None):
    """Copies what names and documents a function to another one that the frame made."""
    wrapped = t.realize(wrapped)
    for given, usual in ((assigned, functools.WRAPPER_ASSIGNMENTS),
                         (updated, functools.WRAPPER_UPDATES)):  # fmt: skip
        if given is not None and t.constant(given) != usual:
            return NotImplemented
    if self.live is not None:
        return NotImplemented
    if not isinstance(wrapped, FunctionVariable):
        return NotImplemented
    for name in functools.WRAPPER_ASSIGNMENTS:
        function_setattr(t, self, Constant(name), function_getattr(t, wrapped, Constant(name)))
    for name, value in _own_attributes(t, wrapped).items():
        t.effects.set_function_attribute(self, name, value)
    t.effects.set_function_attribute(self, "__wrapped__", wrapped)
    return self


def _own_attributes(t, function: FunctionVariable) -> dict[str, Variable]:
    """What was set on a function."""
    found = {}
    if function.live is not None:
        own = t.realize(t.lazy(function.live.__dict__, Attribute(function.source, "__dict__")))
        t.complete(own)
        found = {name: value for name, (_, value) in own.items.items()}
    special = {*functools.WRAPPER_ASSIGNMENTS}
    return found | {k: v for k, v in function.attributes.items() if k not in special}


class CachedVariable(Variable):
    """A function under `functools.lru_cache` that existed before."""

    __slots__ = ("live", "function")

    def __init__(self, live, function: Variable, source):
        super().__init__(source)
        self.live = live
        self.function = function

    @property
    def type(self) -> type:
        return functools._lru_cache_wrapper

    def describe(self) -> str:
        return getattr(self.live, "__qualname__", "lru_cache")


@wraps(functools._lru_cache_wrapper)
def wrap_cached(t, value, source) -> Variable:
    function = t.lazy(value.__wrapped__, Attribute(source, "__wrapped__"))
    variable = CachedVariable(value, function, source)
    t.remember(value, variable)
    return variable


@calls(CachedVariable)
def call_cached(t, self, args, kwargs):
    """The function is run for what it depends on, and the cache asked for what it holds: where
    both agree on a plain constant, that is the result in every process. Where the function cannot
    be traced, or gives something else, the cache is asked at each call."""
    if _counts_calls(t, getattr(self.live.__wrapped__, "__code__", None)):
        raise _uncacheable(self, "whose calls are counted")
    args = [t.realize(arg) for arg in args]
    kwargs = {name: t.realize(arg) for name, arg in kwargs.items()}
    try:
        values = [plain(arg) for arg in args]
        named = {name: plain(arg) for name, arg in kwargs.items()}
    except NotConstant:
        return _call_uncached(t, self, args, kwargs)
    before = _outside(t)
    try:
        result = _traced_within(t, self, args, kwargs)
        value = plain(result)
        if _can_change(value):
            raise NotConstant("what the cache may give again")
    except (GraphBreak, NotConstant) as error:
        if before != _outside(t):
            if isinstance(error, GraphBreak):
                raise
            raise _uncacheable(self, "has effects") from None
        if isinstance(error, GraphBreak) and error.reason == "mutation":
            # It has them again where the cache has forgotten what it gave.
            raise
        return _ask_cache(t, self, values, named)
    # What it did to objects of its own has come to an end with it.
    if before != _outside(t):
        raise _uncacheable(self, "has effects")
    try:
        held = self.live(*values, **named)
    except Exception:
        # What it needs may not be there before the frame has run.
        raise _uncacheable(self) from None
    if type(held) is not type(value) or held != value:
        raise _uncacheable(self)
    return result


def _counts_calls(t, code: types.CodeType | None) -> bool:
    """Whether a frame may look at how often a cache is asked: no trace asks it as often. So may
    whoever has called the function itself, by way of the cache."""
    frame = t.frame
    while frame is not None and frame.code is not code and "cache_info" not in frame.code.co_names:
        frame = frame.caller
    return frame is not None


def _can_change(value: object) -> bool:
    """Whether a value is, or holds, one that may be changed."""
    if isinstance(value, tuple):
        return any(map(_can_change, value))
    return isinstance(value, list | dict | set)


def _traced_within(t, self: CachedVariable, args: list, kwargs: dict) -> Variable:
    """What the function gives. It changes nothing: a hit of the cache would not, either."""
    with t.effects.only_own():
        return t.realize(call(t, self.function, args, kwargs))


def _outside(t) -> tuple:
    """What tells whether a function has done more than to compute."""
    return len(t.effects.changed), len(t.effects.globals), t.graph.count_of_effects()


def _uncacheable(self: CachedVariable, why: str = "") -> GraphBreak:
    return GraphBreak("builtin_call", f"the cached {self.describe()} {why}".strip())


def _call_uncached(t, self: CachedVariable, args: list, kwargs: dict) -> Variable:
    """What a cached function gives for arguments that differ between calls, such as sizes.

    Who caches a function says that its arguments decide what it gives. It is traced as if there
    were no cache; what it makes is the cache's, which may give it again, also to others.
    """
    if not all(map(_is_hashable, (*args, *kwargs.values()))):
        raise _uncacheable(self)
    before = _outside(t)
    result = _traced_within(t, self, args, kwargs)
    if before != _outside(t):
        raise _uncacheable(self, "has effects")
    if not _keep(t, result):
        raise _uncacheable(self)
    return result


def _is_hashable(value: Variable) -> bool:
    """Whether a value is known to have a hash without running code of the program."""
    if isinstance(value, TupleVariable):
        return all(_is_hashable(item.known or item if type(item) is Lazy else item)
                   for item in value.items)  # fmt: skip
    if type(value) is Lazy:
        return isinstance(value.value, int | float | str | bytes | None)
    if isinstance(value, ObjectVariable):
        return value.cls.__hash__ is object.__hash__ and value.cls.__eq__ is object.__eq__
    return isinstance(value, Symbolic | Constant | Known | FunctionVariable)


def _keep(t, value: Variable) -> bool:
    """Notes that a cache holds a value, with all in it. Whether that can be told of it."""
    value = t.realize(value)
    if value.source is not None or isinstance(value, Constant | Known | Symbolic):
        return True
    if isinstance(value, ListVariable | TupleVariable):
        parts = value.items
    elif isinstance(value, DictVariable) and value.owner is None:
        parts = [part for pair in value.items.values() for part in pair]
    else:
        return False
    if not isinstance(value, TupleVariable):
        t.effects.kept[id(value)] = value
    return all(_keep(t, part) for part in parts)


def _ask_cache(t, self: CachedVariable, values: list, named: dict) -> Variable:
    """What a cached function gives for plain arguments; guarded by calling it again."""
    try:
        held = self.live(*values, **named)
    except Exception:
        raise _uncacheable(self, "raises") from None
    return t.lazy(held, Called(self.source, tuple(values), tuple(named.items())))


@rule(getattr, CachedVariable)
def cached_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "__wrapped__":
        return self.function
    if key.startswith("cache_"):
        raise GraphBreak("attribute", f"{self.describe()}.{key}")
    return apply(t, getattr, [self.function, name, *([] if default is None else [default])])


class MadeCache(Variable):
    """A function that the frame has put under `functools.lru_cache`. inner: the polyfill's object
    that does its work; attributes: what was set on it."""

    __slots__ = ("function", "maxsize", "typed", "inner", "attributes")

    def __init__(self, function: Variable, maxsize: Variable, typed: Variable, inner: Variable):
        super().__init__()
        self.function = function
        self.maxsize = maxsize
        self.typed = typed
        self.inner = inner
        self.attributes: dict[str, Variable] = {}

    @property
    def type(self) -> type:
        return functools._lru_cache_wrapper

    def describe(self) -> str:
        return f"the cached {self.function.describe()}"


@rule(functools._lru_cache_wrapper)
def make_cache(t, function, maxsize, typed, info):
    inner = t.construct(caches.Cache, [function, maxsize, typed], {})
    return t.new(MadeCache(t.realize(function), maxsize, typed, t.realize(inner)))


@calls(MadeCache)
def call_made_cache(t, self, args, kwargs):
    return call(t, self.inner, args, kwargs)


@rule(functools.update_wrapper, MadeCache)
def update_cache(t, self, wrapped, *others):
    return self


@rule(setattr, MadeCache)
def cache_setattr(t, self, name, value):
    t.effects.count += 1
    self.attributes[t.constant(name)] = value
    return NONE


@rule(getattr, MadeCache)
def made_cache_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key in self.attributes:
        return self.attributes[key]
    if key in ("cache_info", "cache_clear"):
        return apply(t, getattr, [self.inner, name])
    if key == "__wrapped__":
        return self.function
    return apply(t, getattr, [self.function, name, *([] if default is None else [default])])


@rebuilds(MadeCache)
def _rebuild_cache(w: BodyWriter, v: MadeCache) -> str:
    """What it has kept cannot be put into the real one."""
    counts = [v.inner.attributes[name].constant() for name in ("hits", "misses")]
    if any(counts) or set(v.attributes) - {"cache_parameters"}:
        raise GraphBreak("reconstruct", f"{v.describe()}, which has been called", v.origin)
    made = w.ref(Import("functools", "lru_cache"))
    return w.bind("cached", f"{made}({w.value(v.maxsize)}, {w.value(v.typed)})"
                            f"({w.value(v.function)})")  # fmt: skip


# -- operator ------------------------------------------------------------


def _alias(name, meant) -> None:
    @rule(name)
    def aliased(t, *args, **kwargs):
        return apply(t, meant, list(args), kwargs)


for _name, _meant in (
    (operator.inv, operator.invert),
    (operator.concat, operator.add),
    (operator.iconcat, operator.iadd),
    (operator.pos, operator.pos),
):
    if _name is not _meant:
        _alias(_name, _meant)


@rule(operator.call)
def operator_call(t, function, *args, **kwargs):
    return call(t, function, list(args), kwargs)


@rule(operator.length_hint)
def length_hint(t, self, default=None):
    if default is not None:
        apply(t, operator.index, [default])
    try:
        return apply(t, len, [self])
    except Raised:
        raise GraphBreak("builtin_call", "length_hint") from None


# -- the exception that is handled ---------------------------------------------------------


@rule(sys.exc_info)
def exc_info(t):
    handled = t.handled
    traceback = t.unmodelled("traceback")
    if not isinstance(handled, ExceptionVariable):
        # A caller of the entry may be handling one.
        return t.new(TupleVariable([t.unmodelled("type"), t.unmodelled("value"), traceback]))
    return t.new(TupleVariable([Known(handled.type), handled, traceback]))
