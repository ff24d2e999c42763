"""What `aotdyn inspect` prints: complete, readable, harmless."""

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotdyn.package.errors import AotdynError, PackageError
from aotdyn.package.graph import Graph, Node, Value
from aotdyn.package.guard import Guard
from aotdyn.package.pack import pack
from aotdyn.package.printer import describe, render, sized
from aotdyn.package.recording import RecordingWriter
from aotdyn.package.reference import CodeOf, Import, Literal, Live
from aotdyn.package.source import Local
from aotdyn.package.variant import Break, EntryKey, Variant


@pytest.fixture(scope="module")
def files(samples, tmp_path_factory):
    """A recording and the package made of it."""
    folder = tmp_path_factory.mktemp("printer")
    first, second = samples.VARIANTS
    with RecordingWriter(folder / "a.rec", script="train.py") as writer:
        writer.graph(samples.GRAPH)
        writer.variant(replace(first, graph=samples.GRAPH.id))
        writer.variant(second)
        for variant in samples.UNPACKABLE:
            writer.variant(variant)
        writer.obstacle(samples.OBSTACLE)
    pack([folder / "a.rec"], folder / "a.pkg")
    return folder


def lines(text):
    return text.split("\n")


def test_both_kinds_list_entries_variants_breaks_and_graphs(samples, files):
    for name in ("a.rec", "a.pkg"):
        found = lines(render(files / name))
        key = "__main__:Net.forward#00112233445566aa"
        assert f"train.py:3  Net.forward  ({key})" in found
        assert f"Net.forward, continued at byte 18  ({key}@18)" in found
        at = found.index(f"train.py:3  Net.forward  ({key})")
        assert found[at + 1].endswith(f"graph {samples.GRAPH.id}, 28 guards")
        assert found[at + 2 : at + 4] == [
            "    graph break at train.py:7 in forward: builtin_call: print",
            "      hint: move the call out of the hot path",
        ]
        assert any(line.endswith("no graph, 2 guards") for line in found)
        at = found.index("graphs:")
        assert found[at + 1].startswith(f"  {samples.GRAPH.id}")
        assert found[at + 1].endswith("5 operations, without gradients: add, mul, getitem, cat, to")
        assert found[at + 2 : at + 9] == [
            "    x: torch.float32[s0, 3], cpu, stride (3, 1)",
            "    w: torch.float32[3], cpu, stride (1), parameter, requires grad",
            "    n: int s1",
            "    2 <= s0, 8 when recorded",
            "    s1 <= 64, 3 when recorded",
            "    s0 % 2 == 0",
            "    -> 2 outputs",
        ]
        assert "def check" not in render(files / name)


def test_the_head_of_a_recording(files):
    title, summary, *rest = lines(render(files / "a.rec"))
    assert title == f"recording {files / 'a.rec'}, format 1"
    assert summary.startswith("4 entries, 4 variants, 1 graph, 1 graph break, 1 not recorded (")
    assert "    cannot be packed: it has a generator" in rest
    assert rest[-2:] == [
        "not recorded:",
        "  train.py:20: m:generate: a generator cannot be recorded",
    ]


def test_the_head_of_a_package(files):
    title, summary, targets, *rest = lines(render(files / "a.pkg"))
    assert title.startswith(f"package {files / 'a.pkg'}, format 1, ") and title.endswith(" kB")
    assert summary.startswith("2 entries, 2 variants, 1 graph, 1 graph break (train.py; Python ")
    assert targets.startswith("targets: eager (needs torch ")
    assert not any("not recorded" in line for line in rest)


def test_guards(samples, files):
    for name in ("a.rec", "a.pkg"):
        found = [line.strip() for line in lines(render(files / name, guards=True))]
        for expected in (
            "type(x) is torch.Tensor  # train.py:3",
            "m.f is m.g",
            "same_value(x, (1, -0.0, 'a'))",
            "2 * x.size(0) >= n  # train.py:5",
            "tensors(x, self.__dict__['w'])",
            "x: torch.float32[any, 3], cpu, stride (3, 1)",
            "self.__dict__['w']: torch.float64[2], cuda:1, stride (1), requires grad, "
            "torch.nn.Parameter, Negative",
            "state()",
            '{"grad_mode": true}',
            "type(x[m.Class]) is int",
        ):
            assert expected in found
        assert "m.f is m.g" not in render(files / name)


def test_source(files):
    for name in ("a.rec", "a.pkg"):
        text = render(files / name, source="Net.forward  (")
        assert text.count("def check(self, x, n):\n    return x, self.w, n\n") == 1
        assert text.count("def body(inputs, self, x, n):") == 1
        assert "  name_0 = math" in lines(text)
        assert "  name_5 = <code of m.f>" in lines(text)
        assert "  name_6 = <the entry at byte 18>" in lines(text)
        assert render(files / name, source="train.py:3").count("def check") == 1
        assert render(files / name, source="").count("def check") >= 2
        with pytest.raises(AotdynError, match="there is no entry with 'Nobody' in its name"):
            render(files / name, source="Nobody")


