"""Effects: what a program writes, and where it can be seen."""

# ruff: noqa: E731, E741, E742, F601, F811, F821, F841
import collections
import types

import torch
from torch import nn

from tests.record.programs import Programs

program = Programs()
X = torch.arange(3.0) + 1

CNT = [0]
CFG = {"a": 1}

CNT = [0]
CFG = {"a": 1}


class St:
    n = 0
    reg = {}


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.l = nn.Linear(3, 3)
        s.register_buffer("b", torch.zeros(3))
        s.n = 0
        s.hist = []
        s.cache = {}
        s.bn = nn.BatchNorm1d(3)
        s.last = None

    def forward(s, x):
        s.n += 1
        s.b = s.b + x.detach()
        s.hist.append(s.n)
        s.cache[s.n] = x * 2
        s.last = x
        return s.l(x) * s.n + s.b


torch.manual_seed(0)
MM = M()

torch.manual_seed(0)
MM = M()


@program((MM, X.clone()), graphs=1)
def p_module(m, x):
    a = m(x)
    b = m(x)
    return a, b, m.b, m.n, m.hist, m.cache[2]


@program((MM, X.clone()), graphs=1)
def p_buf_inplace(m, x):
    m.b.add_(x)
    m.b.mul_(2)
    m.b[0] = 5
    m.b.copy_(x)
    return m.b * 1


@program((MM, X.clone()), graphs=2, breaks=1)
def p_pdata(m, x):
    with torch.no_grad():
        m.l.weight.mul_(0.5)
        m.l.weight.data = m.l.weight.data * 2
        m.l.bias.copy_(x)
    return m.l(x)


@program((MM, X.clone()), graphs=1)
def p_pdata2(m, x):
    for p in m.parameters():
        p.data.add_(1)
    return m.l.weight.sum()


@program((MM, X.clone()), graphs=0)
def p_zerograd(m, x):
    m.zero_grad()
    return [p.grad for p in m.parameters()], m.training, m.eval() is m, m.training


@program((MM, X.clone()), graphs=1)
def p_train(m, x):
    m.train()
    m.requires_grad_(False)
    r = [p.requires_grad for p in m.parameters()]
    m.requires_grad_(True)
    return r


@program((MM,), graphs=1)
def p_sd(m):
    sd = m.state_dict()
    return (
        list(sd),
        sd["b"] is m.b,
        [n for n, _ in m.named_modules()],
        list(m.children())[0] is m.l,
        sum(p.numel() for p in m.parameters()),
        m.get_parameter("l.weight") is m.l.weight,
    )


@program((MM, torch.randn(4, 3)), graphs=1)
def p_bn(m, x):
    return m.bn(x), m.bn.running_mean, m.bn.num_batches_tracked


L0 = [1]


@program((L0, L0, X), ([1], [1], X), graphs=0)
def p_two(a, b, x):
    a.append(x)
    return len(b), a is b


@program((T := torch.ones(3), T, T[1:]), graphs=1)
def p_alias(a, b, c):
    a.add_(1)
    return b, c, a is b, b.data_ptr() == a.data_ptr() if 0 else 1


@program((torch.ones(3, 3),), graphs=1)
def p_views(x):
    v = x[0]
    v.mul_(5)
    w = x.t()
    w[1] = 7
    x.view(-1)[8] = 0
    y = x.expand(2, 3, 3)
    return x, v, w, y, v._base is x if 0 else 1


@program((torch.ones(3, 3),), graphs=1)
def p_inplace(x):
    y = x.clone()
    y += 1
    y[y > 1] = 0
    y[:, 0] = torch.arange(3.0)
    y.clamp_(0, 1).neg_()
    y.fill_diagonal_(4)
    z = y
    z *= 2
    return y, z is y, x


@program((torch.ones(3),), graphs=1)
def p_out_in(x):
    return x, [x, x], x.view(3), x.detach(), x[:], x.T


@program((torch.ones(3),), graphs=1)
def p_iop_alias(x):
    y = x
    y += 1
    x2 = x
    x2 = x2 + 1
    return y is x, x, x2


@program((torch.ones(3),), graphs=1)
def p_mutexc(x):
    l = []

    def f():
        l.append(1)
        x.add_(1)
        CNT.append(2)
        raise ValueError("late")

    try:
        f()
    except ValueError:
        CNT.pop()
    return l, x


@program(([], torch.ones(3)), graphs=1, breaks=1)
def p_mutexc2(l, x):
    l.append(1)
    x.add_(1)
    raise KeyError("out")


