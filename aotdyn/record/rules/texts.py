"""Text of values: `str`, `repr`, `format`, `str.format` and the `%` operator."""

import _string
import operator
import re
import types
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any, NoReturn

from ..folding import plain
from ..iteration import iterate
from ..operation import apply, truth
from ..signals import GraphBreak, NotConstant, Raised
from ..special_methods import has_special
from ..variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    InstanceDict,
    Known,
    ListVariable,
    MappingObject,
    ObjectVariable,
    ProxyVariable,
    SetVariable,
    Symbolic,
    TensorVariable,
    TupleVariable,
    Variable,
    ViewVariable,
)
from ..variables.sequences import DequeVariable, SequenceObject
from .instance_dicts import snapshot
from .mapping_objects import methods
from .mappings import view_items
from .table import rule

# -- what has no text while tracing ---------------------------------------------------------


@rule((str, repr, format), TensorVariable)
def format_tensor(t, self, spec=None):
    raise GraphBreak("tensor_value", "a tensor is formatted")


@rule((format, str, repr), Symbolic)
def text_of_symbolic(t, self, spec=None):
    """A number is only symbolic once it has been seen to differ: a text for each of its values
    would be a variant for each."""
    raise GraphBreak("number_text", self.describe())


# -- str() and format() ------------------------------------------------------------


@rule(str)
def str_(t, self=None, *rest):
    if self is None:
        return Constant("")
    return NotImplemented


@rule(str, ObjectVariable)
def str_object(t, self):
    if has_special(t, self, "__str__"):
        return NotImplemented
    return apply(t, repr, [self])


@rule(format, ObjectVariable, ListVariable, TupleVariable, DictVariable, SetVariable,
      FunctionVariable, ProxyVariable)  # fmt: skip
def format_object(t, self, spec):
    if isinstance(self, ObjectVariable) and has_special(t, self, "__format__"):
        return NotImplemented
    if t.constant(spec) != "":
        t.raise_exception(
            TypeError, f"unsupported format string passed to {self.type.__name__}.__format__"
        )
    return apply(t, str, [self])


@rule((str, repr), Known)
def text_of_known(t, self):
    """Of classes, functions of C, modules: what says the same in every process."""
    value = self.value
    of_class = isinstance(value, type) and type(value).__repr__ is type.__repr__
    if of_class or isinstance(value, types.BuiltinFunctionType) and _ADDRESS not in repr(value):
        return Constant(repr(value))
    return NotImplemented


@rule(format, Known)
def format_known(t, self, spec):
    if isinstance(self.value, type) and type(self.value).__format__ is object.__format__:
        return format_object(t, self, spec)
    return NotImplemented


_ADDRESS = " at 0x"

# -- repr() of containers ------------------------------------------------------------


def _parts(t, values) -> str:
    return ", ".join(text_of(t, value) for value in values)


def text_of(t, value: Variable) -> str:
    """`repr(value)`."""
    return t.constant(apply(t, repr, [value]))


def _pairs(t, contents: DictVariable) -> str:
    t.complete(contents)
    return ", ".join(f"{text_of(t, k)}: {text_of(t, v)}" for k, v in contents.items.values())


def _once(t, value: Variable, inside: str, text) -> Variable:
    """The text of a container, which stands as `inside` where it contains itself."""
    if any(each is value for each in t.telling):
        return Constant(inside)
    t.telling.append(value)
    try:
        return Constant(text())
    finally:
        t.telling.pop()


@rule((repr, str, list.__repr__), ListVariable)
def repr_list(t, self):
    return _once(t, self, "[...]", lambda: f"[{_parts(t, self.items)}]")


@rule((repr, str, tuple.__repr__), TupleVariable)
def repr_tuple(t, self):
    if self.cls is not tuple:
        # A named tuple has Python's `__repr__`, a result of torch C's.
        self.items = [t.realize(item) for item in self.items]
        return NotImplemented
    comma = "," if len(self.items) == 1 else ""
    return _once(t, self, "(...)", lambda: f"({_parts(t, self.items)}{comma})")


@rule((list.__repr__, tuple.__repr__), SequenceObject)
def repr_sequence_object(t, self):
    return apply(t, repr, [self.contents])


@rule((repr, str, dict.__repr__), DictVariable)
def repr_dict(t, self):
    return _once(t, self, "{...}", lambda: f"{{{_pairs(t, self)}}}")


