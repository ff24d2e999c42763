"""Conformance with CPython's own tests of the language:

    python tests/conformance/run.py [--mode eager] [--json FILE] [--resume] [--jobs N] [NAME ...]

Each test method runs as plain Python and compiled with `backend="eager"`, each file in a process of
its own. A line for each file as it ends: passed; the same failure as plain Python; wrong (another
outcome); crashed (the tracer failed, or the process died); too slow; and of all that ran, the share
without a graph break.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

import test as shipped

sys.path.insert(0, str(Path(__file__).parent))
from files import FILES, SKIPPED  # noqa: E402

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


def outcome(file: str, row: dict) -> str:
    """How a row counts."""
    if row["eager"] == "skip" or reason_to_skip(file, row["name"]):
        return "skip"
    if row["internal"] or row["compiled"] == "died":
        return "crash"
    if row["compiled"] == row["eager"]:
        return "pass" if row["eager"] == "ok" else "same"
    if row["compiled"] == "slow":
        return "slow"
    # Some tests have another outcome each time, compiled or not.
    return "same" if row["compiled"] == row["again"] else "wrong"


def reason_to_skip(file: str, name: str) -> str:
    """Why what a method looks at cannot be the same compiled; "" for all but a few."""
    return SKIPPED.get(f"{file.partition('.')[0]}.{name}", "")


def check(names: list[str], folder: Path, mode: str, limit: float) -> list[Report]:
    """Runs some files, or methods of files, in one process."""
    reports: dict[str, Report] = {}
    for message in _messages([str(folder), mode, str(limit), *names]):
        if "end" in message:
            for name in names:
                reports.setdefault(name, Report(name, error=message["end"]))
            break
        report = reports.setdefault(message["file"], Report(message["file"]))
        if "row" in message:
            row = message["row"]
            report.rows.append({**row, "outcome": outcome(report.file, row)})
    return list(reports.values())


def _messages(arguments: list[str]) -> Iterator[dict]:
    """What a worker says, and, if it ends early, {"end": why}."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    worker = Path(__file__).with_name("worker.py")
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", worker, *arguments], text=True, env=environment,
            stdout=subprocess.PIPE, stderr=errors, cwd=scratch,
        )  # fmt: skip
        try:
            for line in process.stdout:
                yield json.loads(line)
            if process.wait():
                errors.seek(0)
                yield {"end": f"exit code {process.returncode}: {errors.read()[-2000:]}"}
        finally:
            process.kill()
            process.wait()


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


HEAD = f"{'file':28}" + "".join(f"{name:>7}" for name in OUTCOMES) + "  whole"


def line(report: Report) -> str:
    """A report in one line."""
    whole, ran = report.whole()
    counts = "".join(f"{report.count(outcome):7}" for outcome in OUTCOMES)
    error = f"  {report.error.splitlines()[-1]}" if report.error else ""
    return f"{report.file:28}{counts}  {100 * whole / max(ran, 1):4.0f}%{error}"


def explanation(report: Report) -> str:
    """What is wrong with the methods of a file, with the ends of the tracebacks."""
    texts = []
    for row in report.rows:
        if row["outcome"] in ("wrong", "crash", "slow"):
            lines = (row["internal"] or row["details"]).rstrip().splitlines()
            # Stacks of processes that end begin with what was called last.
            end = "\n".join(lines[:14] if row["compiled"] in ("slow", "died") else lines[-14:])
            texts.append(f"--- {row['outcome']}: {report.file} {row['name']}: "
                         f"{row['eager']} / {row['compiled']}\n{end}\n")  # fmt: skip
    return "".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="test files, or methods of them: by default all "
                        "files; test_list.ListTest.test_init")  # fmt: skip
    parser.add_argument("--mode", choices=("traced", "eager"), default="traced",
                        help="whether assertions are traced or break the graph")  # fmt: skip
    parser.add_argument("--json", type=Path, help="a file with everything, written as files end")
    parser.add_argument("--resume", action="store_true", help="keep what the JSON file has already")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=float, default=15,
                        help="seconds of the processor per method")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what is wrong")
    args = parser.parse_args()
    done: dict[str, Report] = {}
    if args.resume and args.json.exists():
        done = {each["file"]: Report(**each) for each in json.loads(args.json.read_text())}
    wanted = [name for name in args.names or FILES if name not in done]
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(args.jobs) as pool:
        folder = copied(Path(scratch))
        jobs = [pool.submit(check, [name], folder, args.mode, args.limit) for name in wanted]
        for job in as_completed(jobs):
            for report in job.result():
                done[report.file] = report
                print(line(report), flush=True)
                if args.verbose:
                    print(explanation(report), end="", flush=True)
            if args.json:
                everything = [asdict(report) for report in done.values()]
                args.json.write_text(json.dumps(everything, indent=1))
    rows = [row for report in done.values() for row in report.rows]
    print(line(Report("all", rows)))
    reasons = Counter(reason for row in rows for reason in row.get("breaks", ()))
    print("breaks:", ", ".join(f"{reason} {count}" for reason, count in reasons.most_common()))


if __name__ == "__main__":
    main()
