"""Modules of torch.nn: what calling them does, making their parts, switching and moving them."""

import inspect
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.nn.modules.lazy import LazyModuleMixin

from ...package.modules import calls_are_torchs, hook_kinds
from ...package.source import Item, ValueAt
from ..attributes import own_dict_source
from ..invoke import CALL_RULES, CONSTRUCTORS
from ..iteration import iterate
from ..members import lookup, static_lookup
from ..operation import apply, call, call_method, truth
from ..polyfills.modules import (
    all_are_there,
    all_train,
    group_tensors,
    run_forward,
    run_hooks,
    run_pre_hooks,
)
from ..signals import GraphBreak
from ..variables import (
    Constant,
    DictVariable,
    ObjectVariable,
    TensorVariable,
    TupleVariable,
    Variable,
)
from .module_hooks import are_pending, pending_hooks
from .table import rule

_INSTANCE_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
_GLOBAL_HOOKS = (
    "_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
    "_global_backward_pre_hooks",
)  # fmt: skip


def call_module(t, value: ObjectVariable, args: list[Variable], kwargs: dict) -> Variable:
    """A module is called by `Module.__call__`, if its class has no `__call__` of its own."""
    caller, _ = static_lookup(value.cls, "__call__")
    if caller is not torch.nn.Module.__call__:
        return NotImplemented
    t.classes.lookup(value.cls, "__call__")
    return _run_forward(t, value, args, kwargs)


def _run_forward(t, value: ObjectVariable, args: list[Variable], kwargs: dict) -> Variable:
    """`Module.__call__`: forward hooks and `forward`."""
    if lookup(t, value.cls, "_call_impl")[0] is not torch.nn.Module._call_impl:
        return call(t, t.class_attribute(value, "_call_impl"), args, kwargs)
    if not calls_are_torchs():
        raise GraphBreak("hooks", "calls of modules were replaced")
    if has_global_hooks():
        raise GraphBreak("hooks", "hooks for all modules")
    t.guard("NO_GLOBAL_HOOKS", None)
    forward = apply(t, getattr, [value, Constant("forward")])
    if value.live is None:
        _refuse_hooks_of_new(t, value)
        return call(t, forward, args, kwargs)
    _refuse_changed_hooks(t, value)
    own = value.live.__dict__
    if not own.keys() >= {*_INSTANCE_HOOKS}:
        raise GraphBreak("hooks", f"{value.cls.__qualname__}, whose registries are gone")
    if "_initialize_hook" in own and isinstance(value.live, LazyModuleMixin):
        raise GraphBreak("lazy", value.cls.__qualname__)
    if own.get("_compiled_call_impl") is not None:
        raise GraphBreak("hooks", "Module.compile() was called on it")
    if not any(own[name] for name in _INSTANCE_HOOKS):
        t.guard("NO_HOOKS", value.source)
        if not any(pending_hooks(t, value, name) for name in _INSTANCE_HOOKS):
            return call(t, forward, args, kwargs)
    elif hook_kinds(value.live) is None:
        raise GraphBreak("hooks", value.cls.__qualname__)
    else:
        t.guard("HOOKS", value.source, hook_kinds(value.live))
    named = {name: (Constant(name), each) for name, each in kwargs.items()}
    given = [t.new(TupleVariable(args)), t.new(DictVariable(named))]
    before = _hooks(t, value, "_forward_pre_hooks")
    given = iterate(t, t.inline_live(run_pre_hooks, [value, before, *given], {}))
    result = t.inline_live(run_forward, [forward, *given], {})
    # What has been registered or removed meanwhile counts.
    _refuse_changed_hooks(t, value)
    after = _hooks(t, value, "_forward_hooks")
    return t.inline_live(run_hooks, [value, after, *given, result], {})


def _hooks(t, value: ObjectVariable, registry: str) -> TupleVariable:
    """The hooks of one kind, each with whether it takes keyword arguments. How many there were
    and of which kind is guarded; their keys differ between processes."""
    own = value.live.__dict__
    with_kwargs = own[f"{registry}_with_kwargs"]
    source = Item(own_dict_source(value), registry)
    rows = [
        TupleVariable([t.lazy(hook, ValueAt(source, index)), Constant(key in with_kwargs)])
        for index, (key, hook) in enumerate(own[registry].items())
    ]
    for handle in pending_hooks(t, value, registry):
        row = TupleVariable([handle.hook, Constant(handle.options.get("with_kwargs", False))])
        rows.insert(0 if handle.options.get("prepend") else len(rows), row)
    return t.new(TupleVariable(rows))


def _refuse_hooks_of_new(t, value: ObjectVariable) -> None:
    """A module that the frame made has no hooks."""
    for name in _INSTANCE_HOOKS:
        held = t.realize(value.attributes[name]) if name in value.attributes else None
        if getattr(getattr(held, "contents", held), "items", None):
            raise GraphBreak("hooks", value.cls.__qualname__)


