"""Plain values survive storing exactly, damaged data is refused, and equality is by exact type."""

import copy
import enum
import math
import os
import struct
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aotdyn.package.arrays import SCALARS
from aotdyn.package.errors import PackageError
from aotdyn.package.reference import Import, Literal
from aotdyn.package.source import Local
from aotdyn.package.values import (
    MAX_DEPTH,
    decode,
    encode,
    from_bytes,
    same_value,
    storable,
    to_bytes,
)


def there_and_back(value):
    return decode(from_bytes(to_bytes(encode(value))))


def exact(value):
    """The types and bits of a value as nested tuples of strings, by other code than the tested."""
    kind = type(value).__name__
    if type(value) is float:
        return kind, struct.pack(">d", value).hex()
    if type(value) is complex:
        return kind, exact(value.real), exact(value.imag)
    if type(value) in (tuple, list, torch.Size):
        return kind, tuple(map(exact, value))
    if type(value) is dict:
        return kind, tuple((exact(key), exact(item)) for key, item in value.items())
    if type(value) in (set, frozenset):
        return kind, tuple(sorted(map(exact, value), key=str))
    if type(value) in (slice, range):
        return kind, exact((value.start, value.stop, value.step))
    if type(value) is int:
        return kind, hex(value)
    if type(value) is Literal:
        return kind, exact(value.value)
    if isinstance(value, np.generic):
        return kind, value.tobytes().hex()
    return kind, repr(value)


def doubles():
    return st.binary(min_size=8, max_size=8).map(lambda bits: struct.unpack(">d", bits)[0])


def scalars(kind):
    """NumPy's scalars of a type, by their bits."""
    if kind is np.bool_:
        return st.sampled_from([np.True_, np.False_])
    size = np.dtype(kind).itemsize
    return st.binary(min_size=size, max_size=size).map(lambda bits: np.frombuffer(bits, kind)[0])


FLOATS = st.floats() | doubles() | st.sampled_from([0.0, -0.0, math.inf, math.nan])
TEXTS = st.text(st.characters(exclude_categories=()))  # surrogates too
INTS = st.integers() | st.integers(-(2**70), 2**70)
HASHABLE_LEAVES = (
    st.none()
    | st.booleans()
    | INTS
    | FLOATS
    | st.builds(complex, FLOATS, FLOATS)
    | TEXTS
    | st.binary()
    | st.builds(range, st.integers(), st.integers(), st.integers().filter(bool))
    | st.sampled_from([..., NotImplemented, torch.float32, torch.strided, torch.channels_last])
    | st.sampled_from([torch.device("cpu"), torch.device("cuda", 2)])
    | st.lists(st.integers(0, 2**62)).map(torch.Size)
    | st.sampled_from(sorted(SCALARS, key=SCALARS.get)).flatmap(scalars)
    | st.builds(Import, TEXTS, st.sampled_from(["f", "Class.é", "_"]))
)
HASHABLE = st.recursive(
    st.deferred(lambda: HASHABLE_LEAVES),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4),
    max_leaves=8,
)
VALUES = st.recursive(
    st.deferred(lambda: HASHABLE),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.deferred(lambda: HASHABLE), inner, max_size=4)
        | st.sets(st.deferred(lambda: HASHABLE), max_size=4)
        | st.builds(slice, inner, inner, inner)
        | st.builds(Literal, inner)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_type_and_value_survive(value):
    assert exact(there_and_back(value)) == exact(value)
    assert storable(value)


def test_the_sample_values_survive(samples):
    for value in samples.PLAIN:
        assert exact(there_and_back(value)) == exact(value)


@pytest.mark.parametrize("kind", [torch.dtype, torch.layout, torch.memory_format])
def test_all_of_torchs_names_survive(kind):
    found = [value for value in vars(torch).values() if type(value) is kind]
    assert found
    for value in found:
        assert there_and_back(value) is value


class Colour(enum.IntEnum):
    RED = 1


class Number(int):
    pass


class Text(str):
    pass


UNSTORABLE = {
    "object": object(),
    "class": int,
    "function": len,
    "module": math,
    "int subclass": Number(1),
    "enum member": Colour.RED,
    "str subclass": Text("a"),
    "torch version": torch.__version__,
    "float subclass": type("F", (float,), {})(1.0),
    "tuple subclass": namedtuple("P", "x")(1),
    "dict subclass": OrderedDict(),
    "defaultdict": defaultdict(int),
    "set subclass": type("S", (set,), {})(),
    "literal subclass": type("L", (Literal,), {})(1),
    "bytearray": bytearray(b"a"),
    "tensor": torch.zeros(1),
    "source": Local("x"),
}


