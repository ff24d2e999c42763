"""`aotdyn run`: the program's own results, from the package."""

import re
from dataclasses import replace

import pytest

from aotdyn.package.archive import PackageFile, write_package

# What a served program never imports (DESIGN section 2).
COMPILERS = (
    "torch._dynamo",
    "torch._inductor",
    "torch._functorch.aot_autograd",
    "torch.fx.experimental.symbolic_shapes",
    "sympy",
    "triton",
    "aotdyn.record",
)


def counts(done):
    """(hits, misses) as --stats says them."""
    (found,) = re.findall(r"^aotdyn: (\d+) hits, (\d+) misses$", done.stderr, re.MULTILINE)
    return int(found[0]), int(found[1])


def test_serves_recorded_and_general_calls(aotdyn, eager, package, power):
    words = [power, "2", "4", "-2", "9", "-7"]
    done = aotdyn("run", "--package", package, "--on-miss", "error", "--stats", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == eager(*words).stdout
    hits, misses = counts(done)
    assert hits >= 5 and misses == 0


def test_says_nothing_of_its_own(aotdyn, package, power):
    done = aotdyn("run", "--package", package, power, "2")
    assert (done.returncode, done.stderr) == (0, "")


def test_imports_no_compiler(tmp_path, aotdyn, package, power):
    with (tmp_path / power).open("a") as file:
        file.write(f"print(sorted(sys.modules.keys() & {set(COMPILERS)!r}))\n")
    done = aotdyn("run", "--package", package, "--on-miss", "error", "--stats", power, "2", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
    assert counts(done)[0] >= 2


@pytest.fixture
def other(tmp_path, power):
    """A script with the same function on integers, which were not recorded."""
    text = (tmp_path / power).read_text().replace("arange(4.0)", "arange(4)")
    (tmp_path / "other.py").write_text(text)
    return "other.py"


@pytest.mark.parametrize("on_miss", ["jit", "eager"])
def test_miss_falls_back(aotdyn, eager, package, other, on_miss):
    done = aotdyn("run", "--package", package, "--on-miss", on_miss, "--stats", other, "2", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == eager(other, "2", "2").stdout
    assert counts(done)[1] >= 1


def test_miss_is_an_error(aotdyn, package, other):
    done = aotdyn("run", "--package", package, "--on-miss", "error", other, "2")
    assert done.returncode == 1
    assert done.stdout == ""  # decided at entry, before the print
    assert "aotdyn.package.errors.Miss: " in done.stderr
    assert "other.py" in done.stderr and "dispatch" not in done.stderr


def test_traceback_and_status_are_the_scripts(tmp_path, aotdyn, eager, package, power):
    with (tmp_path / power).open("a") as file:
        file.write("def fail():\n    raise ValueError('no more')\nfail()\n")
    done = aotdyn("run", "--package", package, power, "2")
    expected = eager(power, "2")
    assert (done.returncode, done.stdout, done.stderr) == (1, expected.stdout, expected.stderr)


def test_missing_script(aotdyn, refused, package):
    done = aotdyn("run", "--package", package, "nowhere.py")
    assert "nowhere.py" in refused(done)
    assert done.returncode == 2


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("nowhere.pkg", None, "No such file or directory"),
        ("foreign.pkg", b"PK\x03\x04" * 99, "not a package"),
        ("empty.pkg", b"", "not a package"),
    ],
)
def test_packages_that_are_none(tmp_path, command, refused, power, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    line = refused(command("run", "--package", name, power, "2"))
    assert name in line and words in line


@pytest.mark.parametrize("damage", ["cut off", "longer", "another byte"])
def test_damaged_package(command, refused, package, power, damage):
    data = bytearray(package.read_bytes())
    if damage == "cut off":
        del data[len(data) // 2 :]
    elif damage == "longer":
        data += b"more"
    else:
        data[100] ^= 0xFF  # in the manifest, behind the header of 64 bytes
    package.write_bytes(data)
    assert "power.pkg" in refused(command("run", "--package", package, power, "2"))


def test_package_for_another_python(command, refused, package, power):
    with PackageFile.open(package) as found:
        contents = replace(found.contents(), python="3.12")
        write_package(package.with_name("new.pkg"), contents)
    line = refused(command("run", "--package", "new.pkg", power, "2"))
    assert "3.12" in line and "3.11" in line


def test_package_is_asked_for(command, power):
    done = command("run", power)
    assert done.returncode == 2
    assert "Missing option '--package'" in done.stderr
