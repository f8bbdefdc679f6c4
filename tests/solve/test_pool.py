"""Many problems at once: work is prepared while other work is under way, and no more of it than is needed."""

import threading
from dataclasses import replace

import pytest

from chainroute import Problem, Solution, VehicleType, check, variant
from chainroute.generate import generate
from chainroute.solve import Effort, policy_process, pool, solve_many
from chainroute.solve.pool import ahead


def test_the_next_items_are_made_while_one_is_in_hand_and_no_more_than_are_asked_for():
    """With room for two, a third waits in the maker's hands while the first is in ours."""
    made, over = [], threading.Event()
    third, fourth = threading.Event(), threading.Event()

    def items():
        for i in range(5):
            made.append(i)
            if i == 3:
                third.set()
            if i == 4:
                fourth.set()
            yield i

    line = ahead(items(), 2, over)
    assert next(line) == 0
    assert third.wait(10)
    assert not fourth.wait(0.3)
    assert made == [0, 1, 2, 3]
    assert list(line) == [1, 2, 3, 4]


def test_what_ends_the_making_is_raised_after_what_was_made():
    def items():
        yield 1
        raise OSError("no more")

    line = ahead(items(), 8, threading.Event())
    assert next(line) == 1
    with pytest.raises(OSError, match="no more"):
        next(line)


def test_nothing_more_comes_once_it_is_over():
    """Neither for us, nor in the thread, which would else wait for ever to be relieved of its items."""
    over = threading.Event()
    before = threading.active_count()
    line = ahead(iter(range(100)), 1, over)
    assert next(line) == 0
    over.set()
    assert list(line) == []
    assert wait_until(lambda: threading.active_count() == before)


def test_a_search_of_few_iterations_ends_long_before_its_time_limit():
    """On one core, the policy that would help it waits only until it has found routes."""
    (outcome,) = solve_many(generate(variant("CVRP"), 20, 1, seed=0), 100, effort=Effort(iterations=1))
    assert outcome.result.source == "search"
    assert outcome.result.seconds < 40


@pytest.mark.parametrize("effort", [Effort(), Effort(weights="random", starts=4, polish=False)])
def test_who_stops_does_not_wait_for_the_next_problem(effort):
    """It comes from somebody who has none at the moment."""
    stop, more, missed = threading.Event(), threading.Event(), []

    def problems():
        yield from generate(variant("CVRP"), 4, 1, seed=0)
        stop.set()
        missed.append(not more.wait(30))

    begun = [outcome.index for outcome in solve_many(problems(), 1, effort=effort, stop=stop)]
    assert begun in ([], [0])
    assert missed == []
    more.set()


def wait_until(is_true, seconds=10):
    tick = threading.Event()
    return any(is_true() or tick.wait(0.05) for _ in range(int(seconds / 0.05)))


# -- the pipeline of the policy, with the CPU in place of a GPU


@pytest.fixture
def as_if_on_a_gpu(monkeypatch):
    monkeypatch.setattr(policy_process, "gpu", lambda effort: True)
    monkeypatch.setattr(pool, "GPU_BATCH_PROBLEMS", 3)


FEW = Effort(weights="random", starts=4, augmentations=2, recombine=True, polish=False)


def test_routes_made_on_cores_are_those_that_the_policy_makes_itself(monkeypatch):
    """Seven problems of three sizes and several kinds, in batches of three by the pipeline, and in one go."""
    variants = ("CVRP", "VRPTW", "MDCVRP", "OVRPB", "CVRP", "VRPMBL", "MDOVRPTW")
    problems = [generate(variant(name), 8 + i % 3, 1, seed=i)[0] for i, name in enumerate(variants)]
    problems[0] = problems[0].replace(fleet=8)
    plain = {o.index: set(o.result.solution.routes) for o in solve_many(problems, effort=FEW)}
    monkeypatch.setattr(policy_process, "gpu", lambda effort: True)
    monkeypatch.setattr(pool, "GPU_BATCH_PROBLEMS", 3)
    piped = list(solve_many(problems, effort=FEW))
    assert {o.index: set(o.result.solution.routes) for o in piped} == plain
    assert all(o.result.source == "policy" and check(o.problem, o.result.solution).feasible for o in piped)


