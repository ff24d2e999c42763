"""Writes the `body` function of a variant: the graph, then values rebuilt as Python objects, then
side effects written back, then how the frame goes on."""

import inspect
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from ..package.reference import GraphOf, Import, Literal, Reference, Runtime
from ..package.source import Bound, Local, Source
from .graph import source_name
from .naming import Names
from .references import Body, is_made
from .signals import GraphBreak
from .variables import (
    DELETED,
    Alias,
    BackwardsIterator,
    CellVariable,
    Constant,
    DictVariable,
    EnumerateVariable,
    ExceptionVariable,
    FilterVariable,
    FixedIterator,
    FunctionVariable,
    GeneratorVariable,
    GroupVariable,
    InstanceDict,
    Known,
    Lazy,
    ListVariable,
    LiveListVariable,
    MappingObject,
    MapVariable,
    MethodVariable,
    ObjectVariable,
    RangeVariable,
    SequenceIterator,
    SetVariable,
    SliceVariable,
    SuperVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
    ViewVariable,
    ZipVariable,
)

REBUILD: dict[type, Callable] = {}


def rebuilds(*kinds: type) -> Callable[[Callable], Callable]:
    """Registers how variables of these kinds are rebuilt: f(writer, variable) -> expression."""

    def register(function: Callable) -> Callable:
        for kind in kinds:
            REBUILD[kind] = function
        return function

    return register


class Restart(NamedTuple):
    """What is kept to undo a graph that raises. copied, watched: see `runtime/restart.py`."""

    copied: tuple[int, ...] = ()
    watched: tuple[int, ...] = ()
    draws: bool = False


class BodyWriter:
    """Collects the lines of one body. `outputs` are the graph's values that it needs."""

    def __init__(self, t, names: Names, params: tuple[str, ...]):
        self.t = t
        self.names = names
        self.params = params
        self.lines: list[str] = []
        self.outputs: list[str] = []
        self._output_names: dict[str, str] = {}
        self._known: dict[int, str] = {}
        self._loaded: dict[Source, str] = {}
        self._building: set[int] = set()
        # Cells that have been made, and what they are to hold.
        self._unfilled: list[tuple[str, Variable]] = []

    # -- values ------------------------------------------------------------------------------

    def value(self, variable: Variable) -> str:
        """An expression for a variable's Python object: a name, or a literal.

        Raises GraphBreak("reconstruct") where it cannot be rebuilt.
        """
        if type(variable) is Lazy and (variable.known is not None or is_made(variable.source)):
            variable = self.t.realize(variable)
        if isinstance(variable, DictVariable) and variable.owner is not None:
            variable = variable.owner
        known = self._known.get(id(variable))
        if known is not None:
            return known
        if variable.source is not None:
            text = self.load(variable.source)
        else:
            text = self._rebuild(variable)
        self._known[id(variable)] = text
        while self._unfilled and not self._building:
            cell, content = self._unfilled.pop()
            self.lines.append(f"{cell}.cell_contents = {self.value(content)}")
        return text

    def load(self, source: Source) -> str:
        """The value at a source, read once."""
        if isinstance(source, Local | Bound):
            return source.text(self.name_of)
        found = self._loaded.get(source)
        if found is None:
            found = self.bind(source_name(source), source.text(self.name_of))
            self._loaded[source] = found
        return found

    def _rebuild(self, variable: Variable) -> str:
        builder = REBUILD.get(type(variable))
        if builder is None:
            raise GraphBreak("reconstruct", variable.describe(), variable.origin)
        if id(variable) in self._building:
            raise GraphBreak("reconstruct", "an object that contains itself", variable.origin)
        self._building.add(id(variable))
        try:
            return builder(self, variable)
        finally:
            self._building.discard(id(variable))

    def fill_cell(self, name: str, content: Variable) -> None:
        """Stores into a new cell, when what needs the cell has been made: that may be what the
        cell holds, a function that calls itself or a class that its methods know."""
        self._unfilled.append((name, content))

    def known(self, variable: Variable, text: str) -> None:
        """The variable's object exists under this name from here on (it may be referred to by
        what it will contain)."""
        self._known[id(variable)] = text

    def bind(self, wanted: str, expression: str) -> str:
        """Binds an expression to a new name."""
        name = self.names.fresh(wanted)
        self.lines.append(f"{name} = {expression}")
        return name

    def ref(self, value: Reference) -> str:
        """The name that a reference is bound to."""
        return self.name_of(value)

    def name_of(self, reference: Reference) -> str:
        """The name of what a reference stands for; a class that the trace made is made first."""
        if isinstance(reference, Body):
            return self.value(self.t.made_class(reference))
        return self.names.of(reference)

    def runtime(self, name: str) -> str:
        """A function of the runtime's support."""
        return self.names.of(Runtime(name))

    def output(self, node: str) -> str:
        """A value of the graph, under the name of its node."""
        found = self._output_names.get(node)
        if found is None:
            found = self.names.fresh(node)
            self._output_names[node] = found
            self.outputs.append(node)
        return found

    def literal(self, value: Any) -> str:
        """A plain constant as an expression."""
        if value is None or type(value) in (bool, int, str, bytes):
            return repr(value)
        return self.ref(Literal(value))

    # -- the whole -----------------------------------------------------------------------------

    def write(self, graph_id: str | None, restart: Restart) -> str:
        """The text of `def body(inputs, <params>)`."""
        lines = list(self.lines)
        if graph_id is not None:
            graph = self.ref(GraphOf(graph_id))
            targets = "".join(f"{self._output_names[node]}, " for node in self.outputs)
            call = f"{graph}(*inputs)"
            call = f"{targets.rstrip()} = {call}" if targets else call
            lines[:0] = self._repeating(call, restart)
        text = "\n".join(f"    {line}" for line in lines or ["pass"])
        return f"def body({', '.join(('inputs', *self.params))}):\n{text}\n"

    def _repeating(self, call: str, restart: Restart) -> list[str]:
        """The call of the graph; the frame starts over as plain Python where it raises, so that
        the program's own handlers find the exception."""
        error, failed = self.names.fresh("error"), self.names.fresh("failed")
        values = "".join(f"{name}, " for name in self.params)
        keeping, kept = [], "None"
        if restart != Restart():
            kept = self.names.fresh("kept")
            keeping = [f"{kept} = {self.runtime('keep')}(inputs, {restart.copied}, "
                       f"{restart.watched}, {restart.draws})"]  # fmt: skip
        # Not from within the handler: what the frame raises has nothing to do with the graph.
        return [
            *keeping,
            "try:",
            f"    {call}",
            f"except Exception as {error}:",
            f"    {failed} = {error}",
            "else:",
            f"    {failed} = None",
            f"if {failed} is not None:",
            f"    return {self.runtime('again')}({failed}, {kept}, ({values}))",
        ]


