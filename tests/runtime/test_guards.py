"""Every kind of guard: what passes, what must not, before and after it was stored; and the words in
which a failure is explained."""

import abc
import array
import collections
import enum
import io
import math
import types
import typing
import weakref
from collections import OrderedDict
from contextvars import ContextVar

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from aotdyn.package.guard import KINDS, Guard
from aotdyn.package.reference import (
    ClassFacts,
    ClassLike,
    Import,
    Literal,
    Made,
    TensorMeta,
    class_name,
)
from aotdyn.package.schema import decode_record, encode_record
from aotdyn.package.source import (
    Ahead,
    Attribute,
    Bound,
    Called,
    Contents,
    ContextValue,
    Item,
    Listed,
    Local,
    Ordered,
    Over,
    OwnDict,
    Referent,
    ReferredItem,
    Size,
    StorageOffset,
    Stride,
    TypeOf,
    ValueAt,
)
from aotdyn.package.state import process_state
from aotdyn.package.values import from_bytes, to_bytes
from aotdyn.package.variant import EntryKey, Variant, code_hash
from aotdyn.record.check import CheckWriter
from aotdyn.record.naming import Names
from aotdyn.runtime.entry import Entry
from aotdyn.runtime.explain import Explainer
from aotdyn.runtime.link import Linked, Linker
from aotdyn.runtime.settings import Settings

HERE = __name__
V, W = Local("v"), Local("w")


LISTED, TABLE = [1, 2], {1: 2}


def advanced(values):
    """An iterator that has given one value."""
    iterator = iter(values)
    next(iterator)
    return iterator


def changed(table):
    """An iterator over a table that has grown."""
    iterator = iter(table)
    table["new"] = 1
    return iterator


class Ending:
    """Whose end the program sees."""

    def __del__(self):
        pass


watchers = []


def watched(how, *callback):
    """A value that somebody refers to weakly."""
    value = Moody()
    watchers.append(how(value, *callback))
    return value


views = []


def viewed(value):
    """A value that somebody has a view of."""
    views.append(memoryview(value.getbuffer() if isinstance(value, io.BytesIO) else value))
    return value


class Moody:
    """Whose hash is another one each time."""

    def __init__(self):
        self.hash = 0

    def __hash__(self):
        self.hash += 1
        return self.hash


def moved():
    """An iterator over a dict whose keys have been exchanged."""
    table = {1: 1, 2: 2, 3: 3}
    iterator = iter(table)
    next(iterator)
    for key in (1, 2, 3):
        del table[key]
    for key in (4, 5, 6):
        table[key] = key
    for _ in range(2):
        next(iterator)
    return iterator


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Base:
    def method(self):
        return 1


class Derived(Base):
    pass


def made_by_an_empty_cache():
    for clear in typing._cleanups:
        clear()
    return typing.Annotated[typing.Required[str], "a"]


class Slotted:
    __slots__ = ("a",)

    def __init__(self, *values):
        for value in values:
            self.a = value


class Virtual(collections.abc.Sized):
    def __len__(self):
        return 0


class Between(Base):
    pass


class Marked(nn.Module):
    pass


def function(x):
    return x + 1


def other_function(x):
    return x + 2


def here(name: str) -> Import:
    return Import(HERE, name)


def builtin(name: str) -> Import:
    return Import("builtins", name)


def cell(*content):
    return types.CellType(*content)


def module(change=lambda m: None) -> nn.Module:
    made = Marked()
    change(made)
    return made


def meta(tensor: torch.Tensor, size=None, stride=None, **changes) -> TensorMeta:
    return TensorMeta(
        str(tensor.dtype).removeprefix("torch."), "cpu", tensor.requires_grad,
        tuple(tensor.shape) if size is None else size,
        tuple(tensor.stride()) if stride is None else stride, **changes,
    )  # fmt: skip


def like_base(**changes) -> ClassLike:
    order = ("tests.runtime.test_guards:Base", builtin("object"))
    members = ((0, "method", "builtins:function"), (0, "own", ""))
    facts = {"order": order, "metaclass": builtin("type"), "members": members, "own_dict": True}
    return ClassLike(**{**facts, **changes})


def renamed(name: str, bases: tuple = (), metaclass: type = type, **namespace) -> type:
    """Another class that calls itself so."""
    return metaclass(name, bases, {"__module__": "tests.runtime.test_guards", **namespace})


X = torch.ones(2, 3)
NAN = float("nan")
SET = ContextVar("set")
SET.set(4)
PREHOOK = lambda m, args: None  # noqa: E731

