"""Ruin and recreate: its steps by hand and against slow literal versions, its plans before the judge."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import invent

from chainroute import Problem, Solution, VehicleType, check
from chainroute.classical import ruin
from chainroute.classical.library import SearchTask
from chainroute.classical.savings import by_savings
from chainroute.generate import generate
from chainroute.runtime.deadline import Deadline
from chainroute.variants import VARIANTS, variant

ruin_search = pytest.importorskip("chainroute.classical.ruin_search", reason="needs chainroute[large]")

HEAT = (1.0, 0.03)


def drawn(seed, customers=60, **fields):
    """A problem of whole numbers, and its plan by savings."""
    rng = np.random.default_rng(seed)
    coords, demand = rng.integers(0, 100, (customers + 1, 2)), rng.integers(1, 10, customers)
    problem = Problem(capacity=40, delivery=demand, coords=coords, rounding="round", **fields)
    return problem, by_savings(problem)


def begun(problem, plan):
    return ruin_search.ground_of(problem), ruin_search.chains_of(problem, plan.pairs())


def judged(problem, chains):
    """The cost of the plan in the chains, whose loads and sizes are those of its routes."""
    solution = Solution.of(problem, ruin_search.routes_of(chains))
    verdict = check(problem, solution)
    assert verdict.feasible, verdict
    loads = sorted(problem.delivery[np.array(route.visits) - 1].sum() for route in solution.routes)
    assert sorted(chains.load[chains.size > 0]) == pytest.approx(loads)
    assert sorted(chains.size[chains.size > 0]) == sorted(len(route) for route in solution.routes)
    return verdict.cost


def test_it_suits_problems_that_bound_nothing_but_the_load():
    suited = {v.name for v in VARIANTS if ruin.suits(generate(v, 6, 1, seed=0)[0])}
    assert suited == {"CVRP", "OVRP"}
    problem, _ = drawn(0, 5)
    road = np.array(problem.distances)
    road[1, 2] = math.inf
    assert ruin.suits(problem.replace(distance_matrix=problem.distances, fleet=3))
    assert not ruin.suits(problem.replace(distance_matrix=road))
    assert not ruin.suits(problem.replace(vehicle_types=[VehicleType(capacity=40, fixed_cost=3)]))


def test_the_nearest_are_customers_the_nearest_first():
    """On a line with the depot at 0; roads of an asymmetric matrix count both ways."""
    line = Problem(capacity=9, delivery=np.ones(4), coords=[(x, 0) for x in (0, 1, 2, 4, 8)])
    assert ruin_search.ground_of(line).nearest[1:].tolist() == [[2, 3, 4], [1, 3, 4], [2, 1, 4], [3, 2, 1]]
    ways = np.array(line.distances)
    ways[1, 2] = 10  # 2 is no longer nearer to 1 than 3 is
    far = line.replace(distance_matrix=ways, coords=None)
    assert ruin_search.ground_of(far).nearest[1].tolist() == [3, 2, 4]


@given(st.integers(0, 10**6), st.sampled_from(["CVRP", "OVRP"]))
def test_removing_and_inserting_change_the_length_by_what_they_say(seed, name):
    """The judge agrees, with an asymmetric matrix, too; and the way back leads to the same plan."""
    problem = invent(variant(name), seed, 8)
    plan, rng = by_savings(problem), np.random.default_rng(seed)
    ground, chains = begun(problem, plan)
    before = [array.copy() for array in chains]
    customer = int(rng.choice(problem.customers))
    after, route = chains.before[customer], chains.route[customer]
    shorter = ruin_search.remove(ground, chains, customer)
    rest = Solution.of(problem, ruin_search.routes_of(chains))
    assert shorter == pytest.approx(rest.cost - plan.cost, abs=1e-6)
    assert chains.route[customer] == -1
    ruin_search.insert(ground, chains, customer, after, route)
    for array, was in zip(chains, before, strict=True):
        assert array == pytest.approx(was)


@given(st.integers(0, 10**6), st.sampled_from(["CVRP", "OVRP"]))
def test_a_customer_comes_to_where_it_lengthens_the_plan_least(seed, name):
    """Where no place is overlooked and all customers are near: as a literal search of all places finds."""
    problem = invent(variant(name), seed, 8)
    ground, chains = begun(problem, by_savings(problem))
    customer = int(np.random.default_rng(seed).choice(problem.customers))
    ruin_search.remove(ground, chains, customer)
    rest = ruin_search.routes_of(chains)
    plans = [[*rest, (0, [customer])]]
    for k, (depot, visits) in enumerate(rest):
        for i in range(len(visits) + 1):
            longer = (depot, [*visits[:i], customer, *visits[i:]])
            plans.append([*rest[:k], longer, *rest[k + 1 :]])
    allowed = (Solution.of(problem, plan) for plan in plans)
    least = min(plan.cost for plan in allowed if check(problem, plan).feasible)
    ruin_search.OVERLOOKED_SHARE, share = -1.0, ruin_search.OVERLOOKED_SHARE
    try:
        longer, after = ruin_search.best_place.py_func(ground, chains, customer)
    finally:
        ruin_search.OVERLOOKED_SHARE = share
    assert longer == pytest.approx(least - Solution.of(problem, rest).cost, abs=1e-6)
    ruin_search.insert(ground, chains, customer, after, chains.route[after])
    assert Solution.of(problem, ruin_search.routes_of(chains)).cost == pytest.approx(least)


def test_a_string_is_anywhere_around_its_customer():
    """Two customers around 3 on the route 1 2 3 4 begin with 2 or with 3."""
    problem, _ = drawn(0, 4)
    problem = problem.replace(capacity=100)
    chains = ruin_search.chains_of(problem, [(0, [1, 2, 3, 4])])

    def begins(customer, string):
        return {ruin_search.begin_of_string(chains, customer, string) for _ in range(200)}

    assert begins(3, 1) == {3}
    assert begins(3, 2) == {2, 3}
    assert begins(1, 3) == {1}
    assert begins(4, 3) == {2}
    assert begins(2, 4) == {1}


@pytest.mark.parametrize("heat", [0.0, 5.0, 1e9])
@pytest.mark.parametrize("fields", [{}, {"open": True}, {"fleet": 9}])
def test_plans_stay_valid_at_any_heat(heat, fields):
    """No worse than before where it is cold; nobody is lost where everything is kept."""
    for seed in range(3):
        problem, plan = drawn(seed, **fields)
        ground, chains = begun(problem, plan)
        if problem.fleet is not None:
            assert len(chains.load) <= problem.fleet
        ruin_search.anneal(ground, chains, heat, 2_000, seed)
        cost = judged(problem, chains)
        assert heat > 0 or cost < plan.cost


def test_the_same_seed_leads_to_the_same_plan():
    problem, plan = drawn(1)
    costs = []
    for seed in (0, 0, 1):
        ground, chains = begun(problem, plan)
        ruin_search.anneal(ground, chains, 3.0, 500, seed)
        costs.append(judged(problem, chains))
    assert costs[0] == costs[1] != costs[2]


def test_a_worker_is_ready_when_it_is_warm_and_searches_until_the_deadline():
    """What is compiled is, so that half a second is enough to end below a plan by savings."""
    problem, plan = drawn(2)
    ruin.warm_up()
    reports, deadline = [], Deadline.after(0.5)
    task = SearchTask(problem, deadline, 0, plan.pairs(), heat=HEAT)
    assert ruin.search(task, reports.append)
    assert deadline.passed
    (found,) = reports
    solution = Solution.of(problem, found.routes)
    assert check(problem, solution).feasible
    assert solution.cost < plan.cost


@pytest.mark.parametrize("customers", [1, 2, 3])
def test_a_few_customers_have_a_plan_as_well(customers):
    problem, plan = drawn(3, customers)
    reports = []
    ruin_search.search(SearchTask(problem, Deadline.after(0.05), 0, plan.pairs(), heat=HEAT), reports.append)
    assert check(problem, Solution.of(problem, reports[0].routes)).feasible
