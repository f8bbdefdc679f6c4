"""classical/ejection and legs: a plan within a fleet that leaves no choice, and every rule on every leg."""

from dataclasses import fields

import numpy as np
import pytest
from problems import KINDS, invent

from chainroute import VARIANTS, Problem, Route, Solution, check, solve
from chainroute.search.own.construct import construct
from chainroute.search.own.ejection import _Joined, squeeze_in
from chainroute.search.own.legs import Bounds, Legs
from chainroute.search.solvers import pyvrp
from chainroute.solve import policy_process

# On a line, two vehicles of 8, both full: 4, 2 and 2 must ride together, and so must 3, 3 and 2.
TIGHT = Problem(
    capacity=8, delivery=[4, 3, 3, 2, 2, 2], coords=[(x, 0) for x in (0, 1, -9, 5, 4, 7, -6)], fleet=2
)


def test_who_fits_nowhere_takes_the_place_of_another():
    """Insertion alone finds no plan, in whatever order."""
    assert construct(TIGHT) is None
    plan = squeeze_in(TIGHT, lambda: False)
    assert {min(route.visits): len(route.visits) for route in plan.routes} == {1: 3, 2: 3}
    assert any({2, 3} < set(route.visits) for route in plan.routes)
    assert check(TIGHT, plan).feasible


def test_it_ends_when_it_is_over():
    """No two of three loads of 5 ride together: there is no plan, and it would go on for ever."""
    looks = iter([False] * 50)
    three = Problem(capacity=8, delivery=[5, 5, 5], coords=[(0, 0), (1, 0), (2, 0), (3, 0)], fleet=2)
    assert squeeze_in(three, lambda: next(looks, True)) is None


def test_who_is_reached_only_by_way_of_others_waits_for_them():
    """The heaviest is the first to be put, and fits into no empty vehicle. Where it is too heavy to
    follow the other, all vehicles are emptied in vain."""
    roads = [[0, 1, None], [1, 0, 1], [1, None, 0]]
    p = Problem(capacity=10, delivery=[1, 9], distance_matrix=roads, fleet=1)
    looks = iter([False] * 50)
    assert [route.visits for route in squeeze_in(p, lambda: next(looks, True)).routes] == [(1, 2)]
    looks = iter([False] * 50)
    heavy = Problem(capacity=10, delivery=[6, 6], distance_matrix=roads, fleet=2)
    assert squeeze_in(heavy, lambda: next(looks, True)) is None


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_plan_keeps_every_rule(variant):
    """Within the fleet of a plan that was constructed without a bound."""
    for kind in KINDS:
        problem = invent(variant, VARIANTS.index(variant), customers=10, kind=kind)
        routes = construct(problem).routes
        fleet = int(np.bincount([route.depot for route in routes]).max())
        looks, bounded = iter([False] * 200), problem.replace(fleet=fleet)
        plan = squeeze_in(bounded, lambda: next(looks, True))  # noqa: B023
        assert plan is None or check(bounded, plan).feasible


def test_joined_legs_follow_their_routes():
    """Routes that keep their length are written in place, others make all be joined again; both come to the
    same as joining from the beginning."""
    problem = invent(VARIANTS[-1], 0, customers=10, kind=KINDS[0]).replace(fleet=None)
    bounds, rng = Bounds(problem), np.random.default_rng(0)
    joined = _Joined([Legs.of(bounds, np.array([0, c])) for c in problem.customers[:4]])
    for _ in range(40):
        visits = rng.permutation(list(problem.customers))[: rng.integers(1, 3)]
        joined.replace(int(rng.integers(4)), Legs.of(bounds, np.array([0, *visits])))
        if rng.random() < 0.5:
            kept, made = joined.all(), Legs.joined(joined.parts)
            for field in fields(Legs):
                np.testing.assert_array_equal(getattr(kept, field.name), getattr(made, field.name))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_leg_takes_a_customer_where_the_judge_does(variant):
    """And makes the route so much longer."""
    problem = invent(variant, VARIANTS.index(variant), customers=10, kind=KINDS[0]).replace(fleet=None)
    bounds = Bounds(problem)
    for route in construct(problem).routes:
        legs = Legs.of(bounds, np.array([route.depot, *route.visits]))
        before = Solution(problem, (route,))
        for customer in sorted(set(problem.customers) - set(route.visits)):
            more = legs.lengthening(bounds, customer)
            for place in range(len(route.visits) + 1):
                visits = (*route.visits[:place], customer, *route.visits[place:])
                verdict = check(problem, Solution(problem, (Route(route.depot, visits),)))
                broken = any(violation.route for violation in verdict.violations)
                assert broken == (more[place] == np.inf)
                if not broken:
                    assert before.cost + more[place] == pytest.approx(verdict.cost, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_legs_that_are_joined_take_a_customer_as_each_alone_does(kind):
    """Few of them, and more than there are places, which are measured another way."""
    for i, variant in enumerate(VARIANTS[::5]):
        problem = invent(variant, i, customers=8, kind=kind).replace(fleet=None)
        bounds = Bounds(problem)
        routes = construct(problem).routes
        parts = [Legs.of(bounds, np.array([route.depot, *route.visits])) for route in routes]
        for some in (parts[:1], parts * 3):
            for customer in problem.customers:
                alone = np.concatenate([legs.lengthening(bounds, customer) for legs in some])
                assert np.array_equal(Legs.joined(some).lengthening(bounds, customer), alone)


def test_solve_has_a_plan_where_insertion_alone_has_none(monkeypatch):
    """Nothing else is needed for it: neither PyVRP nor the policy is there."""
    monkeypatch.setattr(pyvrp, "installed", lambda: False)
    monkeypatch.setattr(policy_process, "missing", lambda: "torch")
    result = solve(TIGHT, 10)
    assert (result.source, check(TIGHT, result.solution).feasible) == ("construction", True)
