"""Solution: facts on the problem's own numbers, and their agreement with the judge."""

import json
import math

import fleets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import line

from chainroute import Backhaul, ChainRouteError, Problem, Route, Solution, check
from chainroute.problem.measure import LOAD_SLACK, SLACK


def test_cost_is_the_length_of_all_routes():
    """depot-A-B-depot is 10 + 10 + 20, depot-C-depot is 60."""
    solution = Solution.of(line(), [(0, [1, 2]), (0, [3])])
    assert solution.cost == 100
    assert [f.length for f in solution.facts] == [40, 60]
    assert check(solution.problem, solution).feasible


def test_open_routes_do_not_return():
    solution = Solution.of(line(open=True), [(0, [1, 2]), (0, [3])])
    assert [f.length for f in solution.facts] == [20, 30]
    assert check(solution.problem, solution).cost == 50


def test_times_by_hand():
    """Leaves at 9, as late as A allows, which is 10 away and closes at 19; there till 21; at B at 31, which
    opens at 33, till 35; back at 55."""
    p = line(service=[2, 2, 2], time_windows=[(5, 99), (18, 19), (33, 40), (0, 40)])
    solution = Solution.of(p, [(0, [1, 2]), (0, [3])])
    facts = solution.facts[0]
    a, b = facts.stops
    assert (a.arrival, a.waiting, a.start, a.departure) == (19, 0, 19, 21)
    assert (b.arrival, b.waiting, b.start, b.departure) == (31, 2, 33, 35)
    assert (facts.start, facts.end, facts.waiting, facts.duration) == (9, 55, 2, 46)
    assert check(p, solution).feasible


def test_an_open_route_ends_when_it_leaves_the_last_customer():
    solution = Solution.of(line(open=True, service=[2, 2, 2]), [(0, [1, 2, 3])])
    assert solution.facts[0].end == 36
    assert check(solution.problem, solution).feasible


def test_times_follow_durations_and_lengths_follow_distances():
    hours = np.ones((4, 4)) - np.eye(4)
    solution = Solution.of(line(duration_matrix=hours), [(0, [1, 2, 3])])
    assert (solution.facts[0].length, solution.facts[0].end) == (60, 4)
    assert check(solution.problem, solution).feasible


def test_loads_by_hand():
    """Leaves with 4 + 2 for A and C; 2 after A, 9 after the pickup of 7 at B, 7 after C."""
    p = line(delivery=[4, 0, 2], pickup=[0, 7, 0], backhaul="mixed")
    solution = Solution.of(p, [(0, [1, 2, 3])])
    facts = solution.facts[0]
    assert (facts.initial_load, facts.max_load) == (6, 9)
    assert [s.load for s in facts.stops] == [2, 9, 7]
    assert check(p, solution).feasible


def test_an_empty_route_costs_nothing():
    solution = Solution.of(line(), [(0, [1, 2, 3]), (0, [])])
    assert solution.facts[1].length == 0
    assert solution.facts[1].max_load == 0
    verdict = check(solution.problem, solution)
    assert verdict.feasible
    assert verdict.cost == solution.cost == 60


def test_numpy_numbers_become_plain_ones():
    solution = Solution.of(line(), [(np.int64(0), np.array([3, 2, 1]))])
    assert solution.routes == (Route(0, (3, 2, 1)),)
    assert {type(v) for v in solution.routes[0].visits} == {int}
    assert check(solution.problem, solution).feasible


@pytest.mark.parametrize("routes", [[[1, 2]], [[1, 2, 3]], [3], [(0, ["A"])]])
def test_routes_without_their_depots_are_refused(routes):
    with pytest.raises(ChainRouteError, match=r"wrong-type\] routes: must be pairs of a depot"):
        Solution.of(line(), routes)


def test_unknown_locations_are_all_reported():
    """Location 0 is a depot, not a customer; 7 does not exist; neither does depot 1."""
    with pytest.raises(ChainRouteError) as error:
        Solution.of(line(), [(1, [1]), (0, [0, 2, 7])])
    assert [(f.code, f.where, f.message) for f in error.value.faults] == [
        ("unknown-location", "route 1", "1 is not a depot."),
        ("unknown-location", "route 2", "0 is not a customer."),
        ("unknown-location", "route 2", "7 is not a customer."),
    ]


