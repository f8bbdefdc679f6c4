"""solve/: the front door holds its limit, survives its workers, and only lets judged routes out."""

import math
import os
import signal
import threading
import time

import misbehaving
import numpy as np
import pytest
from problems import KINDS, codes, invent, one_route_each
from timing import within

import chainroute
from chainroute import VARIANTS, ChainRouteError, Problem, Solution, check, variant
from chainroute.generate import generate
from chainroute.runtime import worker
from chainroute.runtime.cores import cores
from chainroute.runtime.deadline import Deadline
from chainroute.search.own.construct import cut_tour
from chainroute.search.own.exact import optimum
from chainroute.search.own.savings import by_savings
from chainroute.search.solvers import pyvrp
from chainroute.solve import (
    Effort,
    Outcome,
    Progress,
    Result,
    first_plans,
    lanes,
    policy_process,
    pool,
    portfolio,
    searching,
    solve,
    solve_many,
)
from chainroute.solve.join import joined
from chainroute.solve.result import SOURCES, Board

pytest.importorskip("torch", reason="needs chainroute[neural]")

QUICK = Effort(iterations=15, starts=2, augmentations=1)  # counted work: tests do not wait for a clock


def judged(result, problem):
    """The result, whose solution and history are what they should be."""
    assert check(problem, result.solution).feasible
    costs = [news.solution.cost for news in result.history]
    assert costs == sorted(set(costs), reverse=True)
    assert all(check(problem, news.solution).feasible for news in result.history)
    assert {news.source for news in result.history} <= set(SOURCES)
    assert result.history[-1].solution is result.solution
    assert result.source == result.history[-1].source
    return result


def no_policy(problem, deadline):
    return None


@pytest.fixture(scope="module")
def twenty():
    """Constructed plans cost 11.18, the policy's 9.44, those of a search 9.28."""
    return generate(variant("VRPTW"), 20, 1, seed=1)[0]


@pytest.fixture(scope="module")
def good(twenty):
    """A policy that knows good routes."""
    routes = pyvrp.solve(twenty, 60, max_iterations=200).solution
    return lambda problem, deadline: routes


# -- any problem


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_variant_is_solved(variant):
    """Regular and odd: matrices, asymmetric ones, longitudes and latitudes, crowds, fleets."""
    i = VARIANTS.index(variant)
    (regular,) = generate(variant, 10, 1, seed=i)
    odd = invent(variant, i, customers=7, kind=KINDS[i % len(KINDS)], fleet=i % 2 == 0)
    for problem in (regular, odd):
        result = judged(solve(problem, effort=QUICK), problem)
        assert result.solution.cost <= one_route_each(problem).cost or problem.fleet is not None
        assert not result.stopped


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_handful_of_customers_is_solved_to_the_optimum_at_once(variant):
    """It is that of PyVRP with a thousand iterations, and no process is started."""
    i = VARIANTS.index(variant)
    problem = invent(
        variant, i, customers=1 + i % 4, depots=2 if variant.multi_depot else None, fleet=i % 3 == 0
    )
    result = judged(solve(problem, 60), problem)
    assert (result.source, result.seconds < 10) == ("exact", True)
    if i % 4 == 3:
        reference = pyvrp.solve(problem, 60, max_iterations=1000).solution
        assert result.solution.cost == pytest.approx(reference.cost, rel=1e-9)


def test_a_handful_that_cannot_be_served_is_told_at_once():
    """Three customers of 2 do not fit into two vehicles of 3."""
    problem = Problem(name="tight", capacity=3, delivery=[2, 2, 2], coords=np.eye(4, 2), fleet=2)
    assert optimum(problem) is None
    with pytest.raises(ChainRouteError) as error:
        solve(problem)
    assert codes(error) == [("no-solution", "tight")]


