"""Subscripted classes, unions, `typing` at run time, checks of types."""

import abc
import collections.abc
import numbers
import types
from collections import defaultdict, deque
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Generic,
    Hashable,
    Iterable,
    List,
    Literal,
    Mapping,
    NamedTuple,
    NewType,
    Optional,
    ParamSpec,
    Protocol,
    Sequence,
    Sized,
    SupportsFloat,
    SupportsIndex,
    SupportsInt,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import torch

from tests.record.programs import Programs, note

program = Programs()

T = TypeVar("T")


class Gen(Generic[T]):
    def __init__(self, v):
        self.v = v

    def get(self) -> T:
        return self.v


class Gen2(Gen[int]):
    pass


class GL(list, Generic[T]):
    pass


class NT(NamedTuple):
    a: Any
    b: int = 2


class TD(TypedDict):
    a: int


@runtime_checkable
class HasGet(Protocol):
    def get(self): ...


class MyABC(abc.ABC):
    @classmethod
    def __subclasshook__(cls, C):
        if cls is MyABC:
            return hasattr(C, "quack")
        return NotImplemented


class Duck:
    def quack(self):
        return 1


class Reg(abc.ABC):
    pass


class RegC:
    pass


Reg.register(RegC)


@program()
def p_generic_alias_call(x):
    g = Gen[int](x)
    return g.get(), type(g) is Gen, isinstance(g, Gen)


@program()
def p_generic_sub(x):
    g = Gen2(x)
    return g.get(), Gen2.__orig_bases__[0] == Gen[int]


@program()
def p_list_alias(x):
    return list[int]([1, x]), dict[str, int](a=1), tuple[int, ...]((1, 2)), type(list[int]([1]))


@program()
def p_alias_attrs(x):
    return (
        get_origin(list[int]) is list,
        get_args(dict[str, int]),
        get_origin(Optional[int]) is Union,
        list[int].__origin__,
        x,
    )


@program()
def p_typing_cast(x):
    return cast(int, x) + 1, cast("int", 3)


UID = NewType("UID", int)


@program()
def p_newtype_g(x):
    return UID(3), UID.__supertype__, x


@program()
def p_typeddict(x):
    return TD(a=1), {"a": x}


@program()
def p_nt(x):
    n = NT(x)
    return n, n.a, n._replace(b=3), NT._fields, NT._field_defaults


@program()
def p_anyalias(x):
    Vec = list[torch.Tensor]

    def f(a: Vec, b: Optional[int] = None) -> Vec:
        return [a[0]]

    return f([x]), f.__annotations__["b"] == Optional[int]


@program()
def p_annot_local(x):
    y: List[int] = [1]
    return y, x


@program()
def p_get_type_hints(x):
    return get_type_hints(Gen.get), x


@program()
def p_overload(x):
    return TYPE_CHECKING, x


@program()
def p_hashable(x):
    return (
        isinstance(1, Hashable),
        isinstance([], Hashable),
        isinstance({}, collections.abc.Hashable),
        isinstance((1,), Hashable),
        isinstance(Gen(1), Hashable),
        x,
    )


@program()
def p_abcs(x):
    vals = [
        1,
        "a",
        [1],
        (1,),
        {1: 2},
        {1},
        Gen(1),
        len,
        lambda: 1,
        range(3),
        iter([]),
        (i for i in "a"),
        b"",
        NT(1),
        Duck(),
        None,
        1.5,
    ]
    abcs = [
        collections.abc.Iterable,
        collections.abc.Sized,
        collections.abc.Container,
        collections.abc.Callable,
        collections.abc.Sequence,
        collections.abc.MutableSequence,
        collections.abc.Mapping,
        collections.abc.MutableMapping,
        collections.abc.Set,
        collections.abc.Iterator,
        collections.abc.Generator,
        collections.abc.Collection,
        collections.abc.Reversible,
        collections.abc.Awaitable,
        collections.abc.ByteString,
        numbers.Number,
        numbers.Integral,
        numbers.Real,
    ]
    return [[isinstance(v, a) for a in abcs] for v in vals], x


@program()
def p_abcs_typing(x):
    vals = [1, "a", [1], (1,), {1: 2}]
    return [
        [
            isinstance(v, a)
            for a in (
                Iterable,
                Sized,
                Callable,
                Sequence,
                Mapping,
                Hashable,
                SupportsInt,
                SupportsIndex,
                SupportsFloat,
            )
        ]
        for v in vals
    ], x


@program()
def p_abc_tensor(x):
    return (
        isinstance(x, collections.abc.Iterable),
        isinstance(x, collections.abc.Sequence),
        isinstance(x, Hashable),
        isinstance(x, Callable),
        isinstance(x, numbers.Number),
        isinstance(x.shape, tuple),
    )


