"""Serving a package: what covers a call, what happens on a miss, what is refused."""

import importlib
import sys

import pytest
import torch

import aotdyn

SOURCE = """
def helper(x):
    return x * {factor}

def program(x, n):
    y = helper(x) + n
    print("between")
    return y * 2
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module whose source a test can change."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(factor: int):
        (tmp_path / "served_module.py").write_text(SOURCE.format(factor=factor))
        sys.modules.pop("served_module", None)
        importlib.invalidate_caches()
        return importlib.import_module("served_module")

    yield make
    sys.modules.pop("served_module", None)


def record(program, path, *calls):
    with aotdyn.record(path / "it.rec"):
        compiled = aotdyn.compile(program, backend="eager")
        for call in calls:
            compiled(*call)
    return aotdyn.pack(path / "it.rec", path / "it.pkg")


def test_covered_calls_hit(module, tmp_path, capsys):
    program = module(3).program
    report = record(program, tmp_path, (torch.ones(2), 1), (torch.ones(2), 2))
    assert "eager" in str(report)
    with aotdyn.load(tmp_path / "it.pkg", on_miss="error") as package:
        served = aotdyn.compile(program)
        for n in (1, 5, 9):
            assert torch.equal(served(torch.ones(2), n), torch.full((2,), (3.0 + n) * 2))
        stats = package.stats()
    assert stats.misses == 0
    assert stats.hits >= 6
    assert "program" in str(stats)


def test_miss_as_an_error_names_the_guard(module, tmp_path):
    program = module(3).program
    record(program, tmp_path, (torch.ones(2), 1))
    with aotdyn.load(tmp_path / "it.pkg", on_miss="error"):
        served = aotdyn.compile(program)
        with pytest.raises(aotdyn.Miss, match="n == 1") as caught:
            served(torch.ones(2), 2)
        assert "it is 2" in str(caught.value)
        with pytest.raises(aotdyn.Miss, match="dtype|Float|float"):
            served(torch.ones(2, dtype=torch.float64), 1)


def cleaned_up(x, parts, log):
    with torch.no_grad():
        try:
            aotdyn.graph_break()
            return x * len(parts)
        finally:
            log.append("left")


def test_miss_as_an_error_in_the_middle_of_a_frame_leaves_its_blocks(tmp_path):
    x, log = torch.ones(2), []
    record(cleaned_up, tmp_path, (x, [1], []))
    with aotdyn.load(tmp_path / "it.pkg", on_miss="error"):
        served = aotdyn.compile(cleaned_up)
        with pytest.raises(aotdyn.Miss):
            served(x, [1, 2], log)
        assert log == ["left"] and torch.is_grad_enabled()
        assert torch.equal(served(x, [1], []), x)


def test_miss_to_eager_and_to_the_jit(module, tmp_path, capsys):
    program = module(3).program
    record(program, tmp_path, (torch.ones(2), 1))
    for policy in ("eager", "jit"):
        with aotdyn.load(tmp_path / "it.pkg", on_miss=policy) as package:
            served = aotdyn.compile(program, backend="eager")
            for _ in range(2):
                assert served(torch.ones(2), 4).tolist() == [14, 14]
            misses = package.stats().misses
            assert misses == (2 if policy == "eager" else 1) or policy == "jit"


def test_changed_source_of_an_inlined_function_is_refused(module, tmp_path, capsys):
    record(module(3).program, tmp_path, (torch.ones(2), 1))
    program = module(4).program
    with aotdyn.load(tmp_path / "it.pkg", on_miss="eager") as package:
        served = aotdyn.compile(program)
        assert served(torch.ones(2), 1).tolist() == [10, 10]
        assert any("served_module:helper" in line for line in package.refused)
    assert "served_module:helper has changed" in capsys.readouterr().err


def test_changed_source_of_the_entry_is_another_entry(module, tmp_path):
    def first(x):
        return x + 1

    def second(x):
        return x + 2

    code = first.__code__
    second.__code__ = second.__code__.replace(co_name="first", co_qualname=code.co_qualname)
    record(first, tmp_path, (torch.ones(2),))
    with aotdyn.load(tmp_path / "it.pkg", on_miss="error"):
        with pytest.raises(aotdyn.Miss):
            aotdyn.compile(second)(torch.ones(2))


def test_closed_packages_serve_no_new_callables(module, tmp_path):
    program = module(3).program
    record(program, tmp_path, (torch.ones(2), 1))
    package = aotdyn.load(tmp_path / "it.pkg", on_miss="error")
    package.close()
    compiled = aotdyn.compile(program, backend="eager")
    assert compiled(torch.ones(2), 1).tolist() == [8, 8]
    assert package.stats().hits >= 0


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x00" * 4096])
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "foreign.pkg"
    path.write_bytes(content)
    with pytest.raises(aotdyn.PackageError, match="foreign.pkg"):
        aotdyn.load(path)
    with pytest.raises(aotdyn.PackageError, match="missing.pkg"):
        aotdyn.load(tmp_path / "missing.pkg")


def test_wrong_policy(module, tmp_path):
    record(module(3).program, tmp_path, (torch.ones(2), 1))
    with pytest.raises(aotdyn.AotdynError, match="jit"):
        aotdyn.load(tmp_path / "it.pkg", on_miss="maybe")


def test_grad_modes_have_their_own_variants(module, tmp_path):
    program = module(3).program
    x = torch.ones(2, requires_grad=True)
    with aotdyn.record(tmp_path / "it.rec"):
        compiled = aotdyn.compile(program, backend="eager")
        compiled(x, 1).sum().backward()
        with torch.no_grad():
            compiled(x, 1)
    aotdyn.pack(tmp_path / "it.rec", tmp_path / "it.pkg")
    with aotdyn.load(tmp_path / "it.pkg", on_miss="error"):
        served = aotdyn.compile(program)
        y = torch.ones(2, requires_grad=True)
        served(y, 1).sum().backward()
        assert torch.equal(x.grad, y.grad)
        with torch.no_grad():
            assert not served(y, 1).requires_grad
        with torch.inference_mode(), pytest.raises(aotdyn.Miss):
            served(y, 1)


# -- why ------------------------------------------------------------


def scaled(x, n, name="a"):
    return x * n + len(name)


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 2

    def forward(self, x):
        return x * self.factor


def packed(tmp_path, function, *args):
    with aotdyn.record(tmp_path / "why.rec"):
        aotdyn.compile(function, backend="eager")(*args)
    aotdyn.pack(tmp_path / "why.rec", tmp_path / "why.pkg")
    return aotdyn.load(tmp_path / "why.pkg", on_miss="eager")


def test_why_a_call_is_covered_or_not(tmp_path):
    x = torch.ones(3)
    place = f"{__file__}:{scaled.__code__.co_firstlineno + 1}"
    with packed(tmp_path, scaled, x, 2) as package:
        assert package.why(scaled, x, 2).covered
        assert package.why(aotdyn.compile(scaled), x, n=2, name="a").covered
        found = package.why(scaled, torch.ones(5), 3, "b")
        assert str(found).splitlines() == [
            f"scaled is not covered by {tmp_path}/why.pkg (1 variants)",
            f"  failed: n == 2 (it is 3)  # {place}",
            f"  failed: name == 'a' (it is 'b')  # {place}",
            "  failed: tensor 'x' size mismatch at index 0. expected 3, actual 5",
            "  to cover it: record calls with other values of it too: a number that differs is "
            "symbolic",
            "  to cover it: record this call as well",
            "  to cover it: aotdyn.mark_dynamic(x, 0) while recording, or record this call as well",
            "  then: aotdyn pack OLD.rec NEW.rec -o PACKAGE",
        ]
        assert str(package.why(scaled, x, 2)) == f"scaled is served from {tmp_path}/why.pkg"
        with torch.no_grad():
            (failure,) = package.why(scaled, x, 2).failures
        assert failure.actual == "grad mode was True and is False"
        assert package.why(packed, x, x).variants == 0
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            package.why(scaled, x)


def test_why_for_modules_and_methods(tmp_path):
    model = Scaled()
    x = torch.ones(3)
    with packed(tmp_path, model, x) as package:
        assert package.why(model, x).covered
        assert package.why(model.forward, x).covered
        assert package.why(aotdyn.compile(model), x).covered
        model.factor = 3
        (failure,) = package.why(model, x).failures
        assert (failure.subject, failure.actual) == ("self.factor", "it is 3")
