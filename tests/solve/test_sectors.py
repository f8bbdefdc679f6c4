"""Large problems by their parts: what is put together again is a plan of the whole, and never a worse one."""

import dataclasses
import math
import threading
from collections import Counter

import misbehaving
import numpy as np
import pytest
from fleets import FEATURES, invent, mixed_fleet
from hypothesis import given
from hypothesis import strategies as st

from chainroute import ChainRouteError, Problem, Solution, check
from chainroute.errors import fail
from chainroute.generate import generate
from chainroute.options import Effort, rules
from chainroute.plan.solution import Route
from chainroute.problem.variants import variant
from chainroute.runtime.deadline import Deadline
from chainroute.search.own import construct, ruin
from chainroute.search.own.construct import assign_vehicles, constructions, cut_tour, inserted_by_regions
from chainroute.search.own.savings import by_savings
from chainroute.search.solvers import pyvrp
from chainroute.solve import first_plans, portfolio, sectors, solve
from chainroute.solve.lanes import Lane, lanes_for
from chainroute.solve.portfolio import Race
from chainroute.solve.result import tidied
from chainroute.solve.sectors import Sectors, nearest, part_of


def cross(**changes):
    """Four pairs of customers, 10 and 11 from the depot: 1 and 2 in the east, then north, west and south."""
    ways = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    coords = [(0, 0)] + [(far * x, far * y) for x, y in ways for far in (10, 11)]
    return Problem(**{"capacity": 2, "delivery": np.ones(8), "coords": coords, **changes})


def alone(problem):
    return Solution.of(problem, [(0, [c]) for c in problem.customers])


def test_nearest_routes_are_taken_up_to_the_size_and_at_least_one(monkeypatch):
    """Customer 1, at 10 east, has its own route, then those north and south at the same distance, then west.
    A part has several long routes all the same, unless these have too many customers."""
    monkeypatch.setattr(sectors, "PART_ROUTES", 1)
    routes = [Route(0, (5, 6)), Route(0, (3, 4)), Route(0, (1, 2)), Route(0, (7, 8))]
    assert nearest(cross(), routes, 1, 6).tolist() == [2, 1, 3]
    assert nearest(cross(), routes, 1, 5).tolist() == [2, 1]
    assert nearest(cross(), routes, 1, 1).tolist() == [2]
    monkeypatch.setattr(sectors, "PART_ROUTES", 3)
    assert nearest(cross(), routes, 1, 8).tolist() == [2, 1, 3, 0]
    assert nearest(cross(), routes, 1, 1).tolist() == [2, 1, 3]
    monkeypatch.setattr(sectors, "MOST_CUSTOMERS", 5)
    assert nearest(cross(), routes, 1, 1).tolist() == [2, 1]
    monkeypatch.setattr(sectors, "MOST_CUSTOMERS", 1)
    assert nearest(cross(), routes, 1, 1).tolist() == [2]


@pytest.mark.parametrize("name", ["CVRP", "MDOVRPMBLTW"])
def test_a_part_costs_what_its_routes_cost_in_the_whole(name):
    """With windows, limits, backhauls and several depots, from coordinates or matrices, and back again."""
    for problem in generate(variant(name), 30, 2, seed=1):
        for p in (problem, problem.replace(distance_matrix=problem.distances, coords=None)):
            plan = next(constructions(p))
            some = list(plan.routes[::2])
            part = part_of(p, some, {(0, depot): math.inf for depot in p.depots})
            assert part.start.problem.extras == ()
            assert check(part.start.problem, part.start).feasible
            assert part.start.cost == pytest.approx(Solution(p, tuple(some)).cost)
            assert part.whole(part.start) == some


def test_no_route_is_in_two_hands_and_all_are_in_the_plan(monkeypatch):
    """Two parts are taken at a time until nothing is left; at every moment the plan serves everybody."""
    monkeypatch.setattr(sectors, "PART_SIZES", (300,))
    (p,) = generate(variant("CVRP"), 700, 1, seed=0)
    work = Sectors(alone(p), 0, 2, Deadline.after(60))
    parts = [work.take(), work.take(), work.take()]
    assert [len(part.customers) for part in parts] == [300, 300, 100]
    assert len(set(np.concatenate([part.customers for part in parts]))) == 700
    assert work.take() is None
    assert check(p, work.plan).feasible
    for part in parts:
        work.give_back(part, None)
    assert check(p, work.plan).feasible
    assert not work.take().is_new


