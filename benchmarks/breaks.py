"""The cost of graph breaks: microseconds per break, next to torch.compile with the eager backend.

    python benchmarks/breaks.py            both; --ours leaves torch.compile out

What plain Python takes for the same call is subtracted, so that graphs, run eagerly in both, cost
nothing. Processor time, measured in turns, so that other work on the machine slows all of them.

torch.compile gives up a frame that breaks inside a loop and runs it as plain Python, where aotdyn
goes on with graphs: in the two last rows the left column is the price of that.
"""

import sys
import time
from collections.abc import Callable

import torch

import aotdyn

BREAKS = 8
ITERATIONS = 1000
TURNS = 200


def programs(note: Callable) -> dict[str, tuple[Callable, tuple, int]]:
    """name -> (program, arguments, number of breaks). note: a function that breaks the graph."""

    def straight(x):
        x = x + 1
        note(0)
        x = x + 1
        note(1)
        x = x + 1
        note(2)
        x = x + 1
        note(3)
        x = x + 1
        note(4)
        x = x + 1
        note(5)
        x = x + 1
        note(6)
        x = x + 1
        note(7)
        return x + 1

    def inner(x):
        y = x + 1
        note(y)
        return y * 2

    def nested(x):
        a = inner(x + 1)
        b = inner(a + 1)
        return inner(b + 1) + inner(a + b)

    def carrying(x, a, b, c, d):
        kept = [a, b, {"c": c}]
        y = x + a
        note(0)
        y = y + b
        note(1)
        kept.append(y)
        y = y + c
        note(2)
        return y + d, kept

    def loop(x, n):
        while n > 0:
            x = x + 1
            note(n)
            n = n - 1
        return x

    x = torch.ones(4)
    return {
        "straight line": (straight, (x,), BREAKS),
        "in inlined functions": (nested, (x,), 4),
        "with much alive": (carrying, (x, x, x, x, x), 3),
        f"loop, {TURNS} iterations": (loop, (x, TURNS), TURNS),
        f"loop, {ITERATIONS} iterations": (loop, (x, ITERATIONS), ITERATIONS),
    }


def plain_note(value):
    return value


def best(*calls: Callable[[], object], seconds: float = 4.0) -> list[float]:
    """The least processor time of each call in microseconds."""
    least = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for index, call in enumerate(calls):
            start = time.thread_time()
            call()
            least[index] = min(least[index], time.thread_time() - start)
    return [1e6 * each for each in least]


def main() -> None:
    torch.set_num_threads(1)
    with_torch = "--ours" not in sys.argv
    plain = programs(plain_note)
    ours = programs(aotdyn.disable(lambda value: value))
    theirs = programs(torch.compiler.disable(lambda value: value)) if with_torch else {}
    print(f"{'us per break':28} {'aotdyn':>9} {'torch':>9} {'ratio':>7}")
    for name, (program, args, count) in plain.items():
        calls = [lambda p=program, a=args: p(*a)]
        served = aotdyn.compile(ours[name][0], backend="eager")
        calls.append(lambda s=served, a=args: s(*a))
        if with_torch:
            compiled = torch.compile(theirs[name][0], backend="eager")
            calls.append(lambda c=compiled, a=args: c(*a))
        for call in calls:
            for _ in range(12):
                call()
        base, *rest = best(*calls)
        costs = [(each - base) / count for each in rest]
        shown = " ".join(f"{cost:9.2f}" for cost in costs)
        ratio = f"{costs[0] / costs[1]:7.2f}" if with_torch else ""
        print(f"{name:28} {shown} {ratio}", flush=True)


if __name__ == "__main__":
    main()
