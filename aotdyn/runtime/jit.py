"""The JIT: traces a call that missed and links what comes out. The only module of the runtime
that imports the tracer; `misses.py` imports it when the first miss wants it."""

import dis
import io
import os
import traceback
from collections import Counter

from ..package.covers import covers, goes_as_far
from ..package.errors import AotdynError, Unsupported
from ..package.graph import python_source
from ..package.interruptions import require_own
from ..package.own_builtins import BUILTINS as __builtins__  # noqa: F401
from ..package.reference import EntryAt, Import, Live
from ..record.reasons import hint, message
from ..record.shapes import History
from ..record.signals import SkipFrame
from ..record.trace import Request, Traced, TraceOptions, trace_frame
from . import logs, recorder
from .backends import compile_graph
from .cpython import resume_code
from .explain import Failure, describe_guard, mark_of
from .link import Linked, Linker
from .misses import CROWDED, own_inputs
from .trial import put_on_trial


def trace(entry, values: tuple) -> Linked | None:
    """A new variant for a call, added to its entry; None if the frame can only run as it is.

    Raises Unsupported if the graph breaks under `fullgraph`.
    """
    settings = entry.settings
    if entry.history is None:
        entry.history = History()
        # Oldest first. What a package was recorded with differs from the call at hand.
        for linked in reversed(entry.linked):
            entry.history.learn(linked.guards())
    request = Request(
        entry.key,
        entry.code,
        entry.point,
        entry.globals,
        values,
        entry.history,
        TraceOptions(
            settings.dynamic,
            settings.fullgraph,
            *_debug_switches(),
            settings.options,
            settings.capture,
        ),
        crowded=len(entry.linked) + entry.dropped >= CROWDED,
        computed=entry.computed,
    )
    try:
        traced = trace_frame(request)
        linker = Linker(entry, traced.variant, traced.live)
        linked = linker.link()
        inputs = own_inputs(linked, values)
    except Unsupported:
        raise
    except SkipFrame as skip:
        _skip(entry, skip.reason, skip.detail, skip.places)
        return None
    except RecursionError:
        # The program itself has gone deep: this call runs as it is, a later one may be traced.
        logs.log("trace", f"{entry.key.qualname}: too deep a stack to trace at")
        return None
    except Exception as error:
        require_own(error)
        if isinstance(error, AotdynError) or os.environ.get("AOTDYN_STRICT"):
            raise
        # A fault of the tracer must not become one of the program: the frame runs as it is.
        logs.warn(f"internal error while tracing {entry.key.qualname}: {error!r}; it runs eagerly")
        logs.log("trace", traceback.format_exc())
        _skip(entry, "internal", repr(error))
        return None
    _log(entry, traced)
    if linked.body is None:
        linker.link_body(linked, compile_graph(entry.settings, traced.graph, inputs))
    if not recorder.active():
        put_on_trial(entry, linked)
    recorder.record(entry, traced, linked, inputs)
    entry.add(linked)
    _replace_covered(entry, linked)
    return linked


def _debug_switches() -> tuple[int, bool]:
    """AOTDYN_BREAK_EVERY=n breaks every graph after n instructions; with AOTDYN_BREAK_STEPS=1 the
    one behind them is executed by itself, as where the graph had to break."""
    every = int(os.environ.get("AOTDYN_BREAK_EVERY") or 0)
    return every, bool(os.environ.get("AOTDYN_BREAK_STEPS"))


def _replace_covered(entry, general: Linked) -> None:
    """Drops the variants that a new one covers. They still count for the limit."""
    guards = general.guards()
    kept = [
        each
        for each in entry.linked
        if each is general or not (
            goes_as_far(general.variant, each.variant)
            and _mean_the_same(general, each)
            and covers(guards, each.guards())
        )
    ]
    entry.dropped += len(entry.linked) - len(kept)
    entry.linked = kept
    entry.refresh()


