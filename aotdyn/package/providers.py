"""Which modules and libraries register the operators that a graph calls: found out where the graph
is recorded, loaded where it is compiled."""

import importlib.util
import os
import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch._library import custom_ops, simple_registry

from .errors import AotdynError
from .own_builtins import BUILTINS as __builtins__  # noqa: F401

# (module, folder): a module to import, and the folder that it was found in; ("", path): a file of
# Python to run, or a shared library of operators.
Provider = tuple[str, str]

_BUILT_IN = frozenset(("aten", "prims", "prim", "inductor", "mkldnn", "quantized", "_quantized"))


class NotRegistered(AotdynError):
    """An operator is not known to this process. The message names it and says why."""


def operator_name(qualname: str) -> str:
    """`wt::plain` for `ops.wt.plain.default`, a name under torch; "" for what is no operator."""
    parts = qualname.split(".")
    return "::".join(parts[1:3]) if parts[0] == "ops" and len(parts) >= 3 else ""


def providers_of(qualnames: Iterable[str]) -> tuple[Provider, ...]:
    """What registers these operators, given by their names under torch."""
    found: dict[Provider, None] = {}
    for qualname in qualnames:
        name = operator_name(qualname)
        if name and name.partition("::")[0] not in _BUILT_IN:
            found.update(dict.fromkeys(_providers(name)))
    return tuple(found)


def load_providers(providers: Iterable[Provider], qualnames: Iterable[str]) -> None:
    """Registers operators, given by their names under torch, in this process.

    Raises NotRegistered.
    """
    wanted = [name for name in map(operator_name, qualnames) if name]
    reason = "it is not known what registers it"
    for provider in providers:
        if all(map(_is_registered, wanted)):
            return
        reason = _load(provider) or reason
    for name in wanted:
        if not _is_registered(name):
            raise NotRegistered(f"the operator {name} is not there: {reason}")


def named_provider(name: str) -> Provider:
    """A module or file that the user names."""
    return ("", os.path.abspath(name)) if name.endswith((".py", ".so")) else (name, "")


def _is_registered(name: str) -> bool:
    namespace, _, operator = name.partition("::")
    return hasattr(getattr(torch.ops, namespace), operator)


def _providers(name: str) -> list[Provider]:
    module = _module_of_definition(name) or _module_of_fake(name)
    if module is None:
        module = sys.modules.get(name.partition("::")[0])
    if module is not None:
        return [(module.__name__, _root(module))]
    return [("", str(path)) for path in sorted(torch.ops.loaded_libraries)]


def _module_of_definition(name: str) -> Any:
    """For operators made by `torch.library.custom_op`."""
    definition = custom_ops.OPDEFS.get(name)
    function = getattr(definition, "_init_fn", None)
    return sys.modules.get(getattr(function, "__module__", None) or "")


def _module_of_fake(name: str) -> Any:
    """For operators with a fake implementation in Python, which knows its file and line."""
    entry = simple_registry.singleton.get(name)
    for kernel in entry.fake_impl.kernels if entry is not None else ():
        file = kernel.source.rpartition(":")[0]
        for module in list(sys.modules.values()):
            if getattr(module, "__file__", None) == file:
                return module
    return None


def _root(module: Any) -> str:
    """The folder that has to be on the path for a module to be found."""
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    folder = os.path.dirname(os.path.abspath(file))
    depth = module.__name__.count(".") + (os.path.basename(file) == "__init__.py")
    for _ in range(depth):
        folder = os.path.dirname(folder)
    return folder


def _load(provider: Provider) -> str:
    """Loads one; the reason if it cannot be, else nothing."""
    module, path = provider
    if module == "__main__":
        return (
            "it is registered by the script itself, which is not run to compile it; move it to a "
            "module, or name the script with --import if it may be imported"
        )
    try:
        if module:
            _import(module, path)
        elif path.endswith(".py"):
            _run_file(os.path.abspath(path))
        else:
            torch.ops.load_library(path)
    except Exception as error:  # whatever a module of the user does
        return f"{module or path} cannot be loaded: {type(error).__name__}: {error}"
    return ""


def _import(module: str, folder: str) -> None:
    """The folder is only used where the path has no such module."""
    if folder and folder not in sys.path:
        sys.path.append(folder)
    importlib.import_module(module)


def _run_file(path: str) -> None:
    """Runs a file as a module of its own, once."""
    name = f"aotdyn import of {path}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
