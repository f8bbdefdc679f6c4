"""classical/: PyVRP on every variant, held to the judge, to brute force, and to its time limit."""

import errno
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import combinations, permutations, product
from pathlib import Path

import misbehaving
import numpy as np
import pytest
from problems import KINDS, codes, invent, on_a_line, one_route_each
from timing import within

from chainroute import VARIANTS, ChainRouteError, Problem, Solution, check, variant
from chainroute.errors import fail
from chainroute.generate import generate
from chainroute.runtime import worker
from chainroute.runtime.deadline import ORPHAN_SECONDS, Deadline
from chainroute.search.solvers.pyvrp import solve, warm_up
from chainroute.search.solvers.pyvrp_search import FORBIDDEN_LENGTH, build

AMPLE = 60.0  # seconds: tests that count iterations never use them up


def solved(problem, iterations=300, **options):
    """The solution after so many iterations, judged."""
    solution = solve(problem, AMPLE, max_iterations=iterations, **options).solution
    verdict = check(problem, solution)
    assert verdict.feasible, verdict
    assert verdict.cost == pytest.approx(solution.cost, rel=1e-12)
    return solution


# -- the 48 variants


def optimum(problem):
    """The least cost, by trying every route on every set of customers and every way to share them out."""
    best = {}
    for size in range(1, problem.num_customers + 1):
        for customers in combinations(problem.customers, size):
            for depot, visits in product(problem.depots, permutations(customers)):
                verdict = check(problem, Solution.of(problem, [(depot, visits)]))
                if not any(v.route for v in verdict.violations):
                    best[customers, depot] = min(verdict.cost, best.get((customers, depot), math.inf))

    def partitions(customers):
        if not customers:
            yield []
            return
        first, *rest = customers
        for size in range(len(customers)):
            for others in combinations(rest, size):
                for more in partitions([c for c in rest if c not in others]):
                    yield [(first, *others), *more]

    least = math.inf
    for parts in partitions(list(problem.customers)):
        for depots in product(problem.depots, repeat=len(parts)):
            if problem.fleet is None or max(Counter(depots).values()) <= problem.fleet:
                least = min(
                    least, sum(best.get(route, math.inf) for route in zip(parts, depots, strict=True))
                )
    return least


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_small_problems_are_solved_to_the_optimum(variant):
    """Five customers, two of the odd kinds of problems for each variant, with and without a fleet."""
    i = VARIANTS.index(variant)
    for seed, kind in enumerate((KINDS[i % len(KINDS)], KINDS[(i * 4 + 3) % len(KINDS)])):
        depots = 2 if variant.multi_depot else None
        problem = invent(variant, seed, customers=5, depots=depots, kind=kind, fleet=seed == 1)
        assert solved(problem, 1000).cost == pytest.approx(optimum(problem), rel=1e-6)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_variant_is_solved(variant):
    """Problems of the benchmark's law and odd ones: `solved` judges what comes back."""
    i = VARIANTS.index(variant)
    (regular,) = generate(variant, 25, 1, seed=i)
    odd = invent(variant, i, customers=15, kind=KINDS[(i * 2 + 1) % len(KINDS)], fleet=True)
    for problem in (regular, odd):
        solved(problem, 100)
    assert solved(regular, 100).cost < 0.9 * one_route_each(regular).cost


def test_thousands_of_customers_have_routes_within_seconds():
    (problem,) = generate(variant("CVRP"), 2500, 1, seed=0)
    result = solve(problem, 5)
    assert check(problem, result.solution).feasible
    assert result.seconds < 6


def test_a_pickup_rides_along_with_deliveries_only_where_it_fits():
    """The vehicle is full when it leaves; the pickup on the way out must wait for the way back."""
    problem = on_a_line(capacity=1, delivery=[0, 0.5, 0.5], pickup=[0.5, 0, 0], backhaul="mixed")
    assert solved(problem).routes[0].visits in ((2, 3, 1), (3, 2, 1))
    assert solved(problem).cost == 6


def test_linehauls_come_first_even_with_a_customer_without_demand_in_between():
    """On the way out and back: pickup at 1, nothing at 2, delivery at 3; delivering first costs nothing."""
    problem = on_a_line(capacity=9, delivery=[0, 0, 1], pickup=[1, 0, 0], backhaul="linehauls-first")
    assert solved(problem).cost == 6
    forced = problem.replace(time_windows=[[0, 99], [0, 1], [0, 99], [0, 99]])  # the pickup must be first
    assert len(solved(forced).routes) == 2
    assert solved(forced).cost == 6 + 2


