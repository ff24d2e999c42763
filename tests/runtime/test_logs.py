"""`AOTDYN_LOGS`, and `aotdyn.explain`."""

import os
import subprocess
import sys

import torch

import aotdyn

PROGRAM = """
import torch, aotdyn

@aotdyn.compile(backend="eager")
def program(x, n):
    y = x * n
    print("shown")
    return y + 1

program(torch.ones(2), 2)
program(torch.ones(2), 3)
"""

EXPECTED = {
    "graph_code": "def graph(x):",
    "graph_sizes": "x: float32[2]",
    "guards": "EQUALS: n == 2",
    "recompiles": "n == 2",
    "graph_breaks": "print",
    "bytecode": "RESUME FUNCTION",
    "output_code": "def check(x, n):",
    "trace": "guards",
}


def run(categories: str) -> subprocess.CompletedProcess:
    env = {**os.environ, "AOTDYN_LOGS": categories}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "shown\nshown\n"
    return done


def test_every_category_prints_what_its_name_says():
    shown = run(",".join(EXPECTED)).stderr
    for category, text in EXPECTED.items():
        lines = [line for line in shown.splitlines() if f"[aotdyn {category}]" in line]
        assert any(text in line for line in lines), category
    bytecode = [line for line in shown.splitlines() if "[aotdyn bytecode]" in line]
    assert any("ORIGINAL" in line for line in bytecode)
    assert any("REPLACED BY" in line for line in bytecode)


def test_unknown_categories_are_named_and_silence_is_the_default():
    assert "no_such_thing" in run("no_such_thing").stderr
    assert run("").stderr == ""


def helper(x):
    return x.sin()


def explained(x, n):
    y = helper(x) * n
    print("shown")
    return y.cos()


def test_explain_tells_graphs_guards_and_breaks(capsys):
    found = aotdyn.explain(explained, torch.ones(2), 3)
    assert found.graph_count == 2
    assert found.op_count == 3
    assert [cause.reason for cause in found.breaks] == ["builtin_call"]
    assert f"{__file__}:{explained.__code__.co_firstlineno + 2}" in found.breaks[0].stack[0]
    text = str(found)
    assert "2 graphs with 3 operations" in text
    assert "n == 3" in text
    assert "def graph(x):" in text
    assert capsys.readouterr().out == "shown\n"


def test_explain_lists_every_place_of_a_break_once():
    def inner(x):
        print("inner")
        return x.cos().sin()

    def outer(x, n):
        for _ in range(n):
            x = inner(x + 1)
        return x

    sites = {site.reason: site for site in aotdyn.explain(outer, torch.ones(2), 3).break_sites}
    site = sites["builtin_call"]
    assert [place.rpartition(" in ")[2] for place in site.stack] == ["outer", "inner"]
    assert (site.hits, site.variants, site.before, site.after) == (3, 3, 0, 2)
    text = "\n".join(site.lines())
    assert f"break at {site.stack[1]}: builtin_call: print" in text
    assert f"  called at {site.stack[0]}" in text
    assert "hit 3 times; variants that end here: 3; operations before: 0, after: 2" in text
    assert site.hint in text