# (guard, values that pass, values that must fail); a value is what `v` is, or a pair for v and w.
def locked():
    """An array that cannot be written to."""
    made = np.ones((2, 3))
    made.setflags(write=False)
    return made


REQUIRED = Made("item", (Import("typing", "Required"), builtin("str")))

ROWS: list[tuple[Guard, list, list]] = [
    (Guard("TYPE", V, builtin("int")), [1, -5], [True, 1.0, None, "1"]),
    (Guard("TYPE", V, here("Base")), [Base()], [Derived(), Base, None]),
    (Guard("TYPE", V, builtin("list")), [[], [1]], [(), collections.deque(), None]),
    (Guard("CLASS_LIKE", V, like_base()),
     [Base, renamed("Base", method=lambda self: 1, other=2)],
     [Derived, renamed("Base"), renamed("Base", method=1), 1,
      renamed("Base", method=lambda self: 1, own=1), renamed("Base", (Base,), method=len),
      renamed("Base", metaclass=abc.ABCMeta, method=lambda self: 1),
      renamed("Base", method=lambda self: 1, __slots__=())]),
    (Guard("IS", V, here("function")), [function], [other_function, None, 1]),
    (Guard("IS", V, here("Color.RED")), [Color.RED], [Color.BLUE, 1, None]),
    (Guard("IS", V, here("Base")), [Base], [Derived, Base()]),
    (Guard("IS", V, Import("math")), [math], [torch, None]),
    (Guard("IS", V, builtin("len")), [len], [max, None]),
    (Guard("EQUAL", V, Made("item", (builtin("list"), builtin("int")))), [list[int]],
     [list[str], tuple[int], list, None]),
    (Guard("EQUAL", V, Made("item", (Import("typing", "Annotated"), REQUIRED, Literal("a")))),
     [typing.Annotated[typing.Required[str], "a"], made_by_an_empty_cache()],
     [typing.Annotated[typing.Required[int], "a"], typing.Annotated[typing.Required[str], "b"],
      typing.Annotated[str, "a"]]),
    (Guard("EQUAL", V, Made("union", (Literal(None), builtin("int")))), [None | int],
     [int | None, int, None]),
    (Guard("EQUAL", V, Made("item", (builtin("list"), Literal(1)))), [list[1]], [list[True]]),
    (Guard("EQUALS", V, None), [None], [False, 0, "", ()]),
    (Guard("EQUALS", V, True), [True], [1, 1.0, "True", None, False]),
    (Guard("EQUALS", V, 1), [1], [True, 1.0, 2, None, "1"]),
    (Guard("EQUALS", V, 0), [0], [False, 0.0, -0.0, None]),
    (Guard("EQUALS", V, 2**70), [2**70], [2**70 + 1, float(2**70)]),
    (Guard("EQUALS", V, 0.0), [0.0], [-0.0, 0, False, NAN]),
    (Guard("EQUALS", V, -0.0), [-0.0], [0.0, 0]),
    (Guard("EQUALS", V, NAN), [NAN, float("nan")], [0.0, -NAN, math.inf, None]),
    (Guard("EQUALS", V, math.inf), [math.inf], [-math.inf, 1e308, NAN]),
    (Guard("EQUALS", V, 1.5), [1.5], [1.5 + 1e-15, "1.5", 1]),
    (Guard("EQUALS", V, 1 + 2j), [1 + 2j], [1 - 2j, 1, 1.0]),
    (Guard("EQUALS", V, "a"), ["a"], ["b", b"a", "", None]),
    (Guard("EQUALS", V, "a{0}\n'\""), ["a{0}\n'\""], ["a{0}", "a"]),
    (Guard("EQUALS", V, b"a"), [b"a"], ["a", bytearray(b"a"), b"b"]),
    (Guard("EQUALS", V, Ellipsis), [...], [None, NotImplemented]),
    (Guard("EQUALS", V, range(3)), [range(3)], [range(4), range(0, 3, 2), [0, 1, 2]]),
    (Guard("EQUALS", V, range(0)), [range(0)], [range(1, 1), range(0, 0, 2), ()]),
    (Guard("EQUALS", V, torch.float32), [torch.float32], [torch.float64, "float32"]),
    (Guard("EQUALS", V, torch.device("cpu")), [torch.device("cpu")], ["cpu", torch.device("meta")]),
    (Guard("EQUALS", V, torch.strided), [torch.strided], [torch.sparse_coo, None]),
    (Guard("EQUALS", V, torch.channels_last), [torch.channels_last], [torch.contiguous_format]),
    (Guard("EQUALS", V, frozenset({1, "a"})), [frozenset({"a", 1})],
     [frozenset({1}), {1, "a"}, frozenset({True, "a"})]),
    (Guard("EQUALS", V, {1, 2}), [{2, 1}], [{1}, frozenset({1, 2}), {1.0, 2}]),
    (Guard("LENGTH", V, 2), [[1, 2], "ab", {1: 1, 2: 2}], [[], (1,), [1, 2, 3], 5]),
    (Guard("KEYS", V, ("a", "b")), [{"a": 1, "b": 2}], [{"b": 2, "a": 1}, {"a": 1}, {}]),
    (Guard("KEYS", V, (1, "b")), [{1: 1, "b": 2}], [{True: 1, "b": 2}, {1.0: 1, "b": 2}, {1: 1}]),
    (Guard("KEYS", V, (here("Color.RED"), 1)), [{Color.RED: 1, 1: 1}],
     [{Color.BLUE: 1, 1: 1}, {1: 1, Color.RED: 1}, {Color.RED: 1}]),
    (Guard("SLOT", V, "a"), [Slotted(1), Slotted(None)], [Slotted()]),
    (Guard("EMPTY_SLOT", V, "a"), [Slotted()], [Slotted(1), Slotted(None)]),
    (Guard("HAS", V, "a"), [{"a": 1}, {"b": 1, "a": None}], [{}, {"b": 1}, None]),
    (Guard("HAS", V, (1, "a")), [{(1, "a"): 1}], [{}, {(1, "b"): 1}]),
    (Guard("HAS", V, here("Color.RED")), [{Color.RED: 1}], [{Color.BLUE: 1}]),
    (Guard("LACKS", V, "a"), [{}, {"b": 1}], [{"a": 1}, {"a": None}, None]),
    (Guard("LACKS", V, here("Base")), [{Derived: 1}], [{Base: 1}]),
    (Guard("EMPTY", V), [[], {}, (), ""], [[0], {0: 0}, "a"]),
    (Guard("NONEMPTY", V), [[0], {0: 0}, "a"], [[], {}, ()]),
    (Guard("ARRAY", V, ("<f8", (2, 3), (24, 8), True)), [np.ones((2, 3)), np.zeros((2, 3))],
     [np.ones((3, 2)), np.ones((2, 3), "f4"), np.ones((2, 3), order="F"), locked(), [1.0], None]),
    (Guard("HOLDS", V, np.arange(2).tobytes()), [np.arange(2)], [np.arange(3), np.ones(2), None]),
    (Guard("EQUALS", V, np.float32(0.5)), [np.float32(0.5)], [0.5, np.float64(0.5), np.float32(1)]),
    (Guard("EQUALS", V, np.float64("nan")), [np.float64("nan")], [math.nan, -np.float64("nan")]),
    (Guard("NO_END", V), [None, [], X, len, watched(weakref.ref), watched(weakref.proxy)],
     [(x for x in "a"), advanced(x for x in "ab"), memoryview(b""), Ending(),
      watched(weakref.ref, print), [watched(weakref.ref, print)]]),
    (Guard("NO_END_AT", V, "a"), [{}, {"a": 1, "b": Ending()}],
     [{"a": Ending()}, {"a": [Ending()]}]),
    (Guard("NO_VIEW", V), [bytearray(2), array.array("u"), array.array("d", [1]), io.BytesIO(b"a")],
     [viewed(bytearray(2)), viewed(array.array("d", [1])), viewed(io.BytesIO(b"a"))]),
    (Guard("EMPTY_CELL", V), [cell()], [cell(None), cell(1)]),
    (Guard("SAME", V, W), [(X, X), (None, None)], [(X, X + 0), ([], [])]),
    (Guard("DISTINCT", V, W), [(X, X + 0), ([], [])], [(X, X)]),
    (Guard("DIFFERENT", None, (V, W)), [(X, X + 0), ([], [])], [(X, X)]),
    (Guard("SUBCLASS", TypeOf(V), (Import("collections.abc", "Sized"), True)),
     [[], "a", Virtual()], [1, None, Virtual]),
    (Guard("CODE", V, code_hash(function.__code__)), [function], [other_function, len, None]),
    (Guard("SHAPE", None, ("{0} >= 2", (Size(V, 0),))), [X, torch.ones(5)],
     [torch.ones(1), torch.ones(0, 3), torch.ones(())]),
    (Guard("SHAPE", None, ("{0} == 3*{1}", (Stride(V, 0), Stride(V, 1)))), [X],
     [torch.ones(3, 2), X.t(), torch.ones(2)]),
    (Guard("SHAPE", None, ("math.isfinite({0})", (V,))), [1.0, 3], [NAN, math.inf, "a"]),
    (Guard("TENSORS", None, ((V,), (meta(X),))), [X, X.clone(), X * 2],
     [X.double(), X.t(), X[:1], X.clone().requires_grad_(), torch.ones(3, 2), torch.ones(6),
      nn.Parameter(X), X.to("meta"), X.to_sparse(), X.to(torch.complex64).conj(), None, 1,
      X.expand(2, 3)[:, :1].expand(2, 3)]),
    (Guard("TENSORS", None, ((V,), (meta(X, size=(None, 3)),))), [X, torch.ones(7, 3)],
     [torch.ones(7, 4), torch.ones(3), torch.ones(3, 7).t()]),
    (Guard("TENSORS", None, ((V,), (meta(X, (None, None), (None, 1)),))), [X, torch.ones(7, 4)],
     [torch.ones(7, 4).t()]),
    (Guard("TENSORS", None, ((V, W), (meta(X), meta(X)))), [(X, X.clone())],
     [(X, X), (X, X.double()), (X, None)]),
    (Guard("TENSORS", None, ((V,), (meta(nn.Parameter(X), cls=Import("torch.nn", "Parameter")),))),
     [nn.Parameter(X)], [X, X.clone().requires_grad_(), nn.Parameter(X, requires_grad=False)]),
    (Guard("NO_HOOKS", V), [module()],
     [module(lambda m: m.register_forward_hook(PREHOOK)),
      module(lambda m: m.register_forward_pre_hook(PREHOOK)),
      module(lambda m: m.register_full_backward_hook(PREHOOK)),
      module(lambda m: m.register_full_backward_pre_hook(PREHOOK)),
      module(lambda m: m.__dict__.update(_compiled_call_impl=1)), None]),
    (Guard("HOOKS", V, ((False,), ())), [module(lambda m: m.register_forward_pre_hook(PREHOOK))],
     [module(), module(lambda m: m.register_forward_hook(PREHOOK)),
      module(lambda m: m.register_forward_pre_hook(PREHOOK, with_kwargs=True)),
      module(lambda m: [m.register_forward_pre_hook(PREHOOK) for _ in range(2)])]),
    (Guard("LEFT", V, 2), [iter([1, 2]), iter(range(3))], [iter([1]), iter(()), 5]),
    (Guard("LEFT_MOST", V, 2), [iter({}), iter({1: 1, 2: 2})], [iter({1, 2, 3})]),
    (Guard("ENDS", V, 1), [iter([1]), advanced([1, 2])], [iter([]), iter((1, 2))]),
    (Guard("TABLE_LEFT", V, 1), [iter({1: 1}), advanced({1, 2, 3})],
     [iter({}), changed({1: 1}), moved()]),
    (Guard("TABLE_ENDS", V, 1), [iter({1: 1}), advanced({1, 2})],
     [iter({}), iter({1, 2}), changed({1: 1}), iter([])]),
    (Guard("EQUALS", Ahead(V, 1), 5), [iter([1, 5]), advanced((1, 2, 5)), iter({1: 2, 5: 6})],
     [iter([5]), iter([5, 6]), advanced([1, 5, 2])]),
    (Guard("EQUALS", Ahead(V, 1), 5), [reversed([5, 1])], [reversed([5]), reversed([5, 1, 2])]),
    (Guard("SAME", Over(V), W), [(iter(LISTED), LISTED), (iter(TABLE.items()), TABLE),
                                 (types.MappingProxyType(TABLE), TABLE)],
     [(iter([1]), LISTED), (iter({}), {})]),
    (Guard("SET", V), [SET], [ContextVar("free"), ContextVar("d", default=4)]),
    (Guard("UNSET", V), [ContextVar("free")], [SET]),
    # sources
    (Guard("EQUALS", ContextValue(V), 4), [SET], [ContextVar("free"), ContextVar("d", default=4)]),
    (Guard("EQUALS", Attribute(V, "real"), 1), [1], [2, "a"]),
    (Guard("EQUALS", Item(V, 0), "a"), [["a"], ("a",), {0: "a"}], [[], ["b"], {}, None]),
    (Guard("EQUALS", Item(V, ("k", 1)), 1), [{("k", 1): 1}], [{("k", 1): 2}, {}]),
    (Guard("EQUALS", ReferredItem(V, here("Base")), 1), [{Base: 1}], [{Derived: 1}, {Base: 2}]),
    (Guard("EQUALS", Attribute(Bound(builtin("int")), "__name__"), "int"), [None], []),
    (Guard("IS", TypeOf(V), builtin("int")), [1], [True, None]),
    (Guard("EQUALS", Size(V, 1), 3), [X], [torch.ones(2, 4), torch.ones(2)]),
    (Guard("EQUALS", StorageOffset(V), 3), [X[1:]], [X, torch.ones(5)[1:]]),
    (Guard("EQUALS", Item(OwnDict(V), "k"), 1), [types.SimpleNamespace(k=1)],
     [types.SimpleNamespace(k=2), types.SimpleNamespace(), 1]),
    (Guard("EQUALS", Item(Contents(V), "k"), 1), [OrderedDict(k=1)], [OrderedDict(k=2), {}]),
    (Guard("EQUALS", Called(V, (1,), (("base", 2),)), 1), [lambda n, base: n * base // 2],
     [lambda n, base: n * base, None]),
    (Guard("EQUALS", Referent(V), 1), [lambda: 1], [lambda: None, None]),
    (Guard("EQUALS", ValueAt(V, 1), 5), [{"a": 1, "b": 5}], [{"b": 5, "a": 1}, {"b": 5}]),
    (Guard("EQUALS", Item(Listed(V), 1), "b"), [{"a": 1, "b": 5}], [{"b": 5, "a": 1}, {"b"}, 1]),
    (Guard("EQUALS", Item(Listed(V, True), 0), 1), [{"a": 1}], [{"a": 2}, {}, {1}]),
    (Guard("EQUALS", Item(Ordered(V), 1), "b"), [{"b", "a"}, {"c", "b", "a"}], [{"b"}, {"a", "c"}]),
    (Guard("FOUND", V), [{"a": 1}, {1, 2}, {}], [{float("nan"): 1, Moody(): 2}]),
    (Guard("MEMBERS", V, (1, (1, 2), builtin("int"))), [{int, 1, (1, 2)}],
     [{int, 1}, {int, True, (1, 2)}, {int, 1, (1.0, 2)}, {str, 1, (1, 2)}, set()]),
]  # fmt: skip


def linked(*guards: Guard) -> Linked:
    """The variant with these guards, and those that every variant has, as it is after storing."""
    guards = (Guard("STATE", None, process_state()), *guards)
    names = Names(("v", "w"))
    check = CheckWriter(names, ("v", "w")).write(list(guards), [])
    key = EntryKey(HERE, "entry", "0" * 16)
    variant = Variant(key, check, "def body(inputs, v, w):\n    return 1\n", names.references,
                      guards, None, params=("v", "w"))  # fmt: skip
    stored = decode_record(from_bytes(to_bytes(encode_record(variant))), Variant)
    assert repr(stored) == repr(variant)  # nan does not equal itself
    return Linker(Entry(function.__code__, globals(), Settings("eager"), None, None), stored).link()


def covers(variant: Linked, values) -> bool:
    """Whether a variant covers frame values; its explanation must say the same."""
    values = values if type(values) is tuple and len(values) == 2 else (values, 0)
    covered = variant.check(*values) is not None
    assert (Explainer(variant, values).first_failure() == "") is covered
    return covered


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].kind)
def test_guard(row):
    guard, passing, failing = row
    variant = linked(guard)
    for value in passing:
        assert covers(variant, value), value
    for value in failing:
        assert not covers(variant, value), value


