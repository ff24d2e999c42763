"""Traces one frame into a variant. The one function that the rest of aotdyn calls: `trace_frame`.

Reading order: here, `tracer`, `interpreter`, `opcodes/`, `operation`, `rules/`, then `check` and
`body` (with `rebuild` and `write_back`) for what comes out.
"""

import functools
import logging
import random
import sys
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from ..package.errors import Unsupported
from ..package.graph import Graph
from ..package.guard import Guard
from ..package.options import CompileOptions
from ..package.point import RAISE, RESUME, Point
from ..package.reference import Live
from ..package.replaced import replaced_methods
from ..package.source import Local, Source
from ..package.state import process_state, restore_state, without_attention
from ..package.variant import Break, EntryKey, Variant
from ..policy import counts_references
from . import attributes, reasons, rebuild
from .assumptions import write_assumptions
from .body import BodyWriter, Restart
from .breaks import write_break, write_return
from .check import CheckWriter
from .frame import Frame
from .generators import require_ended
from .hazards import can_copy, recorded_by_autograd, storage_of
from .interpreter import run
from .invoke import MAXIMUM_DEPTH
from .let_go import require_no_ends
from .lifetimes import guard_consumed, note_given
from .namespaces import globals_source
from .naming import Names, parameter_names
from .references import is_made
from .rules import (
    arrays,
    attention,
    autograd,
    builtin_attributes,
    builtins,
    checked_numbers,
    class_statements,
    context_variables,
    copying,
    deques,
    devices,
    distributions,
    enums,
    exception_groups,
    exceptions,
    function_objects,
    functions,
    generics,
    gradients,
    hashing,
    higher_order,
    holders,
    hooks,
    identities,
    inspection,
    instance_dicts,
    iterators,
    late_texts,
    library,
    live_iterators,
    live_sets,
    locks,
    mapping_objects,
    mappings,
    messages,
    mirrors,
    module_hooks,
    modules,
    patterns,
    proxies,
    pure_functions,
    recurrent,
    sequence_objects,
    sequences,
    simple_objects,
    state_contexts,
    statistics,
    steps,
    symbolic,
    tensors,
    tensors_of_arrays,
    texts,
    torch_state,
    transforms,
    user_kernels,
    value_objects,
    waiting_generators,
)
from .shapes import History
from .signals import GraphBreak, Raised, SkipFrame
from .tracer import Stop, Tracer
from .unnamed import by_their_facts
from .variables import (
    CellVariable,
    DictVariable,
    ExceptionVariable,
    HandledVariable,
    Null,
    ObjectVariable,
    TensorVariable,
    Variable,
)

# Importing these registers their rules.
RULE_MODULES = (
    arrays, attention, attributes, autograd, builtin_attributes, builtins, checked_numbers,
    class_statements, context_variables, copying, deques, devices, distributions, enums,
    exception_groups, exceptions, function_objects, functions, generics, gradients, hashing,
    higher_order, holders, hooks, identities, inspection, instance_dicts, iterators, late_texts,
    library, live_iterators, live_sets, locks, mapping_objects, mappings, messages, mirrors,
    module_hooks, modules, patterns, proxies, pure_functions, rebuild, recurrent, sequence_objects,
    sequences, simple_objects, state_contexts, statistics, steps, symbolic, tensors,
    tensors_of_arrays, texts, torch_state, transforms, user_kernels, value_objects,
    waiting_generators,
)  # fmt: skip