def test_a_route_of_backhauls_alone_is_allowed():
    problem = on_a_line(capacity=1, delivery=[0, 0], pickup=[1, 1], backhaul="linehauls-first")
    assert solved(problem).cost == 6


def test_an_open_route_ends_when_it_likes():
    """Neither the way back nor the closing of the depot counts."""
    problem = on_a_line(
        capacity=9,
        delivery=[1, 1],
        open=True,
        distance_limit=2,
        time_windows=[[0, 1], [0, 1], [2, 9]],
        service=[0, 5],
    )
    assert solved(problem).cost == 2


def test_service_counts_towards_the_limit_where_it_is_said_to():
    fields = {"capacity": 9, "delivery": [1, 1], "service": [1, 1], "distance_limit": 6}
    assert len(solved(on_a_line(**fields, limit_counts_service=True)).routes) == 1
    assert len(solved(on_a_line(**{**fields, "distance_limit": 5.9}, limit_counts_service=False)).routes) == 1
    shorter = on_a_line(**{**fields, "distance_limit": 5.9}, limit_counts_service=True)
    assert len(solved(shorter).routes) == 2


def test_each_vehicle_returns_to_its_own_depot():
    """Two depots 10 apart, a customer beside each; one vehicle at each."""
    problem = Problem(
        capacity=1, delivery=[1, 1], num_depots=2, fleet=1, coords=[[0, 0], [10, 0], [9, 0], [1, 0]]
    )
    solution = solved(problem)
    assert solution.cost == 4
    assert {(r.depot, r.visits) for r in solution.routes} == {(0, (3,)), (1, (2,))}


# -- whole numbers


@pytest.mark.parametrize("capacity", [1, 2])
@pytest.mark.parametrize(("whole", "parts"), [(40, [3] * 13 + [1]), (34, [2] * 17)])
def test_quotients_in_single_precision_fill_a_vehicle(capacity, whole, parts):
    """Forty fortieths fill a vehicle, though in single precision they may add up to more than 1."""
    assert sum(parts) == whole
    demand = capacity * (np.float32(parts * 2) / np.float32(whole)).astype(float)
    coords = np.random.default_rng(0).random((1 + len(demand), 2))
    problem = Problem(capacity=capacity, delivery=demand, coords=coords)
    assert len(solved(problem, 500).routes) == 2


@pytest.mark.parametrize("capacity", [1.0, 1e15])
def test_a_vehicle_may_hold_just_everything(capacity):
    demand = np.random.default_rng(1).random(200)
    demand *= capacity / demand.sum()
    problem = Problem(
        capacity=demand.sum(), delivery=demand, coords=np.random.default_rng(2).random((201, 2))
    )
    assert len(solved(problem, 50).routes) == 1


def test_what_just_suffices_suffices():
    """Limits and windows that equal a length or an arrival to the last bit are met."""
    coords = np.random.default_rng(3).random((7, 2))
    free = Problem(capacity=1, delivery=np.full(6, 0.1), coords=coords)
    trips = free.distances[0, 1:] + free.distances[1:, 0]
    assert solved(free.replace(distance_limit=trips.max()))
    moments = np.r_[[[0, trips.max()]], np.repeat(free.distances[0, 1:, None], 2, axis=1)]
    assert len(solved(free.replace(time_windows=moments)).routes) == 6


