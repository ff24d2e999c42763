"""Branches on tensors that only raise on one side stay in the graph: they raise as in plain Python,
with all that was done by then, and nothing that comes after. PYTEST_DONT_REWRITE: the programs'
assertions are Python's own."""

import pytest
import torch

import aotdyn
from tests.record.programs import Programs, note, outcome_of

program = Programs()
GOOD, BAD = torch.arange(1.0, 4.0), torch.tensor([1.0, -1.0, 2.0])
BOTH = [(GOOD,), (BAD,), (GOOD * 2,)]
LOGGED = [(GOOD, []), (BAD, []), (GOOD * 2, [])]


@program(*BOTH)
def p_assert(x):
    assert (x > 0).all(), f"not positive: {x.shape}"
    return x + 1


@program(*BOTH)
def p_asserts_joined(x):
    y = x * 2
    assert torch.isfinite(y).all() and not (x < 0).any()
    return y + 1


@program(*BOTH)
def p_raise(x):
    if (x < 0).any():
        raise ValueError("negative: %s" % x.shape[0]) from None
    return x.sqrt()


@program(*BOTH)
def p_otherwise_raise(x):
    y = x.cumsum(0)
    if y[1] > 0:
        z = y * 2
    else:
        raise KeyError("sum", 1)
    return z


@program(*BOTH)
def p_numbers(x):
    assert x.sum() - 2
    if x.min() < 0:
        raise RuntimeError
    return x


COUNTS = [(torch.tensor([1, 5, 3]),), (torch.tensor([1, 500, 3]),), (torch.tensor([2, 2, 2]),)]


@program(*COUNTS)
def p_item_in_an_assertion(counts):
    assert counts.max().item() <= 9 + counts.shape[0], f"too many: {counts.max().item()}"
    return counts * 2


@program(*COUNTS)
def p_item_is_told(counts):
    n = (counts == 2).sum().item()
    if n != 0:
        raise ValueError(f"{n} twos")
    return counts * 2


@program(*COUNTS)
def p_item_of_before(counts):
    n = int(counts.max())
    counts = counts.add_(100)
    if 100 < n:
        raise ValueError(n)
    return counts


# The tensor holds another number than Python's 0.1.
@program((torch.tensor(0.1),), (torch.tensor(0.0),))
def p_item_is_compared_as_python_does(x):
    if x.item() <= 0.1:
        raise ValueError("small")
    return x * 2


@program(*COUNTS[::2], breaks=1)
def p_item_that_is_used(counts):
    n = counts.max().item()
    if n > 100:
        raise ValueError(n)
    return counts * n


@program(*COUNTS[::2], breaks=1)
def p_verdict_that_is_used(counts):
    small = counts.max().item() < 9
    if not small:
        raise ValueError("large")
    return counts, small


@program(*BOTH)
def p_torch_assert(x):
    torch._assert(x.shape[0] == 3, "sizes")
    torch._assert((x > 0).all(), "values")
    return x + 1


@program(*LOGGED)
def p_what_was_done_stays(x, log):
    log.append("before")
    x.mul_(2)
    noise = torch.rand(3)
    if (x < 0).any():
        raise ValueError("negative")
    log.append("after")
    x.add_(noise)
    return x, torch.rand(2), log


def checked(x):
    if not (x > 0).all():
        raise ValueError("negative")
    return x + 1


@program(*BOTH)
def p_in_functions(x):
    return checked(checked(x) * 2)


@program(*BOTH)
def p_in_loops(x):
    for part in x:
        assert part > -0.5
        x = x + part
    return x


class Bounded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        assert (x.abs() < 1.5).any(), "out of bounds"
        return x * self.count


@program((GOOD.bool(), GOOD), (~GOOD.bool(), GOOD), (GOOD.bool(), BAD), breaks=None)
def p_conditions_that_come_in(flags, x):
    flag = flags[0]
    assert flag
    flag.zero_()
    return x + flags


@program((torch.tensor(True), GOOD), (torch.tensor(False), GOOD))
def p_a_condition_that_is_changed(flag, x):
    assert flag
    flag.logical_not_()
    return x, flag


@program(*LOGGED, breaks=None)
def p_around_breaks(x, log):
    assert x[0] > 0
    note(log, "one")
    if x[1] < 0:
        raise ValueError("second")
    note(log, "two")
    return x, log


@program(*LOGGED, breaks=None)
def p_handled_in_the_frame(x, log):
    try:
        assert (x > 0).all()
    except AssertionError:
        log.append("caught")
    with torch.no_grad():
        y = x * 2
    try:
        y = checked(y)
    finally:
        log.append("finally")
    return y, log


@program(*BOTH, breaks=None)
def p_both_raise(x):
    if (x > 0).all():
        raise ValueError("positive")
    else:
        raise KeyError("negative")


@program((torch.ones(400_000),), (-torch.ones(400_000),), breaks=None)
def p_what_is_too_large_to_undo(x):
    x.mul_(2)
    assert x[0] > 0
    return x.sum()


@program((torch.ones(3, 2),), breaks=None)
def p_more_than_one_value(x):
    assert x > 0
    return x


test_agrees = program.test()


def test_modules():
    module, traced = Bounded(), aotdyn.compile(Bounded(), backend="eager", fullgraph=True)
    for x in (GOOD, GOOD + 1, GOOD - 1):
        expected, found = outcome_of(module, x), outcome_of(traced, x)
        assert str(found) == str(expected)


def test_fullgraph():
    traced = aotdyn.compile(checked, backend="eager", fullgraph=True)
    assert torch.equal(traced(GOOD), GOOD + 1)
    with pytest.raises(ValueError, match="negative"):
        traced(BAD)
    assert torch.equal(traced(GOOD), GOOD + 1)


def test_gradients():
    def loss(x, w):
        y = (x * w).sum()
        if not torch.isfinite(y):
            raise FloatingPointError("loss")
        return y * 2

    traced = aotdyn.compile(loss, backend="eager", fullgraph=True)
    w = torch.ones(3, requires_grad=True)
    traced(GOOD, w).backward()
    assert torch.equal(w.grad, GOOD * 2)
    with pytest.raises(FloatingPointError, match="loss"):
        traced(GOOD / 0, w)


@pytest.mark.slow
def test_compiled():
    traced = aotdyn.compile(checked, backend="inductor")
    assert torch.equal(traced(GOOD), GOOD + 1)
    with pytest.raises(ValueError, match="negative"):
        traced(BAD)