def test_big_coordinates_and_names_come_through():
    (problem,) = generate(variant("CVRP"), 12, 1, seed=1)
    big = problem.replace(coords=problem.coords * 1e9 + 1e9, names=[f"É{i}" for i in range(13)])
    assert judged(solve(big, effort=QUICK), big).solution.cost > 1e9


def test_the_library_exports_it():
    assert chainroute.solve is solve


# -- options


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "5", True])
def test_time_limits_out_of_range_are_refused(twenty, wrong):
    with pytest.raises(ChainRouteError) as error:
        solve(twenty, wrong)
    assert codes(error) == [("bad-option", "time_limit")]


def test_all_wrong_options_are_told_at_once(twenty):
    with pytest.raises(ChainRouteError) as error:
        solve(twenty, -1, seed=2**32)
    assert codes(error) == [("bad-option", "time_limit"), ("bad-option", "seed")]
    with pytest.raises(ChainRouteError) as error:
        Effort(iterations=-1, starts=0, augmentations=9, samples=-1, update_rates=(2,))
    assert [where for _, where in codes(error)] == [
        "iterations", "starts", "augmentations", "samples", "update_rates[0]",
    ]  # fmt: skip


def test_a_start_is_never_made_worse(twenty):
    good = solve(twenty, effort=Effort(iterations=300, starts=1, augmentations=1)).solution
    result = judged(
        solve(twenty, effort=Effort(iterations=0, starts=1, augmentations=1), initial=good), twenty
    )
    assert result.history[0].source == "given"
    assert result.solution.cost <= good.cost
    tight = twenty.replace(capacity=twenty.delivery.max())
    with pytest.raises(ChainRouteError) as error:
        solve(tight, initial=Solution.of(twenty, good.routes and [(r.depot, r.visits) for r in good.routes]))
    assert {code for code, _ in codes(error)} == {"infeasible-start"}


def test_counted_iterations_give_the_same_routes(twenty):
    """Policy, search and polish alike; another seed gives others."""
    effort = Effort(iterations=3, starts=3, augmentations=2)
    a, b, c = (judged(solve(twenty, effort=effort, seed=seed), twenty).solution for seed in (5, 5, 6))
    assert a.routes == b.routes
    assert a.routes != c.routes


def test_the_policy_alone_gives_the_same_routes(twenty):
    effort = Effort(polish=False, starts=4, augmentations=1)
    a, b = (judged(solve(twenty, effort=effort), twenty) for _ in range(2))
    assert a.solution.routes == b.solution.routes
    assert a.source == "policy"


def test_too_many_customers_are_refused():
    many = lanes.MAX_CUSTOMERS + 1
    coords = np.random.default_rng(0).random((many + 1, 2))
    large = Problem(name="large", capacity=1, delivery=np.full(many, 0.01), coords=coords)
    with pytest.raises(ChainRouteError) as error:
        solve(large, 1)
    assert codes(error) == [("too-large", "large")]


# -- a plan in any case


def test_a_plan_is_there_before_any_worker_has_started(twenty, monkeypatch):
    """Whatever the searches and the policy do; which is noted."""
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    result = judged(solve(twenty, 0.3, propose=no_policy), twenty)
    assert (result.source, result.notes) == ("construction", (portfolio.CONSTRUCTED,))


def test_five_thousand_customers_have_a_plan_within_a_second():
    """Also with windows and mixed backhauls at several depots; before PyVRP has looked at the problem."""
    (problem,) = generate(variant("MDVRPMBLTW"), 5000, 1, seed=0)
    results = []
    assert within(1.0, lambda: results.append(solve(problem, 1.0)), 0.5, before=start_workers)
    assert judged(results[-1], problem)


