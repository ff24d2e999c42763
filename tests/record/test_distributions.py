"""`torch.distributions`, which check all that they are given: samples, densities, divergences, and
their gradients, recorded and served from a package."""

import torch
from torch.distributions import (
    Bernoulli,
    Categorical,
    Independent,
    Normal,
    TanhTransform,
    TransformedDistribution,
    Uniform,
    kl_divergence,
)

from tests.record.programs import Programs, assert_trains

program = Programs()
X = torch.arange(12.0).reshape(3, 4) / 6 - 1


@program((X,), (X + float("nan"),), (X * 2,))
def p_samples(x):
    normal, chosen = Normal(x, 1.0), Categorical(logits=x)
    a, b = normal.sample(), chosen.sample()
    return a, b, normal.log_prob(a), chosen.log_prob(b), normal.entropy(), chosen.entropy()


@program((X,))
def p_more_distributions(x):
    flips, rows = Bernoulli(logits=x), Independent(Normal(x, 1.0), 1)
    squashed = TransformedDistribution(Normal(x, torch.ones_like(x)), [TanhTransform(1)])
    a = squashed.rsample()
    return (flips.sample(), flips.mean, rows.log_prob(x), Uniform(x, x + 1).rsample(), a,
            squashed.log_prob(a))  # fmt: skip


@program((X,))
def p_divergences(x):
    of_normals = kl_divergence(Normal(x, 1.0), Normal(torch.zeros(4), 2.0))
    return of_normals, kl_divergence(Categorical(logits=x), Categorical(logits=x * 0))


@program((X,), breaks=None)
def p_no_divergence(x):
    try:
        return kl_divergence(Normal(x, 1.0), Categorical(logits=x))
    except NotImplementedError as error:
        return str(error)


test_agrees = program.test()


def policy(x):
    normal = Normal(x, x.exp())
    action = normal.rsample()
    ratio = (normal.log_prob(action.detach()) - 0.1).exp()
    return ratio.clamp(0.8, 1.2) * x + normal.entropy().mean() + action


def test_gradients(tmp_path):
    assert_trains(policy, (X.clone().requires_grad_(),), tmp_path)


def test_sizes_may_differ(agree):
    calls = [(torch.ones(size, 4),) for size in (3, 5, 7)]
    agree(policy, *calls, graphs=2, breaks=0)
