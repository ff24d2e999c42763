"""Text of values: `str`, `repr`, `format`, `str.format` and the `%` operator."""

import _string
import operator
import re
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch

from ..folding import plain
from ..iteration import iterate
from ..operation import apply, call_method, truth
from ..signals import GraphBreak, NotConstant, Raised
from ..special_methods import has_special
from ..variables import (
    Constant,
    DictVariable,
    FunctionVariable,
    IdentityVariable,
    InstanceDict,
    Known,
    ListVariable,
    MappingObject,
    ObjectVariable,
    ProxyVariable,
    SetVariable,
    Symbolic,
    TensorVariable,
    TextVariable,
    TupleVariable,
    ValueObject,
    Variable,
    ViewVariable,
)
from ..variables.sequences import DequeVariable, SequenceObject
from .instance_dicts import snapshot
from .late_texts import formatted, joined, like, realized, separated
from .mapping_objects import methods, refuse_below_order
from .mappings import view_items
from .table import rule

# -- what has no text while tracing ---------------------------------------------------------


EMPTY = Constant("")


@rule((str, repr, format), TensorVariable)
def format_tensor(t, self, spec=None):
    raise GraphBreak("tensor_value", "a tensor is formatted")


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
def format_object(t, self, spec=EMPTY):
    if isinstance(self, ObjectVariable) and has_special(t, self, "__format__"):
        return NotImplemented if spec is not EMPTY else apply(t, format, [self, Constant("")])
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
def format_known(t, self, spec=EMPTY):
    if isinstance(self.value, type) and type(self.value).__format__ is object.__format__:
        return format_object(t, self, spec)
    return NotImplemented


_ADDRESS = " at 0x"

# -- repr() of containers ------------------------------------------------------------


def _parts(t, values) -> Variable:
    return separated(t, ", ", [text_of(t, value) for value in values])


def text_of(t, value: Variable) -> Variable:
    """`repr(value)`: a constant, or text that is made after the graph."""
    text = realized(t, apply(t, repr, [realized(t, value)]))
    # What an object's own `__repr__` gives may be no plain string.
    return text if isinstance(text, TextVariable) else Constant(t.constant(text))


def _pairs(t, contents: DictVariable) -> Variable:
    t.complete(contents)
    pairs = [joined(t, text_of(t, k), ": ", text_of(t, v)) for k, v in contents.items.values()]
    return separated(t, ", ", pairs)


def _once(t, value: Variable, inside: str, parts: Callable[[], tuple]) -> Variable:
    """The text of a container, which stands as `inside` where it contains itself."""
    if any(each is value for each in t.telling):
        return Constant(inside)
    t.telling.append(value)
    try:
        return joined(t, *parts())
    finally:
        t.telling.pop()


@rule((repr, str, list.__repr__), ListVariable)
def repr_list(t, self):
    return _once(t, self, "[...]", lambda: ("[", _parts(t, self.items), "]"))


@rule(tuple.__repr__, TupleVariable)
def repr_as_tuple(t, self):
    plain = self if self.cls is tuple else t.new(TupleVariable(list(self.items)))
    return apply(t, repr, [plain])


@rule((repr, str), TupleVariable)
def repr_tuple(t, self):
    if self.cls is torch.Size:
        return joined(t, "torch.Size([", _parts(t, self.items), "])")
    if self.cls is not tuple:
        # A named tuple has Python's `__repr__`, a result of torch C's.
        self.items = [t.realize(item) for item in self.items]
        if not isinstance(self.cls.__repr__, types.FunctionType) or _are_plain(t, self.items):
            return NotImplemented
        return call_method(t, self, "__repr__")
    end = ",)" if len(self.items) == 1 else ")"
    return _once(t, self, "(...)", lambda: ("(", _parts(t, self.items), end))


@rule((list.__repr__, tuple.__repr__), SequenceObject)
def repr_sequence_object(t, self):
    return apply(t, repr, [self.contents])


@rule((repr, str, dict.__repr__), DictVariable)
def repr_dict(t, self):
    return _once(t, self, "{...}", lambda: ("{", _pairs(t, self), "}"))


@rule((repr, str), SetVariable)
def repr_set(t, self):
    kind = self.cls.__name__
    if not self.items:
        return Constant(f"{kind}()")
    inner = joined(t, "{", _parts(t, iterate(t, self)), "}")
    return inner if self.cls is set else joined(t, "frozenset(", inner, ")")


@rule((repr, str), ViewVariable)
def repr_view(t, self):
    return joined(t, f"dict_{self.kind}([", _parts(t, view_items(t, self)), "])")


@rule((repr, str), DequeVariable)
def repr_deque(t, self):
    bound = "" if self.maxlen is None else f", maxlen={self.maxlen}"
    return _once(t, self, "[...]", lambda: ("deque([", _parts(t, self.items), f"]{bound})"))


@rule((repr, str), InstanceDict)
def repr_instance_dict(t, self):
    return apply(t, repr, [snapshot(t, self)])


@rule((repr, str), ProxyVariable)
def repr_proxy(t, self):
    return joined(t, "mappingproxy(", text_of(t, self.of), ")")


