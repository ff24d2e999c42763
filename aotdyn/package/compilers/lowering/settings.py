"""Inductor's settings for a graph: what the program asked for, what was asked for at pack, and what
the target does not leave open.

The modes of torch.compile: "default" is Inductor's own choice. "reduce-overhead" is the same for
CPUs, because only GPUs have graphs of launches; for those see `wants_captures`. "max-autotune" and
"max-autotune-no-cudagraphs" switch on those searches of Inductor whose outcome does not depend on
the machine that packs; to time candidates there would say nothing about the machines that serve.
"""

import difflib
from collections.abc import Iterable
from typing import Any

from ...errors import AotdynError
from ...graph import Graph
from ...options import CUDAGRAPHS

# Random operators give eager's numbers, unless somebody wants Inductor's, which are faster.
_DEFAULTS: dict[str, Any] = {"fallback_random": True}

# Whatever anybody asks for. Results must not depend on the machine, and nothing but our own cache
# may answer.
_FIXED: dict[str, Any] = {
    "fx_graph_cache": False,
    "compile_threads": 1,
    "cpp.dynamic_threads": True,
    "max_autotune_gemm_backends": "ATEN",
    "max_autotune_conv_backends": "ATEN",
    "triton.cudagraphs": False,
    "cpp_wrapper": False,
    "freezing": False,  # ours does without; see `freezing.py`
    "cpp.weight_prepack": False,  # what it makes is for this machine and no tensor of numbers
}

_MODES = "mode"  # stands for several settings
_CAPTURES = "triton.cudagraphs"
# Names that a setting has besides.
_OTHER_NAMES = {CUDAGRAPHS: _CAPTURES}


def settings_of(given: dict[str, Any], graph: Graph, threads: int) -> dict[str, Any]:
    """The settings for one graph. given: those asked for at pack, which win over the program's."""
    merged = {**_spelled(dict(graph.options)), **_spelled(given)}
    mode = merged.pop(_MODES, None)
    return {**_DEFAULTS, **_of_mode(mode), **merged, **_FIXED, "cpp.threads": threads}


def wants_captures(given: dict[str, Any], graph: Graph) -> bool:
    """Whether launches are to be captured into CUDA graphs: asked for by itself or by a mode."""
    merged = {**_spelled(dict(graph.options)), **_spelled(given)}
    mode = merged.pop(_MODES, None)
    return bool({**_of_mode(mode), **merged}.get(_CAPTURES))


def check_settings(given: Iterable[tuple[str, Any]], place: str) -> None:
    """Raises AotdynError for settings that Inductor does not have, or of another type. place: who
    asked for them."""
    given = list(given)
    if not given:
        return
    from torch._inductor import config  # to pack only, and only where there are settings

    known = config.get_config_copy()
    for name, value in _spelled(dict(given)).items():
        if name == _MODES:
            _of_mode(value)
        elif name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AotdynError(f"Inductor has no option {name!r}, asked for by {place}{hint}")
        elif not _is_like(value, known[name]):
            wanted, found = type(known[name]).__name__, type(value).__name__
            raise AotdynError(f"the option {name!r} takes {wanted}, not {found} ({place})")


def without_effect(given: Iterable[tuple[str, Any]]) -> list[str]:
    """Those of these settings that this target does not leave open."""
    return [
        name for name, value in _spelled(dict(given)).items() if _FIXED.get(name, value) != value
    ]


def _spelled(given: dict[str, Any]) -> dict[str, Any]:
    """As with torch.compile, a name may have hyphens."""
    plain = {name.replace("-", "_"): value for name, value in given.items()}
    return {_OTHER_NAMES.get(name, name): value for name, value in plain.items()}


def _is_like(value: Any, default: Any) -> bool:
    if default is None or value is None:
        return True
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(default, int | float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, type(default)) or isinstance(default, list | tuple | dict | set)


def _of_mode(mode: Any) -> dict[str, Any]:
    if mode in (None, "default"):
        return {}
    from torch._inductor import list_mode_options

    modes = list_mode_options()
    if mode not in modes:
        raise AotdynError(f"unknown mode {mode!r}; the known ones are: {', '.join(modes)}")
    return modes[mode]