def test_parts_are_of_every_size():
    """A part takes as many customers as the size drawn says, where each is alone on its route."""
    (p,) = generate(variant("CVRP"), 400, 1, seed=0)
    work, sizes = Sectors(alone(p), 0, 1, Deadline.after(60)), set()
    for _ in range(40):
        part = work.take()
        sizes.add(len(part.customers))
        work.give_back(part, None)
    assert sizes == set(sectors.PART_SIZES)


def test_vehicles_to_spare_are_in_one_hand_at_a_time(monkeypatch):
    """Eight customers on eight of ten vehicles, four in each part: the first may use both others, the second
    none; when the first comes back with two routes, four vehicles are free."""
    monkeypatch.setattr(sectors, "PART_SIZES", (4,))
    monkeypatch.setattr(sectors, "PART_ROUTES", 1)
    work = Sectors(alone(cross(fleet=10)), 0, 2, Deadline.after(60))
    first, second = work.take(), work.take()
    assert (first.start.problem.fleet, second.start.problem.fleet) == (6, 4)
    joined = Solution.of(first.start.problem, [(0, [1, 2]), (0, [3, 4])])
    work.give_back(first, joined)
    work.give_back(second, None)
    assert work.vehicles == {(0, 0): 4}
    assert len(work.plan.routes) == 6
    assert check(work.problem, work.plan).feasible


def test_a_better_plan_of_others_is_gone_on_from_when_all_parts_are_back(monkeypatch):
    """Alone, eight customers cost 168 on eight of ten vehicles; in pairs 88 on four, so that the next part of
    two pairs may use six more. While a part is in hand none is given out; a worse plan changes nothing."""
    monkeypatch.setattr(sectors, "PART_SIZES", (4,))
    monkeypatch.setattr(sectors, "PART_ROUTES", 1)
    problem = cross(fleet=10)
    best = alone(problem)
    work = Sectors(alone(problem), 0, 2, Deadline.after(60), best=lambda: best)
    first, second = work.take(), work.take()
    best = Solution.of(problem, [(0, [c, c + 1]) for c in (1, 3, 5, 7)])
    work.give_back(first, Solution.of(first.start.problem, [(0, [1, 2]), (0, [3, 4])]))
    assert 88 < work.cost < 168
    assert work.cost == pytest.approx(work.plan.cost)
    assert work.take() is None
    work.give_back(second, None)
    assert work.take().start.problem.fleet == 2 + 6
    assert (work.cost, work.plan.cost) == (88, 88)
    assert check(problem, work.plan).feasible


def test_parts_are_searched_until_nothing_is_better(monkeypatch):
    """Alone, eight customers cost 2 * 4 * 21; in pairs along each way 4 * 22, in parts of four customers."""
    monkeypatch.setattr(sectors, "PART_SIZES", (4,))
    monkeypatch.setattr(sectors, "PART_ROUTES", 1)
    work = Sectors(alone(cross()), 0, 1, Deadline.after(60))
    stop, better = threading.Event(), []

    def on_better():
        better.append(work.plan.cost)
        if better[-1] == 88:
            stop.set()

    work.work(on_better, stop)
    assert better == sorted(better, reverse=True)
    assert better[-1] == 88


@pytest.mark.parametrize(
    ("name", "limit", "whole"), [("VRPL", 24, False), ("VRPL", 100, True), ("MDOVRPMBLTW", 100, True)]
)
def test_a_large_problem_is_solved_by_its_parts(name, limit, whole, monkeypatch):
    """By PyVRP, until it is a hundredth better than by savings; from there it never gets worse, and the judge
    agrees. One of two cores searches the whole where the time is long for the size: here 25 s."""
    monkeypatch.setattr(ruin, "installed", lambda: False)
    monkeypatch.setattr(sectors, "LEAST_CUSTOMERS", 500)
    monkeypatch.setattr(rules, "WHOLE_SEARCH_SECONDS", 100.0)
    monkeypatch.setattr(portfolio, "available_cores", lambda: 2)
    (problem,) = generate(variant(name), 500, 1, seed=0)
    first, enough = by_savings(problem).cost, threading.Event()
    search, searched = pyvrp.search, set()

    def watched(task, *others):
        searched.add(task.problem.num_customers == 500)
        return search(task, *others)

    def on_progress(news):
        if news.solution.cost < 0.99 * first:
            enough.set()

    monkeypatch.setattr(pyvrp, "search", watched)
    result = solve(problem, limit, on_progress=on_progress, stop=enough)
    assert check(problem, result.solution).feasible
    assert (result.source, result.stopped) == ("search", True)
    assert searched == {False, whole}
    again = solve(problem, 1, initial=result.solution)
    assert check(problem, again.solution).feasible
    assert again.solution.cost <= result.solution.cost


