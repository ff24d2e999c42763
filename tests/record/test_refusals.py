"""What is refused: each reason of the table is met by a program, and told with the place in the
user's code, the frames that lead there and a hint."""

import builtins
import contextlib
import enum
import glob
import importlib
import io
import itertools
import math
import os
import random
import re
import sys
from pathlib import Path

import numpy
import pytest
import torch
from torch.utils.checkpoint import checkpoint

import aotdyn
from aotdyn.record import reasons, tracer
from aotdyn.runtime import logs
from tests.record.programs import note

HERE = Path(__file__)
X = torch.arange(3.0) + 1

# (reason, function, arguments of its calls); the line that is refused says `# here`.
ROWS: list = []


def refused(reason: str, *calls: tuple):
    def add(function):
        row = reason, function, calls or ((X.clone(),),)
        ROWS.append(pytest.param(*row, id=f"{reason}-{function.__name__[2:]}"))
        return function

    return add


@refused("requested")
def r_graph_break(x):
    aotdyn.graph_break()  # here
    return x + 1


@refused("disabled")
def r_disabled(x):
    return note([], x)  # here


@refused("tensor_branch")
def r_branch(x):
    return x + 1 if x.sum() > 0 else x  # here


@refused("tensor_value")
def r_item(x):
    return x.sum().item()  # here


@refused("data_dependent")
def r_nonzero(x):
    return x.nonzero()  # here


@refused("varies", *((X.clone(), f"name {'x' * i}") for i in range(20)))
def r_varies(x, name):
    return x + len(name)  # here


@refused("live_iterator", (X.clone(), map(float, [1, 2])))
def r_iterator(x, values):
    for value in values:  # here
        x = x + value
    return x


@refused("builtin_call")
def r_print(x):
    print(x.shape)  # here
    return x


@refused("foreign_call")
def r_glob(x):
    return glob.glob("no such file"), x  # here


@refused("unknown_call")
def r_bound_method_of_c(x):
    return NEXT(), x  # here


NEXT = itertools.count().__next__


@refused("recursion")
def r_recursion(x, n=200):
    return x if n == 0 else r_recursion(x + 1, n - 1)  # here


@refused("long_trace")
def r_long(x):
    for i in range(200):
        x = x + i  # here
    return x


@refused("bad_arguments")
def r_misfit(x):
    return torch.func.functional_call(LINEAR, [1], (x,))  # here


LINEAR = torch.nn.Linear(3, 3)


@refused("autograd")
def r_backward(x):
    x.clone().requires_grad_().sum().backward()  # here
    return x


@refused("inner_gradient")
def r_retained(x):
    (x.clone().requires_grad_() * 2).retain_grad()  # here
    return x


@refused("checkpoint")
def r_checkpoint(x):
    return checkpoint(torch.sin, x, use_reentrant=False, debug=True)  # here


@refused("lazy")
def r_lazy(x):
    return torch.nn.LazyLinear(2)  # here


@refused("layout")
def r_layout(x):
    return x.to_sparse()  # here


class Box:
    def __init__(self, value):
        self.value = value


@refused("nested")
def r_nested(x):
    return checkpoint(lambda a: Box(a * 2), x, use_reentrant=False).value  # here


@refused("torch_refused")
def r_resize(x):
    return x.clone().resize_(2)  # here


@refused("late_failure", (torch.ones(1 << 19), torch.tensor([0])))
def r_late(x, index):
    x.add_(1)
    try:
        return x[index]  # here
    except IndexError:
        return x


@refused("fake_failed")
def r_shapes(x):
    return x @ torch.ones(5)  # here


@refused("random")
def r_random(x):
    return x * random.random()  # here


@refused("random")
def r_randint(x):
    return x * random.randint(1, 5)  # here


@refused("unknown_type")
def r_array(x):
    return ARRAY[0], x  # here


ARRAY = numpy.ones(3000)


@refused("unknown_operation")
def r_identity_of_numbers(x):
    a, b = 1000, int("1000")
    return a is b, x  # here


@refused("attribute")
def r_attribute(x):
    return x._backward_hooks  # here


class Unset:
    __slots__ = ("a",)

    def __getattr__(self, name):
        raise AttributeError(name)


@refused("missing_attribute", (X.clone(), Unset()))
def r_slot(x, unset):
    return unset.a, x  # here


@refused("mutation")
def r_mutation(x):
    x._backward_hooks = None  # here
    return x


class Described:
    def __get__(self, instance, owner):
        return 1


def of_a_local_class():
    class Local:
        described = Described()

    return Local()


@refused("no_source", (X.clone(), of_a_local_class()))
def r_no_source(x, local):
    return local.described, x  # here


@refused("reconstruct")
def r_reconstruct(x):
    values = itertools.cycle([1, 2])
    next(values)  # here
    aotdyn.graph_break()
    return next(values), x


@refused("hash")
def r_hash(x):
    return {NUMBER: x}  # here


NUMBER = numpy.longdouble(1.5)


class OwnCheck(type):
    __instancecheck__ = staticmethod(lambda instance: True)


class Checked(metaclass=OwnCheck):
    pass


@refused("subclass")
def r_subclass(x):
    return isinstance(x.shape, Checked), x  # here


class Ended:
    def __del__(self):
        pass


def ended():
    return Ended()


@refused("finalizer")
def r_finalizer(x):
    return x, ended()  # here


@refused("builtins")
def r_builtins(x):
    shown = builtins.oct
    try:
        builtins.oct = hex  # here
        return oct(20), x
    finally:
        builtins.oct = shown


HOOKED = torch.nn.Linear(3, 3)
HOOKED.register_full_backward_hook(lambda *args: None)


