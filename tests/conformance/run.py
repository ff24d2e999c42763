"""Conformance with CPython's own tests of the language:

    python tests/conformance/run.py [--mode traced|eager] [--json FILE] [--jobs N] [FILE ...]

Each test method runs as plain Python and compiled with `backend="eager"`, each file in a process
of its own. Counts, per file: passed; the same failure as plain Python; wrong (another outcome);
crashed (the tracer failed, or the process died); too slow; and of all that ran, the share without
a graph break.
"""

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import test as shipped

sys.path.insert(0, str(Path(__file__).parent))
from files import FILES, QUICK  # noqa: E402

OUTCOMES = ("pass", "same", "wrong", "crash", "slow", "skip")


@dataclass
class Report:
    """One file: rows as the worker gives them, each with its `outcome`."""

    file: str
    rows: list[dict] = field(default_factory=list)
    error: str = ""

    def count(self, outcome: str) -> int:
        return sum(row["outcome"] == outcome for row in self.rows)

    def whole(self) -> tuple[int, int]:
        """How many methods were traced without a graph break, and how many ran."""
        ran = [row for row in self.rows if row["outcome"] in ("pass", "same", "wrong")]
        return sum(bool(row["variants"] and not row["breaks"]) for row in ran), len(ran)


def outcome(row: dict) -> str:
    """How a row counts."""
    if row["eager"] == "skip":
        return "skip"
    if row["internal"]:
        return "crash"
    if row["compiled"] == row["eager"]:
        return "pass" if row["eager"] == "ok" else "same"
    # Some tests cannot be run twice in a process, compiled or not.
    return "same" if row["compiled"] == row["again"] else "wrong"


def check(file: str, folder: Path, mode: str, limit: float, only: str = "") -> Report:
    """Runs one file; a method that kills or stops the process is noted, and the rest goes on."""
    report = Report(file)
    done, total = 0, None
    while total is None or done < total:
        started = ""
        rest = [str(done), only] if only else [str(done)]
        for message in _messages([str(folder), file, mode, *rest], limit):
            if "count" in message:
                total = message["count"]
            elif "start" in message:
                started = message["start"].partition(f"{file}.")[2]
            elif "row" in message:
                started, row = "", message["row"]
                report.rows.append({**row, "outcome": outcome(row)})
                done += 1
            else:
                if not started:
                    report.error = message["end"]
                    return report
                kind = "slow" if message["end"] == "timeout" else "crash"
                report.rows.append({"name": started, "outcome": kind, "variants": 0, "breaks": [],
                                    "details": message["end"]})  # fmt: skip
                done += 1
    return report


def _messages(arguments: list[str], limit: float) -> Iterator[dict]:
    """What a worker says, and, if it ends early, {"end": why}."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    worker = Path(__file__).with_name("worker.py")
    with tempfile.TemporaryDirectory() as scratch:
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", worker, *arguments], text=True, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=scratch,
        )  # fmt: skip
        lines: queue.Queue[str] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
        reader.start()
        try:
            while line := lines.get(timeout=limit):
                yield json.loads(line)
            if process.wait():
                yield {"end": f"exit code {process.returncode}: {process.stderr.read()[-2000:]}"}
        except queue.Empty:
            yield {"end": "timeout"}
        finally:
            process.kill()
            process.wait()


def _read(stream, lines: queue.Queue) -> None:
    for line in stream:
        lines.put(line)
    lines.put("")


def copied(folder: Path) -> Path:
    """A copy of the package `test` without the data that only other tests need."""
    source = Path(shipped.__file__).parent
    skip = shutil.ignore_patterns(
        "__pycache__", "*.gz", "*.zip", "*.tar", "decimaltestdata", "*.pem", "xmltestdata",
        "test_importlib", "test_asyncio", "test_email", "cjkencodings", "audiodata", "test_tools",
        "leakers", "tracedmodules", "libregrtest", "test_capi", "test_peg_generator", "encoded*",
    )  # fmt: skip
    shutil.copytree(source, folder / "test", ignore=skip)
    return folder


def table(reports: list[Report]) -> str:
    """The reports as text, with a line for all."""
    lines = [f"{'file':28}" + "".join(f"{name:>7}" for name in OUTCOMES) + "  whole"]
    for report in reports:
        lines.append(_line(report.file, report) + (f"  {report.error}" if report.error else ""))
    everything = Report("all", [row for report in reports for row in report.rows])
    return "\n".join([*lines, _line("all", everything)])


def _line(name: str, report: Report) -> str:
    whole, ran = report.whole()
    counts = "".join(f"{report.count(outcome):7}" for outcome in OUTCOMES)
    return f"{name:28}{counts}  {100 * whole / max(ran, 1):4.0f}%"


def _explanation(file: str, row: dict) -> str:
    """What is wrong with a method, with the end of its traceback."""
    if row["outcome"] in ("pass", "same", "skip"):
        return ""
    trace = row.get("internal") or row.get("details") or ""
    end = "\n".join(trace.rstrip().splitlines()[-14:])
    return (f"--- {row['outcome']}: {file} {row['name']}: "
            f"{row.get('eager')} / {row.get('compiled')}\n{end}\n")  # fmt: skip


def run(files: list[str], mode: str, jobs: int = 1, limit: float = 60, only: str = "") -> list:
    """The reports of some files."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = copied(Path(scratch))
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(lambda file: check(file, folder, mode, limit, only), files))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="names of test files; all by default")
    parser.add_argument("--quick", action="store_true", help="the files of the test command")
    parser.add_argument("--mode", choices=("traced", "eager"), default="traced",
                        help="whether assertions are traced or break the graph")  # fmt: skip
    parser.add_argument("--json", help="a file to write everything to")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="only methods with this in their name")
    parser.add_argument("--limit", type=float, default=60, help="seconds per method")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what is wrong")
    args = parser.parse_args()
    files = args.files or (QUICK if args.quick else FILES)
    reports = run(files, args.mode, args.jobs, args.limit, args.only)
    if args.verbose:
        for report in reports:
            print("".join(_explanation(report.file, row) for row in report.rows))
    print(table(reports))
    reasons = Counter(b.partition(":")[0] for r in reports for row in r.rows for b in row["breaks"])
    print("breaks:", ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()))
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(report) for report in reports], indent=1))


if __name__ == "__main__":
    main()
