"""Frozen data classes for what is stored: `dataclasses.dataclass(frozen=True, slots=True)` with
shared methods in place of generated ones, whose making was most of what importing the runtime took.
`dataclasses.fields`, `replace` and `is_dataclass` know them."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

from .own_builtins import BUILTINS as __builtins__  # noqa: F401

T = TypeVar("T", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: T) -> T:
    """Makes the class one with these fields as slots, equal and hashable by their values unless it
    says itself when two are equal."""
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__init__ = _init(made)
    if "__eq__" not in cls.__dict__:
        made.__eq__, made.__hash__ = _comparison(*made.__match_args__)
    made.__repr__ = _repr([each.name for each in fields(made) if each.repr])
    made.__setattr__ = made.__delattr__ = _refuse
    made.__reduce__ = _reduce
    return made


def _init(cls: type) -> Callable[..., None]:
    setters = tuple(getattr(cls, name).__set__ for name in cls.__match_args__)
    count = len(setters)

    def __init__(self, *args, **kwargs):
        if kwargs or len(args) != count:
            args = _completed(cls, args, kwargs)
        for setter, value in zip(setters, args):
            setter(self, value)

    return __init__


def _completed(cls: type, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """The values of all fields. Raises TypeError as a function with these parameters would."""
    known = fields(cls)
    values = list(args)
    for each in known[len(args) :]:
        if each.name in kwargs:
            values.append(kwargs.pop(each.name))
        elif each.default is not MISSING:
            values.append(each.default)
        elif each.default_factory is not MISSING:
            values.append(each.default_factory())
        else:
            raise TypeError(f"{cls.__name__}() is missing the argument {each.name!r}")
    if kwargs:
        raise TypeError(f"{cls.__name__}() got an unexpected argument {next(iter(kwargs))!r}")
    if len(args) > len(known):
        raise TypeError(f"{cls.__name__}() takes {len(known)} arguments, not {len(args)}")
    return values


def _comparison(*names: str) -> tuple[Callable, Callable]:
    # Of one name attrgetter gives the value itself, whose `==` may say anything.
    values = attrgetter(*names) if len(names) > 1 else _tuple_getter(*names)

    def __eq__(self, other):
        if other.__class__ is self.__class__:
            return self is other or values(self) == values(other)
        return NotImplemented

    def __hash__(self):
        return hash(values(self))

    return __eq__, __hash__


def _tuple_getter(*names: str) -> Callable[[Any], tuple]:
    return lambda record: tuple([getattr(record, name) for name in names])


def _repr(names: list[str]) -> Callable[[Any], str]:
    def __repr__(self):
        shown = ", ".join([f"{name}={plain_text(getattr(self, name))}" for name in names])
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__


def plain_text(value: Any) -> str:
    """`repr` of plain data, also where Python refuses to write out a long int in decimal digits,
    with the bits of its nans unless all are the usual one: `repr` tells nothing of a nan's sign."""
    try:
        text = repr(value)
        nans = [*_nans(value)] if "nan" in text else []
        return f"{text}#{b''.join(nans).hex()}" if set(nans) - {_NAN} else text
    except ValueError:
        if type(value) is int:
            return hex(value)
        parts = _parts(value)
        if not parts:
            raise TypeError(f"a {type(value).__name__} that cannot be written out") from None
        return f"{type(value).__name__}({', '.join(map(plain_text, parts))})"


_NAN = struct.pack("<d", float("nan"))


def _nans(value: Any) -> Iterator[bytes]:
    """The bits of all nans in plain data."""
    if type(value) is float and value != value:
        yield struct.pack("<d", value)
    parts = (value.real, value.imag) if type(value) is complex else _parts(value)
    for part in parts:
        yield from _nans(part)


def _parts(value: Any) -> tuple:
    """What a container of plain data holds; () for any other value."""
    if type(value) in (range, slice):
        return value.start, value.stop, value.step
    if type(value) is dict:
        return tuple(value.items())
    if type(value) in (tuple, list, set, frozenset):
        return tuple(value)
    return ()


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise FrozenInstanceError(f"{name!r} of a {type(self).__name__} cannot be changed")


def _reduce(self: Any) -> tuple:
    return type(self), tuple(getattr(self, name) for name in self.__match_args__)
