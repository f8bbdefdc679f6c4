"""classical/pieces: a tour shared out among vehicles that differ, by the judge's rules and in little time."""

import dataclasses
import math
import time

import fleets
import pytest
from fleets import mixed_fleet
from hypothesis import given
from hypothesis import strategies as st
from problems import on_a_line

from chainroute import VehicleType, check
from chainroute.options import Effort
from chainroute.search.own.construct import assign_vehicles, construct, constructions, inserted
from chainroute.search.solvers import pyvrp
from chainroute.solve.portfolio import Race

SEEDS = st.integers(0, 100_000)


def routes(plan):
    return sorted((route.vehicle, *route.visits) for route in plan.routes)


@given(SEEDS, st.integers(1, 20))
def test_a_plan_keeps_every_rule_and_is_there_where_vehicles_are_many(seed, customers):
    """Any mix of types, costs, ends, shifts, speeds, trips, prizes, windows, skills, backhauls and limits;
    the first type of each problem can serve everybody."""
    problem = fleets.invent(seed, customers=customers)
    plan = assign_vehicles(problem)
    assert plan is not None or problem.types[0].count < math.inf or not problem.extras
    assert plan is None or check(problem, plan).feasible


@given(SEEDS, st.integers(5, 40), st.integers(0, 3))
def test_a_plan_for_few_vehicles_keeps_every_rule_or_is_none(seed, customers, spare):
    problem = fleets.invent(seed, {"types", "costs", "shifts", "skills"}, customers)
    first, *others = problem.vehicle_types
    few = math.ceil(problem.delivery.sum() / problem.capacity) + spare
    problem = problem.replace(vehicle_types=[dataclasses.replace(first, count=max(few, 1)), *others])
    plan = assign_vehicles(problem)
    assert plan is None or check(problem, plan).feasible


def test_a_piece_goes_to_whom_it_costs_least_for_each_customer():
    """Four on the way of the large one cost 10 + 8; a small one takes 5 + 2 for the first of them alone."""
    large = VehicleType(name="large", capacity=4, fixed_cost=10)
    small = VehicleType(name="small", capacity=1, fixed_cost=5)
    assert routes(assign_vehicles(on_a_line(small, large, delivery=[1] * 4))) == [(1, 1, 2, 3, 4)]
    assert routes(assign_vehicles(on_a_line(small, large, delivery=[1]))) == [(0, 1)]


def test_whom_few_can_serve_comes_first_where_a_tour_leaves_somebody_without():
    """The crane is cheap: along the tour the first customer would have it, not the last, who needs it."""
    crane = VehicleType(name="crane", capacity=2, count=1, cost_per_distance=0.1, skills=["crane"])
    van = VehicleType(name="van", capacity=4, count=1)
    problem = on_a_line(crane, van, delivery=[2, 2, 2], skills=[[], [], ["crane"]])
    assert routes(assign_vehicles(problem)) == [(0, 3), (1, 1, 2)]


def test_for_whom_there_is_no_vehicle_left_there_may_be_room():
    """9, then 2 + 8: for the last of 1 there is room beside the first."""
    problem = on_a_line(capacity=10, fleet=2, fixed_cost=1, delivery=[9, 2, 8, 1])
    assert routes(assign_vehicles(problem)) == [(0, 2, 3), (0, 4, 1)]
    assert assign_vehicles(on_a_line(capacity=10, fleet=2, fixed_cost=1, delivery=[6, 6, 8])) is None


def test_who_must_be_served_comes_first_and_what_does_not_pay_is_left_out():
    inf = math.inf
    problem = on_a_line(capacity=1, fleet=1, fixed_cost=1, delivery=[1, 1, 1], prize=[9, 9, inf])
    assert routes(assign_vehicles(problem)) == [(0, 3)]
    problem = on_a_line(capacity=1, fixed_cost=1, delivery=[1, 1, 1], prize=[9, 2, inf])
    assert routes(assign_vehicles(problem)) == [(0, 1), (0, 3)]
    assert routes(assign_vehicles(problem.replace(prize=[1, 1, 1]))) == []


def test_a_piece_is_served_as_it_closes_and_pickups_follow():
    problem = on_a_line(capacity=9, fixed_cost=1, delivery=[1, 1], time_windows=[(0, 99), (0, 99), (0, 2)])
    assert routes(assign_vehicles(problem)) == [(0, 2, 1)]
    problem = on_a_line(capacity=9, fixed_cost=1, delivery=[0, 1], pickup=[1, 0], backhaul="linehauls-first")
    assert routes(assign_vehicles(problem)) == [(0, 2, 1)]


def test_vehicles_that_are_told_one_by_one_are_a_fleet_as_well():
    each = [VehicleType(name=f"van {i}", capacity=3, count=1, shift=(0, 999)) for i in range(20)]
    plan = assign_vehicles(on_a_line(*each, delivery=[1] * 60))
    assert check(plan.problem, plan).feasible
    assert len({route.vehicle for route in plan.routes}) == 20


def test_it_ends_once_it_is_over_and_is_none_of_the_48s_business():
    assert assign_vehicles(mixed_fleet(20), lambda: True) is None
    assert assign_vehicles(on_a_line(capacity=9, delivery=[1])) is None


@pytest.mark.parametrize("windows", [False, True])
def test_it_comes_before_insertion_and_the_better_one_is_kept(windows):
    problem = mixed_fleet(60, windows)
    first, *others = [plan.cost for plan in constructions(problem)]
    assert first == assign_vehicles(problem).cost
    assert others == [plan.cost for plan in inserted(problem)]
    assert construct(problem).cost == min(first, *others)


@pytest.mark.parametrize("windows", [False, True])
def test_thousands_of_customers_take_a_second(windows):
    """Half a second on a free core; a busy one gets three chances, and much more time."""
    problem, seconds = mixed_fleet(4000, windows), []
    for _ in range(3):
        begin = time.process_time()
        plan = next(constructions(problem))
        seconds.append(time.process_time() - begin)
    assert check(problem, plan).feasible
    assert {route.vehicle for route in plan.routes} == {0, 1, 2}
    assert min(seconds) < 5


def test_a_vehicle_goes_out_again_where_none_is_left():
    """Two full loads, one vehicle, two trips."""
    van = VehicleType(name="van", capacity=2, count=1, max_trips=2)
    assert routes(assign_vehicles(on_a_line(van, delivery=[1, 1, 2]))) == [(0, 1, 2, 0, 3)]


def test_solve_has_it_before_anybody_searches(monkeypatch):
    """So it is there whatever becomes of the searches, and they do not take its core."""
    monkeypatch.setattr(Race, "compete", lambda race, stop: None)
    problem = mixed_fleet(100)
    (first,) = Race(problem, 60, 0, Effort()).run(None).history
    assert (first.source, first.solution.cost) == ("construction", assign_vehicles(problem).cost)


def test_one_of_two_searches_goes_on_from_it(monkeypatch):
    """The other begins from cold, as both do within the 48 variants."""
    starts = []
    monkeypatch.setattr(pyvrp, "search", lambda task, *_: starts.append(task.start) or True)
    mixed = mixed_fleet(50)
    plain = mixed.replace(vehicle_types=(), capacity=40, skills=())
    for problem, begun in ((mixed, [None, assign_vehicles(mixed).pairs()]), (plain, [None])):
        starts.clear()
        race = Race(problem, 2, 0, Effort(), cores=2)
        race.attempt.asks = False
        assert check(problem, race.run(None).solution).feasible
        assert len(starts) >= 2
        assert all(start in starts for start in begun)
        assert all(start in begun for start in starts)
