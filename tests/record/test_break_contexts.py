"""Breaks inside contexts that torch, the standard library and NumPy offer."""

import contextlib
import decimal
import io
import threading
import warnings

import numpy
import pytest
import torch

import aotdyn
from tests.record.programs import note

LOCK = threading.Lock()
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


@program
def device(x, log):
    with torch.device("cpu"):
        y = torch.ones(3) + x
        note(log, str(torch.get_default_device()))
        y = y + torch.zeros(3)
    return y * 2


@program
def record_function(x, log):
    with torch.profiler.record_function("part"):
        y = x + 1
        note(log, 1)
        y = y * 2
    return y + 1


@program
def anomaly(x, log):
    with torch.autograd.set_detect_anomaly(True):
        y = x + 1
        note(log, torch.is_anomaly_enabled())
        y = y * 2
    return y + torch.is_anomaly_enabled()


@program
def fork_rng(x, log):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        y = x + torch.rand(3)
        note(log, 1)
        y = y + torch.rand(3)
    return y + torch.rand(3)


@program
def sdpa_kernel(x, log):
    q = x.reshape(1, 1, 3, 1)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        note(log, torch.backends.cuda.flash_sdp_enabled())
        y = y + 1
    note(log, torch.backends.cuda.flash_sdp_enabled())
    return y


@program
def nested_autocast(x, log):
    w = torch.ones(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        y = w @ w
        with torch.autocast("cpu", enabled=False):
            z = y.float() @ w
            note(log, (str(y.dtype), str(z.dtype), torch.is_autocast_enabled("cpu")))
            z = z @ w
        note(log, torch.is_autocast_enabled("cpu"))
        y = w @ w
    return y, z, w @ w, torch.is_autocast_enabled("cpu")


@program
def saved_tensors_hooks(x, log):
    leaf = x.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: note(log, "pack") and t, lambda t: note(log, "unpack") and t
    ):
        y = leaf * leaf
        note(log, "in")
    y.sum().backward()
    return leaf.grad


@program
def lock_and_file(x, log):
    with LOCK, io.StringIO() as out:
        y = x + 1
        print("to the file", file=out)
        note(log, (LOCK.locked(), out.getvalue()))
        y = y * 2
    return y + LOCK.locked(), out.closed


@program
def redirected(x, log):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        y = x + 1
        print("caught")
        y = y * 2
        print("again")
    print("outside")
    return y, out.getvalue()


@program
def warnings_and_decimal(x, log):
    with warnings.catch_warnings(), decimal.localcontext() as context:
        warnings.simplefilter("ignore")
        context.prec = 3
        y = x + 1
        warnings.warn("unseen", stacklevel=1)
        note(log, str(decimal.Decimal(1) / decimal.Decimal(3)))
        y = y * 2
    return y, str(decimal.Decimal(1) / decimal.Decimal(3))


@program
def numpy_state(x, log):
    with numpy.errstate(divide="ignore"):
        y = x * 2
        z = numpy.log(y.numpy() * 0)
        note(log, z.tolist())
        y = y + torch.from_numpy(numpy.ones(3, dtype="float32"))
    return y


@program
def nullcontext_and_closing(x, log):
    class Closed:
        def close(self):
            log.append("closed")

    with contextlib.nullcontext(5) as five, contextlib.closing(Closed()):
        y = x + five
        note(log, five)
        y = y * 2
    return y


@program
def grad_as_function_and_decorator(x, log):
    torch.set_grad_enabled(False)
    y = x * 2
    note(log, torch.is_grad_enabled())
    torch.set_grad_enabled(True)

    @torch.no_grad()
    def inner(v):
        note(log, torch.is_grad_enabled())
        return v * 2

    return inner(y) + torch.is_grad_enabled()


@program
def left_by_an_error(x, log):
    try:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            y = x + 1
            note(log, torch.is_grad_enabled())
            int("no")
    except ValueError:
        y = x + 2
    return y, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")


@program
def entered_by_hand(x, log):
    context = torch.no_grad()
    context.__enter__()
    y = x + 1
    note(log, torch.is_grad_enabled())
    y = y * 2
    context.__exit__(None, None, None)
    return y + torch.is_grad_enabled()


@program
def one_context_twice(x, log):
    context = torch.no_grad()
    with context:
        y = x + 1
        note(log, torch.is_grad_enabled())
    with context:
        y = y * 2
        note(log, torch.is_grad_enabled())
    return y, context.prev, torch.is_grad_enabled()


@pytest.mark.parametrize("name", PROGRAMS)
def test_break_in(agree, name):
    agree(PROGRAMS[name], (torch.arange(3.0), []), (torch.arange(3.0), []))
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


class Noted:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")

    def __exit__(self, kind, error, trace):
        self.log.append(("exit", kind.__name__ if kind else None))


def branching(x, log, big):
    with torch.no_grad(), Noted(log):
        y = x + 1
        if note(log, big) > 3:
            y = y * 2
        y = y - 1
    return y


@aotdyn.disable
def parse(text):
    return int(text)


def raising_late(x, log, text):
    y = x + 1
    try:
        with Noted(log):
            y = y * parse(text)
    except ValueError:
        y = y - 1
        note(log, "handled")
    return y


def served(program, tmp_path, *args):
    """The program served from a package that was recorded with these arguments."""
    with aotdyn.record(tmp_path / "a.rec"):
        aotdyn.compile(program, backend="eager")(*args)
    aotdyn.pack([tmp_path / "a.rec"], tmp_path / "a.pkg")
    return aotdyn.compile(program, backend="eager")


def test_a_miss_in_the_middle_of_a_frame_leaves_its_contexts(tmp_path):
    run = served(branching, tmp_path, torch.ones(2), [], 1)
    with aotdyn.load(tmp_path / "a.pkg", on_miss="error"):
        log = []
        assert torch.equal(run(torch.ones(2), log, 1), torch.ones(2))
        assert log == ["enter", 1, ("exit", None)]
        log.clear()
        with pytest.raises(aotdyn.AotdynError, match="no variant"):
            run(torch.ones(2), log, 5)
        assert log == ["enter", 5, ("exit", "Miss")]
        assert torch.is_grad_enabled()


def test_an_exception_that_was_not_recorded_is_handled(tmp_path):
    run = served(raising_late, tmp_path, torch.ones(2), [], "1")
    with aotdyn.load(tmp_path / "a.pkg", on_miss="error"):
        log = []
        assert torch.equal(run(torch.ones(2), log, "no"), torch.ones(2))
        assert log == ["enter", ("exit", "ValueError"), "handled"]
