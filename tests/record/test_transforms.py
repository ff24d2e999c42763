"""Derivatives of torch.func in and against a direction, and loops over tensors, recorded and served
from a package."""

import subprocess
import sys

import pytest
import torch
from torch import func
from torch._higher_order_ops.while_loop import while_loop

import aotdyn

layer = torch.nn.Linear(4, 4)


def in_a_direction(x):
    return func.jvp(lambda y: (y.sin() * y).sum(1), (x,), (x * 2,))


def with_what_comes_along(x):
    def both(y, z):
        return (y.sin() * z, z), y.cos()

    return func.jvp(both, (x, x * 2), (x * 3, x), has_aux=True)


def pulled_back(x):
    y, pull = func.vjp(torch.sin, x)
    return y, pull(torch.ones_like(y))


def pulled_back_twice(x):
    w = x * 3
    y, pull = func.vjp(lambda z, k: {"a": (z * w).sin(), "b": k.sum() * z}, x, x * 2)
    return y, pull(y), pull({"a": x, "b": x})


def pulled_back_with_more(x):
    y, pull, more = func.vjp(lambda z: (z.sin(), z * 2), x, has_aux=True)
    return y, pull(y), more


def name_bound_anew(x):
    w = x * 1
    y, pull = func.vjp(lambda z: z * w, x)
    w = w + 1
    return y, pull(y)


def another_structure(x):
    y, pull = func.vjp(torch.sin, x)
    try:
        return pull((y, y))
    except RuntimeError as error:
        return str(error)[:40]


def hessian_times_vector(x):
    return func.jvp(func.grad(lambda z: (z**3).sum()), (x,), (x.cos(),))[1]


def mapped(x):
    def one(row):
        y, pull = func.vjp(lambda z: z.sin() * z, row)
        return pull(y)[0]

    return torch.vmap(one)(x)


def without_gradients(x):
    with torch.no_grad():
        y, pull = func.vjp(lambda z: z.sin() * z, x)
        return y, pull(y), y.requires_grad


def of_parameters(x):
    params = {name: param.detach() for name, param in layer.named_parameters()}
    y, pull = func.vjp(lambda p: func.functional_call(layer, p, (x,)), params)
    return pull(y)[0]


WHOLE = [in_a_direction, with_what_comes_along, pulled_back, pulled_back_twice,
         pulled_back_with_more, name_bound_anew, another_structure, hessian_times_vector, mapped,
         without_gradients, of_parameters]  # fmt: skip


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_derivatives(agree, program, requires_grad):
    agree(program, (torch.randn(3, 4, requires_grad=requires_grad),), graphs=1, breaks=0)


def linearized(x):
    w = x.cos()
    y, along = func.linearize(lambda z, k: {"a": (z * w).sin(), "b": k * z}, x, x * 2)
    return y, along(x, y["a"]), along(w, w)


def test_linear_approximations(agree):
    agree(linearized, (torch.randn(3, 4),), graphs=1, breaks=0)


def direction_that_does_not_fit(x):
    y, along = func.linearize(torch.sin, x)
    try:
        return along(x[0])
    except RuntimeError as error:
        return str(error)


def linear_with_gradients(x):
    y, along = func.linearize(lambda z: layer(z), x)
    return along(x)


def leaves_the_frame(x):
    y, pull = func.vjp(torch.sin, x)
    aotdyn.graph_break()
    return y, pull(y)


def changed_meanwhile(x):
    z = x * 1
    y, pull = func.vjp(lambda v: v.exp() * 2, z)
    z.add_(1)
    return y, pull(y)


def of_random_numbers(x):
    y, pull = func.vjp(lambda z: z * torch.rand(4), x)
    return y, pull(y), torch.rand(2)


def with_an_effect(x):
    seen = []
    y, pull = func.vjp(lambda z: (seen.append(1), z * 2)[1], x)
    return y, pull(y), seen