def test_what_no_construction_can_do_and_nobody_did_in_time_is_not_called_infeasible(monkeypatch):
    """Seven customers who fill three vehicles to the brim: 5 + 4, 4 + 3 + 2, 3 + 3 + 3 of 9."""
    coords = np.random.default_rng(0).random((9, 2))
    full = Problem(name="full", capacity=9, delivery=[5, 4, 4, 3, 2, 3, 3, 3], coords=coords, fleet=3)
    misbehaving.construct_nothing(monkeypatch)
    monkeypatch.setattr(first_plans, "squeeze_in", lambda problem, over, seed: None)
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    with pytest.raises(ChainRouteError) as error:
        solve(full, 0.3, propose=no_policy)
    assert codes(error) == [("no-plan-found", "full")]


def test_searches_do_not_wait_for_customers_to_be_inserted(monkeypatch):
    """The tour takes four vehicles of 10 (6, 6, 6 + 4, 4 + 4), and there are three. To insert customers
    takes until the time is up; the searches have a plan long before."""
    coords = [(0, 0), *((1, y) for y in (0, 1, 2, 5, 4, 3))]
    full = Problem(capacity=10, delivery=[6, 6, 6, 4, 4, 4], coords=coords, fleet=3)
    assert cut_tour(full) is None

    def slow(problem, over):
        while not over():
            time.sleep(0.01)
        yield from ()

    monkeypatch.setattr(first_plans, "append_hardest_first", lambda problem: None)
    monkeypatch.setattr(portfolio, "inserted", slow)
    monkeypatch.setattr(first_plans, "squeeze_in", lambda problem, over, seed: None)
    result = judged(solve(full, 3.0, propose=no_policy), full)
    assert result.history[0].source == "search"
    assert result.history[0].seconds < 2.7


def test_with_many_windows_and_little_time_one_search_begins_by_savings(monkeypatch):
    """The other from cold; so do both where there is time, without windows, where the plan takes too many
    vehicles, and for few customers. Given routes come first."""
    starts = []
    monkeypatch.setattr(pyvrp, "search", lambda task, *_: not starts.append(task.start))
    (problem,) = generate(variant("VRPTW"), 300, 1, seed=0)
    plan = by_savings(problem)
    few = problem.replace(fleet=len(plan.routes) - 1)
    windowless = problem.replace(time_windows=None)
    (smaller,) = generate(variant("VRPTW"), 299, 1, seed=0)
    for given, limit in ((problem, 1.4), (problem, 1.5), (windowless, 1.4), (few, 1.4), (smaller, 1.4)):
        race = portfolio.Race(given, limit, 0, Effort())
        searching.search(race.attempt)
        searching.other_search(race.attempt)
    assert starts == [plan.pairs(), *[None] * 9]
    race = portfolio.Race(problem, 1.4, 0, Effort(), one_route_each(problem))
    searching.search(race.attempt)
    assert starts[-1] == one_route_each(problem).pairs()


@pytest.mark.parametrize(("cores", "searches"), [(2, 1), (3, 2)])
def test_ejection_has_a_core_to_itself(monkeypatch, cores, searches):
    """On two cores the second search waits until ejection is through, on three it does not."""
    coords = np.random.default_rng(0).random((9, 2))
    full = Problem(name="full", capacity=9, delivery=[5, 4, 4, 3, 2, 3, 3, 3], coords=coords, fleet=3)
    begun, beside = [], []

    def search(task, on_report, stop, kind):
        begun.append(task.seed)
        return False

    def eject(problem, over, seed):
        time.sleep(0.3)
        beside.append(len(begun))

    misbehaving.construct_nothing(monkeypatch)
    monkeypatch.setattr(first_plans, "squeeze_in", eject)
    monkeypatch.setattr(pyvrp, "search", search)
    monkeypatch.setattr(portfolio, "available_cores", lambda: cores)
    with pytest.raises(ChainRouteError, match="no-plan-found"):
        solve(full, 2.0, propose=no_policy)
    assert beside == [searches]
    assert len(begun) == 2


# -- time