def test_a_problem_is_pickled_once_and_its_plan_priced_where_it_is_made(as_if_on_a_gpu, monkeypatch):
    """Two processes get each problem, the policy's and a core's; here, nothing is measured any more."""
    pickled, measured = [], []
    state, distance = Problem.__getstate__, Problem.distance
    monkeypatch.setattr(Problem, "__getstate__", lambda p: pickled.append(p.name) or state(p))
    monkeypatch.setattr(Problem, "distance", lambda p, *at: measured.append(p.name) or distance(p, *at))
    problems = generate(variant("VRPTW"), 8, 5, seed=0)
    measured.clear()
    outcomes = list(solve_many(problems, effort=FEW))
    costs = [o.result.solution.cost for o in outcomes]
    assert sorted(pickled) == sorted(p.name for p in problems)
    assert measured == []
    assert costs == [Solution(o.problem, o.result.solution.routes).cost for o in outcomes]
    assert all(check(o.problem, o.result.solution).feasible for o in outcomes)


@pytest.mark.parametrize(
    ("effort", "sizes"), [(FEW, [3, 3, 6, 7, 7, 4]), (replace(FEW, polish=True), [3] * 10)]
)
def test_batches_grow_where_no_search_waits_for_them(as_if_on_a_gpu, monkeypatch, effort, sizes):
    """Each has three problems at least, and as many customers as all before it, up to 27."""
    monkeypatch.setattr(pool, "GPU_BATCH_CUSTOMERS", 27)
    problems = generate(variant("CVRP"), 4, 30, seed=0)
    workers = pool.WorkerPool(problems, None, 0, effort)
    assert [len(batch) for batch in workers.batches] == sizes


def test_a_search_starts_from_what_cores_make_of_trajectories(as_if_on_a_gpu):
    problems = generate(variant("CVRP"), 10, 4, seed=0)
    effort = replace(FEW, polish=True, iterations=0)
    outcomes = list(solve_many(problems, effort=effort))
    assert sorted(o.index for o in outcomes) == [0, 1, 2, 3]
    assert all(check(o.problem, o.result.solution).feasible for o in outcomes)
    assert {h.source for o in outcomes for h in o.result.history} <= {"policy", "polish"}


def test_what_the_policy_does_not_know_is_said_and_costs_no_other_problem(as_if_on_a_gpu):
    """One problem of two has vehicle types of two sizes."""
    known, other = generate(variant("CVRP"), 6, 2, seed=0)
    types = (VehicleType(capacity=other.capacity), VehicleType(capacity=2 * other.capacity))
    outcomes = {o.index: o for o in solve_many([known, other.replace(vehicle_types=types)], effort=FEW)}
    assert outcomes[0].result.source == "policy"
    assert outcomes[1].error.faults[0].code == "unsupported-feature"


@pytest.mark.parametrize("step", ["known_ahead", "offer", "_conclude"])
def test_an_exception_in_a_batch_of_the_policy_is_one_problems_own(step, monkeypatch):
    """While it is made ready for the network, while its routes are judged, or when all is over."""
    drawn = generate(variant("CVRP"), 6, 3, seed=0)
    problems = [problem.replace(name=name) for problem, name in zip(drawn, ["a", "bad", "c"], strict=True)]

    def run(task, args, deadline, on_report, *_):
        for i, problem in enumerate(args[0]):
            on_report((i, [(0, [c]) for c in problem.customers]))

    def fails(real, name_of):
        def call(*args):
            if name_of(*args) == "bad":
                raise ZeroDivisionError("a bug")
            return real(*args)

        return call

    monkeypatch.setattr(policy_process, "_run", run)
    owner, name_of = {
        "known_ahead": (pool, lambda problem: problem.name),
        "offer": (pool.Board, lambda board, *_: board.problem.name),
        "_conclude": (pool.WorkerPool, lambda _, __, problem, *___: problem.name),
    }[step]
    monkeypatch.setattr(owner, step, fails(getattr(owner, step), name_of))
    outcomes = {o.problem.name: o for o in solve_many(problems, effort=Effort(polish=False))}
    assert set(outcomes) == {"a", "bad", "c"}
    for name in ("a", "c"):
        assert outcomes[name].result.source == "policy"
        assert check(outcomes[name].problem, outcomes[name].result.solution).feasible
    bad = outcomes["bad"]
    assert bad.error is not None or bad.result.source == "construction"
