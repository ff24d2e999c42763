"""A graph that raises on data: the frame starts over, and what the graph had drawn and changed by
then is as it was before."""

import pytest
import torch
from torch.nn import functional

import aotdyn
from aotdyn.record import hazards

TABLE = torch.arange(12.0).reshape(4, 3)
GOOD, BAD = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 9])


def draws_and_looks_up(x, i, log):
    log.append("start")
    y = functional.dropout(x, 0.5)
    try:
        y = y + TABLE[i]
    except IndexError:
        log.append("handled")
    return y, torch.rand(2)


def changes_and_looks_up(x, i, log):
    log.append("start")
    x.add_(1)
    try:
        y = x + TABLE[i]
    except IndexError:
        log.append("handled")
        y = x * 2
    return y


def changes_a_view(x, i, log):
    x[0].mul_(3)
    x.t()[1:].zero_()
    try:
        return functional.embedding(i, TABLE) + x
    except IndexError:
        log.append("handled")
        return x.clone()


def looks_up_and_changes(x, i, log):
    try:
        y = TABLE[i] + x
        x.add_(1)
    except IndexError:
        log.append("handled")
        x.sub_(1)
        y = x * 2
    return y


def batch_norm_and_loss(x, i, module, log):
    y = module(x)
    log.append("loss")
    try:
        return functional.cross_entropy(y, i)
    except (IndexError, RuntimeError):
        log.append("handled")
        return y.sum()


def raises_outside_of_try(x, i, log):
    log.append(1)
    x.add_(1)
    log.append(2)
    y = TABLE[i] * torch.rand(3)
    log.append(3)
    return y


PROGRAMS = [draws_and_looks_up, changes_and_looks_up, changes_a_view, looks_up_and_changes,
            raises_outside_of_try]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("inference", [False, True])
def test_the_frame_starts_over(agree, program, inference):
    with torch.inference_mode(inference):
        x = torch.ones(3, 3)
        agree(program, (x, GOOD, []), (x, BAD, []), (x, GOOD, []), (x, BAD, []))


def test_running_statistics(agree):
    module = torch.nn.BatchNorm1d(3)
    x = torch.randn(3, 3)
    agree(batch_norm_and_loss, *((x, i, module, []) for i in (GOOD, BAD, GOOD, BAD)))


def test_whoever_has_saved_the_tensor_can_go_backward():
    x, w = torch.ones(3, 3), torch.ones(3, 3, requires_grad=True)
    run = aotdyn.compile(only_looks_up_after_a_change, backend="eager")
    assert run(x, GOOD)
    loss = (x * w).sum()
    version = x._version
    assert not run(x, BAD)
    assert x._version == version + 2
    x.sub_(1).sub_(1)
    torch._C._autograd._unsafe_set_version_counter((x,), (version,))
    loss.backward()


def only_looks_up_after_a_change(x, i):
    x.add_(1)
    try:
        y = TABLE[i]
    except IndexError:
        x.add_(1)
        return False
    return True


ROWS = hazards.COPIED_BYTES // 12 + 1


def changes_and_looks_up_in_a_context(x, i, log):
    x.add_(1)
    with torch.no_grad():
        return x + TABLE[i]


def changes_and_looks_up_before_the_end(x, i, log):
    x.add_(1)
    try:
        return x + TABLE[i]
    finally:
        log.append("end")


def adds_within(x, i, log):
    x.add_(1)
    return x + TABLE[i]


def handles_what_it_calls(x, i, log):
    try:
        with torch.no_grad():
            return adds_within(x, i, log)
    except IndexError:
        log.append("handled")
        return x


@pytest.mark.parametrize(
    "program, breaks",
    # The exception that goes on behind `finally` is the second break.
    [(changes_and_looks_up, 1), (changes_and_looks_up_before_the_end, 2),
     (handles_what_it_calls, 1)],
)  # fmt: skip
def test_large_tensors_are_not_copied(agree, program, breaks):
    """The operator runs on its own where the program would see that it raises."""
    x = torch.ones(ROWS, 3)
    calls = [(x, i, []) for i in (GOOD[:1], BAD[2:], GOOD[:1], BAD[2:])]
    agree(program, *calls, breaks=breaks)


def test_changes_that_autograd_records_are_not_copied(agree):
    def program(w, i):
        x = w * 1
        return changed_within(x, i)

    w = torch.ones(1, 3, requires_grad=True)
    agree(program, (w, GOOD[:1]), (w, BAD[2:]), (w, GOOD[:1]), breaks=None)


@aotdyn.disable
def changed_within(x, i):
    return RECORDED(x, i)


RECORDED = aotdyn.compile(lambda x, i: changes_and_looks_up(x, i, []), backend="eager")


def test_contexts_of_torch_that_were_entered_before(agree):
    def fn(x):
        with torch.no_grad():
            aotdyn.graph_break()
            ordered, places = torch.sort(x)
            ordered[..., -1:] = 0
            return ordered.scatter(0, places, ordered)

    agree(fn, (torch.tensor([2.0, 1.0, 3.0]),), breaks=1, graphs=2)


def test_nobody_sees_that_it_raises(agree):
    """The error leaves the frame: nothing has to be undone."""
    x = torch.ones(ROWS, 3)
    calls = [(x, i, []) for i in (GOOD[:1], BAD[2:], GOOD[:1])]
    agree(changes_and_looks_up_in_a_context, *calls, breaks=0)


def has_effects_before_it_fails(x, i, log):
    log.append("start")
    x.add_(1)
    log.append("changed")
    y = TABLE[i] + x
    log.append("done")
    return y


@pytest.mark.parametrize("recorded", [False, True])
def test_effects_before_an_error_that_leaves_the_frame(agree, recorded):
    def program(w, i, log):
        return has_effects_before_it_fails(w * 1, i, log)

    x = torch.ones(ROWS, 3, requires_grad=recorded)
    calls = [(x, i, []) for i in (GOOD[:1], BAD[2:], GOOD[:1])]
    if recorded:
        agree(program, *((x[:1].detach().requires_grad_(), i, log) for _, i, log in calls))
    else:
        agree(has_effects_before_it_fails, *calls, breaks=1)
