"""Instances of subclasses of int, float, complex, str and bytes: C's methods see what they hold."""

import operator
from typing import Any

from ...package.bare import BARE, bare, base_of
from ...package.source import Bare
from ..attributes import generic_getattr
from ..body import BodyWriter, rebuilds, set_attributes
from ..members import is_from
from ..operation import apply, bare_value
from ..signals import GraphBreak
from ..variables import Constant, Known, TupleVariable, ValueObject, Variable
from ..wrap import add_predicate, is_read_as_objects
from ..write_back import EFFECTS, object_effect
from .table import rule

# -- making ------------------------------------------------------------


def _made_by(base: type) -> None:
    @rule(base.__new__, Known)
    def make(t, self, *args, **kwargs):
        """`int.__new__(cls, …)`."""
        held = apply(t, base, list(args), kwargs)
        if self.value is base:
            return held
        if not isinstance(self.value, type) or base_of(self.value) is not base:
            return NotImplemented
        return t.new(ValueObject(self.value, Constant(t.constant(held))))


for _base in BARE:
    _made_by(_base)

# -- what came in ------------------------------------------------------------


def _is_value_object(value: Any) -> bool:
    cls = type(value)
    base = base_of(cls)
    if base is None or not cls.__flags__ & 1 << 9 or is_from(cls, "numpy"):
        return False
    return is_read_as_objects(cls, base)


def _wrap(t, value: Any, source) -> Variable:
    t.guard("TYPE", source, t.references.to(type(value)))
    held = bare(value)
    t.guard("EQUALS", Bare(source), held)
    variable = ValueObject(type(value), Constant(held), value, source)
    t.remember(value, variable)
    return variable


add_predicate(_is_value_object, _wrap)


@rule(tuple({base.__getattribute__ for base in BARE}), ValueObject)
def value_getattribute(t, self, name):
    return generic_getattr(t, self, t.constant(name))


# -- what C asks the object itself for ----------------------------------------------------


@rule(tuple(base.__format__ for base in BARE if "__format__" in vars(base)), ValueObject)
def value_format(t, self, spec):
    """Without a specification it is the text of the object."""
    if t.constant(spec) == "":
        return apply(t, str, [self])
    return apply(t, format, [self.contents, spec])


@rule((str.__iter__, bytes.__iter__), ValueObject)
def value_iter(t, self):
    return apply(t, iter, [self.contents])


# A text in which there is nothing to replace, or that has no parts, is given as the object itself.


def _asks_arguments(method: Any) -> None:
    @rule(method, ValueObject)
    def told(t, self, *args, **kwargs):
        made = apply(t, method, [self.contents, *args], kwargs)
        return made if {*"{}"} & {*self.contents.value} else self


for _method in (str.format, str.format_map):
    _asks_arguments(_method)


@rule((str.__mod__, bytes.__mod__), ValueObject)
def value_mod(t, self, values):
    made = apply(t, operator.mod, [self.contents, values])
    return made if self.contents.type is bytes or "%" in self.contents.value else self


def _parts(method: Any, whole: int) -> None:
    """whole: which of the three parts is the text, where the separator is not in it."""

    @rule(method, ValueObject)
    def parted(t, self, separator):
        parts = [*apply(t, method, [self.contents, bare_value(t.realize(separator))]).items]
        if not t.constant(parts[1]):
            parts[whole] = self
        return t.new(TupleVariable(parts))


for _base in (str, bytes):
    _parts(_base.partition, 0)
    _parts(_base.rpartition, 2)


# -- rebuilding ------------------------------------------------------------


@rebuilds(ValueObject)
def _rebuild(w: BodyWriter, v: ValueObject) -> str:
    cls, base = w.ref(w.t.references.to(v.cls)), base_of(v.cls)
    if base is None:
        raise GraphBreak("reconstruct", v.describe(), v.origin)
    held = w.value(v.contents)
    name = w.bind(v.cls.__name__.lower(), f"{base.__name__}.__new__({cls}, {held})")
    w.known(v, name)
    set_attributes(w, v, name)
    return name


EFFECTS[ValueObject] = object_effect
