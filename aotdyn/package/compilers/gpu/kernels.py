"""Triton kernels -> machine code and what a launcher must know of it. What only Triton's own
launcher can start is refused."""

import re
from dataclasses import dataclass, replace
from typing import Any

from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.triton_heuristics import CachingAutotuner, CompileResult, GridExpr

from ...launch import SIZES, Launch
from ..refusal import Refused
from .architectures import CUDA, Architecture
from .elf import architecture_in, parameter_sizes

# What a kernel may want of its launcher beyond a grid, and the value that wants nothing.
_WANTS = {
    "global_scratch_size": 0,
    "profile_scratch_size": 0,
    "num_ctas": 1,
    "launch_cooperative_grid": False,
    "launch_cooperative_cluster": False,
    "launch_pdl": False,
    "tensordesc_meta": None,
}
_POINTER = 8
# Inductor's names for pointers that a kernel only reads through.
_READ = re.compile(r"in_ptr\d+")

CONFIGURATIONS = 6  # of a kernel, where the device is to choose: Inductor's first ones


@dataclass(frozen=True)
class Compiled:
    """A kernel for one architecture. code: cubin or hsaco. assembly: PTX, for NVIDIA only. others:
    the same kernel in other configurations."""

    launch: Launch
    code: bytes
    assembly: bytes
    others: tuple["Compiled", ...] = ()


def compile_kernel(
    name: str, defined: str, source: str, architecture: Architecture
) -> Compiled:
    """A kernel that Inductor has generated: a module that defines `defined`. name: in the text that
    starts it. In one configuration, or several where Inductor was not told to take one.

    Must run while `architecture` is pretended. Raises Refused.
    """
    kernel = getattr(PyCodeCache.load(source), defined)
    if not isinstance(kernel, CachingAutotuner):
        raise Refused(f"{name} is made by {type(kernel).__name__}")
    if kernel.device_props.cc != architecture.number:
        raise Refused(f"{name} was generated for {kernel.device_props.cc}")
    if kernel.configs is not None:  # else another graph has the same kernel, which is compiled
        kernel.configs = list(kernel.configs)[:CONFIGURATIONS]
    kernel._precompile_worker()
    found, refusals = [], []
    for result in kernel.compile_results:
        try:
            made = _compiled(name, result, architecture)
        except Refused as refused:
            refusals.append(refused)
        else:
            if made not in found:
                found.append(made)
    if not found:
        raise refusals[0]
    return _with_others(found, _given(kernel.compile_results[0]))


def _with_others(found: list[Compiled], given: list[str]) -> Compiled:
    """The first of them, which has the others. given: the names of what each is handed over."""
    first = found[0]
    if len(found) == 1:
        return first
    name = first.launch.name
    others = tuple(
        replace(each, launch=replace(each.launch, name=f"{name}_{index}", instead=name))
        for index, each in enumerate(found[1:], 1)
    )
    written = tuple(i for i, each in enumerate(given) if not _READ.fullmatch(each))
    return replace(first, launch=replace(first.launch, written=written), others=others)


def _compiled(name: str, result: CompileResult, architecture: Architecture) -> Compiled:
    kernel = result.kernel
    _check_wants(name, kernel.metadata)
    code = kernel.asm["cubin" if architecture.kind == CUDA else "hsaco"]
    built = architecture_in(code)
    if built != architecture.name:
        raise Refused(f"{name} was compiled for {built} instead of {architecture.name}")
    types = _types(kernel.src)
    symbol = kernel.metadata.name
    extra = _padding(name, types, parameter_sizes(code, symbol))
    launch = Launch(
        name,
        symbol,
        tuple(types.values()),
        extra,
        kernel.metadata.num_warps * architecture.warp,
        kernel.metadata.shared,
        _grid(result, list(types)),
    )
    return Compiled(launch, code, kernel.asm.get("ptx", "").encode())


def _check_wants(name: str, metadata: Any) -> None:
    for what, nothing in _WANTS.items():
        found = getattr(metadata, what, nothing)
        if found and found != nothing:
            raise Refused(f"{name} needs {what.replace('_', ' ')} ({found})")


def _types(source: Any) -> dict[str, str]:
    """The types of what is passed when a kernel is launched, by the parameters' names."""
    names = source.fn.arg_names
    constant = {key[0] if isinstance(key, tuple) else names.index(key) for key in source.constants}
    kinds = {
        name: source.signature.get(name, "constexpr")
        for index, name in enumerate(names)
        if index not in constant
    }
    return {name: kind for name, kind in kinds.items() if kind != "constexpr"}


def _padding(name: str, types: dict[str, str], sizes: tuple[int, ...]) -> int:
    """How many null pointers follow what is passed. The binary itself says what it takes."""
    unknown = set(types.values()) - SIZES.keys() - {k for k in types.values() if k[0] == "*"}
    if unknown:
        raise Refused(f"{name} takes {', '.join(sorted(unknown))}")
    wanted = tuple(_POINTER if kind[0] == "*" else SIZES[kind] for kind in types.values())
    if sizes[: len(wanted)] != wanted or any(size != _POINTER for size in sizes[len(wanted) :]):
        raise Refused(f"{name} takes parameters of {sizes} bytes, not {wanted}")
    return len(sizes) - len(wanted)


def _given(result: CompileResult) -> list[str]:
    """The names of what the wrapper hands over."""
    function = result.kernel.src.fn
    constexprs = [i for i, p in enumerate(function.params) if p.is_constexpr]
    return result._get_arg_lists(function.arg_names, constexprs)[1]


def _grid(result: CompileResult, passed: list[str]) -> str:
    """The text of a function from what the wrapper hands over to the grid and what is passed."""
    given = _given(result)
    grid = GridExpr.from_meta(result.inductor_meta, result.config)
    lines = [f"    {line}\n" for line in grid.prefix]
    sizes = f"({grid.x_grid}, {grid.y_grid}, {grid.z_grid})"
    kept = "".join(f"{name}, " for name in passed)
    return f"def launch({', '.join(given)}):\n{''.join(lines)}    return {sizes}, ({kept})\n"
