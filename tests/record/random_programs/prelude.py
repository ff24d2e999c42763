"""What every random program can use: classes with the protocols of Python, context managers,
generators, decorators. A program's module imports all of it."""

import contextlib
import copy
import functools
import itertools
import operator
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field, replace
from enum import Enum

import torch

import aotdyn

__all__ = [
    "Base", "Color", "Counter", "Derived", "Failure", "Guard", "Manager", "Narrow", "OrderedDict",
    "Pair", "Point", "Vector", "aotdyn", "contextlib", "copy", "deque", "defaultdict", "entered",
    "functools", "itertools", "looked_at", "operator", "opaque", "pairs_of", "recursive", "replace",
    "resettable", "spread", "torch", "twice", "upto",
]  # fmt: skip


class Failure(Exception):
    """An exception with an attribute of its own."""

    def __init__(self, value, extra=None):
        super().__init__(value)
        self.extra = extra


class Narrow(Failure, ValueError):
    """Caught by either base."""


class Base:
    """Attributes of all kinds."""

    total = 0
    shared: list = []

    def __init__(self, value, items=None, t=None):
        self.value = value
        self.items = [] if items is None else items
        self.t = t

    @property
    def double(self):
        return 2 * self.value

    @double.setter
    def double(self, value):
        self.value = value // 2

    def bump(self, by):
        self.value += by
        return self.value

    def chain(self, by):
        self.items.append(by)
        return self

    @classmethod
    def make(cls, value):
        return cls(value, [value])

    @staticmethod
    def plus(a, b):
        return a + b

    def __getattr__(self, name):
        if name.startswith("made_"):
            return len(name)
        raise AttributeError(name)


class Derived(Base):
    """Overrides and extends; counts its calls in the class."""

    total = 10

    def __init__(self, value, items=None, t=None):
        super().__init__(value + 1, items, t)
        self.calls = 0

    def bump(self, by):
        self.calls += 1
        return super().bump(by) * 2

    def __setattr__(self, name, value):
        if name == "value" and isinstance(value, int) and value > 50:
            value = 50
        super().__setattr__(name, value)


class Vector:
    """Operators over a list of ints."""

    def __init__(self, *parts):
        self.parts = list(parts)

    def __add__(self, other):
        if isinstance(other, int):
            return Vector(*(part + other for part in self.parts))
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(*map(operator.add, self.parts, other.parts))

    def __radd__(self, other):
        return self + other

    def __iadd__(self, other):
        self.parts.append(other if isinstance(other, int) else len(other.parts))
        return self

    def __eq__(self, other):
        return isinstance(other, Vector) and self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts

    def __hash__(self):
        return hash(tuple(self.parts))

    def __len__(self):
        return len(self.parts)

    def __iter__(self):
        return iter(self.parts)

    def __contains__(self, value):
        return value in self.parts

    def __getitem__(self, index):
        return self.parts[index]

    def __setitem__(self, index, value):
        self.parts[index] = value

    def __delitem__(self, index):
        del self.parts[index]

    def __call__(self, value):
        return sum(self.parts) + value

    def __neg__(self):
        return Vector(*map(operator.neg, self.parts))

    def __repr__(self):
        return f"Vector{tuple(self.parts)}"


Pair = namedtuple("Pair", "first second", defaults=(7,))


@dataclass
class Point:
    """A data class with defaults."""

    x: int
    y: int = 2
    tags: list = field(default_factory=list)


class Color(Enum):
    """Three members."""

    RED = 1
    GREEN = 2
    BLUE = 3

    @property
    def next(self):
        return Color(self.value % 3 + 1)


class Manager:
    """A context manager that says what happens to it, and may swallow ValueErrors."""

    def __init__(self, log, name, swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append(f"+{self.name}")
        return len(self.log)

    def __exit__(self, kind, error, trace):
        self.log.append((f"-{self.name}", kind and kind.__name__))
        return self.swallow and kind is not None and issubclass(kind, ValueError)


@contextlib.contextmanager
def entered(log, name):
    log.append(f"({name}")
    try:
        yield name
    except KeyError as error:
        log.append(type(error).__name__)
    finally:
        log.append(f"{name})")


class Guard(contextlib.ContextDecorator):
    """A context manager that is a decorator as well."""

    entered = 0

    def __enter__(self):
        Guard.entered += 1
        return self

    def __exit__(self, *details):
        Guard.entered -= 1


def upto(n):
    """A generator that can be sent to."""
    index = 0
    while index < n:
        sent = yield index
        index += 1 if sent is None else sent
    return n


def pairs_of(values):
    """A generator that delegates."""
    last = yield from upto(min(len(values), 3))
    yield last
    for value in values:
        yield value


def twice(function):
    """A decorator."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + function(*args, **kwargs)

    return wrapper


def spread(a, /, b=3, *rest, c=1, **named):
    """All kinds of parameters."""
    return a + b + sum(rest) + c + sum(named.values())


def recursive(n):
    return 1 if n < 2 else n % 7 + recursive(n - 2)


@aotdyn.disable
def opaque(value):
    """Not traced: its call breaks the graph."""
    return value


@aotdyn.disable
def looked_at(log, value):
    """Not traced, and sees what has been done so far."""
    log.append(len(log))
    if isinstance(value, list):
        value.append(len(value) % 5)
    return len(log) % 4


def resettable():
    """Puts everything back that a program may have changed in classes."""
    Base.total, Derived.total, Base.shared, Guard.entered = 0, 10, [], 0