def test_json_speaks_in_names():
    p = line(time_windows=[(0, 99)] * 4)
    solution = Solution.of(p, [(0, [1, 2]), (0, [3])])
    document = json.loads(json.dumps(solution.as_dict()))
    assert (document["problem"], document["variant"], document["cost"]) == ("line", "VRPTW", 100)
    assert [(r["depot"], r["customers"]) for r in document["routes"]] == [
        ("depot", ["A", "B"]),
        ("depot", ["C"]),
    ]
    assert document["routes"][0]["stops"][1] == {
        "customer": "B",
        "arrival": 20,
        "waiting": 0,
        "start": 20,
        "departure": 20,
        "load": 0,
        "distance": 20,
    }
    assert document["routes"][0]["end"] == 40
    assert check(p, solution).feasible


def test_print_shows_the_routes():
    solution = Solution.of(line(), [(0, [1, 2]), (0, [3])])
    assert str(solution).splitlines() == [
        "line: CVRP, cost 100, 2 routes",
        "  1. depot - A - B - depot  (length 40, load 7)",
        "  2. depot - C - depot  (length 60, load 2)",
    ]
    assert check(solution.problem, solution).feasible


def test_print_shows_times_and_open_ends():
    solution = Solution.of(line(open=True, time_windows=[(0, 99), *[(25, 99)] * 3]), [(0, [1, 2, 3])])
    assert str(solution).splitlines()[1] == ("  1. depot - A - B - C  (length 30, load 9, ends 45, waits 0)")
    assert check(solution.problem, solution).feasible


# -- the facts and the judge are written apart and must agree


