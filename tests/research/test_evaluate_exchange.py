"""Depots exchanged in tensors: what the judge finds when it tries every depot for every route."""

import math

import numpy as np
import pytest
import torch

from chainroute import VARIANTS, Problem, Solution, check
from chainroute.generate import generate_arrays
from chainroute.neural.assembly.routes import tours
from chainroute.neural.decode.rollout import rollout
from chainroute.neural.env import from_problems
from chainroute.neural.env.stacked import from_arrays
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy
from chainroute.problem.arrays import problems_from_arrays
from chainroute.research.evaluate.exchange import exchanged_costs

POLICY = random_policy(PolicyConfig(dim=8, heads=2, layers=1, hidden=8), seed=3)
SEVERAL = [v for v in VARIANTS if v.multi_depot]


def cheapest(problem, tour):
    """The least cost of one route over all depots from which it breaks no rule of its own."""
    costs = [math.inf]
    for depot in problem.depots:
        verdict = check(problem, Solution.of(problem, [(depot, tour)]))
        if not any(v.route for v in verdict.violations):
            costs.append(verdict.cost)
    return min(costs)


@pytest.mark.parametrize("variant", SEVERAL, ids=str)
def test_every_route_has_the_best_depot_that_the_judge_allows(variant):
    """All trajectories of random problems, against one check for each route and depot."""
    arrays = generate_arrays(variant, 7, 2, seed=5)
    problems, batch = problems_from_arrays(arrays, "p"), from_arrays(arrays)
    made = rollout(POLICY, batch, [True] * 14)
    found = exchanged_costs(batch, torch.arange(2), made.actions)
    for b, problem in enumerate(problems):
        for s in range(0, made.actions.shape[1], 3):
            assert made.finished[b, s]
            plan = tours(problem, made.actions[b, s].numpy())
            assert found[b, s].item() == pytest.approx(sum(cheapest(problem, tour) for tour in plan))
    assert (found <= made.costs + 1e-9).all()


def test_a_route_moves_to_the_depot_between_its_ends():
    """Customers at 4 and 10 on a line, depots at 3 and 7: the route begins at the first customer's nearest
    depot, 3 - 4 - 10 - 3, which is 14 long; from the other it is 7 - 4 - 10 - 7, which is 12."""
    coords = np.array([[3.0, 0], [7, 0], [4, 0], [10, 0]])
    problem = Problem(capacity=2, delivery=[1, 1], num_depots=2, coords=coords)
    actions = torch.tensor([[[2, 3, 0, 0]]], dtype=torch.int16)
    cost = exchanged_costs(from_problems([problem]), torch.tensor([0]), actions)
    assert cost.item() * np.ptp(coords, axis=0).max() == pytest.approx(12)


def test_a_depot_that_is_too_far_for_the_limit_is_not_taken():
    """The same with service that counts towards a limit of 13: from the other depot 12 + 2 is too long, and
    from the first 14 + 2 as well, so there is no way; with a limit of 14 there is one."""
    coords = np.array([[3.0, 0], [7, 0], [4, 0], [10, 0]])
    actions = torch.tensor([[[2, 3, 0]]], dtype=torch.int16)
    costs = []
    for limit in (13.9, 14.0):
        problem = Problem(
            capacity=2,
            delivery=[1, 1],
            num_depots=2,
            coords=coords,
            service=[1, 1],
            distance_limit=limit,
            limit_counts_service=True,
        )
        costs.append(exchanged_costs(from_problems([problem]), torch.tensor([0]), actions).item() * 7)
    assert costs == [math.inf, pytest.approx(12)]