@pytest.mark.parametrize("rounding", ["round", "trunc1"])
def test_whole_and_one_decimal_data_stay_exact(rounding):
    """All numbers in the model are whole multiples of one power of ten."""
    coords = np.random.default_rng(4).uniform(0, 100, (30, 2))
    problem = Problem(
        capacity=10,
        delivery=np.ones(29),
        coords=coords,
        rounding=rounding,
        distance_limit=300.7,
        service=np.full(29, 2.3),
        time_windows=[[0, 1000]] + [[10.1, 500.9]] * 29,
    )
    data = build(problem).data
    for matrix in (data.distance_matrix(0), data.duration_matrix(0)):
        unit = round(matrix[0, 1] / problem.distances[0, 1])
        assert unit >= 1e5
        assert np.array_equal(matrix, (problem.distances * 10).round().astype(int) * (unit // 10))
    unit = round(data.duration_matrix(0)[0, 1] / problem.distances[0, 1]) // 10
    client, limit = data.client(0), data.vehicle_type(0).max_distance
    assert [client.tw_early, client.tw_late, client.service_duration] == [101 * unit, 5009 * unit, 23 * unit]
    assert limit == 3007 * round(data.distance_matrix(0)[0, 1] / problem.distances[0, 1]) // 10


@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e6, 1e12])
def test_units_do_not_matter(factor):
    """The same problem in other units has the same solution."""
    problem = invent(variant("VRPMBLTW"), 3, customers=12)
    other = problem.replace(
        coords=problem.coords * factor,
        service=problem.service * factor,
        time_windows=problem.time_windows * factor,
        distance_limit=problem.distance_limit * factor,
        capacity=problem.capacity * factor,
        delivery=problem.delivery * factor,
        pickup=problem.pickup * factor,
    )
    assert solved(other).cost == pytest.approx(factor * solved(problem).cost, rel=1e-6)


def test_numbers_that_stand_for_never_and_no_road_cost_no_precision():
    """1e15 in windows, limit, capacity and matrices: the rest is solved as if it were not there."""
    problem = invent(variant("CVRP"), 5, customers=5, kind="matrix")
    matrix = problem.distances.copy()
    matrix[2, 3] = matrix[3, 2] = 1e15
    never = np.tile([0, 1e15], (6, 1))
    wide = problem.replace(distance_matrix=matrix, distance_limit=1e15, time_windows=never, capacity=1e15)
    assert solved(wide).cost == pytest.approx(optimum(wide), rel=1e-6)
    timed = problem.replace(
        duration_matrix=matrix, time_windows=np.tile([0, 3 * problem.distances.max()], (6, 1))
    )
    assert solved(timed).cost == pytest.approx(optimum(timed), rel=1e-6)


def test_degenerate_problems():
    """One customer; all at the depot; nothing to carry."""
    assert solved(Problem(capacity=1, delivery=[1], coords=[[0, 0], [3, 4]])).cost == 10
    assert solved(Problem(capacity=1, delivery=[1, 1, 1], coords=np.ones((4, 2)))).cost == 0
    assert solved(Problem(capacity=1, delivery=[0, 0], coords=[[0, 0], [3, 4], [6, 8]])).cost == 20


# -- seeds and starts


def test_the_same_seed_gives_the_same_routes():
    (problem,) = generate(variant("VRPTW"), 60, 1, seed=0)
    a, b, c = (solved(problem, 20, seed=seed) for seed in (1, 1, 2))
    assert a.routes == b.routes
    assert a.routes != c.routes


@pytest.mark.parametrize("name", ["CVRP", "OVRPBLTW", "MDVRPMBLTW", "MDOVRPB"])
def test_a_start_is_taken_up_and_never_made_worse(name):
    problem = invent(variant(name), 1, customers=20)
    poor, good = one_route_each(problem), solved(problem, 500)
    assert solved(problem, 0, initial=poor).cost <= poor.cost
    assert solved(problem, 100, initial=poor).cost < poor.cost
    assert solved(problem, 0, initial=good).routes == good.routes
    assert solved(problem, 50, initial=good).cost <= good.cost


def test_a_start_may_visit_customers_without_demand_in_either_half():
    problem = on_a_line(capacity=9, delivery=[0, 0, 1, 0], pickup=[1, 0, 0, 0], backhaul="linehauls-first")
    start = Solution.of(problem, [(0, [4, 3, 1, 2])])
    assert solved(problem, 0, initial=start).routes == start.routes
    assert build(problem).encode([(0, [4, 3, 1, 2])]).distance() < FORBIDDEN_LENGTH


def test_empty_routes_in_a_start_do_no_harm():
    problem = on_a_line(capacity=1, delivery=[1, 1])
    start = Solution.of(problem, [(0, []), (0, [1]), (0, [2])])
    assert solved(problem, 0, initial=start).cost == 6


def test_an_infeasible_start_is_refused():
    problem = on_a_line(capacity=1, delivery=[1, 1])
    with pytest.raises(ChainRouteError) as error:
        solve(problem, 1, initial=Solution.of(problem, [(0, [1, 2])]))
    assert codes(error) == [("infeasible-start", "initial")]
    larger = on_a_line(capacity=1, delivery=[1, 1, 1])
    with pytest.raises(ChainRouteError) as error:
        solve(problem, 1, initial=one_route_each(larger))
    assert codes(error) == [("unknown-location", "route 3")]


