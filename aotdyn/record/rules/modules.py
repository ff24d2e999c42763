"""Calling modules of torch.nn."""

import torch
from torch.nn.modules import module as torch_module

from ..attributes import static_lookup
from ..invoke import CALL_RULES
from ..operation import apply, call
from ..signals import GraphBreak
from ..variables import Constant, ObjectVariable, Variable
from .table import rule

_INSTANCE_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
_GLOBAL_HOOKS = (
    "_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
    "_global_backward_pre_hooks",
)  # fmt: skip


def call_module(t, value: ObjectVariable, args: list[Variable], kwargs: dict) -> Variable:
    """`Module.__call__` of a module without hooks is its `forward`."""
    caller, _ = static_lookup(value.cls, "__call__")
    if caller is not torch.nn.Module.__call__ or value.live is None:
        return NotImplemented
    own = value.live.__dict__
    if own.get("_compiled_call_impl") is not None:
        raise GraphBreak("hooks", "Module.compile() was called on it")
    if any(own.get(name) for name in _INSTANCE_HOOKS) or has_global_hooks():
        raise GraphBreak("hooks", value.cls.__qualname__)
    t.guard("NO_HOOKS", value.source)
    t.guard("NO_GLOBAL_HOOKS", None)
    return call(t, apply(t, getattr, [value, Constant("forward")]), args, kwargs)


def has_global_hooks() -> bool:
    """Whether hooks are registered for all modules of the process."""
    return any(getattr(torch_module, name) for name in _GLOBAL_HOOKS)


CALL_RULES[torch.nn.Module] = call_module


@rule(torch.nn.Module.__call__, ObjectVariable)
def module_call(t, self, *args, **kwargs):
    return call(t, self, list(args), kwargs)


@rule((torch.nn.Module.train, torch.nn.Module.eval, torch.nn.Module.to), ObjectVariable)
def change_module(t, self, *args, **kwargs):
    raise GraphBreak("mutation", "a module is switched or moved")
