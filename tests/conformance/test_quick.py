"""Some of CPython's own tests of the language; `run.py` runs them all."""

from pathlib import Path

from tests.conformance.files import QUICK
from tests.conformance.run import check, copied, explanation


def test_methods_do_the_same_compiled(tmp_path: Path):
    reports = check(QUICK, copied(tmp_path), "traced", 60)
    assert [report.file for report in reports] == QUICK
    assert not any(report.error for report in reports), reports
    assert sum(report.count("pass") for report in reports) > 40
    bad = [report for report in reports if report.count("wrong") or report.count("crash")]
    assert not bad, "".join(map(explanation, bad))
