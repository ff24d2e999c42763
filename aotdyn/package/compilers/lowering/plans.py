"""AOTAutograd's metadata -> our plan. The one place that knows its classes; what it cannot say is
refused."""

from typing import Any

import torch
from torch._functorch._aot_autograd.schemas import OutputType, PlainTensorMeta

from ... import plan
from ...graph import Graph
from ...plan import Constant, Layout, Output, Plan, Updated
from ..refusal import Refused

_KINDS = {
    OutputType.non_alias: plan.NEW,
    OutputType.is_input: plan.INPUT,
    OutputType.alias_of_input: plan.VIEW_OF_INPUT,
    OutputType.alias_of_intermediate: plan.VIEW_OF_BASE,
    OutputType.alias_of_intermediate_save_as_output: plan.VIEW_OF_BASE,
    OutputType.alias_of_intermediate_base_is_user_output: plan.VIEW_OF_OUTPUT,
    OutputType.unsafe_view_alias: plan.UNSAFE_VIEW,
    OutputType.custom_function_view: plan.NEW,
}


def plan_of(graph: Graph, found: dict[str, Any], constants: list[Constant]) -> Plan:
    """Raises Refused for what the runtime has no means for."""
    metadata = found["metadata"]
    _check(metadata, found)
    trains = found.get("subclasses", _ABSENT) is not _ABSENT
    updated = tuple(
        _updated(index, metadata.input_info[index])
        for index in metadata.mutated_inp_runtime_indices
    )
    outputs = tuple(map(_output, metadata.output_info))
    mutates = tuple(
        index for index, info in enumerate(metadata.input_info)
        if info.mutates_data or info.mutates_metadata or info.mutates_storage_metadata
    )  # fmt: skip
    return Plan(
        library="",
        forward=0,
        updated=updated,
        outputs=outputs,
        bases=metadata.num_intermediate_bases,
        ints=found["ints"] or 0,
        unchecked=(metadata.num_tensors_saved_with_no_vc_check or 0) if trains else 0,
        bumped=tuple(metadata.mutated_graph_handled_indices_seen_by_autograd),
        detached=tuple(found["detached"] or ()),
        tangents=tuple(map(_layout, metadata.subclass_tangent_meta)) if trains else (),
        partial=_partial(found["reaching"], len(metadata.subclass_tangent_meta)) if trains else (),
        constants=tuple(constants),
        grad_mode=metadata.grad_enabled_mutation,
        autocast=torch._C._is_any_autocast_enabled(),
        mutates=mutates,
    )


_ABSENT = object()


def _partial(
    reaching: list[set[int] | None], tangents: int
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """reaching: for each input what its gradient follows from, as indices from the end of the
    backward part's inputs, whose last ones are the tangents."""
    found = []
    for index, sources in enumerate(reaching):
        if sources is not None:
            those = tuple(sorted(tangents + place for place in sources if place >= -tangents))
            if len(those) < tangents:
                found.append((index, those))
    return tuple(found)


def _check(metadata: Any, found: dict[str, Any]) -> None:
    if found.get("subclasses") is not None:
        raise Refused("tensor subclasses")
    if metadata.tokens or metadata.num_backward_tokens:
        raise Refused("operators with ordered effects")
    if metadata.num_graphsafe_rng_states or metadata.num_opaque_objects_saved_for_bw:
        raise Refused("random states or objects saved for the backward part")
    if metadata.indices_of_inputs_that_requires_grad_with_mutations_in_bw:
        raise Refused("the backward part changes inputs")
    if any(info.mutation_inductor_storage_resize for info in metadata.input_info):
        raise Refused("an input whose storage is resized")
    if any(getattr(wrapper, "needs_post_compile", False) for wrapper in found["wrappers"]):
        odd = [type(w).__name__ for w in found["wrappers"] if w.needs_post_compile]
        if odd:
            raise Refused(f"AOTAutograd wants to wrap the graph: {', '.join(odd)}")


def _updated(index: int, info: Any) -> Updated:
    return Updated(
        index,
        info.mutates_data,
        info.mutates_metadata,
        info.mutates_storage_metadata,
        info.requires_grad,
        info.mutates_data and info.requires_grad,
        info.mutates_data
        and info.requires_grad
        and not info.mutations_hidden_from_autograd
        and not info.mutations_under_no_grad_or_inference_mode,
    )


def _output(info: Any) -> Output:
    is_tensor = issubclass(info.raw_type, torch.Tensor)
    return Output(
        _KINDS[info.output_type],
        -1 if info.base_idx is None else info.base_idx,
        bool(info.requires_grad),
        is_tensor
        and bool(info.requires_grad_for_backward)
        and _KINDS[info.output_type] in (plan.NEW, plan.UNSAFE_VIEW),
    )


def _layout(meta: Any) -> Layout | None:
    if not isinstance(meta, PlainTensorMeta):
        raise Refused("gradients that are tensor subclasses")
    found = meta.memory_format
    if found is None:
        return None
    if found.memory_format is not None:
        return Layout(str(found.memory_format).removeprefix("torch."))
    return Layout("", tuple(map(int, found.size)), tuple(map(int, found.stride)))
