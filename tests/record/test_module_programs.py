"""Modules: hooks, buffers, parametrizations, containers, and how libraries build on them."""

import collections
import copy
import dataclasses
import functools
import inspect
import weakref

import pytest
import torch
from torch import nn

import aotdyn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.named = nn.ModuleDict({"x": nn.ReLU(), "y": nn.Identity()})
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(3)) for _ in range(2)])
        self.table = nn.ParameterDict({"w": nn.Parameter(torch.ones(3))})
        self.register_buffer("seen", torch.zeros(()))
        self.plain = [nn.Linear(3, 3)]
        self.calls = 0

    def forward(self, x, *, scale=1):
        self.calls += 1
        self.seen = self.seen + 1
        self.seen.add_(1)
        x = self.b(self.a(x)) * scale
        for layer in self.layers[1:]:
            x = layer(x)
        x = self.layers[0](x) if len(self.layers) == 3 else x
        for name, layer in self.named.items():
            x = layer(x) if name != "z" else x
        for s in self.scales:
            x = x * s
        x = x + self.table["w"] + sum(p.sum() for p in self.a.parameters())
        x = self.plain[0](x)
        total = sum(m.training for m in self.modules())
        return (
            x,
            total,
            [n for n, _ in self.named_parameters()][:2],
            "seen" in dict(self.named_buffers()),
        )


class Holder:
    def __init__(self):
        self.module = nn.Linear(3, 3)


class Config:
    attribute_map = {"hidden": "n_embd"}

    def __init__(self):
        self.n_embd = 3
        self.flag = True

    @property
    def doubled(self):
        return self.n_embd * 2

    def __setattr__(self, key, value):
        if key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        super().__setattr__(key, value)

    def __getattribute__(self, key):
        if key != "attribute_map" and key in super().__getattribute__("attribute_map"):
            key = super().__getattribute__("attribute_map")[key]
        if super().__getattribute__("__dict__").get("_absent") is not None:
            return None
        return super().__getattribute__(key)


class Output(collections.OrderedDict):
    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = self.__dict__.get(field.name)
            if value is not None:
                self[field.name] = value

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def to_tuple(self):
        return tuple(self[k] for k in self.keys())


@dataclasses.dataclass
class BaseOutput(Output):
    last: torch.Tensor = None
    pooled: torch.Tensor = None


class Counts(dict):
    def __missing__(self, key):
        return 0


class Registry(dict):
    def __setitem__(self, key, value):
        super().__setitem__(str(key), value)

    def get(self, key):
        return super().get(str(key)) or {}


class Cache:
    def __init__(self):
        self.keys = []
        self.seen = 0

    def update(self, key, index):
        if len(self.keys) <= index:
            self.keys.append(key)
        else:
            self.keys[index] = torch.cat([self.keys[index], key])
        self.seen += key.shape[0]
        return self.keys[index]


def returns_dict(function):
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        wanted = kwargs.pop("return_dict", True)
        if "scale" in function.__code__.co_varnames:
            kwargs["scale"] = 2
        out = function(self, *args, **kwargs)
        return out if wanted else out.to_tuple()

    return wrapper


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = Config()
        self.layer = nn.Linear(3, 3)

    @returns_dict
    def forward(self, x, scale=1, cache=None):
        kept = {k for k in inspect.signature(self.forward).parameters if k == "x"}
        if cache is not None:
            x = cache.update(x, 0)
        return BaseOutput(last=self.layer(x) * scale * self.config.hidden + len(kept))


@functools.lru_cache
def helper(name):
    return __import__("importlib").util.find_spec(name) is not None


def double(module, args):
    return (args[0] * 2,)


def doubled_kwargs(module, args, kwargs):
    return args, {**kwargs, "scale": 3}


def plus(module, args, output):
    return output + 1


def watch(module, args, output):
    module.calls = getattr(module, "calls", 0) + 1


def test_module_program(agree):
    agree(Net(), (torch.randn(2, 3),), (torch.randn(2, 3),), breaks=0)


def call(module, x):
    return module(x)


def test_hooks(agree):
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    module[0].register_forward_pre_hook(double)
    module[0].register_forward_hook(plus)
    module.register_forward_hook(watch)
    agree(call, (module, torch.ones(2, 3)), breaks=0)


def keyword_call(module, x):
    return module(x, scale=1)


def test_hook_with_keywords(agree):
    module = Net()
    module.register_forward_pre_hook(doubled_kwargs, with_kwargs=True)
    agree(keyword_call, (module, torch.ones(2, 3)), breaks=0)


def hooked_for_a_call(module, x):
    handle = module.register_forward_hook(plus)
    y = module(x)
    handle.remove()
    return module(y)