MAXIMUM_ATTEMPTS = 100
# So many pairs of objects are told apart one by one.
_MOST_PAIRS = 8
# Methods and properties of tensors by which the tracer itself learns what they are.
_READ_BY_TRACER = {
    "shape", "size", "stride", "storage_offset", "dtype", "device", "layout", "dim", "ndim",
    "requires_grad", "is_leaf", "is_conj", "is_neg", "is_inference", "grad", "is_complex",
}  # fmt: skip
_GENERATORS = 0x20 | 0x80 | 0x100 | 0x200


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What the user asked for. dynamic: see `Shapes`. fullgraph: a break is an error.

    break_every: a debug switch: the entry goes on in another one after so many instructions;
    break_steps: there it also breaks at the instruction, instead of before it.
    compiler: what is asked of the compiler, noted on each graph.
    capture: numbers and sizes that depend on data become symbols where that is possible.
    """

    dynamic: bool | None = None
    fullgraph: bool = False
    break_every: int = 0
    break_steps: bool = False
    compiler: CompileOptions = ()
    capture: bool = False


@dataclass(frozen=True)
class Request:
    """A frame to be traced: code and point, the frame values (see `Point`), and what earlier
    traces of the entry have seen. crowded: it has many variants; see `wrap.varies`. computed: the
    local variables of the frame, at whatever point, that held floats which eager steps have
    computed; the trace adds to them."""

    key: EntryKey
    code: CodeType
    point: Point | None
    globals: dict[str, Any]
    values: tuple[Any, ...]
    history: History = field(default_factory=History)
    options: TraceOptions = field(default_factory=TraceOptions)
    crowded: bool = False
    computed: set[str] = field(default_factory=set)

    @property
    def reserved(self) -> int:
        """How many steps at the beginning cannot be broken at: the one that has raised."""
        return int(self.point is not None and self.point.kind == RAISE)

    @functools.cached_property
    def params(self) -> tuple[str, ...]:
        return parameter_names(self.code, self.point)


@dataclass(frozen=True)
class Traced:
    """What came out: the variant, its graph, and the objects only this process has."""

    variant: Variant
    graph: Graph | None
    live: list[Any]


def trace_frame(request: Request) -> Traced:
    """Traces a frame.

    Raises SkipFrame if the frame can only run as plain Python, Unsupported if `fullgraph` was
    asked for and the graph breaks.
    """
    if request.code.co_flags & _GENERATORS:
        raise SkipFrame("generator", request.code.co_name)
    if request.point is None and counts_references(request.code):
        raise SkipFrame("lifetimes", request.code.co_name)
    if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
        raise SkipFrame("mode", "")
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise SkipFrame("mode", "a functional transform")
    if _below_autograd():
        raise SkipFrame("mode", "called by torch from below autograd")
    if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        # They would be called for what is saved while tracing.
        raise SkipFrame("mode", "hooks for saved tensors")
    if not _READ_BY_TRACER.isdisjoint(replaced_methods()):
        raise SkipFrame("mode", "what tensors say of themselves was replaced")
    stop_at: dict[int, GraphBreak] = {}
    for _ in range(MAXIMUM_ATTEMPTS):
        tracer = Tracer(request, stop_at)
        try:
            with _process_preserved():
                try:
                    found = _attempt(tracer)
                finally:
                    tracer.graph.leave_modes()
            if isinstance(found, Found):
                return _finish(tracer, found)
            if request.options.fullgraph:
                raise _unsupported(tracer, found)
            step = found.origin if found.origin is not None else tracer.step
        finally:
            class_statements.forget(tracer.references.made)
            # What it has seen goes now: it knows itself, and would wait for the collector.
            tracer.let_go()
        if step <= request.reserved or step in stop_at:
            raise SkipFrame(found.reason, found.detail, found.places)
        stop_at[step] = found
    raise SkipFrame("internal", "no place was found at which to break")


# It reports what fails on fakes with a traceback; to the tracer that is a graph break.
_FAKE_LOG = logging.getLogger("torch._subclasses.fake_tensor")


def _below_autograd() -> bool:
    """Whether torch itself has called Python on the way to a kernel: in a `__torch_dispatch__`,
    an operator's implementation."""
    return not torch.is_inference_mode_enabled() and (
        torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutogradFunctionality)
    )


class _process_preserved:
    """Tracing leaves random state and the process' state as they were, and logs nothing of what
    torch finds wrong with an operation on fakes."""

    def __enter__(self):
        # A frame that is inlined takes a dozen of the tracer's own.
        self.depth = sys.getrecursionlimit()
        sys.setrecursionlimit(self.depth + 20 * MAXIMUM_DEPTH)
        self.silent, _FAKE_LOG.disabled = _FAKE_LOG.disabled, True
        self.random = random.getstate()
        self.torch_random = torch.get_rng_state()
        self.state = process_state()

    def __exit__(self, *exc_info):
        sys.setrecursionlimit(self.depth)
        _FAKE_LOG.disabled = self.silent
        random.setstate(self.random)
        torch.set_rng_state(self.torch_random)
        restore_state(self.state)


@dataclass(frozen=True)
class Found:
    """One complete attempt: the texts' writers and what the graph gives."""

    names: Names
    body: BodyWriter
    breaks: Break | None
    grad: bool
    state: str


