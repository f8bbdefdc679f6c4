"""REINFORCE's advantages, on numbers small enough to check by hand."""

import math

import numpy as np
import pytest
import torch

from chainroute import Problem
from chainroute.generate import generate
from chainroute.neural.env import Mixture, from_problems, sample
from chainroute.neural.train.objective import (
    EXCESS_WEIGHT,
    MEANS_WEIGHT,
    RISK_FACTOR,
    advantages,
    cost_ratio,
    excess_length,
    fresh_means,
    loss,
    variant_index,
)
from chainroute.problem.variants import SEEN, VARIANTS

NAN = torch.nan


def some(values):
    return torch.tensor(values)


def test_scaled_advantage_by_hand():
    """Two instances of variant 3: mean costs 3 and 10, so the moving mean starts at 6.5."""
    means = fresh_means()
    cost, done = some([[2.0, 4.0], [8.0, 12.0]]), torch.ones(2, 2, dtype=torch.bool)
    got = advantages(cost, done, some([3, 3]), means, "scaled")
    assert torch.allclose(got, some([[1.0, -1.0], [2.0, -2.0]]) / 6.5)
    assert means[3] == 6.5
    assert means.isnan().sum() == len(VARIANTS) - 1

    advantages(cost + 1, done, some([3, 5]), means, "scaled")
    assert torch.allclose(means[[3, 5]], some([(1 - MEANS_WEIGHT) * 6.5 + MEANS_WEIGHT * 4, 11.0]))


def test_unscaled_advantage_by_hand():
    """It is by how much each trajectory beats the mean of its instance, and nothing else."""
    cost, done = some([[2.0, 4.0], [8.0, 12.0]]), torch.ones(2, 2, dtype=torch.bool)
    got = advantages(cost, done, some([3, 3]), fresh_means(), "unscaled")
    assert torch.equal(got, some([[1.0, -1.0], [2.0, -2.0]]))


def test_relative_advantage_by_hand():
    """Each instance is measured by its own mean, whatever the moving means say."""
    cost, done = some([[2.0, 4.0], [8.0, 12.0]]), torch.ones(2, 2, dtype=torch.bool)
    got = advantages(cost, done, some([0, 1]), fresh_means(), "relative")
    assert torch.allclose(got, some([[1 / 3, -1 / 3], [0.2, -0.2]]))


def test_preferences_by_hand():
    """The first of costs 1, 2 and 2 is to be the likelier twice, by half each at equal log-likelihoods; the
    others are not held against each other. Where it is far likelier already, nothing pulls."""
    cost, done = some([[1.0, 2.0, 2.0]]), torch.ones(1, 3, dtype=torch.bool)
    got = advantages(cost, done, some([3]), fresh_means(), "preferences", log_likelihood=torch.zeros(1, 3))
    assert torch.allclose(got, some([[0.5, -0.25, -0.25]]))
    certain = advantages(
        cost, done, some([3]), fresh_means(), "preferences", log_likelihood=some([[9e3, 0.0, 0.0]])
    )
    assert torch.allclose(certain, torch.zeros(1, 3))
    alone = advantages(
        cost, some([[True, False, False]]), some([3]), fresh_means(), "preferences", log_likelihood=cost
    )
    assert torch.equal(alone, torch.zeros(1, 3))


def test_best_advantage_by_hand():
    """The advantages of costs 2 and 4 are a third and minus a third, one spread each."""
    cost, done = some([[2.0, 4.0]]), torch.ones(1, 2, dtype=torch.bool)
    got = advantages(cost, done, some([0]), fresh_means(), "best")
    k = 3 * RISK_FACTOR
    share = math.exp(RISK_FACTOR) / (math.exp(RISK_FACTOR) + math.exp(-RISK_FACTOR))
    assert torch.allclose(got, some([[(2 * share - 1) / k, (1 - 2 * share) / k]]))


def test_best_is_the_gradient_of_a_risk_seeking_objective(monkeypatch):
    """log E exp(k A), written out for a policy over three outcomes of known advantages; nearly not leaning,
    it is "relative"."""
    cost, done = some([[2.0, 4.0, 9.0]]).double(), torch.ones(1, 3, dtype=torch.bool)
    plain = advantages(cost, done, some([0]), fresh_means().double(), "relative")
    got = advantages(cost, done, some([0]), fresh_means().double(), "best")
    k = RISK_FACTOR / plain.square().mean().sqrt()
    likelihood = torch.zeros(1, 3, dtype=torch.double, requires_grad=True)
    objective = ((likelihood.exp() / 3) * (k * plain).exp()).sum().log() / k  # each drawn once
    (gradient,) = torch.autograd.grad(objective, likelihood)
    assert torch.allclose(got / 3, gradient - 1 / (3 * k))  # the baseline: a trajectory's fair share
    monkeypatch.setattr("chainroute.neural.train.objective.RISK_FACTOR", 1e-5)
    assert torch.allclose(advantages(cost, done, some([0]), fresh_means().double(), "best"), plain, rtol=1e-4)


def test_best_of_equals_is_nobody():
    got = advantages(some([[3.0, 3.0]]), some([[True, True]]), some([0]), fresh_means(), "best")
    assert torch.equal(got, torch.zeros(1, 2))


