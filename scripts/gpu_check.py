"""Compares a package with eager on this machine, and takes times. Called by `gpu_check.sh`.

`python gpu_check.py PACKAGE [--device cuda] [--compile NAME ...] [--only NAME ...]` fails where a
result differs, a call is not covered, or code for this device is not used. Each section runs in a
process of its own, so that what spoils a device's context spoils no other section.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from unittest import mock

import torch

import aotdyn

TOLERANCES = {torch.float32: 2e-3, torch.bfloat16: 5e-2}
FIRST = """
import time; start = time.perf_counter()
import sys, torch, runpy; sys.path.insert(0, {folder!r})
imported = time.perf_counter()
import aotdyn
package = aotdyn.load({package!r}, on_miss="error", triton_stand_in=True) if {served} else None
import gpu_programs
called, x = gpu_programs.made("mlp", torch.float32, {device!r})
called(x)
ready = time.perf_counter()
called = ({wrapped})(called)
found = called(x)
float(found.sum())
print(imported - start, time.perf_counter() - ready)
"""


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def microseconds(call, x, device, seconds=0.15):
    """The median time of a call over as many as fit, in batches that the device finishes."""
    for _ in range(3):
        call(x)
    synchronize(device)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        for _ in range(10):
            call(x)
        synchronize(device)
        times.append((time.perf_counter() - start) * 1e5)
    return statistics.median(times)


def answers(device):
    """Whether the device still computes: some errors end all use of it in a process."""
    try:
        return float(torch.ones(2, device=device).sum()) == 2
    except RuntimeError:
        return False


def difference(wanted, found):
    """The largest relative difference; infinite where shapes or dtypes differ."""
    worst = 0.0
    for one, other in zip(wanted, found, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return float("inf")
        scale = one.double().abs().max().clamp(min=1e-3) if one.numel() else 1.0
        worst = max(worst, float(((one.double() - other.double()).abs() / scale).max()))
    return worst if worst == worst else float("inf")


def compare(programs, names, device, title, rounds):
    """Prints a row for each program and dtype; the names of those that differ. rounds: how often
    each is called, with other values and random numbers."""
    wrong = []
    print(f"{'program':16}{'dtype':10}{'difference':>12}{'eager us':>12}{title:>20}")
    for name in names:
        for dtype in programs.DTYPES:
            called, x = programs.made(name, dtype, device)
            served = aotdyn.compile(called)
            # Without Triton a kernel of the program does not run by itself.
            eager = _runs(called, x)
            weights = programs.parameters(called)
            try:
                pairs = []
                for turn in range(rounds):
                    given = (x.detach() * (1 + turn / 8)).requires_grad_(x.requires_grad)
                    both = []
                    for each in (served, called if eager else served):
                        torch.manual_seed(turn)
                        both.append(programs.outcome(each, given, weights))
                    pairs.append(both)
                # At last, because no call may change what earlier ones gave.
                worst = max(difference(wanted, found) for found, wanted in pairs)
            except Exception as error:
                print(f"{name:16}{str(dtype)[6:]:10}  {type(error).__name__}: {error}"[:200])
                wrong.append(f"{name} {dtype}")
                if not answers(device):
                    wrong.append("the device does not answer any more, what follows was not tried")
                    return wrong
                continue
            if not worst <= TOLERANCES[dtype]:
                wrong.append(f"{name} {dtype}")
            row = f"{microseconds(called, x, device):12.1f}" if eager else " " * 12
            row += f"{microseconds(served, x, device):20.1f}"
            print(f"{name:16}{str(dtype)[6:]:10}{worst:12.1e}{row}", flush=True)
    return wrong


def _runs(called, x):
    try:
        called(x)
    except RuntimeError as error:
        if "Triton is not installed" not in str(error):
            raise
        return False
    return True


def against_compile(programs, names, device):
    for name in names:
        called, x = programs.made(name, torch.float32, device)
        torch._dynamo.reset()
        compiled = torch.compile(called)
        print(f"torch.compile {name:16}{microseconds(compiled, x, device):10.1f} us")


@contextlib.contextmanager
def counted(cls, name):
    """A list to which every call of a method adds an item that ends without an error."""
    calls, method = [], getattr(cls, name)

    def counting(*args, **kwargs):
        found = method(*args, **kwargs)
        calls.append(name)
        return found

    with mock.patch.object(cls, name, counting):
        yield calls


def compare_captured(path, programs, names, device):
    """As `compare`, with launches captured into CUDA graphs; also says whether any were."""
    from aotdyn.runtime.artifacts.captures import Capture

    with (
        counted(Capture, "__init__") as made,
        aotdyn.load(path, on_miss="error", options={"cudagraphs": True}) as package,
    ):
        wrong = compare(programs, names, device, "CUDA graphs us", 5)
        wrong += [line for line in package.refused if "not used" in line]
    print(f"{len(made)} captures")
    if device == "cuda" and not made:
        wrong.append("nothing was captured")
    return [f"{each} with CUDA graphs" for each in wrong]


def compare_tuned(path, programs, names, device):
    """As `compare`, with kernels that the device chooses; also says whether it did."""
    from aotdyn.runtime.artifacts.tuning import DeviceClock

    # Choices of earlier runs do not count.
    with (
        counted(DeviceClock, "milliseconds") as timed,
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {"AOTDYN_CACHE": folder}),
        aotdyn.load(path, on_miss="error") as package,
    ):
        wrong = compare(programs, names, device, "tuned us", 2)
        wrong += [line for line in package.refused if "not used" in line]
    print(f"{len(timed)} configurations timed")
    if device == "cuda" and not timed:
        wrong.append("nothing was timed")
    return [f"{each} with --tune" for each in wrong]


def launch_overhead(package):
    """The host's time for starting one kernel through the driver."""
    from aotdyn.runtime.artifacts.driver import Kernel

    counts, before = [], Kernel.run

    def counted(self, *args, **kwargs):
        start = time.perf_counter_ns()
        before(self, *args, **kwargs)
        counts.append(time.perf_counter_ns() - start)

    Kernel.run = counted
    try:
        package()
    finally:
        Kernel.run = before
    if counts:
        found = statistics.median(counts) / 1e3
        print(f"starting a kernel: {found:.1f} us on the host (median of {len(counts)})")
    return bool(counts)


