"""OR-Tools, VROOM and the exact program behind the one interface, on every variant."""

import math
import time

import numpy as np
import pytest
from problems import KINDS, codes, invent, on_a_line, one_route_each

from chainroute import VARIANTS, ChainRouteError, Problem, Solution, check, variant
from chainroute.generate import generate
from chainroute.search import library
from chainroute.search.solvers import milp, ortools, pyvrp, scaling, vroom
from chainroute.search.solvers.table import SOLVERS

for name in ("ortools", "pyvrp", "scipy", "vroom"):
    pytest.importorskip(name, reason="needs chainroute[evaluate]")

OTHERS = {"ortools": ortools, "vroom": vroom, "milp": milp}
ENOUGH = 60.0  # seconds, of which VROOM and the exact program use few
# For OR-Tools, which uses all it gets; a busy machine gets a second and third chance.
BRIEF = (0.15, 1.0, 5.0)


@pytest.fixture(scope="module", autouse=True)
def _warm():
    """The worker has loaded all solvers before any is held to a time limit."""
    for solver in OTHERS.values():
        solve(solver, on_a_line(capacity=1, delivery=[1]))


def solve(solver, problem, *limits, below=math.inf, **options):
    """The result, judged, at the first of the limits that leads to a cost below that."""
    limits = limits or (BRIEF if solver in (ortools, pyvrp) else (ENOUGH,))
    for limit in limits:
        try:
            result = solver.solve(problem, limit, **options)
        except ChainRouteError:
            if limit == limits[-1]:
                raise
        else:
            if result.solution.cost < below:
                break
    verdict = check(problem, result.solution)
    assert verdict.feasible, verdict
    assert verdict.cost == pytest.approx(result.solution.cost, rel=1e-12)
    return result


# -- the 48 variants


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_on_small_problems_all_agree_with_the_proven_optimum(variant):
    """Five customers of the odd kinds: the program proves its cost, PyVRP and OR-Tools reach it, nobody goes
    below, and VROOM comes near (with linehauls first it takes customers without demand for linehauls)."""
    i = VARIANTS.index(variant)
    depots = 2 if variant.multi_depot else None
    problem = invent(variant, i, customers=5, depots=depots, kind=KINDS[i % len(KINDS)], fleet=i % 3 == 0)
    exact = solve(milp, problem)
    assert exact.optimal
    best = exact.solution.cost
    assert pyvrp.solve(problem, 60, max_iterations=500).solution.cost == pytest.approx(best, rel=1e-6)
    reached = solve(ortools, problem, below=best * (1 + 1e-6)).solution.cost
    assert reached == pytest.approx(best, rel=1e-6)
    assert best * (1 - 1e-6) <= solve(vroom, problem).solution.cost <= 1.3 * best + 1e-9


@pytest.mark.parametrize("variant", VARIANTS[::7], ids=str)
def test_problems_of_the_benchmark_are_solved_well(variant):
    """Fifteen customers, every seventh variant: within a tenth of PyVRP."""
    (problem,) = generate(variant, 15, 1, seed=0)
    good = pyvrp.solve(problem, 60, max_iterations=200).solution.cost
    assert solve(vroom, problem).solution.cost < 1.1 * good
    assert solve(ortools, problem, 0.4, 2, 10, below=1.1 * good).solution.cost < 1.1 * good


