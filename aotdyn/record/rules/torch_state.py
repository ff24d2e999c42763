"""torch's process state: gradients, autocast, defaults. Read as constants that the state guard
covers; written both while tracing and, by a node, when the graph runs."""

from types import BuiltinFunctionType

import torch

from ...package.source import Bound, Called, Item
from ...package.state import KERNELS
from ..attributes import own_dict_source
from ..invoke import CALL_RULES, CONSTRUCTORS
from ..operation import apply, call, holds, is_none
from ..polyfills import shapes as shape_polyfills
from ..polyfills.contexts import Region
from ..references import importable
from ..signals import GraphBreak, Raised
from ..variables import (
    Constant,
    Known,
    MethodVariable,
    ObjectVariable,
    TupleVariable,
    Variable,
)
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

# Those of the kernels of attention, which the state guard holds where they matter.
_KERNELS = {function for pair in KERNELS for function in pair}


def _read(function) -> None:
    @rule(function)
    def read(t, *args):
        t.graph.attends |= function in _KERNELS
        return t.wrap_result(function(*map(t.constant, args)))


def _write(function) -> None:
    @rule(function)
    def write(t, *args):
        t.graph.attends |= function in _KERNELS
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
_write(torch._C._set_default_dtype)
for _reads, _writes in KERNELS:
    _read(_reads)
    _write(_writes)


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
    # No mode or transform is active: frames under one are not traced. But see `count_modes`.
    (torch._C._len_torch_dispatch_stack, 0),
    (torch._C._is_torch_function_mode_enabled, False),
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


@rule(torch.jit.isinstance)
def is_instance(t, obj, target_type):
    """Of a class it is what Python says; containers are asked for with what they contain."""
    kind = t.realize(target_type)
    if type(kind) is not Known or kind.value in (list, tuple, dict):
        return NotImplemented
    return apply(t, isinstance, [obj, kind]) if isinstance(kind.value, type) else NotImplemented


@rule((torch._C._is_autocast_available, torch.amp.is_autocast_available))
def is_autocast_available(t, device_type):
    """A fact of this build of torch."""
    return Constant(torch.amp.is_autocast_available(t.constant(device_type)))


@rule(torch._C._get_privateuse1_backend_name)
def backend_name(t):
    return Constant(torch._C._get_privateuse1_backend_name())


def _make_region(t, cls, args, kwargs):
    return t.construct(Region, args, kwargs)


CONSTRUCTORS[torch.autograd.profiler.record_function] = _make_region


def _call_custom_op(t, value, args, kwargs):
    """A function made by `torch.library.custom_op`: its operator."""
    operator = Item(own_dict_source(value), "_opoverload")
    return call(t, t.lazy(value.live._opoverload, operator), args, kwargs)


CALL_RULES[torch._library.custom_ops.CustomOpDef] = _call_custom_op


@rule(torch.device)
def device(t, *args, **kwargs):
    """A number alone would mean what accelerator this process has."""
    values = [t.constant(arg) for arg in args]
    named = {name: t.constant(arg) for name, arg in kwargs.items()}
    if not isinstance(named.get("type", values[0] if values else None), str | torch.device):
        return NotImplemented
    try:
        return Constant(torch.device(*values, **named))
    except (RuntimeError, TypeError) as error:
        raise Raised(t.exception(type(error), *error.args)) from None


@rule(torch.device.__enter__, Constant)
def enter_device(t, self):
    """Tensors that are made are made there; known to the tracer only."""
    t.graph.devices.append((self.value, t.step))
    t.effects.count += 1
    return self


@rule(torch.device.__exit__, Constant)
def leave_device(t, self, *error):
    if not t.graph.devices or t.graph.devices[-1][0] != self.value:
        raise GraphBreak("mode", "a device is left that was not entered here")
    t.graph.devices.pop()
    t.effects.count += 1
    return Constant(None)


@rule(torch._C._len_torch_function_stack)
def count_modes(t):
    """Frames under a mode are not traced."""
    if t.graph.devices:
        raise GraphBreak("mode", "a program looks for modes")
    return Constant(0)


@rule(torch.broadcast_shapes)
def broadcast_shapes(t, *shapes):
    shapes = [t.realize(shape) for shape in shapes]
    if holds(t, shapes)[1]:
        found = t.inline_live(shape_polyfills.broadcast_shapes, [t.new(TupleVariable(shapes))], {})
        if not is_none(t, found):
            return apply(t, torch.Size, [found])
    return t.wrap_result(torch.broadcast_shapes(*map(t.constant, shapes)))


# -- inference mode ------------------------------------------------------------


class InferenceGuard(Variable):
    """What `torch.inference_mode` enters and leaves. It cannot leave the frame."""

    __slots__ = ("mode",)

    def __init__(self, mode: bool):
        super().__init__()
        self.mode = mode


def _make_guard(t, cls, args, kwargs) -> Variable:
    return t.new(InferenceGuard(bool(t.constant(args[0])) if args else True))


CONSTRUCTORS[torch._C._InferenceMode] = _make_guard


def enter(guard):
    """Stands for its `__enter__`, which C++ has no name for."""


def leave(guard, *error):
    """Stands for its `__exit__`."""


@rule(getattr, InferenceGuard)
def guard_getattr(t, self, name):
    return MethodVariable(self, Known({"__enter__": enter, "__exit__": leave}[t.constant(name)]))


@rule(enter, InferenceGuard)
def enter_inference(t, self):
    t.graph.enter_inference(self.mode)
    t.effects.count += 1
    return self


@rule(leave, InferenceGuard)
def leave_inference(t, self, *error):
    if not t.graph.inference:
        raise GraphBreak("mode", "inference mode is left that was not entered here")
    t.graph.leave_inference()
    t.effects.count += 1
    return Constant(None)


# Functions that tell what may differ between calls and that no other guard covers.
_QUERIES = (
    torch.get_num_threads, torch.get_num_interop_threads, torch.get_float32_matmul_precision,
    torch.cuda.is_available, torch.cuda.device_count, torch.cuda.is_initialized,
    torch.cuda.is_bf16_supported, torch.xpu.is_available, torch.mps.is_available,
    torch.backends.mps.is_available, torch.distributed.is_available, torch.is_warn_always_enabled,
    torch.get_deterministic_debug_mode, torch.is_vulkan_available, torch.initial_seed,
    torch.backends.mkldnn.is_available, torch.backends.openmp.is_available,
    torch.backends.cuda.is_built, torch.accelerator.is_available,
    torch._C._accelerator_getAccelerator,
)  # fmt: skip


def _ask(function) -> None:
    @rule(function)
    def ask(t, *args):
        """The answer of now, asked again at each call."""
        values = tuple(map(t.constant, args))
        source = Called(Bound(t.references.to(function)), values)
        return t.realize(t.lazy(function(*values), source))


for _function in _QUERIES:
    _ask(_function)
for _name in ("is_initialized", "get_rank", "get_world_size"):
    if hasattr(torch.distributed, _name):
        _ask(getattr(torch.distributed, _name))
for _name, _function in list(vars(torch._C).items()):
    # The getters of flags: cudnn, mkldnn, matmul precision.
    is_flag = _name.startswith("_get_") and _name.endswith(
        ("_enabled", "_allow_tf32", "_deterministic", "_benchmark", "_sdp", "_reduction")
    )
    if is_flag and isinstance(_function, BuiltinFunctionType) and _function not in _KERNELS:
        _ask(_function)


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
