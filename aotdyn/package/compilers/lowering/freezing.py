"""Folds weights into an aten graph: they become constants, whatever follows from constants alone is
computed now, and convolutions take in the batch norm behind them."""

from typing import Any

import torch
import torch.fx
from torch._functorch._aot_autograd.schemas import MutationType
from torch._inductor.constant_folding import constant_fold, replace_node_with_constant
from torch._inductor.freezing import freezing_passes, fx_graph_cse
from torch._inductor.fx_passes.post_grad import view_to_reshape
from torch._subclasses.fake_tensor import unset_fake_temporarily

from .tensors_only import UNREAD


def freeze(
    module: torch.fx.GraphModule,
    examples: list[Any],
    weights: dict[int, torch.Tensor],
    metadata: Any,
) -> list[int]:
    """Changes the module in place; its inputs stay, but nothing reads those that are frozen.

    weights: by input. metadata: AOTAutograd's. Returns the inputs that were frozen: not those that
    the graph changes or hands out.
    """
    changed = {
        index
        for index, info in enumerate(metadata.input_info)
        if info.mutation_type != MutationType.NOT_MUTATED
    }
    handed_out = {info.base_idx for info in metadata.output_info if info.base_idx is not None}
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    found = []
    view_to_reshape(module)
    for index, weight in weights.items():
        node = placeholders[index]
        if index in changed | handed_out or not node.users:
            continue
        example = examples[index]
        with unset_fake_temporarily():
            value = torch.empty_strided(example.shape, example.stride(), dtype=weight.dtype)
            value.copy_(weight)
        with module.graph.inserting_before(node):
            kept = module.graph.placeholder(f"{node.name}_frozen")
        kept.meta.update(node.meta, **{UNREAD: True})
        replace_node_with_constant(module, node, value)
        found.append(index)
    module.graph = fx_graph_cse(module.graph)
    module.recompile()
    freezing_passes(module, examples)
    constant_fold(module)
    return found
