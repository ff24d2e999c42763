"""What happens when no variant covers a call: more variants from packages, the JIT, eager, or an
error. Decided at frame entry, before any side effect."""

import gc
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..package.errors import Miss, PackageError
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.point import RAISE
from ..package.reference import State
from ..package.replaced import builtins_replaced
from ..package.state import is_state, process_state
from . import logs, registry
from .cpython import internal
from .link import Linked, Linker

if TYPE_CHECKING:
    from .explain import Explainer, Failure

RECOMPILE_LIMIT = 16
# From so many variants on, no further ones are made for single values of what differs.
CROWDED = 12

# Tracing is done by one thread at a time: it changes the process' state for a while.
_tracing = threading.RLock()


def handle(entry, values: tuple) -> tuple[tuple, Callable] | None:
    """The graph's inputs and the body for a call that the first variant does not cover; None: run
    it as plain Python.

    Raises Miss if misses are forbidden, Unsupported if the graph breaks under `fullgraph`.
    """
    found = entry.covering(values, behind=1) or _from_packages(entry, values)
    if found is not None:
        entry.hits += 1
        return found
    if entry.skipped:
        return None
    policy = registry.on_miss()
    if policy != "jit" and not entry.linked and not (entry.parent or entry).asked_for:
        # A nested frame that was never recorded: plain Python is what it is meant to be.
        return None
    entry.missed += 1
    if logs.wanted("misses"):
        logs.log("misses", _describe(entry, values, cures=True))
    if policy == "error":
        return _forbidden(entry, Miss(_describe(entry, values, cures=True)))
    if policy == "eager" or builtins_replaced():
        return None
    return _trace(entry, values)


def _forbidden(entry, miss: Miss) -> tuple[tuple, Callable] | None:
    """Raises a Miss. In the middle of a frame the frame itself raises it, so that its contexts are
    left; an exception that is on its way there already goes on as in plain Python."""
    if entry.point is None:
        raise miss
    if entry.point.kind == RAISE:
        return None
    raising = entry.at(replace(entry.point, kind=RAISE))
    return (), internal(
        lambda inputs, *values: entry.settings.run_plain(raising, (*values, miss))
    )


def _from_packages(entry, values: tuple) -> tuple[tuple, Callable] | None:
    """Links variants that open packages have for an entry, until one covers the call.

    The rest stay pending: a process that starts should not pay for calls it does not make.
    """
    if entry.generation == registry.generation() and not entry.pending:
        return None
    if registry.on_miss() != "error" and builtins_replaced():
        # Linking calls the standard library, which would call what the program has put there.
        return None
    with _tracing, _collector_paused():
        if entry.generation != registry.generation():
            entry.generation = registry.generation()
            entry.pending = _offered(entry)
        # Those recorded under this state first: no other can cover the call.
        state = process_state()
        entry.pending.sort(key=lambda offer: not _recorded_under(offer[2], state))
        while entry.pending:
            package, index, variant = entry.pending.pop(0)
            linked = _link_packaged(entry, package, index, variant)
            if linked is None:
                continue
            entry.add(linked, first=False)
            inputs = linked.check(*values)
            if inputs is not None:
                body: Any = linked.body
                return inputs, body
    # Another thread may have linked the right one meanwhile.
    return entry.covering(values)


def _offered(entry) -> list[tuple]:
    """(package, place, variant) of every variant that is not linked yet."""
    known = {linked.variant.id for linked in entry.linked}
    return [
        (package, index, variant)
        for package in registry.packages()
        for index, variant in enumerate(package.variants(entry.key))
        if not known or variant.id not in known
    ]


def _recorded_under(variant, state: str) -> bool:
    return any(isinstance(r, State) and is_state(r.json, state) for r in variant.names.values())


def _link_packaged(entry, package, index: int, variant) -> Linked | None:
    """A linked variant of a package; None, named once, if it does not fit this process."""
    try:
        graph = package.graph(variant.graph) if variant.graph is not None else None
        linked = Linker(entry, variant).link(graph)
    except PackageError as error:
        package.refuse(variant, str(error))
        return None
    linked.read_guards = partial(package.guards, entry.key, index)
    return linked


class _collector_paused:
    """Linking makes many small objects and no garbage; a collection over all that torch has
    loaded would cost more than the linking."""

    def __enter__(self):
        self.was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *exc_info):
        if self.was_enabled:
            gc.enable()


def _describe(entry, values: tuple, cures: bool = False) -> str:
    """What the nearest variant expected and what is there instead."""
    code = entry.code
    lines = [f"no variant of {entry.key.qualname} ({code.co_filename}:{code.co_firstlineno}) "
             f"covers this call ({len(entry.linked)} tried)"]  # fmt: skip
    failures = nearest(entry.linked, values)
    lines += [f"  failed: {failure}" for failure in failures]
    if cures:
        lines += [f"  to cover it: {cure}" for cure in dict.fromkeys(f.cure for f in failures)]
    return "\n".join(lines)


def nearest(variants: list[Linked], values: tuple) -> "list[Failure]":
    """The guards that fail in the variant of which the fewest do."""
    found = [_explainer(linked, values).failures() for linked in variants]
    return min(filter(None, found), key=len, default=[])


def _explainer(linked: Linked, values: tuple) -> "Explainer":
    # Imported when it is needed: a process whose calls are all covered explains nothing.
    from .explain import Explainer

    return Explainer(linked, values)


def _trace(entry, values: tuple) -> tuple[tuple, Callable] | None:
    # The one door through which the runtime reaches the tracer.
    from .triton_stand_in import hidden

    with hidden():  # torch's compiler must not take it for the library
        from . import jit

    with _tracing:
        # Another thread may have traced the same meanwhile.
        found = entry.covering(values)
        if found is not None:
            return found
        if len(entry.linked) + entry.dropped >= RECOMPILE_LIMIT:
            failures = [_explainer(linked, values).failures()[:1] for linked in entry.linked]
            jit.report_limit(entry, [failure for first in failures for failure in first])
            entry.skipped = "recompile_limit"
            return None
        if entry.linked and logs.wanted("recompiles"):
            logs.log("recompiles", _describe(entry, values))
        linked = jit.trace(entry, values)
        if linked is None:
            return None
        body: Any = linked.body
        return own_inputs(linked, values), body


def own_inputs(linked: Linked, values: tuple) -> tuple:
    """The graph's inputs of the call that a new variant was made for, which it must cover."""
    inputs = linked.check(*values)
    if inputs is None:
        reason = _explainer(linked, values).first_failure()
        raise AssertionError(f"a new variant does not cover the call it was made for: {reason}")
    return inputs
