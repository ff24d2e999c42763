"""Special methods: which of two operands' is asked, None for what is not supported, what is derived
from another one, and classes that tell another class than their own."""

import collections
import collections.abc
import decimal
import fractions
import math

import torch

from tests.record.programs import Programs

program = Programs()


def outcomes(*functions):
    """What each gives, or says as it refuses."""
    found = []
    for function in functions:
        try:
            found.append(function())
        except (TypeError, ValueError, AttributeError) as error:
            found.append((type(error).__name__, str(error)))
    return found


class Nothing:
    __add__ = __iter__ = __contains__ = __eq__ = __call__ = __len__ = __reversed__ = None


@program(breaks=None)
def p_none_says_that_there_is_no_method(x):
    n = Nothing()

    def in_place():
        m = Nothing()
        m += 1

    return x + 1, outcomes(
        lambda: n + 1, lambda: 1 + n, lambda: list(n), lambda: 1 in n, lambda: n == n,
        lambda: n != 1, lambda: len(n), lambda: bool(n), lambda: hash(n), lambda: {n: 1},
        lambda: reversed(n), in_place,
    )  # fmt: skip


class Left:
    def __init__(self, log):
        self.log = log

    def __eq__(self, other):
        self.log.append("Left.eq")
        return NotImplemented

    def __lt__(self, other):
        self.log.append("Left.lt")
        return NotImplemented

    def __gt__(self, other):
        self.log.append("Left.gt")
        return NotImplemented

    def __add__(self, other):
        self.log.append("Left.add")
        return NotImplemented


class Right(Left):
    def __ne__(self, other):
        self.log.append("Right.ne")
        return NotImplemented

    def __radd__(self, other):
        self.log.append("Right.radd")
        return NotImplemented


@program(breaks=None)
def p_each_operand_is_asked_once_in_order(x):
    log = []
    left, right = Left(log), Right(log)
    found = outcomes(
        lambda: left == right, lambda: left != right, lambda: right != left, lambda: left != 1,
        lambda: 1 != left, lambda: left < right, lambda: left < left, lambda: right < 3,
        lambda: 3 < right, lambda: left + right, lambda: left + left, lambda: right + 1,
        lambda: sorted([left, right]),
    )  # fmt: skip
    return x + 1, found, log


class Failing:
    def __add__(self, other):
        raise ValueError("mine")


@program()
def p_an_in_place_operator_keeps_the_exception_of_the_method(x):
    def in_place():
        f = Failing()
        f += 1

    return x + 1, outcomes(in_place)


class Disguised:
    @property
    def __class__(self):
        return dict


class Numbered:
    __class__ = 413


@program(breaks=None)
def p_objects_tell_their_class(x):
    d = Disguised()
    return isinstance(d, dict), isinstance(d, list), d.__class__, Numbered().__class__, x + 1


class OfTheClass:
    @classmethod
    @property
    def name(cls):
        return cls.__name__


@program(breaks=None)
def p_a_property_of_the_class(x):
    return OfTheClass.name, OfTheClass().name, x + 1


@program()
def p_super_refuses_other_objects(x):
    class Lonely:
        def method(self):
            return super()

    return x + 1, outcomes(
        lambda: super(1, int), lambda: super(list, 3), lambda: Lonely.method(4)
    )


class Table(dict):
    pass


@program(breaks=None)
def p_class_methods_of_c(x):
    first, second = dict.fromkeys, {}.fromkeys
    made = Table().fromkeys
    return first("ab"), second("ab"), type(made("a")) is Table, list(Table.fromkeys("a")), x


def compares(x, n, m):
    yes, no = True, False
    found = [n == yes, m != no, n < yes, (n > 3) == yes, n + True, True - n, n & True]
    return x + n, found, (n > 3) != (m > 3), (n > 1) & (m > 1)


@program(*((torch.ones(2), n, n + 2) for n in range(2, 7)), breaks=None)
def p_symbolic_numbers_and_truth_values(x, n, m):
    return compares(x, n, m)


class MappingFirst(collections.UserDict, collections.abc.Sequence):
    pass


class SequenceFirst(collections.UserList, collections.abc.Mapping):
    pass


class Twice:
    __match_args__ = ("x", "x")
    x = 1


@program(breaks=None)
def p_patterns_ask_the_class_what_it_is(x):
    def kind(value):
        match value:
            case [*_]:
                return "sequence"
            case {}:
                return "mapping"

    def twice(value):
        match value:
            case Twice(1, 1):
                return True

    found = [kind(MappingFirst()), kind(SequenceFirst()), kind("a"), kind(range(2)), kind({})]
    return x + 1, found, outcomes(lambda: twice(Twice()))


class Meta(type):
    def __subclasscheck__(cls, other):
        raise ValueError("asked")


class Odd(ValueError, metaclass=Meta):
    pass


@program(breaks=None)
def p_handlers_do_not_ask_the_metaclass(x):
    try:
        raise KeyError(1)
    except Odd:
        return 1
    except KeyError:
        return x + 1