def _mean_the_same(left: Linked, right: Linked) -> bool:
    """Whether what two variants name alike is the same object: a function may have been replaced
    in between."""
    names = {ref: left.names.get(name) for name, ref in left.variant.names.items()}
    return all(
        names[ref] is right.names.get(name)
        for name, ref in right.variant.names.items()
        if isinstance(ref, Import | Live) and ref in names
    )


def _skip(entry, reason: str, detail: str, places: tuple[str, ...] = ()) -> None:
    if entry.settings.fullgraph and entry.point is None and entry.parent is None:
        raise Unsupported(f"{entry.key.qualname} cannot be traced: {message(reason, detail)}")
    if reason == "mode":
        # The next call may come outside of it.
        if entry.missed > 1:
            return
    else:
        entry.skipped = reason
    told, code = message(reason, detail), entry.code
    places = places or (f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}",)
    recorder.obstacle(entry, f"{told} (at {places[-1]}); {hint(reason)}")
    stack = "".join(f"\n  at {place}" for place in places)
    logs.log("graph_breaks", f"{entry.key} runs as plain Python: {told}{stack}\n"
                             f"  hint: {hint(reason)}")  # fmt: skip


def report_limit(entry, failures: list[Failure]) -> None:
    """Says that an entry gets no further variants, and which guard kept failing. failures: the
    first of each variant, the newest first."""
    code = entry.code
    text = (
        f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) has "
        f"{len(entry.linked)} variants; calls that none of them covers run eagerly from now on"
    )
    if failures:
        counts = Counter(failure.subject for failure in failures)
        subject, count = counts.most_common(1)[0]
        last = next(failure for failure in failures if failure.subject == subject)
        text += f" ({subject} differed in {count} of them; failed last: {last})"
        if last.dims:
            text += f"; {mark_of(subject, last.dims).removesuffix(' while recording')}"
            text += " before the first call makes it symbolic"
    logs.warn(text)
    recorder.obstacle(entry, message("recompile_limit", ""))


def _log(entry, traced: Traced) -> None:
    variant, graph = traced.variant, traced.graph
    title = str(variant.entry)
    if logs.wanted("trace"):
        logs.log("trace", f"{title}: {len(variant.guards)} guards, "
                          f"{len(graph.nodes) if graph else 0} operations")  # fmt: skip
    if graph is not None and logs.wanted("graph_code"):
        logs.log("graph_code", f"{title}\n{python_source(graph)[0]}")
    if graph is not None and logs.wanted("graph_sizes"):
        sizes = [f"{i.name}: {i.dtype}{list(i.size)}" for i in graph.inputs]
        logs.log("graph_sizes", f"{title}: {', '.join(sizes)}")
    if logs.wanted("guards"):
        lines = [f"{g.kind}: {describe_guard(g)}  # {g.user}" for g in variant.guards]
        logs.log("guards", "\n".join([title, *lines]))
    if logs.wanted("output_code"):
        logs.log("output_code", f"{title}\n{variant.check}\n{variant.body}")
    if logs.wanted("bytecode"):
        logs.log("bytecode", _bytecode(entry, variant))
    if variant.breaks is not None and logs.wanted("graph_breaks"):
        cause = variant.breaks
        stack = "".join(f"\n  at {place}" for place in cause.stack)
        logs.log("graph_breaks", f"{title}: {message(cause.reason, cause.detail)}{stack}\n"
                                 f"  hint: {cause.hint}")  # fmt: skip


def _bytecode(entry, variant) -> str:
    """The original instructions, what replaces them, and the resume functions it goes on in."""
    out = io.StringIO()
    print(f"ORIGINAL {variant.entry}", file=out)
    dis.dis(entry.code, file=out)
    print(f"REPLACED BY\n{variant.check}\n{variant.body}", file=out)
    for name, reference in variant.names.items():
        if isinstance(reference, EntryAt):
            print(f"RESUME FUNCTION {name}", file=out)
            try:
                dis.dis(resume_code(entry.code, reference.point), file=out)
            except ValueError as error:
                print(f"  none: {error}", file=out)
    return out.getvalue()
