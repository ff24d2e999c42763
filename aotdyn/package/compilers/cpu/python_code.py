"""Inductor's Python wrapper -> a function for our runtime and the C++ of its kernels. What does not
look as expected is refused."""

import ast
import copy
import hashlib
import json
import re
from dataclasses import dataclass

from ...plan import KERNEL_TYPES, Kernel
from ..lowering.wrapper_text import CALL, NAMES, Renaming, check_names, is_compilation
from ..refusal import Refused

_INCLUDE = re.compile(r"^\s*#include\b.*\n", re.MULTILINE)
_SIGNATURE = re.compile(r'extern "C"\s+void\s+kernel\(([^)]*)\)')
_CHECK = re.compile(r"(?<![A-Z_])TORCH_CHECK\(")


@dataclass(frozen=True)
class PythonCode:
    """name: a hash of the contents. text: a function `run_<part>` from a list of inputs to a list
    of outputs; free are NAMES, the kernels' names and `constants`. kernels: what the text calls.
    sources: their C++, by ISA.
    """

    name: str
    text: str
    kernels: tuple[Kernel, ...]
    sources: dict[str, str]


def python_code(
    part: str, wrappers: dict[str, str], constants: dict[str, int], count: int
) -> PythonCode:
    """The code of one part from its wrappers, by ISA.

    constants: for the names of the tensors that the wrapper holds their places in the list that the
    text calls `constants`. count: of the outputs that are wanted.
    Raises Refused for a text that is not as expected, and where the ISAs differ in more than the
    kernels.
    """
    read = {isa: _Wrapper(text) for isa, text in wrappers.items()}
    first = next(iter(read.values()))
    for isa, wrapper in read.items():
        if wrapper.shape() != first.shape():
            raise Refused(f"the code for {isa} is called in another way")
    facts = json.dumps(wrappers, sort_keys=True)
    prefix = f"p{hashlib.sha256(facts.encode()).hexdigest()[:20]}"
    names = {name: f"{part}_{name}" for name in first.kernels}
    kernels = tuple(
        Kernel(names[name], f"{prefix}_{name}", types) for name, (types, _) in first.kernels.items()
    )
    return PythonCode(
        prefix,
        first.function(f"run_{part}", names, constants, count),
        kernels,
        {isa: wrapper.source(prefix) for isa, wrapper in read.items()},
    )


class _Wrapper:
    """A wrapper's text taken apart. kernels: (types of the arguments, C++) by name."""

    def __init__(self, text: str):
        self.kernels: dict[str, tuple[tuple[str, ...], str]] = {}
        functions: dict[str, ast.FunctionDef] = {}
        for statement in ast.parse(text).body:
            if isinstance(statement, ast.FunctionDef):
                functions[statement.name] = statement
            elif isinstance(statement, ast.Assign) and is_compilation(statement.value):
                self.kernels[statement.targets[0].id] = _kernel(statement.value)
        if CALL not in functions:
            raise Refused("the generated wrapper has no function")
        self.call = functions[CALL]

    def shape(self) -> tuple:
        """What must be the same for all ISAs."""
        types = {name: types for name, (types, _) in self.kernels.items()}
        return ast.dump(self.call), types

    def source(self, prefix: str) -> str:
        """All kernels as one C++ text, "" if there are none."""
        if not self.kernels:
            return ""
        includes: dict[str, None] = {}
        parts = []
        for name, (types, text) in self.kernels.items():
            includes.update(dict.fromkeys(line.strip() for line in _INCLUDE.findall(text)))
            parts.append(_kernel_source(f"{prefix}_{name}", types, _INCLUDE.sub("", text)))
        return "\n".join([*includes, *parts])

    def function(
        self, name: str, kernels: dict[str, str], constants: dict[str, int], count: int
    ) -> str:
        """The wrapper's function as text under another name."""
        made = Renaming(kernels, constants, count).visit(copy.deepcopy(self.call))
        made.name = name
        check_names(made, frozenset(kernels.values()), NAMES)
        return ast.unparse(ast.fix_missing_locations(made)) + "\n"


def _kernel(call: ast.Call) -> tuple[tuple[str, ...], str]:
    if call.func.attr != "cpp_pybinding" or len(call.args) != 2:
        raise Refused(f"a kernel that is made by {call.func.attr}")
    types, text = map(ast.literal_eval, call.args)
    return tuple(map(_type, types)), text


def _type(text: str) -> str:
    """A C++ type in the words of a plan."""
    if text.endswith("*"):
        return "tensor"
    found = text.removeprefix("const ").strip()
    if found not in KERNEL_TYPES:
        raise Refused(f"a kernel that takes a {found}")
    return found


def _kernel_source(symbol: str, types: tuple[str, ...], text: str) -> str:
    """A kernel, and a function around it that Python can call: it gives the text of the exception
    that the kernel ends with, else null."""
    found = _SIGNATURE.search(text)
    if found is None or len(found[1].split(",")) != len(types):
        raise Refused("a kernel with an unknown signature")
    text = _CHECK.sub("AOTI_TORCH_CHECK(", text).replace('extern "C"', "")
    names = ", ".join(f"a{index}" for index in range(len(types)))
    parameters = [part.strip().rsplit(None, 1)[0] for part in found[1].split(",")]
    taken = ", ".join(f"{kind} a{index}" for index, kind in enumerate(parameters))
    return f"""
namespace {symbol}_parts {{
{text}
}}
extern "C" __attribute__((visibility("default"))) const char* {symbol}({taken}) noexcept {{
  static thread_local std::string error;
  try {{
    {symbol}_parts::kernel({names});
    return nullptr;
  }} catch (const std::exception& caught) {{
    error = caught.what();
  }} catch (...) {{
    error = "unknown C++ exception";
  }}
  return error.c_str();
}}
"""
