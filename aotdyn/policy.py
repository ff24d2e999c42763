"""Which Python functions are inlined, which frames are traced: the one list of libraries whose
code is pointless to trace."""

import dis
import functools
import os
import random
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import torch

from .markers import is_disabled
from .package.own_builtins import BUILTINS as __builtins__  # noqa: F401

_STDLIB = os.path.realpath(os.path.dirname(os.__file__)) + os.sep
_SITE = "site-packages" + os.sep
_TORCH = os.path.dirname(os.path.realpath(torch.__file__)) + os.sep
_OURS = os.path.dirname(os.path.realpath(__file__)) + os.sep

# Modules of the standard library that are plain Python over plain data.
_TRACED_STDLIB = {
    "functools", "collections", "contextlib", "dataclasses", "copy", "enum", "abc", "types",
    "numbers", "operator", "typing", "_collections_abc", "bisect", "heapq", "statistics",
    "fractions", "textwrap", "string", "keyword", "reprlib", "copyreg", "warnings",
    "math", "itertools", "weakref", "os", "inspect", "logging", "posixpath", "genericpath",
    "_weakrefset", "pathlib", "uuid",
}  # fmt: skip

# Libraries that work on arrays of their own, on files, or on the process.
_FOREIGN = {
    "numpy", "scipy", "pandas", "sklearn", "matplotlib", "PIL", "tqdm", "sympy", "networkx",
    "triton", "numba", "jax", "tensorflow", "cv2", "joblib", "requests", "urllib3", "pytest",
    "_pytest", "pluggy", "hypothesis", "msgpack", "click", "rich", "wandb", "tensorboard",
}  # fmt: skip

# Parts of torch that manage the process, compile, or trace.
_TORCH_FOREIGN = (
    "_dynamo", "_inductor", "_functorch", "fx", "jit", "onnx", "export", "_export", "compiler",
    "distributed", "multiprocessing", "profiler", "_subclasses", "_higher_order_ops", "package",
    "testing", "_logging", "hub", "serialization.py", "overrides.py", "_compile.py", "library.py",
    "_library", "autograd", "cuda", "utils" + os.sep + "data", "_ops.py", "func" + os.sep,
    "utils" + os.sep + "checkpoint.py", "utils" + os.sep + "hooks.py", "optim",
    os.path.join("nn", "modules", "lazy.py"),
)  # fmt: skip

# Exceptions to the above: contexts that only switch the state of the process, decorators, and what
# tells types to torch.jit.
_TORCH_TRACED = (
    os.path.join("autograd", "grad_mode.py"),
    os.path.join("autograd", "function.py"),
    os.path.join("cuda", "amp"),
    os.path.join("_functorch", "functional_call.py"),
    os.path.join("jit", "__init__.py"),
)


def _module_of(path: str, root: str) -> str:
    return path.removeprefix(root).partition(os.sep)[0].removesuffix(".py")


def is_foreign(code: CodeType) -> bool:
    """Whether a code object belongs to a library that is not traced."""
    return _is_foreign_file(code.co_filename)


@functools.lru_cache(maxsize=4096)
def _is_foreign_file(path: str) -> bool:
    if path.startswith("<"):
        # Made by dataclasses, namedtuple and the like, or typed in.
        if path.startswith("<aotdyn"):
            return True
        return path.startswith("<frozen") and path[8:-1] not in _TRACED_STDLIB
    path = os.path.realpath(path)
    if _is_ours(path):
        return not path.startswith(_POLYFILLS)
    if path.startswith(_TORCH):
        inner = path.removeprefix(_TORCH)
        return inner.startswith(_TORCH_FOREIGN) and not inner.startswith(_TORCH_TRACED)
    if _SITE in path:
        return _module_of(path, path.partition(_SITE)[0] + _SITE) in _FOREIGN
    if path.startswith(_STDLIB):
        return _module_of(path, _STDLIB) not in _TRACED_STDLIB
    return False


def _is_ours(path: str) -> bool:
    """Whether a file belongs to aotdyn itself; the examples it ships are a user's programs."""
    return path.startswith(_OURS) and not path.startswith(_OURS + "examples" + os.sep)


_POLYFILLS = os.path.join(_OURS, "record", "polyfills") + os.sep


def refusal_to_inline(function: FunctionType) -> str | None:
    """The reason for which a function is not inlined, None if it is."""
    if is_disabled(function):
        return "disabled"
    if is_random(function):
        return "random"
    if is_foreign(function.__code__):
        return "foreign_call"
    return None


_TAGGING = os.path.join(_TORCH, "_dynamo", "mutation_guard.py")


def only_tags(code: CodeType) -> bool:
    """Whether a function is what torch's compiler puts in place of one that makes modules: it calls
    that, its only free variable, and notes for the compiler alone when the module was made."""
    return code.co_filename == _TAGGING and code.co_freevars in (("init",), ("setstate",))


