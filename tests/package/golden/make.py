"""What the golden files hold: each stored class and each kind of plain value at least once.

Run as a script it writes the files of the current format; see README.md for when to. The other
tests of the folder use the same objects as their samples.
"""

import struct
from dataclasses import replace
from pathlib import Path

import torch

from aotdyn.package.archive import Artifact, PackageContents, write_package
from aotdyn.package.graph import Graph, GraphInput, Node, Symbol, Value, python_source
from aotdyn.package.guard import Guard
from aotdyn.package.point import Point
from aotdyn.package.recording import Obstacle, RecordingWriter
from aotdyn.package.reference import (
    CodeOf,
    EntryAt,
    Globals,
    GraphOf,
    Import,
    Literal,
    Live,
    Runtime,
    State,
    TensorMeta,
    Tensors,
)
from aotdyn.package.schema import FORMAT_VERSION
from aotdyn.package.source import (
    Attribute,
    Bound,
    Item,
    Local,
    ReferredItem,
    Size,
    StorageOffset,
    Stride,
    TypeOf,
)
from aotdyn.package.variant import Break, EntryKey, Variant

FOLDER = Path(__file__).parent
PACKAGE = FOLDER / f"format-{FORMAT_VERSION}.package"
RECORDING = FOLDER / f"format-{FORMAT_VERSION}.recording"

GRAPH_ID = "0123456789abcdef"  # fixed: how ids are made may change without a new format

ODD_NAN = struct.unpack("<d", b"\x01" + bytes(5) + b"\xf8\xff")[0]

PLAIN = (
    None, True, False, 0, 1, -1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**400,
    0.0, -0.0, 1.5, float("inf"), float("nan"), ODD_NAN,
    1j, complex(-0.0, float("nan")), "", "text", "é\n\0", "\ud800", b"", b"\x00\xff",
    (), (1,), (1, (True, 1.0)), [], [[1], "a"], {}, {"b": 1, "a": (2, None), 3: [], None: {}},
    set(), {1, "a", (2, 3)}, frozenset({"x", "y", frozenset({1})}),
    slice(None), slice(1, 2**70, None), range(3), range(10, 0, -3), ..., NotImplemented,
    torch.float32, torch.bool, torch.float8_e4m3fn, torch.device("cpu"), torch.device("cuda", 1),
    torch.strided, torch.sparse_coo, torch.channels_last, torch.preserve_format,
    torch.Size([]), torch.Size([2, 3]), Import("torch", "float32"), [Import("enum", "Enum")],
)  # fmt: skip

POINT = Point(18, (True, False, True), ("y",))

META = TensorMeta("float32", "cpu", False, (None, 3), (3, 1))
PARAMETER = TensorMeta(
    "float64", "cuda:1", True, (2,), (1,), Import("torch.nn", "Parameter"), "strided", ("Negative",)
)

REFERENCES = (
    Import("math"),
    Import("torch.nn.functional", "relu"),
    Literal(PLAIN),
    Literal({"key": [Import("enum", "Enum")]}),
    CodeOf(None, (1, 2)),
    CodeOf(Import("m", "f")),
    EntryAt(POINT),
    EntryAt(Point(0)),
    GraphOf(GRAPH_ID),
    Tensors((META, PARAMETER)),
    State('{"grad_mode": true}'),
    Runtime("same_value"),
    Globals(),
)

SELF, X = Local("self"), Local("x")
DICT = Attribute(SELF, "__dict__")
SOURCES = (
    X,
    Bound(Import("m", "config")),
    DICT,
    Item(Item(Item(DICT, "_modules"), "layer"), 0),
    Item(X, (1, "a")),
    ReferredItem(X, Import("m", "Class")),
    TypeOf(X),
    Size(X, 0),
    Stride(X, -1),
    StorageOffset(Attribute(X, "grad")),
)

