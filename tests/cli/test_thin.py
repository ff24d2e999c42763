"""`aotdyn thin` as a user runs it."""


def test_a_smaller_package_serves(tmp_path, aotdyn, command, power, package):
    done = command("thin", package, "-o", "small.pkg", "--target", "eager")
    assert done.returncode == 0 and done.stdout.startswith("small.pkg: for eager; ")
    served = aotdyn("run", "--package", "small.pkg", "--on-miss", "error", power, 2, 3, -2)
    assert served.returncode == 0, served.stderr


def test_what_is_refused(tmp_path, command, refused, package):
    line = refused(command("thin", package, "-o", "small.pkg", "--target", "cpu"))
    assert line == "aotdyn: the package has no target cpu; it has eager"
    assert "power.rec" in refused(command("thin", "power.rec", "-o", "x.pkg", "--target", "eager"))
    done = command("thin", package, "-o", "small.pkg")
    assert done.returncode == 2 and "give --target or --isa" in done.stderr
    assert not (tmp_path / "small.pkg").exists()
