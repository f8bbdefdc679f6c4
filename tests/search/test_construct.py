"""classical/construct: routes of our own at once, for every variant, that keep every rule."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from problems import KINDS, invent, on_a_line, one_route_each, problems

from chainroute import VARIANTS, Problem, Solution, check, variant
from chainroute.generate import generate
from chainroute.search.own import construct as construct_module
from chainroute.search.own.construct import (
    append_hardest_first,
    construct,
    constructions,
    inserted_by_regions,
)


def routes(solution):
    return sorted((route.depot, list(route.visits)) for route in solution.routes)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_plan_keeps_every_rule(variant):
    """The problems follow the benchmark's law, or are odd in many ways; the first plan is cut from a tour,
    the others are made by insertion, the best of which is far shorter than a route for each customer."""
    i = VARIANTS.index(variant)
    (regular,) = generate(variant, 40, 1, seed=i)
    for problem in (regular, *(invent(variant, i, customers=12, kind=kind) for kind in KINDS)):
        plans = list(constructions(problem))
        assert min(plan.cost for plan in plans) <= one_route_each(problem).cost
        for plan in plans:
            assert check(problem, plan).feasible, check(problem, plan)
    assert construct(regular).cost < 0.8 * one_route_each(regular).cost


@given(problems(max_customers=12))
def test_a_plan_is_feasible_or_none(problem):
    """A plan is always there without a limit on the fleet."""
    for plan in constructions(problem):
        assert check(problem, plan).feasible
    assert problem.fleet is not None or construct(problem) is not None


@given(problems(max_customers=12))
def test_customers_one_behind_the_other_make_a_feasible_plan_or_none(problem):
    """A plan is always there without a limit on the fleet."""
    plan = append_hardest_first(problem)
    assert problem.fleet is not None or problem.extras or plan is not None
    assert plan is None or check(problem, plan).feasible


def test_vehicles_side_by_side_take_the_nearest_in_the_order_of_closing():
    """Two vehicles: on the left are those who close first and third, on the right the others. A tour of the
    map would come to the last of one side before the first of the other, too late."""
    coords = [(0, 0), (-1, 0), (1, 0), (-2, 0), (2, 0)]
    windows = [(0, 99), (0, 1), (0, 1), (5, 6), (5, 6)]
    problem = Problem(capacity=4, delivery=[1] * 4, coords=coords, time_windows=windows, fleet=2)
    plan = append_hardest_first(problem)
    assert check(problem, plan).feasible
    assert routes(plan) == [(0, [1, 3]), (0, [2, 4])]


def test_who_is_heaviest_comes_first_where_there_are_no_windows_and_backhauls_last():
    """6 + 4 twice fill two vehicles of 10; and a pickup of 9 waits for the delivery of 1."""
    problem = on_a_line(capacity=10, delivery=[4, 4, 6, 6], fleet=2)
    assert check(problem, append_hardest_first(problem)).feasible
    both = on_a_line(capacity=10, delivery=[0, 1], pickup=[9, 0], backhaul="linehauls-first", fleet=1)
    assert routes(append_hardest_first(both)) == [(0, [2, 1])]


def test_one_vehicle_goes_up_the_line_and_back():
    plan = construct(on_a_line(capacity=3, delivery=[1, 1, 1]))
    assert plan.cost == 6
    assert len(plan.routes) == 1


def test_a_pickup_rides_along_only_where_it_fits():
    """The vehicle holds 10: a pickup of 8 at 1 cannot come before the delivery of 5 at 2, but after it."""
    for rule in ("mixed", "linehauls-first"):
        plan = construct(on_a_line(capacity=10, delivery=[0, 5], pickup=[8, 0], backhaul=rule))
        assert (routes(plan), plan.cost) == ([(0, [2, 1])], 4)


def test_waiting_and_the_way_home_are_timed():
    """The first opens at 5; the second is reached at 6, the depot at 8, before it closes at 9. With service
    of 1.5 whichever comes second is too late."""
    windows = [(0, 9), (5, 7), (5.5, 7)]
    one = on_a_line(capacity=9, delivery=[1, 1], time_windows=windows)
    assert len(construct(one).routes) == 1
    assert len(construct(one.replace(service=[1.5, 1.5])).routes) == 2


def test_service_counts_towards_the_limit_where_it_is_said_to():
    both = on_a_line(capacity=9, delivery=[1, 1], service=[1, 1], distance_limit=5.0)
    assert len(construct(both).routes) == 1
    assert len(construct(both.replace(limit_counts_service=True)).routes) == 2


def test_each_depot_sends_out_no_more_than_it_has():
    """Three full loads near the first of two depots with two vehicles each."""
    coords = [(0, 0), (10, 0), (1, 0), (1, 1), (0, 1)]
    problem = Problem(capacity=1, delivery=[1, 1, 1], coords=coords, num_depots=2, fleet=2)
    plan = construct(problem)
    assert check(problem, plan).feasible
    assert sorted(route.depot for route in plan.routes) == [0, 0, 1]


def test_a_fleet_that_just_suffices_is_filled_by_the_largest_first():
    """In the order of the tour, or the farthest first, 4 + 4 leave no room for the others: only 6 + 4 twice
    fit into two vehicles of 10."""
    problem = on_a_line(capacity=10, delivery=[4, 4, 6, 6], fleet=2)
    plan = construct(problem.replace(coords=[(0, 0), (3, 0), (4, 0), (1, 0), (2, 0)]))
    assert check(plan.problem, plan).feasible
    impossible = on_a_line(capacity=10, delivery=[7, 6, 5], fleet=2)
    assert construct(impossible) is None


def test_what_is_over_ends_with_the_first_plan():
    (problem,) = generate(variant("VRPTW"), 30, 1, seed=0)
    assert len(list(constructions(problem, lambda: True))) == 1
    assert check(problem, construct(problem, lambda: True)).feasible


@pytest.mark.parametrize("name", ["CVRP", "VRPTW", "MDOVRPMBLTW"])
def test_regions_are_inserted_one_after_the_other(name, monkeypatch):
    """No route leaves its region, and everybody is served, also by regions that come too late."""
    monkeypatch.setattr(construct_module, "REGION_CUSTOMERS", 20)
    monkeypatch.setattr(construct_module, "LONG_ROUTE_CUSTOMERS", 1)
    (problem,) = generate(variant(name), 50, 1, seed=0)
    regions = [set(region) for region in np.array_split(construct_module._tour(problem), 3)]
    in_time, soon_over, too_late = iter([False] * 20), iter([False] * 10), iter([])
    for left in (itertools.repeat(False), in_time, soon_over, too_late):
        plan = inserted_by_regions(problem, lambda left=left: next(left, True))
        assert check(problem, plan).feasible
        for route in plan.routes:
            assert sum(not region.isdisjoint(route.visits) for region in regions) == 1
    monkeypatch.setattr(construct_module, "LONG_ROUTE_CUSTOMERS", 18)  # no vehicle holds so many here
    assert inserted_by_regions(problem) is None


def test_the_same_problem_gives_the_same_plan():
    (problem,) = generate(variant("MDVRPMBLTW"), 30, 1, seed=0)
    assert routes(construct(problem)) == routes(construct(problem))


def test_the_first_plan_for_thousands_of_customers_takes_a_fraction_of_a_second():
    """A twentieth of a second on a free core; a busy one gets three chances."""
    (problem,) = generate(variant("MDVRPMBLTW"), 5000, 1, seed=0)
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        plan = next(constructions(problem))
        seconds.append(time.process_time() - begin)
    assert check(problem, plan).feasible
    assert min(seconds) < 0.5


def test_where_no_way_costs_anything_one_vehicle_does():
    plans = constructions(Problem(capacity=9, delivery=[1] * 8, coords=[(0, 0)] * 9))
    assert [len(plan.routes) for plan in plans] == [1, 1, 1]


def test_no_road_is_not_driven():
    """There is none from 1 to 2, so each has a route."""
    far = 1e9
    matrix = [[0, 1, 1], [1, 0, far], [1, far, 0]]
    problem = Problem(capacity=9, delivery=[1, 1], distance_matrix=matrix)
    assert construct(problem).cost == 4


def test_it_needs_no_map():
    problem = Problem(
        capacity=9, delivery=[1, 1, 1], distance_matrix=np.abs(np.subtract.outer(range(4), range(4)))
    )
    assert construct(problem).cost == 6


def test_plans_are_solutions_of_the_problem_itself():
    problem = on_a_line(capacity=2, delivery=[1, 1])
    assert isinstance(construct(problem), Solution)
    assert construct(problem).problem is problem
