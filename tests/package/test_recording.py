"""Recordings: what is written is read back, whatever ends the writing; damage is told."""

import os
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aotdyn.package import recording as module
from aotdyn.package.errors import AotdynError, PackageError
from aotdyn.package.graph import Graph
from aotdyn.package.recording import (
    MAGIC,
    Example,
    Header,
    Obstacle,
    Recording,
    RecordingWriter,
    merge,
    read_recording,
)
from aotdyn.package.reference import Literal
from aotdyn.package.schema import (
    FORMAT_VERSION,
    encode_record,
    this_python,
    this_torch,
)
from aotdyn.package.values import to_bytes
from aotdyn.package.variant import EntryKey, Variant


def simple(name):
    return Variant(EntryKey("m", name, "h"), "check", "body", {}, (), None)


def stored(records):
    return [to_bytes(encode_record(record)) for record in records]


def names(recording):
    return [variant.entry.qualname for variant in recording.variants]


@pytest.fixture(scope="module")
def whole(samples, tmp_path_factory):
    """The bytes of a recording with a record of each kind."""
    path = tmp_path_factory.mktemp("recording") / "a.rec"
    samples.record(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch") / "damaged.rec"


def test_what_is_written_is_read(samples, tmp_path):
    path = tmp_path / "a.rec"
    samples.record(path)
    found = read_recording(path)
    assert found.header == Header(FORMAT_VERSION, this_python(), this_torch(), "cpu", "train.py")
    assert stored(found.variants) == stored((*samples.VARIANTS, *samples.UNPACKABLE))
    assert found.graphs == {samples.GRAPH.id: samples.GRAPH}
    assert found.obstacles == (samples.OBSTACLE,)
    assert found.examples == (Example(samples.GRAPH_ID, (("s0", 8), ("s1", 3))),)
    assert not found.truncated and not found.empty


def test_hits_add_up(tmp_path):
    for name, count in (("a", 2), ("b", 3)):
        with RecordingWriter(tmp_path / name) as writer:
            writer.variant(simple("f"))
            writer.hits(simple("f").id, count)
    recordings = [read_recording(tmp_path / name) for name in "ab"]
    assert [recording.hits for recording in recordings] == [{simple("f").id: n} for n in (2, 3)]
    assert merge(recordings).hits == {simple("f").id: 5}


def test_the_golden_recording_still_loads(samples):
    found = read_recording(samples.RECORDING)
    assert found.header.python == "3.11" and found.header.script == "train.py"
    assert stored(found.variants) == stored((*samples.VARIANTS, *samples.UNPACKABLE))
    assert list(found.graphs.values()) == [samples.GRAPH]
    assert found.obstacles == (samples.OBSTACLE,)
    assert len(found.examples) == 1 and not found.truncated


def test_records_are_in_the_file_at_once(tmp_path):
    path = tmp_path / "a.rec"
    writer = RecordingWriter(path)
    assert writer.empty and read_recording(path).empty
    for name in "abc":
        assert writer.variant(simple(name))
        assert names(read_recording(path))[-1] == name
    assert not writer.empty
    writer.close()
    assert not writer.variant(simple("d"))
    assert names(read_recording(path)) == ["a", "b", "c"]


def test_equal_records_are_written_once(samples, tmp_path):
    path = tmp_path / "a.rec"
    with RecordingWriter(path) as writer:
        for _ in range(2):
            writer.variant(simple("a"))
            writer.graph(samples.GRAPH)
            writer.example("g", {"s": 1})
            writer.obstacle(Obstacle("f", "reason"))
        assert not writer.variant(replace(simple("a"), line=3))  # not part of what it does
        assert writer.variant(replace(simple("a"), body="other"))
        assert writer.example("g", {"s": 2})
    found = read_recording(path)
    assert len(found.variants) == len(found.examples) == 2
    assert len(found.graphs) == len(found.obstacles) == 1


def test_what_cannot_be_stored_becomes_an_obstacle(tmp_path):
    path = tmp_path / "a.rec"
    odd = replace(simple("odd"), names={"x": Literal(object())}, file="a.py", line=3)
    huge = replace(simple("huge"), names={"x": Literal(10**5000)})
    with RecordingWriter(path) as writer:
        assert not writer.variant(odd)
        assert writer.variant(huge)
        assert not writer.graph(Graph((), (), (Literal(object()),)))
        assert not writer.example("g", {"s": 1.5})
        assert not writer.obstacle(Obstacle("f", None))
        assert writer.variant(simple("a"))
    found = read_recording(path)
    assert names(found) == ["huge", "a"]
    assert found.obstacles[0] == Obstacle(
        "variant of m:odd#h", "a value of type builtins.object cannot be stored", "a.py", 3
    )
    assert [o.what for o in found.obstacles[1:]] == [
        "graph",
        "example of graph g",
    ]


def test_an_existing_file_is_emptied(tmp_path):
    path = tmp_path / "a.rec"
    path.write_bytes(b"x" * 10_000)
    RecordingWriter(path).close()
    assert read_recording(path).empty


def test_a_file_that_cannot_be_made(tmp_path):
    with pytest.raises(AotdynError, match="cannot write the recording .*: No such file"):
        RecordingWriter(tmp_path / "missing" / "a.rec")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_disk_that_is_full():
    with pytest.raises(AotdynError, match="cannot write the recording .*: No space"):
        RecordingWriter("/dev/full")


def test_after_a_failed_write_nothing_more_is_written(tmp_path):
    path = tmp_path / "a.rec"
    writer = RecordingWriter(path)
    writer.variant(simple("a"))
    file = writer._file

    class Half:
        def write(self, data):
            file.write(data[:10])
            raise OSError(28, "No space left on device")

        def close(self):
            file.close()

    writer._file = Half()
    with pytest.raises(AotdynError, match="No space"):
        writer.variant(simple("b"))
    assert not writer.variant(simple("c"))
    writer.close()
    found = read_recording(path)
    assert names(found) == ["a"] and found.truncated


def test_short_writes_are_continued(tmp_path):
    path = tmp_path / "a.rec"
    writer = RecordingWriter(path)
    file = writer._file

    class Slow:
        def write(self, data):
            return file.write(data[:7])

        def close(self):
            file.close()

    writer._file = Slow()
    writer.variant(simple("a"))
    writer.close()
    assert names(read_recording(path)) == ["a"]


def test_a_forked_child_writes_nothing(tmp_path):
    path = tmp_path / "a.rec"
    writer = RecordingWriter(path)
    writer.variant(simple("a"))
    held, over = threading.Event(), threading.Event()

    def hold():  # as a thread does that is writing at the time of the fork
        with writer._lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        written = writer.variant(simple("b"))
        writer.close()
        os._exit(int(written))
    over.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.variant(simple("c"))
    writer.close()
    assert names(read_recording(path)) == ["a", "c"]


def test_a_forked_child_that_closes_leaves_the_parents_file_alone(tmp_path):
    path = tmp_path / "a.rec"
    with RecordingWriter(path) as writer:
        child = os.fork()
        if not child:
            writer.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert writer.variant(simple("a"))
    assert names(read_recording(path)) == ["a"]


def test_threads(tmp_path):
    path = tmp_path / "a.rec"
    with RecordingWriter(path) as writer:

        def work(part):
            for index in range(50):
                writer.variant(simple(f"shared{index}"))
                writer.variant(simple(f"own{part}-{index}"))

        threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = names(read_recording(path))
    assert len(found) == len(set(found)) == 50 + 4 * 50


def test_a_cut_file_is_a_prefix(whole, scratch):
    scratch.write_bytes(whole)
    complete = read_recording(scratch)
    everything = stored(complete.variants)
    seen = set()
    for end in range(0, len(whole), 61):
        scratch.write_bytes(whole[:end])
        try:
            found = read_recording(scratch)
        except PackageError as error:
            assert not seen, error  # only before the header is whole
            continue
        assert stored(found.variants) == everything[: len(found.variants)]
        seen.add(len(found.variants))
    assert seen == set(range(len(everything) + 1)) and found.truncated


def test_a_file_that_ends_with_a_record_is_not_truncated(whole, scratch):
    ends, at = [], len(MAGIC)
    while at < len(whole):
        at += module._FRAME.size + module._FRAME.unpack_from(whole, at)[2]
        ends.append(at)
    for end in ends:
        scratch.write_bytes(whole[:end])
        assert not read_recording(scratch).truncated
        if end < len(whole):
            scratch.write_bytes(whole[: end + 1])
            assert read_recording(scratch).truncated


@given(st.data())
def test_damage_is_told(whole, scratch, data):
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    found, complete = refused_or_unchanged(bytes(damaged), whole, scratch)
    assert found is None or bytes(damaged) == whole and found == complete


@given(st.data())
def test_missing_and_swapped_parts_are_told(whole, scratch, data):
    a, b, c = sorted(data.draw(st.integers(0, len(whole))) for _ in range(3))
    kind = data.draw(st.sampled_from(["remove", "double", "swap", "zero"]))
    damaged = {
        "remove": whole[:a] + whole[b:],
        "double": whole[:b] + whole[a:],
        "swap": whole[:a] + whole[b:c] + whole[a:b] + whole[c:],
        "zero": whole[:a] + bytes(b - a) + whole[b:],
    }[kind]
    refused_or_unchanged(damaged, whole, scratch)


def refused_or_unchanged(damaged, whole, scratch):
    """All that may be read from a damaged file is what was written, if not all of it."""
    scratch.write_bytes(whole)
    complete = stored(read_recording(scratch).variants)
    scratch.write_bytes(damaged)
    try:
        found = stored(read_recording(scratch).variants)
    except PackageError as error:
        assert "\n" not in str(error)
        return None, complete
    assert set(found) <= set(complete)
    return found, complete


@given(st.binary(max_size=200))
def test_any_bytes_after_the_magic(scratch, data):
    scratch.write_bytes(MAGIC + data)
    with pytest.raises(PackageError):
        read_recording(scratch)


def framed(*payloads):
    return MAGIC + b"".join(map(module._framed, payloads))


HEADER = to_bytes(
    ["header", {"format": 1, "python": "3.11", "torch": "2.13.0", "device": "cpu", "script": ""}]
)

FOREIGN = {
    "empty": (b"", "is not a recording"),
    "text": (b"import torch\n", "is not a recording"),
    "package": (b"\x89aotdyn package\n" + bytes(99), "is not a recording"),
    "magic only": (MAGIC, "header is cut off"),
    "no header": (framed(to_bytes(3)), "no header"),
    "other record first": (framed(to_bytes(encode_record(simple("a")))), "no header"),
    "other format": (
        framed(to_bytes(["header", {"format": 99, "new": 1}])),
        f"it has format 99, and this aotdyn reads format {FORMAT_VERSION}",
    ),
    "header of text": (framed(to_bytes(["header", {"format": "1"}])), "no header"),
    "header with more": (
        framed(to_bytes(["header", {"format": FORMAT_VERSION, "colour": 1}])),
        "field 'python' of 'header' is missing",
    ),
    "two headers": (framed(HEADER, HEADER), "record of type Header"),
    "plain value": (framed(HEADER, to_bytes(3)), "record of type int"),
    "record of no kind": (framed(HEADER, to_bytes(["value", {"name": "x"}])), "type Value"),
    "no msgpack": (framed(HEADER, b"\xc1"), "damaged data"),
    "unknown record": (framed(HEADER, to_bytes(["gizmo", {}])), "unknown data 'gizmo'"),
}


@pytest.mark.parametrize("data, message", FOREIGN.values(), ids=FOREIGN)
def test_foreign_files_are_refused(data, message, tmp_path):
    path = tmp_path / "a.rec"
    path.write_bytes(data)
    with pytest.raises(PackageError) as caught:
        read_recording(path)
    assert message in str(caught.value) and str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(PackageError, match="cannot read .*: No such file"):
        read_recording(tmp_path / "a.rec")
    with pytest.raises(PackageError, match="cannot read .*: Is a directory"):
        read_recording(tmp_path)


# merge and summary


def recording(*variants, python="3.11", torch="2.13.0", device="cpu", script="a.py", **others):
    header = Header(FORMAT_VERSION, python, torch, device, script)
    return Recording(header, tuple(map(simple, variants)), **others)


def test_merging_keeps_order_and_drops_equal_records(samples):
    first = recording("a", "b", graphs={"1": samples.GRAPH}, obstacles=(Obstacle("f", "r"),))
    second = recording(
        "c", "a", "d", script="b.py", device="cuda:sm_90", torch="2.13.1",
        graphs={"2": samples.GRAPH, "1": samples.GRAPH}, truncated=True,
        obstacles=(Obstacle("g", "r"), Obstacle("f", "r")), examples=(Example("1", ()),),
    )  # fmt: skip
    merged = merge([first, second, first])
    assert names(merged) == ["a", "b", "c", "d"]
    assert list(merged.graphs) == ["1", "2"]
    assert [obstacle.what for obstacle in merged.obstacles] == ["f", "g"]
    assert merged.examples == (Example("1", ()),)
    assert merged.truncated
    assert merged.header == Header(
        FORMAT_VERSION, "3.11", "2.13.0", "cpu, cuda:sm_90", "a.py, b.py"
    )
    assert merge([first]) == first


@pytest.mark.parametrize(
    "other, message",
    [
        ({"python": "3.12"}, "recordings of Python 3.11 and Python 3.12 cannot be merged"),
        ({"torch": "2.14.0"}, "recordings of torch 2.13 and torch 2.14 cannot be merged"),
    ],
)
def test_recordings_of_other_versions_cannot_be_merged(other, message):
    with pytest.raises(PackageError, match=message):
        merge([recording("a"), recording("b"), recording("c", **other)])


def test_nothing_cannot_be_merged():
    with pytest.raises(PackageError, match="no recordings"):
        merge([])


def test_summary(samples):
    assert recording("a", "b").summary() == (
        "2 entries, 2 variants, 0 graphs, 0 graph breaks (a.py; Python 3.11, torch 2.13.0, cpu)"
    )
    found = replace(
        recording("a", script="", truncated=True, graphs={"1": samples.GRAPH}),
        variants=samples.VARIANTS[:1],
        obstacles=(Obstacle("f", "r"),),
    )
    assert found.summary() == (
        "1 entry, 1 variant, 1 graph, 1 graph break, 1 not recorded, last record cut off "
        "(Python 3.11, torch 2.13.0, cpu)"
    )
    assert recording().empty and not found.empty
    assert str(Obstacle("f", "r", "a.py", 3)) == "a.py:3: f: r"
    assert str(Obstacle("f", "r")) == "f: r"
