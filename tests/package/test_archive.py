"""Package files: whole or not there, read lazily, and nothing damaged or foreign is believed."""

import ast
import hashlib
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotdyn.package import archive as module
from aotdyn.package.archive import (
    ALIGNMENT,
    MAGIC,
    Artifact,
    PackageContents,
    PackageFile,
    write_package,
)
from aotdyn.package.errors import AotdynError, PackageError
from aotdyn.package.graph import Graph
from aotdyn.package.point import Point
from aotdyn.package.reference import Import, Literal
from aotdyn.package.schema import FORMAT_VERSION, encode_record, this_python, this_torch
from aotdyn.package.values import encode, from_bytes, to_bytes
from aotdyn.package.variant import EntryKey, Variant


def simple(name, **changes):
    return replace(Variant(EntryKey("m", name, "h"), "check", "body", {}, (), None), **changes)


def form(contents):
    """Contents in a form that compares exactly."""
    return (
        contents.python, contents.torch, contents.device, contents.script, contents.targets,
        [to_bytes(encode_record(variant)) for variant in contents.variants],
        [(id, to_bytes(encode_record(graph))) for id, graph in contents.graphs.items()],
        [
            (id, target, artifact.text, artifact.names,
             {name: bytes(data) for name, data in artifact.files.items()})
            for id, of_graph in contents.artifacts.items() for target, artifact in of_graph.items()
        ],
    )  # fmt: skip


def read(path):
    with PackageFile.open(path) as package:
        return form(package.contents())


@pytest.fixture(scope="module")
def whole(samples, tmp_path_factory):
    """The bytes of a package."""
    path = tmp_path_factory.mktemp("package") / "a.pkg"
    write_package(path, samples.contents())
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch") / "damaged.pkg"


def test_contents_survive(samples, tmp_path):
    path = tmp_path / "a.pkg"
    assert write_package(path, samples.contents()) == path.stat().st_size
    assert read(path) == form(samples.contents())
    assert os.listdir(tmp_path) == ["a.pkg"]


def test_the_golden_package_still_loads(samples):
    assert read(samples.PACKAGE) == form(samples.contents())
    with PackageFile.open(samples.PACKAGE) as package:
        assert package.python == "3.11" and package.torch == "2.13.0"
        first, second = package.entries
        assert second.point == samples.POINT
        assert package.artifact(samples.GRAPH_ID, "eager").text.startswith("def graph(x, w, n):")


def test_the_same_contents_give_the_same_bytes(samples, tmp_path):
    for name in "ab":
        write_package(tmp_path / name, samples.contents())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_empty_package(tmp_path):
    contents = PackageContents("3.11", "2.13.0")
    write_package(tmp_path / "a.pkg", contents)
    assert read(tmp_path / "a.pkg") == form(contents)


def test_looking_up(samples, tmp_path):
    path = tmp_path / "a.pkg"
    variants = (simple("f"), simple("g"), simple("f", body="2"), simple("h", graph="gone"))
    write_package(path, PackageContents("3.11", "2.13.0", variants=(*variants, *samples.VARIANTS)))
    with PackageFile.open(path) as package:
        f = EntryKey("m", "f", "h")
        assert package.entries[:3] == [f, EntryKey("m", "g", "h"), EntryKey("m", "h", "h")]
        assert f in package and package.variants(f) == (variants[0], variants[2])
        for other in (
            EntryKey("m", "f", "other"),
            EntryKey("m", "f", "h", Point(0)),
            EntryKey("m", "f\n", "h"),
        ):
            assert other not in package and package.variants(other) == ()
        with_point = samples.VARIANTS[1].entry
        assert len(package.variants(with_point)) == 1
        assert replace(with_point, point=replace(with_point.point, unbound=())) not in package
        with pytest.raises(PackageError, match="no graph gone"):
            package.graph("gone")
        with pytest.raises(PackageError, match="no graph gone for eager"):
            package.artifact("gone", "eager")
        assert package.artifacts("gone") == []


def test_guards_are_read_on_request(samples, tmp_path):
    path = tmp_path / "a.pkg"
    write_package(path, samples.contents())
    with PackageFile.open(path) as package:
        key = samples.VARIANTS[0].entry
        (bare,), (full,) = package.variants(key), package.variants(key, guards=True)
        assert bare.guards == () and len(full.guards) == len(samples.GUARDS)
        assert bare.id == full.id


