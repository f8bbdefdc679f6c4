"""RGCR, against the literal one, which forms the four constraint embeddings."""

import literal
import numpy as np
import pytest
import torch

from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.context import RGCR

SCORES = ["gated", "dot", "cosine", "random", "embeddings", "attributes"]
B, S, DIM = 3, 4, 16


def inputs():
    """Attributes with whole groups of zeros among them, embeddings, flags of all kinds, and noise."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    attributes = draw(B, S, 13)
    attributes[0, 0, 9:] = 0
    flags = torch.tensor([[0, 0, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]], dtype=torch.float64)
    return attributes, draw(B, S, DIM), flags, draw(B, S, 4)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("noisy", [False, True])
def test_rgcr(scores, noisy):
    """The layer equals the paper's equations written out number by number."""
    config = PolicyConfig(dim=DIM, heads=2, scores=scores)
    rgcr = literal.drawn(RGCR(config))
    attributes, here, flags, noise = inputs()
    noise = noise if noisy else torch.zeros_like(noise)
    context, unified = rgcr(attributes, here, flags, noise)
    for i in range(B):
        for s in range(S):
            one = (attributes[i, s], here[i, s], flags[i], noise[i, s])
            c, u = literal.rgcr(literal.weights_of(rgcr), config, *(t.numpy() for t in one))
            np.testing.assert_allclose(context[i, s].detach(), c, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(unified[i, s].detach(), u, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scores", SCORES)
def test_no_noise_is_noise_of_zero(scores):
    rgcr = literal.drawn(RGCR(PolicyConfig(dim=DIM, heads=2, scores=scores)))
    attributes, here, flags, noise = inputs()
    calm = rgcr(attributes, here, flags)
    assert all(
        torch.equal(a, b)
        for a, b in zip(calm, rgcr(attributes, here, flags, torch.zeros_like(noise)), strict=True)
    )
    disturbed = not torch.equal(calm[0], rgcr(attributes, here, flags, noise)[0])
    assert disturbed == (scores in ("gated", "random"))


def test_gated_scores_ignore_absent_constraints():
    """Without flags nothing is added to the concatenated embeddings: gated is then the same as embeddings."""
    attributes, here, flags, _ = inputs()
    gated, embeddings = (
        literal.drawn(RGCR(PolicyConfig(dim=DIM, heads=2, scores=s))) for s in ("gated", "embeddings")
    )
    a, b = gated(attributes, here, flags)[1], embeddings(attributes, here, flags)[1]
    torch.testing.assert_close(a[0], b[0], rtol=0, atol=1e-12)
    assert not torch.allclose(a[2], b[2])


@pytest.mark.parametrize("scores", SCORES)
def test_gradients_are_finite_where_attributes_are_zero(scores):
    """A trajectory at the depot of an instance without windows has no window attributes at all."""
    rgcr = literal.drawn(RGCR(PolicyConfig(dim=DIM, heads=2, scores=scores)))
    attributes, here, flags, noise = inputs()
    rgcr(attributes, here, flags, noise)[0].sum().backward()
    assert all(p.grad.isfinite().all() for p in rgcr.parameters())
