"""The best plan of the routes of many trajectories: bounds, pruning and search, against all plans."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, invent

from chainroute import VARIANTS, Problem, Solution, check
from chainroute.decode import DecodeOptions, attempt
from chainroute.decode.recombine import Pool, partition
from chainroute.decode.routes import trajectory
from chainroute.policy import PolicyConfig
from chainroute.policy.store import random_policy

TINY = PolicyConfig(dim=16, heads=2, layers=1, hidden=16)
PLAIN = DecodeOptions(augmentations=1)
RECOMBINED = DecodeOptions(augmentations=1, recombine=True)


@pytest.fixture(scope="module")
def policy():
    return random_policy(TINY)


def judged(problems, solutions):
    for problem, solution in zip(problems, solutions, strict=True):
        verdict = check(problem, solution)
        assert verdict.feasible, verdict
    return np.array([solution.cost for solution in solutions])


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 9))
def test_partition_is_the_cheapest(seed, columns, rows):
    """Against all subsets; none is found exactly where none is cheaper than asked."""
    rng = np.random.default_rng(seed)
    contains = rng.random((rows, columns)) < 0.4
    contains[~contains.any(1), 0] = True
    contains[0] |= ~contains.any(0)
    costs = rng.random(rows) + 0.1
    worth = [
        costs[list(chosen)].sum()
        for size in range(1, rows + 1)
        for chosen in itertools.combinations(range(rows), size)
        if (contains[list(chosen)].sum(0) == 1).all()
    ]
    limit = rng.uniform(0.5, 1.5) * min(worth, default=1)
    chosen = partition(costs, contains, limit)
    if not worth or min(worth) >= limit:
        assert chosen is None
    else:
        assert (contains[chosen].sum(0) == 1).all()
        assert costs[chosen].sum() == pytest.approx(min(worth))


def test_pools_keep_each_set_of_customers_in_its_cheapest_order():
    """Four customers on a line: the same two in both orders, and with a detour."""
    problem = Problem(
        capacity=4, delivery=[1] * 4, coords=[(0, 0), (1, 0), (2, 0), (3, 0), (-1, 0)], open=True
    )
    pool = Pool(problem)
    pool.add(np.array([[2, 1, 0, 3, 4], [1, 2, 0, 4, 3], [0, 0, 1, 0, 2]]))
    assert sorted(pool.tours.values()) == [(1.0, (1,)), (2.0, (1, 2)), (2.0, (2,)), (5.0, (4, 3))]
    pool.add(trajectory([(3,), (4,)]))
    cost, plan = pool.best(7.1)
    assert cost == 2 + 3 + 1
    assert sorted(plan) == [(1, 2), (3,), (4,)]
    assert pool.best(6.0) is None
    assert Pool(problem, np.array([2, 1])).best(9.0) is None


def test_recombined_routes_are_judged_and_never_worse_than_the_best_trajectory(policy):
    problems = [invent(v, i, 9, kind=KINDS[i % len(KINDS)], fleet=i % 3 == 0) for i, v in enumerate(VARIANTS)]
    best, recombined = (attempt(policy, problems, options) for options in (PLAIN, RECOMBINED))
    found = [i for i, one in enumerate(best) if isinstance(one, Solution)]
    assert len(found) > 40
    some = [problems[i] for i in found]
    a, b = (judged(some, [outcomes[i] for i in found]) for outcomes in (best, recombined))
    assert (b <= a * (1 + 1e-9)).all()
    assert (b < a * 0.999).sum() > 10
