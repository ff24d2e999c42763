"""One attempt at tracing one frame: what is known, what was relied on, what was recorded.

`trace.py` makes one per attempt and starts over with a better knowledge of where to break; so
nothing here is ever rolled back. Everything in `record` gets it as its first argument `t`.
"""

import enum
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from ..package.arrays import SCALARS, np
from ..package.guard import Guard
from ..package.reference import CodeOf, Import, Literal
from ..package.source import Attribute, Bound, Source
from . import attributes, invoke, wrap
from .array_functions import numpy_parts
from .arrays import Arrays
from .assumptions import Assumption
from .breaks import STEPPED
from .bytecode import Instruction
from .classes import ClassReliance
from .effects import Effects
from .frame import Frame
from .graph import GraphBuilder
from .interpreter import INSTRUCTION_LIMIT
from .keys import NumbersAsKeys
from .live_dicts import complete_dict
from .members import is_from
from .namespaces import Namespaces, globals_source
from .polyfills import in_polyfill
from .references import Body, References, importable, is_made
from .shapes import Shapes
from .signals import GraphBreak, NotConstant, Raised, Signal
from .unbacked import Unbacked
from .variables import (
    ClassVariable,
    Constant,
    DictVariable,
    ExceptionVariable,
    GeneratorVariable,
    Known,
    Lazy,
    ListVariable,
    MadeReference,
    MappingObject,
    MethodVariable,
    ObjectVariable,
    RangeVariable,
    SetVariable,
    SliceVariable,
    TensorVariable,
    TextVariable,
    TupleVariable,
    Variable,
)
from .variables.containers import table_of
from .variables.mirrors import MIRRORED, MirrorVariable
from .variables.sequences import SequenceObject


def _is_of_torch(cls: type) -> bool:
    """Whether a class that a frame makes instances of is one of torch's context managers."""
    return is_from(cls, "torch")


class Stop(Signal):
    """The root frame has reached an instruction at which an earlier attempt had to break."""

    def __init__(self, cause: GraphBreak, execute: bool = True):
        super().__init__(cause)
        self.cause = cause
        # Whether the body executes the instruction, or leaves it to the entry that goes on there.
        self.execute = execute


