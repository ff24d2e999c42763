"""Launches of the user's kernels in a graph -> the operation that Inductor knows for them."""

import inspect
from typing import Any

import torch.fx
import triton
from torch._higher_order_ops.triton_kernel_wrap import (
    kernel_side_table,
    triton_kernel_wrapper_mutation,
)
from torch._inductor.codecache import PyCodeCache

from ...user_kernels import UserKernel
from ..refusal import Refused

# What a launch may say besides the kernel's own arguments.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_IGNORED = ("ir_override",)


class Launches:
    """kernels: of the graph."""

    def __init__(self, kernels: tuple[UserKernel, ...]):
        self.kernels = {each.kernel: each for each in kernels}

    def add(
        self, graph: torch.fx.Graph, name: str, grid: tuple, args: tuple, named: dict[str, Any]
    ) -> torch.fx.Node:
        """The node for a launch. name: of the kernel, `module:qualname`. Raises Refused."""
        kernel = self._loaded(name)
        named = {key: value for key, value in named.items() if key not in _IGNORED}
        options = {key: named.pop(key) for key in _OPTIONS if named.get(key) is not None}
        bound = {**dict(zip(kernel.arg_names, args, strict=False)), **named}
        for name, parameter in inspect.signature(kernel.fn).parameters.items():
            if name not in bound and parameter.default is not parameter.empty:
                bound[name] = parameter.default
        unknown = bound.keys() - set(kernel.arg_names)
        if unknown:
            raise Refused(f"the kernel {kernel.__name__} is launched with {min(unknown)}")
        if (blocks := options.pop("num_ctas", 1)) != 1:
            raise Refused(
                f"the kernel {kernel.__name__} is launched in clusters of {blocks} blocks"
            )
        made: Any = kernel
        if options:
            made = triton.autotune([triton.Config({}, **options)], key=[])(kernel)
        constants = {k: v for k, v in bound.items() if not isinstance(v, torch.fx.Node)}
        passed = {k: v for k, v in bound.items() if isinstance(v, torch.fx.Node)}
        return graph.call_function(
            triton_kernel_wrapper_mutation,
            kwargs={
                "kernel_idx": kernel_side_table.add_kernel(made),
                "constant_args_idx": kernel_side_table.add_constant_args(constants),
                "grid": [(*grid, 1, 1)[:3]],
                "tma_descriptor_metadata": {},
                "kwargs": passed,
            },
        )

    def _loaded(self, name: str) -> Any:
        found = self.kernels.get(name)
        if found is None:
            raise Refused(f"the kernel {name} was not recorded")
        with triton.knobs.runtime.scope():
            triton.knobs.runtime.interpret = False  # it is compiled, whoever runs it
            return getattr(PyCodeCache.load(found.text), found.name)