def _refuse_changed_hooks(t, value: ObjectVariable) -> None:
    """Hooks that the frame itself has added or removed are not followed, but for those that it has
    registered."""
    for name in _INSTANCE_HOOKS:
        if name in value.attributes:
            raise GraphBreak("hooks", value.cls.__qualname__)
        registry = t.known_at(Item(own_dict_source(value), name))
        registry = getattr(registry, "contents", registry)
        if isinstance(registry, DictVariable) and not are_pending(registry):
            raise GraphBreak("hooks", value.cls.__qualname__)


def has_global_hooks() -> bool:
    """Whether hooks are registered for all modules of the process."""
    return any(getattr(torch_module, name) for name in _GLOBAL_HOOKS)


CALL_RULES[torch.nn.Module] = call_module


@rule(torch.nn.Module.__call__, ObjectVariable)
def module_call(t, self, *args, **kwargs):
    """Asked for by name, from a `__call__` of the class' own for one."""
    return _run_forward(t, self, list(args), kwargs)


# -- parts of modules ------------------------------------------------------------


def _make_part(t, cls, args, kwargs) -> Variable:
    """A parameter or buffer: a node, for it shares the memory of what it is made of."""
    bound = inspect.signature(cls.__new__).bind(cls, *args, **kwargs).arguments
    data = t.realize(bound["data"]) if "data" in bound else Constant(None)
    if isinstance(data, Constant) and data.value is None:
        data = t.graph.call(torch.empty, [Constant(0)], {})
    plain = isinstance(data, TensorVariable) and data.cls in (torch.Tensor, torch.nn.Parameter)
    if not plain or t.graph.is_nested:
        raise GraphBreak("unknown_call", f"making a {cls.__qualname__}")
    options = [t.realize(value) for name, value in bound.items() if name not in ("cls", "data")]
    made = t.graph.call(cls, [data, *options], {})
    if cls is torch.nn.Buffer:
        made.attributes["persistent"] = t.wrap_result(made.fake.persistent)
    return made


for _cls in (torch.nn.Parameter, torch.nn.Buffer):
    CONSTRUCTORS[_cls] = _make_part


@rule(torch.nn.Module.train, ObjectVariable)
def switch_module(t, self, mode=None):
    """Nothing happens where all its modules are in this mode already."""
    return _unless_done(t, self, torch.nn.Module.train, [mode or Constant(True)], all_train)


@rule(torch.nn.Module.eval, ObjectVariable)
def module_in_evaluation(t, self):
    return call_method(t, self, "train", [Constant(False)])


def _unless_done(t, self: ObjectVariable, method: Any, args: list, is_done: Any) -> Variable:
    """A method of `nn.Module` that changes all modules below, unless a polyfill says that it
    would change nothing. A class below may have a method of its own."""
    name = method.__name__
    plain = self.live is not None
    for cls in {type(module) for module in self.live.modules()} if plain else ():
        plain = plain and lookup(t, cls, name)[0] is method
    if plain and truth(t, t.inline_live(is_done, [self, *args], {})):
        return self
    return t.inline_live(method, [self, *args], {})


@rule(torch.nn.Module.to, ObjectVariable)
def move_module(t, self, *args, **kwargs):
    """Nothing happens where all its tensors are there already."""
    values = [t.constant(arg) for arg in args]
    named = {name: t.constant(arg) for name, arg in kwargs.items()}
    device, dtype, _, layout = _parsed(values, named)
    plain = self.live is not None and layout is None and all(
        type(module)._apply is torch.nn.Module._apply for module in self.live.modules()
    )  # fmt: skip
    where = [Constant(device), Constant(dtype)]
    if plain and truth(t, t.inline_live(all_are_there, [self, *where], {})):
        return self
    return t.inline_live(torch.nn.Module.to, [self, *args], kwargs)


def _parsed(values: list, named: dict) -> tuple:
    try:
        return torch._C._nn._parse_to(*values, **named)
    except (RuntimeError, TypeError) as error:
        raise GraphBreak("bad_arguments", str(error).partition("\n")[0]) from None


@rule(torch._C._nn._parse_to)
def parse_to(t, *args, **kwargs):
    if any(isinstance(t.realize(arg), TensorVariable) for arg in (*args, *kwargs.values())):
        return NotImplemented
    named = {name: t.constant(arg) for name, arg in kwargs.items()}
    return t.wrap_result(_parsed([t.constant(arg) for arg in args], named))


@rule(torch._C._group_tensors_by_device_and_dtype)
def group_by_kind(t, lists, with_indices=None):
    return t.inline_live(group_tensors, [lists, with_indices or Constant(False)], {})
