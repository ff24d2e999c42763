"""Inductor's Python wrapper for a GPU -> a function for our runtime and the kernels that it starts.
What does not look as expected is refused."""

import ast
import copy

from ..lowering.wrapper_text import NAMES, Renaming, check_names, is_compilation
from ..refusal import Refused
from .architectures import Architecture
from .kernels import Compiled, compile_kernel

# What the runtime gives the text besides; see `aotdyn/runtime/artifacts/gpu_parts.py`.
GPU_NAMES = NAMES | {
    "copy_if_misaligned", "device_guard", "empty_strided_cuda", "get_raw_stream",
}  # fmt: skip
_CALL = "call"


def gpu_code(
    part: str, text: str, constants: dict[str, int], count: int, architecture: Architecture
) -> tuple[str, list[Compiled]]:
    """The text of a function `run_<part>`, from a list of inputs to a list of outputs, and the
    kernels that it starts.

    constants: for the names of the tensors that the wrapper holds their places in the list that the
    text calls `constants`. count: of the outputs that are wanted. Must run while the architecture
    is pretended. Raises Refused.
    """
    sources: dict[str, tuple[str, str]] = {}
    function = None
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == _CALL:
            function = node
        elif isinstance(node, ast.Assign) and is_compilation(node.value):
            sources[node.targets[0].id] = _source(node.value)
    if function is None:
        raise Refused("the generated wrapper has no function")
    names = {name: f"{part}_{name}" for name in sources}
    made = _GpuRenaming(names, constants, count).visit(copy.deepcopy(function))
    made.name = f"run_{part}"
    made.args.args = [ast.arg("args")]  # without `self`
    check_names(made, frozenset(names.values()), GPU_NAMES)
    kernels = [
        compile_kernel(names[name], defined, source, architecture)
        for name, (defined, source) in sources.items()
    ]
    return ast.unparse(ast.fix_missing_locations(made)) + "\n", kernels


def _source(call: ast.Call) -> tuple[str, str]:
    """The name that a kernel has in its source, and that source."""
    if call.func.attr == "cpp_pybinding":
        raise Refused("it computes on the CPU as well")
    if call.func.attr != "triton" or len(call.args) != 2:
        raise Refused(f"a kernel that is made by {call.func.attr}")
    name, text = map(ast.literal_eval, call.args)
    return name, text


class _GpuRenaming(Renaming):
    """Besides: the device is chosen by a function of the runtime."""

    def visit_With(self, node: ast.With) -> ast.stmt:
        self.generic_visit(node)
        if len(node.items) != 1 or ast.unparse(node.items[0].context_expr) != (
            "torch.cuda._DeviceGuard(0)"
        ):
            raise Refused("the generated wrapper enters another context")
        node.items[0].context_expr = ast.parse("device_guard(0)", mode="eval").body
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | None:
        if ast.unparse(node.value) == "torch.cuda.set_device(0)":
            return None
        return super().visit_Expr(node)