def _attempt(t: Tracer) -> Found | GraphBreak:
    """Runs the frame once; a break that needs another attempt is the answer, not an error."""
    state = process_state()
    grad = torch.is_grad_enabled()
    outside = sys.exception()
    try:
        frame = root_frame(t)
    except GraphBreak as error:
        raise SkipFrame(error.reason, error.detail, error.places) from error
    names = Names(t.entry.params)
    writer = BodyWriter(t, names, t.entry.params)
    cause: GraphBreak | None = None
    execute = True
    try:
        value = run(t, frame, pending_exception(t)).value
    except GraphBreak as error:
        cause = _without_frames(error, outside)
        if cause.origin is not None or not _unchanged(t, frame):
            return cause
    except Raised as raised:
        error = GraphBreak("exception", raised.value.describe())
        if not _unchanged(t, frame):
            return error
        cause = error
    except Stop as stop:
        cause, execute = stop.cause, stop.execute
    except RecursionError:
        # What is nested too deeply for the tracer may be well within the program's limit.
        return GraphBreak("recursion", frame.code.co_qualname)
    try:
        t.graph.require_left(cause)
        require_no_ends(t)
        guard_consumed(t, frame)
        if cause is None:
            write_return(t, writer, value)
            write_assumptions(t, writer)
            require_ended(t, writer)
            return Found(names, writer, None, grad, _state_used(t, state))
        if t.entry.options.fullgraph:
            return cause
        write_break(t, writer, frame, frame.instruction, execute)
        write_assumptions(t, writer)
        require_ended(t, writer)
        return Found(names, writer, _describe(frame, cause), grad, _state_used(t, state))
    except GraphBreak as error:
        if error.origin is None:
            error.origin = -1
        return _without_frames(error, outside)
    except RecursionError:
        return GraphBreak("recursion", "a value is nested too deeply", -1)


def _state_used(t: Tracer, state: str) -> str:
    return state if t.graph.attends else without_attention(state)


def _without_frames(error: GraphBreak, outside: BaseException | None) -> GraphBreak:
    """A break that is kept: the frames in its traceback would keep those of the program alive, and
    all that these hold, until the collector comes. outside: what was being handled when the trace
    began, which is the program's and keeps its own."""
    seen: BaseException | None = error
    while seen is not None and seen is not outside:
        seen.__traceback__ = None
        if seen.__context__ is outside:
            seen.__context__ = None
        seen = seen.__cause__ or seen.__context__
    return error


def _unchanged(t: Tracer, frame: Frame) -> bool:
    """Whether the instruction that broke had done nothing yet; restores the operands if so."""
    progress, stack, kw_names = t.before
    if progress != t.progress():
        return False
    frame.stack = stack
    frame.kw_names = kw_names
    return True


def _describe(frame: Frame, cause: GraphBreak) -> Break:
    stack = cause.places or frame.places()
    return Break(cause.reason, cause.detail, reasons.hint(cause.reason), tuple(stack))


def _unsupported(t: Tracer, cause: GraphBreak) -> Unsupported:
    places = cause.places or (t.frame.places() if t.frame else ())
    where = "\n".join(f"  at {place}" for place in places)
    text = reasons.message(cause.reason, cause.detail)
    return Unsupported(f"graph break with fullgraph=True: {text}\n{where}\n"
                       f"  hint: {reasons.hint(cause.reason)}")  # fmt: skip


def root_frame(t: Tracer) -> Frame:
    """The entry's own frame, standing at its point."""
    request = t.entry
    code, point = request.code, request.point
    frame = Frame(code, request.globals, globals_source(request.globals, request.globals))
    values = iter(zip(request.params, request.values, strict=True))

    def take() -> Variable:
        name, value = next(values)
        return t.lazy(value, Local(name))

    if point is None:
        count = len(request.params) - len(code.co_freevars)
        for name in code.co_varnames[:count]:
            frame.locals[name] = take()
        cells = code.co_freevars
    else:
        for name in code.co_varnames:
            variable = take()
            if name not in point.unbound and name not in code.co_cellvars:
                frame.locals[name] = variable
        cells = (*code.co_cellvars, *code.co_freevars)
        frame.index = frame.decoded.at[point.offset]
    t.root = t.frame = frame
    for name in cells:
        cell = t.realize(take())
        assert isinstance(cell, CellVariable)
        frame.cells[name] = cell
    if point is not None:
        frame.stack = [take() if there else Null() for there in point.stack]
        operands = enumerate(frame.stack)
        note_given(t, frame, [each for i, each in operands if i not in point.handled])
        if point.kind == RESUME and point.stack and point.stack[-1]:
            t.shapes.computed.add(Local(request.params[-1]))
        named = zip(code.co_varnames, request.params)
        computed = (Local(param) for name, param in named if name in request.computed)
        t.shapes.computed.update(computed)
        for position in point.handled:
            frame.stack[position] = _handled(t, frame.stack[position])
    return frame


def _handled(t: Tracer, value: Variable) -> HandledVariable:
    """A handler that is being run: its exception is the one that is handled from here on."""
    exception = t.realize(value)
    assert isinstance(exception, ExceptionVariable)
    handler = HandledVariable(exception, t.handled, -1)
    t.handled = exception
    return handler


def pending_exception(t: Tracer) -> Raised | None:
    """What the instruction has raised at which the frame is entered."""
    if not t.entry.reserved:
        return None
    exception = t.realize(t.lazy(t.entry.values[-1], Local(t.entry.params[-1])))
    if not isinstance(exception, ExceptionVariable):
        raise GraphBreak("exception", exception.describe(), -1)
    return Raised(exception)


