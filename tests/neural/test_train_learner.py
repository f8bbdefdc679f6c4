"""What a gradient does to a learner, and which gradients do nothing."""

import pytest
import torch
from training import TINY, tiny

from chainroute.neural.train.learner import ABSURD_NORM, NORM_DRIFT, Learner


def learner_after(norms, config=TINY):
    """A learner that has seen gradients of these lengths, all in one direction."""
    learner = Learner.fresh(config)
    for norm in norms:
        set_gradient(learner, norm)
        learner.learn(0.01, 4)
    return learner


def set_gradient(learner, norm):
    gradient = learner.optimiser.gradient
    gradient.fill_(norm / len(gradient) ** 0.5)


def weights(learner):
    return torch.cat([p.detach().flatten() for p in learner.policy.parameters()])


def test_all_gradients_share_one_buffer():
    """What autograd adds to a weight's gradient is in it, weight after weight."""
    learner = Learner.fresh(TINY)
    sum(p.sum() for p in learner.policy.parameters()).backward()
    assert torch.equal(learner.optimiser.gradient, torch.ones_like(learner.optimiser.gradient))


@pytest.mark.parametrize("method", ["adamw", "muon"])
@pytest.mark.parametrize("norm", [ABSURD_NORM * 1.1, float("nan"), float("inf")])
def test_an_absurd_gradient_is_left_out(method, norm):
    """Weights stay and moments are finite; the usual norm drifts, so that it cannot be for ever."""
    learner = learner_after([1.0, 1.0], tiny(optimiser=method, weight_decay=0.1))
    before = weights(learner)
    set_gradient(learner, norm)
    told, left_out = learner.learn(0.01, 4)
    assert bool(left_out)
    assert told == 0
    assert torch.equal(weights(learner), before)
    assert all(moment.isfinite().all() for _, moment in learner.optimiser.moments())
    assert learner.usual_norm == pytest.approx(NORM_DRIFT, rel=1e-4)
    assert not learner.optimiser.gradient.any()
    set_gradient(learner, 1.0)
    told, left_out = learner.learn(0.01, 4)
    assert not bool(left_out)
    assert told == pytest.approx(1.0, rel=1e-4)
    assert not torch.equal(weights(learner), before)


def test_gradients_of_unusual_costs_are_left_out():
    learner = learner_after([1.0])
    before = weights(learner)
    set_gradient(learner, 1.0)
    learner.learn(0.01, 4, torch.tensor(True))
    assert torch.equal(weights(learner), before)


def test_long_gradients_are_clipped_and_remembered():
    """A gradient ten times as long as usual moves the weights as far as the clip allows."""
    learner = learner_after([1.0], tiny(clip=0.5))
    set_gradient(learner, 10.0)
    told, left_out = learner.learn(0.0, 4)
    assert told == pytest.approx(10.0, rel=1e-4)
    assert not bool(left_out)
    assert learner.usual_norm == pytest.approx(1 + 0.01 * 9, rel=1e-4)