@pytest.mark.parametrize("objective", ["scaled", "relative"])
def test_unfinished_trajectories_count_for_nothing(objective):
    """Neither their costs nor an instance without a finished trajectory has a part in anything."""
    means = fresh_means()
    cost = some([[2.0, 4.0, 1e9], [5.0, 7.0, torch.inf]])
    done = some([[True, True, False], [False, False, False]])
    got = advantages(cost, done, some([0, 1]), means, objective)
    assert torch.allclose(got, some([[1 / 3, -1 / 3, 0.0], [0.0, 0.0, 0.0]]))
    assert means[0] == 3
    assert means[1].isnan()


def test_unfinished_trajectories_are_not_the_best():
    """They change nothing for the others, however short they are."""
    cost = some([[2.0, 4.0, 0.1], [5.0, 7.0, torch.inf]])
    done = some([[True, True, False], [False, False, False]])
    got = advantages(cost, done, some([0, 1]), fresh_means(), "best")
    alone = advantages(cost[:1, :2], done[:1, :2], some([0]), fresh_means(), "best")
    assert torch.allclose(got[0, :2], alone[0])
    assert torch.equal(got[:, 2], torch.zeros(2))
    assert torch.equal(got[1], torch.zeros(3))


@pytest.mark.parametrize("objective", ["scaled", "relative", "best"])
def test_a_trajectory_that_finished_alone_is_its_own_baseline(objective):
    """It has beaten nobody; its cost is known to the moving means all the same."""
    means = fresh_means()
    got = advantages(some([[6.0, 5.0]]), some([[True, False]]), some([2]), means, objective)
    assert torch.equal(got, torch.zeros(1, 2))
    assert means[2] == 6


def test_a_variant_that_is_absent_keeps_its_moving_mean():
    """So does one of which nothing finished."""
    means = fresh_means()
    done = torch.ones(2, 2, dtype=torch.bool)
    advantages(some([[2.0, 4.0], [8.0, 12.0]]), done, some([3, 5]), means, "scaled")
    advantages(some([[9.0, 9.0], [1.0, 1.0]]), some([[True] * 2, [False] * 2]), some([3, 7]), means, "scaled")
    assert means[[3, 5]].tolist() == [3 + MEANS_WEIGHT * (9 - 3), 10]
    assert means.isnan().sum() == len(VARIANTS) - 2


def test_means_begin_on_the_device_asked_for():
    assert fresh_means("meta").device.type == "meta"


def test_sums_over_ranks_enter_the_means():
    """A rank whose costs are 3 on average moves to 5 if another has as many with 7."""
    means = fresh_means()
    other = torch.zeros(len(VARIANTS), 2)
    other[0] = some([14.0, 2.0])
    advantages(
        some([[2.0, 4.0]]),
        torch.ones(1, 2, dtype=torch.bool),
        some([0]),
        means,
        "scaled",
        lambda s: s + other,
    )
    assert means[0] == 5


def test_loss_is_lower_where_good_trajectories_are_likelier():
    advantage = some([[1.0, -1.0]])
    assert loss(advantage, some([[-1.0, -3.0]])) == pytest.approx(-1.0)
    assert loss(advantage, some([[-3.0, -1.0]])) == pytest.approx(1.0)


def test_variants_of_problems_are_recognised():
    """In a batch of one problem of each of the 48 variants, each is found at its place."""
    problems = [generate(v, 6, 1, seed=1)[0] for v in VARIANTS]
    assert variant_index(from_problems(problems)).tolist() == list(range(48))


def test_problems_with_two_and_with_three_depots_are_recognised_in_one_batch():
    names = ["CVRP", "MDCVRP", "MDCVRP"]
    problems = [
        Problem(capacity=9, delivery=[1] * 4, num_depots=m, coords=np.eye(4 + m, 2)) for m in (1, 2, 3)
    ]
    assert [p.variant.name for p in problems] == names
    assert [VARIANTS[i].name for i in variant_index(from_problems(problems))] == names


@pytest.mark.parametrize("variants", [SEEN, VARIANTS[24:], VARIANTS])
def test_variants_of_sampled_instances_are_recognised(variants):
    """One depot, several, or both in one padded batch."""
    generator = torch.Generator().manual_seed(0)
    for variant in variants[::5]:
        batch = sample(3, 5, Mixture.of([variant]), generator)
        assert variant_index(batch).tolist() == [VARIANTS.index(variant)] * 3
    found = variant_index(sample(500, 5, Mixture.of(variants), generator)).unique()
    assert found.tolist() == [VARIANTS.index(v) for v in variants]


def test_cost_ratio_by_hand():
    """Costs of 3 and 8 on average, where 2 and 4 were usual: 1.5 and 2 times as much. Of a new variant
    nothing is known."""
    means = fresh_means()
    means[[3, 5]] = some([2.0, 4.0])
    cost = some([[2.0, 3.0, 4.0], [7.0, 8.0, 9.0]])
    assert cost_ratio(cost, some([3, 5]), means) == 1.75
    assert cost_ratio(cost, some([3, 6]), means).isnan()


def test_embeddings_longer_than_the_bound_are_penalised():
    """Of lengths 3 and 1 the first is half as long again as the bound 2; half of the square of that."""
    nodes = some([[0.0, 3.0], [1.0, 0.0]]).requires_grad_()
    penalty = excess_length(nodes, 2.0)
    penalty.backward()
    assert penalty.item() == pytest.approx(EXCESS_WEIGHT * 0.25 / 2)
    torch.testing.assert_close(nodes.grad, EXCESS_WEIGHT * some([[0.0, 0.25], [0.0, 0.0]]))