@pytest.mark.parametrize(("customers", "limit"), [(20, 0.4), (1000, 2.0)])
def test_the_time_limit_holds(customers, limit):
    (problem,) = generate(variant("VRPTW"), customers, 1, seed=0)
    start = one_route_each(problem)  # on a busy machine, all there may be
    results = []
    assert within(limit, lambda: results.append(solve(problem, limit, initial=start)), before=start_workers)
    assert judged(results[-1], problem).seconds > 0.9 * limit


@pytest.mark.parametrize("front_door", [True, False])
def test_a_call_does_not_pay_for_the_start_of_its_workers(twenty, monkeypatch, front_door):
    """It takes two seconds, and the limit is half of one: the search has all of it."""
    monkeypatch.setattr(pyvrp, "load", misbehaving.load_slowly)
    end_workers()
    if front_door:
        result = judged(solve(twenty, 0.5, propose=no_policy), twenty)
        assert (result.source, result.notes) == ("search", ())
    else:
        result = pyvrp.solve(twenty, 0.5)
    assert 0.4 < result.seconds < 2
    assert result.solution.cost < 11  # of which constructed plans are above


def test_who_stops_while_workers_start_has_the_constructed_plan(twenty, monkeypatch):
    monkeypatch.setattr(pyvrp, "load", misbehaving.load_slowly)

    def call():
        stop = threading.Event()
        threading.Timer(0.2, stop.set).start()
        result = judged(solve(twenty, 60, stop=stop), twenty)
        assert (result.source, result.stopped) == ("construction", True)

    assert within(0.2, call, margin=1.3, before=end_workers)


def start_workers():
    """Starts as many as a call may need, which is no part of its time."""
    pyvrp.warm_up(count=cores())


def end_workers():
    """Ends those that search, so that the next call has to start some."""
    for idle in worker._idle.pop(worker.SEARCH, []):
        idle.end()


def test_progress_is_told_as_it_happens(twenty):
    heard = []
    pyvrp.warm_up()
    result = solve(twenty, 0.5, on_progress=heard.append, propose=no_policy)
    assert tuple(heard) == result.history
    assert all(isinstance(news, Progress) for news in heard)
    seconds = [news.seconds for news in heard]
    assert seconds == sorted(seconds)


def test_stopping_returns_the_best_so_far(twenty):
    """Even out of a limit of years."""
    stop = threading.Event()
    pyvrp.warm_up()
    begin = time.perf_counter()
    result = solve(twenty, 1e9, stop=stop, on_progress=lambda _: threading.Timer(0.1, stop.set).start())
    assert time.perf_counter() - begin < 5
    assert judged(result, twenty).stopped


def test_stopping_before_anything_is_found_is_told(twenty, monkeypatch):
    """Which takes a problem that no plan can be constructed for: else that plan is returned."""
    stop = threading.Event()
    stop.set()
    result = judged(solve(twenty, 60, stop=stop), twenty)
    assert (result.source, result.stopped, result.seconds < 10) == ("construction", True, True)
    misbehaving.construct_nothing(monkeypatch)
    with pytest.raises(ChainRouteError, match="stopped") as error:
        solve(twenty, 10, stop=stop)
    assert codes(error) == [("no-plan-found", twenty.name)]


