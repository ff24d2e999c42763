"""How the text of Inductor's Python wrapper looks, whatever its kernels are, and how it becomes a
function for our runtime. What does not look so is refused."""

import ast
import builtins

from ..refusal import Refused

CALL = "call"  # the wrapper's function
# What the runtime gives the text; see `aotdyn/runtime/artifacts/python_parts.py`.
NAMES = frozenset(
    (
        "torch", "math", "inf", "nan", "device", "aten", "inductor_ops", "_quantized",
        "assert_size_stride", "assert_alignment", "empty_strided", "empty_strided_cpu",
        "reinterpret_tensor", "alloc_from_pool", "extern_kernels",
    )
)  # fmt: skip
EXTERN_KERNELS = frozenset(
    ("mm", "bmm", "addmm", "baddbmm", "bias_addmm", "_int_mm", "convolution")
)  # fmt: skip


def is_compilation(value: ast.expr) -> bool:
    """Whether an expression of a wrapper makes a kernel."""
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and isinstance(value.func.value, ast.Name)
        and value.func.value.id == "async_compile"
    )


class Renaming(ast.NodeTransformer):
    """Kernels get their own names, constants come from a list, the outputs are a list, and the list
    of inputs is left as it is."""

    def __init__(self, kernels: dict[str, str], constants: dict[str, int], count: int):
        self.kernels = kernels
        self.constants = constants
        self.count = count

    def visit_Name(self, node: ast.Name) -> ast.expr:
        index = self.constants.get(node.id)
        if index is not None:
            return ast.parse(f"constants[{index}]", mode="eval").body
        node.id = self.kernels.get(node.id, node.id)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if not isinstance(node.value, ast.Tuple):
            raise Refused("the generated wrapper returns no tuple")
        self.generic_visit(node)
        return ast.Return(ast.List(node.value.elts[: self.count], ast.Load()))

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | None:
        if ast.unparse(node.value) == "args.clear()":
            return None
        return self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        raise Refused("the generated wrapper has a state of its own")


def check_names(
    function: ast.FunctionDef, kernels: frozenset[str], names: frozenset[str]
) -> None:
    """Raises Refused for a text that needs what the runtime does not have. names: what it has
    besides the kernels."""
    stored = {argument.arg for argument in function.args.args}
    loaded = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            _check_attribute(node.value.id, node.attr)
        elif isinstance(node, ast.FunctionDef | ast.Import | ast.ImportFrom) and node != function:
            raise Refused("the generated wrapper has parts of its own")
    unknown = loaded - stored - names - kernels - {"constants"} - vars(builtins).keys()
    if unknown:
        raise Refused(f"the generated wrapper uses {', '.join(sorted(unknown))}")


def _check_attribute(owner: str, name: str) -> None:
    if owner == "extern_kernels" and name not in EXTERN_KERNELS:
        raise Refused(f"the generated wrapper calls {name}")
    if owner == "torch" and name in ("_inductor", "_dynamo", "_higher_order_ops", "fx"):
        raise Refused(f"the generated wrapper uses torch.{name}")
