"""`inspect.signature` of functions and methods: which parameters there are, of which kind."""

import inspect
from types import FunctionType

from ...package.reference import Import
from ...package.source import Attribute, Bound
from ...package.variant import code_hash
from ..signals import GraphBreak
from ..variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    Known,
    MethodVariable,
    ProxyVariable,
    Variable,
)
from .table import rule


class SignatureVariable(Variable):
    """An `inspect.Signature`. parameters: by name, in order."""

    __slots__ = ("parameters",)

    def __init__(self, parameters: dict[str, "ParameterVariable"]):
        super().__init__()
        self.parameters = parameters

    @property
    def type(self) -> type:
        return inspect.Signature


class ParameterVariable(Variable):
    """An `inspect.Parameter`. default: None where there is none."""

    __slots__ = ("name", "kind", "default")

    def __init__(self, name: str, kind: inspect._ParameterKind, has_default: bool):
        super().__init__()
        self.name = name
        self.kind = kind
        self.default = has_default

    @property
    def type(self) -> type:
        return inspect.Parameter


@rule(inspect.signature, FunctionVariable)
def signature(t, self):
    return t.new(SignatureVariable(_parameters(t, self)))


@rule(inspect.signature, MethodVariable)
def signature_of_method(t, self):
    function = t.realize(self.function)
    if not isinstance(function, FunctionVariable):
        raise GraphBreak("foreign_call", "inspect.signature")
    parameters = list(_parameters(t, function).items())
    if not parameters:
        raise GraphBreak("bad_arguments", function.qualname)
    first = parameters[0][1].kind
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return t.new(SignatureVariable(dict(parameters[1:] if first in named else parameters)))


def _parameters(t, function: FunctionVariable) -> dict[str, ParameterVariable]:
    """The parameters of the function itself or, as `inspect` does, of what it wraps."""
    live = function.live
    if live is None:
        bare = FunctionType(function.code, {})
        if function.attributes or function.defaults is not None or function.kwdefaults is not None:
            raise GraphBreak("foreign_call", "inspect.signature of a function made in the frame")
        return _of(bare)
    if "__signature__" in live.__dict__:
        raise GraphBreak("foreign_call", "inspect.signature of a function with __signature__")
    if "__wrapped__" in live.__dict__:
        wrapped = t.realize(t.lazy(live.__wrapped__, Attribute(function.source, "__wrapped__")))
        if not isinstance(wrapped, FunctionVariable):
            raise GraphBreak("foreign_call", "inspect.signature")
        return _parameters(t, wrapped)
    _rely_on_parameters(t, function)
    return _of(live)


def _rely_on_parameters(t, function: FunctionVariable) -> None:
    if isinstance(function.code_reference, Import):
        t.references.rely_on_code(function.live, function.code_reference)
        return
    t.guard("CODE", function.source, code_hash(function.code))
    for part in (function.defaults, function.kwdefaults):
        if part is not None:
            t.realize(part)


def _of(function: FunctionType) -> dict[str, ParameterVariable]:
    return {
        name: ParameterVariable(name, each.kind, each.default is not each.empty)
        for name, each in inspect.signature(function).parameters.items()
    }


@rule(getattr, SignatureVariable)
def signature_getattr(t, self, name, default=None):
    if t.constant(name) != "parameters":
        raise GraphBreak("attribute", f"Signature.{t.constant(name)}")
    items = {key: (Constant(key), value) for key, value in self.parameters.items()}
    return t.new(ProxyVariable(t.new(DictVariable(items))))


@rule(getattr, ParameterVariable)
def parameter_getattr(t, self, name, default=None):
    key = t.constant(name)
    if key == "name":
        return Constant(self.name)
    if key == "kind":
        return Known(self.kind, Bound(t.references.to(self.kind)))
    if key == "default" and not self.default:
        empty = inspect.Parameter.empty
        return Known(empty, Bound(t.references.to(empty)))
    if key in inspect.Parameter.__dict__ and key.isupper() or key == "empty":
        value = getattr(inspect.Parameter, key)
        return Known(value, Bound(t.references.to(value)))
    raise GraphBreak("attribute", f"Parameter.{key}")