def test_a_problem_without_solution_is_told():
    """Three customers of 2 do not fit into two vehicles of 3, though together they would."""
    with pytest.raises(ChainRouteError) as error:
        solve(on_a_line(capacity=3, delivery=[2, 2, 2], fleet=2, name="tight"), AMPLE, max_iterations=50)
    assert codes(error) == [("no-solution", "tight")]


def test_what_it_does_not_find_is_not_called_impossible():
    """To three in the east, north and west, 10 away, the shortest way is 48.3, which nothing quick proves."""
    hidden = Problem(
        name="hidden",
        capacity=9,
        delivery=[1, 1, 1],
        coords=[(0, 0), (10, 0), (0, 10), (-10, 0)],
        fleet=1,
        distance_limit=45,
    )
    with pytest.raises(ChainRouteError) as error:
        solve(hidden, AMPLE, max_iterations=50)
    assert codes(error) == [("no-plan-found", "hidden")]


# -- options


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "5", None])
def test_time_limits_out_of_range_are_refused(wrong):
    with pytest.raises(ChainRouteError) as error:
        solve(on_a_line(capacity=1, delivery=[1]), wrong)
    assert codes(error) == [("bad-option", "time_limit")]


def test_all_wrong_options_are_told_at_once():
    with pytest.raises(ChainRouteError) as error:
        solve(on_a_line(capacity=1, delivery=[1]), 0, seed=-1, max_iterations=-1)
    assert codes(error) == [(("bad-option"), field) for field in ("time_limit", "seed", "max_iterations")]


def test_a_missing_pyvrp_is_told(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ChainRouteError, match=r"pip install 'chainroute'") as error:
        solve(on_a_line(capacity=1, delivery=[1]), 1)
    assert codes(error) == [("missing-extra", "solver")]


# -- the worker


def test_the_time_limit_holds_for_a_thousand_customers():
    (problem,) = generate(variant("VRPTW"), 1000, 1, seed=0)
    warm_up()
    results = []
    assert within(2, lambda: results.append(solve(problem, 2)), before=warm_up)
    result = results[-1]
    assert check(problem, result.solution).feasible
    assert result.seconds > 1.8
    assert result.iterations > 0


def test_a_worker_serves_many_calls():
    problem = on_a_line(capacity=1, delivery=[1, 1])
    solved(problem, 1)
    first = worker._idle[worker.SEARCH][-1]
    first.process.send_signal(signal.SIGINT)  # Ctrl-C at a terminal reaches all processes
    time.sleep(0.1)
    solved(problem, 1)
    assert worker._idle[worker.SEARCH][-1] is first
    first.process.kill()  # by whomever
    first.process.wait()
    solved(problem, 1)
    assert worker._idle[worker.SEARCH][-1] is not first


def test_threads_have_workers_of_their_own():
    problems = generate(variant("CVRP"), 15, 4, seed=0)
    alone = [solved(p, 50).routes for p in problems]
    together = [None] * 4

    def work(i):
        together[i] = solved(problems[i], 50).routes

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


PAIR = {"capacity": 1, "delivery": [1, 1]}


def test_a_search_that_hangs_is_ended(monkeypatch):
    """It is ended in time, and the next call works as ever."""
    solved(on_a_line(**PAIR), 1)
    process = worker._idle[worker.SEARCH][-1].process
    with monkeypatch.context() as patched:
        misbehaving.replace_pyvrp(patched, misbehaving.hang)

        def call():
            with pytest.raises(ChainRouteError) as error:
                solve(on_a_line(**PAIR), 0.3)
            assert codes(error) == [("no-plan-found", "problem")]

        assert within(0.3, call, margin=0.7)
    assert solved(on_a_line(**PAIR)).cost == 6
    assert process.poll() is not None  # given up by then


def test_a_search_that_is_late_is_not_started_again(monkeypatch):
    """Its worker comes to its end a little later, and serves the next call."""
    solved(on_a_line(**PAIR), 1)
    process = worker._idle[worker.SEARCH][-1].process
    with monkeypatch.context() as patched:
        misbehaving.replace_pyvrp(patched, misbehaving.late)
        with pytest.raises(ChainRouteError):
            solve(on_a_line(**PAIR), 0.3)
    assert solved(on_a_line(**PAIR)).cost == 6
    assert worker._idle[worker.SEARCH][-1].process is process


