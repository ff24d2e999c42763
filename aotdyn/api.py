"""The public API: thin functions over the runtime, the tracer and the packer.

The tracer and compilers are imported when a call is traced or packed, never to serve a package.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

from .runtime.compiled import compiled
from .runtime.package import Package
from .runtime.settings import Settings


def compile(
    target: Any = None,
    *,
    backend: Any = None,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Compiles a function, method or module; as a call, or as a decorator with or without options.

    backend: "eager", "inductor" (the default) or a callable `(GraphModule, example_inputs) ->
    callable`. fullgraph: a graph break raises `Unsupported`. dynamic: None makes sizes and ints
    symbolic when they are seen to differ, True from the start, False never. mode, options: as with
    torch.compile, the one or the other, for Inductor; recorded, and used when graphs are packed.
    The option `capture=True` keeps numbers and sizes that depend on data (`item()`, `nonzero()`,
    boolean masks) in the graph, as `fullgraph` does.

    Served from the packages that are open (`load`); a call that none of them covers is traced.
    Raises TypeError for what cannot be called.
    """
    if target is None:
        return lambda decorated: compile(
            decorated, backend=backend, fullgraph=fullgraph, dynamic=dynamic, mode=mode,
            options=options,
        )  # fmt: skip
    return compiled(target, Settings(backend, fullgraph, dynamic, options, mode))


def load(
    path: str | os.PathLike,
    on_miss: str = "jit",
    *,
    triton_stand_in: bool = False,
    options: dict[str, Any] | None = None,
) -> Package:
    """Opens a package; compiled callables are served from it from now on.

    on_miss: what a call that it does not cover does: "jit" traces and compiles it, "eager" runs it
    as plain Python, "error" raises `Miss`. triton_stand_in: where Triton is not installed, programs
    that import it find a stand-in from now on: kernels run as parts of packaged graphs only.
    options: `{"cudagraphs": True}` captures the launches of graphs on a GPU for each shape and
    replays them, False does not; without it the program or `pack` has decided.
    Raises PackageError if the file is damaged or made for another Python. Loading runs code from
    the package: trust it as you trust a wheel.
    """
    if triton_stand_in:
        # Not at the top: few programs need it.
        from .runtime.triton_stand_in import stand_in

        stand_in()
    return Package(path, on_miss, options)


def record(
    path: str | os.PathLike, *, script: str = "", device: str = "cpu", weights: bool = False
) -> Any:
    """Records what compiled callables do inside a with block to the file `path`.

    weights: the values of parameters and buffers as well, where no gradients are recorded, so that
    `pack` can freeze them.

    Gives an object with `empty` and `summary()`. Graphs run eagerly meanwhile.
    """
    # Not imported before it is needed: serving never records.
    from .runtime.session import record as record_session

    return record_session(path, script=script, device=device, weights=weights)


def pack(
    recordings: str | os.PathLike | Sequence[str | os.PathLike],
    path: str | os.PathLike,
    targets: Sequence[str] = ("eager",),
    options: dict[str, Any] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    freeze: bool = False,
) -> Any:
    """Compiles recordings for targets and writes one package; returns a report that prints well.

    options: for the compilers: `isas`, `threads`, `ways`, `imports`, `tune`, `cudagraphs`, and
    Inductor's settings by their names. freeze: compiled graphs without gradients take the recorded
    weights for constants.
    progress: called with the graphs done, their number, and the one at work.

    Raises AotdynError for an unknown target or recordings with nothing in them, PackageError for a
    damaged recording.
    """
    # The compilers are only imported to pack.
    from .package.pack import pack as pack_recordings

    if isinstance(recordings, str | os.PathLike):
        recordings = [recordings]
    return pack_recordings(recordings, path, targets, options, progress, freeze)


def explain(function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Runs a call under the tracer and tells what it is made of: an `Explanation` with graphs,
    guards and breaks, which prints well."""
    # The tracer is only imported to explain.
    from .runtime.explanation import explain_call

    return explain_call(function, args, kwargs)