def annealing(problem, seconds, **options):
    """The result for a problem of 500 customers that is searched by parts, and how many were annealed and how
    many searched by PyVRP."""
    calls = Counter()

    def counted(solver):
        search = solver.search
        return lambda task, *rest: calls.update([solver.__name__.rpartition(".")[2]]) or search(task, *rest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sectors, "LEAST_CUSTOMERS", 500)
        for solver in (pyvrp, ruin):
            patched.setattr(solver, "search", counted(solver))
        result = solve(problem, seconds, **options)
    assert check(problem, result.solution).feasible
    return result, calls


@pytest.mark.parametrize("name", ["CVRP", "MDOVRPMBLTW"])
def test_parts_are_annealed(name):
    """Then PyVRP searches them, unless there is little time. They end lower than the plan by savings, and a
    given plan is never lost, however hot it is at first."""
    (problem,) = generate(variant(name), 500, 1, seed=0)
    result, calls = annealing(problem, 3)
    assert calls["ruin"] > 0 < calls["pyvrp"]
    assert result.solution.cost < 0.99 * by_savings(problem).cost
    again, calls = annealing(problem, 0.5, initial=result.solution)
    assert calls["ruin"] > 0 == calls["pyvrp"]
    assert again.solution.cost <= result.solution.cost


def test_with_a_fleet_that_just_suffices_parts_are_annealed_within_it():
    (free,) = generate(variant("CVRP"), 500, 1, seed=0)
    plan = annealing(free, 2)[0].solution
    problem = free.replace(fleet=len(plan.routes))
    result, calls = annealing(problem, 1, initial=Solution(problem, plan.routes))
    assert calls["ruin"] > 0
    assert len(result.solution.routes) <= problem.fleet


def test_an_annealed_part_may_come_back_worse_and_the_plan_costs_what_it_says():
    """It begins a leg to a neighbour hot, and ends at 0.03 of one, with 0.7 of the time gone."""
    (problem,) = generate(variant("CVRP"), 300, 1, seed=0)
    plan = annealing(problem, 2)[0].solution
    work = Sectors(plan, 0, 1, Deadline.after(60), is_rough=False, anneals=True)
    assert work.heat(42) == pytest.approx(sectors.HOT, rel=1e-2)
    assert work.heat(0) == pytest.approx(sectors.COLD, rel=1e-2)
    work.pass_seconds = 0.5 / problem.num_customers
    ruin.warm_up()  # or the turn would be over before what is compiled is loaded
    part = work.take()
    found = work.search(part, threading.Event(), "search")
    work.give_back(part, found)
    assert work.plan.cost > plan.cost
    assert work.cost == pytest.approx(work.plan.cost)
    assert check(problem, work.plan).feasible


def test_where_annealing_fails_pyvrp_searches_the_parts(monkeypatch):
    (problem,) = generate(variant("CVRP"), 500, 1, seed=0)

    def fails(*_):
        raise fail("solver-failed", "the worker crashed.")

    monkeypatch.setattr(ruin, "search", fails)
    result, calls = annealing(problem, 2)
    assert calls["pyvrp"] > 0
    assert {(fault.code, fault.where) for fault in result.faults} == {("solver-failed", "annealing")}
    assert result.solution.cost < by_savings(problem).cost


def test_without_numba_pyvrp_searches_the_parts_and_a_note_says_so(monkeypatch):
    (problem,) = generate(variant("CVRP"), 500, 1, seed=0)
    monkeypatch.setattr(ruin, "installed", lambda: False)
    result, calls = annealing(problem, 2)
    assert calls["pyvrp"] > 0 == calls["ruin"]
    assert "pip install 'chainroute[large]'" in " ".join(result.notes)


