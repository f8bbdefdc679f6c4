"""OR-Tools: constraint programming with guided local search, on all 48 variants."""

from __future__ import annotations

import threading

from chainroute.classical import common
from chainroute.classical.result import SearchResult
from chainroute.problem import Problem
from chainroute.solution import Solution

SEARCH = "chainroute.classical.ortools_search:search"


def solve(
    problem: Problem,
    time_limit: float,
    seed: int = 0,
    initial: Solution | None = None,
    stop: threading.Event | None = None,
) -> SearchResult:
    """The best solution found within `time_limit` seconds, counted from this call to its return.

    An `initial` solution must be feasible; the result is never worse. The search is the same for every seed.
    """
    common.require("OR-Tools", "ortools", "chainroute[evaluate]")
    return common.solve("OR-Tools", SEARCH, problem, time_limit, seed, initial, stop)
