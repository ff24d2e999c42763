"""Many random programs, outside of pytest:

    python -m tests.record.random_programs [--count 50000] [--seed 0] [--jobs 2]

Prints every program that differs. Nothing is shrunk: that is what `test_random_programs.py` does.
"""

import argparse
import multiprocessing
import os
import time

os.environ.setdefault("AOTDYN_STRICT", "1")

from .seeded import case_of, run_chunk  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int, help="print the program with this seed")
    args = parser.parse_args()
    if args.show is not None:
        print(case_of(args.show).text)
        return
    seeds = range(args.seed, args.seed + args.count)
    # A process keeps the code of all programs it has run: each runs some hundred.
    chunks = [seeds[at : at + 100] for at in range(0, len(seeds), 100)]
    start, bad = time.perf_counter(), 0
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=8) as pool:
        for number, found in enumerate(pool.imap(run_chunk, chunks), 1):
            for seed, text in found:
                print(f"=== seed {seed}: {text}\n", flush=True)
            bad += len(found)
            print(f"{min(number * 100, len(seeds))} programs, {bad} differ, "
                  f"{time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
