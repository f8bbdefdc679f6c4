"""Runs: everything that was finished is kept, and nothing is solved twice."""

import numpy as np
import pytest

from chainroute import Problem, Solution
from chainroute.errors import ChainRouteError, Fault
from chainroute.research.evaluate.results import Results, TaskResult, read_results
from chainroute.research.evaluate.run import run, solved
from chainroute.research.evaluate.tasks import Task
from chainroute.runtime.progress import StatusLine

LINE = Problem(capacity=1, delivery=[1, 1], coords=[(0, 0), (1, 0), (2, 0)])
QUIET = StatusLine(silent=True)


def task(name, count):
    return Task(name, count, lambda i: LINE)


def new():
    return Results("me", "seen", 50, "exact", {})


def test_a_second_call_solves_only_what_is_missing(tmp_path):
    asked = []

    def solve(task, first):
        for i in range(first, task.count):
            asked.append((task.name, i))
            yield TaskResult(task.name, np.array([float(i)]), 1.0)

    run(new(), [task("a", 2), task("b", 2)], solve, tmp_path, QUIET)
    asked.clear()
    results = run(new(), [task("a", 2), task("b", 3), task("c", 1)], solve, tmp_path, QUIET)
    assert asked == [("b", 2), ("c", 0)]
    assert results.tasks["b"].costs.tolist() == [0, 1, 2]
    assert read_results(tmp_path / "me-seen-n50").tasks["b"].seconds == 3


def test_ctrl_c_loses_nothing_that_was_finished(tmp_path):
    def solve(task, first):
        yield TaskResult(task.name, np.array([7.0]), 1.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(new(), [task("a", 2)], solve, tmp_path / "made", QUIET)
    assert read_results(tmp_path / "made" / "me-seen-n50").tasks["a"].costs.tolist() == [7]


def test_a_solution_is_judged_once_more():
    good, bad = (Solution.of(LINE, routes) for routes in ([(0, [1]), (0, [2])], [(0, [1, 2])]))
    named = Task("t", 1, lambda i: LINE, names=("x",), best_known=(6.0,), comparable=lambda s: False)
    entry = solved(named, 0, good, 0.5)
    assert (entry.costs.tolist(), entry.judged, entry.best, entry.apart) == ([6], 1, (6.0,), ("x",))
    with pytest.raises(ChainRouteError, match="internal-error"):
        solved(named, 0, bad, 0.5)


def test_without_a_solution_the_reason_is_kept():
    entry = solved(task("t", 1), 0, Fault("no-solution", "too little time.", "p"), 0.5)
    assert np.isnan(entry.costs[0])
    assert entry.notes == ("0: [no-solution] too little time.",)


def test_a_folder_that_cannot_be_made_is_a_coded_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ChainRouteError, match="file-unwritable"):
        run(new(), [], lambda task, first: iter(()), tmp_path / "file" / "sub", QUIET)
