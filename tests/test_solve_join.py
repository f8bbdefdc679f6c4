"""Routes are joined where that costs nothing, and never where it breaks a rule."""

import numpy as np
from hypothesis import given, settings
from problems import one_route_each, problems

from chainroute import Problem, Solution, check
from chainroute.solve import join
from chainroute.solve.join import joined
from chainroute.solve.result import Board


def at_one_place(n: int = 8, **fields: object) -> Problem:
    return Problem(**{"capacity": 100, "delivery": np.ones(n), "coords": np.zeros((n + 1, 2)), **fields})


def test_customers_at_the_depot_share_one_route():
    for fields in ({}, {"coords": None, "distance_matrix": np.zeros((9, 9))}, {"open": True}):
        p = at_one_place(**fields)
        plan = joined(one_route_each(p))
        assert len(plan.routes) == 1
        assert check(p, plan).feasible


def test_the_capacity_is_kept():
    """Eight customers of 3 in vehicles of 10: three in each, but for the rest."""
    p = at_one_place(delivery=np.full(8, 3.0), capacity=10)
    plan = joined(one_route_each(p))
    assert check(p, plan).feasible
    assert len(plan.routes) <= 4


def test_a_way_that_costs_stays_apart():
    """Two customers on opposite sides with no way between them but by the depot, where one may come on the
    way: joining them is free, and a detour is not."""
    matrix = np.array([[0, 1, 1], [1, 0, 2], [1, 2, 0]], dtype=float)
    free = Problem(capacity=9, delivery=[1, 1], distance_matrix=matrix)
    assert len(joined(one_route_each(free)).routes) == 1
    matrix[1, 2] = matrix[2, 1] = 2.5
    costly = Problem(capacity=9, delivery=[1, 1], distance_matrix=matrix)
    assert len(joined(one_route_each(costly)).routes) == 2


def test_routes_of_two_depots_stay_apart():
    p = Problem(capacity=9, delivery=[1, 1], num_depots=2, coords=np.zeros((4, 2)))
    assert len(joined(Solution.of(p, [(0, [2]), (1, [3])])).routes) == 2


@settings(max_examples=2 * settings.default.max_examples)
@given(problems())
def test_what_is_joined_is_as_good(problem):
    """Whatever the variant, no rule is broken, be there too few vehicles for each before, and nothing costs
    more."""
    before = one_route_each(problem)
    after = joined(before)
    assert {v.code for v in check(problem, after).violations} <= {"fleet-exceeded"}
    assert check(problem, after).feasible or not check(problem, before).feasible
    assert after.cost <= before.cost * (1 + 1e-12)
    assert len(after.routes) <= len(before.routes)


def test_the_judge_is_asked_about_all_pairs_at_once(monkeypatch):
    """Eight customers who are there at the same moment: no two of the 56 ordered pairs go together."""
    asked = []
    monkeypatch.setattr(join, "check", lambda *plan: asked.append(plan) or check(*plan))
    p = at_one_place(time_windows=[(0, 9)] + [(5, 5)] * 8, service=np.ones(8))
    plan = one_route_each(p)
    assert joined(plan) is plan
    assert len(asked) == 1


def test_the_board_keeps_the_joined_plan():
    p = at_one_place()
    board = Board(p, None)
    assert board.offer(one_route_each(p), "search")
    assert board.best is not None
    assert len(board.best.routes) == 1


def test_many_routes_are_left_as_they_are():
    """A plan of a route for each of 1,000 customers would keep the search waiting for its whole time."""
    plan = one_route_each(at_one_place(101))
    assert joined(plan) is plan