@pytest.mark.parametrize("limit", [None, 600])
def test_a_stopped_solve_leaves_no_process_at_work(twenty, limit):
    """Not even the policy's, which would be busy for hours and let the next call wait."""
    stop = threading.Event()
    policy_process.warm_up()
    process = worker._idle[worker.POLICY][-1].process
    threading.Timer(0.5, stop.set).start()
    result = solve(twenty, limit, effort=Effort(polish=False, samples=100_000), stop=stop)
    assert judged(result, twenty).stopped
    end = time.monotonic() + 10  # a thread of the solve ends its worker
    while process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_stopped_solve_leaves_no_policy_loading(twenty, monkeypatch):
    """One would load for the next call, after a limit that was too short for it."""
    for idle in worker._idle.pop(worker.POLICY, []):
        idle.end()
    monkeypatch.setattr(policy_process, "_warm", False)
    monkeypatch.setattr(policy_process, "load", misbehaving.load_for_ever)
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    monkeypatch.setattr(portfolio, "available_cores", lambda: 1)
    stop = threading.Event()
    judged(solve(twenty, 0.3, stop=stop), twenty)
    end = time.monotonic() + 30
    while not policy_process._turn.locked():
        assert time.monotonic() < end
        time.sleep(0.02)
    stop.set()
    while policy_process._turn.locked():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_stop_ends_a_first_plan_that_takes_its_time(monkeypatch):
    """That of a large problem may take a minute."""
    stop, begun, patience = threading.Event(), [], time.monotonic() + 30

    def insert(problem, is_settled):
        begun.append(problem)
        stop.set()
        while not is_settled():
            assert time.monotonic() < patience
            time.sleep(0.01)
        yield from ()

    large = generate(variant("CVRP"), lanes.MAX_WHOLE_CUSTOMERS + 1, 1, seed=0)[0]
    for quick in ("cut_tour", "append_hardest_first"):
        monkeypatch.setattr(first_plans, quick, lambda problem: None)
    monkeypatch.setattr(portfolio, "inserted", insert)
    with pytest.raises(ChainRouteError, match=r"no-plan-found.*stopped before any was found"):
        solve(large, 600, stop=stop)
    assert begun == [large]


def test_a_forked_process_does_not_wait_for_a_policy_that_its_parent_has():
    """A thread of the parent may be loading one for the next call, and is not there in the child."""
    with policy_process._turn:
        child = os.fork()
        if child == 0:
            os._exit(0 if policy_process._acquired(Deadline.after(5), None) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_ctrl_c_returns_the_best_so_far(twenty):
    """It does as soon as there is one; before that it is an interrupt as ever."""
    pyvrp.warm_up()

    def interrupt(news):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    first = []
    result = solve(twenty, 60, on_progress=lambda news: first or (first.append(news), interrupt(news)))
    assert judged(result, twenty).stopped
    assert result.seconds < 10


def test_ctrl_c_before_anything_is_found_is_an_interrupt(twenty, monkeypatch):
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    misbehaving.construct_nothing(monkeypatch)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        solve(twenty, 60, propose=no_policy)


@pytest.mark.parametrize(
    "call", [solve, lambda problem, *given, **options: list(solve_many([problem], *given, **options))]
)
def test_a_signal_whose_handler_takes_longer_than_a_look_at_the_clock_still_stops(twenty, monkeypatch, call):
    """Python's SimpleQueue would wait for ever where its wait runs out while a handler is at work."""
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    monkeypatch.setattr(policy_process, "missing", lambda: "torch")  # nor has it any news
    stop = threading.Event()

    def ask(number, frame):
        time.sleep(2 * max(portfolio.WATCH_SECONDS, pool.WATCH_SECONDS))
        stop.set()

    before = signal.signal(signal.SIGUSR1, ask)
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    begin = time.monotonic()
    try:
        call(twenty, 100, stop=stop)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert stop.is_set()
    assert time.monotonic() - begin < 50


# -- faults


def test_what_is_no_problem_is_told_with_the_way_to_one(twenty):
    with pytest.raises(
        ChainRouteError, match=r"\[wrong-type\] problem: must be a Problem, not str.*formats.read"
    ):
        solve("parcels.vrp", 1)
    outcomes = solve_many([twenty, "parcels.vrp"], 0.1)
    with pytest.raises(ChainRouteError, match="wrong-type"):
        list(outcomes)


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (misbehaving.crash, "signal 11"),
        (misbehaving.leave, "exit code 3"),
        (misbehaving.stumble, "two left feet"),
    ],
)
def test_a_search_that_fails_leaves_the_policys_routes(twenty, good, monkeypatch, task, told):
    """And ends when nobody is left to wait for, long before a limit of days."""
    misbehaving.replace_pyvrp(monkeypatch, task)
    result = judged(solve(twenty, 1e6, propose=good), twenty)
    assert (result.source, result.seconds < 60) == ("policy", True)
    assert any(told in str(fault) for fault in result.faults)


