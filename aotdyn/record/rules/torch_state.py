"""torch's process state: gradients, autocast, defaults. Read as constants that the state guard
covers; written both while tracing and, by a node, when the graph runs."""

import torch

from ..operation import apply
from ..references import importable
from ..signals import GraphBreak
from ..variables import Constant, Known, ObjectVariable, Variable
from ..wrap import add_predicate, identity
from .table import rule

# Functions that tell the state. The STATE guard holds all that they depend on.
_READS = (
    "is_grad_enabled", "is_autocast_enabled", "get_autocast_dtype", "is_autocast_cache_enabled",
    "get_default_dtype", "are_deterministic_algorithms_enabled", "is_inference_mode_enabled",
    "get_autocast_gpu_dtype", "get_autocast_cpu_dtype", "is_autocast_cpu_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
)  # fmt: skip

# Functions that change the state of this thread; they are nodes of the graph.
_WRITES = (
    "set_autocast_enabled", "set_autocast_dtype", "autocast_increment_nesting",
    "autocast_decrement_nesting", "set_autocast_cache_enabled", "clear_autocast_cache",
    "set_autocast_cpu_enabled", "set_autocast_cpu_dtype", "set_autocast_gpu_dtype",
)  # fmt: skip


def _read(function) -> None:
    @rule(function)
    def read(t, *args):
        return t.wrap_result(function(*map(t.constant, args)))


def _write(function) -> None:
    @rule(function)
    def write(t, *args):
        values = [t.constant(arg) for arg in args]
        result = function(*values)
        t.graph.add("state", t.references.to(function), tuple(values))
        t.effects.count += 1
        return t.wrap_result(result)


for _name in _READS:
    _read(getattr(torch, _name))
for _name in _WRITES:
    _write(getattr(torch, _name))
_write(torch._C._set_grad_enabled)


@rule(torch.set_grad_enabled)
def set_grad_enabled(t, mode):
    """As a call it takes effect at once; as a context manager it restores on exit."""
    made = t.new(ObjectVariable(torch.set_grad_enabled))
    made.attributes["prev"] = Constant(torch.is_grad_enabled())
    made.attributes["mode"] = t.realize(mode)
    apply(t, torch._C._set_grad_enabled, [mode])
    return made


def _constant(function, value) -> None:
    @rule(function)
    def answer(t, *args):
        return Constant(value)


for _function, _value in (
    (torch.jit.is_scripting, False),
    (torch.jit.is_tracing, False),
    (torch._C._get_tracing_state, None),
    # No mode or transform is active: frames under one are not traced.
    (torch._C._len_torch_dispatch_stack, 0),
    (torch._C._len_torch_function_stack, 0),
    (torch._C._functorch.peek_interpreter_stack, None),
    (torch._C._functorch.maybe_current_level, None),
    (torch.compiler.is_compiling, True),
    (torch.compiler.is_dynamo_compiling, True),
    (torch.compiler.is_exporting, False),
    (torch._utils.is_compiling, True),
    (torch.overrides.has_torch_function, False),
    (torch.overrides.has_torch_function_unary, False),
    (torch.overrides.has_torch_function_variadic, False),
    (torch._C._log_api_usage_once, None),
    (torch._C._is_torch_function_enabled, True),
):
    _constant(_function, _value)


@rule(torch.get_num_threads)
def get_num_threads(t):
    raise GraphBreak("builtin_call", "torch.get_num_threads")


class InfoVariable(Variable):
    """`torch.finfo(dtype)` or `torch.iinfo(dtype)`: all its attributes are constants."""

    __slots__ = ("value",)

    def __init__(self, value):
        super().__init__()
        self.value = value

    @property
    def type(self) -> type:
        return type(self.value)


def _info(cls: type) -> None:
    @rule(cls)
    def make(t, *args):
        return t.new(InfoVariable(cls(*map(t.constant, args))))


_info(torch.finfo)
_info(torch.iinfo)


@rule(getattr, InfoVariable)
def info_getattr(t, self, name):
    return t.wrap_result(getattr(self.value, t.constant(name)))


def _is_part_of_torch(value) -> bool:
    """One of the objects that torch's C extension keeps its functions in."""
    return type(value).__module__ == "torch._C" and importable(value) is not None


add_predicate(
    _is_part_of_torch, lambda t, value, source: Known(value, identity(t, value, source))
)
