"""Serves a package for a GPU on the CPU: the device is emulated, its driver lets Triton's
interpreter run what is launched, and everything between is the runtime's own. A process of its own,
started with `environment()`:

`python -m tests.package.compilers.served_on_emulated PACKAGE TARGET KERNELS DRIVERS [NAME ...]`
prints as JSON for each program of `gpu_graphs` what is wrong with it compared to the CPU's eager,
what was launched, and for which targets the code was that was used.
"""

import json
import math
import os
import sys

import torch

from tests.package.compilers import gpu_graphs

# Of the largest element: in half precision eager rounds in between, the kernels at the end only.
TOLERANCES = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-6}
_USUAL = 2e-5


def environment() -> dict[str, str]:
    """The environment for the process."""
    from aotdyn.package.compilers.cache import Cache
    from aotdyn.package.compilers.gpu.made_up import made_up_environment
    from aotdyn.package.compilers.toolchain import Toolchain

    return {**os.environ, **made_up_environment(Toolchain.find(Cache())), "TRITON_INTERPRET": "1"}


# -- the device's own operators ----------------------------------------------------------------


def _flash(query, key, value, dropout_p=0.0, is_causal=False, debug=False, *, scale=None):
    out, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        query.cpu(), key.cpu(), value.cpu(), dropout_p, is_causal, scale=scale
    )
    numbers = [torch.zeros(size, dtype=torch.uint64, device="cuda") for size in ((2,), ())]
    return (
        torch.empty_like(query).copy_(out), sums.to("cuda").contiguous(), None, None,
        query.shape[2], key.shape[2], *numbers, query.new_empty(0),
    )  # fmt: skip


def _flash_backward(grad, query, key, value, out, sums, cum_q, cum_k, max_q, max_k, dropout_p,
                    is_causal, seed, offset, *, scale=None):  # fmt: skip
    found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        *(each.cpu() for each in (grad, query, key, value, out, sums)), dropout_p, is_causal,
        scale=scale,
    )  # fmt: skip
    return tuple(torch.empty_like(x).copy_(y) for x, y in zip((query, key, value), found))


def device_operators() -> torch.library.Library:
    """Those that only GPUs have, for as long as the result lives."""
    library = torch.library.Library("aten", "IMPL", "CUDA")
    library.impl("_scaled_dot_product_flash_attention", _flash)
    library.impl("_scaled_dot_product_flash_attention_backward", _flash_backward)
    return library


# -- comparing ---------------------------------------------------------------------------------


def different(found, wanted, loose) -> str:
    """How a tensor differs from the CPU's, "" for not at all."""
    for fact in ("dtype", "shape"):
        if getattr(found, fact) != getattr(wanted, fact):
            return f"has {fact} {getattr(found, fact)} instead of {getattr(wanted, fact)}"
    found = found.cpu()
    if not wanted.dtype.is_floating_point and not wanted.dtype.is_complex:
        return "" if torch.equal(found, wanted) else f"is {found} instead of {wanted}"[:300]
    wide = torch.complex128 if wanted.dtype.is_complex else torch.float64
    a, b = found.to(wide), wanted.to(wide)
    tolerance = TOLERANCES.get(torch.bfloat16 if loose else wanted.dtype, _USUAL)
    scale = float(b.abs().nan_to_num(0, 0, 0).max()) if b.numel() else 0.0
    gap = (a - b).abs().masked_fill((a == b) | (a.isnan() & b.isnan()), 0.0)
    worst = float(gap.nan_to_num(nan=math.inf).max()) if gap.numel() else 0.0
    return "" if worst <= tolerance * max(scale, 1e-3) else f"differs by {worst:.1e} of {scale:.1e}"


def laid_out(tensor) -> tuple:
    """The strides that matter."""
    if not tensor.numel():
        return ()
    return tuple(stride for stride, size in zip(tensor.stride(), tensor.shape) if size > 1)


def shifted(args):
    """The same arguments where the device's code may not expect them: each one element later than
    memory is given out, with the same strides."""

    def one(value):
        if isinstance(value, list):
            return [one(each) for each in value]
        if not isinstance(value, torch.Tensor) or not value.numel():
            return value
        extent = sum((n - 1) * s for n, s in zip(value.shape, value.stride())) + 1
        base = torch.empty(extent + 1, dtype=value.dtype, device=value.device)
        made = base.as_strided(value.shape, value.stride(), 1)
        made.copy_(value.detach())
        return made.detach().requires_grad_(value.requires_grad)

    return [one(value) for value in args]


