"""Trajectories become routes: their depots, their costs, the fleet, against trying everything."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, invent

from chainroute import VARIANTS, Solution, check
from chainroute.decode import rollout
from chainroute.decode.routes import assign, least_costs, tours, with_depots
from chainroute.env import from_problems
from chainroute.policy import PolicyConfig
from chainroute.policy.store import random_policy


@pytest.fixture(scope="module")
def policy():
    return random_policy(PolicyConfig(dim=16, heads=2, layers=1, hidden=16))


def best_depots(problem, plan):
    """The cost of the cheapest feasible choice of depots, by trying all; None if there is none."""
    found = []
    for depots in itertools.product(problem.depots, repeat=len(plan)):
        verdict = check(problem, Solution.of(problem, zip(depots, plan, strict=True)))
        if verdict.feasible:
            found.append(verdict.cost)
    return min(found, default=None)


@settings(max_examples=40)
@given(
    st.sampled_from([v for v in VARIANTS if v.multi_depot]),
    st.integers(0, 10**6),
    st.sampled_from(KINDS),
    st.booleans(),
)
def test_exchanged_depots_are_the_best_there_are(variant, seed, kind, fleet):
    """Against all choices, for random tours: most are feasible from some depots only."""
    problem = invent(variant, seed, customers=5, kind=kind, fleet=fleet)
    rng = np.random.default_rng(seed)
    order, cuts = rng.permutation(problem.customers), np.sort(rng.choice(range(1, 5), 3, replace=False))
    plan = [tuple(part.tolist()) for part in np.split(order, cuts)]
    solution, verdict = with_depots(problem, plan)
    assert [route.visits for route in solution.routes] == plan
    assert verdict == check(problem, solution)
    best = best_depots(problem, plan)
    assert verdict.feasible == (best is not None)
    if best is not None:
        assert solution.cost == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 6), st.integers(1, 3))
def test_assignment_is_the_cheapest(seed, depots, size, fleet):
    """Against all assignments; infinite costs, and more vehicles than there are, only if it must be."""
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((depots, size)) < 0.3, np.inf, rng.integers(0, 20, (depots, size)))
    chosen = assign(table, fleet)
    if size > depots * fleet:
        assert len(chosen) == size
        return
    assert max(np.bincount(chosen)) <= fleet

    def worth(choice):
        paid = table[choice, range(size)]
        return np.isinf(paid).sum(), paid[np.isfinite(paid)].sum()

    every = itertools.product(range(depots), repeat=size)
    allowed = [list(choice) for choice in every if max(np.bincount(choice)) <= fleet]
    assert worth(chosen) == min(map(worth, allowed))


def test_least_costs_are_the_costs_with_one_depot_and_a_bound_with_several(policy):
    for i, v in enumerate(VARIANTS[::3]):
        problem = invent(v, i, 6)
        result = rollout(policy, from_problems([problem]), [True] * 12)
        actions = result.actions[0].numpy()
        least = least_costs(problem, actions)
        for a, cost in zip(actions, least, strict=True):
            solution, verdict = with_depots(problem, tours(problem, a))
            assert verdict.feasible
            assert cost <= solution.cost * (1 + 1e-9)
            if not v.multi_depot:
                assert cost == pytest.approx(solution.cost)
