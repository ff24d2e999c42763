"""Plain values, references and records as data that msgpack can hold, exactly.

Literals, the expected values of guards and the arguments of graphs are made of them. Types count as
much as values do: True is not 1, a list is not a tuple, and of a subclass nothing can be stored.
"""

import struct
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from types import EllipsisType, NoneType, NotImplementedType, UnionType
from typing import Any, Union, get_args, get_origin

import msgpack
import torch

from .arrays import SCALARS, same_scalar, scalar_of
from .errors import PackageError
from .own_builtins import BUILTINS as __builtins__  # noqa: F401
from .point import Point
from .reference import (
    Classes,
    ClassFacts,
    ClassLike,
    CodeOf,
    EntryAt,
    Globals,
    GraphOf,
    Import,
    Literal,
    Live,
    Made,
    Runtime,
    State,
    TensorMeta,
    Tensors,
    Verified,
)

MAX_DEPTH = 64  # of containers in each other; also what stops a list that contains itself
MAX_STEPS = 256  # of one path; printing one recurses once a step

# The stored names of the references, and of what they are made of. Never change or reuse one.
REFERENCES: dict[str, type] = {
    "import": Import,
    "literal": Literal,
    "code_of": CodeOf,
    "entry_at": EntryAt,
    "graph_of": GraphOf,
    "tensors": Tensors,
    "tensor_meta": TensorMeta,
    "state": State,
    "runtime": Runtime,
    "globals": Globals,
    "live": Live,
    "classes": Classes,
    "class_facts": ClassFacts,
    "class_like": ClassLike,
    "made": Made,
    "verified": Verified,
    "point": Point,
}


def check_import(reference: Import) -> None:
    """Raises ValueError unless the object's name can be a name in generated text as well."""
    parts = (reference.qualname or reference.module.rpartition(".")[2]).split(".")
    if not all(part.isidentifier() for part in parts):
        raise ValueError(f"an import of something without a name: {_brief(reference.qualname)}")


CHECKS: dict[type, Callable[[Any], None]] = {Import: check_import}

_DIRECT = frozenset({NoneType, bool, int, float, str, bytes})


