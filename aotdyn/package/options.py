"""What a program asks of the compiler by `mode` and `options`, as data that is recorded with its
graphs. Whether the compiler knows them is only seen where it is at hand: at pack, and in the JIT.
"""

from typing import Any

from .errors import AotdynError

CompileOptions = tuple[tuple[str, Any], ...]

CUDAGRAPHS = "cudagraphs"  # of compile(), pack and load: launches are captured for each shape

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")

# For the tracer, and what torch.compile takes for its own tracer and other ways of compiling.
_NOT_THE_COMPILER_S = ("capture", "guard_filter_fn", "use_aoti")


def compile_options(
    mode: str | None, options: dict[str, Any] | None
) -> tuple[CompileOptions, list[str]]:
    """The options in a fixed order, and the names of those that only this process can have, such
    as functions. Raises RuntimeError, with torch.compile's words, for what it refuses at once."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    given = {"mode": mode} if mode not in (None, "default") else dict(options or {})
    given = {name: given[name] for name in sorted(given) if name not in _NOT_THE_COMPILER_S}
    live = [name for name, value in given.items() if not _is_data(value)]
    return tuple((name, value) for name, value in given.items() if name not in live), live


def _is_data(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_data, value))
    if isinstance(value, dict):
        return all(type(key) is str and _is_data(part) for key, part in value.items())
    return value is None or type(value) in (bool, int, float, str)


def load_options(given: dict[str, Any] | None) -> dict[str, Any]:
    """The options of `load`. Raises AotdynError for what is none."""
    for name, value in (given or {}).items():
        if name != CUDAGRAPHS:
            raise AotdynError(f"a package is loaded with the option {CUDAGRAPHS!r}, not {name!r}")
        if type(value) is not bool:
            raise AotdynError(f"the option {name!r} takes bool, not {type(value).__name__}")
    return dict(given or {})
