"""Writes the `body` function of a variant: the graph, then values rebuilt as Python objects, then
side effects written back, then how the frame goes on. How a kind of value is rebuilt is in
`rebuild`, how it is changed in `write_back`."""

import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..package.reference import GraphOf, Import, Literal, Reference, Runtime, int_text
from ..package.source import Bound, FromArray, Local, Source
from .graph import source_name
from .members import C_MEMBERS, MISSING, lookup, takes_stores
from .naming import Names
from .references import Body, is_made
from .signals import GraphBreak
from .variables import DELETED, DictVariable, Lazy, ObjectVariable, Variable

REBUILD: dict[type, Callable] = {}
_WORD = re.compile(r"\w+")


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
        # The names by which it holds values: those it was called with, and those it binds.
        self.held: list[str] = [*params]
        self._output_names: dict[str, str] = {}
        self._known: dict[int, str] = {}
        self._loaded: dict[Source, str] = {}
        self._nans: dict[int, str] = {}
        self._building: set[int] = set()
        # Tensors that are made of what came in: name -> source.
        self._made: dict[str, Source] = {}
        # What must be so after the graph.
        self._required: list[str] = []
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
        elif id(variable) in self.t.effects.kept:
            raise GraphBreak("reconstruct", "an object that a cache holds", variable.origin)
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
        if found is None and isinstance(source, FromArray):
            found = self.names.fresh(source_name(source))
            self._made[found] = source
            self.held.append(found)
        elif found is None:
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

    def require(self, condition: Variable, holds: bool) -> None:
        """After the graph a tensor must be true, or must not; else the frame starts over."""
        self._required.append(f"({self.value(condition)}, {holds})")

    def makes(self, variable: Variable) -> bool:
        """Whether the body makes a variable's object, or loads it."""
        return id(variable) in self._known

    def known(self, variable: Variable, text: str) -> None:
        """The variable's object exists under this name from here on (it may be referred to by
        what it will contain)."""
        self._known[id(variable)] = text

    def bind(self, wanted: str, expression: str) -> str:
        """Binds an expression to a new name."""
        name = self.names.fresh(wanted)
        self.lines.append(f"{name} = {expression}")
        self.held.append(name)
        return name

    def let_go(self, rest: list[str]) -> None:
        """Lets go of all values of which the rest of the body, these lines, makes no use."""
        used = {word for line in rest for word in _WORD.findall(line)}
        unused = [name for name in dict.fromkeys(("inputs", *self.held)) if name not in used]
        if unused:
            self.lines.append(f"{' = '.join(unused)} = None")

    def ref(self, value: Reference) -> str:
        """The name that a reference is bound to."""
        return self.name_of(value)

    def name_of(self, reference: Reference) -> str:
        """The name of what a reference stands for; a class that the trace made is made first."""
        if isinstance(reference, Body):
            cls = self.value(self.t.made_class(reference))
            if reference.member is not None:
                return self.bind("member", f"{cls}._member_map_[{reference.member!r}]")
            if reference.value is not None:
                return self.bind("flags", f"{cls}({reference.value})")
            return cls
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
            self.held.append(found)
            self.outputs.append(node)
        return found

    def literal(self, value: Any) -> str:
        """A plain constant as an expression."""
        if type(value) is int:
            return int_text(value)
        if value is None or type(value) in (bool, str, bytes):
            return repr(value)
        if value != value:
            return self._nan(value)
        return self.ref(Literal(value))

    def _nan(self, value: Any) -> str:
        """A nan equals nothing, but containers find it as the object that it is: each is an object
        of its own, in each call."""
        made = self._nans.get(id(value))
        if made is None:
            made = self._nans[id(value)] = self.bind("nan", f"-(-{self.ref(Literal(value))})")
        return made

    # -- the whole -----------------------------------------------------------------------------

    def write(self, graph_id: str | None, inputs: list[Source], restart: Restart) -> str:
        """The text of `def body(inputs, <params>)`. inputs: those of the graph."""
        lines = [*self._loads_of_made(inputs), *self.lines]
        if graph_id is not None:
            graph = self.ref(GraphOf(graph_id))
            targets = "".join(f"{self._output_names[node]}, " for node in self.outputs)
            call = f"{graph}(*inputs)"
            if self.t.graph.within_inference:
                call = f"{self.runtime('in_inference')}({graph}, inputs)"
            call = f"{targets.rstrip()} = {call}" if targets else call
            lines[:0] = self._repeating(call, restart)
        text = "\n".join(f"    {line}" for line in lines or ["pass"])
        return f"def body({', '.join(('inputs', *self.params))}):\n{text}\n"

    def _loads_of_made(self, inputs: list[Source]) -> Iterator[str]:
        """Lines for the tensors that `check` has made: the graph may have changed what they are,
        and not only what they hold."""
        for name, source in self._made.items():
            given = source in inputs
            text = f"inputs[{inputs.index(source)}]" if given else source.text(self.name_of)
            yield f"{name} = {text}"

    def _repeating(self, call: str, restart: Restart) -> list[str]:
        """The call of the graph; the frame starts over as plain Python where it raises, so that
        the program's own handlers find the exception."""
        error, failed = self.names.fresh("error"), self.names.fresh("failed")
        values = "".join(f"{name}, " for name in self.params)
        keeping, kept, required = [], "None", self._required
        if restart != Restart():
            kept = self.names.fresh("kept")
            keeping = [f"{kept} = {self.runtime('keep')}(inputs, {restart.copied}, "
                       f"{restart.watched}, {restart.draws})"]  # fmt: skip
        # Not from within the handler: what the frame raises has nothing to do with the graph.
        return [
            *keeping,
            "try:",
            f"    {call}",
            *([f"    {self.runtime('require')}({', '.join(required)})"] if required else []),
            f"except BaseException as {error}:",
            f"    {failed} = {error}",
            "else:",
            f"    {failed} = None",
            f"if {failed} is not None:",
            f"    return {self.runtime('again')}({failed}, {kept}, ({values}))",
        ]


