"""The encoder, against the literal one."""

import literal
import numpy as np
import pytest
import torch

from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.encoder import Encoder, TransformerLayer

CONFIG = {"dim": 16, "heads": 2, "layers": 2, "hidden": 32}


def random(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(actual, expected):
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("keep", [None, 1, 3])
def test_transformer_layer(keep):
    """A layer of the global branch, and one of the sparse branch with few keys, are as the paper has them."""
    layer = literal.drawn(TransformerLayer(PolicyConfig(**CONFIG), sparse=keep is not None))
    x = random(2, 7, 16)
    out = layer(x, keep or 0, None)
    for i in range(2):
        close(out[i], literal.transformer_layer(literal.weights_of(layer), x[i].numpy(), 2, keep))


INSTANCES = [(1, 6), (3, 5), (1, 1)]  # depots and customers


@pytest.mark.parametrize(
    "options",
    [{}, {"sparse": False}, {"depot_closing": True}, {"prompt": False, "layers": 1}, {"fusion": "parallel"}],
)
@pytest.mark.parametrize(("depots", "customers"), INSTANCES)
def test_encoder(options, depots, customers):
    """The layer equals the paper's equations written out number by number."""
    config = PolicyConfig(**{**CONFIG, **options})
    encoder = literal.drawn(Encoder(config))
    features, limit = random(3, depots + customers, 7), random(3)
    flags = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]], dtype=torch.float64)
    nodes = encoder(features, limit, flags, depots, None)
    for i in range(3):
        one = (features[i].numpy(), float(limit[i]), flags[i].numpy(), depots)
        close(nodes[i], literal.encoder(literal.weights_of(encoder), config, *one))


@pytest.mark.parametrize("sparse", [True, False])
def test_padding_is_never_seen(sparse):
    """Depots and customers added to fill a batch change nothing, whatever their features are."""
    config = PolicyConfig(**CONFIG, sparse=sparse)
    encoder = literal.drawn(Encoder(config))
    features, limit = random(len(INSTANCES), 3 + 6, 7), random(len(INSTANCES))
    flags = (random(len(INSTANCES), 4, seed=1) > 0.5).double()
    padding = torch.ones(len(INSTANCES), 9, dtype=torch.bool)
    for i, (depots, customers) in enumerate(INSTANCES):
        padding[i, :depots] = padding[i, 3 : 3 + customers] = False
    nodes = encoder(features, limit, flags, 3, padding)
    for i, (depots, _) in enumerate(INSTANCES):
        real = ~padding[i]
        one = (features[i, real].numpy(), float(limit[i]), flags[i].numpy(), depots)
        close(nodes[i, real], literal.encoder(literal.weights_of(encoder), config, *one))
    assert nodes.isfinite().all()
