"""The best plan of the routes of many trajectories: bounds, pruning and search, against all plans."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, invent, judged_costs

from chainroute import VARIANTS, Problem, Solution
from chainroute.assembly import recombine
from chainroute.assembly.recombine import Pool, partition
from chainroute.assembly.routes import trajectory
from chainroute.decode import DecodeOptions, attempt
from chainroute.policy import PolicyConfig
from chainroute.policy.store import random_policy

TINY = PolicyConfig(dim=16, heads=2, layers=1, hidden=16)
PLAIN = DecodeOptions(augmentations=1)
RECOMBINED = DecodeOptions(augmentations=1, recombine=True)


@pytest.fixture(scope="module")
def policy():
    return random_policy(TINY)


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


def test_pools_keep_the_cheapest_order_whenever_it_comes():
    """Also a pool that is given nothing, or trajectories that visit nobody."""
    problem = Problem(capacity=4, delivery=[1] * 2, coords=[(0, 0), (1, 0), (2, 0)], open=True)
    pool = Pool(problem)
    for actions, cost, tour in ([[2, 1]], 3, (2, 1)), ([[1, 2]], 2, (1, 2)), ([[2, 1]], 2, (1, 2)):
        pool.add(np.array(actions))
        assert list(pool.tours.values()) == [(cost, tour)]
    pool.add(np.zeros((3, 4), dtype=int))
    assert len(pool.tours) == 1


def test_pools_tell_sets_of_customers_apart():
    """All 435 pairs and 4,060 triples of thirty customers."""
    problem = Problem(capacity=9, delivery=[1] * 30, coords=np.random.default_rng(0).random((31, 2)))
    pool = Pool(problem)
    for size in (2, 3):
        sets = list(itertools.combinations(problem.customers, size))
        pool.add(np.array([(0, *some, 0) for some in sets]))
        assert {tour for _, tour in pool.tours.values() if len(tour) == size} == set(sets)


def test_pools_of_some_customers_have_plans_for_those():
    problem = Problem(capacity=9, delivery=[1] * 4, coords=[(x, 0) for x in range(5)])
    pool = Pool(problem, np.array([4, 2]))
    pool.add(np.array([[2, 4, 0], [4, 0, 2]]))
    assert pool.best(99.0) == (8.0, [(2, 4)])


def random_rows(seed, columns=6, rows=14):
    """Sets of columns with whole costs, so that some are equally good; all can be partitioned."""
    rng = np.random.default_rng(seed)
    contains = rng.random((rows, columns)) < 0.35
    contains[:columns] = np.eye(columns, dtype=bool)
    contains = contains[contains.any(1)]
    costs = rng.integers(1, 8, len(contains)) + contains.sum(1) * 2.0
    return costs, contains


def by_sets(costs, contains, extra, bound, limit, steps):
    """The search as `recombine._Search` describes it, with sets for bits: the choice, and the steps taken."""
    best, taken = None, 0

    def visit(rows, left, chosen, least):
        nonlocal best, limit, taken
        taken += 1
        if not left:
            cost = costs[chosen].sum()
            if cost < limit:
                best, limit = chosen, cost
            return
        rows = [r for r in rows if extra[r] < limit - least]
        for row in min(([r for r in rows if contains[r, c]] for c in sorted(left)), key=len):
            if taken >= steps or least + extra[row] >= limit:
                return
            apart = [r for r in rows if not (contains[r] & contains[row]).any()]
            visit(apart, left - set(np.flatnonzero(contains[row])), [*chosen, row], least + extra[row])

    visit(range(len(costs)), set(range(contains.shape[1])), [], bound)
    return best, taken


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([3, 10, 2000]))
def test_the_search_takes_no_step_in_vain(seed, priced, steps):
    """Step for step what it is said to do; without prices, where nothing is pruned early, and with them."""
    costs, contains = random_rows(seed)
    order = np.argsort(costs, kind="stable")
    extra, bound = costs, 0.0
    if priced:
        prices = (costs[:, None] / contains.sum(1)[:, None] + np.where(contains, 0, np.inf)).min(0)
        extra, bound = np.maximum(costs - contains @ prices, 0), prices.sum()
        order = np.argsort(extra, kind="stable")
    costs, contains, extra = costs[order], contains[order], extra[order]
    for limit in (1.5 * costs[contains.sum(1) == 1].sum(), bound + 12):
        search = recombine._Search(costs, contains, extra, bound)
        search.steps = steps
        found = search.run(limit)
        assert (found, steps - search.steps) == by_sets(costs, contains, extra, bound, limit, steps)


@given(st.integers(0, 10**6))
def test_only_what_a_better_plan_can_contain_is_searched(seed):
    """Whatever share of the gap the search begins with: all rows with less extra cost, in order."""
    costs, contains = random_rows(seed, 8, 30)
    limit = 1.1 * costs[:8].sum()
    prices, bound = recombine._prices(costs, contains, limit)
    extra = np.maximum(costs - contains @ prices, 0)
    begun = []

    class Search(recombine._Search):
        def __init__(self, costs, contains, extra, bound):
            super().__init__(costs, contains, extra, bound)
            begun.append((extra, bound))

        def run(self, most):
            extra_here, bound_here = begun[-1]
            assert bound_here == bound
            assert extra_here.tolist() == sorted(extra[extra < most - bound])
            assert most - bound == pytest.approx(recombine.SHARES[len(begun) - 1] * (limit - bound))
            return super().run(most) if len(begun) == len(recombine.SHARES) else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recombine, "_Search", Search)
        chosen = partition(costs, contains, limit)
    assert len(begun) == len(recombine.SHARES)
    assert (contains[chosen].sum(0) == 1).all()


@pytest.mark.parametrize(("iterations", "bound"), [(1, 7.0), (2, 7.0375)])
def test_prices_by_hand(monkeypatch, iterations, bound):
    """Both columns for 8, or one for 3 and the other for 5. First prices are the least by which a row has the
    column, 3 and 4; no row is worth more than its cost, so both are missing once. The step towards 1.05 x 8.5
    is 1.925, half of it for each: 3.9625 and 4.9625. Now two rows are worth 0.925 and 0.9625 too much."""
    monkeypatch.setattr(recombine, "PRICE_ITERATIONS", iterations)
    contains = np.array([[True, True], [True, False], [False, True]])
    prices, found = recombine._prices(np.array([8.0, 3.0, 5.0]), contains, 8.5)
    assert found == pytest.approx(bound)
    assert prices.tolist() == ([3, 4] if iterations == 1 else pytest.approx([3.9625, 4.9625]))


def test_prices_that_choose_a_plan_are_the_end_of_it():
    """Nothing is missing and nothing is divided by that nothing."""
    contains = np.array([[True, False], [False, True], [True, True]])
    with np.errstate(all="raise"):
        prices, bound = recombine._prices(np.array([3.0, 5.0, 8.0 - 1e-9]), contains, 8.0)
        only, least = recombine._prices(np.array([3.0]), np.array([[True]]), 4.0)
    assert bound == pytest.approx(8)
    assert prices.sum() == pytest.approx(8)
    assert (only.sum() >= 3, least) == (True, pytest.approx(3))


def test_prices_bound_every_plan_and_nearly_as_well_as_can_be():
    """The bound is what the prices prove; on the mean it is within 0.6 % of the best there is, by a
    linear program, where the plan at hand is 5 % above that."""
    linprog = pytest.importorskip("scipy.optimize").linprog
    ratios = []
    for seed in range(20):
        costs, contains = random_rows(seed, 12, 80)
        best = linprog(costs, A_eq=contains.T, b_eq=np.ones(12), bounds=(0, 1)).fun
        prices, bound = recombine._prices(costs, contains, 1.05 * best)
        assert bound == pytest.approx(prices.sum() + np.minimum(costs - contains @ prices, 0).sum())
        ratios.append(bound / best)
    assert max(ratios) <= 1 + 1e-9
    assert np.mean(ratios) > 0.994


def test_recombined_routes_are_judged_and_never_worse_than_the_best_trajectory(policy):
    problems = [invent(v, i, 9, kind=KINDS[i % len(KINDS)], fleet=i % 3 == 0) for i, v in enumerate(VARIANTS)]
    best, recombined = (attempt(policy, problems, options) for options in (PLAIN, RECOMBINED))
    found = [i for i, one in enumerate(best) if isinstance(one, Solution)]
    assert len(found) > 40
    some = [problems[i] for i in found]
    a, b = (judged_costs(some, [outcomes[i] for i in found]) for outcomes in (best, recombined))
    assert (b <= a * (1 + 1e-9)).all()
    assert (b < a * 0.999).sum() > 10
