"""Graph breaks: what was computed before, what is carried over, how the frame goes on.

PYTEST_DONT_REWRITE: the traced assert must be the plain instruction.
"""

import logging
import random

import numpy as np
import pytest
import torch

import aotdyn


def leaf(x):
    y = x + 1
    print("leaf", tuple(y.shape))
    return y * 2


def middle(x):
    return leaf(x) + leaf(x * 2)


def test_break_in_an_inlined_call(agree):
    def fn(x):
        a = x * 3
        b = a + middle(a)
        return b, a

    agree(fn, (torch.randn(3),), (torch.randn(3),))


def test_break_with_values_on_the_stack(agree):
    def fn(x):
        return x + torch.add(x * 2, leaf(x), alpha=2) + max(1, len([x, leaf(x)]))

    agree(fn, (torch.randn(3),))


def test_break_in_a_loop(agree):
    def fn(x, n):
        total = 0
        for i in range(n):
            x = x + i
            print(i)
            total = total + x * i
        return total, x

    agree(fn, (torch.randn(3), 4), (torch.randn(3), 2), (torch.randn(3), 0))


def test_break_in_a_loop_over_a_list(agree):
    def fn(xs):
        out = []
        for i, x in enumerate(xs):
            out.append(x * 2)
            print(i, len(out))
        else:
            out.append(None)
        return out

    agree(fn, ([torch.randn(2), torch.randn(3)],), ([],))


def test_many_iterations_at_constant_depth():
    depths = []

    def note():
        import sys

        frame, depth = sys._getframe(), 0
        while frame is not None:
            frame, depth = frame.f_back, depth + 1
        depths.append(depth)

    def fn(x):
        for i in range(200):
            x = x + 1
            note()
        return x

    compiled = aotdyn.compile(fn, backend="eager")
    assert torch.equal(compiled(torch.zeros(2)), torch.full((2,), 200.0))
    assert len(set(depths[5:])) == 1


def test_branch_on_a_tensor(agree):
    def fn(x):
        y = x * 2
        if y.sum() > 0:
            z = y + 1
        else:
            z = y - 1
        return z * 3

    agree(fn, (torch.ones(3),), (-torch.ones(3),), graphs=3, breaks=1)


def test_while_on_a_tensor(agree):
    def fn(x):
        while x.sum() < 10:
            x = x + 1
        return x

    agree(fn, (torch.zeros(3),), (torch.full((3,), 100.0),))


def test_and_or_not_on_tensors(agree):
    def fn(x, y):
        a = (x.sum() > 0) and (y.sum() > 0)
        b = (x.sum() > 0) or y
        c = not (x.sum() > 0)
        return a, b, c, x + 1 if x.max() > 0 else y

    x, y = torch.ones(3), -torch.ones(3)
    agree(fn, (x, y), (y, x), (x, x), (y, y))


def test_assert_on_a_tensor(agree):
    def fn(x):
        y = x + 1
        assert y.sum() > 0, "negative"
        return y * 2

    agree(fn, (torch.ones(2),), (-2 * torch.ones(2),))


def test_break_inside_with(agree):
    def fn(x):
        with torch.no_grad():
            y = x * 2
            print("inside", torch.is_grad_enabled())
            y = y + 1
        return y * x

    agree(fn, (torch.randn(3, requires_grad=True),))


def test_break_inside_try(agree):
    def fn(x, fail):
        try:
            y = x * 2
            print("in try")
            if fail:
                raise ValueError("failed")
        except ValueError as error:
            y = x + len(str(error))
            print("handled", error)
        finally:
            print("finally")
        return y + 1

    agree(fn, (torch.randn(3), False), (torch.randn(3), True))


def test_exception_leaves_the_frame(agree):
    def fn(x, k):
        y = x + 1
        d = {"a": 1}
        return y * d[k]

    agree(fn, (torch.randn(3), "a"), (torch.randn(3), "b"))


def test_closures_share_cells_across_a_break(agree):
    def fn(x):
        count = 0

        def bump(by):
            nonlocal count
            count += by
            return count

        bump(2)
        print("between", count)
        bump(3)
        f = lambda: (count, bump)  # noqa: E731
        return x * count, f()[0]

    agree(fn, (torch.randn(3),))


def test_side_effects_in_program_order(agree):
    def fn(x, log, d):
        log.append("a")
        d["first"] = x + 1
        print(log, list(d))
        log.append("b")
        d["second"] = x * 2
        del d["first"]
        print(log, list(d))
        d["first"] = 3
        return log

    agree(fn, (torch.randn(3), [], {"zero": 0}))


