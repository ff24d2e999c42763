"""Packing: what goes in, what is left out and why, and the report that says so."""

import os
from dataclasses import replace

import pytest

from aotdyn.package import compilers
from aotdyn.package.archive import Artifact, PackageFile
from aotdyn.package.compilers import COMPILERS, compile_graph
from aotdyn.package.errors import AotdynError, PackageError
from aotdyn.package.graph import Graph, Node, python_source
from aotdyn.package.guard import Guard
from aotdyn.package.pack import live_objects, pack
from aotdyn.package.point import Point
from aotdyn.package.recording import Obstacle, RecordingWriter
from aotdyn.package.reference import EntryAt, Import, Literal, Live, Tensors
from aotdyn.package.source import Bound, Item, Local, ReferredItem
from aotdyn.package.variant import Break, EntryKey, Variant


def simple(name, **changes):
    base = Variant(EntryKey("m", name, "h"), "def check(): ...", "def body(): ...", {}, (), None)
    return replace(base, **changes)


def record(path, *variants, graphs=(), obstacles=()):
    with RecordingWriter(path, script="train.py") as writer:
        for graph in graphs:
            writer.graph(graph)
        for variant in variants:
            writer.variant(variant)
        for obstacle in obstacles:
            writer.obstacle(obstacle)
    return path


@pytest.fixture
def out(tmp_path):
    return tmp_path / "model.pkg"


def test_a_recording_becomes_a_package(samples, tmp_path, out):
    path = record(
        tmp_path / "a.rec",
        *(replace(v, graph=v.graph and samples.GRAPH.id) for v in samples.VARIANTS),
        graphs=[samples.GRAPH, Graph((), (), (), relations=("unused",))],
    )
    report = pack([path], out)
    assert (report.entries, report.variants, report.graphs) == (2, 2, 1)
    assert report.targets == ("eager",) and report.size == out.stat().st_size
    assert not report.left_out and not report.not_recorded and not report.truncated
    with PackageFile.open(out) as package:
        package.check_process()
        assert package.script == "train.py" and package.targets.keys() == {"eager"}
        assert package.graphs == [samples.GRAPH.id]
        assert package.graph(samples.GRAPH.id) == samples.GRAPH
        artifact = package.artifact(samples.GRAPH.id, "eager")
        assert (artifact.text, artifact.names) == python_source(samples.GRAPH)


def test_several_recordings_become_one_package(tmp_path, out):
    a = record(tmp_path / "a.rec", simple("f"), simple("g"))
    b = record(tmp_path / "b.rec", simple("g"), simple("f", body="def body(): return 1"))
    report = pack([a, b], out)
    assert (report.entries, report.variants) == (2, 3)


def test_packing_again_gives_the_same_bytes(samples, tmp_path, out):
    path = record(tmp_path / "a.rec", simple("f", graph=samples.GRAPH.id), graphs=[samples.GRAPH])
    pack([path], out)
    first = out.read_bytes()
    pack([path], out)
    assert out.read_bytes() == first


LIVE = Live("a socket", 3)
X = Local("x")


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"obstacles": ("it has a generator", "and more")}, "it has a generator; and more"),
        ({"names": {"sink": LIVE}}, "it needs an object of the recording process: a socket"),
        ({"names": {"x": Literal([{"a": (LIVE,)}])}}, "a socket"),
        ({"guards": (Guard("TYPE", Local("x"), LIVE),)}, "a socket"),
        ({"graph": "0123"}, "its graph 0123 was not recorded"),
        ({"check": "def check(:"}, "its generated source is no Python: invalid syntax"),
        ({"body": "def body():\n  return \0"}, "its generated source is no Python"),
    ],
)
def test_variants_that_cannot_be_packed_are_left_out(tmp_path, out, changes, reason):
    odd = simple("odd", file="train.py", line=7, **changes)
    report = pack([record(tmp_path / "a.rec", odd, simple("good"))], out)
    (left_out,) = report.left_out
    assert reason in left_out.reason and left_out.what == "variant of m:odd#h"
    assert f"  train.py:7: variant of m:odd#h: {left_out.reason}" in str(report).split("\n")
    with PackageFile.open(out) as package:
        assert [key.qualname for key in package.entries] == ["good"]


def test_variants_of_graphs_that_cannot_be_packed_are_left_out(tmp_path, out):
    live = Graph((), (Node("x", Import("m", "f"), (LIVE,), ()),), ("x",))
    odd = Graph((), (Node("x y", Import("m", "f"), (), ()),), ("x y",))
    variants = [simple("a", graph=live.id), simple("b", graph=odd.id), simple("c")]
    report = pack([record(tmp_path / "a.rec", *variants, graphs=[live, odd])], out)
    assert [obstacle.reason for obstacle in report.left_out] == [
        "its graph needs an object of the recording process: a socket",
        "the graph has no Python source: invalid syntax (<unknown>, line 2)",
    ]
    assert report.graphs == 0 and report.variants == 1


