"""Which functions of torch may stand in a graph: they take and give tensors, and do nothing else.

What is not here is inlined if it is Python, and breaks the graph otherwise.
"""

import functools
import operator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
import torch.nn.functional as F

# Namespaces whose public functions are operators.
_NAMESPACES = (
    torch, F, torch.linalg, torch.fft, torch.special, torch._C._nn, torch._C._linalg,
    torch._C._fft, torch._C._special, torch._C._VariableFunctions,
)  # fmt: skip

# Functions of those namespaces that act on the process, on files, or on Python objects.
_NO_OPERATORS = {
    "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "save", "load",
    "compile", "set_default_dtype", "set_default_tensor_type", "set_default_device",
    "get_default_device", "set_num_threads", "get_num_threads", "set_num_interop_threads",
    "get_num_interop_threads", "use_deterministic_algorithms", "set_printoptions",
    "set_flush_denormal", "set_float32_matmul_precision", "set_warn_always", "from_numpy",
    "frombuffer", "from_file", "from_dlpack", "is_storage", "is_tensor", "typename", "vmap",
    "classproperty", "fork", "wait", "import_ir_module", "import_ir_module_from_buffer",
    "parse_ir", "parse_schema", "unify_type_list", "merge_type_from_type_comment", "cond",
    "while_loop", "set_vital", "read_vitals", "init_num_threads", "set_autocast_enabled",
    "lobpcg", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "boolean_dispatch", "assert_int_or_pair", "is_grad_enabled",
    "is_inference_mode_enabled", "is_autocast_enabled", "get_device_module", "sym_constrain_range",
    "sym_constrain_range_for_size", "set_anomaly_enabled", "is_anomaly_enabled",
    "are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled",
    "get_deterministic_debug_mode", "set_deterministic_debug_mode", "get_default_dtype",
    "get_float32_matmul_precision", "get_file_path", "prepare_multiprocessing_environment",
    "autocast_increment_nesting", "autocast_decrement_nesting", "clear_autocast_cache",
    "set_autocast_cache_enabled", "set_autocast_dtype", "set_autocast_gpu_dtype",
    "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_ipu_enabled",
    "set_autocast_xla_enabled", "is_warn_always_enabled", "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled", "get_autocast_dtype", "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype", "factory_kwargs", "unravel_index",
}  # fmt: skip

# Tensor methods that are no operators: (reason) by name.
REFUSED_METHODS: dict[str, str] = {
    **dict.fromkeys(("item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__",
                     "__complex__", "__index__", "__repr__", "__str__", "__format__",
                     "cpu_numpy", "data_ptr", "storage", "untyped_storage", "__reduce_ex__",
                     "__dlpack__", "__dlpack_device__", "__hash__", "share_memory_"),
                    "tensor_value"),
    **dict.fromkeys(("backward", "register_hook", "retain_grad",
                     "register_post_accumulate_grad_hook", "detach_", "set_", "__setstate__",
                     "_make_subclass", "as_subclass", "__deepcopy__"), "autograd"),
    **dict.fromkeys(("to_sparse", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr",
                     "to_sparse_bsc", "to_sparse_coo", "to_mkldnn"), "layout"),
    **dict.fromkeys(("map_", "map2_", "apply_", "__torch_function__", "__torch_dispatch__",
                     "__new__", "__init__", "__dir__", "module_load", "resize_", "resize_as_"),
                    "torch_refused"),
}  # fmt: skip

_OPERATORS = {
    getattr(operator, name)
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "neg",
        "pos",
        "invert",
        "abs",
        "getitem",
        "setitem",
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "ifloordiv",
        "imod",
        "ipow",
        "imatmul",
        "iand",
        "ior",
        "ixor",
        "ilshift",
        "irshift",
    )  # fmt: skip
} | {abs, pow, round, divmod}


@functools.cache
def _namespace_operations() -> tuple[set[Any], set[Any]]:
    """All operators found in the namespaces, and those implemented in C (possible factories)."""
    found: set[Any] = set()
    native: set[Any] = set()
    for space in _NAMESPACES:
        for name in dir(space):
            value = getattr(space, name, None)
            if name in _NO_OPERATORS or name.startswith("__"):
                continue
            if isinstance(value, BuiltinFunctionType):
                found.add(value)
                native.add(value)
            elif isinstance(value, FunctionType) and _is_operator_module(value.__module__):
                found.add(value)
    return found, native


def _is_operator_module(name: str | None) -> bool:
    return name in (
        "torch.functional", "torch.nn.functional", "torch._jit_internal", "torch._tensor",
        "torch.special", "torch.linalg", "torch._linalg_utils",
    )  # fmt: skip


@functools.cache
def _tensor_methods() -> set[Any]:
    found = set()
    for cls in (torch.Tensor, torch._C.TensorBase):
        for name, value in vars(cls).items():
            if callable(value) and name not in REFUSED_METHODS:
                found.add(value)
    return found


def is_graph_operation(operation: Any) -> bool:
    """Whether a callable is an operator over tensors."""
    if isinstance(operation, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return True
    try:
        return (
            operation in _OPERATORS
            or operation in _namespace_operations()[0]
            or operation in _tensor_methods()
        )
    except TypeError:  # an unhashable callable
        return False


def is_factory(operation: Any) -> bool:
    """Whether a callable is an operator that may give a tensor without getting one."""
    if isinstance(operation, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return True
    try:
        return operation in _namespace_operations()[1]
    except TypeError:
        return False


def method_name(operation: Any) -> str | None:
    """The name under which a Tensor method is called in a graph, None for other operators."""
    if operation in _tensor_methods():
        name = operation.__name__
        if getattr(torch.Tensor, name, None) is not None:
            return name
    return None