def test_identity_is_kept_across_a_break(agree):
    def fn(x):
        a = [x]
        b = [a, a]
        print("break")
        b[0].append(1)
        return b, b[0] is b[1], a is b[0]

    agree(fn, (torch.randn(3),))


def test_random_state_is_that_of_eager(agree):
    def fn(x):
        a = torch.nn.functional.dropout(x, 0.5)
        r = random.random()
        return a + r + torch.rand(3)

    agree(fn, (torch.randn(3),))


def test_draws_of_numpy_can_be_packaged(agree):
    """They are methods of a class of C whose own class has members for what classes are asked."""
    generator = np.random.default_rng(0)

    def fn(x):
        np.random.seed(3)
        weight = np.random.beta(1.0, 1.0)
        return x * float(weight) + np.random.randint(5), generator.integers(0, 1)

    found = agree(fn, (torch.randn(3),))
    assert not any(variant.obstacles for variant in found.variants)


def test_item_and_tolist(agree):
    def fn(x):
        n = int(x.sum().item())
        return x * n, x.tolist()

    agree(fn, (torch.tensor([1.0, 2.0]),))


def test_attribute_store_on_a_tensor(agree):
    def fn(x):
        y = x + 1
        y.tag = "a"
        return y * 2, y.tag

    agree(fn, (torch.randn(3),))


def test_disabled_functions_run_eagerly(agree):
    agree(calls_disabled, (torch.randn(3),))


@aotdyn.disable
def disabled(x):
    return x + (1 if aotdyn.is_compiling() else 2)


def calls_disabled(x):
    return disabled(x * 2) + 1


def test_fullgraph_raises_with_the_place():
    def fn(x):
        x = x + 1
        print("no")
        return x

    with pytest.raises(aotdyn.Unsupported, match="print") as caught:
        aotdyn.compile(fn, backend="eager", fullgraph=True)(torch.ones(2))
    assert f"{__file__}:{fn.__code__.co_firstlineno + 2}" in str(caught.value)


def test_explicit_break(agree):
    def fn(x):
        x = x + 1
        aotdyn.graph_break()
        return x * 2

    found = agree(fn, (torch.randn(3),), graphs=2, breaks=1)
    assert found.breaks[0].reason == "requested"


def test_generators_run_as_plain_python(agree):
    def fn(x):
        def gen():
            for i in range(3):
                yield x + i

        return list(gen()), sum(v for v in gen())

    agree(fn, (torch.randn(3),), breaks=0)


def test_break_in_method_with_super(agree):
    agree(call_child, (torch.randn(3),))


class Base:
    def run(self, x):
        print("base")
        return x + 1


class Child(Base):
    def __init__(self):
        self.n = 2

    def run(self, x):
        y = super().run(x * self.n)
        self.n += 1
        return y * self.n


def call_child(x):
    c = Child()
    return c.run(x), c.n, c.run(x)


def test_nested_frames_are_entries(agree):
    found = agree(calls_middle_twice, (torch.randn(3),))
    names = {v.entry.qualname for v in found.variants}
    assert {"calls_middle_twice", "middle", "leaf"} <= names


def calls_middle_twice(x):
    return middle(x) + middle(x + 1)


def _deep(x, n):
    return x if n == 0 else _deep(x + 1, n - 1)


def _deep_with_breaks(x, n):
    aotdyn.graph_break()
    return x if n == 0 else _deep_with_breaks(x + 1, n - 1)


@pytest.mark.parametrize("function", [_deep, _deep_with_breaks])
def test_deep_recursion_fits_the_limit_of_python(agree, function):
    agree(function, (torch.ones(1), 100), (torch.ones(1), 400))


def test_recursion_with_breaks(agree):
    agree(fact, (torch.ones(2), 5))


def fact(x, n):
    if n == 0:
        print("done")
        return x
    return fact(x * n, n - 1) + 1


def test_unpacking_and_formatting_across_breaks(agree):
    def fn(x):
        a, *b = leaf(x).unbind(0)
        text = f"{a.item():.2f} {len(b)}"
        return text, b

    agree(fn, (torch.ones(3),))


def test_what_fails_on_fakes_is_not_logged_by_torch(agree):
    def fn(x):
        try:
            return x @ x.new_ones(5, 2)
        except RuntimeError as error:
            return str(error)

    heard = logging.Handler()
    heard.emit = lambda record: messages.append(record.getMessage())
    messages: list[str] = []
    log = logging.getLogger("torch._subclasses.fake_tensor")
    log.addHandler(heard)
    try:
        agree(fn, (torch.ones(3, 4),))
    finally:
        log.removeHandler(heard)
    assert messages == []
