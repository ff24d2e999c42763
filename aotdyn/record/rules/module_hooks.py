"""Hooks that a frame registers on modules which came in, around their forward: calls in the frame
run them, and they are registered when the graph has run.

The registries hold each under its handle meanwhile: the number that torch gives it is another one
at each call.
"""

import torch
from torch.utils.hooks import RemovableHandle

from ..body import BodyWriter, rebuilds
from ..operation import apply
from ..signals import GraphBreak
from ..variables import Constant, DictVariable, ObjectVariable, Variable
from .hooks import HandleVariable, handle_getattr
from .table import rule


class ModuleHandle(HandleVariable):
    """That of a hook on a module. options: the keyword arguments given; registries: the dicts that
    hold the hook, the one of the hooks themselves first."""

    __slots__ = ("options", "registries")

    def __init__(self, of: ObjectVariable, hook: Variable, method: str, options: dict[str, bool]):
        super().__init__(of, hook, method)
        self.options = options
        self.registries: list[DictVariable] = []


class NumberVariable(Variable):
    """The number of a hook, which stands for it in the registries."""

    __slots__ = ("handle",)

    def __init__(self, handle: ModuleHandle):
        super().__init__()
        self.handle = handle

    @property
    def type(self) -> type:
        return int

    @property
    def key(self) -> ModuleHandle:
        """What stands for it in a dict."""
        return self.handle

    def describe(self) -> str:
        return "the number of a hook"


def pending_hooks(t, module: ObjectVariable, registry: str) -> list[ModuleHandle]:
    """The hooks of one kind that the frame has given to a module, in order."""
    return [
        handle for handle in t.effects.hooks
        if isinstance(handle, ModuleHandle) and handle.active
        and handle.of is module and _REGISTRIES[handle.method] == registry
    ]  # fmt: skip


_REGISTRIES = {
    "register_forward_hook": "_forward_hooks",
    "register_forward_pre_hook": "_forward_pre_hooks",
}


@rule(torch.nn.Module.register_forward_hook, ObjectVariable)
def register_forward_hook(t, self, hook, *, prepend=None, with_kwargs=None, always_call=None):
    if always_call is not None and t.constant(always_call):
        raise GraphBreak("hooks", "a hook that is always called")
    return _register(t, self, hook, "register_forward_hook", prepend, with_kwargs)


@rule(torch.nn.Module.register_forward_pre_hook, ObjectVariable)
def register_forward_pre_hook(t, self, hook, *, prepend=None, with_kwargs=None):
    return _register(t, self, hook, "register_forward_pre_hook", prepend, with_kwargs)


def _register(t, module: ObjectVariable, hook: Variable, method: str, prepend, with_kwargs):
    if module.live is None:
        raise GraphBreak("hooks", f"Module.{method} of a module made in the frame")
    given = {"prepend": prepend, "with_kwargs": with_kwargs}
    options = {name: bool(t.constant(value)) for name, value in given.items() if value is not None}
    handle = t.new(ModuleHandle(module, t.realize(hook), method, options))
    number = NumberVariable(handle)
    name = _REGISTRIES[method]
    _hold(t, handle, name, number, handle.hook)
    if options.get("prepend"):
        t.effects.move(handle.registries[0], handle, last=False)
    if options.get("with_kwargs"):
        _hold(t, handle, f"{name}_with_kwargs", number, Constant(True))
    t.effects.hooks.append(handle)
    return handle


def _hold(t, handle: ModuleHandle, name: str, number: Variable, value: Variable) -> None:
    """Puts what belongs to a hook into a registry of its module."""
    registry = t.realize(apply(t, getattr, [handle.of, Constant(name)]))
    registry = getattr(registry, "contents", registry)
    if not isinstance(registry, DictVariable):
        raise GraphBreak("hooks", f"{handle.of.cls.__qualname__}.{name}")
    t.effects.set_item(registry, handle, number, value)
    handle.registries.append(registry)


def are_pending(registry: DictVariable) -> bool:
    """Whether all that the frame has done to a registry is to register hooks."""
    return all(isinstance(change[1], ModuleHandle) for change in registry.changes)


# -- handles ------------------------------------------------------------


@rule(getattr, ModuleHandle)
def module_handle_getattr(t, self, name):
    return NumberVariable(self) if t.constant(name) == "id" else handle_getattr(t, self, name)


@rule(RemovableHandle.remove, ModuleHandle)
def remove_hook(t, self):
    """Of a hook that is gone nothing is written back, unless the program keeps its handle."""
    for registry in self.registries:
        t.effects.touch(registry)
        registry.items.pop(self, None)
        registry.changes[:] = [change for change in registry.changes if change[1] is not self]
        if registry.below is not None:
            registry.below.pop(self, None)
    self.active = False
    t.effects.count += 1
    return Constant(None)


@rebuilds(ModuleHandle)
def _handle(w: BodyWriter, v: ModuleHandle) -> str:
    given = "".join(f", {name}={value}" for name, value in v.options.items())
    name = w.bind("handle", f"{w.value(v.of)}.{v.method}({w.value(v.hook)}{given})")
    if not v.active:
        w.lines.append(f"{name}.remove()")
    return name


@rebuilds(NumberVariable)
def _number(w: BodyWriter, v: NumberVariable) -> str:
    return f"{w.value(v.handle)}.id"