# -- what rebuilding and writing back share ------------------------------------------------


def require_same_hashes(keys: Any, origin: int) -> None:
    """Raises GraphBreak where a key of a table would have another place now, or where filling the
    table would compare keys by code of the program, whose answer may have changed."""
    hashed = [key for key in keys if hasattr(key, "require_unchanged")]
    for key in hashed:
        key.require_unchanged(origin)
    if len({hash(key) for key in hashed}) < len(hashed):
        raise GraphBreak("reconstruct", "keys with the same hash", origin)
    for key in keys:
        if type(key) is tuple:
            require_same_hashes(key, origin)


def dict_base(cls: type) -> Import:
    """The class of C whose methods change instances of a subclass of dict as they are."""
    if issubclass(cls, OrderedDict):
        return Import("collections", "OrderedDict")
    if issubclass(cls, defaultdict):
        return Import("collections", "defaultdict")
    return Import("builtins", "dict")


def set_attribute(w: BodyWriter, cls: type, target: str, name: str, value: str) -> str:
    """The line that sets an attribute of the object's own, without running code of the class."""
    if _is_shadowed(w, cls, name):
        return f"{w.runtime('own_dict')}({target})[{name!r}] = {value}"
    return f"{attribute_base(w, cls)}.__setattr__({target}, {name!r}, {value})"


def delete_attribute(w: BodyWriter, cls: type, target: str, name: str) -> str:
    """The line that deletes one; see `set_attribute`."""
    if _is_shadowed(w, cls, name):
        return f"del {w.runtime('own_dict')}({target})[{name!r}]"
    return f"{attribute_base(w, cls)}.__delattr__({target}, {name!r})"


def _is_shadowed(w: BodyWriter, cls: type, name: str) -> bool:
    """Whether a class has a descriptor of Python's under the name, which would answer for what the
    object's own dictionary holds."""
    held, _ = lookup(w.t, cls, name)
    return held is not MISSING and takes_stores(held) and not isinstance(held, C_MEMBERS)


def set_attributes(w: BodyWriter, v: ObjectVariable, target: str) -> None:
    """Adds the lines that give a new object the attributes of its variable."""
    for name, item in v.attributes.items():
        if item is not DELETED:
            w.lines.append(set_attribute(w, v.cls, target, name, w.value(item)))


def attribute_base(w: BodyWriter, cls: type) -> str:
    """The class of C that sets and deletes attributes of a class' instances as they are."""
    if issubclass(cls, threading.local):
        return w.ref(Import("_thread", "_local"))
    return "BaseException" if issubclass(cls, BaseException) else "object"