def test_live_objects_are_found_everywhere(samples):
    for holder in (
        LIVE,
        [LIVE],
        {"k": LIVE},
        {LIVE},
        slice(None, LIVE),
        Literal({"a": [LIVE]}),
        Bound(LIVE),
        Item(Bound(LIVE), 0),
        Item(X, (LIVE,)),
        ReferredItem(X, LIVE),
        replace(samples.GUARDS[0], expected=LIVE),
        simple("f", guards=(replace(samples.GUARDS[0], source=Bound(LIVE)),)),
    ):
        assert list(live_objects(holder)) == [LIVE]
    for holder in (*samples.VARIANTS, samples.GRAPH, EntryAt(Point(0)), Tensors(())):
        assert not list(live_objects(holder))


def test_the_report_names_graph_breaks(tmp_path, out):
    found = Break("builtin_call", "print", "move it", ("t.py:9 in main", "t.py:3 in f"))
    path = record(
        tmp_path / "a.rec",
        simple("f", breaks=found),
        simple("f", breaks=found, body="def body(): return 2"),
        simple("g", breaks=Break("random", "", "", ()), file="t.py", line=20),
        obstacles=[Obstacle("m:gen", "a generator", "t.py", 30)],
    )
    report = pack([path], out)
    assert report.breaks == (
        ("t.py:3 in f", "builtin_call: print", "move it", 2),
        ("t.py:20", "random", "", 1),
    )
    first, *rest = str(report).split("\n")
    assert first.startswith(f"{out}: 2 entries, 3 variants, 0 graphs for eager; ")
    assert rest == [
        "2 graph breaks:",
        "  t.py:3 in f: builtin_call: print (2 variants)",
        "    hint: move it",
        "  t.py:20: random",
        "not recorded: 1",
        "  t.py:30: m:gen: a generator",
    ]


def test_a_recording_that_was_cut_off(tmp_path, out):
    path = record(tmp_path / "a.rec", simple("f"), simple("g"))
    path.write_bytes(path.read_bytes()[:-3])
    report = pack([path], out)
    assert report.truncated and report.variants == 1
    assert "the recording was cut off; its last record is lost" in str(report)


# Refusals


def refused(error, message, *arguments, **options):
    with pytest.raises(error) as caught:
        pack(*arguments, **options)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_refusals_leave_nothing(tmp_path, out):
    empty = record(tmp_path / "empty.rec")
    refused(AotdynError, f"the recording {empty} has nothing in it", [empty], out)
    hopeless = record(tmp_path / "b.rec", simple("f", obstacles=("it has a generator",)))
    refused(AotdynError, "nothing of the recording", [hopeless], out)
    refused(AotdynError, "it has a generator", [hopeless], out)
    refused(AotdynError, "there is no recording to pack", [], out)
    refused(PackageError, "No such file", [tmp_path / "missing.rec"], out)
    foreign = tmp_path / "foreign.rec"
    foreign.write_text("hello")
    refused(PackageError, "is not a recording", [foreign], out)
    good = record(tmp_path / "c.rec", simple("f"))
    unknown = "unknown target 'tpu'; the known ones are: eager"
    refused(AotdynError, unknown, [good], out, ("eager", "tpu"))
    refused(AotdynError, "cannot write the package", [good], tmp_path / "missing" / "a.pkg")
    refused(AotdynError, "would overwrite the recording", [empty, good], good)
    assert not out.exists() and not [n for n in os.listdir(tmp_path) if n.endswith("tmp")]


def test_recordings_that_do_not_go_together(tmp_path, out, monkeypatch):
    a = record(tmp_path / "a.rec", simple("f"))
    monkeypatch.setattr("aotdyn.package.recording.this_python", lambda: "3.99")
    b = record(tmp_path / "b.rec", simple("g"))
    refused(PackageError, "Python 3.11 and Python 3.99 cannot be merged", [a, b], out)
    pack([b], out)
    with PackageFile.open(out) as package:
        assert package.python == "3.99"  # it is the recording's, not that of the process that packs
        with pytest.raises(PackageError, match="is for Python 3.99"):
            package.check_process()


# Compilers


def test_eager_is_always_among_the_targets(samples, tmp_path, out, monkeypatch):
    def other(graph):
        return Artifact("other", "text", {}, {"lib.so": graph.id.encode()})

    monkeypatch.setitem(COMPILERS, "other", other)
    path = record(tmp_path / "a.rec", simple("f", graph=samples.GRAPH.id), graphs=[samples.GRAPH])
    report = pack([path], out, ["other", "other"])
    assert report.targets == ("eager", "other")
    with PackageFile.open(out) as package:
        assert package.artifacts(samples.GRAPH.id) == ["eager", "other"]
        files = package.artifact(samples.GRAPH.id, "other").files
        assert bytes(files["lib.so"]) == samples.GRAPH.id.encode()
        files = None


def test_compiling(samples):
    artifact = compile_graph(samples.GRAPH, "eager")
    assert artifact.target == "eager" and (artifact.text, artifact.names) == python_source(
        samples.GRAPH
    )
    with pytest.raises(AotdynError, match="unknown target 'tpu'; the known ones are: eager"):
        compile_graph(samples.GRAPH, "tpu")
    with pytest.raises(AotdynError, match="no Python source"):
        compile_graph(Graph((), (Node("x", "no name", (10,), ()),), ("x",)), "eager")
    compilers.check_targets([])