class Tracer:
    """See the module. entry: what is traced (`trace.Request`). stop_at: step of the root frame
    -> the break that an earlier attempt met there. A step counts instructions executed in the root
    frame, so that a later turn of a loop is another step."""

    def __init__(self, entry, stop_at: dict[int, GraphBreak]):
        self.entry = entry
        self.stop_at = stop_at
        self.references = References()
        self.classes = ClassReliance(self.references)
        options = entry.options
        self.shapes = Shapes(
            entry.history, options.dynamic, entry.crowded, lambda: self.here, options.capture
        )
        self.unbacked = Unbacked(self)
        self.graph = GraphBuilder(self)
        self.effects = Effects(lambda: self.step)
        self.namespaces = Namespaces(self)
        self.guards: dict[tuple, Guard] = {}
        # The sources of objects that were keys of a dict or set by their identity.
        self.keys: dict[Source, None] = {}
        self.numbers_as_keys = NumbersAsKeys()
        self.tensors: list[TensorVariable] = []
        # Those made while tracing, and whether the root frame itself made them.
        self.generators: list[tuple[GeneratorVariable, bool]] = []
        # What a frame that goes on finds on its stack; that and its variables; what of these has an
        # end that the program sees.
        self.on_stack: list[Lazy] = []
        self.given: list[Variable] = []
        self.ending: list[Variable] = []
        self.handled: ExceptionVariable | None = None
        self.frame: Frame | None = None
        self.root: Frame | None = None
        self.executed = 0
        self.step = 0
        self.inlined = 0
        self.before: tuple = ()
        self.depth = 0
        # Above 0 while a hash is computed of which the program sees nothing but its equality.
        self.hashing = 0
        # Whether such a hash is another one in another process.
        self.unsteady_hash = False
        # Contexts of the process' state that are entered for the tracer alone.
        self.entered: list[Any] = []
        # Ids of the locks that the frame gives back.
        self.left: set[int] = set()
        # id of an object -> the weak reference that the frame has made to it.
        self.weak_references: dict[int, MadeReference] = {}
        self.arrays = Arrays()
        self.assumptions: list[Assumption] = []
        # Objects that get messages when the effects are written: what is in them is not known.
        self.told: dict[int, Any] = {}
        # Containers of which the text is being made.
        self.telling: list[Variable] = []
        # id of an object's own dictionary -> the object, and where it is reached from there.
        self.own_dicts: dict[int, tuple[ObjectVariable, Source]] = {}
        self._by_id: dict[int, tuple[Any, Variable]] = {}
        self._by_source: dict[Source, Variable] = {}
        # Objects that know what they hold as a container, which knows them.
        self._holders: dict[int, MappingObject | SequenceObject] = {}
        # Tuples among the constants of code objects, by id: each is one object.
        self._constants: dict[int, TupleVariable] = {}

    # -- the interpreter's position ------------------------------------------------------------

    def before_instruction(self, frame: Frame, ins: Instruction) -> None:
        """Called before each instruction of every frame."""
        self.frame = frame
        self.executed += 1
        if self.executed > INSTRUCTION_LIMIT:
            raise GraphBreak("long_trace")
        if frame.caller is not None:
            self.inlined += 1
            return
        self.step += 1
        cause = self.stop_at.get(self.step)
        if cause is not None:
            raise Stop(cause)
        options = self.entry.options
        limit = options.break_every
        if limit and self.step > limit and frame.can_be_entered:
            executed = options.break_steps and ins.opname in STEPPED
            raise Stop(GraphBreak("requested", f"after {limit} instructions"), executed)
        self.before = (self.progress(), list(frame.stack), frame.kw_names)

    def let_go(self) -> None:
        """Forgets everything, with what knows itself among it: frames hold generators, whose frames
        know by whom they were called; contents know their object."""
        for holder in self._holders.values():
            del holder.contents
        for frame in (self.root, *(generator.frame for generator, _ in self.generators)):
            if frame is not None:
                vars(frame).clear()
        vars(self).clear()

    def progress(self) -> tuple:
        """Counts that stand still as long as nothing has happened that would need undoing."""
        return len(self.graph.nodes), self.effects.count, self.inlined

    @property
    def here(self) -> str:
        """`file:line` of the instruction that is executed, of the program's own."""
        frame = self.frame
        while frame is not None and frame.caller is not None and frame.is_polyfill:
            frame = frame.caller
        if frame is None:
            return ""
        return f"{frame.code.co_filename}:{frame.instruction.line}"

    # -- values that come in -------------------------------------------------------------------

    def lazy(self, value: Any, source: Source) -> Variable:
        """A live value, untouched."""
        return Lazy(value, source)

    def realize(self, variable: Variable) -> Variable:
        """The variable itself, or what a Lazy turns out to be when it is looked at."""
        if type(variable) is not Lazy:
            return variable
        if variable.known is None:
            variable.known = self._look(variable.value, variable.source)
        return variable.known

    def _look(self, value: Any, source: Source) -> Variable:
        known = self._by_source.get(source)
        if known is not None:
            return known
        held = self._by_id.get(id(value))
        if held is None and self.references.made and is_made(source):
            known = self._look_at_made(value, source)
        elif held is not None:
            known = held[1]
            if known.source not in (source, None) and not isinstance(source, Bound):
                self.guard("SAME", source, known.source)
        else:
            known = wrap.wrap(self, value, source)
            if issubclass(type(value), torch.Tensor):
                self.remember(value, known)
        self._by_source[source] = known
        return known

    def _look_at_made(self, value: Any, source: Source) -> Variable:
        """A value that a class has which the trace has made."""
        if type(value) in (int, *wrap.PLAIN):
            return Constant(value)
        return wrap.wrap(self, value, source)

    def forget(self, source: Source) -> None:
        """What stands at a source, and at what is reached from it, has changed."""
        for each in list(self._by_source):
            base: Source | None = each
            while base is not None and base != source:
                base = base.base
            if base is not None:
                del self._by_source[each]

    def remembered_as(self, value: Any) -> Variable | None:
        """The variable of an object that has been looked at; None for any other."""
        held = self._by_id.get(id(value))
        return held[1] if held is not None else None

    def live_of(self, variable: Variable) -> Any:
        """The object that came in and that a variable stands for; None where nothing has looked at
        one that can be told apart by identity."""
        return next((live for live, held in self._by_id.values() if held is variable), None)

    def made_as(self, value: Any) -> Variable | None:
        """The variable that an object stands in for which the frame makes; None for any other."""
        held = self._by_id.get(id(value))
        return held[1] if held is not None and held[1].source is None else None

    def forget_members(self, cls: type, name: str) -> None:
        """As `forget`, for a name of a class and of all that inherit from it."""
        for each in list(self._by_source):
            if isinstance(each, Attribute) and each.name == name and isinstance(each.of, Bound):
                self.forget(each)

    def known_at(self, source: Source) -> Variable | None:
        """What was found at a source, if it has been looked at."""
        return self._by_source.get(source)

    def tell(self, *receivers: Any) -> None:
        """These objects get a message when the effects are written.

        Raises GraphBreak where the frame has looked at one of them.
        """
        for each in receivers:
            if type(each) not in wrap.PLAIN:
                self.told[id(each)] = each
                if self.remembered_as(each) is not None:
                    raise GraphBreak("builtin_call", "a message to an object of the program")

    def remember(self, value: Any, variable: Variable) -> None:
        """Reaching this object again gives the same variable."""
        if id(value) in self.told:
            raise GraphBreak("builtin_call", "an object that gets messages is looked at")
        self._by_id[id(value)] = (value, variable)
        self._note_holder(variable)
        if isinstance(variable, ObjectVariable):
            self.classes.note(variable.cls)

    def _note_holder(self, variable: Variable) -> None:
        if isinstance(variable, MappingObject | SequenceObject):
            self._holders[id(variable)] = variable

    def remembered(self) -> list[Variable]:
        """All objects that came in and can be told apart by identity."""
        return [variable for _, variable in self._by_id.values()]

    def by_identity(self) -> list[tuple[Any, Variable]]:
        """Each of them with its variable."""
        return [*self._by_id.values()]

    def guard(self, kind: str, source: Source | None, expected: Any = None) -> None:
        """Adds a condition, once."""
        if in_polyfill(source) or isinstance(expected, Source) and in_polyfill(expected):
            return
        if self.references.made and (is_made(source) or is_made(expected)):
            return
        key = (kind, source, expected if isinstance(expected, Source) else Literal(expected))
        if key not in self.guards:
            self.guards[key] = Guard(kind, source, expected, self.here)

    def guard_more(self, kind: str, source: Source, expected: int, before: tuple[str, int]) -> None:
        """Adds a condition that implies an earlier one, of this kind and number, in its place."""
        self.guards.pop((before[0], source, Literal(before[1])), None)
        self.guard(kind, source, expected)

    def differ(self, left: Variable, right: Variable) -> bool:
        """False, as the answer to `left is right` for two variables; guarded where both came in."""
        if left.source is not None and right.source is not None:
            self.guard("DISTINCT", left.source, right.source)
        return False

    def hashed(self, variable: Variable) -> None:
        """An object is a key by its identity: it must be another one than all other such keys."""
        source = variable.source
        if source is not None and not isinstance(source, Bound) and not is_made(source):
            self.keys.setdefault(source)

    def references_to(self, value: Any) -> Import | None:
        """The import that names an object, or None."""
        return importable(value)

    # -- values that the frame makes -----------------------------------------------------------

    def new(self, variable: Variable) -> Any:
        """Notes which step of the root frame made a value, to break there if it cannot be
        rebuilt."""
        if self.root is not None:
            variable.origin = self.step
        self.effects.made(variable)
        self._note_holder(variable)
        if isinstance(variable, ObjectVariable) and not _is_of_torch(variable.cls):
            self.classes.note(variable.cls)
        return variable

    def wrap_constant(self, value: Any) -> Variable:
        """A constant of a code object."""
        if isinstance(value, tuple):
            known = self._constants.get(id(value))
            if known is None:
                known = TupleVariable([self.wrap_constant(item) for item in value])
                self._constants[id(value)] = known
            return known
        if isinstance(value, frozenset):
            members = {item: self.wrap_constant(item) for item in value}
            return SetVariable(members, cls=frozenset, table=_table(value))
        return Constant(value)

    def wrap_result(self, value: Any) -> Variable:
        """What a pure function of constants gave. Raises GraphBreak for unusual types."""
        kind = type(value)
        if kind is int or kind in wrap.PLAIN or kind in SCALARS:
            return Constant(value)
        if kind is range:
            return RangeVariable(value)
        if kind is slice:
            parts = (value.start, value.stop, value.step)
            return self.new(SliceVariable(map(self.wrap_result, parts)))
        named = hasattr(kind, "n_sequence_fields") or wrap.is_named_tuple(kind)
        if kind is tuple or kind is torch.Size or named:
            return self.new(TupleVariable(map(self.wrap_result, value), cls=kind))
        if kind is list:
            return self.wrap_list([self.wrap_result(item) for item in value])
        if kind is dict:
            items = {k: (self.wrap_result(k), self.wrap_result(v)) for k, v in value.items()}
            return self.new(DictVariable(items))
        if kind in (set, frozenset):
            items = {k: self.wrap_result(k) for k in value}
            return self.new(SetVariable(items, cls=kind, table=_table(value)))
        if kind in (torch.SymInt, torch.SymFloat, torch.SymBool):
            raise GraphBreak("unknown_operation", f"a symbolic {kind.__name__} outside a graph")
        if kind in MIRRORED:
            return self.new(MirrorVariable(value))
        if isinstance(value, enum.Enum):
            return wrap.member_of_enum(self, value)
        if isinstance(value, type) or numpy_parts(value) is not None:
            return Known(value, Bound(self.references.to(value)))
        if np is not None and isinstance(value, np.ndarray):
            return self.arrays.variable(self, value)
        raise GraphBreak("unknown_type", f"a result of type {kind.__name__}")

    def wrap_list(self, items: list[Variable]) -> ListVariable:
        """A list that the frame made."""
        return self.new(ListVariable(items))

    def wrap_bound(self, value: MethodType) -> MethodVariable:
        """A bound method of a class or of an object known by identity."""
        self_ = Known(value.__self__, Bound(self.references.to(value.__self__)))
        function = value.__func__
        reference = self.references.to(function)
        live = wrap.live_function(self, function, Bound(reference), reference)
        return MethodVariable(self_, live)

    def unmodelled(self, what: str) -> Variable:
        """A value of which nothing is known: it can be passed on, any use breaks."""
        return self.new(Variable())

    def nested_code(self, frame: Frame, code: CodeType) -> CodeOf | None:
        """How a code constant of a frame's code is found in another process."""
        index = next(i for i, c in enumerate(frame.code.co_consts) if c is code)
        if frame.caller is None:
            return CodeOf(None, (index,))
        function = frame.function
        reference = function.code_reference if function is not None else None
        if isinstance(reference, Import):
            return CodeOf(reference, (index,))
        if isinstance(reference, CodeOf):
            return CodeOf(reference.function, (*reference.path, index))
        return None

    def made_class(self, reference: Body) -> ClassVariable:
        """The class that a reference within a body stands for."""
        return self._by_id[id(self.references.made[reference.index])][1]

    def globals_of(self, function) -> Source:
        """How the globals of a function that the frame made are reached."""
        source = globals_source(function.globals, self.entry.globals)
        if source is None:
            raise GraphBreak("no_source", f"the globals of {function.qualname}", function.origin)
        return source

    # -- knowledge -------------------------------------------------------------------------------

    def constant(self, variable: Variable) -> Any:
        """The Python value; symbolic numbers are fixed. Raises GraphBreak if it is not known."""
        try:
            return self.specialize(self.deep(variable)).constant()
        except NotConstant:
            raise GraphBreak("unknown_type", self.realize(variable).describe()) from None

    def deep(self, variable: Variable, within: tuple[Variable, ...] = ()) -> Variable:
        """The variable with everything inside it looked at. within: the containers around it."""
        variable = self.realize(variable)
        if any(variable is each for each in within):
            raise NotConstant("a container that contains itself")
        inside = (*within, variable)
        if isinstance(variable, ListVariable | TupleVariable | SliceVariable):
            variable.items = [self.deep(item, inside) for item in variable.items]
        elif isinstance(variable, DictVariable):
            self.complete(variable)
            variable.items = {
                k: (key, self.deep(v, inside)) for k, (key, v) in variable.items.items()
            }
        return variable

    def specialized(self, args: list[Variable], kwargs: dict) -> tuple[list[Variable], dict]:
        """Arguments with symbolic numbers fixed."""
        fixed = [self.specialize(arg) for arg in args]
        return fixed, {key: self.specialize(arg) for key, arg in kwargs.items()}

    def specialize(self, variable: Variable) -> Variable:
        """A symbolic number, or text that depends on some, fixed at its present value."""
        if isinstance(variable, TextVariable):
            return Constant(variable.value(self.constant))
        return self.shapes.specialize(variable)

    def complete(self, variable: DictVariable) -> None:
        """All keys of a dict become known."""
        complete_dict(self, variable)

    # -- exceptions ------------------------------------------------------------------------------

    def exception(self, cls: type, *args: Any) -> ExceptionVariable:
        """An exception with these plain arguments, or variables."""
        try:
            items = [a if isinstance(a, Variable) else self.wrap_result(a) for a in args]
        except GraphBreak:
            items = [self.unmodelled("exception argument")]
        value = self.new(ExceptionVariable(cls, TupleVariable(items)))
        value.context = self.handled
        return value

    def raise_exception(self, cls: type, *args: Any):
        """The traced program raises here."""
        raise Raised(self.exception(cls, *args))

    # -- doors to the modules that interpret frames ------------------------------------------------

    def inline(self, function, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        return invoke.inline(self, function, args, kwargs)

    def inline_live(self, function: FunctionType, args: list[Variable], kwargs: dict) -> Variable:
        return invoke.inline_live(self, function, args, kwargs)

    def call_live(self, function, args: list[Variable], kwargs: dict) -> Variable:
        return invoke.call_live(self, function, args, kwargs)

    def call_object(self, value: ObjectVariable, args: list[Variable], kwargs: dict) -> Variable:
        return invoke.call_object(self, value, args, kwargs)

    def construct(self, cls: type, args: list[Variable], kwargs: dict) -> Variable:
        return invoke.construct(self, cls, args, kwargs)

    def class_attribute(self, value: ObjectVariable, name: str) -> Variable:
        return attributes.class_attribute(self, value, name)


def _table(value: set | frozenset) -> Any:
    """A set that nothing else holds as the table of its variable."""
    return None if table_of(value, set) is None else value
