"""Trajectories become routes: their depots, their costs, the fleet, against trying everything."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, invent

from chainroute import VARIANTS, Problem, Solution, check
from chainroute.neural.assembly.routes import assign, end_legs, least_costs, tours, trajectory, with_depots
from chainroute.neural.decode import rollout
from chainroute.neural.env import from_problems
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy


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


@settings(max_examples=2 * settings.default.max_examples)
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


@pytest.mark.parametrize("fleet", [1, 2, 3])
def test_assignment_over_many_depots_is_the_cheapest(fleet):
    """Long chains: all vehicles of six depots are needed. Against another's algorithm for assignments."""
    linear_sum_assignment = pytest.importorskip("scipy.optimize").linear_sum_assignment
    for seed in range(20):
        table = np.random.default_rng(seed).integers(1, 50, (6, 6 * fleet)).astype(float)
        chosen = assign(table, fleet)
        assert (np.bincount(chosen) == fleet).all()
        vehicles = np.repeat(table, fleet, axis=0)
        assert table[chosen, range(6 * fleet)].sum() == vehicles[linear_sum_assignment(vehicles)].sum()


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


def test_tours_and_trajectories_by_hand():
    """Depots, here 0 and 1, only separate the routes; a trajectory may begin or end at one, or stay there."""
    problem = Problem(capacity=9, delivery=[1] * 4, num_depots=2, coords=np.eye(6, 2))
    for actions in ([2, 3, 0, 4, 1, 5], [0, 2, 3, 0, 1, 4, 0, 5, 0, 0]):
        assert tours(problem, np.array(actions)) == [(2, 3), (4,), (5,)]
    assert tours(problem, np.array([0, 1])) == []
    assert trajectory([(2, 3), (4,)]).tolist() == [[2, 3, 0, 4, 0]]


def line(*at, **fields):
    """Depots at 0 and 10, customers at these places."""
    return Problem(
        capacity=9, delivery=[1] * len(at), num_depots=2, coords=[(x, 0) for x in (0, 10, *at)], **fields
    )


def test_least_costs_by_hand():
    """Each route from the depot that makes it shortest, whatever the trajectory says; open ones one way."""
    problem = line(1, 2, 9)
    actions = np.array([[2, 3, 0, 4, 0, 0], [2, 3, 4, 0, 0, 0], [4, 0, 3, 0, 2, 0], [0, 0, 0, 0, 0, 0]])
    assert least_costs(problem, actions).tolist() == [4 + 2, 18, 2 + 4 + 2, 0]
    assert least_costs(problem.replace(open=True), actions).tolist() == [2 + 1, 9, 1 + 2 + 1, 0]


@pytest.mark.parametrize(("fleet", "affordable"), [(None, 3), (2, 3), (1, 2)])
def test_least_costs_are_infinite_where_the_vehicles_do_not_suffice(fleet, affordable):
    """Both depots together have twice the fleet; the trajectories have 1, 2 and 3 routes, and none."""
    problem = line(1, 2, 9, fleet=fleet)
    actions = np.array([[2, 3, 4, 0, 0], [2, 3, 0, 4, 0], [2, 0, 3, 0, 4], [0, 0, 0, 0, 0]])
    finite = np.isfinite(least_costs(problem, actions))
    assert finite.tolist() == [i < affordable for i in range(3)] + [True]


def test_broken_rules_that_no_depot_can_keep_are_told():
    """Too much for a vehicle, and customers that nobody visits, whatever the depots."""
    problem = line(1, 2, 9)
    solution, verdict = with_depots(problem.replace(capacity=1), [(2, 3)])
    assert sorted(v.code for v in verdict.violations) == ["capacity-exceeded", "customer-missing"]
    assert [route.visits for route in solution.routes] == [(2, 3)]


def test_ends_by_hand():
    """From both depots to the first customer and back from the last; with open routes only the way out."""
    problem = line(1, 2, 9)
    assert end_legs(problem, [2, 4], [3, 4]).tolist() == [[1 + 2, 9 + 9], [9 + 8, 1 + 1]]
    assert end_legs(problem.replace(open=True), [2, 4], [3, 4]).tolist() == [[1, 9], [9, 1]]
    assert problem.distances[0, 2] == 1  # and the problem's own numbers stay theirs