def seen(program, args):
    """What a call gives, or the kind of its error and the error."""
    try:
        return gpu_graphs.outcome(program, args), None
    except Exception as error:
        return type(error), error


def wrong_with(name, served, args, on_device) -> list[str]:
    """args: the same on the CPU."""
    program, _ = gpu_graphs.GRAPHS[name]
    wanted, _ = seen(program, args)
    found, error = seen(served, on_device)
    if error is not None or isinstance(wanted, type):
        return [] if found is wanted else [f"{type(error).__name__}: {error}"[:300]]
    wrong = [] if found[0] == wanted[0] else [f"{found[0]} instead of {wanted[0]}"]
    for what, ours, theirs in zip(("result or argument", "gradient"), found[1:], wanted[1:]):
        if len(ours) != len(theirs):
            return [*wrong, f"{len(ours)} of {what} instead of {len(theirs)}"]
        for index, (a, b) in enumerate(zip(ours, theirs)):
            if a is None or b is None:
                text = "" if a is b else "is there in one of the two only"
            else:
                text = different(a, b, name in gpu_graphs.LOOSE)
                if what != "gradient" and not text and laid_out(a) != laid_out(b):
                    text = f"has strides {laid_out(a)} instead of {laid_out(b)}"
            if text:
                wrong.append(f"{what} {index} {text}")
    return wrong


PLACES = {"aligned": lambda args: args, "misaligned": shifted}


def answer(name, driver) -> dict:
    """wrong: what differs. launches: how many each call has made. first: those of the first."""
    import aotdyn

    program, calls = gpu_graphs.GRAPHS[name]
    served = aotdyn.compile(program)
    wrong, launches, first = [], {}, None
    for number, args in enumerate(calls):
        for place, put in PLACES.items():
            if place == "misaligned" and name in gpu_graphs.ALIGNED:
                continue
            driver.launched.clear()
            on_cpu, on_device = (put(gpu_graphs.moved(args, device)) for device in DEVICES)
            places = {
                value.data_ptr(): f"a{index}"
                for index, value in enumerate(gpu_graphs.tensors_in(on_device))
            }
            found = wrong_with(name, served, on_cpu, on_device)
            wrong += [f"call {number}, {place}: {text}" for text in found + driver.wrong]
            driver.wrong.clear()
            launches[f"{number} {place}"] = len(driver.launched)
            first = first or [told(launched, places) for launched in driver.launched]
    return {"wrong": wrong, "launches": launches, "first": first}


DEVICES = ("cpu", "cuda")


def told(launched, places) -> dict:
    """A launch as JSON. places: names of addresses."""
    values = [
        places.get(value, "new") if name in launched.pointers else value
        for name, value in launched.values.items()
    ]
    sizes = {name: value for name, value in launched.constants.items() if type(value) is int}
    return {"values": values, "grid": launched.grid, "constants": sizes}


def main(path, target, kernels, drivers, *names):
    import aotdyn
    from aotdyn.package.archive import PackageFile
    from aotdyn.package.compilers.gpu.architectures import architecture_of
    from aotdyn.package.compilers.gpu.emulated import emulated
    from aotdyn.package.compilers.gpu.made_up import forget_environment
    from aotdyn.runtime import artifacts, logs

    from . import interpreting_driver as interpreting

    load_graph = artifacts.load_graph

    forget_environment()
    interpreting.complete_interpreter(architecture_of(target))
    with PackageFile.open(path) as file:
        stored = [file.artifact(id, each) for id in file.graphs for each in file.targets]
        codes = [
            (data, (artifact.target, name.rpartition(".")[2]))
            for artifact in stored for name, data in artifact.files.items()
            if name.endswith((".bin", ".ptx"))
        ]  # fmt: skip
        driver = interpreting.InterpretingDriver(drivers, kernels, codes)
        found, used = {}, []

        def noted(artifact, *others):
            used.append(artifact.target)
            return load_graph(artifact, *others)

        artifacts.load_graph = noted
        # Where a graph raises, the frame runs again as plain Python: that would go unseen.
        logs.sinks["misses"].append(driver.wrong.append)
        with emulated(target):
            torch._C._dynamo.guards._empty_strided_cuda = lambda size, stride, dtype: (
                torch.empty_strided(size, stride, dtype=dtype, device="cuda")
            )
            operators = device_operators()
            with aotdyn.load(path, on_miss="error") as package:
                for name in names or gpu_graphs.GRAPHS:
                    found[name] = answer(name, driver)
                    print(name, found[name]["wrong"], file=sys.stderr, flush=True)
                found["refused"] = package.refused
                found["loaded"] = sorted(set(driver.loaded))
                found["used"] = used
            operators._destroy()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
