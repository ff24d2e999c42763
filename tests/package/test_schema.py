"""Every class of the data model has a stored form; nothing else is read or written."""

import dataclasses
import inspect
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotdyn.package import graph, guard, point, reference, schema, source, values, variant
from aotdyn.package.errors import PackageError
from aotdyn.package.graph import GraphInput, Node, Value
from aotdyn.package.guard import Guard
from aotdyn.package.point import Point
from aotdyn.package.reference import Import, Literal, Reference, Runtime
from aotdyn.package.schema import CODEC, RECORDS, decode_record, encode_record
from aotdyn.package.source import Attribute, Derived, Item, Local, Source, TypeOf
from aotdyn.package.values import MAX_STEPS, from_bytes, to_bytes

MODEL = (graph, guard, point, reference, source, variant)


def there_and_back(record, cls=object):
    return decode_record(from_bytes(to_bytes(encode_record(record))), cls)


def same(a, b):
    """Equal by the stored form, in which types count and nan equals itself."""
    return to_bytes(encode_record(a)) == to_bytes(encode_record(b))


def test_every_class_of_the_model_has_a_stored_name():
    stored = set(RECORDS.values())
    for module in MODEL:
        for cls in vars(module).values():
            if inspect.isclass(cls) and dataclasses.is_dataclass(cls):
                assert cls in stored or cls in (Source, Derived), f"{cls.__name__} is not stored"
    assert set(get_args(Reference)) <= set(values.REFERENCES.values())
    assert len(stored) == len(RECORDS)


def test_every_field_has_an_annotation_that_can_be_checked():
    for tag in RECORDS:
        assert CODEC._layout(tag).cls is RECORDS[tag]


def test_the_samples_survive(samples):
    everything = (
        *samples.SOURCES, *samples.GUARDS, *samples.REFERENCES, *samples.VARIANTS,
        *samples.UNPACKABLE, samples.GRAPH, samples.POINT, samples.META, samples.PARAMETER,
    )  # fmt: skip
    for record in everything:
        found = there_and_back(record, type(record))
        assert type(found) is type(record)
        assert same(found, record)


# Records made from the annotations alone, so that new fields are covered as they come.

TEXTS = st.text(max_size=5)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
BASIC = {str: TEXTS, int: st.integers(), bool: st.booleans(), type(None): st.none(), Any: PLAIN}
SOURCES = st.deferred(
    lambda: (
        st.builds(Local, TEXTS)
        | st.builds(Attribute, SOURCES, TEXTS)
        | st.builds(Item, SOURCES, PLAIN)
    )
)
IMPORTS = st.builds(Import, TEXTS, st.sampled_from(["f", "Class.method", "é"]))
REFERENCES = IMPORTS | st.builds(Literal, PLAIN) | st.builds(Runtime, TEXTS)
GUARDS = (
    st.builds(Guard, st.just("EQUALS"), SOURCES, PLAIN, TEXTS)
    | st.builds(Guard, st.sampled_from(["EMPTY", "NONEMPTY", "NO_HOOKS"]), SOURCES)
    | st.builds(Guard, st.sampled_from(["TYPE", "IS"]), SOURCES, REFERENCES)
    | st.builds(Guard, st.sampled_from(["SAME", "DISTINCT"]), SOURCES, SOURCES)
)


SPECIAL = {Import: IMPORTS, Guard: GUARDS}


