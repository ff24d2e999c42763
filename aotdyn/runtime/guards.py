"""Guards that torch evaluates in C, rebuilt from stored data: tensors, and the process' state."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..package.reference import Import, State, TensorMeta, Tensors
from ..package.resolve import resolve_import
from ..package.state import process_state

_C = torch._C._dynamo.guards


def state_check(reference: State) -> Callable[[], bool]:
    """Whether this thread's state is the recorded one, and no torch function or dispatch mode is
    active."""
    wanted = json.loads(reference.json)
    inference = wanted.pop("inference_mode")
    guard = _C.GlobalStateGuard()
    now = json.loads(guard.__getstate__())
    guard.__setstate__(json.dumps({**now, **wanted}))
    check = guard.check
    modes = torch._C._len_torch_function_stack
    dispatch_modes = torch._C._len_torch_dispatch_stack
    is_inference = torch.is_inference_mode_enabled

    def state() -> bool:
        return check() and not modes() and not dispatch_modes() and is_inference() is inference

    state.guard = guard
    return state


def explain_state(reference: State) -> str:
    """What of this thread's state is not as recorded, in words; "" if nothing is."""
    wanted, now = json.loads(reference.json), json.loads(process_state())
    found = [
        f"{name.replace('_', ' ')} was {wanted[name]} and is {now.get(name)}"
        for name in sorted(wanted)
        if wanted[name] != now.get(name)
    ]
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        found.append("a mode of torch is active")
    return ", ".join(found)


def tensor_check(reference: Tensors, state: State) -> Callable[..., bool]:
    """Whether tensors have the recorded properties, and are all different objects."""
    with _recorded(state):
        guards = _tensor_guards(reference)
    check = guards.check
    return check


def explain_tensors(reference: Tensors, state: State, tensors: tuple, names: list[str]) -> str:
    """Why `tensor_check` fails, in words."""
    with _recorded(state):
        guards = _tensor_guards(reference)
    answer = guards.check_verbose(*tensors, tensor_check_names=names)
    return "" if answer is True else str(answer)


def _tensor_guards(reference: Tensors) -> Any:
    samples = []
    for meta in reference.metas:
        # A tensor stays what it was made as, in or outside of inference mode.
        with torch.inference_mode("Inference" in meta.keys):
            samples.append(_sample(meta))
    return _C.TensorGuards(
        *samples,
        dynamic_dims_sizes=[list(meta.size) for meta in reference.metas],
        dynamic_dims_strides=[list(meta.stride) for meta in reference.metas],
    )


def _sample(meta: TensorMeta) -> torch.Tensor:
    """A tensor without elements that has the class, dtype, device and flags to compare with."""
    dtype = getattr(torch, meta.dtype)
    sample = torch.empty(0, dtype=dtype, device=meta.device)
    if "Conjugate" in meta.keys:
        sample = sample.conj()
    if "Negative" in meta.keys:
        sample = sample._neg_view()
    if meta.cls == _TENSOR:
        return sample.requires_grad_(meta.requires_grad)
    cls = resolve_import(meta.cls)
    if issubclass(cls, torch.nn.Parameter):
        return cls(sample, requires_grad=meta.requires_grad)
    return cls(sample).requires_grad_(meta.requires_grad)


_TENSOR = Import("torch", "Tensor")


@contextlib.contextmanager
def _recorded(state: State) -> Iterator[None]:
    """The state that the dispatch keys of tensors depend on, as it was when they were recorded.

    TensorGuards notes the keys of its samples when it is built.
    """
    wanted = json.loads(state.json)
    autocast = any(wanted.get("autocast_state", {}).get("enabled", ()))
    grad = torch.is_grad_enabled()
    before = torch.is_autocast_enabled("cpu")
    with torch.inference_mode(wanted["inference_mode"]):
        torch._C._set_grad_enabled(True)
        torch.set_autocast_enabled("cpu", autocast)
        try:
            yield
        finally:
            torch.set_autocast_enabled("cpu", before)
            torch._C._set_grad_enabled(grad)