BROKEN = [leaves_the_frame, changed_meanwhile, of_random_numbers, with_an_effect,
          direction_that_does_not_fit, linear_with_gradients]  # fmt: skip


@pytest.mark.parametrize("program", BROKEN, ids=lambda f: f.__name__)
def test_derivatives_that_break(agree, program):
    agree(program, (torch.randn(3, 4),))


def not_once(x):
    made = while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * 1.1), (torch.tensor(0), x))
    return made, made[1] is x


def with_a_closure(x):
    w = x.sin()

    def more(i, y):
        return (i < 5) & (y.sum() < 100)

    return while_loop(more, lambda i, y: (i + 1, y * w + x), (torch.tensor(0), x))[1] * 2


def over_a_structure(x):
    def body(s, n):
        return {"a": s["a"] + s["b"], "b": s["b"] * 2}, n - 1

    return while_loop(lambda s, n: n > 0, body, ({"a": x, "b": x + 1}, torch.tensor(3)))


def loop_in_a_loop(x):
    def body(i, y):
        one = torch.zeros_like(i)
        z = while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + 1), (one, y))[1]
        return i + 1, z * 1.5

    return while_loop(lambda i, y: i < 4, body, (torch.tensor(0), x))


LOOPS = [not_once, with_a_closure, over_a_structure, loop_in_a_loop]


# That of eager is traced and compiled by torch's own tracer.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", LOOPS, ids=lambda f: f.__name__)
def test_loops(agree, program):
    agree(program, (torch.randn(3, 4),), graphs=1, breaks=0)


SERVED = """
import sys
import torch
from torch import func
from aotdyn.package import operators

x = torch.ones(3, requires_grad=True)
(made,) = operators.checkpointed(lambda v: (v.sin().cos(),), True, (x,), ())
made.sum().backward()
operators.transformed(func.grad, {}, lambda v: v.sin().sum(), (x.detach(),), ())
operators.pulled_back(lambda v: v.sin(), False, (x.detach(),), x.detach(), ())
operators.vjp_value(lambda v: v.sin(), False, (x.detach(),), ())
operators.pushed_forward(lambda v: v.sin().exp(), False, (x.detach(),), (x.detach(),), ())
for transform in (func.jacrev, func.jacfwd, func.hessian, torch.vmap):
    operators.transformed(transform, {}, lambda v: v.pow(3) * v.exp(), (x.detach(),), ())
operators.scanned(lambda a, b: (a + b,), (x.detach(),), 0, False, ())
print([name for name in ("torch._dynamo", "torch._inductor") if name in sys.modules])
"""


RUN = f"""
import torch
from aotdyn.runtime.patch import patched

with patched():
    torch.func.grad(lambda v: v.sin().sum())(torch.ones(3))
    exec({SERVED!r})
"""


@pytest.mark.parametrize("text", [SERVED, RUN], ids=["served", "under run"])
def test_no_compiler_is_imported_for_gradients(text):
    found = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.strip() == "[]"


REAL = """
import torch
from aotdyn.package.no_compiler import compiler_left_out
import sys

with compiler_left_out():
    with compiler_left_out():
        import torch._dynamo
        assert "torch._inductor" not in sys.modules
    assert torch._dynamo.config.recompile_limit
assert torch._dynamo is sys.modules["torch._dynamo"]
print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item())
"""


def test_the_compiler_is_there_when_it_is_asked_for():
    found = subprocess.run(
        [sys.executable, "-c", REAL], capture_output=True, text=True, check=True, timeout=120
    )
    assert found.stdout.strip() == "2.0"


def test_tensors_of_changing_sizes_that_are_first_seen_within(agree):
    weight = torch.arange(5.0)

    def fn(x):
        def loss(p):
            return (x @ p).sin().sum()

        return torch.func.grad(loss)(weight), torch.vmap(torch.func.grad(loss))(weight.expand(2, 5))

    agree(fn, (torch.ones(2, 5),), (torch.ones(3, 5),), breaks=0, graphs=2)
