"""Kernels of Triton that the program launches: each launch is an operation of the graph, with what
the layers around the kernel choose decided while tracing."""

import inspect
import operator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...package.user_kernels import (
    function_of,
    is_dtype,
    is_host_function,
    is_kernel,
    launcher,
    layers,
    start,
)
from ..hazards import storage_of
from ..iteration import iterate
from ..kernel_texts import kernel_text
from ..operation import call
from ..polyfills import kernels as polyfills
from ..signals import GraphBreak
from ..variables import (
    Constant,
    DictVariable,
    HostFunctionVariable,
    KernelVariable,
    Known,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
)
from ..variables.library import BuiltVariable
from ..wrap import add_first_predicate, identity, known_by_identity
from .table import calls, rule


def _wrap_kernel(t, value: Any, source) -> Variable:
    found = KernelVariable(value, identity(t, value, source))
    reference = t.references_to(value)
    if reference is not None:
        t.references.rely_on_kernel(value, reference)
    return found


def _wrap_host_function(t, value: Any, source) -> Variable:
    return HostFunctionVariable(value, identity(t, value, source))


add_first_predicate(is_kernel, _wrap_kernel)
add_first_predicate(is_host_function, _wrap_host_function)
add_first_predicate(is_dtype, known_by_identity)


@calls(HostFunctionVariable)
def call_host_function(t, function: HostFunctionVariable, args: list, kwargs: dict) -> Variable:
    name = function.value.fn.__name__
    polyfill = getattr(polyfills, name, None)
    if polyfill is None or function.value.fn.__module__ != "triton":
        raise GraphBreak("foreign_call", name)
    return t.inline_live(polyfill, args, kwargs)


@rule(operator.getitem, KernelVariable)
def with_grid(t, kernel: KernelVariable, grid: Variable) -> Variable:
    return t.new(BuiltVariable(launcher, _LAUNCHER, [kernel, grid], {}, polyfills.launch))


_LAUNCHER = type(lambda: None)


@rule(start, KernelVariable)
def start_kernel(t, kernel: KernelVariable, grid, args, kwargs) -> Variable:
    """A node for a launch. What the layers choose is evaluated on fakes, as Python evaluates it."""
    given = [_passed(t, arg) for arg in iterate(t, args)]
    t.complete(kwargs := t.realize(kwargs))
    named = {name: _passed(t, value) for name, (_, value) in kwargs.items.items()}
    parameters = inspect.signature(function_of(kernel.value)).parameters
    bound = dict(zip(parameters, given, strict=False))
    if len(given) > len(parameters) or bound.keys() & named.keys():
        raise GraphBreak("bad_arguments", kernel.describe())
    _choose(t, kernel.value, bound, named)
    missing = [
        name for name, p in parameters.items()
        if name not in bound and name not in named and p.default is p.empty
    ]  # fmt: skip
    if missing:
        raise GraphBreak("bad_arguments", f"{kernel.describe()} without {missing[0]}")
    defaults = {
        name: Constant(p.default) for name, p in parameters.items() if p.default is not p.empty
    }
    grid = _evaluated(t, t.realize(grid), {**defaults, **bound, **named})
    sizes = [t.realize(size) for size in iterate(t, grid)]
    if not 1 <= len(sizes) <= 3 or not all(each.type is int for each in sizes):
        raise GraphBreak("bad_arguments", "the grid of a kernel")
    reference = t.graph.argument(kernel)
    t.graph.kernels.setdefault(reference, kernel_text(kernel.value, reference))
    t.graph.add(
        function_of(kernel.value).__name__,
        t.references.to(start),
        (
            reference,
            (list if grid.type is list else tuple)(map(t.graph.argument, sizes)),
            tuple(map(t.graph.argument, given)),
            {name: t.graph.argument(value) for name, value in named.items()},
        ),
    )
    for value in (*given, *named.values()):
        if isinstance(value, TensorVariable):
            _written(t, value.fake)
    return Constant(None)


def _passed(t, value: Variable) -> Variable:
    """An argument of a kernel: a tensor, a number or a constant."""
    value = t.realize(value)
    if isinstance(value, Symbolic) and value.type is not int:
        value = t.specialize(value)
    if isinstance(value, TensorVariable | Symbolic) or (
        isinstance(value, Constant) and isinstance(value.value, _PLAIN)
    ):
        return value
    if isinstance(value, Known) and is_dtype(value.value):
        return value
    raise GraphBreak("unknown_type", f"a kernel is given {value.describe()}")


_PLAIN = bool | int | float | str | None


def _choose(t, kernel: Any, bound: dict[str, Variable], named: dict[str, Variable]) -> None:
    """Adds what the layers around the kernel pass on besides."""
    for layer in layers(kernel):
        if hasattr(layer, "configs"):
            chosen = _configuration(t, layer, bound, named).all_kwargs()
        elif hasattr(layer, "values"):
            chosen = _heuristics(t, layer, bound, named)
        else:
            return
        named.update({name: Constant(value) for name, value in chosen.items()})


def _configuration(t, layer: Any, bound: dict, named: dict) -> Any:
    """The first configuration, of those that the program allows: no time is taken while tracing."""
    configs = list(layer.configs)
    if layer.early_config_prune:

        def prune(bound: dict, named: dict) -> list:
            return layer.early_config_prune(configs, bound, **named)

        configs = t.graph.run(prune, [_fakes(t, bound), _fakes(t, named)], {})
    if not configs or configs[0].pre_hook is not None or layer.user_defined_pre_hook:
        raise GraphBreak("foreign_call", "a hook of a kernel")
    return configs[0]


def _heuristics(t, layer: Any, bound: dict, named: dict) -> dict[str, Any]:
    def evaluate(bound: dict, named: dict) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, function in layer.values.items():
            found[name] = _plain(function({**bound, **named, **found}))
        return found

    return t.graph.run(evaluate, [_fakes(t, bound), _fakes(t, named)], {})


def _fakes(t, values: dict[str, Variable]) -> dict[str, Any]:
    return {name: t.graph.fake(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """A symbolic result fixed at its present value."""
    if isinstance(value, torch.SymBool):
        return bool(value)
    return int(value) if isinstance(value, torch.SymInt) else value


def _evaluated(t, grid: Variable, meta: dict[str, Variable]) -> Variable:
    """The grid itself, or what it gives for the arguments."""
    if isinstance(grid, TupleVariable) or grid.type is list:
        return grid
    known = DictVariable({name: (Constant(name), value) for name, value in meta.items()})
    return t.realize(call(t, grid, [t.new(known)]))


def _written(t, fake: FakeTensor) -> None:
    """A kernel may have written to the tensor."""
    t.shapes.fake_mode.hazards.changed.add(storage_of(fake))
    with t.shapes.fake_mode:
        torch.autograd.graph.increment_version(fake)
