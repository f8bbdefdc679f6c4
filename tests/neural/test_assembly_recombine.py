"""The best plan of the routes of many trajectories: bounds, pruning and search, against all plans."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, invent, judged_costs

from chainroute import VARIANTS, Problem, Solution
from chainroute.neural.assembly import incumbent, recombine
from chainroute.neural.assembly.incumbent import promising
from chainroute.neural.assembly.recombine import Pool, partition
from chainroute.neural.assembly.routes import trajectory
from chainroute.neural.decode import DecodeOptions, attempt, batch_drafts
from chainroute.neural.env import from_problems
from chainroute.neural.policy import PolicyConfig
from chainroute.neural.policy.store import random_policy

TINY = PolicyConfig(dim=16, heads=2, layers=1, hidden=16)
PLAIN = DecodeOptions(augmentations=1)
RECOMBINED = DecodeOptions(augmentations=1, recombine=True)


@pytest.fixture(scope="module")
def policy():
    return random_policy(TINY)


@settings(max_examples=2 * settings.default.max_examples)
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


def content(pool):
    """The routes of a pool, with their costs."""
    return list(zip(pool.costs.tolist(), pool.tours(range(len(pool.costs))), strict=True))


def test_pools_keep_each_set_of_customers_in_its_cheapest_order():
    """Four customers on a line: the same two in both orders, and with a detour."""
    problem = Problem(
        capacity=4, delivery=[1] * 4, coords=[(0, 0), (1, 0), (2, 0), (3, 0), (-1, 0)], open=True
    )
    pool = Pool(problem)
    pool.add(np.array([[2, 1, 0, 3, 4], [1, 2, 0, 4, 3], [0, 0, 1, 0, 2]]))
    assert sorted(content(pool)) == [(1.0, (1,)), (2.0, (1, 2)), (2.0, (2,)), (5.0, (4, 3))]
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
        assert content(pool) == [(cost, tour)]
    pool.add(np.zeros((3, 4), dtype=int))
    assert len(content(pool)) == 1


def test_pools_tell_sets_of_customers_apart():
    """All 435 pairs and 4,060 triples of thirty customers."""
    problem = Problem(capacity=9, delivery=[1] * 30, coords=np.random.default_rng(0).random((31, 2)))
    pool = Pool(problem)
    for size in (2, 3):
        sets = list(itertools.combinations(problem.customers, size))
        pool.add(np.array([(0, *some, 0) for some in sets]))
        assert {tour for _, tour in content(pool) if len(tour) == size} == set(sets)


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


def by_sets(costs, contains, extra, bound, limit, width):
    """The search as `recombine._beam` describes it, plan by plan, with sets for arrays."""
    rows, best, plans = range(len(costs)), None, [()]
    held = [frozenset(np.flatnonzero(row).tolist()) for row in contains]
    columns = set(range(contains.shape[1]))
    while plans:
        longer = {}
        for plan in plans:
            done = frozenset().union(*(held[r] for r in plan))
            least = bound + sum(extra[r] for r in plan)
            live = [r for r in rows if not held[r] & done and extra[r] < limit - least]
            holders = min(([r for r in live if c in held[r]] for c in sorted(columns - done)), key=len)
            for row in holders:
                new, now = (*plan, row), done | held[row]
                if now not in longer or costs[list(new)].sum() < costs[list(longer[now])].sum():
                    longer[now] = new
        best_first = sorted(longer.values(), key=lambda plan: sum(extra[r] for r in plan))[:width]
        plans = [
            plan for plan in best_first if len(frozenset().union(*(held[r] for r in plan))) < len(columns)
        ]
        for plan in set(best_first) - set(plans):
            if costs[list(plan)].sum() < limit:
                best, limit = plan, costs[list(plan)].sum()
    return best


@given(st.integers(0, 10**6), st.sampled_from([1, 4, 256]))
def test_the_search_keeps_the_plans_that_it_is_said_to_keep(seed, width):
    """Against the same search by sets; costs are drawn, so that no two plans are equally good."""
    rng = np.random.default_rng(seed)
    _, contains = random_rows(seed)
    costs = rng.random(len(contains)) + contains.sum(1)
    prices = rng.random(contains.shape[1])
    extra = np.maximum(costs - contains @ prices, 0)
    bound = prices.sum() + np.minimum(costs - contains @ prices, 0).sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recombine, "BEAM_WIDTH", width)
        found = recombine._beam(costs, contains, extra, bound, 1.2 * costs[:6].sum())
    wanted = by_sets(costs, contains, extra, bound, 1.2 * costs[:6].sum(), width)
    assert (None if found is None else sorted(found)) == (None if wanted is None else sorted(wanted))


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_only_what_a_better_plan_can_contain_is_searched(seed, most):
    """All rows with less extra cost than the gap, in order, and no more than so many."""
    costs, contains = random_rows(seed, 8, 30)
    limit = 1.1 * costs[:8].sum()
    prices, bound = recombine._prices(costs, contains, limit)
    extra = np.maximum(costs - contains @ prices, 0)
    begun = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recombine, "MOST_ROUTES", most)
        patch.setattr(recombine, "_beam", lambda *given: begun.append(given))
        assert partition(costs, contains, limit) is None
    ((_, held, extra_here, bound_here, limit_here),) = begun
    assert (bound_here, limit_here, len(held)) == (bound, limit, len(extra_here))
    assert extra_here.tolist() == sorted(extra[bound + extra < limit])[:most]


@pytest.mark.parametrize(("iterations", "bound"), [(1, 7.0), (2, 7.25)])
def test_prices_by_hand(monkeypatch, iterations, bound):
    """Both columns for 8, or one for 3 and the other for 5. First prices are the least by which a row has the
    column, 3 and 4; no row is worth more than its cost, so both are missing once. The step towards 8.5 is
    1.5, half of it for each: 3.75 and 4.75. Now two rows are worth 0.5 and 0.75 too much."""
    monkeypatch.setattr(recombine, "PRICE_ITERATIONS", (iterations, iterations))
    contains = np.array([[True, True], [True, False], [False, True]])
    prices, found = recombine._prices(np.array([8.0, 3.0, 5.0]), contains, 8.5)
    assert found == pytest.approx(bound)
    assert prices.tolist() == ([3, 4] if iterations == 1 else pytest.approx([3.75, 4.75]))


def test_prices_that_choose_a_plan_are_the_end_of_it():
    """Nothing is missing and nothing is divided by that nothing."""
    contains = np.array([[True, False], [False, True], [True, True]])
    with np.errstate(all="raise"):
        prices, bound = recombine._prices(np.array([3.0, 5.0, 8.0 - 1e-9]), contains, 8.0)
        only, least = recombine._prices(np.array([3.0]), np.array([[True]]), 4.0)
    assert bound == pytest.approx(8, rel=1e-4)
    assert prices.sum() == pytest.approx(8, rel=1e-3)
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


def test_the_best_trajectories_are_recombined(monkeypatch, policy):
    """Twelve visits of four customers are three trajectories, and one is kept in any case. A draft has them
    in the order of their costs, and knows how many there were."""
    monkeypatch.setattr(incumbent, "KEPT_VISITS", 12)
    costs = np.array([3.0, np.inf, 1.0, 2.0, 1.0])
    assert promising(costs, 4).tolist() == [2, 4, 3]
    assert promising(costs, 99).tolist() == [2]
    problem = invent(VARIANTS[0], 0, 6)
    ((_, draft),) = batch_drafts(policy, from_problems([problem]), RECOMBINED)
    ((actions, finished),) = draft.pieces
    assert (actions.shape[0], finished.tolist(), draft.tried) == (2, [True, True], 6)
    kept = [Pool(problem), Pool(problem)]
    for pool, trajectories in zip(kept, (actions[:1], actions[1:]), strict=True):
        pool.add(trajectories)
    assert kept[0].costs.sum() <= kept[1].costs.sum()
