"""Solvers beyond the 48 variants: their plans pass the judge, PyVRP's at the cost that it sees itself, and
OR-Tools, VROOM and the MILP find the same where they know the features."""

import dataclasses

import pytest
from fleets import FEATURES, invent, mixed_fleet
from pyvrp import CostEvaluator

from chainroute import ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.formats.json import read, write
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import SearchTask
from chainroute.search.own.construct import assign_vehicles
from chainroute.search.own.reassign import reassigned
from chainroute.search.solvers import (
    lkh,
    milp,
    milp_search,
    ortools,
    ortools_search,
    pyvrp_fleet,
    pyvrp_search,
    vroom,
    vroom_search,
)
from chainroute.search.solvers.fleet_scaling import Money


def best(problem, iterations=60, seed=0, initial=None):
    """What a short search finds, here and now."""
    reports = []
    task = SearchTask(problem, Deadline.after(20), seed, initial, iterations)
    pyvrp_search.search(task, reports.append)
    assert reports, f"no plan for {problem.kind}"
    return Solution.of(problem, reports[-1].routes)


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_for_itself(feature):
    """Three problems of each; the plan keeps all rules."""
    for seed in range(3):
        problem = invent(seed, [feature])
        verdict = check(problem, best(problem))
        assert verdict.feasible, f"{problem.kind}: {verdict}"


@pytest.mark.parametrize("seed", range(40))
def test_any_mix_of_features(seed):
    """The plan keeps all rules; it comes back from PyVRP's terms as it went; both see the same cost."""
    problem = invent(100 + seed)
    solution = best(problem)
    verdict = check(problem, solution)
    assert verdict.feasible, f"{problem.kind}: {verdict}"
    assert verdict.cost == pytest.approx(solution.cost)
    if problem.extras:
        model = pyvrp_fleet.build(problem)
        encoded = model.encode(solution.pairs())
        assert encoded.is_feasible()
        assert Solution.of(problem, model.decode(encoded)).cost == pytest.approx(solution.cost)
        _same_cost(problem, model, encoded, solution)


def _same_cost(problem, model, encoded, solution):
    """PyVRP's whole numbers, scaled back, without those prizes of a second window."""
    seen = CostEvaluator([0.0], 0.0, 0.0).penalised_cost(encoded)
    twice = sum(
        (len(group.clients) - 1) * model.data.client(group.clients[0]).prize for group in model.data.groups()
    )
    scale = Money(problem).scale
    if not (problem.variant.limit and problem.limit_counts_service):
        assert (seen - twice) / scale == pytest.approx(solution.cost, rel=2e-3, abs=1e-3)


@pytest.mark.parametrize("seed", range(40))
def test_every_problem_survives_its_file(seed):
    """Written and read again, a problem is the same."""
    problem = invent(100 + seed)
    assert read(write(problem).decode(), "problem", None) == problem


def found(module, problem, seconds):
    """The last plan that another solver's search reports, here and now; None where it finds none."""
    reports = []
    module.search(SearchTask(problem, Deadline.after(seconds)), reports.append)
    return Solution.of(problem, reports[-1].routes) if reports else None


@pytest.mark.parametrize("seed", range(0, 30, 2))
def test_ortools_agrees_on_any_mix_of_features(seed):
    """Five customers, for which both find the best plan: one cost by two models, every plan judged."""
    problem = invent(600 + seed, customers=5)
    if "several trips" in problem.extras:
        problem = problem.replace(vehicle_types=[_one_trip(t) for t in problem.vehicle_types])
    plan = found(ortools_search, problem, 0.4)
    if plan is not None:  # OR-Tools is slow to find a first plan where many vehicles have little choice
        assert check(problem, plan).feasible
        assert plan.cost == pytest.approx(best(problem, 150).cost, rel=1e-6)


def _one_trip(given):
    return dataclasses.replace(given, max_trips=1, reload_depots=())


OF_VROOM = ("types", "ends", "speeds", "windows", "skills", "backhauls", "limits")


@pytest.mark.parametrize("seed", range(16))
def test_vroom_keeps_the_rules_and_comes_near(seed):
    """VROOM is a quick heuristic: on problems that it can model it is within a tenth of PyVRP's plan."""
    features = [feature for i, feature in enumerate(OF_VROOM) if seed >> (i % 4) & 1]
    problem = invent(700 + seed, features, customers=6)
    plan = found(vroom_search, problem, 0.5)
    assert check(problem, plan).feasible
    assert plan.cost <= 1.1 * best(problem, 150).cost + 1e-9


