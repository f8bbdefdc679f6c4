"""An exact solver for small problems of all variants: a mixed-integer linear program, solved by HiGHS."""

from __future__ import annotations

import threading

from chainroute.classical import common
from chainroute.classical.result import SearchResult
from chainroute.errors import fail
from chainroute.problem import Problem
from chainroute.solution import Solution

SEARCH = "chainroute.classical.milp_search:search"
MAX_CUSTOMERS = 20  # ten take seconds; with many more the bound stays far from the cost for hours


def solve(
    problem: Problem,
    time_limit: float,
    seed: int = 0,
    initial: Solution | None = None,
    stop: threading.Event | None = None,
) -> SearchResult:
    """The best solution found within `time_limit` seconds, and a bound; see `SearchResult.optimal`.

    An `initial` solution must be feasible; the result is never worse. The search is the same for every seed.
    """
    if problem.num_customers > MAX_CUSTOMERS:
        message = f"{problem.num_customers} customers; the exact solver takes at most {MAX_CUSTOMERS}."
        raise fail("too-large", message, problem.name)
    common.require("HiGHS", "scipy", "chainroute[evaluate]")
    return common.solve("HiGHS", SEARCH, problem, time_limit, seed, initial, stop)
