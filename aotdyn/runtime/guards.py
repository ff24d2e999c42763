"""Guards that torch evaluates in C, rebuilt from stored data: tensors, and the process' state."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..package.errors import PackageError
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.reference import Import, State, TensorMeta, Tensors
from ..package.replaced import FUNCTIONAL, TENSOR, replaced, unchanged, version
from ..package.resolve import resolve_import
from ..package.state import AUTOCASTS, DTYPES, attention_kernels, process_state

_C = torch._C._dynamo.guards


def state_check(reference: State) -> Callable[[], bool]:
    """Whether this thread's state is the recorded one, and no torch function or dispatch mode is
    active, and the functions of torch are those of now. There may be any number of threads.

    Raises PackageError where those of now are not those that were recorded.
    """
    wanted = json.loads(reference.json)
    inference = wanted.pop("inference_mode")
    kernels = wanted.pop("attention_kernels", None)
    if wanted.pop("replaced", []) != replaced():
        raise PackageError(f"functions of torch are not those of the recording: {_replaced_now()}")
    guard = _C.GlobalStateGuard()
    now = json.loads(guard.__getstate__())
    guard.__setstate__(json.dumps({**now, **wanted}))
    check = guard.check
    modes = torch._C._len_torch_function_stack
    dispatch_modes = torch._C._len_torch_dispatch_stack
    is_inference = torch.is_inference_mode_enabled
    transforms = torch._C._functorch.peek_interpreter_stack
    functions = unchanged()
    versions, again = functions.versions, functions.again

    threads = [now["num_threads"]]

    def other_threads() -> bool:
        """Whether it was only the number of threads that the guard has failed for."""
        count = torch.get_num_threads()
        if count == threads[0]:
            return False
        guard.__setstate__(json.dumps({**now, **wanted, "num_threads": count}))
        threads[0] = count
        return check()

    def state() -> bool:
        return (
            (check() or other_threads())
            and not modes()
            and not dispatch_modes()
            and is_inference() is inference
            and transforms() is None
            and (version(TENSOR) == versions[0] and version(FUNCTIONAL) == versions[1] or again())
        )

    def state_and_kernels() -> bool:
        return state() and attention_kernels() == kernels

    found = state if kernels is None else state_and_kernels
    found.guard = guard
    found.functions = functions
    return found


def _replaced_now() -> str:
    rows = [f"{space}.{name} is {function}" for space, name, function, _ in replaced()]
    return ", ".join(rows) or "they are torch's own"


def explain_state(reference: State, check: Any) -> str:
    """What of this thread's state is not as recorded, in words; "" if nothing is. check: the
    `state_check` of the reference."""
    wanted, now = (_told(json.loads(text)) for text in (reference.json, process_state()))
    if "attention kernels" not in wanted:
        del now["attention kernels"]
    found = [
        f"{name} was {wanted.get(name)} and is {now.get(name)}"
        for name in sorted(wanted.keys() | now.keys())
        if name != "replaced" and wanted.get(name) != now.get(name)
    ]
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        found.append("a mode of torch is active")
    if torch._C._functorch.peek_interpreter_stack() is not None:
        found.append("a transform of torch.func is active")
    if check.functions.changed():
        found.append(f"{check.functions.changed()} has been replaced")
    return ", ".join(found)


def _told(state: dict[str, Any]) -> dict[str, Any]:
    """The parts of a state by names for people, those of autocast one by one."""
    autocast = state.pop("autocast_state")
    found = {name.replace("_", " "): value for name, value in state.items()}
    found["default dtype"] = DTYPES.get(state["default_dtype"], state["default_dtype"])
    found["autocast's cache"] = autocast["cached_enabled"]
    for kind, enabled, dtype in zip(AUTOCASTS, autocast["enabled"], autocast["dtype"]):
        found[f"autocast on {kind}"] = enabled
        found[f"autocast's dtype on {kind}"] = DTYPES.get(dtype, dtype)
    return found


def tensor_check(reference: Tensors, state: State) -> Callable[..., bool]:
    """Whether tensors have the recorded properties, and are all different objects.

    Raises PackageError where the device that they were on is not there."""
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
    try:
        sample = torch.empty(0, dtype=dtype, device=meta.device)
    except (AssertionError, RuntimeError) as error:  # without CUDA, and without that device
        raise PackageError(f"it is for tensors on {meta.device}, which is not here") from error
    if "Conjugate" in meta.keys:
        sample = sample.conj()
    if "Negative" in meta.keys:
        sample = sample._neg_view()
    if meta.cls == _TENSOR:
        return sample.requires_grad_(meta.requires_grad)
    # Without running what the class does when an instance is made.
    return torch.Tensor._make_subclass(resolve_import(meta.cls), sample, meta.requires_grad)


_TENSOR = Import("torch", "Tensor")


@contextlib.contextmanager
def _recorded(state: State) -> Iterator[None]:
    """The state that the dispatch keys of tensors depend on, as it was when they were recorded.

    TensorGuards notes the keys of its samples when it is built.
    """
    wanted = json.loads(state.json)
    enabled = wanted.get("autocast_state", {}).get("enabled", ())
    grad = torch.is_grad_enabled()
    before = [(kind, torch.is_autocast_enabled(kind)) for kind in AUTOCASTS]
    with torch.inference_mode(wanted["inference_mode"]):
        torch._C._set_grad_enabled(True)
        for kind, wish in zip(AUTOCASTS, enabled):
            torch.set_autocast_enabled(kind, wish)
        try:
            yield
        finally:
            for kind, was in before:
                torch.set_autocast_enabled(kind, was)
            torch._C._set_grad_enabled(grad)