def test_a_search_that_hangs_leaves_what_it_has_found(monkeypatch):
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.report_and_hang)
    result = solve(on_a_line(**PAIR), 1)
    assert result.solution.cost == 6
    assert result.iterations == 7
    assert check(result.solution.problem, result.solution).feasible


def test_a_search_that_hangs_leaves_the_start(monkeypatch):
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    start = one_route_each(on_a_line(**PAIR))
    assert solve(start.problem, 0.3, initial=start).solution.routes == start.routes


def test_what_the_judge_refuses_is_not_returned(monkeypatch):
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.report_and_break_rules)
    assert solve(on_a_line(**PAIR), 5).solution.cost == 6
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.break_rules)
    with pytest.raises(ChainRouteError) as error:
        solve(on_a_line(**PAIR), 5)
    assert codes(error) == [("no-plan-found", "problem")]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (misbehaving.crash, "signal 11"),
        (misbehaving.leave, "exit code 3"),
        (misbehaving.stumble, "ValueError: two left feet"),
    ],
)
def test_a_search_that_fails_is_told(monkeypatch, task, message):
    misbehaving.replace_pyvrp(monkeypatch, task)
    with pytest.raises(ChainRouteError, match=message) as error:
        solve(on_a_line(**PAIR), 5)
    assert codes(error) == [("solver-failed", "")]


def test_a_task_can_be_stopped():
    """An event stops it at once: its worker is ended."""
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    begin = time.monotonic()
    args = (None,)
    assert not worker.run(misbehaving.hang, args, Deadline.after(60), print, stop=stop)
    assert time.monotonic() - begin < 20


def test_a_worker_that_cannot_be_started_is_told(monkeypatch):
    """Here for want of a file handle."""

    def no_pipe():
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("multiprocessing.Pipe", no_pipe)
    with pytest.raises(ChainRouteError, match=r"solver-failed.*no process could be started.*open files"):
        worker.run(misbehaving.hang, (None,), Deadline.after(60), print, kind="unheard of")


def test_workers_that_have_started_are_kept_where_another_cannot(monkeypatch):
    """Else they would stay for as long as we do, and every try would add some."""
    start, started = worker._Worker.__init__, []

    def one_at_most(self, memory=0):
        if started:
            raise fail("solver-failed", "no process could be started.")
        started.append(self)
        start(self, memory)

    monkeypatch.setattr(worker._Worker, "__init__", one_at_most)
    with pytest.raises(ChainRouteError, match="no process"):
        worker.run_in_each(misbehaving.hang, (None,), 2, Deadline.after(60), kind="one")
    assert worker._idle["one"] == started
    started[0].end()


