"""Functions of torch that the program has replaced: methods of tensors, torch.nn.functional; and
builtins of Python.

Graphs call the former by name and torch calls them from within, so no lookup of the program shows
that one has changed. They are part of the process' state (`state.py`). While a builtin is replaced
that any Python code may call, nothing can be traced.
"""

import builtins
import functools
import gc
import os
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F

from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .variant import code_hash

_TORCH = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
# The version number of a dict, which CPython 3.11 changes with every change of the dict.
version = torch._C._dynamo.guards.dict_version


def namespace_of(cls: type) -> dict[str, Any]:
    """A class' own dictionary, not the read-only proxy of it."""
    (namespace,) = gc.get_referents(cls.__dict__)
    return namespace


TENSOR = namespace_of(torch.Tensor)
FUNCTIONAL = vars(F)
_SPACES = {"Tensor": TENSOR, "functional": FUNCTIONAL}

# name of a namespace -> (its version, what `_foreign` found then)
_found: dict[str, tuple[int, dict[str, Any]]] = {}


def function_of(value: Any) -> Any:
    """The function inside a property, static method or class method; else the value itself."""
    if isinstance(value, property):
        return value.fget
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


def is_foreign(value: Any) -> bool:
    """Whether a function, or the one inside a property, was not written by torch."""
    function = function_of(value)
    return isinstance(function, FunctionType) and not _is_torchs(function.__code__.co_filename)


@functools.cache
def _is_torchs(path: str) -> bool:
    return os.path.realpath(path).startswith(_TORCH)


def _foreign(space: str) -> dict[str, Any]:
    """Name -> what was put there by others than torch."""
    namespace = _SPACES[space]
    known = _found.get(space)
    now = version(namespace)
    if known is None or known[0] != now:
        found = {name: value for name, value in namespace.items() if is_foreign(value)}
        known = _found[space] = (now, found)
    return known[1]


def replaced_methods() -> dict[str, Any]:
    """The methods and properties of tensors that are not torch's own, by name."""
    return _foreign("Tensor")


def replaced() -> list[list[str]]:
    """What is not torch's own, as data: (namespace, name, its function, hash of its code)."""
    rows = []
    for space in _SPACES:
        for name, value in _foreign(space).items():
            function = function_of(value)
            called = f"{function.__module__}:{function.__qualname__}"
            rows.append([space, name, called, code_hash(function.__code__)])
    return sorted(rows)


class Unchanged:
    """Whether the functions of torch are the objects that they were when this was made. The
    namespaces need a look only where they have not these versions."""

    def __init__(self) -> None:
        self._tensor = dict(TENSOR)
        self._functional = dict(FUNCTIONAL)
        self.versions = [version(TENSOR), version(FUNCTIONAL)]

    def again(self) -> bool:
        """The answer where a version has changed; takes over the new ones if nothing matters."""
        versions = [version(TENSOR), version(FUNCTIONAL)]
        if self.changed():
            return False
        self.versions[:] = versions
        return True

    def changed(self) -> str:
        """The first function that is another one, by name; "" if there is none."""
        before = self._tensor
        for name in {**before, **TENSOR}:
            # A name that hides a method of the base class counts, another new one does not.
            counts = name in before or hasattr(torch._C.TensorBase, name)
            if counts and TENSOR.get(name, before) is not before.get(name, before):
                return f"torch.Tensor.{name}"
        for name, value in self._functional.items():
            if FUNCTIONAL.get(name) is not value:
                return f"torch.nn.functional.{name}"
        return ""


_newest: list[Unchanged] = []


def unchanged() -> Unchanged:
    """The check that the functions of torch stay as they are now; shared by all who ask before
    one changes."""
    if not _newest or not _newest[0].again():
        _newest[:] = [Unchanged()]
    return _newest[0]


# Builtins that programs replace to see what is printed, opened or imported.
_OUTSIDE = {"print", "input", "open", "breakpoint", "help", "exit", "quit", "__import__"}
BUILTINS = {
    name: value
    for name, value in vars(builtins).items()
    if callable(value) and name not in _OUTSIDE
}  # fmt: skip


def builtins_replaced() -> bool:
    """Whether a builtin that the tracer itself may call is another object now. Calls none."""
    namespace = builtins.__dict__
    for name, value in BUILTINS.items():  # noqa: SIM110 - `any` is one of them
        if namespace.get(name) is not value:
            return True
    return False