def _finish(t: Tracer, found: Found) -> Traced:
    """The variant of a complete attempt."""
    request = t.entry
    graph = t.graph.finish(found.body.outputs, found.grad, found.state)
    inputs = [] if graph is None else [t.graph.input_source(i.name) for i in graph.inputs]
    guards = _all_guards(t, found)
    graph_id = graph.id if graph is not None else None
    body = found.body.write(graph_id, inputs, _restart(t, graph))
    guards, inputs = by_their_facts(
        guards, inputs, t.references.live, found.names.references.values()
    )
    written = [v.source for v in t.effects.changed.values() if v.source is not None]
    check = CheckWriter(found.names, request.params).write(guards, inputs, written)
    references = found.names.references
    variant = Variant(
        entry=request.key,
        check=check,
        body=body,
        names=references,
        guards=tuple(guards),
        graph=graph_id,
        codes=(*t.references.codes.items(), *t.references.kernels.items()),
        breaks=found.breaks,
        file=request.code.co_filename,
        line=request.code.co_firstlineno,
        params=request.params,
        obstacles=tuple(dict.fromkeys(_obstacles(references))),
    )
    return Traced(variant, graph, t.references.live)


def _restart(t: Tracer, graph: Graph | None) -> Restart:
    """How the frame starts over where the graph raises."""
    hazards = t.shapes.hazards
    inputs = {v.node: v for v in t.tensors if v.node is not None}
    changed = {
        index: inputs[spec.name]
        for index, spec in enumerate(graph.inputs if graph is not None else ())
        if spec.name in inputs and storage_of(inputs[spec.name].fake) in hazards.changed
    }
    # Only inference tensors do not tell whether they have changed.
    wanted = {index: variable for index, variable in changed.items()
              if hazards.raises_late or variable.fake.is_inference()
              if not recorded_by_autograd(variable)}  # fmt: skip
    if not can_copy(list(wanted.values())):
        wanted = {index: variable for index, variable in wanted.items()
                  if storage_of(variable.fake) in hazards.undone}  # fmt: skip
    copied = tuple(wanted)
    watched = tuple(index for index in changed if index not in wanted)
    return Restart(copied, watched, hazards.draws and hazards.raises_late)


def _obstacles(references: dict) -> list[str]:
    """Why the variant cannot be used in another process."""
    return [f"{ref.what} has no name in other processes" for ref in references.values()
            if isinstance(ref, Live)]  # fmt: skip


def _all_guards(t: Tracer, found: Found) -> list[Guard]:
    guards = [Guard("STATE", None, found.state)]
    if t.references.codes:
        guards.append(Guard("CODES", None, tuple(t.references.codes)))
    guards += t.classes.guards()
    guards += t.guards.values()
    guards += _distinct(t)
    guards += _no_own_dicts(t)
    if len(t.keys) > 1:
        guards.append(Guard("DIFFERENT", None, tuple(t.keys)))
    if t.tensors:
        sources = tuple(v.source for v in t.tensors)
        guards.append(Guard("TENSORS", None, (sources, tuple(map(t.shapes.meta, t.tensors)))))
    guards += t.shapes.guards()
    return guards


def _no_own_dicts(t: Tracer) -> list[Guard]:
    """A dict among the frame's values must not be the own one of an object, where the one or the
    other is changed. Those of modules are not handed around as dicts."""
    changed = {id(variable) for variable in t.effects.changed.values()}
    tables = [v for v in t.remembered() if type(v) is DictVariable and type(v.source) is Local]
    return [
        Guard("DISTINCT", table.source, own)
        for owner, own in t.own_dicts.values()
        if not issubclass(owner.cls, torch.nn.Module)
        for table in tables
        if id(table) in changed or id(owner) in changed
    ]


def _distinct(t: Tracer) -> list[Guard]:
    """An object that is changed must not be another one that was looked at under another path.
    The guard on tensors tells them apart by itself."""
    guards = []
    # What an instance of a builtin container's subclass holds is changed with the instance.
    changed = [getattr(v, "owner", None) or v for v in t.effects.changed.values()]
    seen: set[frozenset[Source]] = set()
    for variable in changed:
        if variable.source is None or is_made(variable.source):
            continue
        if isinstance(variable, TensorVariable):
            continue
        for other in t.remembered():
            if other is variable or type(other) is not type(variable) or other.source is None:
                continue
            if isinstance(variable, ObjectVariable) and other.type is not variable.type:
                continue
            if is_made(other.source):
                continue
            pair = frozenset((variable.source, other.source))
            if len(pair) == 2 and pair not in seen:
                seen.add(pair)
                guards.append(Guard("DISTINCT", variable.source, other.source))
    if len(guards) > _MOST_PAIRS:
        # All modules below one that is switched, say: asked for at once.
        sources = dict.fromkeys(each for g in guards for each in (g.source, g.expected))
        return [Guard("DIFFERENT", None, tuple(sources))]
    return guards