@pytest.mark.parametrize(
    "key",
    [
        EntryKey("m", "f.<locals>.<lambda>", "h"),
        EntryKey("m", "f", "h", Point(0)),
        EntryKey("m", "f", "h", Point(2, (), ("",))),
        EntryKey("m", "f", "h", Point(2, (False,), ("a", "b"))),
        EntryKey("m\ud800", "é", "h", Point(2, (False, True), ())),
        EntryKey("", "", ""),
        EntryKey("line\nbreak", "\0", "\\"),
    ],
)
def test_keys_survive(key, tmp_path):
    path = tmp_path / "a.pkg"
    variant = simple("f", entry=key)
    write_package(path, PackageContents("3.11", "2.13.0", variants=(variant,)))
    with PackageFile.open(path) as package:
        assert package.entries == [key] and package.variants(key) == (variant,)


def test_opening_decodes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "a.pkg"
    variants = tuple(simple(f"f{index}", line=index) for index in range(1000))
    write_package(path, PackageContents("3.11", "2.13.0", variants=variants))
    with PackageFile.open(path) as package:
        decoded = []
        monkeypatch.setattr(module, "decode_record", lambda *a: decoded.append(a) or variants[7])
        assert variants[7].entry in package and not decoded
        assert package.variants(variants[7].entry) == (variants[7],) and len(decoded) == 1


def test_files_of_artifacts_are_aligned_and_not_copied(samples, tmp_path):
    path = tmp_path / "a.pkg"
    files = {"lib.so": os.urandom(1000), "empty": b"", "copy": b"x" * 65, "view": memoryview(b"ab")}
    artifacts = {
        id: {"eager": Artifact("eager", "text", {"m": Import("math")}, files)} for id in ("1", "2")
    }
    contents = PackageContents(
        "3.11", "2.13.0", graphs={"1": samples.GRAPH, "2": samples.GRAPH}, artifacts=artifacts,
        targets={"eager": {}},
    )  # fmt: skip
    size = write_package(path, contents)
    assert size < 10_000  # equal blobs are there once
    with PackageFile.open(path) as package:
        artifact = package.artifact("2", "eager")
        assert artifact.names == {"m": Import("math")} and list(artifact.files) == list(files)
        for name, data in files.items():
            assert artifact.files[name] == data and type(artifact.files[name]) is memoryview
        assert path.read_bytes().index(files["lib.so"]) % ALIGNMENT == 0
        view = artifact.files["lib.so"]
    assert view == files["lib.so"]  # still, although the package is closed


# Fitting


def test_fitting(samples, tmp_path):
    path = tmp_path / "a.pkg"

    def package(**changes):
        write_package(path, replace(samples.contents(), **changes))
        return PackageFile.open(path)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with package(python=this_python(), torch=this_torch()) as fitting:
            fitting.check_process()
        with package(python=this_python(), torch=this_torch().split("+")[0] + "+cu130") as fitting:
            fitting.check_process()
    with package(python="3.12", torch=this_torch()) as foreign:
        with pytest.raises(PackageError, match=f"is for Python 3.12, this is {this_python()}"):
            foreign.check_process()
    with package(python=this_python(), torch="2.99.0") as other:
        with pytest.warns(UserWarning, match="recorded with torch 2.99.0"):
            other.check_process()


# Writing


def test_what_cannot_be_stored_leaves_nothing(samples, tmp_path):
    path = tmp_path / "a.pkg"
    odd = {"1": {"eager": Artifact("eager", object())}}
    for wrong in (
        {"variants": (simple("f", names={"x": Literal(object())}),)},
        {"variants": (simple(3),)},
        {"graphs": {"1": Graph((), (), (object(),))}},
        {"graphs": {"1": samples.GRAPH}, "artifacts": odd},
        {"targets": {"eager": object()}},
    ):
        with pytest.raises(TypeError):
            write_package(path, PackageContents("3.11", "2.13.0", **wrong))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("failing", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file(samples, tmp_path, monkeypatch, failing):
    path = tmp_path / "a.pkg"
    path.write_bytes(b"old")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, failing, fail)
    with pytest.raises(AotdynError, match="cannot write the package .*: No space left"):
        write_package(path, samples.contents())
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["a.pkg"] and path.read_bytes() == b"old"


