"""Routes are joined where that costs nothing, and never where it breaks a rule."""

import itertools

import numpy as np
from hypothesis import given, settings
from problems import one_route_each, problems

from chainroute import Problem, Route, Solution, check
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
    """Eight customers who each take most of what a route may last: no two of the 56 ordered pairs go
    together, by a rule that only the judge knows."""
    asked = []
    monkeypatch.setattr(join, "check", lambda *plan: asked.append(plan) or check(*plan))
    p = at_one_place(distance_limit=1.5, limit_counts_service=True, service=np.ones(8))
    plan = one_route_each(p)
    assert joined(plan) is plan
    assert len(asked) == 1


def test_the_judge_is_not_asked_about_those_who_come_too_late(monkeypatch):
    """Eight customers who are there at the same moment, and one who can wait: only he comes after another."""
    asked = []
    monkeypatch.setattr(join, "check", lambda *plan: asked.append(plan) or check(*plan))
    p = at_one_place(time_windows=[(0, 9)] + [(5, 5)] * 7 + [(6, 6)], service=np.ones(8))
    plan = joined(one_route_each(p))
    assert len(plan.routes) == 7
    assert [len(asking.routes) for _, asking in asked] == [7]


def by_asking_about_each(p, routes):
    """The routes after joining, one by one, the first two that may be joined by the rules of `joined`."""
    for a, b in itertools.permutations(routes, 2):
        both = Route(a.depot, a.visits + b.visits)
        amounts = [sum(amount[v] for v in both.visits) for amount in (p.deliveries, p.pickups)]
        ends = (0 if p.open else p.distance(a.visits[-1], a.depot)) + p.distance(b.depot, b.visits[0])
        free = a.depot == b.depot and max(amounts) <= p.capacity
        free = free and p.distance(a.visits[-1], b.visits[0]) <= ends
        if free and not [v for v in check(p, Solution(p, (both,))).violations if v.route]:
            return by_asking_about_each(p, [r for r in routes if r not in (a, b)] + [both])
    return routes


@settings(max_examples=2 * settings.default.max_examples)
@given(problems(max_customers=5))
def test_those_are_joined_that_the_judge_lets_join(problem):
    """Against asking it about every pair by itself."""
    before = one_route_each(problem)
    routes = joined(before).routes
    assert set(routes) == set(by_asking_about_each(problem, list(before.routes)))


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