def test_a_worker_is_kept_where_ctrl_c_comes_before_its_task(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    one = worker._Worker()
    worker._idle["interrupted"].append(one)
    monkeypatch.setattr(worker._Worker, "ready", interrupt)
    with pytest.raises(KeyboardInterrupt):
        worker.run(misbehaving.hang, (None,), Deadline.after(60), print, kind="interrupted")
    assert worker._idle["interrupted"] == [one]
    one.end()


def test_a_worker_is_known_until_it_is_killed(monkeypatch):
    """A thread that is about to end one may be cut off as the program exits, which then ends all it knows."""
    one = worker._Worker()
    kill, known = one.process.kill, []
    monkeypatch.setattr(one.process, "kill", lambda: (known.append(one in worker._alive), kill()))
    one.end()
    assert known == [True]
    assert one not in worker._alive
    assert one.process.returncode == -signal.SIGKILL


def test_two_threads_may_end_a_worker_at_a_time(monkeypatch):
    """The program may exit while a solve is ending its own: the pipe is closed once, then again."""
    one, now, most = worker._Worker(), [], []
    close = one.pipe.close

    def slow():
        now.append(1)
        most.append(len(now))
        time.sleep(0.1)
        close()
        now.pop()

    monkeypatch.setattr(one.pipe, "close", slow)
    threads = [threading.Thread(target=one.end) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1]


def test_a_late_task_may_finish_for_the_next_call():
    """With patience the same process serves on, once it is done with what nobody waits for any more."""
    args = (None,)
    heard = []

    def run(task, seconds):
        deadline = Deadline.after(seconds)
        return worker.run(task, args, deadline, heard.append, kind="late", patience=30)

    assert run(misbehaving.nap, 30)
    (first,) = worker._idle["late"]
    assert not run(misbehaving.nap, 0.1)
    assert run(misbehaving.nap, 30)
    assert worker._idle["late"] == [first]
    assert heard == ["awake"] * 2  # who came too late is not heard


@pytest.mark.parametrize("times", [1, 2])
def test_a_worker_killed_while_it_starts_has_died_and_is_replaced_once(times):
    """Never is it told as a search that found nothing: that it hung up is known before its exit code."""
    args = (None,)
    for i in range(4):
        heard, killed, known = [], set(), set(worker._alive)

        def kill(killed=killed, known=known):
            until = time.monotonic() + 20
            while len(killed) < times and time.monotonic() < until:
                for new in {*worker._alive} - known - killed:
                    killed.add(new)
                    new.process.kill()
                time.sleep(0.001)

        killer = threading.Thread(target=kill)
        killer.start()
        kind = f"killed {times} {i}"
        if times == 1:
            assert worker.run(misbehaving.nap, args, Deadline.after(30), heard.append, kind=kind)
            assert heard == ["awake"]
        else:
            with pytest.raises(ChainRouteError, match=r"process died \(signal 9\)"):
                worker.run(misbehaving.nap, args, Deadline.after(30), heard.append, kind=kind)
        killer.join()
        assert len(killed) == times


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted as Linux shows them")
def test_a_worker_multiplies_by_one_thread(monkeypatch):
    """Else sixteen workers on as many cores would have 256, that wait for each other; who sets it decides."""
    heard = []
    for threads in (None, "2"):
        if threads:
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", threads)
        else:
            monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
        assert worker.run(misbehaving.multiply, (None,), Deadline.after(30), heard.append, kind=f"{threads}")
    (_, one), (_, two) = heard
    assert two == one + 1


def test_coded_errors_come_through_whole():
    with pytest.raises(ChainRouteError) as error:
        worker.run(misbehaving.refuse, (None,), Deadline.after(30), print)
    assert codes(error) == [("bad-option", "left")]


def alive(pid):
    """Whether a process runs; one that ended but was not yet collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def ends(pid, seconds):
    """Whether the process ends by itself within so many seconds; after that it is ended."""
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    if not alive(pid):
        return True
    os.kill(pid, signal.SIGKILL)
    return False


SCRIPT = """
import sys
sys.path[:] = {path!r}
from chainroute import Problem
from chainroute.search.solvers import pyvrp
from chainroute.runtime import worker
problem = Problem(capacity=1, delivery=[1, 1], coords=[[0, 0], [1, 0], [2, 0]])
pyvrp.solve(problem, 30, max_iterations=1)
print(worker._idle[worker.SEARCH][-1].process.pid, flush=True)
{change}
pyvrp.solve(problem, {limit})
"""

HANGING = """
from functools import partial
import misbehaving
pyvrp.load = partial(misbehaving.loaded, misbehaving.report_and_hang)
"""


def start_script(limit, change=""):
    """A script without a main guard, as users write them, that is solving; and its worker's process id."""
    script = SCRIPT.format(path=sys.path, change=change, limit=limit)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    pid = int(process.stdout.readline())
    time.sleep(0.3)
    assert alive(pid)
    return process, pid


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
class TestProcesses:
    def test_ctrl_c_ends_the_worker(self):
        """The whole group gets the signal, as from a terminal; the script goes on with what was found."""
        process, pid = start_script(60)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=5)
        assert (process.returncode, errors) == (0, b"")
        assert ends(pid, 1)

    def test_a_worker_ends_with_its_parent_however_long_its_search_was_to_last(self):
        process, pid = start_script(60)
        process.kill()
        process.communicate()
        assert ends(pid, worker.PARENT_WATCH_SECONDS + 3)

    def test_a_worker_that_hangs_does_not_outlive_its_deadline_even_with_nobody_left_to_end_it(self):
        process, pid = start_script(0.6, HANGING)
        process.kill()
        process.communicate()
        assert ends(pid, 0.6 + ORPHAN_SECONDS + 2)