@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE)
def test_other_values_cannot_be_stored(value):
    for wrapped in (value, [value], (1, value), {"a": value}, slice(value), Literal(value)):
        assert not storable(wrapped)
        with pytest.raises(TypeError):
            encode(wrapped)


def test_a_container_that_contains_itself_cannot_be_stored():
    loop = []
    loop.append(loop)
    with pytest.raises(TypeError, match="too deeply"):
        encode(loop)


def test_depth_is_limited_in_both_directions():
    value = data = 0
    for _ in range(MAX_DEPTH):
        value = [value]
    assert exact(there_and_back(value)) == exact(value)
    for _ in range(10):
        value = [value]
    assert not storable(value)
    for _ in range(400):
        data = ["l", data]
    with pytest.raises(PackageError, match="too deeply"):
        decode(data)
    with pytest.raises(PackageError):
        from_bytes(b"\x91" * 100_000)


DAMAGED = {
    "nothing": [],
    "no tag": [1, 2],
    "unknown tag": ["?", 1],
    "map": {"a": 1},
    "unhashable tag": [["t"]],
    "int of text": ["int", "1"],
    "int without bytes": ["int"],
    "bad text": ["str", b"\xff"],
    "complex of ints": ["complex", 1, 2],
    "complex with more": ["complex", 1.0, 2.0, 3.0],
    "odd dict": ["d", 1, 2, 3],
    "key twice": ["d", 1, "a", 1, "b"],
    "equal keys": ["d", 1, "a", True, "b"],
    "unhashable key": ["d", ["l"], 1],
    "unhashable item": ["set", ["l"]],
    "unhashable deep inside": ["frozenset", ["t", ["t", ["d"]]]],
    "item twice": ["set", 1, 1],
    "short slice": ["slice", 1, 2],
    "range without end": ["range", 1],
    "range of float": ["range", 1.0, 2, 3],
    "range of bool": ["range", True, 2, 3],
    "range without step": ["range", 1, 2, 0],
    "ellipsis with more": ["...", 1],
    "unknown dtype": ["dtype", "float33"],
    "dtype that is a function": ["dtype", "add"],
    "dtype that is a layout": ["dtype", "strided"],
    "dtype that torch imports on demand": ["dtype", "_dynamo"],
    "dtype of int": ["dtype", 1],
    "unknown device": ["device", "abacus", -1],
    "device with two indices": ["device", "cuda:1", 1],
    "device index too large": ["device", "cuda", 200],
    "device index too small": ["device", "cuda", -2],
    "device index huge": ["device", "cuda", 2**63],
    "size of text": ["Size", "a"],
    "size of bool": ["Size", True],
    "size too large": ["Size", 2**63],
    "record without fields": ["import"],
    "record with unknown field": ["import", {"module": "m", "file": "f"}],
    "record with missing field": ["import", {"qualname": "f"}],
    "record with wrong type": ["import", {"module": 1}],
    "import of a lambda": ["import", {"module": "m", "qualname": "<lambda>"}],
    "import of a local": ["import", {"module": "m", "qualname": "f.<locals>.g"}],
    "import with an empty part": ["import", {"module": "m", "qualname": "f..g"}],
    "import of no module": ["import", {"module": "m.2"}],
    "import of nothing": ["import", {"module": ""}],
    "record of the larger schema": ["local", {"name": "x"}],
    "path": ["path", ["local", {"name": "x"}], ["type_of", {}]],
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_data_is_refused(data):
    with pytest.raises(PackageError) as caught:
        decode(data)
    assert "\n" not in str(caught.value)
    with pytest.raises(PackageError):
        decode(from_bytes(to_bytes(["t", 1, data])))


TAGS = st.sampled_from(
    "int str complex t l d set frozenset slice range ... NotImplemented dtype layout memory_format "
    "device Size import literal code_of entry_at tensors tensor_meta state live point path".split()
)
RAW = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()
    | st.binary() | TAGS,
    lambda inner: (
        st.lists(inner)
        | st.builds(lambda tag, parts: [tag, *parts], TAGS, st.lists(inner))
        | st.dictionaries(st.sampled_from("module qualname value function path".split()), inner)
    ),
)  # fmt: skip


@given(RAW)
def test_any_data_is_a_value_or_an_error(data):
    try:
        value = decode(data)
    except PackageError:
        return
    assert exact(there_and_back(value)) == exact(value)


@given(st.binary())
def test_any_bytes_are_a_value_or_an_error(data):
    try:
        value = decode(from_bytes(data))
    except PackageError:
        return
    assert exact(there_and_back(value)) == exact(value)


