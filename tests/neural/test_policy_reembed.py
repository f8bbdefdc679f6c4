"""TSNR, against the literal one."""

import dataclasses
import itertools

import literal
import numpy as np
import pytest
import torch

from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.layers import nearness
from chainroute.neural.policy.reembed import TSNR

B, S, N, DIM = 2, 4, 6, 16


def draw(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def inputs():
    """Nodes, contexts, where trajectories are (two at one place), and distances that depend on direction."""
    current = torch.tensor([[0, 2, 2, 5], [1, 3, 4, 0]])
    distance = draw(B, N, N, seed=3).abs() * (1 - torch.eye(N, dtype=torch.float64))
    return draw(B, N, DIM, seed=1), draw(B, S, DIM, seed=2), current, distance


def biases(config, current, distance):
    """The biases of each node towards each context and each node, as the policy makes them."""
    bias = {"log": nearness, "raw": lambda d: d, "off": torch.zeros_like}[config.distance_bias](distance)
    rows = bias.gather(1, current[..., None].expand(-1, -1, N))
    return rows.mT, bias.mT


CONFIGS = [
    PolicyConfig(
        dim=DIM, heads=2, hidden=32, reembedding=kind, node_attention=node_attention, distance_bias=bias
    )
    for kind, node_attention, bias in itertools.product(
        ["cross", "self"], [True, False], ["log", "raw", "off"]
    )
]
CONFIGS += [dataclasses.replace(config, residual="query") for config in (CONFIGS[0], CONFIGS[-1])]


@pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda c: f"{c.reembedding}-{c.node_attention}-{c.distance_bias}-{c.residual}"
)
def test_tsnr(config):
    """The layer equals the paper's equations written out number by number."""
    tsnr = literal.drawn(TSNR(config))
    nodes, contexts, current, distance = inputs()
    refined = tsnr(nodes, contexts, *biases(config, current, distance))
    for i in range(B):
        one = (t[i].numpy() for t in (nodes, contexts, current, distance))
        for actual, expected in zip(
            refined, literal.tsnr(literal.weights_of(tsnr), config, *one), strict=True
        ):
            np.testing.assert_allclose(actual[i].detach(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda c: f"{c.reembedding}-{c.node_attention}-{c.distance_bias}"
)
def test_hidden_contexts_and_nodes_are_never_seen(config):
    """Spare trajectories and padding are hidden as keys; what is left is as if they were not there."""
    tsnr = literal.drawn(TSNR(config))
    nodes, contexts, _, distance = inputs()
    spare, padding = [3], [1, 4]
    current = torch.tensor([[0, 2, 2, 4], [3, 3, 5, 1]])  # only the spare trajectory is at padding
    to_contexts, to_nodes = biases(config, current, distance)
    to_contexts[:, :, spare] = to_nodes[:, :, padding] = -torch.inf
    refined, kept = tsnr(nodes, contexts, to_contexts, to_nodes)
    real, places = [0, 2, 3, 5], [0, 1, 2]
    index = {node: k for k, node in enumerate(real)}
    for i in range(B):
        where = np.array([index[int(node)] for node in current[i, places]])
        d = distance[i][real][:, real].numpy()
        h, c = literal.tsnr(
            literal.weights_of(tsnr), config, nodes[i, real].numpy(), contexts[i, places].numpy(), where, d
        )
        np.testing.assert_allclose(refined[i, real].detach(), h, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(kept[i, places].detach(), c, rtol=1e-9, atol=1e-9)
    assert refined.isfinite().all()
    assert kept.isfinite().all()