def test_graph_code(samples, files):
    for name in ("a.rec", "a.pkg"):
        for wanted in (samples.GRAPH.id, samples.GRAPH.id[:4], ""):
            text = render(files / name, graph=wanted)
            assert "def graph(x, w, n):\n    add = x + w; w = x = None\n" in text
            assert "  cat_1 = torch.cat" in lines(text)
            assert text.count("x: torch.float32[s0, 3], cpu") == 2
        with pytest.raises(AotdynError, match="no graph whose id starts with 'zz'"):
            render(files / name, graph="zz")


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "a"
    for data in (b"", b"hello", b"\x80\x04N.", b"PK\x03\x04" + bytes(99)):
        path.write_bytes(data)
        with pytest.raises(PackageError, match="neither a recording nor a package"):
            render(path)
    with pytest.raises(PackageError, match="cannot read .*: No such file"):
        render(tmp_path / "missing")
    with pytest.raises(PackageError, match="cannot read .*: Is a directory"):
        render(tmp_path)


def test_nothing_of_the_file_is_run(tmp_path):
    """Neither generated text nor an import nor a name that looks like one."""
    mark = tmp_path / "mark"
    text = f"open({str(mark)!r}, 'w')"
    odd = Import("aotdyn_no_such_module", "Class.f")
    variant = Variant(
        EntryKey(text, text, "h"), text, text, {text: odd, "this": Import("this")},
        (Guard("TYPE", Local(text), odd, text),), "g", ((odd, text),),
        Break(text, text, text, (text,)), text, 1, (text,),
    )  # fmt: skip
    graph = Graph((), (Node(text, odd, (Literal(text),), ()), Node("y", "f", (), ())), (text,))
    with RecordingWriter(tmp_path / "a.rec") as writer:
        writer.graph(graph)
        writer.variant(variant)
    found = render(tmp_path / "a.rec", guards=True, source="", graph="")
    assert text in found and not mark.exists()
    assert "# no source: list index out of range" in found


def test_nothing_unprintable_reaches_the_terminal(tmp_path):
    evil = "\x1b[2J\r\x07\u202e\ud800"
    graph = Graph((), (Node("x", Import(evil, "f"), (Value(evil),), (), evil),), ("x",))
    with RecordingWriter(tmp_path / "a.rec", script=evil) as writer:
        writer.graph(graph)
        writer.variant(
            Variant(
                EntryKey("m", evil, "h"), evil, evil, {evil: Live(evil, 0)}, (), None, file=evil
            )
        )
    found = render(tmp_path / "a.rec", guards=True, source="", graph="")
    assert found.isascii() and all(char.isprintable() or char == "\n" for char in found)
    assert "\\x1b[2J\\r\\x07\\u202e\\ud800" in found


@given(st.data())
def test_damaged_files_are_printed_or_refused(samples, files, data):
    name = data.draw(st.sampled_from(["a.rec", "a.pkg"]))
    damaged = bytearray((files / name).read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    (files / "damaged").write_bytes(damaged)
    try:
        render(files / "damaged", guards=True, source="", graph="")
    except PackageError as error:
        assert "\n" not in str(error)


def test_describe():
    for reference, text in (
        (Import("builtins", "len"), "len"),
        (Import("torch"), "torch"),
        (Import("builtins"), "builtins"),
        (Import("torch.nn", "Module"), "torch.nn.Module"),
        (Literal("a\n"), "'a\\n'"),
        (Literal([10**5000]), "<list with an int of more digits than Python prints>"),
        (CodeOf(None, (1, 2)), "<code of the entry[1][2]>"),
        (Live("a socket", 3), "<a socket>"),
        (3, "<int>"),
    ):
        assert describe(reference) == text


def test_sizes():
    shown = [sized(size) for size in (0, 999, 1000, 1234, 999_999, 10**6, 25 * 10**8)]
    assert shown == ["0 bytes", "999 bytes", "1.0 kB", "1.2 kB", "1000.0 kB", "1.0 MB", "2.5 GB"]


def test_what_is_for_one_python_only_is_told(samples, files):
    found = render(files / "a.pkg")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    (line,) = [line for line in lines(found) if line.startswith("variants: ")]
    assert line == (
        f"variants: for Python {version} only, by whose bytecode functions are recognized and "
        "1 frame continued; graphs and their code: for any Python"
    )
    assert "variants: for" not in render(files / "a.rec")