def test_an_interrupted_write_leaves_the_old_file(samples, tmp_path, monkeypatch):
    path = tmp_path / "a.pkg"
    path.write_bytes(b"old")

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_package(path, samples.contents())
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["a.pkg"] and path.read_bytes() == b"old"


def test_places_where_no_file_can_be(samples, tmp_path):
    with pytest.raises(AotdynError, match="cannot write the package"):
        write_package(tmp_path / "missing" / "a.pkg", samples.contents())
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", "", "a\0b"):
        with pytest.raises(AotdynError, match="cannot write the package"):
            write_package(path, samples.contents())
    assert os.listdir(tmp_path) == ["folder"]


def test_an_open_package_outlives_its_replacement(samples, tmp_path):
    path = tmp_path / "a.pkg"
    write_package(path, samples.contents())
    with PackageFile.open(path) as package:
        write_package(path, PackageContents("3.11", "2.13.0"))
        assert form(package.contents()) == form(samples.contents())


# Damage


def refused_or_unchanged(damaged, whole, scratch):
    scratch.write_bytes(whole)
    complete = read(scratch)
    scratch.write_bytes(damaged)
    try:
        found = read(scratch)
    except PackageError as error:
        assert "\n" not in str(error) and str(scratch) in str(error)
        return
    assert found == complete


@given(st.data())
def test_flipped_bytes_are_told(whole, scratch, data):
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    refused_or_unchanged(bytes(damaged), whole, scratch)


@given(st.data())
def test_missing_and_swapped_parts_are_told(whole, scratch, data):
    a, b, c = sorted(data.draw(st.integers(0, len(whole))) for _ in range(3))
    kind = data.draw(st.sampled_from(["cut", "remove", "double", "swap", "zero", "append"]))
    damaged = {
        "cut": whole[:a],
        "remove": whole[:a] + whole[b:],
        "double": whole[:b] + whole[a:],
        "swap": whole[:a] + whole[b:c] + whole[a:b] + whole[c:],
        "zero": whole[:a] + bytes(b - a) + whole[b:],
        "append": whole + bytes(b - a),
    }[kind]
    refused_or_unchanged(damaged, whole, scratch)


@pytest.mark.parametrize("size", [1, 16, 63, 64, 65, 200])
def test_a_cut_file_is_told_when_it_is_opened(whole, scratch, size):
    for cut in (whole[:size], whole[:-size]):
        scratch.write_bytes(cut)
        with pytest.raises(PackageError):
            PackageFile.open(scratch)


def test_texts_are_compressed(tmp_path):
    check = "if not (type(x) is int): return None\n" * 99
    many = tuple(simple(str(n), check=check) for n in range(5))
    contents = PackageContents("3.11", "2.13.0", variants=many)
    size = write_package(tmp_path / "a.pkg", contents)
    assert size < sum(len(variant.check) for variant in many) / 5
    assert read(tmp_path / "a.pkg") == form(contents)


@pytest.mark.parametrize("damage", [lambda b: b[:-4], lambda b: b + b"more", lambda b: b"x" + b])
def test_what_cannot_be_unpacked_is_refused(damage):
    whole = module._compressed(["text" * 999])
    assert module._plain(memoryview(whole)) == ["text" * 999]
    with pytest.raises(PackageError, match="unpacked|cut off"):
        module._plain(memoryview(damage(whole)))


def test_what_would_not_fit_is_refused(monkeypatch):
    whole = module._compressed(["text" * 999])
    monkeypatch.setattr(module, "_MOST_BYTES", 99)
    with pytest.raises(PackageError, match="too large"):
        module._plain(memoryview(whole))


def test_a_damaged_part_is_refused_by_itself(samples, tmp_path):
    path = tmp_path / "a.pkg"
    variants = (simple("good"), simple("bad", check="to be damaged"))
    write_package(path, replace(samples.contents(), variants=variants))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"to be damaged", b"to be Damaged"))
    with PackageFile.open(path) as package:
        assert package.variants(variants[0].entry) == variants[:1]
        assert package.graph(samples.GRAPH_ID) == samples.GRAPH
        for _ in range(2):
            with pytest.raises(PackageError, match="damaged: entry m:bad#h: .* bytes from"):
                package.variants(variants[1].entry)


# Files whose hashes are right, made by hand: what is inside is still not believed.


