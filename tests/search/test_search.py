"""PyVRP's side of the work, without a process of its own: the model against the judge, reports, stopping."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import KINDS, invent, one_route_each

from chainroute import VARIANTS, Problem, Solution, check, variant
from chainroute.generate import generate
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import SearchTask
from chainroute.search.own import construct
from chainroute.search.own.construct import constructions
from chainroute.search.solvers import pyvrp_search
from chainroute.search.solvers.pyvrp_search import FORBIDDEN_LENGTH, HISTORY_ITERATIONS, build, search

AMPLE = 60.0  # seconds


def judged(problem, routes):
    verdict = check(problem, Solution.of(problem, routes))
    assert verdict.feasible, verdict
    return verdict.cost


def searched(problem, initial=None, seed=0, seconds=AMPLE, most=20, share=None):
    """What is reported, with the judged costs: (iterations, cost)."""
    told = []
    search(SearchTask(problem, Deadline.after(seconds), seed, initial, most, share), told.append)
    return [(found.iterations, judged(problem, found.routes)) for found in told]


def test_no_customers_are_inserted_before_the_search(monkeypatch):
    """A tour takes three vehicles of 10 (4 + 3, 6, 7), and there are two: 4 + 6 and 3 + 7 is for PyVRP."""
    problem = Problem(
        capacity=10, delivery=[4, 3, 6, 7], coords=[(0, 0), (1, 0), (1, 1), (1, 2), (1, 3)], fleet=2
    )
    assert construct.cut_tour(problem) is None
    monkeypatch.setattr(construct, "inserted", lambda *_: pytest.fail("customers are inserted"))
    monkeypatch.setattr(construct, "_insert_all", lambda *_: pytest.fail("customers are inserted"))
    assert searched(problem)


# -- the model


@given(st.sampled_from(VARIANTS), st.integers(0, 10**6), st.sampled_from(KINDS))
def test_the_model_allows_what_the_judge_allows(variant, seed, kind):
    """Random plans for all customers, most of them infeasible. Where neither limit nor windows are rounded,
    it allows nothing less."""
    problem = invent(variant, seed, 6, kind=kind)
    model, rng = build(problem), np.random.default_rng(seed)
    for _ in range(8):
        order = rng.permutation(problem.customers)
        cuts = np.sort(rng.choice(range(1, 6), rng.integers(0, 6), replace=False))
        plan = [(int(rng.integers(problem.num_depots)), part.tolist()) for part in np.split(order, cuts)]
        encoded = model.encode(plan)
        verdict = check(problem, Solution.of(problem, plan))
        allowed = encoded.is_feasible() and encoded.distance() < FORBIDDEN_LENGTH
        if allowed or not (variant.limit or variant.time_windows or kind == "unmetric"):
            assert allowed == verdict.feasible, verdict
            assert model.decode(encoded) == plan


@pytest.mark.parametrize("name", ["CVRP", "OVRPLTW", "MDVRPBLTW", "VRPMBLTW", "VRPB"])
def test_feasible_plans_are_feasible_in_the_model_and_cost_the_same(name):
    """One route for each customer, and a plan constructed; lengths are in a unit of their own."""
    for seed in range(6):
        problem = invent(variant(name), seed, 8)
        model = build(problem)
        plan = [(r.depot, list(r.visits)) for r in one_route_each(problem).routes]
        encoded = model.encode(plan)
        assert encoded.is_feasible()
        assert encoded.is_complete()
        assert sorted(model.decode(encoded)) == sorted(plan)
        shorter = [(r.depot, list(r.visits)) for r in next(constructions(problem)).routes]
        ratio = model.encode(shorter).distance() / encoded.distance()
        service = problem.service.sum() * problem.limit_counts_service
        costs = [judged(problem, one) + service for one in (shorter, plan)]
        assert ratio == pytest.approx(costs[0] / costs[1], rel=1e-6)


def test_a_customer_without_demand_is_one_of_two_clients():
    """Where linehauls come first it may be in either half of a route, and is in one of them."""
    fields = {"capacity": 9, "delivery": [0, 0, 1], "pickup": [1, 0, 0], "coords": np.eye(4, 2)}
    model = build(Problem(**fields, backhaul="linehauls-first"))
    assert model.places == [1, 2, 3, 2]
    assert model.data.num_clients == 4
    assert [c.required for c in model.data.clients()] == [True, False, True, False]
    assert [g.clients for g in model.data.groups()] == [[1, 3]]
    for visits, clients in (([2, 3, 1], [1, 2, 0]), ([3, 1, 2], [2, 0, 3])):
        encoded = model.encode([(0, visits)])
        assert [stop.idx for stop in encoded.routes()[0] if stop.is_client()] == clients
        assert encoded.distance() < FORBIDDEN_LENGTH
        assert model.decode(encoded) == [(0, visits)]
    assert model.encode([(0, [1, 3, 2])]).distance() >= FORBIDDEN_LENGTH  # a delivery after a pickup
    between = pyvrp_search.pyvrp.Route(model.data, [0, 1, 2], vehicle_type=0)  # nor by that half's client
    assert pyvrp_search.pyvrp.Solution(model.data, [between]).distance() >= FORBIDDEN_LENGTH
    for other in ({"backhaul": "mixed"}, {"backhaul": "linehauls-first", "pickup": [0, 0, 0]}):
        assert build(Problem(**{**fields, **other})).places == [1, 2, 3]


@pytest.mark.parametrize(("fleet", "vehicles"), [(None, 3), (2, 2), (9, 3)])
def test_vehicles_of_each_depot(fleet, vehicles):
    """As many as there are customers suffice."""
    problem = Problem(capacity=9, delivery=[1] * 3, num_depots=2, coords=np.eye(5, 2), fleet=fleet)
    types = build(problem).data.vehicle_types()
    assert [(t.num_available, t.start_depot, t.end_depot) for t in types] == [
        (vehicles, 0, 0),
        (vehicles, 1, 1),
    ]


# -- the search


def test_reports_come_while_it_searches(monkeypatch):
    """A plan constructed at once, then each improvement, and at the end the best with all iterations."""
    (problem,) = generate(variant("CVRP"), 60, 1, seed=1)
    monkeypatch.setattr(pyvrp_search, "REPORT_SECONDS", 0.0)
    told = searched(problem, most=151)
    counts, costs = zip(*told, strict=True)
    assert counts[:2] == (0, 0)
    assert counts[-1] == 151
    assert any(0 < count < 151 for count in counts)
    assert list(counts) == sorted(counts)
    assert list(costs[1:]) == sorted(costs[1:], reverse=True)
    assert len(set(costs)) > 3


def test_reports_are_rare(monkeypatch):
    """Between the first routes and the end none before its time has come."""
    (problem,) = generate(variant("CVRP"), 60, 1, seed=1)
    monkeypatch.setattr(pyvrp_search, "REPORT_SECONDS", 1e9)
    assert [count for count, _ in searched(problem, most=150)] == [0, 0, 150]


def test_a_start_is_where_it_begins():
    problem = invent(variant("CVRP"), 1, customers=12)
    poor = [(r.depot, list(r.visits)) for r in one_route_each(problem).routes]
    first, *_, last = searched(problem, poor, most=50)
    assert first == (0, pytest.approx(judged(problem, poor)))
    assert last[1] < first[1]


def test_the_seed_decides():
    (problem,) = generate(variant("VRPTW"), 40, 1, seed=0)
    ends = [searched(problem, seed=seed, most=10)[-1] for seed in (1, 1, 2)]
    assert ends[0] == ends[1] != ends[2]


def test_infeasible_routes_are_not_reported():
    """Two customers at once and one van: PyVRP ends with a plan that is infeasible, and nothing is told."""
    windows = [(0, 99), (5, 5), (5, 5)]
    problem = Problem(
        capacity=9, delivery=[1, 1], coords=[(0, 0), (5, 0), (-5, 0)], fleet=1, time_windows=windows
    )
    assert searched(problem, most=10) == []


def test_the_deadline_ends_it():
    (problem,) = generate(variant("CVRP"), 30, 1, seed=0)
    begin = time.monotonic()
    assert searched(problem, seconds=0.3, most=None)
    assert 0.3 <= time.monotonic() - begin < 10


@pytest.fixture
def asked(monkeypatch):
    """What PyVRP is asked for."""
    calls = []

    def solve(data, stop, seed, **options):
        calls.append((stop, seed, options))

    monkeypatch.setattr(pyvrp_search.pyvrp, "solve", solve)
    return calls


@pytest.mark.parametrize(
    ("share", "most", "history"),
    [
        (None, 1000, HISTORY_ITERATIONS),
        (0.1, 1000, 100),
        (0.1, 5, 3),
        (0.5, 10**6, HISTORY_ITERATIONS),
        (0.01, None, 20),
    ],
)
def test_the_history_is_a_share_of_all_iterations(asked, share, most, history):
    """That are counted, or expected in the time: 2000 a second with 100 customers; within 3 and 300."""
    (problem,) = generate(variant("CVRP"), 100, 1, seed=0)
    search(SearchTask(problem, Deadline.after(1.02), 5, None, most, share), lambda _: None)
    ((_, seed, options),) = asked
    assert seed == 5
    assert options["params"].ils.history_length == history
    assert options["params"].neighbourhood.num_neighbours == pyvrp_search.NEIGHBOURS
    assert options["collect_stats"] is False


def test_larger_problems_are_expected_to_take_longer(asked):
    """(100 / 400) ^ 0.45 = 0.536 of the iterations."""
    (problem,) = generate(variant("CVRP"), 400, 1, seed=0)
    search(SearchTask(problem, Deadline.after(1), history_share=0.1), lambda _: None)
    assert 95 <= asked[0][2]["params"].ils.history_length <= 107


@pytest.mark.parametrize(("customers", "penalty"), [(99, 1e8), (999, 1e7)])
def test_penalties_fit_into_63_bits(asked, customers, penalty):
    (problem,) = generate(variant("CVRP"), customers, 1, seed=0)
    each = [(0, [c]) for c in problem.customers]
    search(SearchTask(problem, Deadline.after(0), start=each, max_iterations=1), lambda _: None)
    assert asked[0][2]["params"].penalty.max_penalty == pytest.approx(penalty)
    assert asked[0][2]["initial_solution"].is_complete()
    assert asked[0][0](0)  # the deadline has passed


def test_penalties_fit_where_times_have_many_digits(asked):
    """From 1 to 3e7 in time they are counted up to 3e13, so that four locations leave 1e18 / 3e13 / 4."""
    coords = [(0, 0), (1, 0), (2, 0), (3e7, 0)]
    problem = Problem(capacity=9, delivery=[1, 1, 1], coords=coords, time_windows=[(0, 1e8)] * 4)
    search(SearchTask(problem, Deadline.after(0)), lambda _: None)
    assert asked[0][2]["params"].penalty.max_penalty == pytest.approx(1e18 / 3e13 / 4)