@refused("lifetimes")  # here
def r_lifetimes(x):
    return sys.getrefcount(x), x


@refused("locals")  # here
def r_locals(x):
    first = locals()
    print("break")
    return x, first is locals(), sorted(first)


@refused("hooks")
def r_hooks(x):
    return HOOKED(x)  # here


@refused("exception")
def r_exception(x):
    raise ValueError(x.shape)  # here


@refused("exception_handling")
def r_handling(x):
    try:
        raise ValueError  # here
    except ValueError:
        aotdyn.graph_break()
    return x


async def coroutine():
    pass


@refused("generator")
def r_coroutine(x):
    coroutine().close()  # here
    return x


@refused("opcode")
def r_opcode(x):
    global GONE
    GONE = 1
    del GONE  # here
    return x


@refused("import")
def r_import(x):
    import this_module_is_not_there  # here

    return this_module_is_not_there, x


@refused("class_body")
def r_class(x):
    class A(enum.Enum):  # here
        a = 1

        def __new__(cls, value):
            made = object.__new__(cls)
            made._value_ = value
            return made

    return A.a.value, x


def _told(function, calls):
    """What the log says, and the explanation."""
    told = []
    compiled = aotdyn.compile(function, backend="eager")
    logs.sinks["graph_breaks"].append(told.append)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
        for args in calls:
            compiled(*args)
    logs.sinks["graph_breaks"].pop()
    return "\n".join(told)


def _refused_line(function) -> int:
    """The first line that says `# here` in or after a function."""
    first = function.__code__.co_firstlineno
    lines = enumerate(HERE.read_text().split("\n"), 1)
    return next(n for n, line in lines if n >= first and line.endswith("# here"))


@pytest.mark.parametrize(("reason", "function", "calls"), ROWS)
def test_a_refusal_is_told_with_place_and_hint(monkeypatch, reason, function, calls):
    if reason == "long_trace":
        monkeypatch.setattr(tracer, "INSTRUCTION_LIMIT", 500)
    text, hint = reasons.REASONS[reason]
    told = _told(function, calls)
    assert text in told
    assert f"hint: {hint}" in told
    assert f"{HERE}:{_refused_line(function)} in " in told, told


# Reasons that no program alone brings about, and where they are tested.
ELSEWHERE = {
    "recompile_limit": "tests/record/test_recompiles.py",
    "mode": "tests/record/test_break_frames.py",
    "internal": "tests/runtime/test_compiled.py",
}


def test_every_reason_is_met():
    assert {row.values[0] for row in ROWS} | set(ELSEWHERE) == set(reasons.REASONS)


def test_reasons_in_the_code_are_those_of_the_table():
    root = os.path.dirname(aotdyn.__file__)
    used = set()
    for path in glob.glob(f"{root}/**/*.py", recursive=True):
        used |= set(re.findall(r'(?:GraphBreak|SkipFrame)\(\s*"(\w+)"', Path(path).read_text()))
    assert used <= set(reasons.REASONS)


@pytest.mark.parametrize("reason", reasons.REASONS)
def test_a_hint_says_what_to_do(reason):
    text, hint = reasons.REASONS[reason]
    assert len(hint.split()) >= 3 and hint != text
    assert reasons.message(reason, "detail") == f"{text}: detail"


# -- inlined frames ------------------------------------------------------------


class Inner(torch.nn.Module):
    def forward(self, x):
        return self.log(x) * 2

    def log(self, x):
        print("shape", x.shape)
        return x


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x + 1)


def test_an_explanation_shows_the_frames_that_lead_there():
    model = Outer()
    with contextlib.redirect_stdout(io.StringIO()):
        explanation = aotdyn.explain(model, X.clone())
    line = Inner.log.__code__.co_firstlineno + 1
    site = explanation.break_sites[0]
    assert site.stack[-1] == f"{HERE}:{line} in log"
    named = [place.rpartition(" in ")[2] for place in site.stack]
    assert named[0] == "forward" and named[-2:] == ["forward", "log"]
    text = str(explanation)
    assert f"break at {HERE}:{line} in log" in text
    assert f"called at {HERE}:{Inner.forward.__code__.co_firstlineno + 1} in forward" in text
    assert f"hint: {reasons.REASONS['builtin_call'][1]}" in text


def test_a_break_in_a_comprehension_of_a_callee_names_them_all():
    def callee(values):
        return [math.floor(value.item()) for value in values]

    def program(x):
        return callee([x[0], x[1]])

    site = aotdyn.explain(program, X.clone()).break_sites[0]
    named = [place.rpartition(" in ")[2] for place in site.stack]
    assert named == ["program", "callee", "<listcomp>"]


def test_a_frame_that_is_skipped_says_where_and_why():
    def program(x):
        kept = Ended()
        return x, kept

    explanation = aotdyn.explain(program, X.clone())
    (reason,) = explanation.skipped.values()
    line = program.__code__.co_firstlineno + 1
    assert f"(at {HERE}:{line} in program)" in reason
    assert reason.endswith(reasons.REASONS["finalizer"][1])


def test_fullgraph_raises_with_place_and_hint():
    def program(x):
        return print(x.shape)

    with pytest.raises(aotdyn.Unsupported) as raised:
        aotdyn.compile(program, backend="eager", fullgraph=True)(X.clone())
    line = program.__code__.co_firstlineno + 1
    assert f"at {HERE}:{line} in program" in str(raised.value)
    assert "hint: " in str(raised.value)


def test_elsewhere_is_there():
    root = Path(importlib.import_module("tests.record.programs").__file__).parents[2]
    for path in ELSEWHERE.values():
        assert (root / path).exists()