class Codec:
    """Turns values into msgpack's types and back.

    | value                                                       | stored as                |
    |-------------------------------------------------------------|--------------------------|
    | None, bool, float, bytes, 64-bit int, str that UTF-8 allows | itself                   |
    | any other plain value                                       | [tag, part, part, …]     |
    | a record, a dataclass of the table                          | [tag, {field: value, …}] |
    | a record that is a step from another one                    | ["path", root, step, …]  |

    A field that has its default is left out, and one that is missing gets it. What a field holds
    is checked against its annotation in both directions. Sets are stored in an order of their own,
    so that equal values have equal bytes in every process.

    records: the table from stored names to dataclasses. step: the base class of steps; its field
    `of` is what they start from. checks: for a record class, a function that raises ValueError
    when the fields of a record do not go together.
    """

    def __init__(
        self,
        records: dict[str, type],
        step: type | None = None,
        checks: dict[type, Callable[[Any], None]] | None = None,
    ):
        self._step = step
        self._records = records
        self._checks = checks or {}
        self._tags = {cls: tag for tag, cls in records.items()}
        self._layouts: dict[str, _Layout] = {}
        clash = records.keys() & (_DECODERS.keys() | {"path"})
        if clash or len(self._tags) != len(records):
            raise ValueError(f"ambiguous names of records: {sorted(clash)}")

    def extended(self, records: dict[str, type]) -> "Codec":
        """A codec with further records."""
        return Codec({**self._records, **records}, self._step, self._checks)

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Raises TypeError for what cannot be stored."""
        kind = type(value)
        if kind in _DIRECT:
            return _encode_direct(value)
        if depth > MAX_DEPTH:
            raise TypeError("nested too deeply to be stored")
        encoder = _ENCODERS.get(kind)
        if encoder is not None:
            return encoder(self, value, depth + 1)
        layout = self._layout_of(value)
        if layout.is_step:
            return self._encode_path(value, depth + 1)
        return self._encode_record(layout, value, depth + 1)

    def decode(self, data: Any, depth: int = 0) -> Any:
        """Raises PackageError for anything that `encode` does not make."""
        if type(data) in _DIRECT:
            return data
        if depth > MAX_DEPTH:
            raise PackageError("the data is nested too deeply")
        if type(data) is not list or not data or type(data[0]) is not str:
            raise PackageError(f"unknown data of type {type(data).__name__}")
        tag = data[0]
        decoder = _DECODERS.get(tag)
        if decoder is not None:
            return decoder(self, data, depth + 1)
        if tag == "path" and self._step is not None:
            return self._decode_path(data, depth + 1)
        layout = self._layout(tag)
        if layout is None or layout.is_step:
            raise PackageError(f"unknown data {_brief(tag)}")
        return self._decode_record(layout, data, depth + 1)

    def encode_all(self, values: Iterable[Any], depth: int = 0) -> list:
        return [self.encode(value, depth) for value in values]

    def decode_all(self, parts: list, depth: int = 0) -> list:
        decode = self.decode
        return [part if type(part) in _DIRECT else decode(part, depth) for part in parts]

    def _layout(self, tag: str) -> "_Layout | None":
        """Made on first use: working through the annotations of all classes takes milliseconds."""
        layout = self._layouts.get(tag)
        if layout is None and tag in self._records:
            cls = self._records[tag]
            layout = self._layouts[tag] = _Layout(tag, cls, self._step, self._checks.get(cls))
        return layout

    def _layout_of(self, record: Any) -> "_Layout":
        tag = self._tags.get(type(record))
        if tag is None:
            raise TypeError(f"{_kind_name(type(record))} cannot be stored")
        return self._layout(tag)

    def _encode_record(self, layout: "_Layout", record: Any, depth: int) -> list:
        encoded = {}
        for name, allowed, default in layout.fields:
            value = getattr(record, name)
            if not allowed(value):
                raise TypeError(f"{layout.cls.__name__}.{name} cannot be {_kind_name(type(value))}")
            if default is MISSING or not same_value(value, default):
                encoded[name] = self.encode(value, depth)
        if layout.check is not None:
            reason = layout.mismatch(record)
            if reason:
                raise TypeError(reason)
        return [layout.tag, encoded]

    def _decode_record(self, layout: "_Layout", data: list, depth: int, *of: Any) -> Any:
        """of: for a step what it starts from, which is its first field."""
        if len(data) != 2 or type(data[1]) is not dict:
            raise PackageError(f"damaged data of {layout.tag!r}")
        stored = data[1]
        found, values = 0, [*of]
        for name, allowed, default in layout.fields:
            if name in stored:
                found += 1
                value = stored[name]
                if type(value) not in _DIRECT:
                    value = self.decode(value, depth)
                if not allowed(value):
                    what = type(value).__name__
                    raise PackageError(f"field {name!r} of {layout.tag!r} cannot be {what}")
                values.append(value)
            elif default is MISSING:
                raise PackageError(f"field {name!r} of {layout.tag!r} is missing")
            else:
                values.append(default)
        if found != len(stored):
            known = {name for name, _, _ in layout.fields}
            unknown = next(name for name in stored if name not in known)
            raise PackageError(f"unknown field {_brief(unknown)} of {layout.tag!r}")
        record = layout.cls(*values)
        if layout.check is not None:
            reason = layout.mismatch(record)
            if reason:
                raise PackageError(reason)
        return record

    def _encode_path(self, record: Any, depth: int) -> list:
        steps = []
        while isinstance(record, self._step):
            layout = self._layout_of(record)
            if not layout.from_allowed(record.of):
                raise TypeError("a path that starts nowhere cannot be stored")
            steps.append(self._encode_record(layout, record, depth))
            record = record.of
        if len(steps) > MAX_STEPS:
            raise TypeError(f"a path of more than {MAX_STEPS} steps cannot be stored")
        return ["path", self.encode(record, depth), *reversed(steps)]

    def _decode_path(self, data: list, depth: int) -> Any:
        if not 3 <= len(data) <= 2 + MAX_STEPS:
            raise PackageError("a path without steps or with too many")
        record = self.decode(data[1], depth)
        if isinstance(record, self._step):
            raise PackageError("a path inside a path")
        for step in data[2:]:
            tag = step[0] if type(step) is list and step else None
            layout = self._layout(tag) if type(tag) is str else None
            if layout is None or not layout.is_step:
                raise PackageError(f"unknown step {_brief(tag)}")
            if not layout.from_allowed(record):
                raise PackageError("a path that starts nowhere")
            record = self._decode_record(layout, step, depth, record)
        return record


class _Layout:
    """How the records of one class are laid out.

    fields: (name, whether a value is allowed there, default or MISSING) of each, without the
    field `of` of a step, whose own check is `from_allowed`.
    """

    def __init__(self, tag: str, cls: type, step: type | None, check):
        self.tag = tag
        self.cls = cls
        self.is_step = step is not None and issubclass(cls, step)
        self.check = check
        names = vars(sys.modules[cls.__module__])
        allowed = {field.name: _allowed(field.type, names) for field in fields(cls)}
        self.from_allowed = allowed.pop("of") if self.is_step else None
        self.fields = tuple(
            (field.name, allowed[field.name], field.default)
            for field in fields(cls)
            if field.name in allowed
        )

    def mismatch(self, record: Any) -> str:
        """Why the fields of a record do not go together, or nothing. Needs a `check`."""
        try:
            self.check(record)
        except ValueError as error:
            return str(error)
        return ""


def _allowed(hint: Any, names: dict[str, Any]) -> Callable[[Any], bool]:
    """The test for values that a field with this annotation may hold.

    Records inside a value have been tested on their own, so classes are enough here. `names` are
    the globals of the module that has the annotation.
    """
    if type(hint) is str:
        hint = names[hint]
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: True
    if origin in (Union, UnionType):
        return _allowed_of_many(args, names)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        part = _allowed(args[0], names)
        return lambda value: type(value) is tuple and all(map(part, value))
    if origin is tuple:
        parts = [_allowed(arg, names) for arg in args]
        return lambda value: (
            type(value) is tuple
            and len(value) == len(parts)
            and all(part(item) for part, item in zip(parts, value, strict=True))
        )
    if origin is dict:
        key, item = (_allowed(arg, names) for arg in args)
        return lambda value: (
            type(value) is dict and all(map(key, value)) and all(map(item, value.values()))
        )
    if is_dataclass(hint):
        return lambda value: isinstance(value, hint)
    if hint in _DIRECT:
        return lambda value: type(value) is hint
    raise ValueError(f"the annotation {hint!r} of a record is not known")


def _allowed_of_many(hints: tuple, names: dict[str, Any]) -> Callable[[Any], bool]:
    classes = tuple(hint for hint in hints if is_dataclass(hint))
    exact = frozenset(hint for hint in hints if hint in _DIRECT)
    rest = [_allowed(hint, names) for hint in hints if hint not in exact and hint not in classes]
    return lambda value: (
        type(value) in exact or isinstance(value, classes) or any(test(value) for test in rest)
    )


def _kind_name(kind: type) -> str:
    return f"a value of type {kind.__module__}.{kind.__qualname__}"


def _brief(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) < 60 else shown[:57] + "..."


# Plain values: for each type that needs a tag a mirrored pair of functions.


def _encode_direct(value: Any) -> Any:
    if type(value) is int and not -(1 << 63) <= value < 1 << 64:
        return ["int", value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)]
    if type(value) is str and not value.isascii():
        data = value.encode("utf-8", "surrogatepass")
        try:
            data.decode()
        except UnicodeDecodeError:
            return ["str", data]
    return value


def _decode_int(codec: Codec, data: list, depth: int) -> int:
    (part,) = _parts(data, bytes)
    return int.from_bytes(part, "big", signed=True)


def _decode_str(codec: Codec, data: list, depth: int) -> str:
    (part,) = _parts(data, bytes)
    try:
        return part.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise PackageError("damaged text") from None


def _encode_complex(codec: Codec, value: complex, depth: int) -> list:
    return ["complex", value.real, value.imag]


def _decode_complex(codec: Codec, data: list, depth: int) -> complex:
    return complex(*_parts(data, float, float))


def _encode_tuple(codec: Codec, value: tuple, depth: int) -> list:
    return ["t", *codec.encode_all(value, depth)]


def _decode_tuple(codec: Codec, data: list, depth: int) -> tuple:
    return tuple(codec.decode_all(data[1:], depth))


def _encode_list(codec: Codec, value: list, depth: int) -> list:
    return ["l", *codec.encode_all(value, depth)]


def _decode_list(codec: Codec, data: list, depth: int) -> list:
    return codec.decode_all(data[1:], depth)


def _encode_dict(codec: Codec, value: dict, depth: int) -> list:
    return ["d", *codec.encode_all((part for item in value.items() for part in item), depth)]


def _decode_dict(codec: Codec, data: list, depth: int) -> dict:
    parts = codec.decode_all(data[1:], depth)
    if len(parts) % 2:
        raise PackageError("a dict with a key too many")
    return _hashed(lambda: dict(zip(parts[::2], parts[1::2], strict=True)), len(parts) // 2)


def _encode_set(codec: Codec, value: set | frozenset, depth: int) -> list:
    parts = sorted(codec.encode_all(value, depth), key=msgpack.packb)
    return [type(value).__name__, *parts]


def _decode_set(codec: Codec, data: list, depth: int) -> set | frozenset:
    parts = codec.decode_all(data[1:], depth)
    return _hashed(lambda: (set if data[0] == "set" else frozenset)(parts), len(parts))


def _hashed(make: Callable[[], Any], size: int) -> Any:
    """What `make` makes out of `size` decoded keys."""
    try:
        made = make()
    except (TypeError, ValueError):  # ValueError: the hash of a literal int of 4300 digits
        raise PackageError("a key that cannot be hashed") from None
    if len(made) != size:
        raise PackageError("a key that occurs twice")
    return made


def _encode_slice(codec: Codec, value: slice, depth: int) -> list:
    return ["slice", *codec.encode_all((value.start, value.stop, value.step), depth)]


def _decode_slice(codec: Codec, data: list, depth: int) -> slice:
    parts = codec.decode_all(data[1:], depth)
    if len(parts) != 3:
        raise PackageError("damaged data of 'slice'")
    return slice(*parts)


def _encode_range(codec: Codec, value: range, depth: int) -> list:
    return ["range", *codec.encode_all((value.start, value.stop, value.step), depth)]


def _decode_range(codec: Codec, data: list, depth: int) -> range:
    parts = codec.decode_all(data[1:], depth)
    if len(parts) != 3 or any(type(part) is not int for part in parts) or parts[2] == 0:
        raise PackageError("damaged data of 'range'")
    return range(*parts)


def _encode_ellipsis(codec: Codec, value: EllipsisType, depth: int) -> list:
    return ["..."]


def _decode_ellipsis(codec: Codec, data: list, depth: int) -> EllipsisType:
    _parts(data)
    return ...


def _encode_not_implemented(codec: Codec, value: NotImplementedType, depth: int) -> list:
    return ["NotImplemented"]


def _decode_not_implemented(codec: Codec, data: list, depth: int) -> NotImplementedType:
    _parts(data)
    return NotImplemented


def _encode_torch_name(codec: Codec, value: Any, depth: int) -> list:
    """A dtype, layout or memory format: an attribute of the module torch."""
    return [type(value).__name__, str(value).removeprefix("torch.")]


def _decode_torch_name(codec: Codec, data: list, depth: int) -> Any:
    (name,) = _parts(data, str)
    found = vars(torch).get(name)
    if type(found).__name__ != data[0] or type(found) not in _TORCH_NAMES:
        raise PackageError(f"this torch has no {data[0]} {_brief(name)}")
    return found


def _encode_device(codec: Codec, value: torch.device, depth: int) -> list:
    return ["device", value.type, -1 if value.index is None else value.index]


def _decode_device(codec: Codec, data: list, depth: int) -> torch.device:
    kind, index = _parts(data, str, int)
    try:
        if -1 <= index < 128 and ":" not in kind:  # torch wraps a larger index around
            return torch.device(kind) if index == -1 else torch.device(kind, index)
    except (RuntimeError, ValueError):
        pass
    raise PackageError(f"this torch has no device {_brief(kind)} {index}")


def _encode_size(codec: Codec, value: torch.Size, depth: int) -> list:
    if any(type(part) is not int for part in value):
        raise TypeError("a torch.Size of symbolic ints cannot be stored")
    return ["Size", *value]


def _decode_size(codec: Codec, data: list, depth: int) -> torch.Size:
    parts = data[1:]
    if any(type(part) is not int or not -(1 << 63) <= part < 1 << 63 for part in parts):
        raise PackageError("damaged data of 'Size'")
    return torch.Size(parts)


def _encode_scalar(codec: Codec, value: Any, depth: int) -> list:
    """A scalar of NumPy."""
    return ["numpy", SCALARS[type(value)], value.tobytes()]


def _decode_scalar(codec: Codec, data: list, depth: int) -> Any:
    try:
        return scalar_of(*_parts(data, str, bytes))
    except ValueError as error:
        raise PackageError(str(error)) from None


def _parts(data: list, *kinds: type) -> list:
    """What follows the tag, which must be of these types."""
    parts = data[1:]
    if [type(part) for part in parts] != list(kinds):
        raise PackageError(f"damaged data of {data[0]!r}")
    return parts


_TORCH_NAMES = frozenset({torch.dtype, torch.layout, torch.memory_format})

_ENCODERS: dict[type, Callable[[Codec, Any, int], list]] = {
    complex: _encode_complex,
    tuple: _encode_tuple,
    list: _encode_list,
    dict: _encode_dict,
    set: _encode_set,
    frozenset: _encode_set,
    slice: _encode_slice,
    range: _encode_range,
    EllipsisType: _encode_ellipsis,
    NotImplementedType: _encode_not_implemented,
    torch.dtype: _encode_torch_name,
    torch.layout: _encode_torch_name,
    torch.memory_format: _encode_torch_name,
    torch.device: _encode_device,
    torch.Size: _encode_size,
    **dict.fromkeys(SCALARS, _encode_scalar),
}

_DECODERS: dict[str, Callable[[Codec, list, int], Any]] = {
    "int": _decode_int,
    "str": _decode_str,
    "complex": _decode_complex,
    "t": _decode_tuple,
    "l": _decode_list,
    "d": _decode_dict,
    "set": _decode_set,
    "frozenset": _decode_set,
    "slice": _decode_slice,
    "range": _decode_range,
    "...": _decode_ellipsis,
    "NotImplemented": _decode_not_implemented,
    "dtype": _decode_torch_name,
    "layout": _decode_torch_name,
    "memory_format": _decode_torch_name,
    "device": _decode_device,
    "Size": _decode_size,
    "numpy": _decode_scalar,
}


# Equality of values by exact type. It runs in guards, before a call is served.

_BY_EQUALITY = frozenset({NoneType, bool, int, str, bytes, torch.device, *_TORCH_NAMES})
_BY_EQUALITY |= frozenset(REFERENCES.values()) - {Literal}
_double = struct.Struct("<d").pack


def same_value(a: Any, b: Any) -> bool:
    """Whether both are the same value of the same exact type, at every level.

    Floats count by their bits, dicts by their order as well. What is not plain is the same only if
    it is the same object, so that no code of the user's runs.
    """
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind in _BY_EQUALITY:
        return a == b
    compare = _COMPARISONS.get(kind)
    return compare is not None and compare(a, b)


def _same_float(a: float, b: float) -> bool:
    return _double(a) == _double(b)


def _same_complex(a: complex, b: complex) -> bool:
    return _same_float(a.real, b.real) and _same_float(a.imag, b.imag)


def _same_sequence(a: tuple | list, b: tuple | list) -> bool:
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if x is not y:
            kind = type(x)
            if kind is not type(y):
                return False
            if kind in _BY_EQUALITY:
                if x != y:
                    return False
            elif not same_value(x, y):
                return False
    return True


def _same_dict(a: dict, b: dict) -> bool:
    return _same_sequence((*a,), (*b,)) and _same_sequence((*a.values(),), (*b.values(),))


def _same_range(a: range | slice, b: range | slice) -> bool:
    return _same_sequence((a.start, a.stop, a.step), (b.start, b.stop, b.step))


def _same_set(a: set | frozenset, b: set | frozenset) -> bool:
    return len(a) == len(b) and Counter(map(_identity, a)) == Counter(map(_identity, b))


def _same_literal(a: Literal, b: Literal) -> bool:
    return same_value(a.value, b.value)


def _identity(value: Any) -> Any:
    """For an element of a set, something hashable that is equal for the same values only."""
    kind = type(value)
    if kind is float:
        return kind, _double(value)
    if kind is complex:
        return kind, _double(value.real), _double(value.imag)
    if kind in (tuple, list, torch.Size):
        return kind, tuple(map(_identity, value))
    if kind is dict:
        return kind, tuple((_identity(key), _identity(item)) for key, item in value.items())
    if kind in (set, frozenset):
        return kind, frozenset(Counter(map(_identity, value)).items())
    if kind in (range, slice):
        return kind, _identity((value.start, value.stop, value.step))
    if kind is Literal:
        return kind, _identity(value.value)
    if kind in SCALARS:
        return kind, value.tobytes()
    return kind, value if kind in _BY_EQUALITY else id(value)


_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    float: _same_float,
    complex: _same_complex,
    tuple: _same_sequence,
    list: _same_sequence,
    torch.Size: _same_sequence,
    dict: _same_dict,
    slice: _same_range,
    range: _same_range,
    set: _same_set,
    frozenset: _same_set,
    Literal: _same_literal,
    **dict.fromkeys(SCALARS, same_scalar),
}


# The values that need no records but the references, and bytes.

_PLAIN = Codec(REFERENCES, checks=CHECKS)


def encode(value: Any) -> Any:
    """A plain value as msgpack's types. Raises TypeError for what cannot be stored."""
    return _PLAIN.encode(value)


