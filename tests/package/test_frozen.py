"""Frozen data classes behave as those of `dataclasses` do."""

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace

import pytest

from aotdyn.package.frozen import frozen


def pair(make):
    """The same class made by us and by `dataclasses`."""
    return make(frozen), make(dataclass(frozen=True, slots=True))


def with_defaults(decorate):
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: dict = field(default_factory=dict)
        note: str = field(default="", repr=False)

    return decorate(Point)


def with_one_field(decorate):
    class Box:
        """A box."""

        value: object

    return decorate(Box)


@frozen
class Base:
    """A base."""

    of: object

    @property
    def base(self):
        return self.of


@frozen
class Derived(Base):
    """More fields behind the base's."""

    name: str = "n"


CALLS = [
    ((1,), {}), ((1, 3), {}), ((1, 3, {"a": 1}), {}), ((), {"x": 1}), ((1,), {"tags": {1: 2}}),
    ((), {}), ((1, 2, {}, 4, 5), {}), ((1,), {"z": 1}), ((1,), {"x": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("args", "kwargs"), CALLS)
def test_construction(args, kwargs):
    ours, theirs = pair(with_defaults)
    try:
        expected = theirs(*args, **kwargs)
    except TypeError:
        with pytest.raises(TypeError):
            ours(*args, **kwargs)
        return
    made = ours(*args, **kwargs)
    assert repr(made) == repr(expected)
    assert [getattr(made, f.name) for f in fields(ours)] == [
        getattr(expected, f.name) for f in fields(theirs)
    ]


NAN = float("nan")


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1), (1, 2), (1, True), (NAN, NAN), (NAN, float("nan")), ((1, 2), (1, 2))]
)
def test_equality_and_hash(a, b):
    ours, theirs = pair(with_one_field)
    assert (ours(a) == ours(b)) is (theirs(a) == theirs(b))
    assert ours(a) != theirs(a)
    assert hash(ours(a)) == hash(theirs(a))


def test_own_equality_is_kept():
    @frozen
    class Same:
        """All are equal."""

        value: int

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

    assert Same(1) == Same(2)


def test_nothing_changes():
    made = Derived(1)
    for change in (lambda: setattr(made, "name", "m"), lambda: delattr(made, "of")):
        with pytest.raises(FrozenInstanceError):
            change()
    with pytest.raises((AttributeError, TypeError)):
        made.other = 1


def test_inherited_fields():
    made = Derived(Base(1), "m")
    assert (made.of.base, made.base, made.name) == (1, Base(1), "m")
    assert made == Derived(name="m", of=Base(1))
    assert made != Base(Base(1))


def test_tools_of_dataclasses_and_copies():
    made = Derived(1, "m")
    assert is_dataclass(made)
    assert replace(made, name="k") == Derived(1, "k")
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made
