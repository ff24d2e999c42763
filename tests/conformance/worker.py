"""Runs test methods of CPython's own test files, each as plain Python and compiled.

    python worker.py FOLDER MODE LIMIT NAME...

FOLDER holds a copy of the package `test`, so that its code counts as a user's. MODE is "traced"
(assertions are inlined) or "eager" (each one breaks the graph, and sees the real values). NAME is a
file, or a method of one: `test_list`, `test_list.ListTest.test_init`. Methods run in children of
this process: they may crash, or take more than LIMIT seconds. Prints a JSON line for each on the
real stdout.
"""

import doctest
import faulthandler
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import types
import unittest
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

import aotdyn
from aotdyn import policy
from aotdyn.runtime import logs, recorder


@dataclass
class Run:
    """One run of a method. result: "ok", "skip", or "failed: " and what. internal: a failure of
    the tracer. breaks: reasons. places: where they are, and the details."""

    result: str = ""
    details: str = ""
    internal: str = ""
    variants: int = 0
    breaks: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Collector:
    """A recorder that counts variants and keeps the reasons of breaks."""

    def __init__(self, run: Run):
        self.run = run

    def graph(self, graph) -> None:
        """Nothing about graphs is counted."""

    def example(self, graph, symbols) -> None:
        """Nothing about graphs is counted."""

    def hits(self, variant, count) -> None:
        """Nor how often a variant is used."""

    def variant(self, variant) -> None:
        self.run.variants += 1
        if variant.breaks is not None:
            place = variant.breaks.stack[-1] if variant.breaks.stack else ""
            self.run.breaks.append(variant.breaks.reason)
            self.run.places.append(f"{variant.breaks.reason}: {variant.breaks.detail} @ {place}")

    def obstacle(self, obstacle) -> None:
        self.run.breaks.append(f"skipped: {obstacle.reason.partition(':')[0]}")
        self.run.places.append(f"skipped: {obstacle}")


def methods(suite) -> Iterator[unittest.TestCase]:
    """The test methods of a suite, in order; no doctests, no coroutines."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from methods(test)
        elif isinstance(test, unittest.IsolatedAsyncioTestCase | doctest.DocTestCase):
            continue
        elif isinstance(getattr(type(test), test._testMethodName, None), types.FunctionType):
            yield test
        elif isinstance(test, unittest.loader._FailedTest):
            raise test._exception


def run(test: unittest.TestCase, compiled: bool) -> Run:
    """Runs a method with its fixtures."""
    found = Run()
    cls, name = type(test), test._testMethodName
    case = cls(name)
    if compiled:
        function = aotdyn.compile(backend="eager")(getattr(cls, name))
        setattr(case, name, types.MethodType(function, case))
    result = unittest.TestResult()
    random.seed(0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        unittest.TestSuite([case]).run(result)
    found.seconds = time.perf_counter() - start
    problems = [text for _, text in (*result.errors, *result.failures)]
    if problems:
        kinds = sorted({text.strip().splitlines()[-1].partition(":")[0] for text in problems})
        found.result, found.details = "failed: " + ", ".join(kinds), "\n".join(problems)
    elif result.unexpectedSuccesses:
        found.result = "failed: unexpected success"
    else:
        found.result = "skip" if result.skipped or not result.testsRun else "ok"
    return found


def run_compiled(test: unittest.TestCase) -> Run:
    """Runs a method compiled, with what the tracer had to say."""
    seen, internal = Run(), []

    def sink(text: str) -> None:
        if text.startswith("Traceback"):
            internal.append(text)

    collector = Collector(seen)
    recorder.start(collector)
    logs.sinks["trace"].append(sink)
    try:
        found = run(test, compiled=True)
    finally:
        recorder.stop(collector)
        logs.sinks["trace"].remove(sink)
    found.variants, found.breaks, found.places = seen.variants, seen.breaks, seen.places
    found.internal = internal[0] if internal else ""
    return found


def measure(test: unittest.TestCase) -> dict:
    """A method as plain Python and compiled; where they differ, as plain Python again."""
    plain = run(test, compiled=False)
    row = {"eager": plain.result, "again": "", "seconds": [plain.seconds]}
    if plain.result == "skip":
        return row
    found = run_compiled(test)
    row["seconds"].append(found.seconds)
    if found.result != plain.result:
        row["again"] = run(test, compiled=False).result
    return {**row, "compiled": found.result, "details": found.details, "internal": found.internal,
            "variants": found.variants, "breaks": found.breaks, "places": found.places}  # fmt: skip


def rows(tests: list[unittest.TestCase], limit: float) -> Iterator[dict]:
    """What comes of each method, in order. They run in one child of this process up to the first
    that kills it or takes too long, and the rest in another one."""
    done = 0
    while done < len(tests):
        receive, send = os.pipe()
        with tempfile.TemporaryFile("w+") as trace:
            child = os.fork()
            if child == 0:
                os.close(receive)
                _run_rest(tests[done:], limit, send, trace)
            os.close(send)
            with os.fdopen(receive) as answers:
                for answer in answers:
                    yield {**_EMPTY, "name": _name(tests[done]), **json.loads(answer)}
                    done += 1
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status != 0:
                trace.seek(0)
                end = trace.read()
                slow = status == -signal.SIGPROF or "Timeout" in end
                result = "slow" if slow else "died"
                yield {**_EMPTY, "name": _name(tests[done]), "compiled": result,
                       "details": f"exit code {status}\n{end}"}  # fmt: skip
                done += 1


_EMPTY: dict = {"eager": "", "again": "", "seconds": [], "compiled": "", "details": "",
                "internal": "", "variants": 0, "breaks": [], "places": []}  # fmt: skip


def _name(test: unittest.TestCase) -> str:
    return f"{type(test).__qualname__}.{test._testMethodName}"


def _run_rest(tests: list, limit: float, send: int, trace) -> None:
    """In the child: a line for each method; ends the process."""
    with os.fdopen(send, "w") as answers:
        for test in tests:
            # Says where it stands when time is over, or when it dies. What else the machine runs
            # does not count, but a method that only waits has an end, too.
            faulthandler.register(signal.SIGPROF, file=trace, chain=True)
            signal.setitimer(signal.ITIMER_PROF, limit)
            faulthandler.dump_traceback_later(20 * limit, exit=True, file=trace)
            faulthandler.enable(trace)
            try:
                row = measure(test)
            except BaseException:
                traceback.print_exc(file=trace)
                trace.flush()
                os._exit(2)
            print(json.dumps(row), file=answers, flush=True)
            gc.collect()
    os._exit(0)


def main() -> None:
    folder, mode, limit, *names = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.path.insert(0, folder)
    if mode == "traced":
        policy._TRACED_STDLIB.add("unittest")
        # `assertRaises` clears the frames of an exception. Traced ones have no frame.
        unittest.case.traceback.clear_frames = lambda tb: None
    for name in names:
        tests = list(methods(unittest.defaultTestLoader.loadTestsFromName(f"test.{name}")))
        print(json.dumps({"file": name, "count": len(tests)}), file=out, flush=True)
        # The tracer is loaded here once, and not in each child.
        aotdyn.compile(lambda x: x + 1, backend="eager", dynamic=True)(torch.ones(2))
        gc.collect()
        gc.freeze()
        for row in rows(tests, float(limit)):
            print(json.dumps({"file": name, "row": row}), file=out, flush=True)


if __name__ == "__main__":
    main()