def test_a_hook_for_one_call(agree):
    """Handles are numbered through the process: the numbers of one call must not be guarded."""
    calls = [(nn.Linear(3, 3), torch.ones(3)) for _ in range(4)]
    agree(hooked_for_a_call, *calls, variants=1)


def hooks_in_order(module, x):
    told = []
    last = module.register_forward_hook(lambda m, args, out: told.append("last"))
    first = module.register_forward_hook(lambda m, args, out: out * 2, prepend=True)
    named = module.register_forward_pre_hook(
        lambda m, args, kwargs: told.append(sorted(kwargs)), with_kwargs=True
    )
    y = module(x)
    held = len(module._forward_hooks), last.id in module._forward_hooks
    for handle in (last, first, named, named):
        handle.remove()
    return y, module(x), told, held, len(module._forward_hooks)


def hook_within_with(module, x):
    with module.register_forward_hook(plus):
        y = module(x)
    return y, module(x)


def hook_that_stays(module, x):
    """Each call is another variant: the module has one more hook."""
    module.register_forward_hook(plus)
    return module(x), len(module._forward_hooks)


def hook_and_break(module, x):
    handle = module.register_forward_hook(plus)
    y = module(x)
    print("a break")
    z = module(y)
    handle.remove()
    return z, module(x)


def hook_of_a_part(module, x):
    seen = {}
    for name, part in module.named_modules():
        def note(part, args, out, name=name):
            seen[name] = out.sum()
        part.register_forward_hook(note)
    return module(x), seen


def hooks_from_hooks(module, x):
    def once(module, args, out):
        handle.remove()
        made.append(module.register_forward_pre_hook(double))
        return out * 5

    made = []
    before = module.register_forward_pre_hook(
        lambda m, args: made.append(m.register_forward_hook(plus))
    )
    handle = module.register_forward_hook(once)
    results = module(x), module(x)
    for each in (before, *made):
        each.remove()
    return results, len(made), module(x)


def hooks_are_dropped(module, x):
    module.register_forward_hook(plus)
    module._forward_hooks.clear()
    return module(x)


@pytest.mark.parametrize(("function", "breaks"), [
    (hooks_in_order, 0), (hook_within_with, 0), (hook_that_stays, 0), (hook_and_break, 2),
    (hook_of_a_part, 0), (hooks_from_hooks, 0), (hooks_are_dropped, 1),
])  # fmt: skip
def test_hooks_that_a_frame_registers(agree, function, breaks):
    module = nn.Linear(3, 3)
    agree(function, (module, torch.ones(3)), (module, torch.ones(3)), breaks=breaks)


def hooked_tensor(x):
    y = x * 2
    handle = y.register_hook(torch.neg)
    handle.remove()
    return y.sin()


def test_a_hook_of_a_tensor_is_removed(agree):
    calls = [(torch.ones(3, requires_grad=True),) for _ in range(4)]
    agree(hooked_tensor, *calls, variants=3)


def test_hooks_are_guarded(agree):
    bare, hooked = nn.Linear(3, 3), nn.Linear(3, 3)
    hooked.register_forward_hook(plus)
    agree(call, (bare, torch.ones(3)), (hooked, torch.ones(3)), (bare, torch.ones(3)), variants=2)


def test_parametrizations(agree):
    norm = torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
    x = torch.randn(2, 3)
    agree(norm, (x,), breaks=0, package=False)
    agree(
        torch.nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)),
        (x,),
        breaks=0,
        package=False,
    )


def test_module_in_a_plain_object(agree):
    agree(lambda h, x: h.module(x), (Holder(), torch.ones(3)), breaks=0)


def test_model_output_config_and_cache(agree, kw):
    model, x = Model(), torch.randn(2, 3)
    agree(model, (x,), (x, kw({"return_dict": False})), (x, kw({"cache": Cache()})), breaks=0)


def test_config_is_changed(agree):
    def program(x, config):
        config.hidden = 4
        config.other = x
        return x * config.hidden * config.doubled, sorted(vars(config)), len(config.__dict__)

    agree(program, (torch.ones(3), Config()), breaks=0)


def test_output_that_comes_in(agree):
    def program(out):
        out["pooled"] = out.last + out[0]
        return out.to_tuple()[0] + 1, "last" in out, list(out)

    agree(program, (BaseOutput(last=torch.ones(3)),), breaks=0)


def test_dict_subclasses(agree):
    def program(x, default, counts, ordered, registry):
        default["a"].append(x)
        made = collections.defaultdict(list)
        made["q"].append(x + 1)
        counts["k"] += 1
        ordered["z"] = x
        ordered.move_to_end("a")
        registry[1] = {"v": x}
        return (
            default["b"],
            made,
            collections.OrderedDict(a=x),
            {**default},
            counts.items(),
            list(ordered),
            ordered.copy(),
            registry.get(1),
            registry.get(2),
        )

    args = (
        collections.defaultdict(list),
        Counts(a=1),
        collections.OrderedDict(a=1, b=2),
        Registry(),
    )
    agree(program, (torch.ones(3), *args), breaks=0)