@pytest.mark.parametrize("start", [False, True])
def test_a_search_that_fails_with_nobody_else_to_search_is_a_failure(twenty, monkeypatch, start):
    """There is a plan, constructed or given; by name it says what broke off, and why."""
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.stumble)
    initial = one_route_each(twenty) if start else None
    result = judged(solve(twenty, 60, propose=no_policy, initial=initial), twenty)
    assert result.failed
    assert [(fault.code, fault.where) for fault in result.faults] == [("solver-failed", "PyVRP")]
    assert "two left feet" in str(result.faults[0])
    assert not result.notes


def test_a_search_that_fails_where_nothing_can_be_constructed_is_what_is_told(twenty, monkeypatch):
    misbehaving.construct_nothing(monkeypatch)
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.stumble)
    with pytest.raises(ChainRouteError) as error:
        solve(twenty, 60, propose=no_policy)
    assert codes(error) == [("solver-failed", "PyVRP")]


def test_a_search_that_fails_beside_one_that_does_not_is_no_failure(twenty, good, monkeypatch):
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.stumble)
    assert not solve(twenty, 60, propose=good).failed


def test_parts_that_no_search_has_improved_are_a_failure(monkeypatch):
    """Five hundred customers are searched by parts, of which the first already fails."""
    monkeypatch.setattr(portfolio, "anneals", lambda problem: False)
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.stumble)
    (problem,) = generate(variant("CVRP"), 500, 1, seed=0)
    result = solve(problem, 5, propose=no_policy)
    assert (result.failed, result.source) == (True, "construction")


def test_a_search_that_hangs_leaves_the_policys_routes(twenty, good, monkeypatch):
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.hang)
    results = []
    assert within(0.5, lambda: results.append(judged(solve(twenty, 0.5, propose=good), twenty)), 0.5)
    assert all(result.source == "policy" for result in results)


def test_what_the_judge_refuses_is_not_returned(twenty, monkeypatch):
    misbehaving.construct_nothing(monkeypatch)
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.report_and_break_rules)
    assert judged(solve(twenty, 60, propose=no_policy), twenty).solution.cost == pytest.approx(
        joined(one_route_each(twenty)).cost
    )
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.break_rules)
    with pytest.raises(ChainRouteError) as error:
        solve(twenty, 60, propose=no_policy)
    assert codes(error) == [("no-plan-found", twenty.name)]


def test_killed_workers_cost_only_their_part(twenty):
    """All are killed in the middle, until nobody is left: what was found is returned, with a note, and the
    next call works."""
    pyvrp.warm_up()
    searched, ended = threading.Event(), threading.Event()

    def kill():
        searched.wait()
        while not ended.wait(0.02):
            for process in [w.process for w in list(worker._alive)]:
                process.kill()

    threading.Thread(target=kill).start()
    result = solve(twenty, 1e6, on_progress=lambda news: news.source == "search" and searched.set())
    searched.set()
    ended.set()
    assert judged(result, twenty).seconds < 60
    assert any("signal 9" in fault.message for fault in result.faults)
    assert judged(solve(twenty, effort=QUICK), twenty)


def test_a_policy_process_that_is_killed_is_replaced(twenty):
    effort = Effort(polish=False, starts=2, augmentations=1)
    solve(twenty, effort=effort)
    (process,) = [w.process for w in worker._idle[worker.POLICY]]
    process.kill()
    process.wait()
    assert judged(solve(twenty, effort=effort), twenty)
    ended = threading.Event()

    def kill():  # also the one that takes its place
        while not ended.wait(0.02):
            for process in [w.process for w in list(worker._alive)]:
                process.kill()

    threading.Thread(target=kill).start()
    result = judged(solve(twenty, effort=effort), twenty)
    ended.set()
    assert result.source == "construction"
    assert any("signal 9" in fault.message for fault in result.faults)


