"""Which library is loaded, whether it fits, and files that are private."""

import os

import pytest
import torch

from aotdyn.package.errors import PackageError
from aotdyn.package.plan import Plan
from aotdyn.runtime.artifacts import library, unmet


def capability(monkeypatch, name):
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: name)


@pytest.mark.parametrize(
    "level, picked", [("AVX512", "avx512"), ("AVX2", "avx2"), ("DEFAULT", "scalar")]
)
def test_the_best_isa_that_the_machine_has(monkeypatch, level, picked):
    capability(monkeypatch, level)
    files = {"plan": b"", "scalar.so": b"", "avx512.so": b"", "avx2.so": b""}
    assert library.pick_isa(files) == picked


def test_no_code_for_this_machine(monkeypatch):
    capability(monkeypatch, "AVX2")
    with pytest.raises(PackageError, match="there is code for avx512, this machine has AVX2"):
        library.pick_isa({"avx512.so": b""})


def test_what_is_not_met():
    assert unmet({}) == unmet({"torch": str(torch.__version__), "glibc": "2.4", "odd": "1"}) == ""
    assert unmet({"torch": "1.0"}).startswith("it is for torch 1.0, this is ")
    assert unmet({"torch": str(torch.__version__).partition("+")[0]}) == ""  # for all its builds
    assert unmet({"torch": f"{torch.__version__}+other"})
    assert "machine" in unmet({"machine": "mips"})
    assert "glibc 99.0" in unmet({"glibc": "99.0"}) or not library.os.confstr("CS_GNU_LIBC_VERSION")


def test_a_library_that_does_not_load(monkeypatch):
    capability(monkeypatch, "AVX2")
    with pytest.raises(PackageError, match="does not load here"):
        library.load_parts(Plan("damaged", 0), {"avx2.so": b"no library"})


def test_private_files(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = library._private_file(b"code", b"{}")
    assert open(path, "rb").read() == b"code" and open(path[:-3] + ".json", "rb").read() == b"{}"
    open(path, "wb").write(b"changed")
    assert open(library._private_file(b"code", b"{}"), "rb").read() == b"code"
    other = library._private_file(b"code", b"[]")
    assert other != path and os.path.samefile(other, library._private_file(b"code", b"{}"))
    os.chmod(os.path.dirname(path), 0o755)
    with pytest.raises(PackageError, match="not private"):
        library._private_file(b"code", b"{}")