def first_result(title, package, device, wrapped, served):
    code = FIRST.format(
        folder=str(Path(__file__).parent), package=str(package), device=device, wrapped=wrapped,
        served=served,
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        print(f"first result, {title}: {done.stderr.strip().splitlines()[-1][:200]}")
        return
    imported, first = map(float, done.stdout.split()[-2:])
    print(f"first result, {title:14}{first:8.3f} s after {imported:.2f} s for `import torch`")


def compare_served(options, programs, names):
    """As it is, with the time for starting a kernel."""
    device = options.device
    package = options.loaded
    wrong = compare(programs, names, device, "package us", 2)
    called, x = programs.made("mlp", torch.float32, device)
    served = aotdyn.compile(called)
    launched = not wrong and launch_overhead(lambda: [served(x) for _ in range(50)])
    if device == "cuda" and not launched:
        wrong.append("no kernel of the package was started")
    misses = package.stats().misses
    print(f"{misses} misses")
    return wrong + [line for line in package.refused if "not used" in line]


def take_times(options, programs, names):
    """Against `torch.compile`, and of a new process."""
    against_compile(programs, options.compile, options.device)
    first_result("eager", options.package, options.device, "lambda f: f", False)
    first_result("package", options.package, options.device, "aotdyn.compile", True)
    if options.compile:
        first_result("torch.compile", options.package, options.device, "torch.compile", False)
    return []


def captured(options, programs, names):
    """With launches captured into CUDA graphs."""
    options.loaded.close()
    return compare_captured(options.package, programs, names, options.device)


def tuned(options, programs, names):
    """With kernels in several configurations."""
    path = options.package.with_suffix(".tuned.pkg")
    if not path.exists():
        print(f"there is no {path}")
        return []
    options.loaded.close()
    return compare_tuned(path, programs, names, options.device)


# What matters most comes first, should the time not do for all.
SECTIONS = {"served": compare_served, "captured": captured, "tuned": tuned, "times": take_times}


def run_section(options):
    """Prints what a section finds; how many things are wrong."""
    options.loaded = aotdyn.load(options.package, on_miss="error", triton_stand_in=True)
    import gpu_programs as programs  # the package is open, Triton or its stand-in there

    names = options.only or list(programs.PROGRAMS)
    try:
        wrong = SECTIONS[options.section](options, programs, names)
    except Exception:
        traceback.print_exc(limit=-4, file=sys.stdout)
        wrong = ["it could not be finished"]
    for each in wrong:
        print(f"wrong: {each}")
    return len(wrong)


def run_sections(given, seconds):
    """All of them, each in a process of its own; the names of those in which something is wrong."""
    end, wrong = time.monotonic() + seconds, []
    for section in SECTIONS:
        print(f"-- {section}", flush=True)
        command = [sys.executable, "-u", __file__, *given, "--section", section]
        try:
            # At least some seconds: what comes first in a section is printed by then.
            done = subprocess.run(command, timeout=max(end - time.monotonic(), 15))
        except subprocess.TimeoutExpired:
            print("there was no time for the rest", flush=True)
            wrong.append(f"{section} (not finished)")
        else:
            wrong += [section] if done.returncode else []
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--compile", nargs="*", default=["mlp", "softmax"])
    parser.add_argument("--only", nargs="*", help="of the programs; all unless given")
    parser.add_argument("--seconds", type=float, default=300, help="for all sections")
    parser.add_argument("--section", choices=list(SECTIONS), help="this one only")
    options = parser.parse_args()
    device = options.device
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("there is no GPU here")
    if options.section:
        sys.exit(bool(run_section(options)))
    name = torch.cuda.get_device_name() if device == "cuda" else "the CPU"
    print(f"{name}, torch {torch.__version__}, Python {sys.version.split()[0]}", flush=True)
    wrong = run_sections(sys.argv[1:], options.seconds)
    print(f"wrong in: {', '.join(wrong)}" if wrong else "all as in eager")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