def test_a_policy_that_is_late_is_left_to_finish(twenty):
    """The next call finds the same process, torch loaded."""
    policy_process.warm_up()
    before = worker._idle[worker.POLICY][-1].process
    slow = Effort(polish=False, samples=2)
    result = judged(solve(twenty, 0.05, effort=slow), twenty)
    assert (result.source, result.notes) == ("construction", (portfolio.CONSTRUCTED,))
    assert judged(solve(twenty, effort=Effort(polish=False, starts=1, augmentations=1)), twenty)
    assert worker._idle[worker.POLICY][-1].process is before


def test_corrupt_weights_are_a_coded_error(twenty, tmp_path):
    policy_process.warm_up()
    for ending in ("safetensors", "json"):
        (tmp_path / f"w.{ending}").write_text("{}")
    for polish in (True, False):
        with pytest.raises(ChainRouteError) as error:
            solve(twenty, 30, effort=Effort(polish=polish, weights=tmp_path / "w"))
        assert codes(error)[0][0] == "weights-corrupt"


def test_a_device_that_is_not_there_is_a_coded_error(twenty):
    with pytest.raises(ChainRouteError) as error:
        solve(twenty, 30, effort=Effort(polish=False, device="abacus"))
    assert codes(error) == [("bad-option", "device")]


def test_missing_extras_are_told(twenty, monkeypatch):
    """What is there answers alone, with a note; with nothing there, the routes are our own."""
    from importlib.util import find_spec

    def without(*names):
        monkeypatch.setattr(
            "importlib.util.find_spec", lambda n, *a: None if n in names else find_spec(n, *a)
        )

    without("pyvrp")
    result = judged(solve(twenty, effort=QUICK), twenty)
    assert result.source == "policy"
    assert "pip install 'chainroute'" in result.notes[0]
    without("torch")
    result = judged(solve(twenty, effort=QUICK), twenty)
    assert result.source == "search"
    assert "pip install 'chainroute[neural]'" in result.notes[0]
    with pytest.raises(ChainRouteError, match=r"chainroute\[neural\]") as error:
        solve(twenty, effort=Effort(polish=False))
    assert codes(error) == [("missing-extra", "")]
    without("torch", "pyvrp")
    result = judged(solve(twenty, 60), twenty)
    assert (result.source, result.seconds < 10) == ("construction", True)
    assert "pip install 'chainroute[neural]'" in result.notes[0]


def test_a_policy_that_finds_nothing_is_noted():
    """Every vehicle must be full, which random weights do not see to; PyVRP does."""
    coords = np.random.default_rng(0).random((11, 2))
    full = Problem(capacity=10, delivery=[7, 3, 6, 4, 5, 5, 8, 2, 9, 1], coords=coords, fleet=5)
    effort = Effort(iterations=500, starts=1, augmentations=1, weights="random")
    result = judged(solve(full, effort=effort), full)
    assert result.source == "search"
    assert any("none of 1 trajectories" in fault.message for fault in result.faults)


def test_on_a_single_core_the_policy_helps_only_a_search_without_routes(twenty, good, monkeypatch):
    monkeypatch.setattr(portfolio, "available_cores", lambda: 1)
    asked = []

    def propose(problem, deadline):
        asked.append(deadline)
        return good(problem, deadline)

    pyvrp.warm_up()
    assert judged(solve(twenty, 0.5, propose=propose), twenty).source == "search"
    assert not asked
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.crash)
    assert judged(solve(twenty, 20, propose=propose), twenty).source == "policy"
    assert asked


def test_solves_side_by_side_do_not_disturb_each_other(twenty):
    problems = generate(variant("CVRP"), 12, 4, seed=0)
    alone = [solve(p, effort=QUICK).solution.routes for p in problems]
    together = [None] * 4

    def work(i):
        together[i] = judged(solve(problems[i], effort=QUICK), problems[i]).solution.routes

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


