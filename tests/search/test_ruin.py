"""Ruin and recreate: its steps by hand and against slow literal versions, its plans before the judge."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from problems import KINDS, invent

from chainroute import Backhaul, Problem, Solution, VehicleType, check
from chainroute.generate import generate
from chainroute.problem.variants import VARIANTS, variant
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import SearchTask
from chainroute.search.own import ruin
from chainroute.search.own.savings import Alone, by_savings, waiting_between

ruin_search = pytest.importorskip("chainroute.search.own.ruin_search", reason="needs chainroute[large]")
ruin_steps = pytest.importorskip("chainroute.search.own.ruin_steps", reason="needs chainroute[large]")

HEAT = (1.0, 0.03)
ANY_VARIANT = st.sampled_from(VARIANTS)
ANY_KIND = st.sampled_from([kind for kind in KINDS if kind != "unmetric"])
SINGLE = 1e-4  # what legs in single precision may differ by, relative to the largest


def drawn(seed, customers=60, **fields):
    """A problem of whole numbers, in which every third customer hands over if anybody does, and its plan by
    savings."""
    rng = np.random.default_rng(seed)
    coords, demand = rng.integers(0, 100, (customers + 1, 2)), rng.integers(1, 10, customers)
    if "backhaul" in fields:
        back = np.arange(customers) % 3 == 0
        fields["pickup"], demand = demand * back, demand * ~back
    problem = Problem(capacity=40, delivery=demand, coords=coords, rounding="round", **fields)
    return problem, by_savings(problem)


def begun(problem, plan):
    ground = ruin_search.ground_of(problem)
    return ground, ruin_search.chains_of(problem, plan.pairs(), ground)


def judged(problem, chains):
    """The cost of the plan in the chains, which say of its routes what they should."""
    p, solution = problem, Solution.of(problem, ruin_search.routes_of(chains))
    verdict = check(p, solution)
    assert verdict.feasible, verdict
    numbers = chains.route[[route.visits[0] for route in solution.routes]]
    assert sorted(numbers) == sorted(np.flatnonzero(chains.size))
    for number, route in zip(numbers, solution.routes, strict=True):
        depot, visits = route.depot, list(route.visits)
        stops = [p.num_locations + number, *visits]
        assert (chains.location[stops[0]], chains.size[number]) == (depot, len(visits))
        assert chains.load[number] == pytest.approx(p.deliveries[visits].sum())
        counted = p.services[visits].sum() if p.distance_limit is not None and p.limit_counts_service else 0
        way = sum(chains.leg[stops])
        assert chains.length[number] == pytest.approx(way + counted, rel=1e-9, abs=1e-9 * p.distances.max())
        if p.pickup.any():
            assert list(chains.room_before[stops]) == pytest.approx(rooms_before(p, visits))
            assert list(chains.room_after[stops]) == pytest.approx(rooms_after(p, visits))
        if p.time_windows is not None:
            assert list(chains.leaves[visits]) == pytest.approx(departures(p, depot, visits))
            assert list(chains.latest[visits]) == pytest.approx(latest_arrivals(p, depot, visits))
    return verdict.cost


def loads(p, visits):
    """What is on board on each leg."""
    return p.deliveries[visits].sum() + np.cumsum([0, *(p.pickups[visits] - p.deliveries[visits])])


def rooms_before(p, visits):
    """For one more delivery on each leg; none behind a pickup where deliveries come first."""
    mixes = p.backhaul is Backhaul.LINEHAULS_FIRST
    behind = [mixes and p.pickups[visits[:i]].any() for i in range(len(visits) + 1)]
    room = p.capacity - np.maximum.accumulate(loads(p, visits))
    return list(np.where(behind, -np.inf, room))


def rooms_after(p, visits):
    """For one more pickup on each leg; none before a delivery where these come first."""
    mixes = p.backhaul is Backhaul.LINEHAULS_FIRST
    ahead = [mixes and p.deliveries[visits[i:]].any() for i in range(len(visits) + 1)]
    room = p.capacity - np.maximum.accumulate(loads(p, visits)[::-1])[::-1]
    return list(np.where(ahead, -np.inf, room))


def departures(p, depot, visits):
    """When the vehicle leaves each customer, one step after the other."""
    time, here, all_times = p.windows[depot, 0] + p.services[depot], depot, []
    for customer in visits:
        time = max(time + p.duration(here, customer), p.windows[customer, 0]) + p.services[customer]
        here = customer
        all_times.append(time)
    return all_times


def latest_arrivals(p, depot, visits):
    """When it must have arrived at each so as not to be late any more, from the last on."""
    times = []
    for place, customer in reversed(list(enumerate(visits))):
        is_last = place + 1 == len(visits)
        onward = depot if is_last else visits[place + 1]
        by = times[-1] if times else np.inf if p.open else p.windows[depot, 1]
        way = 0.0 if p.open and is_last else p.duration(customer, onward)
        times.append(min(p.windows[customer, 1], by - way - p.services[customer]))
    return times[::-1]


def test_it_suits_the_48_variants_with_roads_everywhere():
    assert all(ruin.suits(generate(v, 20, 1, seed=0)[0]) for v in VARIANTS)
    depots = generate(variant("MDCVRP"), 20, 1, seed=0)[0]
    assert not ruin.suits(depots.replace(fleet=9))
    problem, _ = drawn(0, 5)
    road = np.array(problem.distances)
    road[1, 2] = math.inf
    assert ruin.suits(problem.replace(distance_matrix=problem.distances, fleet=3))
    assert not ruin.suits(problem.replace(distance_matrix=road))
    assert not ruin.suits(problem.replace(vehicle_types=[VehicleType(capacity=40, fixed_cost=3)]))


def test_the_nearest_are_customers_the_nearest_first():
    """On a line with the depot at 0; of the two roads of an asymmetric matrix the shorter counts."""
    line = Problem(capacity=9, delivery=np.ones(4), coords=[(x, 0) for x in (0, 1, 2, 4, 8)])
    assert ruin_search.ground_of(line).nearest[1:].tolist() == [[2, 3, 4], [1, 3, 4], [2, 1, 4], [3, 2, 1]]
    ways = np.array(line.distances)
    ways[1, 2] = 10
    far = line.replace(distance_matrix=ways, coords=None)
    assert ruin_search.ground_of(far).nearest[1].tolist() == [2, 3, 4]
    ways[2, 1] = 10  # 2 is no longer nearer to 1 than 3 is
    far = line.replace(distance_matrix=ways, coords=None)
    assert ruin_search.ground_of(far).nearest[1].tolist() == [3, 4, 2]


def test_near_is_who_can_be_served_soon_after():
    """From 1, who closes at 1, to 2 it is a way of 1 and a wait until 21; 3 is three times as far, and open.
    Who closes before the vehicle can come from anybody else is near nobody."""
    windows = [(0, 99), (0, 1), (21, 99), (0, 99), (0, 4)]
    line = Problem(
        capacity=9, delivery=np.ones(4), coords=[(x, 0) for x in (0, 1, 2, 4, -4)], time_windows=windows
    )
    waits = waiting_between(line, Alone.of(line), np.array([[1]]), np.array(line.customers))
    assert waits[0].tolist() == pytest.approx([0, 19, 0, math.inf])
    assert ruin_search.ground_of(line).nearest[1].tolist() == [3, 2, 4]


@given(st.integers(0, 10**6), ANY_VARIANT, ANY_KIND)
def test_removing_and_inserting_change_the_length_by_what_they_say(seed, which, kind):
    """The judge agrees; and the way back leads to the same plan."""
    problem = invent(which, seed, 8, kind=kind)
    plan, rng = by_savings(problem), np.random.default_rng(seed)
    ground, chains = begun(problem, plan)
    before = [array.copy() for array in chains]
    customer = int(rng.choice(problem.customers))
    after, route = chains.before[customer], chains.route[customer]
    shorter = ruin_steps.remove(ground, chains, customer)
    rest = Solution.of(problem, ruin_search.routes_of(chains))
    if shorter < math.inf:
        assert shorter == pytest.approx(rest.cost - plan.cost, abs=SINGLE * problem.distances.max())
    alone = (int(ground.home[customer]), [customer])
    feasible = check(problem, Solution.of(problem, [*rest.pairs(), alone])).feasible
    assert feasible == (shorter < math.inf)  # or others are late without, or the route is too long
    assert chains.longer_leg[customer] == -math.inf
    ruin_steps.insert(ground, chains, customer, after, route)
    for array, was in zip(chains, before, strict=True):
        assert array == pytest.approx(was, abs=1e-9 * problem.distances.max())


@given(st.integers(0, 10**6), ANY_VARIANT, ANY_KIND)
def test_a_customer_comes_to_where_it_lengthens_the_plan_least(seed, which, kind):
    """Where no place is overlooked and all customers are near: as a literal search of all places finds."""
    problem = invent(which, seed, 8, kind=kind)
    ground, chains = begun(problem, by_savings(problem))
    customer = int(np.random.default_rng(seed).choice(problem.customers))
    assume(ruin_steps.remove(ground, chains, customer) < math.inf)
    rest = ruin_search.routes_of(chains)
    plans = [[*rest, (depot, [customer])] for depot in problem.depots]
    for k, (depot, visits) in enumerate(rest):
        for i in range(len(visits) + 1):
            longer = (depot, [*visits[:i], customer, *visits[i:]])
            plans.append([*rest[:k], longer, *rest[k + 1 :]])
    allowed = (Solution.of(problem, plan) for plan in plans)
    least = min(plan.cost for plan in allowed if check(problem, plan).feasible)
    with patch.object(ruin_steps, "OVERLOOKED_ONE_IN", 10**9):
        longer, after = ruin_steps.best_place.py_func(ground, chains, customer)
    error = SINGLE * problem.distances.max()
    assert longer == pytest.approx(least - Solution.of(problem, rest).cost, abs=error)
    ruin_steps.insert(ground, chains, customer, after, chains.route[after])
    assert judged(problem, chains) == pytest.approx(least, abs=error)


def test_a_string_is_anywhere_around_its_customer():
    """Two customers around 3 on the route 1 2 3 4 begin with 2 or with 3."""
    problem, _ = drawn(0, 4)
    problem = problem.replace(capacity=100)
    _, chains = begun(problem, Solution.of(problem, [(0, [1, 2, 3, 4])]))

    def begins(customer, string):
        return {ruin_steps.begin_of_string(chains, customer, string) for _ in range(200)}

    assert begins(3, 1) == {3}
    assert begins(3, 2) == {2, 3}
    assert begins(1, 3) == {1}
    assert begins(4, 3) == {2}
    assert begins(2, 4) == {1}


def test_removing_a_short_cut_makes_others_late():
    """To 2 it takes 2 by way of 1, and 100 without."""
    quick = np.array([[0, 1, 100], [1, 0, 1], [1, 1, 0.0]])
    windows = [(0, 99), (0, 9), (0, 9)]
    p = Problem(capacity=9, delivery=np.ones(2), distance_matrix=quick, time_windows=windows)
    ground, chains = begun(p, Solution.of(p, [(0, [1, 2])]))
    assert ruin_steps.remove(ground, chains, 1) == math.inf
    ruin_steps.insert(ground, chains, 1, p.num_locations, 0)
    ruin_steps.anneal(ground, chains, 1e9, 100, 0)
    assert ruin_search.routes_of(chains) == [(0, [1, 2])]


@given(st.integers(0, 10**6), ANY_VARIANT, ANY_KIND, st.sampled_from([0.0, 1.0, 1e9]))
def test_any_plan_stays_valid(seed, which, kind, heat):
    """The judge accepts it with matrices, quick detours, whole numbers and windows that just suffice, too."""
    problem = invent(which, seed, 12, kind=kind)
    ground, chains = begun(problem, by_savings(problem))
    ruin_steps.anneal(ground, chains, heat, 200, seed)
    judged(problem, chains)


def windows_of(customers):
    opening = 20.0 * (np.arange(customers) % 7)
    return np.concatenate([[[0, 600]], np.stack([opening, opening + 150], axis=1)])


@pytest.mark.parametrize("heat", [0.0, 5.0, 1e9])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"open": True},
        {"fleet": 9},
        {"distance_limit": 300},
        {"backhaul": "linehauls-first"},
        {"backhaul": "mixed"},
        {"time_windows": windows_of(60)},
    ],
)
def test_plans_stay_valid_at_any_heat(heat, fields):
    """No worse than before where it is cold; nobody is lost where everything is kept."""
    for seed in range(3):
        problem, plan = drawn(seed, **fields)
        ground, chains = begun(problem, plan)
        if problem.fleet is not None:
            assert len(chains.load) <= problem.fleet
        ruin_steps.anneal(ground, chains, heat, 2_000, seed)
        cost = judged(problem, chains)
        assert heat > 0 or cost < plan.cost


def test_the_same_seed_leads_to_the_same_plan():
    problem, plan = drawn(1)
    costs = []
    for seed in (0, 0, 1):
        ground, chains = begun(problem, plan)
        ruin_steps.anneal(ground, chains, 3.0, 500, seed)
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
