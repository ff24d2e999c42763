"""Programs that are recorded, compiled into one package, and compared with eager: compiling is what
takes the time, so that the tests of a file share a package, and test processes share it too."""

import copy
import fcntl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import aotdyn
from aotdyn.package.compilers.isa import runnable_here
from aotdyn.runtime.artifacts.closeness import distance, size
from aotdyn.runtime.compiled import compiled
from aotdyn.runtime.settings import Settings


@dataclass(frozen=True)
class Case:
    """use: (program, its arguments) -> what is compared, a list. calls: arguments, copied for each
    use."""

    program: Callable
    use: Callable
    calls: tuple[tuple, ...]


def outcome(program: Callable, use: Callable, call: tuple) -> list:
    """What a use of a program comes to; an error, too."""
    torch.manual_seed(3)
    try:
        return [*use(program, copy.deepcopy(call)), torch.get_rng_state()]
    except Exception as error:
        return [type(error)]


def assert_close(actual: list, expected: list) -> None:
    assert len(actual) == len(expected), (actual, expected)
    for index, (a, b) in enumerate(zip(actual, expected)):
        where = f"item {index}"
        assert type(a) is type(b), f"{where}: {a!r} instead of {b!r}"
        if not isinstance(b, torch.Tensor):
            assert a == b, where
            continue
        assert (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad), where
        half = any(t.dtype in (torch.bfloat16, torch.float16) for t in actual
                   if isinstance(t, torch.Tensor))  # fmt: skip
        limit = (2e-2 if half else 1e-5) * max(size(b), 1.0)
        assert distance(a, b) <= limit, f"{where}: {a} instead of {b}"


@dataclass(frozen=True)
class PackedCases:
    """A package of all the programs of a table. report: the text of pack's."""

    cases: dict[str, Case]
    recording: Path
    package: Path
    report: str

    def check(self, name: str) -> None:
        """Serves one of them, and compares with eager."""
        case = self.cases[name]
        with aotdyn.load(self.package, on_miss="error") as package:
            for call in case.calls:
                served = outcome(compiled(case.program, Settings("eager")), case.use, call)
                assert_close(served, outcome(case.program, case.use, call))
            assert not package.refused


@pytest.fixture(scope="session")
def pack_cases(tmp_path_factory) -> Callable[..., PackedCases]:
    """pack_cases(name, cases, **options): a package of all of them, made once by one process."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base

    def pack(name: str, cases: dict[str, Case], **options: Any) -> PackedCases:
        recording, package = shared / f"{name}.rec", shared / f"{name}.pkg"
        report = shared / f"{name}.report"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not report.exists():
                with aotdyn.record(recording):
                    for case in cases.values():
                        for call in case.calls:
                            outcome(compiled(case.program, Settings("eager")), case.use, call)
                given = {"isas": runnable_here()[-1:], **options}
                report.write_text(str(aotdyn.pack([recording], package, ["cpu"], given)))
        return PackedCases(cases, recording, package, report.read_text())

    return pack