@program(([], torch.ones(3)), graphs=2, breaks=2)
def p_mutbreak(l, x):
    l.append(x)
    x.mul_(3)
    print(l[0].tolist())
    l.append(2)
    x.add_(1)
    return l[0] is x


@program((types.SimpleNamespace(a=types.SimpleNamespace(v=1), l=[1]),), graphs=0)
def p_paths(o):
    b = o.a
    b.v += 1
    o.c = b
    o.c.v += 1
    l = o.l
    o.l = o.l + [2]
    l.append(9)
    return o.a.v, l, o.l, o.a is o.c


@program(graphs=0, breaks=1)
def p_closurew(x):
    st = {"n": 0}
    n = 0

    def f():
        nonlocal n
        n += 1
        st["n"] += n
        return n

    f()
    f()
    print(n, st)
    f()
    return n, st


@program(graphs=0)
def p_delvar(x):
    a = x
    del a
    try:
        a
    except UnboundLocalError:
        a = 1
    l = [1, 2, 3]
    del l[0], l[-1]
    d = {"a": 1}
    del d["a"]
    return a, l, d


@program((torch.ones(3, requires_grad=True),), graphs=1, breaks=1)
def p_grad(x):
    y = (x * 2).sum()
    y.backward()
    return x.grad


@program((torch.ones(3, requires_grad=True),), graphs=1)
def p_nograd(x):
    with torch.no_grad():
        y = x * 2
    z = y.requires_grad
    torch.set_grad_enabled(False)
    w = x * 3
    torch.set_grad_enabled(True)
    return y, z, w.requires_grad, (x * 2).detach(), torch.is_grad_enabled()


@program((torch.ones(3, requires_grad=True),), graphs=1)
def p_enable(x):
    @torch.no_grad()
    def f(a):
        with torch.enable_grad():
            b = a * 2
        return a * 3, b

    return f(x)


@program(graphs=1)
def p_swap(x):
    a, b = [x], [x * 2]
    a[0], b[0] = b[0], a[0]
    return a, b


@program(graphs=0)
def p_setitemorder(x):
    log = []

    def v(n):
        log.append(n)
        return {"d": {}, "l": [0, 0]}.get(n, n)

    v("d")[v("k")] = v("val")
    v("l")[v(0)], v("l")[v(1)] = v(5), v(6)
    return log


@program(graphs=0)
def p_aug(x):
    log = []

    class C:
        def __getitem__(s, k):
            log.append(("g", k))
            return 1

        def __setitem__(s, k, v):
            log.append(("s", k, v))

        def __getattr__(s, n):
            log.append(("ga", n))
            return 2

    c = C()
    c[log.append("idx") or 0] += 5
    c.z += 1
    return log, vars(c)


class Opt:
    def __init__(s, ps):
        s.ps = list(ps)
        s.state = {}

    @torch.no_grad()
    def step(s):
        for i, p in enumerate(s.ps):
            st = s.state.setdefault(i, {"m": torch.zeros_like(p)})
            st["m"].mul_(0.9).add_(p)
            p.sub_(st["m"] * 0.1)


@program((MM, X.clone()), graphs=1)
def p_opt(m, x):
    o = Opt(m.parameters())
    o.step()
    o.step()
    return o.state[0]["m"], m.l.weight


@program((torch.ones(3),), graphs=1)
def p_datag(x):
    y = x.data
    y.add_(1)
    z = x.detach()
    z.mul_(2)
    x.data[0] = 9
    return x, y, z


@program((torch.ones(3),), graphs=1)
def p_resize(x):
    return (
        x.numel(),
        x.element_size(),
        x.is_contiguous(),
        x.stride(),
        x.storage_offset(),
        x.layout,
        x.is_leaf,
        x.grad is None,
        x.names if 0 else 1,
        len(x),
        x.ndim,
        x.device.type,
        x.dtype.is_floating_point,
        x.nbytes,
        x.T.shape,
        x.is_cuda,
    )


@program(({"a": torch.ones(3)},), graphs=1)
def p_dictloop(d):
    for k, v in list(d.items()):
        d[k + "2"] = v * 2
        v.add_(1)
    d["a"] = d.pop("a2")
    return d


@program((collections.OrderedDict(a=1, b=2),), graphs=0)
def p_od(d):
    d.move_to_end("a")
    d["c"] = 3
    d.popitem(last=False)
    return list(d)


@program((collections.defaultdict(list), collections.deque([1], maxlen=2), {1, 2}), graphs=0)
def p_dd(d, q, s):
    d["k"].append(1)
    d["z"]
    q.append(2)
    q.append(3)
    s.add(9)
    s.discard(1)
    return dict(d)


test_agrees = program.test()