def test_deepcopy_of_a_config(agree):
    def program(x, config):
        other = copy.deepcopy(config)
        other.n_embd = 7
        return x * other.n_embd, config.n_embd, copy.copy(config).hidden

    agree(program, (torch.ones(3), Config()), breaks=0)


def test_cached_helper(agree):
    def program(x):
        return x + 1 if helper("json") else x

    agree(program, (torch.ones(3),), breaks=0)


class Referring(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.reference = weakref.ref(self.weight)

    def forward(self, x):
        return x * self.reference() if self.reference() is self.weight else x


def test_weak_reference():
    import aotdyn

    module = Referring()
    compiled = aotdyn.compile(module, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.full((3,), 2.0)), torch.full((3,), 2.0))
    module.weight = nn.Parameter(torch.zeros(3))
    assert torch.equal(compiled(torch.full((3,), 2.0)), module(torch.full((3,), 2.0)))


class Switch(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        self.eval()
        return self.drop(x)


def test_switch_inside_forward(agree):
    agree(Switch(), (torch.ones(4),))


class Routed(nn.Module):
    """Asks for what is so already, as programs do that keep a part in another precision."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.Sequential(*parts)

    def forward(self, x, dtype=torch.float32):
        self.parts = self.parts.to(dtype)
        same = self.parts.to(device="cpu", dtype=dtype) is self.parts
        return self.parts(x.to(dtype)), same, self.parts.to("cpu")(x.to(dtype))


def test_moving_a_module_that_is_there(agree):
    module = Routed(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
    agree(module, (torch.randn(3, 4),), graphs=1, breaks=0)


def test_hooks_for_parts_that_are_set_later():
    module = Routed(nn.Linear(4, 4)).eval()
    compiled, seen = aotdyn.compile(module, backend="eager"), []
    compiled(torch.ones(4))

    def note(module, name, part):
        seen.append(name)

    handle = nn.modules.module.register_module_module_registration_hook(note)
    try:
        compiled(torch.ones(4))
    finally:
        handle.remove()
    assert seen == ["parts"]


def test_moving_a_module_that_is_not_there():
    module = Routed(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
    compiled = aotdyn.compile(module, backend="eager")
    x = torch.randn(3, 4)
    for dtype in (torch.float32, torch.float64, torch.float32):
        result = compiled(x, dtype)[0]
        assert result.dtype == module.parts[0].weight.dtype == dtype
        assert torch.equal(result, module.parts(x.to(dtype)))


def test_moving_a_module_that_moves_in_a_way_of_its_own(agree):
    class Kept(nn.Linear):
        def _apply(self, fn, recurse=True):
            self.asked = getattr(self, "asked", 0) + 1
            return self

    module = Routed(Kept(4, 4))
    agree(module, (torch.randn(3, 4),), package=False)


class classproperty(property):
    def __get__(self, instance, owner):
        return self.fget(owner)


class Described:
    @classproperty
    def name(cls):
        return cls.__name__


def test_property_subclass(agree):
    agree(lambda x, d: (x + len(d.name), Described.name), (torch.ones(3), Described()))


def test_modules_made_in_a_process_that_has_run_torchs_compiler(agree):
    from torch._dynamo.mutation_guard import install_generation_tagging_init

    def fn(x):
        return torch.nn.ReLU()(x)

    install_generation_tagging_init()
    agree(fn, (torch.ones(3),), breaks=0)


class Counted(nn.Module):
    """A call of its own around that of modules."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        return x + 1

    def __call__(self, x, times=1):
        self.calls += 1
        for _ in range(times):
            x = super().__call__(x)
        return x


class Doubling(Counted):
    def forward(self, x):
        return x * 2


class Wrapping(nn.Module):
    def forward(self, x):
        return x - 1

    def _call_impl(self, *args, **kwargs):
        return super()._call_impl(*args, **kwargs) * 3


@pytest.mark.parametrize("make", [Counted, Doubling, Wrapping])
def test_calls_of_their_own(agree, make):
    def fn(x, module):
        y = module(x)
        return nn.Module.__call__(module, y), vars(module).get("calls")

    agree(fn, (torch.ones(3), make()), (torch.zeros(2), make()), breaks=0)
    hooked = make()
    hooked.register_forward_hook(lambda module, args, out: out + 5)
    # What counts its calls is another one in each process.
    agree(lambda x: hooked(x), (torch.ones(3),), breaks=0, package=make is Wrapping)
