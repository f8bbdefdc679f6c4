"""What `health` says of chains that are known."""

import pytest
import torch
from training import tiny

from chainroute.neural.env import Mixture, sample
from chainroute.neural.policy.store import random_policy
from chainroute.neural.train.health import examine_health


@pytest.fixture
def batch():
    return sample(3, 5, Mixture.of(), torch.Generator().manual_seed(0))


def test_a_chain_without_re_embedding_changes_nothing(batch):
    """A disturbance stays as large as it was, and the largest embedding is the encoder's."""
    policy = random_policy(tiny().policy, 0)
    health = examine_health(policy, [batch], lambda n: 0.0)
    _, nodes = policy.encode(batch)
    assert health.growth == pytest.approx(1.0)
    assert health.largest == pytest.approx(nodes.norm(dim=-1).max().item(), rel=1e-5)


def test_a_chain_that_doubles_embeddings_is_noticed(batch):
    """With an MLP that adds a multiple of what it is given, embeddings grow with every step."""
    policy = random_policy(tiny().policy, 0)
    calm = examine_health(policy, [batch], lambda n: 1.0)
    with torch.no_grad():
        policy.tsnr.mlp.w3.weight.mul_(100)
    wild = examine_health(policy, [batch], lambda n: 1.0)
    assert wild.largest > 10 * calm.largest


def test_nothing_to_look_at():
    assert examine_health(random_policy(tiny().policy, 0), [], lambda n: 1.0) is None