# -- plain values ------------------------------------------------------------


@rebuilds(Constant)
def _constant(w: BodyWriter, v: Constant) -> str:
    if v.value is Ellipsis or v.value is NotImplemented:
        return "..." if v.value is Ellipsis else "NotImplemented"
    return w.literal(v.value)


@rebuilds(Known, Alias)
def _known(w: BodyWriter, v: Known) -> str:
    return w.ref(w.t.references.to(v.value))


@rebuilds(RangeVariable)
def _range(w: BodyWriter, v: RangeVariable) -> str:
    return f"range({v.value.start}, {v.value.stop}, {v.value.step})"


@rebuilds(TensorVariable)
def _tensor(w: BodyWriter, v: TensorVariable) -> str:
    return w.output(w.t.graph.tensor_name(v))


@rebuilds(Symbolic)
def _symbolic(w: BodyWriter, v: Symbolic) -> str:
    return w.output(w.t.graph.symbol_name(v))


@rebuilds(SliceVariable)
def _slice(w: BodyWriter, v: SliceVariable) -> str:
    return w.bind("part", f"slice({', '.join(map(w.value, v.items))})")


# -- containers ------------------------------------------------------------


@rebuilds(TupleVariable)
def _tuple(w: BodyWriter, v: TupleVariable) -> str:
    items = "".join(f"{w.value(item)}, " for item in v.items)
    if v.cls is tuple:
        return w.bind("items", f"({items})")
    cls = w.ref(w.t.references.to(v.cls))
    if hasattr(v.cls, "_fields"):
        return w.bind("items", f"tuple.__new__({cls}, ({items}))")
    return w.bind("items", f"{cls}(({items}))")


@rebuilds(ListVariable)
def _list(w: BodyWriter, v: ListVariable) -> str:
    name = w.bind("items", "[]")
    w.known(v, name)
    items = [w.value(item) for item in v.items]
    if items:
        w.lines.append(f"{name} += [{', '.join(items)}]")
    return name


