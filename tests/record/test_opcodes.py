"""Every opcode of the supported CPython is handled or refused with a reason."""

import dis

import pytest

from aotdyn.record.opcodes import HANDLERS, REFUSED
from aotdyn.record.opcodes.table import named
from aotdyn.record.reasons import REASONS, hint, message


def test_every_opcode_is_accounted_for():
    assert set(HANDLERS) | set(REFUSED) == set(dis.opmap)
    assert not set(HANDLERS) & set(REFUSED)


def test_refusals_have_reasons_of_the_table():
    for reason, detail in REFUSED.values():
        assert reason in REASONS
        assert detail
        assert message(reason, detail).endswith(detail)
        assert hint(reason)


def test_a_handler_is_named_like_its_opcode():
    for name, handler in HANDLERS.items():
        if handler.__name__.isupper():
            assert handler.__name__ == name


def test_the_table_takes_known_names_once():
    with pytest.raises(ValueError, match="no opcode"):
        named("LOAD_NOTHING", lambda: None)
    with pytest.raises(ValueError, match="two handlers"):
        named("LOAD_FAST", lambda: None)


def test_stack_effects_match_the_interpreter(agree, monkeypatch):
    """After each handler the stack is as deep as CPython says (calls are checked as one group)."""
    from aotdyn.record import interpreter

    step = interpreter.step
    checked = set()

    def checking(t, frame, ins):
        before = len(frame.stack)
        outcome = step(t, frame, ins)
        if ins.opname in ("PRECALL", "CALL", "KW_NAMES", "EXTENDED_ARG"):
            return outcome
        if isinstance(outcome, int) or outcome is None:
            arg = ins.arg if ins.opname in _WITH_ARG else None
            effect = dis.stack_effect(dis.opmap[ins.opname], arg, jump=isinstance(outcome, int))
            assert len(frame.stack) - before == effect, ins
            checked.add(ins.opname)
        return outcome

    monkeypatch.setattr(interpreter, "step", checking)

    def program(x, items, n=3):
        total = x * 0
        for i, item in enumerate(items):
            if i % 2 and item is not None:
                total += item[0] if isinstance(item, tuple) else item
            else:
                total = total - (item or 1)
        a, *b = [*items, n]
        d = {"k": a, **{"m": len(b)}}
        text = f"{n!r:>4}{d['m']}"
        match d:
            case {"k": int(k), "m": 0 | 1 | 2 | 3 | 4 as m}:
                total = total + k + m
        try:
            d["none"]
        except KeyError as error:
            text += str(error)
        return total, text, b[::2], {n, 1} & {3}, (lambda y, /, *, z=n: y + z)(1), not b

    import torch

    agree(program, (torch.randn(2), [1, (2,), None, 4]), breaks=0)
    assert len(checked) >= 40


_WITH_ARG = {name for name, op in dis.opmap.items() if op >= dis.HAVE_ARGUMENT}