def is_random(function: Any) -> bool:
    """Whether a function draws numbers from a generator of Python's `random`, or sets one up."""
    # Other objects are not asked: to look for an attribute may run code of the program.
    kind = type(function)
    drawn = function.__self__ if kind in (BuiltinFunctionType, MethodType) else None
    if issubclass(type(drawn), random.Random):
        return True
    return (drawn is not None or kind is FunctionType) and function.__module__ == "random"


_FRAME_NAMES = frozenset(("_getframe", "currentframe", "f_back"))


def looks_for_callers(code: CodeType) -> bool:
    """Whether code looks at the frames it is called from, and must find none between."""
    return not _FRAME_NAMES.isdisjoint(code.co_names)


def is_seen_from_below(code: CodeType, names: dict[str, Any]) -> bool:
    """Whether code calls a function, of these globals, that looks further up than at its caller: at
    whoever has called this code. No frames may stand between the two."""
    found = (names.get(name) for name in code.co_names)
    return any(isinstance(f, FunctionType) and _looks_past_callers(f.__code__) for f in found)


@functools.lru_cache(maxsize=4096)
def _looks_past_callers(code: CodeType) -> bool:
    """Whether code looks at the caller of its caller, as far as its constants tell."""
    if not looks_for_callers(code):
        return False
    depth, asked = 0, False
    for instruction in dis.get_instructions(code):
        depth += instruction.argval == "f_back"
        if asked and instruction.opname == "LOAD_CONST" and type(instruction.argval) is int:
            depth += instruction.argval
        # The argument is the next thing that is loaded.
        asked = instruction.argval == "_getframe"
    return depth > 1


@functools.lru_cache(maxsize=4096)
def keeps_locals(code: CodeType) -> bool:
    """Whether code calls `locals()` more than once: a frame has one table for all such calls."""
    loads = [ins.argval for ins in dis.get_instructions(code) if ins.opname == "LOAD_GLOBAL"]
    return loads.count("locals") > 1


def asks_for_gradients(code: CodeType) -> bool:
    """Whether code asks for the gradients of tensors that need not be leaves."""
    return "register_hook" in code.co_names or "retain_grad" in code.co_names


# Code that uses these sees how long objects live.
_WEAK_NAMES = frozenset((
    "weakref", "ref", "proxy", "finalize", "WeakSet", "WeakKeyDictionary", "WeakValueDictionary",
    "WeakMethod",
))  # fmt: skip


def sees_lifetimes(code: CodeType) -> bool:
    """Whether code may notice that a local variable which it does not use any more has ended."""
    return not _WEAK_NAMES.isdisjoint(code.co_names)


@functools.lru_cache(maxsize=4096)
def counts_references(code: CodeType) -> bool:
    """Whether code looks at what keeps objects alive: references are counted, or weak ones tell
    what is left after variables are deleted or garbage is collected. Whatever runs a part of a
    frame holds its values."""
    if "getrefcount" in code.co_names:
        return True
    signs = (sees_lifetimes(code), "collect" in code.co_names, _deletes_variables(code))
    return sum(signs) > 1


def _deletes_variables(code: CodeType) -> bool:
    """Whether there is a `del` of a variable, not only those at the end of handlers, which first
    store None."""
    stored: Any = None
    value: Any = code
    for instruction in dis.get_instructions(code):
        deletes = instruction.opname in ("DELETE_FAST", "DELETE_DEREF")
        if deletes and (stored != instruction.argval or value is not None):
            return True
        if instruction.opname in ("STORE_FAST", "STORE_DEREF"):
            stored = instruction.argval
        else:
            stored = None
            value = instruction.argval if instruction.opname == "LOAD_CONST" else code
    return False


@functools.lru_cache(maxsize=4096)
def drops_parameters(code: CodeType) -> bool:
    """Whether a function may let go of what it was called with before it ends."""
    stars = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args, **kwargs
    count = code.co_argcount + code.co_kwonlyargcount + stars
    stores = ("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")
    return any(
        instruction.opname in stores and instruction.argval in code.co_varnames[:count]
        for instruction in dis.get_instructions(code)
    )


_MAKES_MODULES = {"__init__", "__setstate__", "initialize_parameters", "reset_parameters"}


def is_worth_an_entry(code: CodeType) -> bool:
    """Whether a frame that eager code calls is traced as an entry of its own.

    torch's own Python is not, except the modules of torch.nn (not their common base class, whose
    frames only lead to `forward`, nor what makes them and gives lazy ones their parameters, once).
    """
    if looks_for_callers(code):
        return False
    path = os.path.realpath(code.co_filename)
    if path.startswith(_TORCH):
        inner = path.removeprefix(_TORCH)
        modules = os.path.join("nn", "modules") + os.sep
        if code.co_name in _MAKES_MODULES:
            return False
        return inner.startswith(modules) and not inner.endswith(("module.py", "lazy.py"))
    if _is_ours(path) or path.startswith(_STDLIB) and _SITE not in path:
        return False
    if code.co_filename.startswith("<"):
        return False
    return not is_foreign(code)
