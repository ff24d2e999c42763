"""`aotdyn pack`: whole packages or none."""

import pytest

from aotdyn.package.archive import PackageFile
from aotdyn.package.recording import RecordingWriter


def test_merges_recordings(tmp_path, aotdyn, command, power):
    aotdyn("record", "-o", "a.rec", power, "2")
    aotdyn("record", "-o", "b.rec", power, "-2")
    done = command("pack", "a.rec", "b.rec", "-o", "both.pkg", "--target", "eager")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("both.pkg: ")
    assert f"{power}:" in done.stdout  # the graph break, with its line
    assert command("pack", "a.rec", "-o", "one.pkg").returncode == 0
    counts = []
    for name in ("one.pkg", "both.pkg"):
        with PackageFile.open(tmp_path / name) as package:
            counts.append(len(package.contents().variants))
    assert counts[0] < counts[1]


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("nowhere.rec", None, "No such file or directory"),
        ("foreign.rec", b"PK\x03\x04", "not a recording"),
        ("empty.rec", b"", "not a recording"),
    ],
)
def test_recordings_that_are_none(tmp_path, command, refused, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    (tmp_path / "out.pkg").write_text("the last one")
    line = refused(command("pack", name, "-o", "out.pkg"))
    assert name in line and words in line
    assert (tmp_path / "out.pkg").read_text() == "the last one"


def test_damaged_recording(tmp_path, command, refused, recording):
    data = bytearray(recording.read_bytes())
    data[len(data) // 2] ^= 0xFF
    recording.write_bytes(data)
    assert "power.rec" in refused(command("pack", recording, "-o", "out.pkg"))
    assert not list(tmp_path.glob("out*"))


def test_recording_with_nothing_in_it(tmp_path, command, refused):
    RecordingWriter(tmp_path / "idle.rec").close()
    line = refused(command("pack", "idle.rec", "-o", "out.pkg"))
    assert "nothing in it" in line
    assert not list(tmp_path.glob("out*"))


def test_unknown_target(tmp_path, command, refused, recording):
    assert "abacus" in refused(command("pack", recording, "-o", "o.pkg", "--target", "abacus"))
    assert not list(tmp_path.glob("o.pkg*"))


def test_package_over_its_recording(tmp_path, command, refused):
    (tmp_path / "a.rec").write_text("precious")
    refused(command("pack", "a.rec", "-o", "a.rec"))
    assert (tmp_path / "a.rec").read_text() == "precious"
