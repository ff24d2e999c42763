"""What the text of a graph for a GPU refers to: operators of torch, and kernels, which are started
through the driver."""

from collections.abc import Callable
from typing import Any

import torch

from ...package.archive import Artifact
from ...package.errors import PackageError
from ...package.launch import ALIGNMENT, BINARY, Launch, code_file
from ...package.plan import Plan
from .driver import SHARED_WITHOUT_ASKING, Kernel
from .python_parts import NAMES
from .results import write_unnoticed
from .targets import gpu_form

_guards = torch._C._dynamo.guards


def gpu_names(artifact: Artifact, plan: Plan) -> dict[str, Any]:
    """What is free in the text. Raises PackageError where there is no such GPU."""
    form = gpu_form(artifact.target)
    if form is None:
        raise PackageError(f"there is no GPU for {artifact.target} here")
    _check_shared(plan)
    return {**NAMES, **_device_names(), **kernels(artifact, plan, form)}


def _check_shared(plan: Plan) -> None:
    """Raises PackageError where the GPU, a smaller one than the code is for, has too little."""
    needed = max((launch.shared for launch in plan.launches), default=0)
    if needed <= SHARED_WITHOUT_ASKING:
        return
    limit = getattr(torch.cuda.get_device_properties(), "shared_memory_per_block_optin", needed)
    if needed > limit:
        raise PackageError(f"a block needs {needed} bytes of shared memory; here are {limit}")


def gpu_parts(
    target: str, plan: Plan, names: dict[str, Any], captured: bool
) -> dict[str, Callable]:
    """The parts of a graph as they are called. names: has them as the text defines them. captured:
    whether their launches are captured where that is possible."""
    parts = {name: names[name] for name in ("forward", "backward") if name in names}
    if captured and not plan.uncapturable:
        # Not at the top: few processes ask for it.
        from .captures import captured_parts
        from .cuda_graphs import cuda_device

        parts = captured_parts(plan, names, cuda_device(0), f"a graph for {target}")
    changed = tuple(sorted({*plan.mutates, *plan.bumped}))
    if changed:
        parts["forward"] = aligned(parts["forward"], changed)
    return parts


def aligned(forward: Callable, changed: tuple[int, ...]) -> Callable:
    """The forward part for inputs of any alignment: those that it changes are copied and the copy
    is written back. The text itself takes copies of those that it only reads."""

    def repaired(inputs: Any) -> Any:
        moved = [i for i in changed if inputs[i].data_ptr() % ALIGNMENT]
        if not moved:
            return forward(inputs)
        given = list(inputs)
        for i in moved:
            # A clone keeps the strides only where no memory is between the elements.
            given[i] = torch.empty_strided(
                inputs[i].size(), inputs[i].stride(), dtype=inputs[i].dtype, device=inputs[i].device
            ).copy_(inputs[i].detach())
        copies = [(inputs[i], given[i]) for i in moved]
        found = forward(given)
        with torch.no_grad():
            for original, copy in copies:
                write_unnoticed(original, copy)
        return found

    return repaired


def copied_if_misaligned(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy of it with the same strides."""
    if not tensor.data_ptr() % ALIGNMENT:
        return tensor
    size, stride = tensor.size(), tensor.stride()
    extent = 1 + sum((n - 1) * step for n, step in zip(size, stride)) if tensor.numel() else 0
    memory = tensor.as_strided((extent,), (1,)).clone()
    return memory.as_strided(size, stride)


def kernels(artifact: Artifact, plan: Plan, form: str = BINARY) -> dict[str, Any]:
    """The kernels by their names in the text. form: of the code that is used."""
    kind = artifact.target.partition(":")[0]
    candidates: dict[str, list[Kernel]] = {}
    written: dict[str, tuple[int, ...]] = {}
    for launch in plan.launches:
        code = artifact.files.get(code_file(launch.name, form))
        if code is None:
            raise PackageError(f"there is no code for the kernel {launch.name}")
        kernel = Kernel(kind, launch, bytes(code), _sizes(launch))
        candidates.setdefault(launch.instead or launch.name, []).append(kernel)
        written.setdefault(launch.name, launch.written)
    return {
        name: several[0] if len(several) == 1 else _tuned(kind, several, written.get(name, ()))
        for name, several in candidates.items()
    }


def _tuned(kind: str, candidates: list[Kernel], written: tuple[int, ...]) -> Any:
    # Not at the top: few packages have several configurations.
    from .tuning import DeviceClock, Tuned

    return Tuned(candidates, written, DeviceClock(kind))


def _sizes(launch: Launch) -> Any:
    names: dict[str, Any] = {}
    exec(compile(launch.text, f"<aotdyn {launch.name}>", "exec"), names)
    return names["launch"]


def _device_names() -> dict[str, Any]:
    """The names are Inductor's, but for `device_guard`."""
    return {
        # Of torch 2.12 and later.
        "copy_if_misaligned": getattr(_guards, "copy_if_misaligned", copied_if_misaligned),
        "device_guard": torch.cuda._DeviceGuard,
        "empty_strided_cuda": _guards._empty_strided_cuda,
        "get_raw_stream": torch._C._cuda_getCurrentRawStream,
    }