@rebuilds(DictVariable)
def _dict(w: BodyWriter, v: DictVariable) -> str:
    if v.cls is not dict:
        raise GraphBreak("reconstruct", v.cls.__qualname__, v.origin)
    name = w.bind("items", "{}")
    w.known(v, name)
    for key, item in v.items.values():
        w.lines.append(f"{name}[{w.value(key)}] = {w.value(item)}")
    return name


@rebuilds(SetVariable)
def _set(w: BodyWriter, v: SetVariable) -> str:
    items = "".join(f"{w.value(item)}, " for item in v.items.values())
    return w.bind("members", f"{v.cls.__name__}(({items}))")


@rebuilds(ViewVariable)
def _view(w: BodyWriter, v: ViewVariable) -> str:
    return w.bind(v.kind, f"{w.value(v.of)}.{v.kind}()")


@rebuilds(CellVariable)
def _cell(w: BodyWriter, v: CellVariable) -> str:
    name = w.bind("cell", f"{w.ref(Import('types', 'CellType'))}()")
    w.known(v, name)
    if v.content is not None:
        w.fill_cell(name, v.content)
    return name


# -- iterators ------------------------------------------------------------


def _require_unchanged(w: BodyWriter, v: Variable) -> None:
    """What an iterator runs over must not be written back after the iterator is made: it would
    have begun with the old contents."""
    of = getattr(v.of, "of", v.of)
    if id(of) in w.t.effects.changed:
        raise GraphBreak("reconstruct", "an iterator over what was changed", v.origin)


@rebuilds(SequenceIterator)
def _sequence_iterator(w: BodyWriter, v: SequenceIterator) -> str:
    if v.exhausted:
        return w.bind("iterator", f"iter({v.of.type.__name__}())")
    if v.index:
        _require_unchanged(w, v)
    name = w.bind("iterator", f"iter({w.value(v.of)})")
    if v.index:
        w.lines.append(f"{name}.__setstate__({v.index})")
    return name


@rebuilds(FixedIterator)
def _fixed_iterator(w: BodyWriter, v: FixedIterator) -> str:
    _require_unchanged(w, v)
    function = "reversed" if v.backwards else "iter"
    name = w.bind("iterator", f"{function}({w.value(v.of)})")
    if v.index:
        w.lines.append(f"for _ in range({v.index}): next({name})")
    return name


@rebuilds(BackwardsIterator)
def _backwards_iterator(w: BodyWriter, v: BackwardsIterator) -> str:
    _require_unchanged(w, v)
    name = w.bind("iterator", f"reversed({w.value(v.of)})")
    if isinstance(v.of, RangeVariable):
        w.lines.append(f"{name}.__setstate__({len(v.of.value) - 1 - v.index})")
    elif v.index != len(v.of.items) - 1:
        w.lines.append(f"{name}.__setstate__({v.index})")
    return name


@rebuilds(EnumerateVariable)
def _enumerate(w: BodyWriter, v: EnumerateVariable) -> str:
    return w.bind("iterator", f"enumerate({w.value(v.inner)}, {w.value(v.count)})")


@rebuilds(ZipVariable)
def _zip(w: BodyWriter, v: ZipVariable) -> str:
    inner = "".join(f"{w.value(each)}, " for each in v.inner)
    return w.bind("iterator", f"zip({inner}strict={v.strict})")


@rebuilds(MapVariable)
def _map(w: BodyWriter, v: MapVariable) -> str:
    inner = ", ".join(map(w.value, v.inner))
    return w.bind("iterator", f"map({w.value(v.function)}, {inner})")


@rebuilds(FilterVariable)
def _filter(w: BodyWriter, v: FilterVariable) -> str:
    return w.bind("iterator", f"filter({w.value(v.function)}, {w.value(v.inner)})")


@rebuilds(GeneratorVariable)
def _generator(w: BodyWriter, v: GeneratorVariable) -> str:
    if v.started:
        raise GraphBreak("reconstruct", "a generator that has started", v.origin)
    args, kwargs = v.args
    parts = [w.value(arg) for arg in args]
    parts += [f"{name}={w.value(arg)}" for name, arg in kwargs.items()]
    return w.bind("generator", f"{w.value(v.function)}({', '.join(parts)})")


# -- functions and objects ------------------------------------------------------------


