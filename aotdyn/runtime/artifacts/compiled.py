"""A compiled artifact -> the callable of its graph: takes the graph's inputs, gives a tuple."""

from collections.abc import Callable
from typing import Any

import torch

from ...package.archive import Artifact
from ...package.errors import PackageError
from ...package.launch import is_gpu
from ...package.plan import Constant, Plan, plan_from_bytes
from .library import library_path, load_parts
from .results import Results, is_plain
from .training import training_call

# What a graph's caller unpacks: the outputs as a tuple, or as the list that compiled code gives.
Call = Callable[[tuple], Any]


def load_graph(
    artifact: Artifact,
    eager: Callable[[], Callable[..., tuple]],
    captured: bool | None = None,
) -> Callable:
    """The callable of a graph. eager: gives the same graph over torch's operators, for calls that
    the compiled one is not right for. captured: whether a GPU's launches are captured into CUDA
    graphs; None leaves it to the artifact.

    Raises PackageError when the artifact does not fit this process.
    """
    plan = plan_from_bytes(artifact.files["plan"])
    names = _parts(artifact, plan, plan.captured if captured is None else captured)
    if plan.trains:
        call = training_call(plan, names["forward"], names["backward"])
    else:
        call = _inference_call(plan, names["forward"])
    if plan.autocast:
        call = _without_autocast(call)
    if plan.grad_mode is not None:
        call = _with_grad_mode(call, plan.grad_mode)
    return _checked(call, _tests(plan, names.get("fits")), eager)


def _parts(artifact: Artifact, plan: Plan, captured: bool) -> dict[str, Any]:
    """The functions that the artifact's text defines."""
    names: dict[str, Any] = {
        **_runs(plan, artifact),
        "constants": [_constant(c, artifact.files[c.file]) for c in plan.constants],
        "sized": _sized,
        "number": _number,
    }
    exec(compile(artifact.text, f"<aotdyn {artifact.target} graph>", "exec"), names)
    if is_gpu(artifact.target):
        # Not at the top: as in `_runs`.
        from .gpu_parts import gpu_parts

        names.update(gpu_parts(artifact.target, plan, names, captured))
    return names


def _runs(plan: Plan, artifact: Artifact) -> dict[str, Any]:
    """What the text calls: whole parts in machine code, or kernels and operators."""
    if is_gpu(artifact.target):
        # Not at the top: it is for processes with a GPU.
        from .gpu_parts import gpu_names

        return gpu_names(artifact, plan)
    if not plan.python:
        runs = load_parts(plan, artifact.files)
        return {"run_forward": runs[0], "run_backward": runs[-1]}
    # Not at the top: few packages have such graphs.
    from .python_parts import python_names

    return python_names(plan, library_path(plan, artifact.files))


_BYTE = torch.zeros(1, dtype=torch.uint8)


def _sized(size: int) -> torch.Tensor:
    """A tensor that only has a size: how an int is passed to code that takes tensors."""
    return _BYTE.as_strided((size,), (0,))


def _number(value: int | float) -> torch.Tensor:
    """A number as code takes it."""
    return torch.scalar_tensor(value, dtype=torch.int64 if type(value) is int else torch.float64)


def _constant(constant: Constant, data: bytes | memoryview) -> torch.Tensor:
    dtype = getattr(torch, constant.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise PackageError(f"a constant of dtype {constant.dtype!r}")
    if not len(data):
        return torch.empty(constant.size, dtype=dtype)
    found = torch.frombuffer(bytearray(data), dtype=dtype).view(constant.size)
    if not constant.stride:
        return found
    return torch.empty_strided(constant.size, constant.stride, dtype=dtype).copy_(found)


def _inference_call(plan: Plan, forward: Call) -> Call:
    if is_plain(plan) and not plan.bumped:
        return forward
    results, bumped = Results(plan), plan.bumped

    def call(inputs: tuple) -> tuple:
        if bumped:
            torch.autograd.graph.increment_version([inputs[i] for i in bumped])
        return results(inputs, forward(inputs))

    return call


def _without_autocast(call: Call) -> Call:
    """The casts are part of the graph; operators that it calls must not cast again."""

    def inner(inputs: tuple) -> tuple:
        guard = torch._C._DisableAutocast()
        try:
            return call(inputs)
        finally:
            del guard

    return inner


def _with_grad_mode(call: Call, mode: bool) -> Call:
    def inner(inputs: tuple) -> tuple:
        found = call(inputs)
        torch._C._set_grad_enabled(mode)
        return found

    return inner


def _tests(plan: Plan, fits: Call | None) -> list[Call]:
    """What must hold of the inputs of a call. Inputs that share memory may not be changed by
    compiled code, ints must be in the range that it was made for, leaves that are changed are
    eager's to complain of, and weights must be those that are part of the code."""
    visible = tuple(updated.input for updated in plan.updated if updated.visible)
    tests: list[Call] = [fits] if fits else []
    if plan.mutates:
        tests.append(_apart(plan.mutates))
    if visible:
        tests.append(lambda inputs: not any(inputs[index].is_leaf for index in visible))
    if plan.frozen:
        # Not at the top: few packages have such graphs.
        from .frozen import weights_as_frozen

        tests.append(weights_as_frozen(plan))
    return tests


def _checked(call: Call, tests: list[Call], eager: Callable[[], Callable]) -> Callable:
    """The callable itself, eager's where a test fails."""
    if not tests:
        return lambda *inputs: call(inputs)

    def graph(*inputs: Any) -> tuple:
        for test in tests:
            if not test(inputs):
                return eager()(*inputs)
        return call(inputs)

    return graph


def _apart(mutates: tuple[int, ...]) -> Call:
    """Whether no changed input shares its memory with another input."""
    changed = frozenset(mutates)

    def apart(inputs: tuple) -> bool:
        own: set[int] = set()
        others: set[int] = set()
        for index, value in enumerate(inputs):
            if isinstance(value, torch.Tensor):
                where = value.untyped_storage()._cdata
                if index in changed:
                    if where in own:
                        return False
                    own.add(where)
                else:
                    others.add(where)
        return own.isdisjoint(others)

    return apart


