"""The text of a user's kernel as a module of its own, for who compiles it without the program: the
function, the functions on the GPU that it calls, and the constants and modules that it uses."""

import ast
import dis
import inspect
import textwrap
from types import FunctionType, ModuleType
from typing import Any

from ..package.reference import Import
from ..package.user_kernels import UserKernel, dtype_name, function_of, is_dtype, is_kernel
from .references import importable
from .signals import GraphBreak


def kernel_text(kernel: Any, reference: Import) -> UserKernel:
    """Raises GraphBreak for a kernel that refers to what has no text."""
    writer = _Writer()
    writer.kernel(kernel)
    name = function_of(kernel).__name__
    text = "\n".join([*writer.lines, ""])
    return UserKernel(f"{reference.module}:{reference.qualname}", name, text)


class _Writer:
    """lines: of the module so far; what they need comes before them."""

    def __init__(self) -> None:
        self.lines: list[str] = ["import triton", "import triton.language"]
        self.known: dict[str, Any] = {}

    def kernel(self, kernel: Any) -> None:
        function = function_of(kernel)
        self.known[function.__name__] = kernel
        definition = _definition(function)
        for name in _names(function, definition):
            if name in function.__globals__ and name != function.__name__:
                self.define(name, function.__globals__[name])
        self.lines += ["", "", ast.unparse(definition)]

    def define(self, name: str, value: Any) -> None:
        if name in self.known:
            if self.known[name] is not value:
                raise GraphBreak("unknown_type", f"two things called {name} in kernels")
            return
        if is_kernel(value):
            own = function_of(value).__name__
            if own not in self.known:
                self.kernel(value)
            if own != name:
                self.lines.append(f"{name} = {own}")
        else:
            self.lines.append(_assignment(name, value))
        self.known[name] = value


def _assignment(name: str, value: Any) -> str:
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    if value is None or isinstance(value, bool | int | float | str):
        return f"{name} = {value!r}"
    if type(value).__name__ == "constexpr":
        return f"{name} = triton.language.constexpr({value.value!r})"
    if is_dtype(value):
        return f"{name} = triton.language.{dtype_name(value)}"
    reference = importable(value)
    if reference is None or not reference.module.startswith("triton"):
        raise GraphBreak("unknown_type", f"a kernel refers to {name}")
    return f"from {reference.module} import {reference.qualname} as {name}"


def _definition(function: FunctionType) -> ast.FunctionDef:
    """The function's definition, of its decorators only `@triton.jit`."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        raise GraphBreak("unknown_call", f"the kernel {function.__name__} has no source") from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise GraphBreak("unknown_call", f"the kernel {function.__name__} is no function")
    given = next(filter(None, map(_options, definition.decorator_list)), "")
    definition.decorator_list = [ast.parse(f"triton.jit{given}", mode="eval").body]
    return definition


def _options(decorator: ast.expr) -> str:
    """`(do_not_specialize=['n'])` for a decorator that is `jit` with options."""
    if not isinstance(decorator, ast.Call) or not ast.unparse(decorator.func).endswith("jit"):
        return ""
    return f"({', '.join(map(ast.unparse, decorator.keywords))})"


def _names(function: FunctionType, definition: ast.FunctionDef) -> list[str]:
    """The global names that a definition reads, each once: in its code, and around it."""
    loaded = [i.argval for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL"]
    around = ast.Tuple([definition.args, *definition.decorator_list])
    written = [node.id for node in ast.walk(around) if isinstance(node, ast.Name)]
    return list(dict.fromkeys([*written, *loaded]))
