"""LKH: what it is given and how its answer is read, by a stand-in for the program; and the program itself,
where it is on the path."""

import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest
from problems import codes, invent, on_a_line
from timing import within

from chainroute import VARIANTS, Backhaul, ChainRouteError, Problem, Route, Solution, check, variant
from chainroute.formats import read, vrplib
from chainroute.generate import generate
from chainroute.runtime.deadline import Deadline
from chainroute.search.library import SearchTask
from chainroute.search.solvers import lkh, milp

STAND_IN = """#!{python}
import shutil, sys, time
for name in ("problem.vrp", "start"):
    shutil.copy(name, {folder!r})
settings = dict(line.split(" = ") for line in open(sys.argv[1]).read().splitlines() if "=" in line)
for cost, tour in {tours!r}.items():
    with open(settings["OUTPUT_TOUR_FILE"].replace("$", str(cost)), "w") as file:
        print("NAME : it", "TOUR_SECTION", *tour, sep="\\n", file=file)
time.sleep({sleep})
sys.exit({error!r})
"""
real = pytest.mark.skipif(shutil.which("LKH") is None, reason="there is no program LKH on the path")


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Puts a program LKH on the path that keeps the problem and answers with tours, by their costs."""

    def put(tours, sleep=0.0, error=None):
        script = STAND_IN.format(
            python=sys.executable, folder=str(tmp_path), tours=tours, sleep=sleep, error=error
        )
        program = tmp_path / "LKH"
        program.write_text(script)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        return tmp_path / "problem.vrp"

    return put


# -- its answer


def test_a_tour_is_cut_at_the_depot_and_its_copies(stand_in):
    """Four nodes; 5 and 6 are copies of the depot, node 1, and the tour begins in the middle of a route."""
    stand_in({7: [3, 5, 6, 4, 1, 2, -1, "EOF"]})
    problem = on_a_line(capacity=2, delivery=[1, 1, 1])
    result = lkh.solve(problem, 5)
    assert check(problem, result.solution).feasible
    assert {r.visits for r in result.solution.routes} == {(1, 2), (3,)}


def test_a_tour_says_which_plan_it_is():
    for plan, vehicles in (([[2, 1], [3]], 4), ([[1, 2, 3]], 1)):
        tour = lkh._tour(plan, vehicles, 4)
        assert sorted(tour.split()[1:-2], key=int) == [str(node) for node in range(1, 4 + vehicles)]
        assert lkh._routes(tour, 4) == [(0, visits) for visits in plan]


def test_the_best_tour_counts_that_is_whole_and_feasible(stand_in):
    """The one of cost 8 was being written when the program was ended, that of 9 overloads the vehicle."""
    stand_in({8: [1, 2, 5], 100: [1, 2, 3, 5, 4, -1], 9: [1, 2, 3, 4, -1], 10: [1, 2, 5, 3, 4, -1]})
    problem = on_a_line(capacity=2, delivery=[1, 1, 1])
    assert {r.visits for r in lkh.solve(problem, 5).solution.routes} == {(1,), (2, 3)}


def test_a_program_that_goes_on_is_ended_and_its_tour_counts(stand_in):
    stand_in({4: [1, 2, 3, -1]}, sleep=60)
    results = []
    assert within(1.5, lambda: results.append(lkh.solve(on_a_line(capacity=2, delivery=[1, 1]), 1.5)))
    for result in results:
        assert check(result.solution.problem, result.solution).feasible
        assert result.solution.cost == 4


def test_a_program_that_fails_is_told_with_its_words(stand_in):
    stand_in({}, error="\n*** Error ***\nUnknown keyword: PRECISION")
    with pytest.raises(ChainRouteError, match=r"LKH stopped: Unknown keyword: PRECISION\.") as error:
        lkh.solve(on_a_line(capacity=2, delivery=[1, 1]), 5)
    assert [fault.code for fault in error.value.faults] == ["solver-failed"]


def test_a_missing_program_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ChainRouteError, match="no program LKH on the path") as error:
        lkh.solve(on_a_line(capacity=1, delivery=[1, 1]), 1)
    assert codes(error) == [("missing-extra", "solver")]


# -- what it is given


def test_the_program_is_given_the_problem_in_whole_numbers(stand_in):
    """Service is part of the way on; the greedy plan is where the search starts from."""
    given = stand_in({5: [1, 2, 3, -1]})
    windows = [[0, 5], [0.5, 3], [0, np.inf]]
    problem = on_a_line(capacity=0.3, delivery=[0.1, 0.2], service=[0.5, 0], time_windows=windows)
    assert lkh.solve(problem, 5).solution.cost == 4
    assert "TYPE : CVRPTW\n" in given.read_text()
    assert "SERVICE_TIME" not in given.read_text()
    whole = read(given)
    unit = 10_000_000
    ways = [[0, 1, 2], [1.5, 0, 1.5], [2, 1, 0]]
    assert whole.distances.tolist() == [[unit * way for way in row] for row in ways]
    assert whole.windows[:2].tolist() == [[0, 5 * unit], [0.5 * unit, 3 * unit]]
    for numbers in (whole.windows, whole.delivery, [whole.capacity]):
        assert (np.asarray(numbers) % 1 == 0).all()
    assert (given.parent / "start").read_text().split()[1:-2] == ["1", "2", "3", "4"]  # a copy of the depot


def plans(problem, rng, count):
    """Random ways to visit all customers."""
    for _ in range(count):
        cuts = rng.choice(problem.num_customers - 1, rng.integers(problem.num_customers), replace=False) + 1
        order = rng.permutation(problem.customers)
        yield Solution(problem, [Route(0, visits.tolist()) for visits in np.split(order, np.sort(cuts))])


@pytest.mark.parametrize("kind", lkh.VARIANTS, ids=str)
def test_every_plan_is_worth_the_same_in_translation(kind):
    """What the judge says of plans it says of them in the translated problem, too, which is of one of five
    kinds; their costs differ by the unit and by the service, of which every plan has the same."""
    rng = np.random.default_rng(0)
    verdicts = set()
    for places in ("plane", "asymmetric", "rounded"):
        problem = invent(kind, 1, customers=4, kind=places)
        translated = lkh._translated(problem)
        assert translated.variant.name in ("CVRP", "VRPL", "VRPTW", "VRPBTW", "VRPMBTW")
        costs = []
        for plan in plans(problem, rng, 200):
            verdict = check(problem, plan)
            assert check(translated, Solution(translated, plan.routes)).feasible == verdict.feasible, plan
            verdicts.add(verdict.feasible)
            costs.append((verdict.cost, Solution(translated, plan.routes).cost))
        ours, theirs = np.array(costs).T
        unit, service = np.polyfit(ours, theirs, 1)
        np.testing.assert_allclose(unit * ours + service, theirs, rtol=1e-5)
    assert verdicts == {True, False}


@pytest.mark.parametrize("kind", ["VRPBL", "OVRPBTW"])
def test_clocks_are_in_hundreds_where_linehauls_come_first(kind):
    """LKH rounds them to hundreds, which must change nothing."""
    (problem,) = generate(variant(kind), 10, 1, seed=0)
    given = lkh._translated(problem)
    for numbers in (given.distances, given.windows):
        assert (numbers % 100 == 0).all()
    assert given.distances.max() > 1e7


def test_full_vehicles_of_the_benchmark_stay_full():
    """Thirtieths are not whole in any power of ten, but 15 of 2/30 fill a vehicle all the same. All demands
    together stay within 32 bits."""
    demand = np.array([2 / 30] * 15, np.float32).astype(float)
    given = lkh._translated(Problem(capacity=1, delivery=demand, coords=np.ones((16, 2))))
    assert given.delivery.sum() <= given.capacity < given.delivery.sum() + given.delivery[0]
    given = lkh._translated(Problem(capacity=1, delivery=np.ones(3000), coords=np.ones((3001, 2))))
    assert given.delivery.sum() < 2**31


def test_the_greedy_plan_goes_on_to_where_it_can_begin_first():
    """At 1, 2, 3, 4 on a line: first 3, then 4, since no linehaul may follow; 1 can be begun before 2."""
    problem = on_a_line(
        capacity=2,
        delivery=[1, 1, 0, 0],
        pickup=[0, 0, 1, 1],
        backhaul="linehauls-first",
        time_windows=[[0, 99], [4, 99], [4.5, 6], [0, 99], [0, 99]],
    )
    assert lkh._greedy(problem) == [[3, 4], [1, 2]]
    assert lkh._greedy(problem.replace(capacity=1)) == [[3], [1], [4], [2]]
    early = [[0, 99], [4, 99], [4.5, 4.5], [0, 99], [0, 99]]  # 2 has closed when the vehicle comes from 1
    assert lkh._greedy(problem.replace(time_windows=early)) == [[3, 4], [1], [2]]
    assert lkh._greedy(on_a_line(capacity=9, delivery=[1, 1, 1], distance_limit=6)) == [[1, 2, 3]]


def test_who_is_only_reached_by_a_way_round_has_a_vehicle_in_the_greedy_plan():
    distances = [[0, 9, 1], [9, 0, 1], [1, 1, 0]]
    problem = Problem(capacity=9, delivery=[1, 1], distance_matrix=distances, distance_limit=4)
    assert lkh._greedy(problem) == [[2], [1]]


def test_there_are_vehicles_to_spare_but_no_more_than_the_fleet(stand_in):
    """Twenty customers in pairs: a greedy plan has 10 routes, and LKH half as many again and three."""
    given = stand_in({})
    for fleet, vehicles in ((None, 18), (12, 12), (40, 20)):
        with pytest.raises(ChainRouteError):
            lkh.solve(on_a_line(capacity=2, delivery=[1] * 20, fleet=fleet), 5)
        assert read(given).fleet == vehicles


@pytest.mark.parametrize("kind", lkh.VARIANTS, ids=str)
def test_every_variant_it_solves_can_be_written(kind, stand_in):
    """The stand-in finds no tour, which is told; the file that it was given says the same as the problem."""
    (problem,) = generate(kind, 8, 1, seed=0)
    given = stand_in({})
    with pytest.raises(ChainRouteError) as error:
        lkh.solve(problem, 5)
    assert codes(error) == [("no-plan-found", problem.name)]
    assert read(given).replace(fleet=None) == lkh._translated(problem)


def test_what_it_cannot_solve_is_refused(stand_in):
    stand_in({})
    for kind in set(VARIANTS) - set(lkh.VARIANTS):
        with pytest.raises(ChainRouteError, match=f"LKH takes one depot.*this is {kind}") as error:
            lkh.solve(invent(kind, 0, customers=3), 1)
        assert codes(error)[0] == ("unsupported-feature", "solver")
    for problem, where in (
        (on_a_line(capacity=1, delivery=[1]), "customers"),
        (invent(variant("VRPTW"), 0, kind="durations"), "duration_matrix"),
    ):
        with pytest.raises(ChainRouteError) as error:
            lkh.solve(problem, 1)
        assert codes(error) == [("unsupported-feature", where)]


# -- the program itself


def solved(problem, best):
    """Its cost, judged; a busy machine gets a second and third chance."""
    for limit in (0.5, 2.0, 8.0):
        result = lkh.solve(problem, limit)
        assert result.seconds < limit + 0.5
        assert check(problem, result.solution).feasible
        if result.solution.cost < best * (1 + 1e-5) + 1e-9:
            break
    return result.solution.cost


@real
@pytest.mark.parametrize("kind", lkh.VARIANTS, ids=str)
def test_the_program_finds_the_proven_optimum(kind):
    """Six customers on maps and odd matrices, with and without a fleet. Where linehauls come first all have a
    demand, since the program takes the others for linehauls."""
    pytest.importorskip("scipy", reason="needs chainroute[evaluate]")
    for seed, places in enumerate(("plane", "asymmetric", "rounded", "crowded")):
        problem = invent(kind, seed, kind=places, fleet=seed == 1)
        if kind.backhaul is Backhaul.LINEHAULS_FIRST:
            nothing = problem.delivery + problem.pickup == 0
            problem = problem.replace(delivery=problem.delivery + nothing)
        best = milp.solve(problem, 60).solution.cost
        assert solved(problem, best) == pytest.approx(best, rel=1e-5, abs=1e-9)


@real
def test_the_program_solves_with_a_single_vehicle():
    assert solved(on_a_line(capacity=9, delivery=[1, 1, 1], fleet=1), 6) == 6


@real
def test_the_program_starts_from_the_plan_given():
    """The best plan of one search is where another begins, so that it reports nothing worse."""
    (problem,) = generate(variant("VRPTW"), 50, 1, seed=0)

    def search(start, seed):
        found = []
        routes = None if start is None else start.pairs()
        lkh.run(SearchTask(problem, Deadline.after(2), seed, routes), found.append)
        return [Solution.of(problem, plan.routes) for plan in found]

    cold = search(None, 1)
    warm = search(cold[-1], 2)
    assert cold[0].cost > cold[-1].cost >= warm[0].cost * (1 - 1e-6)


@real
@pytest.mark.parametrize(
    ("kind", "changes", "name"),
    [
        ("CVRP", {}, "CVRP"),
        ("CVRP", {"kind": "asymmetric"}, "ACVRP"),
        ("VRPL", {"kind": "asymmetric"}, "ADCVRP"),
        ("VRPL", {}, "CVRP"),
        ("OVRP", {}, "OVRP"),
        ("VRPTW", {}, "CVRPTW"),
        ("VRPB", {}, "VRPB"),
        ("VRPBTW", {}, "VRPBTW"),
        ("VRPMB", {}, "VRPMPD"),
        ("VRPMBTW", {}, "VRPMPDTW"),
    ],
)
def test_the_program_reads_files_of_its_dialect(kind, changes, name, tmp_path):
    """They have a matrix, coordinates beside it or alone, and a service time for all."""
    problem = invent(variant(kind), 2, **changes)
    problem = problem.replace(service=np.ones(problem.num_customers), limit_counts_service=True, fleet=6)
    if problem.time_windows is not None:
        problem = problem.replace(time_windows=np.minimum(problem.time_windows, 9e5))
    shown = np.arange(14.0).reshape(7, 2)
    for places in (
        {},
        {"coords": None, "distance_matrix": problem.distances},
        {"coords": shown, "distance_matrix": problem.distances},
    ):
        text = vrplib.write_lkh(problem.replace(**places))
        assert f"TYPE : {name}\n" in text.decode()
        assert program(text, tmp_path).returncode == 0


@real
def test_the_program_heeds_a_service_time_for_all_where_linehauls_come_first(tmp_path):
    """Customers at 100 and 200; with a service of 300 the second is not begun in time on the same route."""
    problem = Problem(
        capacity=9,
        delivery=[1, 0],
        pickup=[0, 1],
        backhaul="linehauls-first",
        coords=[[0, 0], [100, 0], [200, 0]],
        rounding="round",
        time_windows=[[0, 9000], [0, 9000], [0, 300]],
        fleet=2,
    )
    assert program(vrplib.write_lkh(problem), tmp_path).stdout.count("Cost.min = 400,") == 1
    slow = vrplib.write_lkh(problem.replace(service=[300, 300]))
    assert program(slow, tmp_path).stdout.count("Cost.min = 600,") == 1


def program(text, folder):
    """A few trials of LKH on a file."""
    (folder / "problem.vrp").write_bytes(text)
    settings = "SPECIAL\nPROBLEM_FILE = problem.vrp\nRUNS = 1\nMAX_TRIALS = 20\nMTSP_MIN_SIZE = 0\n"
    (folder / "run.par").write_text(settings)
    return subprocess.run(
        ["LKH", "run.par"], cwd=folder, capture_output=True, text=True, input="", timeout=60
    )
