"""Packages without the code for some targets."""

from dataclasses import replace

import pytest
import torch

import aotdyn
from aotdyn.package.archive import Artifact, PackageFile, write_package
from aotdyn.package.thin import thin
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings


def program(x, n):
    return x.sin() * n


FILES = {"avx2.so": b"a" * 4096, "scalar.so": b"s" * 4096, "plan": b"plan"}


@pytest.fixture
def package(tmp_path):
    """A package whose graphs have artifacts for four targets; those for `eager` are real."""
    with aotdyn.record(tmp_path / "a.rec"):
        compiled(program, Settings("eager"))(torch.ones(2), 3)
    path = tmp_path / "a.pkg"
    aotdyn.pack([tmp_path / "a.rec"], path)
    with PackageFile.open(path) as file:
        contents = file.contents()
    others = {
        "cpu": Artifact("cpu", "text", {}, FILES, {"way": "container"}),
        "cuda:sm_80": Artifact("cuda:sm_80", "text", {}, {"k.cubin": b"80"}),
        "cuda:sm_90": Artifact("cuda:sm_90", "text", {}, {"k.cubin": b"90", "odd.so": b"odd"}),
    }
    artifacts = {id: {**found, **others} for id, found in contents.artifacts.items()}
    targets = {**contents.targets, **{target: {"torch": "0"} for target in others}}
    write_package(path, replace(contents, artifacts=artifacts, targets=targets))
    return path


def kept(path):
    """The files by target."""
    with PackageFile.open(path) as file:
        (id,) = file.graphs
        assert list(file.targets) == file.artifacts(id)
        return {target: set(file.artifact(id, target).files) for target in file.targets}


CASES = {
    "one target": (("cpu",), (), {"eager": set(), "cpu": set(FILES)}),
    "one ISA": (("cpu",), ("avx2",), {"eager": set(), "cpu": {"avx2.so", "plan"}}),
    "an ISA of all targets": (
        (), ("scalar",),
        {"eager": set(), "cpu": {"scalar.so", "plan"}, "cuda:sm_80": {"k.cubin"},
         "cuda:sm_90": {"k.cubin", "odd.so"}},
    ),
    "two targets": (
        ("cuda:sm_90", "cuda:sm_80"), (),
        {"eager": set(), "cuda:sm_80": {"k.cubin"}, "cuda:sm_90": {"k.cubin", "odd.so"}},
    ),
    "eager only": (("eager",), (), {"eager": set()}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept(name, package, tmp_path):
    targets, isas, expected = CASES[name]
    report = thin(package, tmp_path / "b.pkg", targets, isas)
    assert kept(tmp_path / "b.pkg") == expected
    assert report.targets == tuple(expected)
    assert report.size == (tmp_path / "b.pkg").stat().st_size < report.before
    assert str(report).endswith("kB") and ", ".join(expected) in str(report)


def test_it_is_served(package, tmp_path):
    thin(package, tmp_path / "b.pkg", ["eager"])
    with aotdyn.load(tmp_path / "b.pkg", on_miss="error"):
        served = compiled(program, Settings("eager"))
        assert torch.equal(served(torch.ones(2), 3), program(torch.ones(2), 3))


def test_nothing_left_out_gives_the_same_bytes(package, tmp_path):
    thin(package, tmp_path / "b.pkg")
    assert (tmp_path / "b.pkg").read_bytes() == package.read_bytes()


@pytest.mark.parametrize(
    "targets, isas, message",
    [
        (["cuda:sm_70"], [], "no target cuda:sm_70; it has cpu, cuda:sm_80, cuda:sm_90, eager"),
        (["cpu"], ["avx512"], "no ISA avx512; it has avx2, scalar"),
        (["eager"], ["avx2"], "no ISA avx2; it has none"),
    ],
)
def test_what_is_not_there(package, tmp_path, targets, isas, message):
    with pytest.raises(aotdyn.AotdynError, match=message):
        thin(package, tmp_path / "b.pkg", targets, isas)
    assert not (tmp_path / "b.pkg").exists()


def test_a_package_is_not_overwritten(package):
    before = package.read_bytes()
    with pytest.raises(aotdyn.AotdynError, match="would be overwritten"):
        thin(package, package, ["cpu"])
    assert package.read_bytes() == before