@given(st.data())
def test_flipped_bytes_are_a_value_or_an_error(samples, data):
    stored = bytearray(to_bytes(encode(samples.PLAIN)))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        value = decode(from_bytes(bytes(stored)))
    except PackageError:
        return
    assert exact(there_and_back(value)) == exact(value)


def test_equal_sets_have_equal_bytes_in_every_process():
    program = (
        "from aotdyn.package.values import encode, to_bytes\n"
        "print(to_bytes(encode({'one', 'two', 'three', 4, frozenset({'x', 'y'})})).hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1


# same_value

NAN = math.nan
OTHER_NAN = struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0]

# Within a row all are the same; values of different rows differ.
DISTINCT = [
    [None],
    [True],
    [False],
    [0],
    [1],
    [2**80, 2**79 * 2],
    [0.0],
    [-0.0],
    [1.0],
    [NAN, float("nan")],
    [OTHER_NAN],
    [0j],
    [-0j],
    ["a" * 2, "".join(["a", "a"])],
    [b"aa"],
    [(1, 2), tuple([1, 2])],
    [(1, True)],
    [(1.0, 2)],
    [[1, 2], [1, 2]],
    [torch.Size([1, 2]), torch.Size([1, 2])],
    [(1, NAN), (1, float("nan"))],
    [((), ())],
    [()],
    [[]],
    [{}],
    [{"a": 1, "b": 2}, {"a": 1, "b": 2}],
    [{"b": 2, "a": 1}],
    [{"a": True, "b": 2}],
    [{1: 2}],
    [{True: 2}],
    [{1, 2}, {2, 1}],
    [{1, 2.0}],
    [frozenset({1, 2}), frozenset({2, 1})],
    [{NAN}, {float("nan")}],
    [{OTHER_NAN}],
    [{(1, NAN)}, {(1, float("nan"))}],
    [{(1.0, NAN)}],
    [set()],
    [slice(1, 2), slice(1, 2)],
    [slice(1, 2, 1)],
    [slice(1, 2.0)],
    [range(0), range(0)],
    [range(1, 1)],
    [...],
    [NotImplemented],
    [torch.float32],
    [torch.device("cpu"), torch.device("cpu")],
    [torch.device("cpu", 0)],
    [Import("a", "b"), Import("a", "b")],
    [Import("a")],
    [Literal(1), Literal(1)],
    [Literal(True)],
    [Literal(1.0)],
    [Literal([NAN]), Literal([float("nan")])],
    [{Literal([1])}, {Literal([1])}],
    [{Literal([True])}],
    [int],
    [Colour.RED],
    [Number(1)],
]


@pytest.mark.parametrize(("same", "other"), [
    (NAN, OTHER_NAN), (complex(0, NAN), complex(0, -NAN)), ((1, [NAN]), (1, [-NAN])),
    ({"nan": NAN}, {"nan": -NAN}), (-0.0, 0.0), (1, True),
])  # fmt: skip
def test_literals_are_equal_by_the_bits_of_their_nans(same, other):
    assert Literal(same) == Literal(copy.deepcopy(same)) != Literal(other)


def test_same_value_by_table():
    for i, row in enumerate(DISTINCT):
        for j, other in enumerate(DISTINCT):
            for a in row:
                for b in other:
                    assert same_value(a, b) is (i == j), (a, b)
                    assert same_value([a], [b]) is (i == j), (a, b)
                    assert same_value({"k": a}, {"k": b}) is (i == j), (a, b)


@given(VALUES)
def test_a_value_is_the_same_as_what_was_stored(value):
    assert same_value(value, there_and_back(value))


SMALL = st.recursive(
    st.sampled_from([0, 1, True, 0.0, -0.0, 1.0, NAN, "a", None]),
    lambda inner: st.lists(inner, max_size=2) | st.lists(inner, max_size=2).map(tuple),
    max_leaves=4,
)


@given(SMALL, SMALL)
def test_same_value_is_equality_of_types_and_bits(a, b):
    assert same_value(a, b) == (exact(a) == exact(b))


class Rude:
    def __eq__(self, other):
        raise AssertionError("a guard ran user code")

    def __hash__(self):
        return 1


def test_same_value_runs_no_user_code():
    rude = Rude()
    assert same_value((rude, 1), (rude, 1))
    assert not same_value(Rude(), rude)
    for wrap in (lambda x: [x], lambda x: (x, 1), lambda x: {"a": x}, lambda x: {x: 1}):
        assert not same_value(wrap(Rude()), wrap(rude))
        assert not same_value(wrap(Rude()), wrap(1))
    assert not same_value({Rude()}, {1})
    assert not same_value({Rude()}, {rude})
    assert same_value({rude}, {rude})
    assert not same_value(Number(1), 1)
    assert not same_value([Number(1)], [1])
    assert not same_value({Number(1)}, {1})