GUARDS = (
    Guard("TYPE", X, Import("torch", "Tensor"), "train.py:3"),
    Guard("IS", Bound(Import("m", "f")), Import("m", "g")),
    Guard("EQUALS", SOURCES[3], 2**70, "train.py:4"),
    Guard("EQUALS", X, (1, -0.0, "a")),
    Guard("EQUALS", X, None),
    Guard("LENGTH", X, 2),
    Guard("KEYS", DICT, ("a", 1)),
    Guard("HAS", DICT, "forward"),
    Guard("LACKS", DICT, "forward"),
    Guard("EMPTY", Item(DICT, "_forward_hooks")),
    Guard("NONEMPTY", X),
    Guard("SAME", X, Local("y")),
    Guard("DISTINCT", X, Local("y")),
    Guard("CODE", X, "00ff00ff00ff00ff"),
    Guard("SHAPE", None, ("2 * {0} >= {1}", (Size(X, 0), Local("n"))), "train.py:5"),
    Guard("TENSORS", None, ((X, Item(DICT, "w")), (META, PARAMETER))),
    Guard("STATE", None, '{"grad_mode": true}'),
    Guard("NO_HOOKS", SELF),
    *(Guard("TYPE", source, Import("builtins", "int")) for source in SOURCES),
)

GRAPH = Graph(
    (
        GraphInput("x", "float32", "cpu", False, ("s0", 3), (3, 1)),
        GraphInput("w", "float32", "cpu", True, (3,), (1,), 2, "", True),
        GraphInput("n", "int", value="s1"),
    ),
    (
        Node("add", Import("operator", "add"), (Value("x"), Value("w")), (), "train.py:3"),
        Node("mul", Import("torch", "mul"), (Value("add"), Value("n")), ()),
        Node("item", Import("operator", "getitem"), (Value("mul"), (..., slice(None, 2))), ()),
        Node("cat", Import("torch", "cat"), ([Value("item"), Value("item")],), (("dim", 0),)),
        Node("to", "to", (Value("cat"), Literal(torch.float64)), (("copy", True),), "train.py:4"),
    ),
    ("to", "add"),
    (Symbol("s0", 8, 2, None), Symbol("s1", 3, None, 64)),
    ("s0 % 2 == 0",),
    False,
)

CHECK = "def check(self, x, n):\n    return x, self.w, n\n"
BODY = "def body(inputs, self, x, n):\n    return graph(*inputs)[0]\n"

VARIANTS = (
    Variant(
        EntryKey("__main__", "Net.forward", "00112233445566aa"),
        CHECK,
        BODY,
        {f"name_{index}": reference for index, reference in enumerate(REFERENCES)},
        GUARDS,
        GRAPH_ID,
        ((Import("m", "f"), "aa"), (CodeOf(None, (1,)), "bb")),
        Break(
            "builtin_call",
            "print",
            "move the call out of the hot path",
            ("train.py:12 in main", "train.py:7 in forward"),
        ),
        "train.py",
        3,
        ("self", "x", "n"),
    ),
    Variant(
        EntryKey("__main__", "Net.forward", "00112233445566aa", POINT),
        CHECK,
        BODY,
        {"graph": GraphOf(GRAPH_ID)},
        GUARDS[:2],
        None,
    ),
)

UNPACKABLE = (
    replace(VARIANTS[1], entry=EntryKey("m", "lives", "cc"), names={"sink": Live("a socket", 0)}),
    replace(VARIANTS[1], entry=EntryKey("m", "fails", "dd"), obstacles=("it has a generator",)),
)

OBSTACLE = Obstacle("m:generate", "a generator cannot be recorded", "train.py", 20)


def contents() -> PackageContents:
    """Of the golden package."""
    text, names = python_source(GRAPH)
    artifact = Artifact("eager", text, names, {"extra": b"bytes of a file"})
    return PackageContents(
        "3.11",
        "2.13.0",
        "cpu",
        "train.py",
        VARIANTS,
        {GRAPH_ID: GRAPH},
        {GRAPH_ID: {"eager": artifact}},
        {"eager": {"torch": "2.13.0"}},
    )


def record(path: Path) -> None:
    """Writes the golden recording."""
    with RecordingWriter(path, script="train.py") as writer:
        writer.graph(GRAPH)
        writer.example(GRAPH_ID, {"s0": 8, "s1": 3})
        for variant in (*VARIANTS, *UNPACKABLE):
            writer.variant(variant)
        writer.obstacle(OBSTACLE)


if __name__ == "__main__":
    write_package(PACKAGE, contents())
    record(RECORDING)
    print(f"wrote {PACKAGE} and {RECORDING}")