@rule((repr, str), SetVariable)
def repr_set(t, self):
    kind = self.cls.__name__
    if not self.items:
        return Constant(f"{kind}()")
    inner = f"{{{_parts(t, iterate(t, self))}}}"
    return Constant(inner if self.cls is set else f"frozenset({inner})")


@rule((repr, str), ViewVariable)
def repr_view(t, self):
    return Constant(f"dict_{self.kind}([{_parts(t, view_items(t, self))}])")


@rule((repr, str), DequeVariable)
def repr_deque(t, self):
    bound = "" if self.maxlen is None else f", maxlen={self.maxlen}"
    return _once(t, self, "[...]", lambda: f"deque([{_parts(t, self.items)}]{bound})")


@rule((repr, str), InstanceDict)
def repr_instance_dict(t, self):
    return apply(t, repr, [snapshot(t, self)])


@rule((repr, str), ProxyVariable)
def repr_proxy(t, self):
    return Constant(f"mappingproxy({text_of(t, self.of)})")


@rule(methods("__repr__"), MappingObject)
def repr_mapping(t, self):
    name = self.cls.__name__
    if issubclass(self.cls, OrderedDict):
        if not truth(t, self):
            return Constant(f"{name}()")
        items = [TupleVariable(pair) for pair in self.contents.items.values()]
        return _once(t, self, "...", lambda: f"{name}([{_parts(t, items)}])")
    if issubclass(self.cls, defaultdict):
        factory = apply(t, getattr, [self, Constant("default_factory")])
        pairs = lambda: f"{name}({text_of(t, factory)}, {{{_pairs(t, self.contents)}}})"  # noqa: E731
        return _once(t, self, f"{name}(...)", pairs)
    return _once(t, self, "{...}", lambda: f"{{{_pairs(t, self.contents)}}}")


@rule(repr, ObjectVariable)
def repr_object(t, self):
    if type(self) is ObjectVariable and self.cls is types.SimpleNamespace:
        own = snapshot(t, InstanceDict(self)).items.values()
        text = lambda: ", ".join(f"{k.constant()}={text_of(t, v)}" for k, v in own)  # noqa: E731
        return _once(t, self, "namespace(...)", lambda: f"namespace({text()})")
    return NotImplemented


# -- str.format() ------------------------------------------------------------


@rule(str.format, Constant)
def format_method(t, self, *args, **kwargs):
    if _are_plain(t, [*args, *kwargs.values()]):
        return NotImplemented
    return Constant(_formatted(t, self.value, _Fields(t, args, kwargs)))


@rule(str.format_map, Constant)
def format_map(t, self, mapping):
    return Constant(_formatted(t, self.value, _Fields(t, (), mapping)))


def _are_plain(t, values) -> bool:
    try:
        for value in values:
            plain(t.realize(value))
    except NotConstant:
        return False
    return True


class _Fields:
    """What the fields of one template stand for."""

    def __init__(self, t, args: tuple, named: Any):
        self.t = t
        self.args = args
        self.named = named
        # None before the first field; then whether fields are counted.
        self.counted: bool | None = None
        self.next = 0

    def find(self, name: str) -> Variable:
        """The value of `{name}`, with its attributes and items."""
        t = self.t
        first, rest = _string.formatter_field_name_split(name)
        if first == "" or isinstance(first, int):
            value = self._positional(first)
        elif isinstance(self.named, dict):
            if first not in self.named:
                t.raise_exception(KeyError, first)
            value = self.named[first]
        else:
            value = apply(t, operator.getitem, [self.named, Constant(first)])
        for is_attribute, key in rest:
            value = apply(t, getattr if is_attribute else operator.getitem, [value, Constant(key)])
        return value

    def _positional(self, index: Any) -> Variable:
        counted = index == ""
        if self.counted is not None and self.counted is not counted:
            before, after = ("automatic field numbering", "manual field specification")
            if counted:
                before, after = after, before
            self.t.raise_exception(ValueError, f"cannot switch from {before} to {after}")
        self.counted = counted
        if counted:
            index, self.next = self.next, self.next + 1
        if not isinstance(self.named, dict):
            self.t.raise_exception(ValueError, "Format string contains positional fields")
        if index >= len(self.args):
            self.t.raise_exception(
                IndexError, f"Replacement index {index} out of range for positional args tuple"
            )
        return self.args[index]


