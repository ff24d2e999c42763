"""What `aotdyn.compile` returns behaves like what it was given."""

import copy
import functools
import inspect
import pickle
import sys

import pytest
import torch

import aotdyn
from aotdyn.package.recording import read_recording
from aotdyn.runtime.settings import all_settings

eager = functools.partial(aotdyn.compile, backend="eager")


def scale(x, by=2, *rest, plus=1, **named):
    """Scales."""
    return x * by + plus + len(rest) + len(named)


def test_signature_name_and_doc_are_kept():
    compiled = eager(scale)
    assert inspect.signature(compiled) == inspect.signature(scale)
    assert (compiled.__name__, compiled.__doc__) == ("scale", "Scales.")
    assert compiled.__wrapped__ is scale


def test_all_kinds_of_arguments():
    compiled = eager(scale)
    x = torch.ones(2)
    for args, kwargs in (
        ((x,), {}), ((x, 3), {}), ((x, 3, 4, 5), {}), ((x,), {"plus": 2}),
        ((x,), {"by": 4, "k": 1}),
    ):  # fmt: skip
        assert torch.equal(compiled(*args, **kwargs), scale(*args, **kwargs))
    with pytest.raises(TypeError, match="scale"):
        compiled()


def test_decorator_with_and_without_options():
    @aotdyn.compile(backend="eager", dynamic=False)
    def double(x):
        return x * 2

    assert torch.equal(double(torch.ones(2)), torch.full((2,), 2.0))
    assert eager(double).__wrapped__ is double.__wrapped__


def test_defaults_are_read_at_the_call():
    def fn(x, by=2, *, plus=1):
        return x * by + plus

    compiled = eager(fn)
    x = torch.ones(1)
    assert compiled(x).item() == 3
    fn.__defaults__ = (5,)
    assert compiled(x).item() == 6
    fn.__kwdefaults__ = {"plus": 10}
    assert compiled(x).item() == 15


def test_swapped_code_is_noticed():
    def fn(x, by=2):
        return x * by

    def other(x, by=3):
        return x + by

    compiled = eager(fn)
    x = torch.ones(1)
    assert compiled(x).item() == 2
    fn.__code__ = other.__code__
    assert compiled(x).item() == 3
    assert compiled(x, by=7).item() == 8


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.calls = 0

    def forward(self, x, *, flip=False):
        self.calls += 1
        y = self.linear(x)
        return -y if flip else y

    def twice(self, x):
        return self(self(x))


def test_methods_bound_and_through_an_instance():
    counter = Counter()
    x = torch.ones(1, 2)
    assert torch.equal(eager(counter.twice)(x), counter.twice(x))
    assert torch.equal(eager(Counter.twice)(counter, x), counter.twice(x))


class Decorated:
    @eager
    @staticmethod
    def plus(x):
        return x + 1, torch.compiler.is_compiling()

    @eager
    @classmethod
    def named(cls, x):
        return cls.__name__, x * 2, torch.compiler.is_compiling()


def test_decorators_of_methods_are_kept():
    x = torch.ones(2)
    for owner in (Decorated, Decorated()):
        assert owner.plus(x)[1] is owner.named(x)[2] is True
        assert owner.named(x)[0] == "Decorated"


def test_module_attributes_and_state():
    module = Counter()
    compiled = eager(module)
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x, flip=True), -module.linear(x))
    assert module.calls == 1
    assert compiled.calls == 1
    compiled.calls = 7
    assert module.calls == 7
    assert set(compiled.state_dict()) == {"_orig_mod.linear.weight", "_orig_mod.linear.bias"}
    assert compiled._orig_mod is module
    assert [*compiled.parameters()] == [*module.parameters()]
    compiled.eval()
    assert not module.training and not compiled.training
    module.train()
    assert compiled.training
    other = copy.deepcopy(compiled)
    assert other._orig_mod is not module
    assert torch.equal(other(x), module(x))


def test_compiled_modules_are_copied_and_pickled():
    x = torch.ones(1, 2)
    compiled = eager(Counter())
    compiled.register_forward_hook(doubled)
    expected = compiled(x)
    pickled = pickle.loads(pickle.dumps(compiled))
    for again in (copy.copy(compiled), copy.deepcopy(compiled), pickled):
        assert torch.equal(again(x), expected)
        again.calls = 7
        assert compiled.calls == 1


def doubled(module, args, out):
    return out * 2


