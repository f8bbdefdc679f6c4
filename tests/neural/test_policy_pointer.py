"""The pointer, with and without ReLD, against the literal one."""

import itertools

import literal
import numpy as np
import pytest
import torch

from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.layers import nearness
from chainroute.neural.policy.pointer import Pointer

B, S, N, DIM = 2, 4, 6, 16


def draw(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def inputs():
    """Contexts, current nodes, unified constraints, nodes, distances with zeros, and a mask."""
    distance = draw(B, S, N, seed=5).abs()
    distance[:, :, 2] = 0
    mask = draw(B, S, N, seed=6) > 0
    mask[:, :, 0] |= ~mask.any(-1)
    assert not mask.all()
    return *(draw(B, S, DIM, seed=k) for k in range(3)), draw(B, N, DIM, seed=4), distance, mask


@pytest.mark.parametrize(
    ("reld", "depth", "near", "residual"),
    [
        *itertools.product([True, False], [1, 4], [True, False], [False]),
        *itertools.product([True, False], [1, 2], [True, False], [True]),
    ],
)
def test_pointer(reld, depth, near, residual):
    """The layer equals the paper's equations written out number by number."""
    switches = {
        "reld": reld,
        "decoder_depth": depth,
        "logit_distance_bias": near,
        "glimpse_residual": residual,
    }
    config = PolicyConfig(dim=DIM, heads=2, hidden=32, clip=7, **switches)
    pointer = literal.drawn(Pointer(config))
    context, here, unified, nodes, distance, mask = inputs()
    logits = pointer(context, here, unified, nodes, nearness(distance), mask)
    assert (logits[mask].abs() < 6.9).float().mean() > 0.5, "clipping hides what differs"
    for i, s in itertools.product(range(B), range(S)):
        one = (context[i, s], here[i, s], unified[i, s], nodes[i], distance[i, s], mask[i, s])
        expected = literal.pointer(literal.weights_of(pointer), config, *(t.numpy() for t in one))
        np.testing.assert_allclose(logits[i, s].detach(), expected, rtol=1e-9, atol=1e-9)


def test_logits_are_clipped_and_masked():
    config = PolicyConfig(dim=DIM, heads=2, hidden=32)
    context, here, unified, nodes, distance, mask = inputs()
    pointer = literal.drawn(Pointer(config))
    logits = pointer(1e3 * context, here, unified, nodes, nearness(distance), mask)
    assert (logits[mask].abs() <= 10).all()
    assert logits[~mask].isneginf().all()