@rule(dict.__repr__, MappingObject)
def repr_as_dict(t, self):
    refuse_below_order(self, "__repr__")
    return _once(t, self, "{...}", lambda: ("{", _pairs(t, self.contents), "}"))


@rule(tuple(each for each in methods("__repr__") if each is not dict.__repr__), MappingObject)
def repr_mapping(t, self):
    name = self.cls.__name__
    if issubclass(self.cls, OrderedDict):
        if not truth(t, self):
            return Constant(f"{name}()")
        items = [TupleVariable(pair) for pair in self.contents.items.values()]
        return _once(t, self, "...", lambda: (f"{name}([", _parts(t, items), "])"))
    factory = apply(t, getattr, [self, Constant("default_factory")])
    told = lambda: (  # noqa: E731
        f"{name}(", text_of(t, factory), ", {", _pairs(t, self.contents), "})"
    )  # fmt: skip
    return _once(t, self, f"{name}(...)", told)


@rule(repr, ObjectVariable)
def repr_object(t, self):
    if type(self) is ObjectVariable and self.cls is types.SimpleNamespace:
        own = snapshot(t, InstanceDict(self)).items.values()
        told = lambda: [joined(t, f"{k.constant()}=", text_of(t, v)) for k, v in own]  # noqa: E731
        return _once(t, self, "namespace(...)",
                     lambda: ("namespace(", separated(t, ", ", told()), ")"))  # fmt: skip
    return NotImplemented


# -- str.format() ------------------------------------------------------------


@rule(str.format, Constant)
def format_method(t, self, *args, **kwargs):
    if _are_plain(t, [*args, *kwargs.values()]):
        return NotImplemented
    return joined(t, *_formatted(t, self.value, _Fields(t, args, kwargs)))


@rule(str.format_map, Constant)
def format_map(t, self, mapping):
    return joined(t, *_formatted(t, self.value, _Fields(t, (), mapping)))


def _are_plain(t, values) -> bool:
    try:
        for value in values:
            plain(realized(t, value))
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


def _formatted(t, template: str, fields: _Fields, depth: int = 2) -> list[str | Variable]:
    """The parts of what `str.format` gives for a template."""
    if depth == 0:
        t.raise_exception(ValueError, "Max string recursion exceeded")
    text: list[str | Variable] = []
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
        spec = t.constant(joined(t, *_formatted(t, spec, fields, depth - 1) if spec else ()))
        text.append(apply(t, format, [realized(t, value), Constant(spec)]))
    return text


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
    if self.type not in (str, bytes):
        return NotImplemented
    values = realized(t, values)
    if isinstance(values, TensorVariable):
        raise GraphBreak("tensor_value", "the text of a tensor")
    if self.type is bytes or _are_plain(t, [values]):
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
        text = self.value % found
    except Exception as error:
        raise Raised(t.exception(type(error), *error.args)) from None
    given = [found[place["key"]] for place in places] if named else found
    if not any(isinstance(value, _Told) and not isinstance(value.of, Constant) for value in given):
        return Constant(text)
    variables = [value.of if isinstance(value, _Told) else Constant(value) for value in given]
    return formatted(t, _in_order(self.value), variables)


def _in_order(template: str) -> str:
    """A template whose places take the values in order, those of text as they are."""

    def changed(place: re.Match) -> str:
        text = place[0] if place["key"] is None else place[0].replace(place[1], "", 1)
        return text[:-1] + "s" if place["kind"] in "ra" else text

    return _PLACE.sub(changed, template)


class _Unused:
    """A value for which there is no place."""


class _Told:
    """The text of a value, or a number that is made into text after the graph; `like` is one such.
    """

    def __init__(self, of: Variable):
        self.of = of
        self.like = like(of)

    def __str__(self) -> str:
        return self.like

    __repr__ = __str__

    def __index__(self) -> int:
        return int(self.like)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.like)


# What C takes as it is, whatever its class says of it.
_NUMBERS_OF = dict.fromkeys("diuxXoc", int) | dict.fromkeys("eEfFgG", float)


def _percent_value(t, kind: str, value: Variable) -> Any:
    value = realized(t, value)
    if kind in "sra":
        told = realized(t, apply(t, {"s": str, "r": repr, "a": ascii}[kind], [value]))
        return _Told(told if isinstance(told, TextVariable) else Constant(t.constant(told)))
    if isinstance(value, ValueObject) and value.contents.type is _NUMBERS_OF.get(kind):
        return t.constant(value.contents)
    if isinstance(value, ObjectVariable):
        if kind in "xXoc" and has_special(t, value, "__index__"):
            return _whole(t, kind, operator.index, value)
        if kind in "diu" and any(has_special(t, value, name) for name in ("__int__", "__index__")):
            return _whole(t, kind, int, value)
        if kind in "eEfFgG" and has_special(t, value, "__float__"):
            return t.constant(apply(t, float, [value]))
        _refuse_number(t, kind, value)
    if isinstance(value, Symbolic | IdentityVariable) and kind != "c":
        return _Told(value)
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
