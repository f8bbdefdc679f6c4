"""PyVRP: an iterated local search that solves all 48 variants well within seconds."""

from __future__ import annotations

import importlib.util
import threading

from chainroute.problem import Problem
from chainroute.problem.attributes import Beyond
from chainroute.problem.features import require_known
from chainroute.runtime import worker
from chainroute.runtime.deadline import Deadline
from chainroute.search import library
from chainroute.search.library import OnFound, SearchTask, Solver

# What its model holds beyond the 48 variants. What is not named here it refuses.
KNOWS = frozenset(
    {
        Beyond.MIXED_FLEET,
        Beyond.OTHER_END,
        Beyond.FREE_START,
        Beyond.OWN_ROADS,
        Beyond.SHIFTS,
        Beyond.TRIPS,
        Beyond.OPTIONAL,
        Beyond.SEVERAL_WINDOWS,
        Beyond.SKILLS,
        Beyond.BOTH_AT_ONCE,
        Beyond.LEAST_TIME,
        Beyond.MONEY,
    }
)
# Histories of searches within seconds, as shares of all iterations.
SHORT_HISTORY_SHARE, LONGER_HISTORY_SHARE = 1 / 400, 1 / 100


def load() -> library.Search:
    from chainroute.search.solvers.pyvrp_search import search

    return search


def search(
    task: SearchTask,
    on_report: OnFound,
    stop: threading.Event | None = None,
    kind: str = worker.SEARCH,
    end: Deadline | None = None,
) -> bool:
    """Searches in a worker of that kind, as `search_in_worker` says."""
    return library.search_in_worker(load, task, on_report, stop, kind, end)


def installed() -> bool:
    return importlib.util.find_spec("pyvrp") is not None


def warm_up(stop: threading.Event | None = None, kind: str = worker.SEARCH, count: int = 1) -> None:
    """Has so many workers of that kind ready, so that the next searches begin at once."""
    library.warm_up(load, stop, kind, count)


def _require(problem: Problem) -> None:
    library.require("PyVRP", "pyvrp", "chainroute")
    require_known("PyVRP", problem, KNOWS)


SOLVER = Solver("PyVRP", _require, warm_up, search, counts_iterations=True)
solve = SOLVER.solve
