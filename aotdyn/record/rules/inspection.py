"""`inspect`, which is Python itself for the most part: what of it has a polyfill or a short cut."""

import inspect
from collections import OrderedDict
from types import CellType, FunctionType

from ...package.reference import Import
from ...package.source import Attribute, Bound
from ...package.variant import code_hash
from ..live_dicts import dict_item
from ..operation import apply
from ..polyfills import inspection
from ..variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    Known,
    MappingObject,
    MethodVariable,
    ObjectVariable,
    ProxyVariable,
    Variable,
)
from .table import rule

_Kind = inspect._ParameterKind


@rule(inspect.isclass)
def isclass(t, self):
    return Constant(isinstance(self, Known) and isinstance(self.value, type))


@rule(inspect.unwrap)
def unwrap(t, self, *, stop=None):
    return t.inline_live(inspection.unwrap, [self], {} if stop is None else {"stop": stop})


# -- inspect.signature, where it only asks what the parameters are -----------------------------


@rule(inspect.signature, FunctionVariable, MethodVariable)
def signature(t, self, **how):
    """What `inspect` works out in some hundred steps, for a function that it does not look into or
    behind."""
    function = t.realize(self.function) if isinstance(self, MethodVariable) else self
    if how or not isinstance(function, FunctionVariable) or _tells_another(t, function):
        return NotImplemented
    kinds = {name: each.kind for name, each in _parameters(function).items()}
    if isinstance(self, MethodVariable):
        first = next(iter(kinds), None)
        if first is None or kinds[first] in (_Kind.KEYWORD_ONLY, _Kind.VAR_KEYWORD):
            return NotImplemented
        if kinds[first] is not _Kind.VAR_POSITIONAL:
            del kinds[first]
    _rely_on_code(t, function)
    defaults, annotations = _defaults(t, function), _annotations(t, function)
    empty = t.lazy(inspect._empty, Bound(Import("inspect", "_empty")))
    parameters = {}
    for name, kind in kinds.items():
        made = t.new(ObjectVariable(inspect.Parameter))
        made.attributes = {
            "_kind": Known(kind, Bound(t.references.to(kind))),
            "_default": defaults.get(name, empty),
            "_annotation": annotations.get(name, empty),
            "_name": Constant(name),
        }
        parameters[name] = (Constant(name), made)
    made = t.new(ObjectVariable(inspect.Signature))
    made.attributes = {
        "_parameters": t.new(ProxyVariable(t.new(
            MappingObject(OrderedDict, t.new(DictVariable(parameters)))))),
        "_return_annotation": annotations.get("return", empty),
    }  # fmt: skip
    return made


def _tells_another(t, function: FunctionVariable) -> bool:
    """Whether a function has a signature other than that of its code."""
    if function.live is None:
        return not function.attributes.keys().isdisjoint(_SIGNATURES)
    own = t.realize(t.lazy(vars(function.live), Attribute(function.source, "__dict__")))
    return any(dict_item(t, own, name) is not None for name in _SIGNATURES)


_SIGNATURES = ("__wrapped__", "__signature__", "_partialmethod", "__text_signature__")


def _parameters(function: FunctionVariable) -> dict[str, inspect.Parameter]:
    cells = tuple(CellType() for _ in function.code.co_freevars)
    return dict(inspect.signature(FunctionType(function.code, {}, None, None, cells)).parameters)


def _rely_on_code(t, function: FunctionVariable) -> None:
    if function.live is None:
        return
    if isinstance(function.code_reference, Import):
        t.references.rely_on_code(function.live, function.code_reference)
    else:
        t.guard("CODE", function.source, code_hash(function.code))


def _defaults(t, function: FunctionVariable) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    if function.defaults is not None:
        items = t.realize(function.defaults).items
        positional = function.code.co_varnames[: function.code.co_argcount]
        found.update(zip(positional[len(positional) - len(items) :], items, strict=True))
    if function.kwdefaults is not None:
        mapping = t.realize(function.kwdefaults)
        t.complete(mapping)
        found.update({name: value for name, (_, value) in mapping.items.items()})
    return found


def _annotations(t, function: FunctionVariable) -> dict[str, Variable]:
    mapping = t.realize(apply(t, getattr, [function, Constant("__annotations__")]))
    t.complete(mapping)
    return {name: value for name, (_, value) in mapping.items.items()}
