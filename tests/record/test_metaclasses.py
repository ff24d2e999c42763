"""What metaclasses and enums of the program say about their classes and members."""

import enum
import functools
import types
from collections.abc import Container, Sized

from tests.record.programs import Programs, note

program = Programs()
log = []


class Described:
    def __get__(self, instance, owner):
        log.append("get")
        return instance is None, owner.__name__


class Owned(Described):
    def __set__(self, instance, value):
        log.append("set")


class Meta(type):
    plain, owned, hidden, number = Described(), Owned(), Described(), 7

    def __getattr__(cls, name):
        log.append(name)
        if name == "missing":
            raise AttributeError(name)
        return name


class OfMeta(metaclass=Meta):
    owned, hidden = 1, 5


@program(breaks=None)
def p_attributes_of_classes(x):
    del log[:]
    found = OfMeta.plain, OfMeta.owned, OfMeta.hidden, OfMeta.number, OfMeta.other
    return found, hasattr(OfMeta, "missing"), getattr(OfMeta, "missing", 4), list(log), x


class Intercepting(type):
    def __getattribute__(cls, name):
        return 99 if name == "special" else super().__getattribute__(name)


class Intercepted(metaclass=Intercepting):
    a = 1


@program(breaks=None)
def p_every_attribute_of_a_class(x):
    return Intercepted.a, Intercepted.special, getattr(Intercepted, "special", 1), x


class Caching(type):
    @functools.cached_property
    def value(cls):
        return 42


class Cached(metaclass=Caching):
    pass


@program(breaks=None)
def p_cached_property_of_a_class(x):
    try:
        return Cached.value, x
    except TypeError as error:
        return str(error), x


class Equal(type):
    def __eq__(cls, other):
        return True


class Unhashable(metaclass=Equal):
    pass


UNHASHABLE = Unhashable()


@program(breaks=None)
def p_classes_without_a_hash(x):
    try:
        hash(Unhashable)
    except TypeError as error:
        told = str(error)
    return told, Unhashable == 3, isinstance(UNHASHABLE, Unhashable), Unhashable() is None, x


class Checking(type):
    def __instancecheck__(cls, instance):
        if instance == "raise":
            raise ZeroDivisionError("instance")
        log.append(instance)
        return instance == 3

    def __subclasscheck__(cls, subclass):
        if subclass is int:
            raise ZeroDivisionError("subclass")
        log.append(subclass)
        return subclass is str


class Checked(metaclass=Checking):
    pass


@program()
def p_checks_of_metaclasses(x):
    del log[:]
    found = [isinstance(each, Checked) for each in (3, 4, Checked, int)]
    found += [isinstance(3, (str, Checked | None)), issubclass(str, Checked), type(Checked())]
    for check, value in ((isinstance, "raise"), (issubclass, int)):
        try:
            check(value, Checked | bytes)
        except ZeroDivisionError as error:
            found.append(type(error))
    return found, list(log), isinstance(Checked(), Checked), x


class Level(enum.Enum):
    LOW = 1
    HIGH = 2
    described = Described()

    @property
    def double(self):
        log.append("double")
        return self.value * 2

    @enum.property
    def dynamic(self):
        log.append("dynamic")
        return self.name

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        log.append(name)
        return name

    @staticmethod
    def free(a):
        return a

    @classmethod
    def of(cls, a):
        return cls.__name__, a


@program((Level.LOW, 1), (Level.LOW, 2), (Level.HIGH, 2))
def p_attributes_of_members(level, x):
    del log[:]
    found = level.double, level.dynamic, level.other, level.free(1), level.of(2), level.described
    return found, Level.described, level.value, level.name, list(log), x


@functools.singledispatch
def dispatched(a):
    return "base"


dispatched.register(Sized)(lambda a: "sized")
dispatched.register(Container)(lambda a: "container")


class Both:
    def __len__(self):
        return 0

    def __contains__(self, item):
        return True


@program(breaks=None)
def p_ambiguous_dispatch(x):
    try:
        return dispatched(Both()), x
    except RuntimeError as error:
        return type(error), dispatched(1), x


class Watched(types.ModuleType):
    def __getattribute__(self, name):
        log.append(name)
        return super().__getattribute__(name)


WATCHED = Watched("watched")


@program(breaks=None)
def p_modules_of_a_class_of_the_program(x):
    del log[:]
    WATCHED.attribute = 1
    return WATCHED.attribute, list(log), x


@program(breaks=None)
def p_methods_of_watched_modules_called(x):
    get = types.ModuleType.__getattribute__.__get__(WATCHED)
    del log[:]
    note([], "break")
    name = get("__name__")
    return name, list(log), x


test_agrees = program.test()
