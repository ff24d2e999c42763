"""The identity of code and of variants: the same in every process and place, and no coarser."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from aotdyn.package.guard import Guard
from aotdyn.package.point import Point
from aotdyn.package.reference import Import, Literal
from aotdyn.package.source import Local
from aotdyn.package.variant import Break, EntryKey, Variant, code_hash

PROGRAM = """
def f(x, n=1, *args, key=2, **kwargs):
    '''Docstring.'''
    def inner(y):
        return [y + n + value for value in x if value not in {'one', 'two', 3, (4, 5)}]
    try:
        return inner(x) + (1, 2.5, -0.0, 1j, b'b', ..., None, True, ('a', ('b',)))
    except ValueError:
        return lambda z: z ** 2
"""


def hashed(text, file="a.py", name="f"):
    namespace = {}
    exec(compile(textwrap.dedent(text), file, "exec"), namespace)
    return code_hash(namespace[name].__code__)


def test_moved_code_has_the_same_hash():
    expected = hashed(PROGRAM)
    assert hashed(PROGRAM, file="/elsewhere/b.py") == expected
    assert hashed("\n\nimport os\n\n" + PROGRAM) == expected
    nested = "class A:\n" + textwrap.indent(PROGRAM, "    ") + "\nf = A.f\n"
    assert hashed(nested) == expected
    commented = PROGRAM.replace("    try:", "    # a comment\n\n    try:")
    assert hashed(commented) == expected


CHANGES = {
    "constant": ("n + value", "n + value + 1"),
    "constant of another type": ("(1, 2.5", "(True, 2.5"),
    "int to float": ("(1, 2.5", "(1.0, 2.5"),
    "sign of zero": ("-0.0", "0.0"),
    "nested constant": ("('b',)", "('c',)"),
    "bytes to text": ("b'b'", "'b'"),
    "member of a set": ("'two'", "'twö'"),
    "member of a set of another type": ("'two', 3,", "'two', 3.0,"),
    "tuple in a set": ("(4, 5)", "(4, 6)"),
    "string in nested code": ("'one'", "'ONE'"),
    "number in a lambda": ("z ** 2", "z ** 3"),
    "name of a local": ("value", "item"),
    "name of a parameter": ("f(x,", "f(y,"),
    "name of a global": ("ValueError", "TypeError"),
    "name of nested code": ("inner", "nested"),
    "kind of parameter": ("n=1, *args, key", "n=1, key=2, *args, other"),
    "keyword only": ("*args, key", "*, key"),
    "docstring": ("Docstring", "docstring"),
    "operator": ("n + value for", "n - value for"),
    "exception handler": ("except ValueError:", "finally:"),
    "generator": ("return inner(x)", "yield inner(x)"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_code_has_another_hash(change):
    changed = PROGRAM.replace(*change)
    assert changed != PROGRAM and hashed(changed) != hashed(PROGRAM)


def test_constants_keep_their_places():
    a = hashed("def f(): return ('ab', 'c')")
    assert a != hashed("def f(): return ('a', 'bc')")
    assert a != hashed("def f(): return (('ab',), 'c')")
    assert a != hashed("def f(): return ('ab',), 'c'")
    assert hashed("def f(x): return x in {1, 2}") != hashed("def f(x): return x in (1, 2)")


def test_running_code_does_not_change_its_hash():
    def f(n):
        total = 0
        for i in range(n):
            total += i * 2
        return total

    before = code_hash(f.__code__)
    for _ in range(100):  # the interpreter rewrites the bytecode that it runs
        f(100)
    assert code_hash(f.__code__) == before
    assert f.__code__ is not f.__code__.replace() and code_hash(f.__code__.replace()) == before


def test_odd_constants_count_by_what_they_show():
    def f():
        return 1

    class Odd:
        def __init__(self, text):
            self.text = text

        def __repr__(self):
            return self.text

    def odd(text):
        return code_hash(f.__code__.replace(co_consts=(None, Odd(text))))

    assert odd("a") == odd("a") != odd("b")


def test_hashes_are_the_same_in_every_process():
    program = (
        f"from aotdyn.package.variant import code_hash\nnamespace = {{}}\n"
        f"exec(compile({PROGRAM!r}, 'a.py', 'exec'), namespace)\n"
        "print(code_hash(namespace['f'].__code__))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in "12"
    }
    assert found == {hashed(PROGRAM)}


VARIANT = Variant(
    EntryKey("m", "f", "h"), "check", "body", {"a": Import("m", "g"), "b": Literal(1)}, (), "g1"
)


def test_the_id_of_a_variant_is_of_what_it_does():
    same = [
        replace(VARIANT, guards=(Guard("LENGTH", Local("x"), 1),)),
        replace(VARIANT, file="a.py", line=3),
        replace(VARIANT, breaks=Break("r", "d", "h", ())),
        replace(VARIANT, names=dict(reversed(VARIANT.names.items()))),
    ]
    assert {variant.id for variant in same} == {VARIANT.id}
    others = [
        replace(VARIANT, check="other"),
        replace(VARIANT, body="other"),
        replace(VARIANT, check="body", body="check"),
        replace(VARIANT, entry=EntryKey("m", "f", "other")),
        replace(VARIANT, entry=EntryKey("m", "f", "h", Point(0))),
        replace(VARIANT, names={**VARIANT.names, "a": Import("m", "h")}),
        replace(VARIANT, names={**VARIANT.names, "b": Literal(True)}),
        replace(VARIANT, names={**VARIANT.names, "c": Literal(1)}),
    ]
    assert len({VARIANT.id, *(variant.id for variant in others)}) == len(others) + 1


def test_keys_as_text():
    key = EntryKey("m", "Net.forward", "abc")
    assert str(key) == "m:Net.forward#abc"
    assert str(replace(key, point=Point(14, (True,)))) == "m:Net.forward#abc@14"
