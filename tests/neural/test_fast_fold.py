"""The folded decoder computes what `Policy.step` computes, in every precision."""

from functools import cache

import pytest
import torch
from networks import COMBINED, SWITCHED, named
from problems import KINDS, invent

from chainroute import VARIANTS
from chainroute.neural.env import begin, from_problems, mask, step
from chainroute.neural.fast.fold import Folded, fold
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy


def follow(policy, batch, dtype=None, steps=12):
    """Plain and folded logits and nodes along the plain greedy trajectories, re-embedding now and then."""
    scene, nodes = policy.encode(batch)
    folded, state = Folded(policy, fold(policy).to(dtype or policy.dtype), batch), begin(batch)
    for j in range(steps):
        legal, refine = mask(batch, state), j % 3 != 1
        plain, nodes = policy.step(batch, scene, nodes, state, legal, refine)
        yield legal, (plain, nodes), (folded.step(state, legal, refine), folded.nodes)
        state = step(batch, state, plain.argmax(-1))


def drawn(policy, seed=0):
    """The policy with weights of its norms and biases that are not ones and zeros."""
    rng = torch.Generator().manual_seed(seed)
    for p in policy.parameters():
        if p.ndim == 1:
            p.data += 0.3 * torch.randn(p.shape, generator=rng, dtype=p.dtype)
    return policy


@cache
def all_variants():
    """All 48 in one padded batch, with depots, customers and trajectories that are not there, and distances
    that differ by direction."""
    problems = [
        invent(v, i, 3 + i % 5, kind=KINDS[i % len(KINDS)], fleet=i % 4 == 0) for i, v in enumerate(VARIANTS)
    ]
    longer = [p if p.time_windows is None else p.replace(time_windows=5 * p.time_windows) for p in problems]
    return from_problems([*problems[::2], *longer[1::2]])


@pytest.mark.parametrize("switches", [{}, *SWITCHED, *COMBINED], ids=named)
def test_folded_is_plain_in_double_precision(switches):
    """In a padded batch of all 48 variants."""
    config = PolicyConfig(dim=24, heads=4, layers=1, hidden=20, clip=7, **switches)
    policy = drawn(random_policy(config).double())
    batch = all_variants()
    scene = policy.observe(batch)
    assert (scene.pace < 1).any()  # longer days than in training
    assert (scene.reach < 1).any()  # longer routes
    with torch.no_grad():
        for legal, plain, folded in follow(policy, batch):
            assert torch.equal(plain[0].isneginf(), ~legal)
            assert torch.equal(folded[0].isneginf(), ~legal)
            for a, b in zip(plain, folded, strict=True):
                torch.testing.assert_close(b, a, rtol=1e-9, atol=1e-9)


def test_folded_is_plain_in_single_precision_at_full_size():
    policy = drawn(random_policy())
    batch = from_problems([invent(v, 7, 9, depots=1) for v in VARIANTS[:24:5]])
    with torch.no_grad():
        for _, plain, folded in follow(policy, batch, steps=4):
            for a, b in zip(plain, folded, strict=True):
                torch.testing.assert_close(b, a, rtol=1e-3, atol=1e-4)


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.parametrize("switches", [{}, *SWITCHED, *COMBINED], ids=named)
def test_half_weights_stay_close(switches):
    policy = random_policy(PolicyConfig(dim=32, heads=4, layers=1, hidden=32, **switches))
    batch = from_problems([invent(v, 7, 6, depots=1) for v in VARIANTS[:24:5]])
    most = 2 if policy.config.scores == "dot" else 0.5  # of logits between -10 and 10; dots have no bounds
    with torch.no_grad():
        for legal, plain, folded in follow(policy, batch, torch.bfloat16, steps=4):
            assert folded[1].dtype == torch.float32
            assert (plain[0] - folded[0])[legal].abs().max() < most