def strategy(hint):
    origin, args = get_origin(hint), get_args(hint)
    if hint in BASIC:
        return BASIC[hint]
    if hint == Reference:
        return REFERENCES
    if origin in (Union, UnionType):
        return st.one_of(*map(strategy, args))
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(strategy(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(strategy, args))
    if origin is dict:
        return st.dictionaries(*map(strategy, args), max_size=2)
    if hint is Source:
        return SOURCES
    if hint in SPECIAL:
        return SPECIAL[hint]
    return records_of(hint)


def records_of(cls):
    hints = get_type_hints(cls)
    return st.builds(cls, **{f.name: strategy(hints[f.name]) for f in dataclasses.fields(cls)})


@pytest.mark.parametrize("cls", RECORDS.values(), ids=RECORDS)
@given(data=st.data())
def test_any_record_survives(cls, data):
    record = data.draw(strategy(cls))
    found = there_and_back(record, cls)
    assert type(found) is cls and same(found, record)


def test_defaults_are_left_out_and_put_back():
    assert encode_record(Value("x")) == ["value", {"name": "x"}]
    assert encode_record(GraphInput("x", "int", value="s0"))[1].keys() == {"name", "dtype", "value"}
    assert decode_record(["input", {"name": "x", "dtype": "int"}]) == GraphInput("x", "int")
    # A value that is equal to the default but of another type is no default.
    assert there_and_back(Guard("EQUALS", Local("x"), False)).expected is False


def test_a_path_is_stored_flat():
    source = Local("x")
    for index in range(MAX_STEPS):
        source = TypeOf(source) if index % 2 else Attribute(source, "a")
    assert there_and_back(source).text(str) == source.text(str)
    with pytest.raises(TypeError, match="steps"):
        encode_record(TypeOf(source))


WRONG = {
    "list instead of tuple": (Point(0, [True]), "Point.stack"),
    "int instead of bool": (Point(0, (1,)), "Point.stack"),
    "bool instead of int": (Point(True), "Point.offset"),
    "None instead of text": (Value(None), "Value.name"),
    "source instead of reference": (source.Bound(Local("x")), "Bound.reference"),
    "pair too long": (Node("a", "b", (), (("k", 1, 2),)), "Node.kwargs"),
    "unknown kind": (Guard("LIKE", Local("x")), "unknown kind of guard 'LIKE'"),
    "guard without source": (Guard("TYPE", None, Import("m", "C")), "cannot be printed"),
    "guard without reference": (Guard("TYPE", Local("x"), 3), "cannot be printed"),
    "guard that is no source": (Guard("SAME", Local("x"), 3), "cannot be printed"),
    "int without text": (Guard("LENGTH", Local("x"), 10**5000), "cannot be printed"),
    "shape without sources": (Guard("SHAPE", None, ("{0} > 1", ())), "cannot be printed"),
    "shape without template": (Guard("SHAPE", None, 3), "without a template"),
    "shape with a width": (Guard("SHAPE", None, ("{0:999999999}", (Local("x"),))), "damaged"),
    "shape with an attribute": (Guard("SHAPE", None, ("{0.real}", (Local("x"),))), "damaged"),
    "shape with a conversion": (Guard("SHAPE", None, ("{0!r}", (Local("x"),))), "damaged"),
    "shape with half a field": (Guard("SHAPE", None, ("{0", (Local("x"),))), ""),
    "tensors without metas": (Guard("TENSORS", None, ((Local("x"),), ())), "without tensors"),
    "tensors without sources": (Guard("TENSORS", None, 3), "without tensors"),
    "path from nowhere": (TypeOf(None), "starts nowhere"),
    "class that is not stored": (Source(), "Source cannot be stored"),
    "live value": (Node("a", "b", (object(),), ()), "object cannot be stored"),
}


@pytest.mark.parametrize("record, message", WRONG.values(), ids=WRONG)
def test_wrong_records_cannot_be_stored(record, message):
    with pytest.raises(TypeError) as caught:
        encode_record(record)
    assert message in str(caught.value)


DAMAGED = {
    "unknown class": (["gizmo", {}], "unknown data 'gizmo'"),
    "unknown field": (["value", {"name": "x", "colour": 1}], "unknown field 'colour' of 'value'"),
    "unknown long field": (["value", {"name": "x", "a" * 10**5: 1}], "unknown field 'aaa"),
    "missing field": (["value", {}], "field 'name' of 'value' is missing"),
    "wrong type": (["value", {"name": 1}], "field 'name' of 'value' cannot be int"),
    "wrong class": (["graph_of", {"id": "a"}], "GraphOf instead of Value"),
    "plain value": (3, "int instead of Value"),
    "no fields": (["value"], "damaged data of 'value'"),
    "fields as list": (["value", ["l"]], "damaged data of 'value'"),
    "too much": (["value", {"name": "x"}, 1], "damaged data of 'value'"),
    "step without start": (["type_of", {}], "unknown data 'type_of'"),
    "path without steps": (["path", ["local", {"name": "x"}]], "without steps"),
    "path from a guard": (["path", ["value", {"name": "x"}], ["type_of", {}]], "starts nowhere"),
    "path of others": (["path", ["local", {"name": "x"}], ["value", {}]], "step 'value'"),
    "path of nothing": (["path", ["local", {"name": "x"}], 3], "unknown step None"),
    "path with odd step": (["path", ["local", {"name": "x"}], [["t"], {}]], "unknown step"),
    "path in a path": (
        ["path", ["path", ["local", {"name": "x"}], ["type_of", {}]], ["type_of", {}]],
        "a path inside a path",
    ),
    "path too long": (
        ["path", ["local", {"name": "x"}], *[["type_of", {}]] * (MAX_STEPS + 1)],
        "too many",
    ),
    "unknown kind": (["guard", {"kind": "LIKE", "source": None}], "unknown kind of guard 'LIKE'"),
    "guard that does not print": (["guard", {"kind": "TYPE", "source": None}], "cannot be printed"),
}


@pytest.mark.parametrize("data, message", DAMAGED.values(), ids=DAMAGED)
def test_damaged_records_are_refused_by_name(data, message):
    with pytest.raises(PackageError) as caught:
        decode_record(data, Value)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)


def replaced(data, path, value):
    """A copy of encoded data with one part replaced."""
    if not path:
        return value
    if isinstance(data, dict):
        key = list(data)[path[0] % len(data)] if data else None
        return {**data, key: replaced(data.get(key), path[1:], value)}
    if isinstance(data, list) and data:
        index = path[0] % len(data)
        return [*data[:index], replaced(data[index], path[1:], value), *data[index + 1 :]]
    return value


PARTS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3)
    | st.sampled_from(list(RECORDS)) | st.just([]) | st.just({}) | st.just(["t"])
    | st.sampled_from([["local", {"name": "x"}], ["import", {"module": "m"}], ["t", 1, 2]])
)  # fmt: skip


@given(st.data())
def test_swapped_parts_are_a_record_or_an_error(samples, data):
    record = data.draw(st.sampled_from([*samples.VARIANTS, samples.GRAPH, *samples.GUARDS]))
    path = data.draw(st.lists(st.integers(0, 40), max_size=12))
    damaged = replaced(encode_record(record), path, data.draw(PARTS))
    try:
        found = decode_record(damaged)
    except PackageError:
        return
    assert same(there_and_back(found), found)


@given(st.data())
def test_flipped_bytes_are_a_record_or_an_error(samples, data):
    record = data.draw(st.sampled_from([*samples.VARIANTS, samples.GRAPH, *samples.GUARDS]))
    stored = bytearray(to_bytes(encode_record(record)))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = decode_record(from_bytes(bytes(stored)))
    except PackageError:
        return
    assert same(there_and_back(found), found)


def test_versions():
    assert schema.minor("2.13.0+cpu") == "2.13"
    assert schema.minor("3.11") == "3.11"
    assert schema.this_torch().startswith(schema.minor(schema.this_torch()))
    assert type(schema.this_torch()) is str
