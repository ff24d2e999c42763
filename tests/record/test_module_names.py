"""Names of modules that the program writes: from within the module, and from outside."""

import sys

import torch

from tests.record import programs
from tests.record.programs import Programs, note

program = Programs()
THIS = sys.modules[__name__]
counted = 0


def bump():
    global counted
    counted += 1
    return counted


@program()
def p_seen_by_functions_of_the_module(x):
    THIS.counted = 5
    first = bump()
    THIS.counted += 10
    THIS.kept = x * 2
    return first, counted, bump(), THIS.kept, hasattr(THIS, "kept"), getattr(THIS, "nope", 3)


@program()
def p_another_module(x):
    programs.kept = [x]
    programs.kept.append(2)
    from tests.record.programs import kept

    return kept, programs.kept is kept


@program()
def p_kept_when_an_exception_follows(x):
    THIS.counted = 2
    try:
        THIS.counted = 9
        raise ValueError
    except ValueError:
        return bump(), x


@program()
def p_known_as_a_dict(x):
    names = vars(THIS)
    before = names["counted"] >= 0
    THIS.counted = 4
    return before, names["counted"], bump(), x


@program(breaks=1)
def p_looked_at_as_a_dict_later(x):
    names = vars(THIS)
    THIS.counted = 4
    return names["counted"], bump(), x


@program(breaks=1)
def p_written_before_a_break(x):
    log = []
    THIS.counted = 1
    note(log, THIS.counted)
    return bump(), counted, log, x


@program(breaks=1)
def p_read_as_a_dict_afterwards(x):
    THIS.counted = 3
    return vars(THIS)["counted"], THIS.__dict__["counted"], x


@program(breaks=1)
def p_taken_away(x):
    THIS.fresh = x
    held = THIS.fresh is x
    del THIS.fresh
    return held, hasattr(THIS, "fresh")


@program(breaks=2)
def p_of_python_itself(x):
    before = sys.ps9 = 1
    del sys.ps9
    return before, hasattr(sys, "ps9"), x


test_agrees = program.test()


def test_written_back(agree):
    def fn(x):
        THIS.counted = 7
        return x + 1

    THIS.counted = 0
    agree(fn, (torch.ones(3),), breaks=0)
    assert counted == 7