@program()
def p_protocol(x):
    return isinstance(Gen(1), HasGet), isinstance(1, HasGet), isinstance({}, HasGet), x


@program()
def p_subclasshook(x):
    return isinstance(Duck(), MyABC), issubclass(Duck, MyABC), isinstance(1, MyABC), x


@program()
def p_registered(x):
    return isinstance(RegC(), Reg), issubclass(RegC, Reg), isinstance(1, Reg), x


@program()
def p_isinstance_tuple(x):
    return (
        isinstance(1, (str, (int, float))),
        isinstance(x, (list, torch.Tensor)),
        isinstance(1, int | str),
        isinstance(None, Optional[int]),
        isinstance(1, Union[int, str]),
    )


@program()
def p_isinstance_generic(x):
    try:
        isinstance([], list[int])
    except TypeError as e:
        return str(e), x


@program()
def p_isinstance_typing_generic(x):
    try:
        isinstance([], List[int])
    except TypeError as e:
        return str(e), x


@program()
def p_isinstance_any(x):
    try:
        isinstance([], Any)
    except TypeError as e:
        return str(e), x


@program()
def p_typing_list_isinstance(x):
    return isinstance([], List), isinstance({}, Dict), isinstance((), Tuple), x


@program()
def p_literal(x):
    return get_args(Literal["a", "b"]), "a" in get_args(Literal["a", "b"]), x


@program()
def p_typevar(x):
    return T.__name__, T, x


@program()
def p_union_or(x):
    U = int | None
    return isinstance(3, U), isinstance(None, U), isinstance(x, U), U == (int | None)


X = torch.ones(2)


@program((X, int | None), (X, None | int), (X, Union[int, None]), (X, Union[None, int]),
         (X, list[1]), (X, list[True]))  # fmt: skip
def p_aliases_that_are_equal(x, alias):
    return alias.__args__, repr(alias), x + 1


class Refuses(type):
    def __eq__(self, other):
        raise ZeroDivisionError("compared")

    __hash__ = type.__hash__


class Refused(metaclass=Refuses):
    pass


class Nameless(type):
    @property
    def __module__(self):
        raise ZeroDivisionError("asked for its module")


@program(breaks=None)
def p_classes_with_metaclasses_that_raise(x):
    told = []
    for make in (
        lambda: list[int] | list[Refused],
        lambda: Union[Refused, int],
        lambda: str | Nameless("TypeVar", (), {})(),
        lambda: Nameless("C", (), {})() is None,
    ):
        try:
            told.append(make())
        except (TypeError, ZeroDivisionError) as error:
            told.append(str(error))
    return told, x


@program()
def p_union_str(x):
    return str(int | str), repr(list[int]), str(Optional[int]), str(List[int]), repr(Gen[int]), x


@program()
def p_clsgetitem(x):
    class_ = Gen[str]
    return class_ is Gen[str], class_ == Gen[str], x


@program()
def p_gl(x):
    g = GL[int]([x])
    return g[0], type(g), len(g)


@program()
def p_deque_alias(x):
    return deque[int]([1]), defaultdict[str, int](int), x


class OwnAlias(types.GenericAlias):
    origin: type


NO_TYPE = "/T"
OWN_ALIAS = OwnAlias(list, int)


@program((X, OwnAlias(list, int) | str), (X, list[int] | str), breaks=None)
def p_unions_with_aliases_of_the_program(x, union):
    return type(union.__args__[0]).__name__, x + 1


@program(breaks=None)
def p_aliases_of_the_program(x):
    return type(OWN_ALIAS) is OwnAlias, OWN_ALIAS == list[int], OWN_ALIAS.__origin__, x


@program(breaks=None)
def p_what_typing_refuses_or_makes_anew(x):
    told = []
    for make in (lambda: List[NO_TYPE], lambda: type("C", (List["T"],), {})):
        try:
            make()
        except (SyntaxError, TypeError) as error:
            told.append(str(error))
    try:

        class Made(Optional[int]):
            pass

    except TypeError as error:
        told.append(str(error))
    P = ParamSpec("P")
    unpacked = tuple[int, *tuple[str, ...]]
    return told, P.args == P.args, P.args.__origin__ is P, get_args(unpacked)[0], x


Given = ParamSpec("Given")


def doubling(function: Callable[Given, torch.Tensor]) -> Callable[Given, torch.Tensor]:
    def call(*args: Given.args, **kwargs: Given.kwargs) -> torch.Tensor:
        return function(*args, **kwargs) * 2

    return call


@program()
def p_typed_decorator(x):
    made = doubling(torch.sin)
    return made(x), made, made.__annotations__["args"] == Given.args


@program(breaks=1)
def p_parameters_of_a_callable_after_a_break(x):
    log = []
    found = note(log, Given.args)
    return found == Given.args, found == Given.kwargs, x + 1


test_agrees = program.test()