# -- the board


def test_the_board_keeps_what_is_better(twenty):
    board = Board(twenty, None)
    assert not board.offer(Solution.of(twenty, [(0, [1])]), "search")
    poor = one_route_each(twenty)
    assert board.offer(poor, "policy")
    assert board.offer(poor, "search")
    assert [news.source for news in board.history] == ["policy"]


# -- many


def tight():
    return Problem(name="tight", capacity=3, delivery=[2, 2, 2], coords=np.eye(4, 2), fleet=2)


@pytest.mark.parametrize("polish", [True, False])
def test_many_problems_are_solved_whatever_is_among_them(polish):
    """They are of all sizes, and one has no solution, which the policy alone cannot know."""
    problems = [*generate(VARIANTS[::12], 8, 1, seed=0), tight(), *generate(VARIANTS[:1], 5, 1, seed=0)]
    effort = Effort(polish=polish, iterations=20, starts=2, augmentations=1)
    outcomes = sorted(solve_many(iter(problems), effort=effort), key=lambda outcome: outcome.index)
    assert [outcome.problem for outcome in outcomes] == problems
    for outcome in outcomes:
        assert isinstance(outcome, Outcome)
        if outcome.problem.name == "tight":
            assert outcome.result is None
            assert outcome.error.faults[0].code == "no-solution"
        else:
            assert isinstance(outcome.result, Result)
            judged(outcome.result, outcome.problem)


def test_where_a_gpu_makes_them_cheap_the_policys_routes_are_polished(monkeypatch):
    monkeypatch.setattr(policy_process, "gpu", lambda effort: True)
    problems = generate(VARIANTS[:1], 9, 3, seed=0)
    effort = Effort(iterations=0, starts=2, augmentations=1)
    for outcome in solve_many(problems, effort=effort):
        assert judged(outcome.result, outcome.problem).source in ("policy", "polish")


def test_wrong_options_end_many_at_once(twenty, tmp_path):
    with pytest.raises(ChainRouteError):
        solve_many([twenty], -1)
    with pytest.raises(ChainRouteError) as error:
        list(solve_many([twenty], effort=Effort(polish=False, weights=tmp_path / "nowhere")))
    assert codes(error)[0][0] == "weights-missing"


def test_the_start_of_a_worker_is_nobodys_time_limit(monkeypatch):
    """Every search has to be ended, so that every problem needs a new worker, which takes longer to start
    than the limit: all the same each is searched, as what the hanging search reports shows."""
    problems = generate(variant("CVRP"), 10, 4, seed=0)
    misbehaving.replace_pyvrp(monkeypatch, misbehaving.report_and_hang)
    misbehaving.construct_nothing(monkeypatch)
    monkeypatch.setattr(policy_process, "missing", lambda: "torch")
    outcomes = list(solve_many(problems, 0.1))
    assert [judged(outcome.result, outcome.problem).source for outcome in outcomes] == ["search"] * 4


def test_stopping_many_yields_what_is_under_way(twenty):
    """And begins no more."""
    stop = threading.Event()
    threading.Timer(2, stop.set).start()
    begin = time.perf_counter()
    outcomes = list(solve_many([twenty] * 50, 1e6, stop=stop))
    assert time.perf_counter() - begin < 10
    assert 0 < len(outcomes) <= cores()
    assert all(judged(outcome.result, twenty).stopped for outcome in outcomes)


def test_leaving_many_in_the_middle_ends_its_work(twenty):
    """What others have left loading is not counted."""

    def busy():
        return {w for w in worker._alive if not any(w in idle for idle in worker._idle.values())}

    before = busy()
    outcomes = solve_many([twenty] * 50, 0.2)
    next(outcomes)
    outcomes.close()
    end = time.monotonic() + 60
    while left := busy() - before:
        assert time.monotonic() < end, left
        time.sleep(0.1)
