"""The graph that is being recorded: operators run on fake tensors, and become nodes."""

import contextlib
import copy
import enum
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils._device import _device_constructors

from ..package.arrays import SCALARS
from ..package.frozen import plain_text
from ..package.graph import Graph, GraphInput, Node, Value, torch_names, values_in
from ..package.interruptions import require_own
from ..package.providers import providers_of
from ..package.reference import Import
from ..package.source import Attribute, Item, Local, Size, Source
from ..package.state import process_state, without_attention
from ..package.user_kernels import UserKernel
from .failures import is_answered, is_caught, raised_by
from .graph_ops import method_name
from .hazards import can_undo, storage_of
from .nested import Scope
from .signals import GraphBreak, NotConstant, Raised
from .variables import (
    QUANTIZED,
    Constant,
    DictVariable,
    Known,
    Lazy,
    Opaque,
    RangeVariable,
    Sequence,
    SliceVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    ValueObject,
    Variable,
    is_dense,
)

_DATA_DEPENDENT = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    GuardOnDataDependentSymNode,
)


class GraphBuilder:
    """Collects inputs and nodes. Values are known by name; names are unique in the graph."""

    def __init__(self, t):
        self.t = t
        self.inputs: dict[str, tuple[GraphInput, Source]] = {}
        # Those of the function that is being recorded, of the graph itself outside of any.
        self._outermost: list[Node] = []
        self.nodes = self._outermost
        self._scopes: list[Scope] = []
        # The function that has defined a value; nothing for values of the graph itself.
        self._homes: dict[str, Scope] = {}
        # Values that were used, by name.
        self._named: dict[str, TensorVariable | Symbolic] = {}
        self._taken: set[str] = set()
        # Nodes that are dropped when nothing uses them; any other may have an effect (random
        # state, a check, an update in place).
        self._pure: set[str] = set()
        self._variables: dict[int, TensorVariable] = {}
        # Whether it matters which kernels attention may take.
        self.attends = False
        # Whether the body enters inference mode, in which all of the graph runs.
        self.within_inference = False
        # By node, the steps that gave hooks to tensors which the frame has made.
        self._hooked: dict[str, int] = {}
        # Tensors that came in whose data was replaced by some alike, and what must stay as it is.
        self._replaced: dict[int, tuple[TensorVariable, tuple]] = {}
        # The user's kernels that are launched, by what the nodes call them.
        self.kernels: dict[Import, UserKernel] = {}
        # The devices of `with torch.device(…)`, the innermost last, and the steps that entered.
        self.devices: list[tuple[torch.device, int]] = []
        # The inference modes that are entered: what leaves each, its node, the step that entered.
        self.inference: list[tuple[Any, str, int]] = []
        # By the node that has entered one, the state of the process inside.
        self._states_inside: dict[str, str] = {}

    # -- names -------------------------------------------------------------------------------

    def fresh(self, wanted: str) -> str:
        """A name that nothing in the graph has."""
        wanted = re.sub(r"\W", "_", wanted).strip("_") or "value"
        if wanted[0].isdigit():
            wanted = f"_{wanted}"
        name, count = wanted, 1
        while name in self._taken or name in _RESERVED:
            name, count = f"{wanted}_{count}", count + 1
        self._taken.add(name)
        return name

    def known(self) -> Iterable[TensorVariable]:
        """The tensors that came in or were made so far."""
        return self._variables.values()

    def tensor_name(self, variable: TensorVariable) -> str:
        """The name of a tensor; one that came in becomes an input on first use. Raises GraphBreak
        for one that has other data when the graph has run."""
        if "data" in variable.attributes and not self._stands_for_data(variable):
            raise GraphBreak("mutation", "a tensor is used after its data was replaced")
        if variable.node is None:
            variable.node = self.fresh(source_name(variable.source))
            spec = self.t.shapes.tensor_input(variable.node, variable)
            self.inputs[variable.node] = (spec, variable.source)
        return self._visible(variable)

    def symbol_name(self, variable: Symbolic) -> str:
        """The name of a symbolic number; made on first use."""
        if variable.node is None:
            if variable.make is not None:
                variable.node = variable.make()
            else:
                variable.node = self.fresh(source_name(variable.source))
                spec = _number_input(variable)
                self.inputs[variable.node] = (spec, variable.source)
        return self._visible(variable)

    # -- functions inside the graph ----------------------------------------------------------

    @contextlib.contextmanager
    def function(self, *reads: Scope, backward: bool = False) -> Iterator[Scope]:
        """Records into a function until it ends; see `Scope`."""
        scope = Scope(reads, backward)
        outer, self.nodes = self.nodes, scope.nodes
        self._scopes.append(scope)
        try:
            yield scope
        except Raised as raised:
            # A handler outside would go on without what the function has done.
            raise GraphBreak("exception", raised.value.describe()) from raised
        finally:
            self.nodes = outer
            self._scopes.pop()

    @property
    def in_backward(self) -> bool:
        """Whether what is recorded is (a part of) a backward."""
        return any(scope.backward for scope in self._scopes)

    def parameter(self, wanted: str) -> str:
        """The name of a parameter of the function that is being recorded."""
        name = self.fresh(wanted)
        scope = self._scopes[-1]
        scope.params.append(name)
        self._homes[name] = scope
        return name

    def tensor_parameter(self, wanted: str, fake: torch.Tensor) -> TensorVariable:
        """A tensor that the function that is being recorded is called with."""
        return self.register(self.t.new(TensorVariable(fake, self.parameter(wanted))))

    def is_of(self, variable: TensorVariable, scope: Scope) -> bool:
        """Whether a tensor was made in this function."""
        return variable.node is not None and self._homes.get(variable.node) is scope

    def add_part(self, node: str, index: int | str) -> str:
        """Appends a node for an item of what a node gives."""
        return self.add_pure("getitem", _GETITEM, (Value(node), index))

    def released(self, variable: TensorVariable) -> None:
        """The tensor leaves the function as a part of its result, which is another value."""
        if variable.node in self._homes:
            self._variables.pop(id(variable.fake), None)

    def _visible(self, variable: TensorVariable | Symbolic) -> str:
        """The name of a value. Raises GraphBreak for one of a function that has ended."""
        home = self._homes.get(variable.node)
        if home is not None and not any(
            home is scope or home in scope.reads for scope in self._scopes
        ):
            raise GraphBreak("nested", variable.describe(), variable.origin)
        self._named[variable.node] = variable
        return variable.node

    def fakes_of(self, names: list[str]) -> tuple:
        """What stands for these values while tracing."""
        return tuple(self.fake(self._named[name]) for name in names)

    # -- recording ---------------------------------------------------------------------------

    def register(self, variable: TensorVariable) -> TensorVariable:
        """Makes a tensor known by its fake, so that an operator that returns its argument gives
        the same variable back."""
        self._variables[id(variable.fake)] = variable
        return variable

    def call(
        self,
        operation: Any,
        args: list[Variable],
        kwargs: dict[str, Variable],
        on_fakes: Callable | None = None,
    ) -> Variable:
        """Runs an operator on fakes and records it. on_fakes: what to run in its place, for one
        that would fix symbolic numbers.

        Raises GraphBreak where the result depends on data or the operator fails.
        """
        kwargs = self._with_device(operation, kwargs)
        try:
            result = self._result(on_fakes or operation, args, kwargs)
        except GraphBreak:
            if not any(_is_float(arg) for arg in (*args, *kwargs.values())):
                raise
            # Not every operator takes a float whose value is not known.
            args, kwargs = self.t.specialized(args, kwargs)
            result = self._result(operation, args, kwargs)
        self._require_undone()
        self._require_only_data_replaced()
        return self._record(operation, args, kwargs, result)

    def _require_undone(self) -> None:
        """What was changed before an operator that may raise on data can be undone, so that the
        frame may start over where a handler of the program gets the exception, or the program has
        had an effect by then: those come after the graph.

        Raises GraphBreak where it cannot: then the operator runs on its own.
        """
        hazards = self.t.shapes.hazards
        if not hazards.raises_now:
            return
        hazards.raises_now = False
        if not is_answered(self.t) and not self.t.effects.is_seen:
            return
        changed = [variable for variable in self.t.tensors
                   if variable.node in self.inputs and storage_of(variable.fake) in hazards.changed]
        if not can_undo(changed):
            raise GraphBreak("late_failure", ", ".join(v.describe() for v in changed))
        hazards.undone |= hazards.changed

    def _with_device(self, operation: Any, kwargs: dict[str, Variable]) -> dict[str, Variable]:
        """The arguments of what makes a tensor, on the device that it is to be made on."""
        if not self.devices or operation not in _device_constructors():
            return kwargs
        given = kwargs.get("device")
        if given is not None and not (isinstance(given, Constant) and given.value is None):
            return kwargs
        return {**kwargs, "device": Constant(self.devices[-1][0])}

    def enter_inference(self, mode: bool) -> None:
        """Records that inference mode begins, or ends for a while; so it does for fakes."""
        if self._scopes:
            raise GraphBreak("mode", "inference mode in a function of the graph")
        guard = torch._C._InferenceMode(mode)
        guard.__enter__()
        node = self.add("inference", _ENTER, (mode,))
        self.inference.append((guard, node, self.t.step))
        self._states_inside[node] = process_state()

    def leave_inference(self) -> None:
        """Records the end of what was entered last."""
        guard, node, _ = self.inference.pop()
        guard.__exit__(None, None, None)
        self.add("inference", _LEAVE, (Value(node),))

    def leave_modes(self) -> None:
        """Tracing ends here: for fakes, too."""
        while self.inference:
            self.inference.pop()[0].__exit__(None, None, None)

    def require_left(self, cause: GraphBreak | None) -> None:
        """Raises GraphBreak where the graph ends within a `with torch.device(…)`, in inference
        mode or in another context of the process' state, at which it ends then: what is in it runs
        in a mode. cause: what the graph ends for."""
        entered = [step for *_, step in (*self.devices, *self.inference, *self.t.entered)]
        if entered:
            found = cause or GraphBreak("mode", "a mode is entered and not left")
            raise GraphBreak(found.reason, found.detail, min(entered), found.places)

    def _result(self, operation: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Any:
        """What an operator gives on fakes."""
        fake_args = [self.fake(arg) for arg in args]
        fake_kwargs = {key: self.fake(arg) for key, arg in kwargs.items()}
        return self.run(operation, fake_args, fake_kwargs)

    def run(self, operation: Any, args: list, kwargs: dict) -> Any:
        """Runs a function on fakes. Raises GraphBreak where it needs data or fails."""
        name = getattr(operation, "__name__", str(operation))
        try:
            # With the dispatcher of Python, composite operators run as decompositions, which
            # know symbolic sizes; C++'s own would fix them.
            with self.t.shapes.fake_mode, enable_python_dispatcher(), self.t.shapes.at(self.t.here):
                return operation(*args, **kwargs)
        except _DATA_DEPENDENT as error:
            raise GraphBreak("data_dependent", name) from error
        except UnsupportedOperatorException as error:
            raise GraphBreak("torch_refused", f"{name}: {error}") from error
        except Exception as error:
            require_own(error)
            failed = error
        if is_caught(self.t.frame):
            self._raise(operation, args, kwargs)
        detail = str(failed).strip().splitlines()
        raise GraphBreak(
            "fake_failed", f"{name}: {detail[0] if detail else type(failed).__name__}"
        ) from failed

    def _raise(self, operation: Any, args: list, kwargs: dict) -> None:
        """Raises in the program what an operator that has failed on fakes raises there, if that
        can be learnt."""
        try:
            error = raised_by(operation, args, kwargs)
        except NotConstant:
            return
        if error is not None:
            raise Raised(self.t.exception(type(error), *error.args)) from None

    def _record(self, operation: Any, args, kwargs, result: Any) -> Variable:
        known = self._variables.get(id(result)) if isinstance(result, torch.Tensor) else None
        if known is None and not _belongs_in_graph(result):
            return self.t.wrap_result(result)
        target = method_name(operation)
        if target is None:
            target = self.t.references.to(operation)
            wanted = getattr(operation, "__name__", "value")
        else:
            wanted = target
        arguments = tuple(self.argument(arg) for arg in args)
        named = tuple((key, self.argument(arg)) for key, arg in kwargs.items())
        self.t.unbacked.check()
        node = self.add(wanted, target, arguments, named)
        return known if known is not None else self.wrap(result, node)

    def add(self, wanted: str, target, args: tuple, kwargs: tuple = ()) -> str:
        """Appends a node and returns its name."""
        name = self.fresh(wanted)
        self.attends |= "scaled_dot_product" in wanted
        self.nodes.append(Node(name, target, args, kwargs, self.t.here))
        if self._scopes:
            self._homes[name] = self._scopes[-1]
        return name

    def is_used(self, variable: TensorVariable) -> bool:
        """Whether a node takes a tensor, or has changed it."""
        nodes = [*self._outermost, *(node for scope in self._scopes for node in scope.nodes)]
        return any(variable.node in values_in((n.args, dict(n.kwargs))) for n in nodes)

    def become(self, variable: TensorVariable, other: TensorVariable) -> None:
        """A tensor that the frame has made is from here on what another one is, which has a
        hook."""
        self._variables.pop(id(variable.fake), None)
        variable.fake, variable.node = other.fake, other.node
        self.register(variable)
        self._hooked[variable.node] = self.t.step

    def replace_data(self, variable: TensorVariable, value: TensorVariable) -> None:
        """A tensor that came in is from here on what its new data are, as far as the graph goes; it
        gets them itself when the graph has run. Not where it differs in more than data, and see
        `_stands_for_data`."""
        self._replaced.pop(id(variable), None)
        facts = facts_of(variable.fake)
        if variable.fake.requires_grad or facts != facts_of(value.fake):
            return
        # What the graph has done with the old data is still to be undone, and guarded.
        old = copy.copy(variable)
        self.t.tensors = [old if each is variable else each for each in self.t.tensors]
        self._variables.pop(id(variable.fake), None)
        variable.fake, variable.node = value.fake, value.node
        self.register(variable)
        self._replaced[id(variable)] = variable, facts

    def _stands_for_data(self, variable: TensorVariable) -> bool:
        """Whether a tensor with new data may be used. Not where autograd may keep it: a backward
        takes the data that it has by then."""
        if torch.is_grad_enabled() or self.is_nested:
            return False
        return id(variable) in self._replaced

    def _require_only_data_replaced(self) -> None:
        """What stands for a tensor with new data in the graph has changed in nothing but its data.

        Raises GraphBreak where it has: that would not be seen on the tensor itself.
        """
        for variable, facts in self._replaced.values():
            if facts_of(variable.fake) != facts:
                raise GraphBreak("mutation", "a tensor is changed after its data was replaced")

    def require_unhooked(self, variable: TensorVariable) -> None:
        """Raises GraphBreak for a tensor with a hook that is the backward of a function: other
        hooks would come before it."""
        if variable.node in self._hooked:
            step = self._hooked[variable.node]
            raise GraphBreak("autograd", "a tensor with a hook is not used in the graph only", step)

    @property
    def is_nested(self) -> bool:
        """Whether nodes go to a function inside of the graph."""
        return bool(self._scopes)

    def add_size(self, tensor: TensorVariable, dim: int) -> str:
        """Appends a node for a size, where the tensor is: who uses it may be another function."""
        of = self.tensor_name(tensor)
        scope = self._homes.get(of)
        inner, scopes = self.nodes, self._scopes
        if scope is None:
            self.nodes, self._scopes = self._outermost, []
        else:
            self.nodes, self._scopes = scope.nodes, [scope]
        try:
            return self.add_pure("sym_size", "size", (Value(of), dim))
        finally:
            self.nodes, self._scopes = inner, scopes

    def count_of_effects(self) -> int:
        """How many nodes there are that may have an effect; see `_pure`."""
        return sum(node.name not in self._pure for node in self.nodes)

    def add_pure(self, wanted: str, target, args: tuple) -> str:
        """Appends a node that is dropped if nothing uses it, and returns its name."""
        name = self.add(wanted, target, args)
        self._pure.add(name)
        return name

    def wrap(self, result: Any, node: str) -> Variable:
        """The variable for what a node gives."""
        if isinstance(result, torch.Tensor):
            known = self._variables.get(id(result))
            if known is not None:
                return known
            if not is_dense(result):
                raise GraphBreak("layout", "an operator gave it")
            made = self.register(self.t.new(TensorVariable(result, node, cls=_class_of(result))))
            self.t.unbacked.note(made)
            return made
        if isinstance(result, torch.SymInt | torch.SymFloat | torch.SymBool):
            self._pure.add(node)
            number = self.t.new(Symbolic(result, node))
            self.t.unbacked.note(number)
            return number
        if isinstance(result, tuple | list):
            items = [self._part(part, node, index) for index, part in enumerate(result)]
            if type(result) is list:
                return self.t.wrap_list(items)
            return self.t.new(TupleVariable(items, cls=type(result)))
        if type(result) is dict:
            pairs = {k: (Constant(k), self._part(v, node, k)) for k, v in result.items()}
            return self.t.new(DictVariable(pairs))
        if result is None:
            return Constant(None)
        raise GraphBreak("torch_refused", f"an operator gave {type(result).__name__}")

    def _part(self, part: Any, node: str, index: Any) -> Variable:
        """An item of what a node gives."""
        if _belongs_in_graph(part) and part is not None:
            return self.wrap(part, self.add_part(node, index))
        return self.t.wrap_result(part)

    # -- arguments ---------------------------------------------------------------------------

    def fake(self, arg: Variable) -> Any:
        """An argument for running an operator on fakes."""
        arg = self.t.realize(arg) if type(arg) is Lazy else arg
        arg = arg.contents if isinstance(arg, ValueObject) else arg
        if isinstance(arg, TensorVariable):
            return arg.fake
        if isinstance(arg, Symbolic):
            return arg.value
        if isinstance(arg, Constant | Known | RangeVariable):
            value = arg.constant()
            if type(value) in SCALARS and value.dtype.kind in _TAKEN_OTHERWISE:
                raise GraphBreak("torch_refused", f"an argument that is a {arg.describe()}")
            if value.__class__ is torch.dtype and value in QUANTIZED:
                # Some operators on fakes take it and give floats.
                raise GraphBreak("layout", f"a tensor of {value}")
            return value
        if isinstance(arg, SliceVariable):
            return slice(*map(self.fake, arg.items))
        if isinstance(arg, TupleVariable):
            items = tuple(map(self.fake, arg.items))
            return items if arg.cls in (tuple, torch.Size) else arg.constant()
        if isinstance(arg, Sequence):
            return [self.fake(item) for item in arg.items]
        if isinstance(arg, DictVariable):
            self.t.complete(arg)
            return {key: self.fake(item) for key, (_, item) in arg.items.items()}
        opaque = arg.value if isinstance(arg, Opaque) else None
        other = isinstance(opaque, torch.Tensor) and not is_dense(opaque)
        reason = "layout" if other else "torch_refused"
        raise GraphBreak(reason, f"an argument that is a {arg.describe()}")

    def argument(self, arg: Variable) -> Any:
        """An argument as it stands in a node."""
        arg = self.t.realize(arg) if type(arg) is Lazy else arg
        arg = arg.contents if isinstance(arg, ValueObject) else arg
        if isinstance(arg, TensorVariable):
            return Value(self.tensor_name(arg))
        if isinstance(arg, Symbolic):
            return Value(self.symbol_name(arg))
        if isinstance(arg, Known):
            return self._by_name(arg)
        if isinstance(arg, Constant):
            return arg.value.item() if type(arg.value) in SCALARS else arg.value
        if isinstance(arg, RangeVariable):
            return list(arg.value)
        if isinstance(arg, SliceVariable):
            return slice(*map(self.argument, arg.items))
        if isinstance(arg, TupleVariable):
            return tuple(map(self.argument, arg.items))
        if isinstance(arg, Sequence):
            return [self.argument(item) for item in arg.items]
        return {key: self.argument(item) for key, (_, item) in arg.items.items()}

    def _by_name(self, arg: Known) -> Any:
        """A known object as it stands in a node: a member of an enum of numbers or text as what it
        is, all others by their name."""
        value = arg.value
        if isinstance(value, enum.Enum) and isinstance(value, int | float | str):
            return value.value
        reference = self.t.references.to(value)
        if not isinstance(reference, Import):
            raise GraphBreak("torch_refused", f"{arg.describe()}, which has no name, in a graph")
        return reference

    # -- the result --------------------------------------------------------------------------

    def finish(self, outputs: list[str], grad: bool, state: str) -> Graph | None:
        """The graph with these outputs, without what nothing needs; None if nothing is left.

        grad, state: of the process where the graph begins.
        """
        self.t.unbacked.check()
        nodes = self._needed(set(outputs))
        inside = self._state_inside(nodes)
        if inside is not None:
            self.within_inference = True
            nodes, grad = nodes[1:-1], False
            state = inside if self.attends else without_attention(inside)
        if not nodes and not outputs:
            return None
        used = set(outputs)
        for node in nodes:
            used.update(values_in((node.args, dict(node.kwargs))))
        inputs = tuple(spec for name, (spec, _) in self.inputs.items() if name in used)
        symbols, relations = self.t.shapes.facts()
        graph = Graph(inputs, tuple(nodes), tuple(outputs), symbols, relations, grad, state)
        options, providers = self.t.entry.options.compiler, providers_of(torch_names(graph))
        kernels = tuple(self.kernels.values())
        return replace(graph, options=options, providers=providers, kernels=kernels)

    def _state_inside(self, nodes: list[Node]) -> str | None:
        """The state in which all nodes run but the first and the last, where these two begin and
        end inference mode, and nothing else does; None for other graphs."""
        if not nodes or nodes[0].target != _ENTER or nodes[0].args != (True,):
            return None
        if any(node.target == _ENTER for node in nodes[1:]):
            return None
        whole = nodes[-1].target == _LEAVE and nodes[-1].args == (Value(nodes[0].name),)
        return self._states_inside[nodes[0].name] if whole else None

    def _needed(self, used: set[str]) -> list[Node]:
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if node.name in used or node.name not in self._pure:
                kept.append(node)
                used.update(values_in((node.args, dict(node.kwargs))))
        return kept[::-1]

    def input_source(self, name: str) -> Source:
        """The source of an input."""
        return self.inputs[name][1]


def facts_of(fake: torch.Tensor) -> tuple:
    """What a tensor is besides its data."""
    sizes = str((*fake.shape, *fake.stride(), fake.storage_offset()))
    return type(fake), sizes, fake.dtype, fake.device, fake.requires_grad, fake.is_inference()


def _is_float(arg: Variable) -> bool:
    return isinstance(arg, Symbolic) and arg.type is float


def _number_input(variable: Symbolic) -> GraphInput:
    """The input for a number that came in."""
    node = variable.value.node
    if variable.type is float:
        return GraphInput(variable.node, "symfloat", value=repr(float(node.hint)))
    return GraphInput(variable.node, "int", value=str(node._expr))


# Kinds of NumPy's scalars that torch takes for other numbers than they are: of complex ones it
# drops a part, truth values are floats to it.
_TAKEN_OTHERWISE = "cb"

_RESERVED = {"graph", "True", "False", "None", "lambda", "in", "is", "if", "not", "and", "or"}

_GETITEM = Import("operator", "getitem")
_ENTER = Import("torch.autograd.grad_mode", "_enter_inference_mode")
_LEAVE = Import("torch.autograd.grad_mode", "_exit_inference_mode")


def _belongs_in_graph(result: Any) -> bool:
    """Whether a result must come out of the graph; the rest follows from what is guarded."""
    if result is None:
        return True
    if isinstance(result, torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool):
        return True
    if isinstance(result, tuple | list):
        return any(_belongs_in_graph(part) and part is not None for part in result)
    if type(result) is dict:
        return _belongs_in_graph(list(result.values()))
    return False


def _class_of(result: torch.Tensor) -> type:
    return torch.nn.Parameter if isinstance(result, torch.nn.Parameter) else torch.Tensor


def source_name(source: Source | None) -> str:
    """A readable name for a value that comes from the frame: its path without punctuation."""
    parts: list[str] = []
    while source is not None:
        if isinstance(source, Local):
            parts.append(source.name)
        elif isinstance(source, Attribute):
            if source.name not in ("__dict__", "cell_contents"):
                parts.append(source.name)
        elif isinstance(source, Item):
            if source.key not in ("_parameters", "_buffers", "_modules"):
                parts.append(source.key if type(source.key) is str else plain_text(source.key))
        elif isinstance(source, Size):
            parts.append(f"size_{source.dim}")
        source = source.base
    return "_".join(reversed(parts)) or "value"