def test_parts_are_those_of_a_plan_by_savings(monkeypatch):
    """It costs less than pieces of a tour. Where windows allow long routes and parts are not annealed, they
    are those of a plan by insertion, which has fewer. Where a plan is given, where the time is too short, or
    where it takes more vehicles than there are, parts are those of what there is. Here a busy machine has
    time for either."""
    monkeypatch.setattr(sectors, "LEAST_CUSTOMERS", 100)
    monkeypatch.setattr(first_plans, "CONSTRUCTING_SHARE", 100)
    begun = []
    monkeypatch.setattr(
        portfolio, "Sectors", lambda plan, *rest: begun.append((plan, rest[3])) or Sectors(plan, *rest)
    )
    windows, plain = (generate(variant(name), 100, 1, seed=0)[0] for name in ("VRPTW", "CVRP"))
    for problem in (windows, plain):
        assert check(problem, solve(problem, 0.5).solution).feasible
        joined, is_rough = begun.pop()
        assert joined.cost == by_savings(problem).cost < 0.9 * cut_tour(problem).cost
        assert not is_rough
    with monkeypatch.context() as long:
        long.setattr(construct, "LONG_ROUTE_CUSTOMERS", 5)
        assert check(windows, solve(windows, 0.5).solution).feasible
        assert begun.pop()[0].cost == inserted_by_regions(windows).cost
        long.setattr(sectors, "LEAST_ANNEALED", 100)
        assert check(windows, solve(windows, 0.5).solution).feasible
        assert begun.pop()[0].cost == by_savings(windows).cost
    given = alone(windows)
    assert check(windows, solve(windows, 0.5, initial=given).solution).feasible
    start, is_rough = begun.pop()
    assert start.cost == tidied(given).cost > by_savings(windows).cost
    assert not is_rough
    few = plain.replace(fleet=len(cut_tour(plain).routes))
    monkeypatch.setattr(first_plans, "by_savings", lambda *_: alone(few))
    assert check(few, solve(few, 0.5).solution).feasible
    monkeypatch.setattr(first_plans, "by_savings", lambda *_: None)
    assert check(plain, solve(plain, 0.5).solution).feasible
    assert [(plan.cost, is_rough) for plan, is_rough in begun] == [(cut_tour(plain).cost, True)] * 2


@pytest.mark.parametrize(
    ("customers", "limit", "cores", "whole"),
    [
        (1000, 50, 2, 1),
        (1000, 49, 2, 0),
        (1000, 50, 1, 0),
        (1000, 50, 4, 1),
        (2000, 199, 2, 0),
        (2000, 200, 2, 1),
        (5001, 9000, 2, 0),
    ],
)
@pytest.mark.parametrize("annealed", [False, True], ids=["searched", "annealed"])
def test_with_much_time_one_of_several_cores_searches_the_whole(
    customers, limit, cores, whole, annealed, monkeypatch
):
    """50 s is much for 1,000 customers, four times that for twice as many, up to 5,000, and three times as
    much where parts are annealed; a core always has parts."""
    for solver in (pyvrp, ruin):
        monkeypatch.setattr(solver, "warm_up", lambda *_: None)
    problem = Problem(
        capacity=5,
        delivery=np.ones(customers),
        coords=np.zeros((customers + 1, 2)),
    )
    monkeypatch.setattr(ruin, "installed", lambda: annealed)
    limit *= 3 if annealed else 1
    race = Race(problem, limit, 0, Effort(), alone(problem), cores=cores)
    race.board.offer(race.attempt.start, "given")
    lanes = lanes_for(race.facts())
    assert lanes == [Lane.SEARCH] * whole + [Lane.PARTS] * (cores - whole)
    assert len(race.lanes(None)) == cores


