"""From what compiled code gives to what the graph's caller gets: new values written back to their
inputs, views made views again."""

from collections.abc import Sequence
from typing import Any

import torch

from ...package.launch import ALIGNMENT
from ...package.plan import (
    INPUT,
    NEW,
    UNSAFE_VIEW,
    VIEW_OF_BASE,
    VIEW_OF_INPUT,
    VIEW_OF_OUTPUT,
    Output,
    Plan,
    Updated,
)


class Hidden:
    """A tensor that passes through an autograd.Function without being one of its outputs."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor


def is_plain(plan: Plan) -> bool:
    """Whether the outputs are what the code gives, and all that there is to do."""
    return not plan.updated and not any(
        output.kind not in (NEW, UNSAFE_VIEW) or output.contiguous for output in plan.outputs
    )


def shown(value: Any) -> Any:
    """The tensor itself."""
    return value.tensor if type(value) is Hidden else value


class Results:
    """For one plan: (inputs, forward's results) -> the outputs."""

    def __init__(self, plan: Plan):
        self.updated = plan.updated
        self.outputs = plan.outputs
        self.first = len(plan.updated)
        self.bases = self.first + len(plan.outputs)

    def __call__(self, inputs: tuple, found: Sequence[Any]) -> tuple:
        for new, updated in zip(found, self.updated):
            _write_back(updated, inputs[updated.input], shown(new))
        return tuple(
            [
                self._output(output, inputs, found, found[self.first + index])
                for index, output in enumerate(self.outputs)
            ]
        )

    def _output(self, output: Output, inputs: tuple, found: Sequence[Any], value: Any) -> Any:
        kind = output.kind
        if kind in (NEW, UNSAFE_VIEW):
            if not output.contiguous:
                return value
            return value.clone(memory_format=torch.contiguous_format)
        if kind == INPUT:
            return inputs[output.base]
        value = shown(value)
        if kind == VIEW_OF_INPUT:
            base = inputs[output.base]
        elif kind == VIEW_OF_OUTPUT:
            base = shown(found[self.first + output.base])
        else:
            assert kind == VIEW_OF_BASE, kind
            base = found[self.bases + output.base]
        return view_like(base, value, output.requires_grad)


def may_be_copied(given: torch.Tensor) -> bool:
    """Whether code for GPUs takes a copy of what it is given in its place."""
    return given.is_cuda and given.data_ptr() % ALIGNMENT != 0


def was_copied(given: torch.Tensor, part: torch.Tensor) -> bool:
    """Whether what the code says is part of `given` is part of a copy of it."""
    return may_be_copied(given) and (
        given.untyped_storage()._cdata != part.untyped_storage()._cdata
    )


def _offset(given: torch.Tensor, part: torch.Tensor) -> int:
    """Where `part` begins, or would in the memory of what was copied. Copies begin at 0."""
    begin = part.storage_offset()
    return begin + given.storage_offset() if was_copied(given, part) else begin


def view_like(base: torch.Tensor, like: torch.Tensor, requires_grad: bool) -> torch.Tensor:
    """A view of `base` with the layout and kind of `like`, which lies in the same memory, or in
    that of a copy."""
    if base.is_complex() and not like.is_complex():
        view = torch.view_as_real(base)
    elif like.is_complex() and not base.is_complex():
        view = torch.view_as_complex(base)
    else:
        view = base
    if like.dtype != view.dtype:
        view = view.view(like.dtype)
    view = view.as_strided(like.size(), like.stride(), _offset(view, like))
    if like.is_conj() != view.is_conj():
        view = view.conj()
    if like.is_neg() != view.is_neg():
        view = view._neg_view()
    if view.requires_grad and not requires_grad:
        return view.detach()
    if requires_grad and not view.requires_grad:
        view.requires_grad_(True)
    return view


def _write_back(updated: Updated, target: torch.Tensor, new: torch.Tensor) -> None:
    if updated.storage:
        with torch.no_grad():
            target.set_(new)
        return
    if updated.metadata:
        target.as_strided_(new.size(), new.stride(), _offset(target, new))
    if updated.data:
        if target.requires_grad and target.is_leaf:
            # The program did it without gradients; what is an error runs eagerly.
            target.detach().copy_(new)
        else:
            target.copy_(new)


def write_unnoticed(target: torch.Tensor, new: torch.Tensor) -> None:
    """Writes what the graph's call itself tells autograd of. Called without gradients."""
    if target.is_inference():  # which tell nobody
        target.copy_(new)
        return
    with torch.autograd._unsafe_preserve_version_counter(target):
        target.copy_(new)
