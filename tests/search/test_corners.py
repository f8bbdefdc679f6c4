"""Problems at the corners of every feature: no solver stops by an exception, and every plan is judged."""

from functools import partial

import numpy as np
import pytest
from fleets import invent
from problems import invent as invent_plain

from chainroute import VARIANTS, ChainRouteError, Problem, Solution, VehicleType, check
from chainroute.runtime.deadline import Deadline
from chainroute.search import library
from chainroute.search.library import SearchTask
from chainroute.search.own import ruin
from chainroute.search.own.construct import construct
from chainroute.search.own.exact import is_tiny, optimum
from chainroute.search.solvers import (
    milp,
    milp_search,
    ortools,
    ortools_search,
    pyvrp_search,
    vroom,
    vroom_search,
)


def nothing_to_carry(p):
    return p.replace(delivery=np.zeros(p.num_customers), pickup=np.zeros(p.num_customers))


def next_to_nothing(p):
    return p.replace(delivery=p.delivery * 1e-200, pickup=p.pickup * 1e-200)


def all_optional(p):
    return p.replace(prize=np.full(p.num_customers, 30.0))


def far_too_heavy(p):
    """One customer that nobody has to serve asks for more than any vehicle holds."""
    first = np.arange(p.num_customers) == 0
    prizes = np.where(first, 7.0, p.prizes[p.num_depots :])
    return p.replace(delivery=np.where(first, 1e200, p.delivery), pickup=p.pickup * ~first, prize=prizes)


def no_way_at_all(p):
    nowhere = np.zeros((p.num_locations, p.num_locations))
    return p.replace(coords=None, rounding="exact", distance_matrix=nowhere, duration_matrix=None)


def depots_close_early(p):
    """Some before a shift begins, and some open only after it is over; nobody has to be served."""
    rng = np.random.default_rng(p.num_customers)
    hours = p.windows.copy()
    hours[: p.num_depots, 0] = rng.choice([0, 800], p.num_depots)
    hours[: p.num_depots, 1] = hours[: p.num_depots, 0] + rng.integers(0, 60, p.num_depots)
    return all_optional(p.replace(time_windows=hours, prize=np.full(p.num_customers, 30.0)))


CORNERS = (
    nothing_to_carry,
    next_to_nothing,
    all_optional,
    far_too_heavy,
    no_way_at_all,
    depots_close_early,
)
SEEDS = range(12)


def cornered(seed, corner):
    """Some of the 48 variants and some beyond, with seven customers or one; None where that is refused."""
    kinds = (
        lambda: invent(seed),
        lambda: invent(seed, customers=1),
        lambda: invent_plain(VARIANTS[5 * seed % 48], seed),
        lambda: invent_plain(VARIANTS[5 * seed % 48], seed, customers=1),
    )
    found = []
    for kind in kinds:
        try:
            found.append(corner(kind()))
        except ChainRouteError:
            assert corner is not nothing_to_carry
    return found


def reported(search, problem, seconds, iterations=None):
    """The last plan of a search, here and now, judged; None where it has none."""
    reports = []
    task = SearchTask(problem, Deadline.after(seconds), 0, None, iterations)
    library.search(partial(lambda found: found, search), task, reports.append)
    if not reports:
        return None
    plan = Solution.of(problem, reports[-1].routes)
    assert check(problem, plan).feasible, problem.kind
    return plan


def holds(solver, problem):
    """Whether a solver takes the problem."""
    try:
        solver.SOLVER.require(problem)
    except ChainRouteError:
        return False
    return True


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_pyvrp_has_a_plan_at_every_corner(seed, corner):
    for problem in cornered(seed, corner):
        plan = reported(pyvrp_search.search, problem, 20, 30)
        assert plan is not None, problem.kind


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize(
    ("search", "solver", "seconds"),
    [
        (ortools_search.search, ortools, 0.03),
        (vroom_search.search, vroom, 0.03),
        (milp_search.search, milp, 0.3),
    ],
    ids=["ortools", "vroom", "milp"],
)
def test_no_other_solver_stops_by_an_exception(search, solver, seconds, corner):
    for seed in SEEDS[:5]:
        for problem in cornered(seed, corner):
            if holds(solver, problem):
                reported(search, problem, seconds)


@pytest.mark.parametrize("corner", CORNERS)
def test_ruin_and_recreate_at_every_corner_of_the_48_variants(corner):
    ruin_search = pytest.importorskip("chainroute.search.own.ruin_search", reason="needs chainroute[large]")
    for seed in SEEDS[:6]:
        for problem in filter(ruin.suits, cornered(seed, corner)):
            reports, plan = [], construct(problem)
            task = SearchTask(problem, Deadline.after(0.02), 0, plan.pairs(), heat=(1.0, 0.03))
            ruin_search.search(task, reports.append)
            assert check(problem, Solution.of(problem, reports[-1].routes)).feasible


@pytest.mark.parametrize("corner", CORNERS)
def test_constructions_and_the_trial_of_every_plan(corner):
    for seed in SEEDS:
        for problem in cornered(seed, corner):
            plan = construct(problem)
            assert plan is None or check(problem, plan).feasible
            if problem.num_customers == 1 and is_tiny(problem):
                assert check(problem, optimum(problem)).feasible


def test_nobody_to_serve_is_no_problem():
    with pytest.raises(ChainRouteError, match="no-customer"):
        Problem(capacity=1, delivery=[], coords=[(0, 0)])


def test_where_no_vehicle_can_go_out_nobody_is_served():
    """The depot closes at 50, and the shift begins at 100."""
    late = VehicleType(shift=(100, 900))
    hours = [(0, 50), *[(0, 900)] * 6]
    problem = Problem(capacity=9, delivery=[1] * 6, coords=[(x, 0) for x in range(7)], prize=[2] * 6,
                      time_windows=hours, vehicle_types=[late])  # fmt: skip
    for search in (pyvrp_search.search, ortools_search.search):
        plan = reported(search, problem, 0.1)
        assert (plan.routes, plan.cost) == ((), 12)


def test_without_goods_plans_are_as_good_as_with_next_to_none():
    """Twelve calls and two technicians: 0.001 for each call changes nothing."""
    problem = invent(3, ["types", "skills", "costs"], customers=12)
    bare = nothing_to_carry(problem)
    light = problem.replace(delivery=np.full(12, 0.001))
    costs = [reported(pyvrp_search.search, p, 20, 100).cost for p in (bare, light)]
    assert costs[0] == pytest.approx(costs[1], rel=0.02)


def test_a_depot_of_no_vehicle_is_nobody_to_visit():
    """Two depots, and a vehicle at the second alone: OR-Tools would go to the first as well."""
    problem = Problem(
        capacity=9,
        delivery=[1] * 3,
        num_depots=2,
        coords=[(0, 0), (5, 0), (6, 0), (7, 0), (8, 0)],
        vehicle_types=[VehicleType(depot=1, fixed_cost=1.0)],
    )
    assert reported(ortools_search.search, problem, 0.1).cost == 7


def test_missing_roads_are_not_too_dear_for_vroom():
    """Many vehicles at depots without a road to some customer: VROOM adds up the dearest way of each."""
    rng = np.random.default_rng(0)
    ways = rng.integers(1, 99, (12, 12)).astype(float)
    ways[0, 3] = ways[1, 4] = ways[5, 0] = ways[6, 1] = np.inf
    np.fill_diagonal(ways, 0)
    problem = Problem(capacity=5, delivery=[2] * 10, num_depots=2, distance_matrix=ways, fixed_cost=1.0)
    assert reported(vroom_search.search, problem, 1) is not None