def test_every_kind_has_a_row():
    elsewhere = {"STATE", "CLASSES", "CODES", "NO_GLOBAL_HOOKS", "TOLD"}
    assert {row[0].kind for row in ROWS} | elsewhere == set(KINDS)


# -- guards on the process ------------------------------------------------------------


@pytest.fixture
def undone(monkeypatch):
    """MonkeyPatch, and the process' state as it was."""
    yield monkeypatch
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)


class Doubled(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Dispatched(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


CONTEXTS = {
    "no_grad": torch.no_grad, "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "autocast in float16": lambda: torch.autocast("cpu", torch.float16),
    "function mode": Doubled, "dispatch mode": Dispatched,
    "default device": lambda: torch.device("meta"),
    "kernels of attention": lambda: sdpa_kernel(SDPBackend.MATH),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTEXTS)
def test_state(name):
    variant = linked()
    assert covers(variant, 0)
    with CONTEXTS[name]():
        assert not covers(variant, 0)
    assert covers(variant, 0)


@pytest.mark.parametrize("name", ["no_grad", "inference", "autocast", "kernels of attention"])
def test_state_that_is_not_the_usual_one(name):
    with CONTEXTS[name]():
        variant = linked()
        assert covers(variant, 0)
    assert not covers(variant, 0)


def test_state_of_defaults(undone):
    variant = linked()
    torch.set_default_dtype(torch.float64)
    assert not covers(variant, 0)
    torch.set_default_dtype(torch.float32)
    assert covers(variant, 0)
    torch.use_deterministic_algorithms(True)
    assert not covers(variant, 0)


def test_any_number_of_threads(undone):
    """Code depends on it as little as it does on the machine."""
    variant, before = linked(), torch.get_num_threads()
    try:
        for threads in (3, 1, 2):
            torch.set_num_threads(threads)
            assert covers(variant, 0)
            with torch.no_grad():
                assert not covers(variant, 0)
    finally:
        torch.set_num_threads(before)


def test_state_inside_of_transforms():
    variant = linked()
    found = []
    torch.vmap(lambda x: (found.append(covers(variant, 0)), x)[1])(X)
    torch.func.grad(lambda x: (found.append(covers(variant, 0)), x.sum())[1])(X)
    assert found == [False, False]
    assert covers(variant, 0)


REPLACED = [
    (torch.Tensor, "norm", True), (torch.Tensor, "__rsub__", True), (torch.Tensor, "relu", True),
    (torch.Tensor, "__len__", True), (torch.Tensor, "unheard_of", False),
    (nn.functional, "relu", True), (nn.functional, "linear", True),
    (nn.functional, "unheard_of", False),
]  # fmt: skip


@pytest.mark.parametrize("owner, name, matters", REPLACED)
def test_functions_of_torch(owner, name, matters, undone):
    variant = linked()
    with undone.context() as patch:
        patch.setattr(owner, name, lambda *args: 1, raising=False)
        assert covers(variant, 0) is not matters
    assert covers(variant, 0)


def test_global_hooks():
    variant = linked(Guard("NO_GLOBAL_HOOKS", None))
    assert covers(variant, 0)
    for register in (
        nn.modules.module.register_module_forward_hook,
        nn.modules.module.register_module_forward_pre_hook,
        nn.modules.module.register_module_full_backward_hook,
    ):
        handle = register(lambda *args: None)
        assert not covers(variant, 0)
        handle.remove()
    assert covers(variant, 0)


def facts(cls: type, *members: tuple[int, str, str]) -> Guard:
    order = tuple(map(class_name, cls.__mro__))
    return Guard("CLASSES", None, (ClassFacts(here(cls.__name__), order, members),))


METHOD = (1, "method", "builtins:function")
CHANGED_CLASSES = [
    (lambda p: p.setattr(Base, "method", lambda self: 2), True),
    (lambda p: p.setattr(Base, "method", property(lambda self: 2)), True),
    (lambda p: p.delattr(Base, "method"), True),
    (lambda p: p.setattr(Derived, "method", Base.method, raising=False), True),
    (lambda p: p.setattr(Base, "unrelated", 1, raising=False), False),
]


@pytest.mark.parametrize("change, matters", CHANGED_CLASSES)
def test_classes(change, matters, undone):
    variant = linked(facts(Derived, (0, "method", ""), METHOD))
    assert covers(variant, 0)
    with undone.context() as patch:
        change(patch)
        assert covers(variant, 0) is not matters
    assert covers(variant, 0)


def test_bases_of_a_class():
    variant = linked(facts(Derived, (0, "method", ""), METHOD))
    Derived.__bases__ = (Between,)
    assert not covers(variant, 0)
    Derived.__bases__ = (Base,)
    assert covers(variant, 0)


def test_codes(undone):
    variant = linked(Guard("CODES", None, (here("function"), here("Base.method"))))
    assert covers(variant, 0)
    with undone.context() as patch:
        patch.setattr(Base.method, "__code__", other_function.__code__)
        assert not covers(variant, 0)
    assert covers(variant, 0)


def test_abstract_base_class(undone):
    sized = (Import("collections.abc", "Sized"), False)
    variant = linked(Guard("SUBCLASS", Bound(here("Base")), sized))
    assert covers(variant, 0)
    collections.abc.Sized.register(Base)
    assert not covers(variant, 0)


