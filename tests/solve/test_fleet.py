"""The examples of docs/modelling.md: each is read, solved and judged, at the cost that the page shows."""

import sys

import pytest
from fleets import NAMES, invent
from where import DOCS, EXAMPLES

from chainroute import Problem, Solution, VehicleType, check, solve
from chainroute.formats import read, read_solution, write_solution
from chainroute.plan.check import route_cost
from chainroute.plan.reasons import reasons
from chainroute.plan.solution import Route
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import SearchTask
from chainroute.search.own.construct import construct
from chainroute.search.own.exact import is_tiny, optimum
from chainroute.search.solvers import pyvrp_search

PAGE = (DOCS / "modelling.md").read_text(encoding="utf-8")
LINE = [(x, 0) for x in range(4)]


def searched(problem, iterations=200):
    """What PyVRP finds, here and now."""
    reports = []
    task = SearchTask(problem, Deadline.after(20), max_iterations=iterations)
    pyvrp_search.search(task, reports.append)
    return Solution.of(problem, reports[-1].routes)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_the_page(name, tmp_path):
    """The page shows the kind and the cost of the best plan; the plan survives its file."""
    problem = read(EXAMPLES / f"{name}.json")
    solution = searched(problem)
    assert check(problem, solution).feasible
    heading = str(solution).splitlines()[0]
    assert f"\n{heading}\n" in PAGE
    write_solution(solution, tmp_path / "plan.json")
    assert read_solution(tmp_path / "plan.json", problem).routes == solution.routes


def test_every_extra_has_an_example():
    """Whatever a kind can name occurs in an example."""
    from chainroute.problem import EXTRAS

    assert {extra for name in NAMES for extra in read(EXAMPLES / f"{name}.json").extras} == set(EXTRAS)


@pytest.mark.parametrize("seed", range(12))
def test_a_handful_is_solved_to_the_optimum_and_pyvrp_finds_it(seed):
    """Every plan of three customers, tried by the judge, against PyVRP: two ways to one cost."""
    problem = invent(300 + seed, customers=3)
    if not is_tiny(problem):
        problem = problem.replace(vehicle_types=problem.vehicle_types[:1])
    best = optimum(problem)
    assert check(problem, best).feasible
    assert searched(problem).cost == pytest.approx(best.cost, rel=1e-6)
    assert solve(problem, 5).source == "exact"


def test_by_way_of_another_depot_a_trip_to_nobody_may_be_the_only_way():
    """To A it is 50 from the hub, but 6 by way of the other depot, where a vehicle may reload; routes may be
    9 long. The judge says so, and the trial of every plan finds it."""
    ways = [[0, 1, 50, 4], [1, 0, 1, 5], [1, 1, 0, 9], [4, 5, 9, 0]]
    van = VehicleType(count=2, depot=0, max_trips=2, reload_depots=[1], distance_limit=9)
    p = Problem(capacity=10, delivery=[1, 1], num_depots=2, distance_matrix=ways, vehicle_types=[van])
    assert is_tiny(p)
    best = optimum(p)
    assert check(p, best).feasible
    assert (best.cost, {route.visits for route in best.routes}) == (11, {(1, 2), (3,)})
    assert check(p, searched(p)).feasible


def test_no_trip_to_nobody_where_it_saves_nothing():
    p = Problem(capacity=2, delivery=[1] * 3, coords=LINE, vehicle_types=[VehicleType(count=1, max_trips=3)])
    assert optimum(p).routes == (Route(0, (1, 0, 2, 3)),)


def test_where_reloads_make_too_many_plans_they_are_not_all_tried():
    depots = [(x, 9) for x in range(4)]
    many = VehicleType(max_trips=9, reload_depots=range(4), depot=0)
    p = Problem(capacity=1, delivery=[1] * 4, num_depots=4, coords=[*depots, *LINE], vehicle_types=[many])
    assert not is_tiny(p)


@pytest.mark.parametrize("seed", range(12))
def test_a_first_plan_is_constructed(seed):
    """Customers one by one: it keeps the rules, and need not be good."""
    problem = invent(400 + seed)
    plan = construct(problem)
    if plan is not None:
        assert check(problem, plan).feasible


