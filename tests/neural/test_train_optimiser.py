"""The optimisers: Muon against its definition by singular values, AdamW for the rest."""

import pytest
import torch
from training import tiny

from chainroute.neural.train.learner import Learner
from chainroute.neural.train.optimiser import MOMENTUM, STEP_LENGTH, orthogonal

FUSED = {"qkv": 3, "w12": 2, "keys": 2}  # layers of the default network that hold several matrices


def gradients(learner, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for p in learner.policy.parameters():
        p.grad.copy_(torch.randn(p.shape, generator=generator) * 1e-3)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 8, 20)])
def test_orthogonal_keeps_directions_and_evens_their_lengths(shape):
    """The singular vectors stay, and the singular values come between 0.6 and 1.3."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1)).double()
    u, values, v = torch.linalg.svd(x, full_matrices=False)
    got = u.mT @ orthogonal(x) @ v.mT
    assert torch.allclose(got, torch.diag_embed(torch.diagonal(got, dim1=1, dim2=2)), atol=1e-9)
    evened = torch.diagonal(got, dim1=1, dim2=2)
    wide = (
        values / torch.linalg.matrix_norm(x, keepdim=False)[:, None] > 0.02
    )  # smaller ones need more rounds
    assert wide.sum() > 10
    assert (evened[wide] > 0.6).all()
    assert (evened[wide] < 1.3).all()


def test_muon_by_singular_values():
    """Two updates, written out matrix by matrix: along the evened momentum, which looks ahead."""
    learner = Learner.fresh(tiny(optimiser="muon", weight_decay=0.0, clip=1e9))
    named = dict(learner.policy.named_parameters())
    assert learner.optimiser.matrices.keys() < named.keys()
    expected = {name: named[name].detach().clone() for name in learner.optimiser.matrices}
    momentum = {name: torch.zeros_like(p) for name, p in expected.items()}
    for seed in range(2):
        gradients(learner, seed)
        for name, weight in expected.items():
            momentum[name] = MOMENTUM * momentum[name] + (1 - MOMENTUM) * named[name].grad
            ahead = (1 - MOMENTUM) * named[name].grad + MOMENTUM * momentum[name]
            for w, a in zip(
                *(m.chunk(FUSED.get(name.split(".")[-2], 1)) for m in (weight, ahead)), strict=True
            ):
                step = orthogonal(a[None])[0] if len(a) <= a.shape[1] else orthogonal(a.T[None])[0].T
                w -= 1e-2 * STEP_LENGTH * max(a.shape) ** 0.5 * step
        learner.learn(1e-2, 4)
    for name, weight in expected.items():
        assert torch.allclose(named[name], weight, atol=1e-5), name


def test_what_is_no_matrix_moves_by_adamw():
    """Vectors, and maps from a few attributes, as a learner without Muon moves them."""
    one, other = (Learner.fresh(tiny(optimiser=method, clip=1e9)) for method in ("muon", "adamw"))
    for learner in (one, other):
        gradients(learner)
        learner.learn(1e-2, 4)
    others = dict(other.policy.named_parameters())
    same = {name for name, p in one.policy.named_parameters() if torch.equal(p, others[name])}
    assert same == one.optimiser.others.keys()
    assert {"rgcr.embed.0.weight", "encoder.customer.weight", "tsnr.norm.weight"} <= same
    assert {"tsnr.q.weight", "pointer.out.weight", "encoder.globals.0.qkv.weight"}.isdisjoint(same)


def test_steps_are_as_long_as_the_rate_says():
    """In root mean square it is STEP_LENGTH times the rate, less what the iteration leaves short."""
    learner = Learner.fresh(tiny(optimiser="muon", weight_decay=0.0))
    before = {name: p.detach().clone() for name, p in learner.optimiser.matrices.items()}
    gradients(learner)
    learner.learn(1e-2, 4)
    for name, p in learner.optimiser.matrices.items():
        assert 0.5 < (p - before[name]).square().mean().sqrt() / (1e-2 * STEP_LENGTH) < 1.3, name


def test_weights_decay():
    """Without gradients a rate of 0.1 and a decay of 0.5 leave 95 % of every weight."""
    learner = Learner.fresh(tiny(optimiser="muon", weight_decay=0.5))
    before = [p.detach().clone() for p in learner.policy.parameters()]
    learner.learn(0.1, 4)
    for p, q in zip(before, learner.policy.parameters(), strict=True):
        assert torch.allclose(0.95 * p, q)
