"""The programs of the tracer's reference description, recorded in one process and served in
another: no miss, equal results, also for values that the recording has not seen."""

import json
import subprocess
import sys

PROGRAMS = '''
import json, sys
import torch, aotdyn

def arithmetic(x, y):
    z = (x - y) ** 2
    return z.sum()

def branches(x, n):
    y = x ** 2
    return (n + 1) * y if n >= 0 else y / n

def text(a, b):
    return a * len(b)

def texts(x, l):
    return x * len(l[0])

def sizes(a, b):
    return a.shape[0] * a * b

def doubled(a):
    return a if a.shape[0] * 2 < 16 else a + 1

def broken(a):
    b = a + 2
    print("Hi")
    return b + a

def ones(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) + 1

# name -> (recorded calls, served calls, options)
CALLS = {
    "arithmetic": ([(ones(3), ones(3) * 2)], [(ones(3) * 4, ones(3))], {}),
    "branches": ([(ones(3), n) for n in (2, 3, -2, 4)], [(ones(3), n) for n in (2, 9, -7, 0)], {}),
    "text": ([(ones(2), "Hello"), (ones(2), "Hi")], [(ones(2), "Hi"), (ones(2), "Hello")], {}),
    "texts": ([(ones(2), ["Hi", "Hello"])], [(ones(2), ["Hi", "Hello"])], {}),
    "sizes": ([(ones(n, 3), ones(n, 3)) for n in (4, 8)],
              [(ones(n, 3), ones(n, 3)) for n in (4, 20, 2)], {}),
    "doubled": ([(ones(n),) for n in (8, 0, 1)], [(ones(n),) for n in (8, 30, 0, 1)],
                {"dynamic": True}),
    "broken": ([(ones(3),)], [(ones(3) * 5,), (ones(3),)], {}),
}

mode = sys.argv[1]
package = aotdyn.load("it.pkg", on_miss="error") if mode == "serve" else None
results = {}
context = aotdyn.record("it.rec") if mode == "record" else None
if context is not None:
    context.__enter__()
for name, (recorded, served, options) in CALLS.items():
    function = globals()[name]
    if mode != "eager":
        function = aotdyn.compile(function, backend="eager", **options)
    calls = recorded if mode == "record" else served
    results[name] = [function(*call).tolist() for call in calls]
if context is not None:
    context.__exit__(None, None, None)
    aotdyn.pack("it.rec", "it.pkg")
stats = package.stats() if package else None
loaded = [m for m in ("aotdyn.record.trace", "sympy", "torch._dynamo") if m in sys.modules]
print(json.dumps([results, stats and [stats.hits, stats.misses], loaded]))
'''


def test_reference_programs_are_served_without_a_miss(tmp_path):
    (tmp_path / "programs.py").write_text(PROGRAMS)
    outputs = {}
    for mode in ("record", "serve", "eager"):
        done = subprocess.run(
            [sys.executable, "programs.py", mode], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        *shown, last = done.stdout.splitlines()
        outputs[mode] = (shown, *json.loads(last))
    shown, results, stats, loaded = outputs["serve"]
    assert results == outputs["eager"][1]
    assert shown == outputs["eager"][0] == ["Hi", "Hi"]
    assert stats[0] >= 17 and stats[1] == 0
    assert loaded == []