_CONVERSIONS = {None: None, "s": str, "r": repr, "a": ascii}


def _formatted(t, template: str, fields: _Fields, depth: int = 2) -> str:
    """What `str.format` gives for a template."""
    if depth == 0:
        t.raise_exception(ValueError, "Max string recursion exceeded")
    text = []
    for literal, name, spec, conversion in _parsed(t, template):
        text.append(literal)
        if name is None:
            continue
        value = fields.find(name)
        if conversion not in _CONVERSIONS:
            raise GraphBreak("builtin_call", f"str.format with !{conversion}")
        convert = _CONVERSIONS[conversion]
        if convert is not None:
            value = apply(t, convert, [value])
        spec = _formatted(t, spec, fields, depth - 1) if spec else ""
        text.append(t.constant(apply(t, format, [value, Constant(spec)])))
    return "".join(text)


def _parsed(t, template: str) -> Iterator[tuple]:
    try:
        yield from [*_string.formatter_parser(template)]
    except ValueError as error:
        raise Raised(t.exception(ValueError, *error.args)) from None


# -- the % operator ------------------------------------------------------------

_PLACE = re.compile(r"%(\((?P<key>[^)]*)\))?[-+ #0]*(?P<width>\*|\d*)(\.(?P<digits>\*|\d*))?"
                    r"[hlL]?(?P<kind>.)", re.DOTALL)  # fmt: skip


@rule(operator.mod, Constant)
def percent(t, self, values):
    """`text % values` where some are no plain constants: each becomes one as its place asks."""
    values = t.realize(values)
    if self.type is not str or isinstance(values, TensorVariable) or _are_plain(t, [values]):
        return NotImplemented
    places = [place for place in _PLACE.finditer(self.value) if place["kind"] != "%"]
    named = any(place["key"] is not None for place in places)
    found: Any
    if named:
        found = {
            place["key"]: _percent_value(
                t, place["kind"], apply(t, operator.getitem, [values, Constant(place["key"])])
            )
            for place in places
        }
    else:
        # "*" takes a value of its own, and stands for any number of places.
        kinds = [kind for place in places for kind in
                 ("d" * (place["width"] == "*") + "d" * (place["digits"] == "*") + place["kind"])]
        if isinstance(values, SequenceObject) and issubclass(values.cls, tuple):
            values = values.contents
        items = values.items if type(values) is TupleVariable else [values]
        items = [_percent_value(t, kind, item) for kind, item in zip(kinds, items)] + [
            _Unused() for _ in items[len(kinds) :]
        ]
        found = tuple(items)
    try:
        return Constant(self.value % found)
    except (TypeError, ValueError) as error:
        raise Raised(t.exception(type(error), *error.args)) from None


class _Unused:
    """A value for which there is no place."""


class _Told:
    """A value whose text is known."""

    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _percent_value(t, kind: str, value: Variable) -> Any:
    value = t.realize(value)
    if kind in "sra":
        told = t.constant(apply(t, {"s": str, "r": repr, "a": ascii}[kind], [value]))
        return _Told(told)
    if isinstance(value, ObjectVariable):
        if kind in "xXoc" and has_special(t, value, "__index__"):
            return _whole(t, kind, operator.index, value)
        if kind in "diu" and any(has_special(t, value, name) for name in ("__int__", "__index__")):
            return _whole(t, kind, int, value)
        if kind in "eEfFgG" and has_special(t, value, "__float__"):
            return t.constant(apply(t, float, [value]))
        _refuse_number(t, kind, value)
    if isinstance(value, Symbolic):
        return text_of_symbolic(t, value)
    return t.constant(value)


def _whole(t, kind: str, convert: Any, value: ObjectVariable) -> Any:
    """The number that an object gives; `%d` and the like tell of a TypeError in their own words."""
    try:
        return t.constant(apply(t, convert, [value]))
    except Raised as raised:
        if kind == "c" or not issubclass(raised.value.type, TypeError):
            raise
    _refuse_number(t, kind, value)


def _refuse_number(t, kind: str, value: ObjectVariable) -> NoReturn:
    try:
        f"%{kind}" % type(value.cls.__name__, (), {})()
    except TypeError as error:
        t.raise_exception(TypeError, *error.args)
    raise GraphBreak("builtin_call", f"%{kind} of a {value.describe()}")