def test_a_plan_is_there_at_once_where_one_of_the_48_stands_for_the_problem():
    """Customers with a prize, half of them too far away for it: these routes are left out."""
    near, far = [(x, 1) for x in range(30)], [(x, 10_000) for x in range(30)]
    places = [(0, 0), *near, *far]
    p = Problem(capacity=5, delivery=[1] * 60, coords=places, prize=[20] * 60)
    first = solve(p, time_limit=0.5).history[0]
    assert (first.source, check(p, first.solution).feasible) == ("construction", True)
    assert set(range(31, 61)) <= set(first.solution.left_out)
    assert first.solution.cost < 60 * 20


def test_who_is_left_out_and_why():
    """On a line: B takes 20 more for a prize of 15; nobody has C's skill; D closes too early; E has
    no room beside A."""
    problem = Problem(
        capacity=10,
        fleet=1,
        delivery=[9, 1, 1, 1, 2],
        coords=[(0, 0), (10, 0), (20, 0), (1, 0), (5, 0), (2, 0)],
        names=["depot", "A", "B", "C", "D", "E"],
        prize=[99, 15, 5, 5, 1],
        skills=[[], [], ["wings"], [], []],
        time_windows=[(0, 99), (0, 99), (0, 99), (0, 99), (0, 3), (0, 99)],
    )
    found = {reason.customer: reason for reason in reasons(Solution.of(problem, [(0, [1])]))}
    assert {name: reason.code for name, reason in found.items()} == {
        "B": "prize-too-small",
        "C": "skill-missing",
        "D": "window-unreachable",
        "E": "no-room",
    }
    assert found["B"].message == "on the routes as they are it costs 20 more, and its prize is 15."


def test_a_customer_with_a_place_on_other_routes_is_not_said_to_have_none():
    """Two vehicles hold 3 each: with 1 + 1 and 2 on board neither takes 2 more, with 1 + 2 each they do."""
    problem = Problem(
        capacity=3,
        fleet=2,
        delivery=[1, 1, 2, 2],
        coords=[(0, 0), *[(x, 1) for x in range(4)]],
        prize=[50] * 4,
    )
    (reason,) = reasons(Solution.of(problem, [(0, [1, 2]), (0, [3])]))
    assert (reason.code, reason.message) == ("no-room", "it has no place on the routes as they are.")
    assert check(problem, Solution.of(problem, [(0, [1, 3]), (0, [2, 4])])).feasible


def test_a_vehicle_that_may_go_out_again_has_room():
    """Two loads that each fill the vehicle, one after the other: 2 and 4 along the line and back."""
    twice = [VehicleType(count=1, max_trips=2)]
    problem = Problem(capacity=1, delivery=[1, 1], coords=LINE[:3], prize=[99, 99], vehicle_types=twice)
    (reason,) = reasons(Solution.of(problem, [(0, [1])]))
    assert reason.message == "on the routes as they are it costs 4 more, and its prize is 99: search longer."
    assert construct(problem).cost == 6


def test_of_many_who_are_left_out_only_what_was_tried_is_told(monkeypatch):
    """C would fit beside B, but the shortest detour is by A, whose vehicle is full."""
    problem = Problem(
        capacity=2,
        fleet=2,
        delivery=[2, 1, 1],
        coords=[(0, 0), (1, 0), (-9, 0), (1, 1)],
        prize=[99, 99, 99],
    )
    plan = Solution.of(problem, [(0, [1]), (0, [2])])
    assert reasons(plan)[0].code == "time-too-short"
    monkeypatch.setattr("chainroute.plan.reasons.MOST_TRIES", 1)
    assert (
        reasons(plan)[0].message == "it has no place at the 2 shortest detours from the routes as they are."
    )


def test_a_route_is_priced_without_a_look_at_anybody_else(monkeypatch):
    """Whom a route leaves out would take thousands of times as long as the route itself."""
    problem = Problem(capacity=2, delivery=[1, 1, 2], coords=LINE[:4], prize=[9, 9, 9])
    monkeypatch.setattr(
        sys.modules[route_cost.__module__], "_coverage", lambda *_: pytest.fail("looked at all customers")
    )
    assert route_cost(problem, Route(0, (1, 2))) == 4
    assert route_cost(problem, Route(0, (1, 3))) is None