def decode(data: Any) -> Any:
    """The mirror of `encode`. Raises PackageError for anything that it does not make."""
    return _PLAIN.decode(data)


def storable(value: Any) -> bool:
    """Whether `encode` takes the value."""
    try:
        encode(value)
    except TypeError:
        return False
    return True


def to_bytes(data: Any) -> bytes:
    """Encoded data as bytes."""
    return msgpack.packb(data)


def from_bytes(data: bytes | memoryview) -> Any:
    """Bytes as encoded data. Raises PackageError if they are not msgpack."""
    try:
        return msgpack.unpackb(data)
    except (ValueError, TypeError, OverflowError) as error:
        detail = str(error).split("\n")[0] or type(error).__name__
        raise PackageError(f"damaged data: {detail}") from None


def contents(mapping: dict) -> dict:
    """What an instance of a dict subclass holds, whatever its class does on reading."""
    if isinstance(mapping, OrderedDict):
        # Its order is not that of the dict underneath.
        return {key: dict.__getitem__(mapping, key) for key in OrderedDict.__iter__(mapping)}
    if type(mapping).__iter__ is dict.__iter__:
        return dict.copy(mapping)
    # With another iterator C's copy calls the `keys` and `__getitem__` of the class.
    return dict(dict.items(mapping))