@rebuilds(FunctionVariable)
def _function(w: BodyWriter, v: FunctionVariable) -> str:
    if v.code_reference is None or isinstance(v.code_reference, Import):
        raise GraphBreak("reconstruct", f"the function {v.qualname}", v.origin)
    source = w.t.globals_of(v)
    cells = "".join(f"{w.value(cell)}, " for cell in v.closure)
    defaults = w.value(v.defaults) if v.defaults is not None else "None"
    make = w.ref(Import("types", "FunctionType"))
    name = w.bind(
        v.name if v.name.isidentifier() else "function",
        f"{make}({w.ref(v.code_reference)}, {w.load(source)}, {v.name!r}, {defaults}, "
        f"({cells}){' or None' if not cells else ''})",
    )
    w.known(v, name)
    if v.kwdefaults is not None:
        w.lines.append(f"{name}.__kwdefaults__ = {w.value(v.kwdefaults)}")
    if v.annotations is not None:
        w.lines.append(
            f"{name}.__annotations__ = {w.runtime('annotations')}({w.value(v.annotations)})"
        )
    for attribute, item in v.attributes.items():
        w.lines.append(f"setattr({name}, {attribute!r}, {w.value(item)})")
    return name


@rebuilds(MethodVariable)
def _method(w: BodyWriter, v: MethodVariable) -> str:
    function = w.t.realize(v.function)
    self_ = w.value(v.self_)
    if isinstance(function, Known):
        name = function.value.__name__
        held = inspect.getattr_static(v.self_.type, name, None)
        if held is not function.value and hasattr(function.value, "__get__"):
            # Reached past what the type defines, by `super()` or by name.
            return w.bind("method", f"{w.value(function)}.__get__({self_})")
        return w.bind("method", f"{self_}.{name}")
    return w.bind("method", f"{w.ref(Import('types', 'MethodType'))}({w.value(function)}, {self_})")


@rebuilds(SuperVariable)
def _super(w: BodyWriter, v: SuperVariable) -> str:
    return w.bind("above", f"super({w.ref(w.t.references.to(v.cls))}, {w.value(v.self_)})")


@rebuilds(ObjectVariable)
def _object(w: BodyWriter, v: ObjectVariable) -> str:
    cls = w.ref(w.t.references.to(v.cls))
    maker = "object" if v.cls.__new__ is object.__new__ or v.cls.__flags__ & 1 << 9 else cls
    name = w.bind(v.cls.__name__.lower(), f"{maker}.__new__({cls})")
    w.known(v, name)
    for attribute, item in v.attributes.items():
        if item is not DELETED:
            w.lines.append(set_attribute(w, name, attribute, w.value(item)))
    return name


@rebuilds(MappingObject)
def _mapping_object(w: BodyWriter, v: MappingObject) -> str:
    base = w.ref(dict_base(v.cls))
    name = w.bind(v.cls.__name__.lower(), f"{base}.__new__({w.ref(w.t.references.to(v.cls))})")
    w.known(v, name)
    for key, item in v.contents.items.values():
        w.lines.append(f"{base}.__setitem__({name}, {w.value(key)}, {w.value(item)})")
    for attribute, item in v.attributes.items():
        if item is not DELETED:
            w.lines.append(set_attribute(w, name, attribute, w.value(item)))
    return name


def dict_base(cls: type) -> Import:
    """The class of C whose methods change instances of a subclass of dict as they are."""
    if issubclass(cls, OrderedDict):
        return Import("collections", "OrderedDict")
    if issubclass(cls, defaultdict):
        return Import("collections", "defaultdict")
    return Import("builtins", "dict")


@rebuilds(InstanceDict)
def _instance_dict(w: BodyWriter, v: InstanceDict) -> str:
    return w.bind("attributes", f"{w.runtime('own_dict')}({w.value(v.owner)})")


@rebuilds(ExceptionVariable, GroupVariable)
def _exception(w: BodyWriter, v: ExceptionVariable) -> str:
    args = [w.value(item) for item in v.args.items]
    cls = w.ref(w.t.references.to(v.cls))
    if isinstance(v.cls.__init__, FunctionType):
        # What `__init__` has done is in the attributes.
        name = w.bind("error", f"{cls}.__new__({', '.join([cls, *args])})")
    else:
        name = w.bind("error", f"{cls}({', '.join(args)})")
    w.known(v, name)
    for attribute in ("cause", "context"):
        held = getattr(v, attribute)
        if held is not None:
            w.lines.append(f"{name}.__{attribute}__ = {w.value(held)}")
    if v.suppressed and v.cause is None:
        w.lines.append(f"{name}.__suppress_context__ = True")
    for attribute, item in v.attributes.items():
        if item is not DELETED:
            w.lines.append(f"{name}.{attribute} = {w.value(item)}")
    return name


def set_attribute(w: BodyWriter, target: str, name: str, value: str) -> str:
    """The line that sets an attribute without running a `__setattr__` of the class."""
    return f"object.__setattr__({target}, {name!r}, {value})"


