"""Runs the methods of one of CPython's test files, each as plain Python and compiled.

    python worker.py FOLDER MODULE MODE [SKIP]

FOLDER holds a copy of the package `test`, so that its code counts as a user's. MODE is "traced"
(assertions are inlined) or "eager" (each one breaks the graph, and sees the real values). The first
SKIP methods are left out. Prints a JSON line before and after each method on the real stdout.
"""

import gc
import json
import os
import random
import sys
import time
import types
import unittest
import warnings
from dataclasses import asdict, dataclass, field


@dataclass
class Row:
    """What came of one method. eager, compiled: "ok", "skip", or what failed. breaks: reasons."""

    name: str
    eager: str = ""
    compiled: str = ""
    details: str = ""
    again: str = ""
    internal: str = ""
    breaks: list[str] = field(default_factory=list)
    variants: int = 0
    seconds: list[float] = field(default_factory=list)


class Collector:
    """A recorder that counts variants and keeps the reasons of breaks."""

    def __init__(self):
        self.variants = 0
        self.breaks: list[str] = []

    def graph(self, graph) -> None:
        """Nothing about graphs is counted."""

    def example(self, graph, symbols) -> None:
        """Nothing about graphs is counted."""

    def variant(self, variant) -> None:
        self.variants += 1
        if variant.breaks is not None:
            self.breaks.append(f"{variant.breaks.reason}: {variant.breaks.detail}")

    def obstacle(self, obstacle) -> None:
        self.breaks.append(f"skipped: {obstacle.reason}")


def methods(suite) -> list[unittest.TestCase]:
    """The test methods of a suite, in order; no doctests, no coroutines."""
    found = []
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            found += methods(test)
        elif isinstance(test, unittest.IsolatedAsyncioTestCase):
            continue
        elif isinstance(getattr(type(test), test._testMethodName, None), types.FunctionType):
            found.append(test)
    return found


def run(cls: type, name: str, compile_) -> tuple[str, str, float]:
    """Runs a method with its fixtures: what came of it, the traceback, and the seconds."""
    case = cls(name)
    if compile_ is not None:
        setattr(case, name, types.MethodType(compile_(getattr(cls, name)), case))
    result = unittest.TestResult()
    random.seed(0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        unittest.TestSuite([case]).run(result)
    seconds = time.perf_counter() - start
    problems = [text for _, text in (*result.errors, *result.failures)]
    if problems:
        kinds = sorted({text.strip().splitlines()[-1].partition(":")[0] for text in problems})
        return "failed: " + ", ".join(kinds), "\n".join(problems), seconds
    if result.unexpectedSuccesses:
        return "unexpected success", "", seconds
    return "skip" if result.skipped or not result.testsRun else "ok", "", seconds


def measure(cls: type, name: str) -> Row:
    """One method, as plain Python and compiled; where they differ, as plain Python again."""
    import aotdyn
    from aotdyn.runtime import logs, recorder

    row = Row(f"{cls.__qualname__}.{name}")
    row.eager, _, seconds = run(cls, name, None)
    row.seconds.append(seconds)
    if row.eager == "skip":
        return row
    collector, internal = Collector(), []

    def sink(category: str, text: str) -> None:
        if category == "trace" and text.startswith("Traceback"):
            internal.append(text)

    recorder.start(collector)
    logs.sinks.append(sink)
    try:
        row.compiled, row.details, seconds = run(cls, name, aotdyn.compile(backend="eager"))
    finally:
        recorder.stop(collector)
        logs.sinks.remove(sink)
    row.seconds.append(seconds)
    row.variants, row.breaks = collector.variants, collector.breaks
    row.internal = internal[0] if internal else ""
    if row.compiled != row.eager:
        row.again = run(cls, name, None)[0]
    return row


def main() -> None:
    folder, module, mode, *rest = sys.argv[1:]
    skip = int(rest[0]) if rest else 0
    out = os.fdopen(os.dup(1), "w")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.path.insert(0, folder)
    import aotdyn  # noqa: F401
    from aotdyn import policy

    if mode == "traced":
        policy._TRACED_STDLIB.add("unittest")
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{module}")
    tests = methods(suite)
    if len(rest) > 1:
        tests = [test for test in tests if rest[1] in test.id()]
    print(json.dumps({"count": len(tests)}), file=out, flush=True)
    for test in tests[skip:]:
        print(json.dumps({"start": test.id()}), file=out, flush=True)
        row = measure(type(test), test._testMethodName)
        print(json.dumps({"row": asdict(row)}), file=out, flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