@given(st.integers(0, 100_000), st.integers(2, 20))
def test_parts_beyond_the_variants_keep_their_vehicles(seed, customers):
    """Any mix of features but prizes: two parts at a time cost what their routes cost in the whole, come back
    as they went, and have no more vehicles of any kind together than there are."""
    features = [f for i, f in enumerate(FEATURES) if f != "optional" and seed >> i & 1]
    p = invent(seed, features, customers)
    plan = next(constructions(p), None)
    if plan is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sectors, "PART_SIZES", (customers // 2,))
        patch.setattr(sectors, "PART_ROUTES", 1)
        work = Sectors(plan, seed, 2, Deadline.after(60))
        parts = [part for part in (work.take(), work.take()) if part is not None]
    for part in parts:
        assert check(part.start.problem, part.start).feasible
        assert part.start.cost == pytest.approx(Solution(p, part.routes).cost)
        assert part.whole(part.start) == list(part.routes)
    for number, vehicle in enumerate(p.types):
        for depot in vehicle.depots:
            used = Counter((r.vehicle, r.depot) for r in work.free)
            have = [part.vehicles[number, depot] for part in parts]
            assert sum(have) + used[number, depot] == vehicle.count or vehicle.count == math.inf
    for part in parts:
        work.give_back(part, None)
    assert set(work.plan.routes) == {route for route in plan.routes if route.visits}
    assert check(p, work.plan).feasible


@pytest.mark.parametrize("windows", [False, True])
def test_parts_of_a_mixed_fleet_are_searched(windows, monkeypatch):
    """Vehicles that are counted at each depot, until the plan is a tenth better than constructed."""
    monkeypatch.setattr(sectors, "LEAST_CUSTOMERS", 300)
    monkeypatch.setattr(rules, "WHOLE_SEARCH_SECONDS", 1e9)
    problem = mixed_fleet(300, windows)
    plan = assign_vehicles(problem)
    used = Counter(route.vehicle for route in plan.routes)
    types = [dataclasses.replace(t, count=used[i] + 1) for i, t in enumerate(problem.vehicle_types)]
    problem, enough = problem.replace(vehicle_types=types), threading.Event()
    search, sizes = pyvrp.search, []

    def watched(task, *others):
        sizes.append(task.problem.num_customers)
        return search(task, *others)

    def on_progress(news):
        if news.solution.cost < 0.9 * plan.cost:
            enough.set()

    monkeypatch.setattr(pyvrp, "search", watched)
    result = solve(problem, 60, on_progress=on_progress, stop=enough)
    assert check(problem, result.solution).feasible
    assert (result.source, result.stopped) == ("search", True)
    assert max(sizes) < 300


def test_of_plans_that_come_in_the_same_moment_the_cheapest_is_kept():
    """Two searches tell their last plans: in pairs, at 88, and then alone, at 168."""
    problem = cross()
    pairs = Solution.of(problem, [(0, [c, c + 1]) for c in (1, 3, 5, 7)])
    race = Race(problem, 10, 0, Effort())
    race.take("search", [pairs, alone(problem)])
    assert race.board.best.cost == 88


def test_what_routes_do_not_divide_is_searched_whole(monkeypatch):
    """Who is on no route is in no part; small problems need none, and fewer do where parts are annealed."""
    (large,) = generate(variant("MDCVRP"), 1000, 1, seed=0)
    assert sectors.suits(large)
    assert sectors.suits(large.replace(fleet=500, fixed_cost=5.0))
    assert not sectors.suits(large.replace(prize=np.ones(1000)))
    small, some, less = (
        generate(variant("MDCVRP"), customers, 1, seed=0)[0] for customers in (399, 400, 999)
    )
    assert not sectors.suits(small)
    assert sectors.suits(some)
    assert not sectors.suits(less.replace(fleet=500))
    monkeypatch.setattr(ruin, "installed", lambda: False)
    assert not sectors.suits(some)
    assert not sectors.suits(less)
    assert sectors.suits(large)


def test_ten_thousand_customers_have_a_plan_in_time_and_more_are_refused():
    """On a ring, where a plan is soon found. Searched as a whole, half as many are too many."""
    angle = np.linspace(0, 6, 10_001)
    coords = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    problem = Problem(capacity=100, delivery=np.ones(10_000), coords=coords)
    result = solve(problem, 1)
    assert check(problem, result.solution).feasible
    assert result.seconds < 3
    with pytest.raises(ChainRouteError, match=r"too-large.*at most 5,000 where"):
        solve(problem.replace(prize=np.ones(10_000)), 1)
    one_more = np.concatenate([coords, coords[:1]])
    with pytest.raises(ChainRouteError, match=r"too-large.*at most 10,000\."):
        solve(Problem(capacity=100, delivery=np.ones(10_001), coords=one_more), 1)


def test_a_large_problem_without_a_first_plan_in_time_is_not_called_too_large(monkeypatch):
    misbehaving.construct_nothing(monkeypatch)
    problem = Problem(capacity=100, delivery=np.ones(5_001), coords=np.zeros((5_002, 2)))
    with pytest.raises(ChainRouteError, match=r"no-plan-found.*no first plan.*in time"):
        solve(problem, 1)
