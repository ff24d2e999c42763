"""A stand-in for Triton where it is not installed: a program that defines kernels can be imported,
and is served from a package that has their machine code. Its kernels cannot be run by themselves.

Put in place by `aotdyn.load` and `aotdyn run`, on request. It looks as `package/user_kernels.py`
expects of the library.
"""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

_NAME = "triton"


class KernelInterface:
    """What the decorators make. fn: the next layer."""

    def __init__(self, fn: Any, **facts: Any):
        self.fn = fn
        self.__dict__.update(facts)
        self.__name__ = fn.__name__
        self.__module__ = fn.__module__
        self.__qualname__ = fn.__qualname__
        if not hasattr(self, "arg_names"):
            known = getattr(fn, "arg_names", None)
            self.arg_names = known or list(inspect.signature(fn).parameters)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return self.run

    def run(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"Triton is not installed: the kernel {self.__name__} runs as a part of packaged "
            "graphs for its GPU only"
        )


class ConstexprFunction:
    """A function for grids and constants."""

    def __init__(self, fn: Callable):
        self.fn = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


class Config:
    """A configuration of a kernel that is tuned."""

    def __init__(
        self, kwargs, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, pre_hook=None,
        ir_override=None,
    ):  # fmt: skip
        self.kwargs = kwargs
        self.pre_hook = pre_hook
        self._options = {
            "num_warps": num_warps, "num_ctas": num_ctas, "num_stages": num_stages,
            "maxnreg": maxnreg, "ir_override": ir_override,
        }  # fmt: skip

    def all_kwargs(self) -> dict[str, Any]:
        return {**self.kwargs, **{k: v for k, v in self._options.items() if v is not None}}


class constexpr:
    """A constant of a kernel; also the annotation of one."""

    def __init__(self, value: Any):
        self.value = value


def jit(fn: Any = None, **options: Any) -> Any:
    return (lambda decorated: jit(decorated)) if fn is None else KernelInterface(fn)


def autotune(configs: list, key: list, prune_configs_by: Any = None, **options: Any) -> Any:
    prune = (prune_configs_by or {}).get("early_config_prune")
    hooked = options.get("pre_hook") is not None
    facts = {"early_config_prune": prune, "user_defined_pre_hook": hooked}
    return lambda fn: KernelInterface(fn, configs=configs or [Config({})], keys=key, **facts)


def heuristics(values: dict) -> Any:
    return lambda fn: KernelInterface(fn, values=values)


def cdiv(x: int, y: int) -> int:
    return (x + y - 1) // y


def next_power_of_2(n: int) -> int:
    return 1 << (n - 1).bit_length() if n > 0 else 0


for _kind in (KernelInterface, ConstexprFunction):
    _kind.__module__ = "triton.runtime.jit"
for _function in (cdiv, next_power_of_2):
    _function.__module__ = _NAME

_CONTENTS: dict[str, dict[str, Any]] = {
    _NAME: {
        "jit": jit, "autotune": autotune, "heuristics": heuristics, "Config": Config,
        "constexpr_function": ConstexprFunction, "cdiv": ConstexprFunction(cdiv),
        "next_power_of_2": ConstexprFunction(next_power_of_2), "__version__": "0",
    },
    "triton.language": {"constexpr": constexpr},
    "triton.runtime.jit": {"KernelInterface": KernelInterface, "JITFunction": KernelInterface},
    "triton.runtime.autotuner": {"Autotuner": KernelInterface, "Heuristics": KernelInterface},
}  # fmt: skip


class _Anything:
    """What only code on the GPU uses: a name that may be looked up, called and annotated with."""

    def __getattr__(self, name: str) -> "_Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> "_Anything":
        return self


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self.__dict__[name] = _Anything()  # the same each time: guards compare it
        return found


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `triton` and all that is below it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != _NAME:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(_CONTENTS.get(module.__name__, {}))


def stand_in() -> bool:
    """From now on programs find the stand-in. Whether it was needed: not where there is Triton."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return True
    if _NAME in sys.modules or importlib.util.find_spec(_NAME) is not None:
        return False
    sys.meta_path.insert(0, _Finder())
    importlib.import_module("triton.language")
    return True


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """For compilers, which must not take the stand-in for the library."""
    found = sys.modules.get(_NAME)
    if not isinstance(found, _Module):
        yield
        return
    sys.modules[_NAME] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules[_NAME] = found