def test_backward_hooks_of_the_compiled_module_run():
    seen = []
    module = Counter()
    compiled = eager(module)
    compiled.register_full_backward_hook(lambda m, into, out: seen.append(out[0].sum().item()))
    compiled(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [2.0]
    assert module._is_full_backward_hook is None


def test_hooks_run():
    module = Counter()
    compiled = eager(module)
    x = torch.ones(1, 2)
    expected = module(x)
    seen = []
    handle = module.linear.register_forward_hook(lambda m, args, out: seen.append(1) or out * 2)
    assert torch.allclose(compiled(x), expected * 2)
    handle.remove()
    assert torch.allclose(compiled(x), expected)
    handle = module.register_forward_hook(lambda m, args, out: out + 1)
    assert torch.allclose(compiled(x), expected + 1)
    handle.remove()
    module.forward = lambda x: x * 0
    assert not compiled(x).any()
    del module.forward
    assert torch.allclose(compiled(x), expected)
    assert seen == [1]


class Callable:
    def __call__(self, x):
        return x + 1


def test_callable_objects_and_partials():
    x = torch.ones(1)
    assert eager(Callable())(x).item() == 2
    assert eager(functools.partial(scale, by=5))(x).item() == 6
    assert eager(torch.neg)(x).item() == -1


@pytest.mark.parametrize("wrong", [3, "text", Callable, None.__class__])
def test_what_cannot_be_compiled(wrong):
    with pytest.raises(TypeError):
        aotdyn.compile(wrong, backend="eager")


def test_generators_and_coroutines_stay_what_they_are():
    def numbers(x):
        yield x
        yield x + 1

    assert [v.item() for v in eager(numbers)(torch.ones(1))] == [1, 2]


def test_custom_backend_gets_a_graph_module_and_inputs():
    seen = []

    def backend(module, inputs):
        seen.append((module, [type(i) for i in inputs]))
        return module.forward

    @aotdyn.compile(backend=backend)
    def fn(x, n):
        y = x.relu() * n
        return y + y.sum(), [y]

    x = torch.randn(3)
    for n in (2, 3, 4):
        expected = x.relu() * n
        total, (y,) = fn(x, n)
        assert torch.equal(y, expected) and torch.equal(total, expected + expected.sum())
    assert [types for _, types in seen] == [[torch.Tensor], [torch.Tensor, int]]
    assert isinstance(seen[0][0], torch.fx.GraphModule)
    targets = [n.target for n in seen[0][0].graph.nodes if n.op.startswith("call")]
    assert targets[0] == "relu"


def test_unknown_backend():
    with pytest.raises(aotdyn.AotdynError, match="nonsense"):
        aotdyn.compile(scale, backend="nonsense")(torch.ones(1))


def test_a_fault_of_the_tracer_is_not_one_of_the_program(monkeypatch, capsys):
    from aotdyn.record import trace

    def fail(*args):
        raise RuntimeError("fault")

    monkeypatch.delenv("AOTDYN_STRICT")
    monkeypatch.setattr(trace, "_attempt", fail)
    assert eager(scale)(torch.ones(1)).item() == 3
    assert "fault" in capsys.readouterr().err


def test_too_many_variants_end_in_eager(capsys):
    @aotdyn.compile(backend="eager", dynamic=False)
    def fn(x, n):
        return x * n

    for n in range(40):
        assert fn(torch.ones(1), n).item() == n
    entry = max((e for s in all_settings() for e in s.entries()), key=lambda e: len(e.linked))
    assert entry.skipped == "recompile_limit"
    assert "variants" in capsys.readouterr().err


def test_compiled_functions_call_each_other():
    @aotdyn.compile(backend="eager")
    def inner(x):
        return x * 2

    @aotdyn.compile(backend="eager")
    def outer(x):
        return inner(x) + inner(x + 1)

    assert outer(torch.ones(1)).item() == 6


def test_threads_share_variants():
    from concurrent.futures import ThreadPoolExecutor

    @aotdyn.compile(backend="eager")
    def fn(x, n):
        y = x + n
        print(end="")
        return y * n

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda n: fn(torch.ones(2), n % 5 + 2)[0].item(), range(40)))
    assert results == [(1 + n % 5 + 2) * (n % 5 + 2) for n in range(40)]


def test_module_compile_in_place():
    from aotdyn.runtime.patch import patched

    module = Counter()
    x = torch.ones(1, 2)
    expected = module(x)
    with patched():
        module.compile(backend="eager")
        assert torch.equal(module(x), expected)
        assert torch.equal(module(x), expected)
    assert module.calls == 3


MODULE = """
def made(x):
    return x * 2

def again(x):
    return made(x) + 1

VALUE = again(3)
"""


def test_what_an_import_runs_is_not_traced(tmp_path, monkeypatch):
    (tmp_path / "aotdyn_imported_late.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)

    def program(x):
        import aotdyn_imported_late as module

        return module.again(x * module.VALUE)

    with aotdyn.record(tmp_path / "a.rec"):
        result = aotdyn.compile(program, backend="eager")(torch.ones(2))
    monkeypatch.delitem(sys.modules, "aotdyn_imported_late")
    assert torch.equal(result, torch.full((2,), 15.0))
    recording = read_recording(tmp_path / "a.rec")
    assert {variant.entry.qualname for variant in recording.variants} == {program.__qualname__}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*")
def test_scripted_modules_run_as_they_are():
    module = torch.jit.script(torch.nn.Linear(2, 2))
    x = torch.ones(1, 2)
    assert torch.equal(aotdyn.compile(module, backend="eager")(x), module(x))
    scaled = aotdyn.compile(lambda x: module(x) * 2, backend="eager")
    assert torch.equal(scaled(x), module(x) * 2)