@program(breaks=None)
def p_defaults_of_functions_are_set(x):
    def f(a, b=0, *, c, d=0):
        return a + b + c + d

    found = [f(1, c=1)]
    f.__kwdefaults__ = {"d": 7}
    f.__defaults__ = (5,)
    found.append(f(1, c=1))
    f.__kwdefaults__ = None
    return x + 1, found, outcomes(lambda: f(1, c=1))


class ByArgument:
    def __new__(cls, arg):
        if isinstance(arg, str):
            return [1, 2, 3]
        return object.__new__(Initialized if isinstance(arg, int) else cls)


class Initialized(ByArgument):
    def __init__(self, arg):
        self.arg = arg


@program()
def p_new_decides_which_class_is_initialized(x):
    made = [ByArgument("1"), Initialized("1"), Initialized(None).arg, ByArgument(1).arg]
    return made, type(ByArgument(1)) is Initialized, x


class Neither:
    pass


class OwnNew:
    def __new__(cls, a, *args):
        return object.__new__(cls, *args)


class OwnInit:
    def __init__(self, a, *args):
        object.__init__(self, *args)


class OwnBoth(OwnNew, OwnInit):
    pass


@program()
def p_object_refuses_arguments(x):
    told = []
    for cls in (Neither, OwnNew, OwnInit, OwnBoth):
        for args in ((), (1,), (1, 2)):
            try:
                told.append(type(cls(*args)) is cls)
            except TypeError as error:
                told.append(str(error))
    return told, x


class Slots(dict):
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__
    __neg__ = dict.copy


@program(breaks=None)
def p_special_methods_of_other_names(x):
    made = Slots()
    made.y = x
    before = dict(-made)
    del made.y
    return before, dict(made)


class Bound:
    def __get__(self, instance, owner):
        return instance is None, owner.__name__


class Above:
    named = property(lambda self: "named")
    bound = Bound()

    def method(self):
        return 1


class Below(Above, dict):
    @classmethod
    def of_class(cls):
        above = super()
        return above.named is Above.named, above.method is Above.method, above.bound, above.get

    def of_instance(self):
        above = super()
        return above.named, above.method(), above.bound, above.__class__, above.get("a")


@program()
def p_super_binds(x):
    *found, get = Below.of_class()
    return found, get is dict.get, Below().of_instance(), x


class Raising:
    def __get__(self, instance, owner):
        raise ValueError("looked up")


class Rounded:
    __ceil__ = Raising()


@program()
def p_looking_for_a_method_runs_no_descriptor_twice(x):
    try:
        return math.ceil(Rounded()), x
    except ValueError as error:
        return str(error), x


@program(
    (decimal.Decimal(1), fractions.Fraction(1)), (fractions.Fraction(1), decimal.Decimal(1)),
    (decimal.Decimal(1), Neither()), (Neither(), decimal.Decimal(1)), breaks=None,
)  # fmt: skip
def p_classes_of_c_know_what_their_values_equal(a, b):
    """Decimal compares itself with fractions, which know nothing of it."""
    return a == b, a != b


class OddKey:
    def __hash__(self):
        return hash("name")

    def __eq__(self, other):
        log.append("asked")
        return False


log = []
ODD = Neither()
ODD.__dict__[OddKey()] = 0
Neither.name = 3


@program(breaks=None)
def p_attributes_with_odd_names(x):
    del log[:]
    return ODD.name, len(log), x


class Noted:
    """A descriptor that notes that it is asked."""

    def __init__(self, function):
        self.function = function

    def __get__(self, instance, owner):
        ASKED["times"] += 1
        return self.function.__get__(instance, owner)


ASKED = {"times": 0}


class AllNoted:
    __enter__ = Noted(lambda self: self)
    __exit__ = Noted(lambda self, *raised: None)
    __iter__ = Noted(lambda self: iter((1, 2)))
    __index__ = Noted(lambda self: 1)
    __hash__ = Noted(lambda self: 3)
    __contains__ = Noted(lambda self, item: True)


class NotedItems(dict):
    __getitem__ = Noted(lambda self, key: key * 2)
    __missing__ = Noted(lambda self, key: 4)


@program((torch.ones(2), AllNoted(), NotedItems(a=1)), breaks=None)
def p_special_methods_that_are_descriptors(x, noted, items):
    ASKED["times"] = 0
    with noted as entered:
        first, *rest = noted
    found = [1, 2][noted], [1, 2, 3][noted:], hash(noted), 3 in noted, items["a"], dict(items)
    return first, rest, found, entered is noted, ASKED["times"], x + 1


class OwnEnter:
    def __enter__(self):
        return "the class"

    def __exit__(self, *raised):
        pass


@program()
def p_with_an_own_enter(x):
    manager = OwnEnter()
    manager.__enter__ = lambda: "the object"
    with manager as entered:
        return entered, x + 1


test_agrees = program.test()