@st.composite
def plans(draw):
    """Any problem, and any assignment of visits to routes: mostly infeasible in several ways."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    backhaul = draw(st.sampled_from(list(Backhaul)))
    back = (rng.random(n) < 0.4) & (backhaul is not Backhaul.NONE)
    demand = rng.integers(0, 8, n) + 0.5
    matrix = rng.integers(1, 40, (m + n, m + n)) * (1 - np.eye(m + n)) if draw(st.booleans()) else None
    windows = None
    if draw(st.booleans()):
        opening = np.concatenate([rng.integers(0, 5, m), rng.integers(40, 60, n)])
        windows = np.stack([opening, opening + np.where(np.arange(m + n) < m, 150, 30)], axis=1)
    problem = Problem(
        capacity=12,
        delivery=np.where(back, 0, demand),
        pickup=np.where(back, demand, 0),
        service=rng.integers(0, 5, n),
        num_depots=m,
        coords=rng.integers(0, 28, (m + n, 2)),
        distance_matrix=matrix,
        time_windows=windows,
        distance_limit=draw(st.sampled_from([None, 90])),
        limit_counts_service=draw(st.booleans()),
        open=draw(st.booleans()),
        backhaul=backhaul,
        fleet=draw(st.sampled_from([None, 4])),
        rounding=draw(st.sampled_from(["exact", "round", "trunc1"])),
    )
    visits = rng.permutation(n) + m
    cuts = np.sort(rng.integers(0, n + 1, draw(st.integers(0, 3))))
    return Solution.of(problem, [(int(rng.integers(m)), part) for part in np.split(visits, cuts)])


def expected_codes(solution):
    """What the facts say is broken, as (code, route)."""
    p = solution.problem
    for number, (route, f) in enumerate(zip(solution.routes, solution.facts, strict=True), 1):
        service = sum(p.services[v] for v in route.visits) if p.limit_counts_service else 0
        if f.max_load > p.capacity * (1 + LOAD_SLACK):
            yield "capacity-exceeded", number
        if p.distance_limit and f.length + service > p.distance_limit * (1 + SLACK):
            yield "limit-exceeded", number
        late = (s for s in f.stops if s.start > p.windows[s.location, 1] * (1 + SLACK))
        yield from (("window-missed", number) for _ in late)
        if route.visits and not p.open and f.end > p.windows[route.depot, 1] * (1 + SLACK):
            yield "depot-closed", number
        kinds = [p.pickups[v] > 0 for v in route.visits]
        if p.backhaul is Backhaul.LINEHAULS_FIRST and True in kinds:
            after = [v for v in route.visits[kinds.index(True) :] if p.deliveries[v] > 0]
            yield from (("linehaul-after-backhaul", number) for _ in after)
    for d in p.depots:
        if p.fleet and sum(1 for r in solution.routes if r.depot == d and r.visits) > p.fleet:
            yield "fleet-exceeded", None


@settings(max_examples=5 * settings.default.max_examples)
@given(plans())
def test_facts_agree_with_the_judge(solution):
    verdict = check(solution.problem, solution)
    assert solution.cost == pytest.approx(verdict.cost, rel=1e-14)
    assert sorted(((v.code, v.route) for v in verdict.violations), key=str) == sorted(
        expected_codes(solution), key=str
    )


@settings(max_examples=2 * settings.default.max_examples)
@given(plans())
def test_facts_are_consistent(solution):
    """Every stop: start = arrival + waiting, departure = start + service; loads end at all pickups."""
    p = solution.problem
    for route, f in zip(solution.routes, solution.facts, strict=True):
        for stop in f.stops:
            assert stop.start == pytest.approx(stop.arrival + stop.waiting)
            assert stop.departure == stop.start + p.services[stop.location]
            assert stop.waiting >= 0
        carried = f.stops[-1].load if f.stops else 0
        assert carried == pytest.approx(math.fsum(p.pickups[v] for v in route.visits))


@pytest.mark.parametrize(
    ("stated", "wrong"),
    [
        (None, False),
        (2.8284271247461903, False),
        (2.83, False),  # rounded
        (2.82, False),  # cut off
        (2.8, False),
        (3.0, False),
        (2.0, False),
        (2.81, True),
        (2.84, True),
        (2.9, True),
        (1.0, True),
        (4.0, True),
        (0.0, True),
        (1e300, True),
    ],
)
def test_a_stated_cost_is_judged_by_its_last_digit(stated, wrong):
    """The way to (1, 1) and back is 2.8284... long."""
    problem = Problem(capacity=1, delivery=[1], coords=[(0, 0), (1, 1)])
    assert Solution.of(problem, [(0, [1])], stated).misstated is wrong


def test_a_whole_cost_must_be_stated_exactly():
    problem = Problem(capacity=1, delivery=[1], coords=[(0, 0), (3, 4)])
    for stated in (8, 9, 11, 10.01, 100):
        assert Solution.of(problem, [(0, [1])], stated).misstated
    assert not Solution.of(problem, [(0, [1])], 10).misstated


def test_rounding_is_no_waiting():
    """A vehicle leaves so that it comes when windows open, 0.7 and another 0.6 away: at 3.3 and 3.9, though
    sums in double precision say less."""
    windows = [(0, 99), (3.3, 99), (3.9, 99)]
    p = Problem(
        capacity=2, delivery=[1, 1], coords=[(0, 0), (0.7, 0), (1.3, 0)], time_windows=windows, service=[0, 0]
    )
    (facts,) = Solution.of(p, [(0, [1, 2])]).facts
    assert [stop.waiting for stop in facts.stops] == [0, 0]
    assert facts.start == pytest.approx(2.6)


@given(st.integers(0, 10**6))
def test_the_cost_is_that_of_each_route_by_itself(seed):
    """A plan costs what its routes cost one by one, to the last digit, whoever drives them."""
    p, rng = fleets.invent(seed), np.random.default_rng(seed)
    parts = np.split(rng.permutation(p.customers), np.sort(rng.integers(0, p.num_customers, 3)))
    kinds = rng.integers(len(p.types), size=len(parts)).tolist()
    routes = [(p.types[kind].depots[0], part, kind) for kind, part in zip(kinds, parts, strict=True)]
    solution = Solution.of(p, routes)
    used = [(p.types[r.vehicle], f) for r, f in zip(solution.routes, solution.facts, strict=True) if r.visits]
    assert solution.parts.distance == math.fsum(v.cost_per_distance * facts.length for v, facts in used)
