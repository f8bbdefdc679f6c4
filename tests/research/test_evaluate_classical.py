"""Classical solvers on tasks: judged, timed around the call, and honest about what they cannot."""

import math
import threading
import time

import pytest

from chainroute import Solution, check, variant
from chainroute.errors import ChainRouteError, fail
from chainroute.generate import generate
from chainroute.research.evaluate import classical
from chainroute.research.evaluate.classical import Classical
from chainroute.research.evaluate.tasks import Task

PROBLEMS = generate(variant("VRPTW"), 6, 2, seed=1)
TASK = Task("VRPTW", 2, PROBLEMS.__getitem__)


def test_pyvrp_solves_and_is_timed():
    solver = Classical("pyvrp", 2.0)
    solver.warm_up()
    pieces = list(solver(TASK, 1))
    assert len(pieces) == 1
    assert pieces[0].judged == 1
    assert math.isfinite(pieces[0].costs[0])
    assert 1.5 < pieces[0].seconds < 4


def test_an_instance_without_a_solution_leaves_its_reason(monkeypatch):
    def never(problem, limit, seed):
        raise fail("no-solution", "found nothing.", problem.name)

    monkeypatch.setattr(classical, "solver", lambda *_: never)
    pieces = list(Classical("any", 1.0)(TASK, 0))
    assert [math.isnan(piece.costs[0]) for piece in pieces] == [True, True]
    assert pieces[0].notes == ("0: [no-solution] found nothing.",)


def test_several_at_a_time_keep_their_order(monkeypatch):
    """The first instance ends last, and yet comes first."""
    began = threading.Barrier(2, timeout=10)

    def one_each(problem, limit, seed):
        began.wait()  # both are under way
        if problem is PROBLEMS[0]:
            time.sleep(0.1)
        return one_each_of(problem)

    monkeypatch.setattr(classical, "solver", lambda *_: one_each)
    pieces = list(Classical("any", 1.0, jobs=2)(TASK, 0))
    expected = [check(p, one_each_of(p)).cost for p in PROBLEMS]
    assert [piece.costs[0] for piece in pieces] == expected


def test_who_is_interrupted_does_not_wait_for_what_is_under_way(monkeypatch):
    """The second instance, which would take as long as its limit, and as often as there are runs."""
    begun, waited = threading.Event(), []

    def patient(problem, stop):
        if problem is PROBLEMS[0]:
            begun.wait(10)
        else:
            begun.set()
            waited.append(not stop.wait(30))
        return one_each_of(problem)

    monkeypatch.setattr(
        classical, "solver", lambda name, stop=None: lambda problem, *_: patient(problem, stop)
    )
    pieces = Classical("any", 1.0, jobs=2)(TASK, 0)
    next(pieces)
    pieces.close()
    assert waited == [False]


def one_each_of(problem):
    return Solution.of(problem, [(0, [customer]) for customer in problem.customers])


def test_what_every_instance_would_end_in_ends_the_run(monkeypatch):
    def missing(problem, limit, seed):
        raise fail("missing-extra", "is not installed.", "solver")

    monkeypatch.setattr(classical, "solver", lambda *_: missing)
    with pytest.raises(ChainRouteError, match="missing-extra"):
        list(Classical("any", 1.0)(TASK, 0))


def test_bad_options_are_refused_before_any_work():
    for name, limit, jobs in (
        ("gurobi", 1.0, 1),
        ("pyvrp", 0.0, 1),
        ("pyvrp", math.inf, 1),
        ("pyvrp", 1.0, 0),
    ):
        with pytest.raises(ChainRouteError, match="bad-option"):
            Classical(name, limit, jobs=jobs)


def test_labels_and_settings_tell_runs_apart():
    assert Classical("pyvrp", 1.5).label == "pyvrp-1.5s"
    assert Classical("pyvrp", 1.5, 3).settings()["seed"] == 3


def test_the_best_of_several_runs_counts(monkeypatch):
    """Seeds 3, 4 and 5: the first finds nothing, the last is worse than the second."""
    problem = PROBLEMS[0]
    best = classical.solver("pyvrp")(problem, 2.0, 0)

    def unlucky(problem, limit, seed):
        if seed == 3:
            raise fail("no-solution", "found nothing.", problem.name)
        return best if seed == 4 else one_each_of(problem)

    monkeypatch.setattr(classical, "solver", lambda *_: unlucky)
    (piece,) = Classical("any", 1.0, seed=3, runs=3)(Task("VRPTW", 1, PROBLEMS.__getitem__), 0)
    assert piece.costs[0] == pytest.approx(best.cost)
    assert best.cost < one_each_of(problem).cost
    assert Classical("lkh", runs=10).at(50).label == "lkh-10s-best-of-10"


def test_without_a_limit_it_is_the_papers(monkeypatch):
    """10 s for each instance with up to 50 customers, 20 s for larger ones; also where sizes differ."""
    limits = []

    def note(problem, limit, seed):
        limits.append(limit)
        return one_each_of(problem)

    monkeypatch.setattr(classical, "solver", lambda *_: note)
    problems = [*generate(variant("CVRP"), 50, 1, seed=1), *generate(variant("CVRP"), 100, 1, seed=1)]
    list(Classical("any")(Task("set", 2, problems.__getitem__, names=("a", "b"), best_known=(1.0, 1.0)), 0))
    assert limits == [10.0, 20.0]
    assert [Classical("any").at(n).time_limit for n in (50, 100)] == [10.0, 20.0]