@pytest.mark.parametrize("solver", OTHERS.values(), ids=OTHERS)
class TestRules:
    """The optimum is known by hand, on a line."""

    def test_a_pickup_may_come_before_a_delivery_where_backhauls_are_mixed(self, solver):
        """Open, pickup at 1, delivery at 2: 2 if both fit on board, 3 if not or if linehauls come first."""
        fields = {"delivery": [0, 1], "pickup": [1, 0], "open": True}
        assert solve(solver, on_a_line(capacity=2, backhaul="mixed", **fields)).solution.cost == 2
        assert solve(solver, on_a_line(capacity=1, backhaul="mixed", **fields)).solution.cost == 3
        assert solve(solver, on_a_line(capacity=2, backhaul="linehauls-first", **fields)).solution.cost == 3

    def test_what_was_picked_up_is_not_delivered(self, solver):
        """Open, capacity 2: a pickup of 2 at 1, a delivery of 2 at 2, which is on board from the start."""
        problem = on_a_line(capacity=2, delivery=[0, 2], pickup=[2, 0], backhaul="mixed", open=True)
        assert solve(solver, problem).solution.cost == 3

    def test_an_open_route_ends_when_it_likes(self, solver):
        problem = on_a_line(
            capacity=9,
            delivery=[1, 1],
            open=True,
            distance_limit=2,
            time_windows=[[0, 1], [0, 1], [2, 9]],
            service=[0, 5],
        )
        assert solve(solver, problem).solution.cost == 2

    def test_service_counts_towards_the_limit_where_it_is_said_to(self, solver):
        fields = {"capacity": 9, "delivery": [1, 1], "service": [1, 1]}
        for limit, counts, routes in ((6, True, 1), (5.9, False, 1), (5.9, True, 2)):
            problem = on_a_line(**fields, distance_limit=limit, limit_counts_service=counts)
            assert len(solve(solver, problem).solution.routes) == routes

    def test_each_vehicle_returns_to_its_own_depot(self, solver):
        problem = Problem(
            capacity=1, delivery=[1, 1], num_depots=2, fleet=1, coords=[[0, 0], [10, 0], [9, 0], [1, 0]]
        )
        assert {(r.depot, r.visits) for r in solve(solver, problem).solution.routes} == {(0, (3,)), (1, (2,))}

    def test_what_just_suffices_suffices(self, solver):
        """Limits and windows that equal a length or an arrival to the last bit are met."""
        coords = np.random.default_rng(3).random((6, 2))
        free = Problem(capacity=1, delivery=np.full(5, 0.1), coords=coords)
        trips = free.distances[0, 1:] + free.distances[1:, 0]
        assert solve(solver, free.replace(distance_limit=trips.max()))
        moments = np.r_[[[0, trips.max()]], np.repeat(free.distances[0, 1:, None], 2, axis=1)]
        assert len(solve(solver, free.replace(time_windows=moments)).solution.routes) == 5

    def test_no_solution_is_told(self, solver):
        """Three customers of 2 do not fit into two vehicles of 3, though together they would."""
        with pytest.raises(ChainRouteError) as error:
            solve(solver, on_a_line(capacity=3, delivery=[2, 2, 2], fleet=2, name="tight"), 0.5)
        assert codes(error) == [("no-solution", "tight")]
        coords = [(0, 0), (10, 0), (0, 10), (-10, 0)]  # the shortest way to all three is 48.3
        hidden = on_a_line(capacity=9, delivery=[1, 1, 1], fleet=1, name="hidden")
        hidden = hidden.replace(coords=coords, distance_limit=45)
        with pytest.raises(ChainRouteError) as error:
            solve(solver, hidden, ENOUGH if solver is milp else 0.5)  # which ends with its proof
        assert codes(error) == [("no-solution" if solver is milp else "no-plan-found", "hidden")]

    def test_a_start_is_never_made_worse(self, solver):
        problem = invent(variant("MDVRPMBLTW"), 1, customers=6)
        best = solve(milp, problem).solution
        again = solve(solver, problem, initial=Solution(problem, best.routes)).solution
        assert again.cost == pytest.approx(best.cost)
        assert solve(solver, problem, initial=one_route_each(problem)).solution.cost >= best.cost * (1 - 1e-6)

    def test_all_that_is_wrong_with_the_options_is_told_at_once(self, solver):
        problem = on_a_line(capacity=1, delivery=[1, 1])
        with pytest.raises(ChainRouteError) as error:
            solver.solve(problem, math.nan, seed=-1, initial=Solution.of(problem, [(0, [1, 2])]))
        assert codes(error) == [
            ("bad-option", "time_limit"),
            ("bad-option", "seed"),
            ("infeasible-start", "initial"),
        ]

    def test_a_missing_package_is_told(self, solver, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(ChainRouteError, match=r"pip install 'chainroute\[evaluate\]'") as error:
            solver.solve(on_a_line(capacity=1, delivery=[1]), 1)
        assert codes(error) == [("missing-extra", "solver")]


# -- each for itself


def test_or_tools_goes_on_from_a_start_and_keeps_its_limit():
    (problem,) = generate(variant("VRPTW"), 60, 1, seed=0)
    start = one_route_each(problem)
    results = [solve(ortools, problem, 1, initial=start)]
    while results[-1].seconds > 1.2 and len(results) < 3:  # a busy machine gets a second and third chance
        results.append(solve(ortools, problem, 1, initial=start))
    result = results[-1]
    assert result.seconds <= 1.2
    assert result.iterations > 1
    assert result.solution.cost < 0.9 * start.cost


def test_the_exact_program_says_how_near_it_is_when_time_runs_out():
    """A bound below the cost, and no proof; with more time, both meet."""
    (problem,) = generate(variant("CVRP"), 16, 1, seed=0)
    result = solve(milp, problem, 1.5, 5)  # for a busy machine
    assert result.bound < result.solution.cost
    assert not result.optimal
    assert pyvrp.solve(problem, 60, max_iterations=300).solution.cost >= result.bound


def test_the_exact_program_refuses_what_would_take_for_ever():
    (problem,) = generate(variant("CVRP"), 50, 1, seed=0)
    with pytest.raises(ChainRouteError) as error:
        milp.solve(problem, 1)
    assert codes(error) == [("too-large", problem.name)]


def test_numbers_that_stand_for_no_road_do_not_overflow():
    """VROOM counts in 32 bits."""
    problem = invent(variant("VRPTW"), 1, customers=6, kind="unmetric")
    assert problem.distances.max() >= 1e9
    best = solve(milp, problem).solution.cost
    assert solve(vroom, problem).solution.cost == pytest.approx(best)


@pytest.mark.parametrize("solver", [*OTHERS.values(), pyvrp], ids=[*OTHERS, "pyvrp"])
@pytest.mark.parametrize("unit", [1, 10**7, 10**10])
class TestWholeNumbers:
    """Judged exactly, so a vehicle that is just full is found, and none with a unit too much is proposed."""

    def test_a_unit_too_much_is_too_much(self, solver, unit):
        for more, routes in ((0, 1), (1, 2)):
            problem = on_a_line(capacity=6 * unit, delivery=[unit, 2 * unit, 3 * unit + more])
            assert len(solve(solver, problem).solution.routes) == routes

    def test_a_unit_too_far_is_too_far(self, solver, unit):
        """Two customers at 3, 1 apart: one route of 7, and two if the limit or the depot's day is less."""
        apart = unit * np.array([[0, 3, 3], [3, 0, 1], [3, 1, 0]])
        problem = Problem(capacity=2, delivery=[1, 1], distance_matrix=apart)
        for less, routes in ((0, 1), (1, 2)):
            bound = 7 * unit - less
            limited = problem.replace(distance_limit=bound)
            assert len(solve(solver, limited).solution.routes) == routes
            timed = problem.replace(time_windows=[[0, bound], [0, bound], [0, bound]])
            assert len(solve(solver, timed).solution.routes) == routes


def test_whole_numbers_are_those_of_the_problem():
    """Lengths up, limit and closing down, in a power of ten that keeps them below the largest."""
    problem = on_a_line(
        capacity=0.3,
        delivery=[0.1, 0.2],
        distance_limit=5.55555,
        time_windows=[[0, 9], [0.11119, 3.33339], [0, 9]],
    )
    length, limit = scaling.lengths(problem, 1e4)
    assert length.tolist() == [[0, 1000, 2000], [1000, 0, 1000], [2000, 1000, 0]]
    assert limit == 5555
    _, _, early, late = scaling.times(problem, 1e4)
    assert (early[1], late[1]) == (112, 3333)
    delivery, _, _ = scaling.loads(problem, 1e4)
    assert delivery.tolist() == [0, 1000, 2000]


# -- the interface


def test_the_register_has_every_solver_and_pyvrp_alone_counts_iterations():
    """The others refuse such a number; LKH, which may not be installed, is not asked."""
    assert set(SOLVERS) == {"pyvrp", "ortools", "vroom", "milp", "lkh"}
    assert [name for name, solver in SOLVERS.items() if solver.counts_iterations] == ["pyvrp"]
    for name in ("ortools", "vroom", "milp"):
        with pytest.raises(ChainRouteError, match=r"max_iterations: .* counts none"):
            SOLVERS[name].solve(on_a_line(capacity=1, delivery=[1, 1]), 1, max_iterations=1)


def test_of_several_reports_the_last_that_the_judge_accepts_counts():
    problem = on_a_line(capacity=1, delivery=[1, 1])
    good = library.Found([(0, [1]), (0, [2])], 1)
    bad = library.Found([(0, [1, 2])], 2, 4.0)
    result = library.judge("it", problem, time.monotonic(), 1, None, [good, bad])
    assert check(problem, result.solution).feasible
    assert (result.solution.cost, result.iterations, result.bound) == (6, 2, 4.0)
    with pytest.raises(ChainRouteError) as error:
        library.judge("it", problem, time.monotonic(), 1, None, [bad])
    assert codes(error) == [("no-plan-found", "problem")]