def forged(manifest, *blobs, version=FORMAT_VERSION, hashed=True, encoded=True):
    """The bytes of a package with this manifest."""
    data = to_bytes(encode(manifest) if encoded else manifest)
    digest = hashlib.sha256(data).digest() if hashed else bytes(32)
    parts = [module._HEADER.pack(MAGIC, version, len(data), digest), data, *blobs]
    return b"".join(part + bytes(-len(part) % ALIGNMENT) for part in parts)


def manifest(parts=(), names=(), **changes):
    return {
        "python": "3.11", "torch": "2.13.0", "device": "cpu", "script": "", "targets": {},
        "names": list(names), "blobs": list(range(len(names))), "sizes": list(map(len, parts)),
        "digests": b"".join(hashlib.sha256(part).digest() for part in parts), **changes,
    }  # fmt: skip


A = [b"a"]

FORGED = {
    "empty file": (b"", "it is empty"),
    "text": (b"import torch\n" * 9, "is not a package"),
    "magic only": (MAGIC, "is not a package"),
    "recording": (b"\xb0aotdyn recording" + bytes(99), "is not a package"),
    "other format": (forged(manifest(), version=99), "format 99, and this aotdyn reads format"),
    "other hash": (forged(manifest(), hashed=False), "the manifest has another hash"),
    "list": (forged([1, 2]), "the manifest is no dict"),
    "no value": (forged({"a": 1}, encoded=False), "unknown data"),
    "nothing in it": (forged({}), "'python' of the manifest is missing"),
    "unknown part": (forged(manifest(colour=1)), "unknown parts: 'colour'"),
    "python of int": (forged(manifest(python=3)), "'python' of the manifest is missing or of"),
    "targets of list": (forged(manifest(targets=[])), "'targets' of the manifest"),
    "target of int": (forged(manifest(targets={1: {}})), "a target without name"),
    "target without needs": (forged(manifest(targets={"cpu": None})), "a target without name"),
    "odd needs": (forged(manifest(targets={"cpu": {"isa": 1}})), "damaged needs of target 'cpu'"),
    "names of ints": (forged(manifest(names=[1])), "'names' of the manifest has items"),
    "size of bool": (forged(manifest(sizes=[True])), "'sizes' of the manifest has items"),
    "negative size": (forged(manifest(sizes=[-64, 64], digests=bytes(64))), "inconsistent"),
    "size too large": (forged(manifest(sizes=[2**60], digests=bytes(32))), "bytes instead of"),
    "size missing": (forged(manifest(), b"a"), "bytes instead of"),
    "hash missing": (forged(manifest(A, digests=b""), b"a"), "inconsistent"),
    "blob missing": (forged(manifest(names=[b"x"])), "inconsistent"),
    "blob out of range": (forged(manifest(A, [b"x"], blobs=[1]), b"a"), "inconsistent"),
    "blob negative": (forged(manifest(A, [b"x"], blobs=[-1]), b"a"), "inconsistent"),
    "blob without name": (forged(manifest(A, [b"x"], blobs=[0, 0]), b"a"), "inconsistent"),
    "name twice": (forged(manifest(A, [b"x", b"x"], blobs=[0, 0]), b"a"), "inconsistent"),
}  # fmt: skip


@pytest.mark.parametrize("data, message", FORGED.values(), ids=FORGED)
def test_forged_files_are_refused(data, message, tmp_path):
    path = tmp_path / "a.pkg"
    path.write_bytes(data)
    with pytest.raises(PackageError) as caught:
        PackageFile.open(path)
    assert message in str(caught.value) and str(path) in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_package_that_cannot_be_read(tmp_path):
    with pytest.raises(PackageError, match="cannot read .*: No such file"):
        PackageFile.open(tmp_path / "a.pkg")
    with pytest.raises(PackageError, match="cannot read .*: Is a directory"):
        PackageFile.open(tmp_path)


F = EntryKey("m", "f", "h")
VARIANTS, GUARDS, GRAPH = (module._variants_of(F), module._guards_of(F), module._graph_of("1"))
VARIANT = to_bytes([encode_record(simple("f"))])