def test_vroom_pays_for_each_vehicle():
    """On a line, a vehicle costs 100: one goes everywhere; for 1 each, two go straight to the two ends."""
    for fixed, routes in ((100, 1), (1, 2)):
        problem = Problem(capacity=9, delivery=[1, 1], coords=[(0, 0), (-9, 1), (9, 1)], fixed_cost=fixed)
        problem = problem.replace(distance_matrix=[[0, 9, 9], [9, 0, 30], [9, 30, 0]], coords=None)
        plan = found(vroom_search, problem, 0.5)
        assert check(problem, plan).feasible
        assert len(plan.routes) == routes


@pytest.mark.parametrize("seed", range(8))
def test_the_milp_proves_what_pyvrp_finds(seed):
    """Prizes, fixed costs and costs of distance, with every other rule of the 48 variants."""
    problem = invent(800 + seed, ["optional", *(["windows"] if seed % 2 else []), "backhauls"], customers=6)
    problem = problem.replace(
        customer_windows=(), vehicle_types=(), fixed_cost=float(seed), cost_per_distance=1 + seed % 3
    )
    if "both at once" in problem.extras:
        problem = problem.replace(backhaul="mixed")
    plan = found(milp_search, problem, 20)
    assert check(problem, plan).feasible
    assert plan.cost == pytest.approx(reassigned(best(problem, 200)).cost, rel=1e-6)


@pytest.mark.parametrize(
    ("solver", "fields", "what"),
    [
        (ortools, {"max_trips": 2, "shift": (0, 99)}, "several trips"),
        (vroom, {"max_trips": 2, "shift": (0, 99)}, "several trips"),
        (vroom, {"cost_per_time": 1.0}, "a cost per time"),
        (vroom, {"max_duration": 50.0}, "a longest duration"),
        (milp, {"cost_per_time": 1.0}, "a cost per time"),
        (milp, {"skills": ["lift"], "depot": 0, "shift": (0, 99)}, "shifts"),
        (lkh, {"shift": (0, 99)}, "shifts"),
    ],
)
def test_solvers_say_what_they_do_not_know(solver, fields, what):
    problem = Problem(
        capacity=9, delivery=[1], coords=[(0, 0), (3, 4)], vehicle_types=[VehicleType(**fields)]
    )
    with pytest.raises(ChainRouteError, match=f"unsupported-feature.*{what}"):
        solver.solve(problem, 1.0)


def test_vroom_has_no_prizes():
    problem = Problem(capacity=9, delivery=[1], coords=[(0, 0), (3, 4)], prize=[3])
    with pytest.raises(ChainRouteError, match=r"unsupported-feature.*optional"):
        vroom.solve(problem, 1.0)


def test_service_that_counts_towards_a_limit_is_not_paid_for():
    """Six on a line, 1 apart: to serve all costs 12, and to leave one out 3. Service takes 30 of the limit
    and costs nothing; where only three can be served, the others are left out."""
    line = [(x, 0) for x in range(7)]
    fields = {"service": [30] * 6, "distance_limit": 200, "limit_counts_service": True}
    problem = Problem(capacity=9, delivery=[1] * 6, coords=line, prize=[3] * 6, **fields)
    assert best(problem).cost == 12
    assert best(problem.replace(distance_limit=100)).cost == 6 + 3 * 3


def test_fractions_of_money_count_where_ways_are_free():
    """A vehicle costs 0.4 and takes all six; to leave one out costs 0.3."""
    line, free = [(x, 0) for x in range(7)], VehicleType(fixed_cost=0.4, cost_per_distance=0.0)
    problem = Problem(capacity=9, delivery=[1] * 6, coords=line, prize=[0.3] * 6, vehicle_types=[free])
    assert best(problem).cost == pytest.approx(0.4)


@pytest.mark.parametrize("windows", [False, True])
def test_what_is_too_much_for_a_vehicle_costs_more_than_another(windows):
    """Loads of 1 to 9, where times have fractions and some customers need skills: the first plan is feasible,
    and better than a tour in pieces."""
    problem = mixed_fleet(400, windows)
    plan = best(problem, iterations=0)
    assert check(problem, plan).feasible
    assert plan.cost < assign_vehicles(problem).cost


def test_a_start_is_kept_and_improved():
    """A second search from the first one's plan is no worse."""
    problem = invent(7, ["types", "costs", "windows", "optional"])
    first = best(problem, iterations=2)
    second = best(problem, iterations=60, initial=first.pairs())
    assert check(problem, second).feasible
    assert second.cost <= first.cost