# -- side effects ------------------------------------------------------------


def write_effects(w: BodyWriter) -> list[str]:
    """The lines that bring objects that existed before to the state they have in the trace.

    All values are computed (into `w.lines`) before any of these lines runs.
    """
    lines: list[str] = []
    for variable in list(w.t.effects.changed.values()):
        target = w.value(variable)
        lines += EFFECTS[type(variable)](w, variable, target)
    for (cls, name), value in w.t.effects.members.items():
        holder = w.ref(w.t.references.to(cls))
        if value is not DELETED:
            lines.append(f"setattr({holder}, {name!r}, {w.value(value)})")
        elif name in vars(cls):
            lines.append(f"delattr({holder}, {name!r})")
    for source, name, value in w.t.effects.global_stores():
        lines.append(f"{w.load(source)}[{name!r}] = {w.value(value)}")
    return lines


def _list_effect(w: BodyWriter, v: ListVariable, target: str) -> list[str]:
    if isinstance(v, LiveListVariable) and v.look is not None:
        return [f"{target}.extend(({''.join(f'{w.value(item)}, ' for item in v.appended)}))"]
    return [f"{target}[:] = [{', '.join(map(w.value, v.items))}]"]


def _dict_effect(w: BodyWriter, v: DictVariable, target: str) -> list[str]:
    """Replays the changes in order. A key's final value is stored at the first store after its
    last removal: that store decides its place in the dict's order."""
    clear, remove, store = _DICT_WRITES
    if v.owner is not None:
        # Without running methods that the class overrides.
        base = w.ref(dict_base(v.owner.cls))
        clear, remove, store = (f"{base}.{text}" for text in _MAPPING_WRITES)
    lines = []
    stored: set = set()
    for index, change in enumerate(v.changes):
        if change[0] == "clear":
            lines.append(clear.format(target))
        elif change[0] == "del":
            lines.append(remove.format(target, w.value(change[2])))
        elif change[0] == "first":
            if not _removed_later(v, change[1], index):
                move = w.ref(Import("collections", "OrderedDict.move_to_end"))
                lines.append(f"{move}({target}, {w.value(change[2])}, False)")
        elif change[1] not in stored and not _removed_later(v, change[1], index):
            stored.add(change[1])
            key, item = v.items[change[1]]
            lines.append(store.format(target, w.value(key), w.value(item)))
    return lines


# How a dict is cleared, loses a key that it may not have, and gets an item; the second by the
# methods of a class of C.
_DICT_WRITES = "{}.clear()", "{}.pop({}, None)", "{}[{}] = {}"
_MAPPING_WRITES = "clear({})", "pop({}, {}, None)", "__setitem__({}, {}, {})"


def _removed_later(v: DictVariable, key: Any, index: int) -> bool:
    later = v.changes[index + 1 :]
    return any(change[0] == "clear" or change[:2] == ("del", key) for change in later)


def _set_effect(w: BodyWriter, v: SetVariable, target: str) -> list[str]:
    items = "".join(f"{w.value(item)}, " for item in v.items.values())
    return [f"{target}.clear(); {target}.update(({items}))"]


def object_effect(w: BodyWriter, v: ObjectVariable, target: str) -> list[str]:
    lines = []
    for name, value in v.attributes.items():
        if value is DELETED:
            lines.append(f"object.__delattr__({target}, {name!r})")
        else:
            if w.t.effects.is_renewed(v, name):
                lines.append(f"object.__delattr__({target}, {name!r})")
            lines.append(set_attribute(w, target, name, w.value(value)))
    return lines


def _exception_effect(w: BodyWriter, v: ExceptionVariable, target: str) -> list[str]:
    lines = []
    for name, value in v.attributes.items():
        if value is DELETED:
            lines.append(f"BaseException.__delattr__({target}, {name!r})")
        else:
            lines.append(f"BaseException.__setattr__({target}, {name!r}, {w.value(value)})")
    return lines


def _cell_effect(w: BodyWriter, v: CellVariable, target: str) -> list[str]:
    return [f"{target}.cell_contents = {w.value(v.content)}"]


EFFECTS: dict[type, Callable] = {
    ListVariable: _list_effect,
    LiveListVariable: _list_effect,
    DictVariable: _dict_effect,
    SetVariable: _set_effect,
    ObjectVariable: object_effect,
    ExceptionVariable: _exception_effect,
    GroupVariable: _exception_effect,
    MappingObject: object_effect,
    CellVariable: _cell_effect,
}