FORGED_PARTS = {
    "name that is none": ([VARIANTS[:-1]], [VARIANT]),
    "name with more": ([VARIANTS + b"\xc0"], [VARIANT]),
    "name that is too long": ([module._blob_name("variants", F, "")], [VARIANT]),
    "name without key": ([module._blob_name("variants", "f")], [VARIANT]),
    "name with a default": (
        [VARIANTS.replace(b"\x83", b"\x84").replace(b"\xa4hash", b"\xa5point\xc0\xa4hash")],
        [VARIANT],
    ),
    "another key": ([module._variants_of(EntryKey("m", "g", "h"))], [VARIANT]),
    "no guards": ([VARIANTS], [VARIANT]),
    "guards of others": ([VARIANTS, GUARDS], [VARIANT, b"\x90"]),
    "guards of text": ([VARIANTS, GUARDS], [VARIANT, b"\x91\xa1a"]),
    "guards of no kind": ([VARIANTS, GUARDS], [VARIANT, b"\x91\x91\x01"]),
    "variants of text": ([VARIANTS], [b"\xa1a"]),
    "variants of ints": ([VARIANTS], [b"\x91\x01"]),
    "no msgpack": ([VARIANTS], [b"\xc1"]),
    "nothing": ([VARIANTS], [b""]),
    "graph that is none": ([GRAPH], [to_bytes(encode_record(Import("m")))]),
    "graph of text": ([GRAPH], [b"\xa1a"]),
}


@pytest.mark.parametrize("names, blobs", FORGED_PARTS.values(), ids=FORGED_PARTS)
def test_forged_parts_are_refused(names, blobs, tmp_path):
    path = tmp_path / "a.pkg"
    path.write_bytes(forged(manifest(blobs, names), *blobs))
    with PackageFile.open(path) as package, pytest.raises(PackageError) as caught:
        package.contents()
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize(
    "stored",
    [
        "text", ("text", {}), ("text", {}, []), (1, {}, ()), ("text", {1: Import("m")}, ()),
        ("text", {"a": 1}, ()), ("text", {}, (1,)), ("text", {}, ("gone",)),
    ],
)  # fmt: skip
def test_forged_artifacts_are_refused(samples, stored, tmp_path):
    path = tmp_path / "a.pkg"
    blobs = [to_bytes(encode_record(samples.GRAPH)), to_bytes(encode(stored))]
    names = [GRAPH, module._artifact_of("1", "eager")]
    path.write_bytes(forged(manifest(blobs, names, targets={"eager": {}}), *blobs))
    with PackageFile.open(path) as package:
        assert package.artifacts("1") == ["eager"]
        with pytest.raises(PackageError, match="damaged: graph 1 for eager"):
            package.contents()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)


@given(part=st.sampled_from(sorted(manifest())), value=PLAIN)
def test_any_manifest_is_a_package_or_an_error(scratch, part, value):
    blobs = [VARIANT, b"\x91\x90"]
    changed = {**manifest(blobs, [VARIANTS, GUARDS]), part: value}
    scratch.write_bytes(forged(changed, *blobs))
    try:
        read(scratch)
    except PackageError as error:
        assert "\n" not in str(error)


@given(st.binary(max_size=40), st.sampled_from([VARIANTS, GRAPH]))
def test_any_blob_is_a_part_or_an_error(scratch, blob, name):
    scratch.write_bytes(forged(manifest([blob], [name]), blob))
    with PackageFile.open(scratch) as package:
        try:
            package.contents()
        except PackageError as error:
            assert "\n" not in str(error)


# What is imported when a package is loaded. Everything else in the folder may need more.
LIGHT = (
    "errors frozen point reference source guard graph variant weights values schema recording "
    "archive break_sites printer own_builtins user_kernels arrays"
).split()


@pytest.mark.parametrize("name", LIGHT)
def test_reading_needs_the_standard_library_torch_and_msgpack_only(name):
    """And NumPy where torch has it."""
    path = Path(module.__file__).with_name(f"{name}.py")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            assert node.level == 1 and {n.partition(".")[0] for n in names} <= set(LIGHT)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            is_from = isinstance(node, ast.ImportFrom)
            for found in [node.module] if is_from else [alias.name for alias in node.names]:
                top = found.partition(".")[0]
                allowed = ("torch", "msgpack", *(["numpy"] if name == "arrays" else []))
                assert found in allowed or top in sys.stdlib_module_names
                assert top not in ("pickle", "marshal", "shelve")


def test_encoded_data_is_plain_msgpack(whole):
    """Nothing but msgpack's own types, so that any reader of msgpack can look into a package."""
    size = module._HEADER.unpack_from(whole)[2]
    data = from_bytes(whole[64 : 64 + size])
    assert data[0] == "d" and "python" in data
