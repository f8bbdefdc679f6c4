"""How the command explains a solution: the facts of every stop, computed by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import one_route_each, problems, two_on_a_line

from chainroute import Solution, check
from chainroute.cli.show import _spare, explain, plain


def explained(problem, routes, capsys):
    solution = Solution.of(problem, routes)
    assert check(problem, solution).feasible
    explain(solution)
    heading, columns, *rows = capsys.readouterr().out.strip().splitlines()
    return heading, columns.split(), [row.split() for row in rows]


def test_stops_with_their_times_loads_and_distances(capsys):
    """A opens at 15 and is served for 5; B, which never closes, is reached at 30; the depot closes at 60."""
    problem = two_on_a_line(service=[5, 0], time_windows=[(0, 60), (15, 40), (0, math.inf)])
    heading, columns, rows = explained(problem, [(0, [1, 2])], capsys)
    assert heading == "Route 1 from depot: 2 stops, length 40, load up to 7 of 10, from 5 to 50, waiting 0"
    assert columns == [
        "stop",
        "place",
        "arrives",
        "waits",
        "service",
        "leaves",
        "spare",
        "demand",
        "load",
        "distance",
    ]
    assert rows == [
        ["1", "A", "15", "0", "5", "20", "10", "-4", "3", "10"],
        ["2", "B", "30", "0", "0", "30", "10", "-3", "0", "20"],
        ["depot", "50", "10", "0", "40"],
    ]


def test_what_a_problem_does_not_have_is_left_out(capsys):
    """Open, no windows: no times and no way back; pickups add to the load."""
    problem = two_on_a_line(delivery=[4, 0], pickup=[0, 3], backhaul="mixed", open=True, distance_limit=25)
    heading, columns, rows = explained(problem, [(0, [1, 2])], capsys)
    assert heading == "Route 1 from depot: 2 stops, length 20 of 25, load up to 4 of 10"
    assert columns == ["stop", "place", "demand", "load", "distance"]
    assert rows == [["1", "A", "-4", "0", "10"], ["2", "B", "+3", "3", "20"]]


def test_large_numbers_are_told_in_full(capsys):
    """Seconds since 1970, and grams: no digit of a whole number is cut."""
    now = 1_700_030_123
    problem = two_on_a_line(
        capacity=10_000_001, delivery=[4_000_000, 6_000_001], time_windows=[[now, now + 999]] * 3
    )
    heading, _, rows = explained(problem, [(0, [1, 2])], capsys)
    assert "load up to 10000001 of 10000001, from 1700030123 to 1700030163" in heading
    assert rows[0][2:] == ["1700030133", "0", "0", "1700030133", "959", "-4000000", "6000001", "10"]
    assert "load 10000001, ends 1700030163" in str(Solution.of(problem, [(0, [1, 2])]))
    assert plain(1_700_030_123_456.0) == "1700030123456"


def test_service_that_counts_towards_the_limit_is_told(capsys):
    problem = two_on_a_line(service=[2, 3], distance_limit=50, limit_counts_service=True)
    heading, _, _ = explained(problem, [(0, [1, 2])], capsys)
    assert "length 40 of 50 with 5 of service" in heading


def test_empty_routes_are_explained_too(capsys):
    explain(Solution.of(two_on_a_line(), [(0, [])]))
    assert "0 stops, length 0" in capsys.readouterr().out


@given(problem=problems(kinds=("plane", "durations")), late=st.sampled_from([0.999, 1.001]))
def test_a_vehicle_may_be_late_by_what_is_spare_and_no_more(problem, late):
    """To each customer a route of its own, begun later by nearly or just over what is spare at its stop."""
    if problem.time_windows is None:
        return
    for route, facts in zip((s := one_route_each(problem)).routes, s.facts, strict=True):
        spare = _spare(problem, route, facts)[0]
        if spare == math.inf:
            continue
        windows = problem.windows.copy()
        windows[route.depot, 0] = facts.start + late * spare
        if windows[route.depot, 0] > windows[route.depot, 1]:
            continue
        (c,) = route.visits
        start = max(windows[route.depot, 0] + problem.duration(route.depot, c), windows[c, 0])
        end = start + problem.services[c] + problem.duration(c, route.depot)
        in_time = start <= windows[c, 1] and (problem.open or end <= windows[route.depot, 1])
        assert in_time == (late < 1) or spare == pytest.approx(0, abs=1e-9)
